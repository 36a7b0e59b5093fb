//! Sources: what knowledge rests on, and where one stands on its way from an address to facts.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{
    Blob, BlobHash, Cost, Extraction, ImageId, InvestigationId, JobId, Money, Payload, RepositoryId,
    SourceId, SourceMark, Subject,
};

words! {
    /// Where a source stands.
    SourceStatus {
        Pending = "pending",
        Fetching = "fetching",
        Fetched = "fetched",
        Processing = "processing",
        Processed = "processed",
        Failed = "failed",
    }
}

impl SourceStatus {
    /// The one table of what may follow what. A job that is run again finds its own mark, so each may follow itself.
    pub const fn may_become(self, next: Self) -> bool {
        use SourceStatus::{Failed, Fetched, Fetching, Pending, Processed, Processing};
        match self {
            Pending => matches!(next, Pending | Fetching | Failed),
            // Processed at once, where a registry has what is to be made of it.
            Fetching => matches!(next, Fetching | Fetched | Processed | Failed),
            Fetched => matches!(next, Fetched | Processing | Failed),
            Processing => matches!(next, Processing | Processed | Failed),
            Processed => matches!(next, Processing),
            // Retried from the start, from what is stored, or by the job that was given up.
            Failed => matches!(next, Pending | Fetching | Fetched | Processing),
        }
    }

    /// Those that may become `next`, for a statement.
    pub fn before(next: Self) -> Vec<String> {
        let before = Self::ALL.iter().filter(|status| status.may_become(next));
        before.map(|status| status.as_str().to_owned()).collect()
    }

    /// Whether a job has to bring it on.
    pub const fn is_on_its_way(self) -> bool {
        matches!(self, Self::Pending | Self::Fetching | Self::Processing)
    }
}

words! {
    /// What somebody was doing when a source failed.
    SourceStage {
        Fetch = "fetch",
        Parse = "parse",
        Decomposition = "decomposition",
    }
}

/// Why a source failed, in words for whoever added it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFailure {
    pub stage: String,
    /// Stable.
    pub code: String,
    pub message: String,
    /// Whether the same may go well another time.
    pub retryable: bool,
}

impl SourceFailure {
    pub fn new(
        stage: SourceStage,
        code: impl Into<String>,
        message: impl Into<String>,
        retryable: bool,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { stage: stage.as_str().to_owned(), code, message, retryable }
    }
}

/// One try to get hold of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchAttempt {
    pub provider: String,
    pub url: String,
    pub status: Option<u16>,
    pub ms: u64,
    pub outcome: String,
}

/// A source, without its text.
#[derive(Clone, Debug)]
pub struct Source {
    pub id: SourceId,
    pub url: String,
    pub doi: Option<String>,
    pub status: SourceStatus,
    pub failure: Option<SourceFailure>,
    pub kind: Option<String>,
    pub content_type: Option<String>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub site_name: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub language: Option<String>,
    pub license: Option<String>,
    /// The original, where it is kept.
    pub body: Option<Blob>,
    pub file_name: Option<String>,
    pub fetch_attempts: Vec<FetchAttempt>,
    pub max_cost_usd: Option<Money>,
    pub cost: Cost,
    pub fact_count: i64,
    /// Why it does not go on although nothing failed.
    pub waiting_for: Option<String>,
    /// Whose, where it waits for a budget.
    pub waiting_budget: Option<String>,
    /// What came of looking for facts.
    pub extraction: Option<Extraction>,
    /// Where its reader asked.
    pub mark: Option<SourceMark>,
    /// The job that brings it on, or did so last.
    pub job: JobId,
    pub created_at: DateTime<Utc>,
    pub fetched_at: Option<DateTime<Utc>>,
    pub processed_at: Option<DateTime<Utc>>,
}

/// What was read out of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceText {
    pub text: String,
    pub markdown: String,
    /// Half-open, in code points of the text.
    pub sentences: Vec<(i32, i32)>,
    /// For each sentence the places where it stands, as JSON: `[[page, x0, y0, x1, y1, …], …]`. Only for PDFs.
    pub boxes: Option<String>,
    /// For PDFs: those that could be opened, in their order.
    pub pages: Vec<SourcePage>,
    pub segmenter: String,
    pub segmenter_hash: String,
}

/// A page of a PDF as it is shown: turned and cropped. In points, 72 to the inch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePage {
    /// From 1.
    pub number: u32,
    pub width: f32,
    pub height: f32,
    /// By how many degrees clockwise it is turned to be shown: 0, 90, 180 or 270.
    pub rotation: u16,
    /// Its text was recognised in its picture.
    #[serde(default)]
    pub ocr: bool,
}

/// The large parts of what was read out of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part is there or not")]
pub struct TextParts {
    pub text: bool,
    pub markdown: bool,
    pub sentences: bool,
    pub boxes: bool,
}

impl TextParts {
    pub const ALL: Self = Self { text: true, markdown: true, sentences: true, boxes: true };
    pub const NONE: Self = Self { text: false, markdown: false, sentences: false, boxes: false };
}

/// What was read out of a source, as far as it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialText {
    pub text: Option<String>,
    pub markdown: Option<String>,
    /// Beginning and end of each sentence, one after the other.
    pub sentences: Option<Vec<i32>>,
    pub boxes: Option<String>,
    /// For PDFs.
    pub pages: Vec<SourcePage>,
    pub segmenter: String,
    /// Of the text, in hexadecimal digits.
    pub sha256: String,
}

/// One of the texts of a source, to be read piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    pub markdown: bool,
    /// In bytes of UTF-8.
    pub size: u64,
    /// In hexadecimal digits.
    pub sha256: String,
    /// Another one when the row is written again.
    pub version: String,
}

/// A stretch of a text with its sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passage {
    pub text: String,
    /// Beginning and end of each sentence in code points of the whole text.
    pub sentences: Vec<(i32, i32)>,
    /// For PDFs, on which page each sentence begins.
    pub pages: Vec<Option<i32>>,
}

/// An image of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceImage {
    pub id: ImageId,
    /// `inline` or `page`.
    pub kind: String,
    pub page_number: Option<i32>,
    pub position: i32,
    pub url: Option<String>,
    pub width: Option<i32>,
    pub height: Option<i32>,
    pub alt_text: Option<String>,
    pub content_type: Option<String>,
    pub blob: Option<Blob>,
}

/// Which sources are asked for.
#[derive(Clone, Debug, Default)]
pub struct SourceFilter {
    pub status: Option<SourceStatus>,
    pub kind: Option<String>,
    /// Only these, by their numbers.
    pub among: Option<Vec<i64>>,
    /// Only those of this investigation. Whoever lists them puts these among the numbers.
    pub investigation: Option<InvestigationId>,
    pub published_from: Option<NaiveDate>,
    pub published_to: Option<NaiveDate>,
}

/// Gets hold of a source and reads it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrieveSource {
    pub source: SourceId,
}

impl Payload for RetrieveSource {
    const KIND: &'static str = "retrieve_source";

    fn subject(&self) -> Option<Subject> {
        Some(self.source.into())
    }
}

/// Turns the text of a source into facts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceDecomposition {
    pub source: SourceId,
}

impl Payload for SourceDecomposition {
    const KIND: &'static str = "source_decomposition";

    fn subject(&self) -> Option<Subject> {
        Some(self.source.into())
    }
}

/// A file of a source that is kept, by where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceFile {
    pub repository: RepositoryId,
    pub source: SourceId,
    pub hash: BlobHash,
}

/// The address of what somebody brought along themselves.
pub fn upload_url(source: SourceId) -> String {
    format!("upload://{source}")
}

/// As much as is known of a date; the rest is its beginning.
pub fn parse_date(text: &str) -> Option<NaiveDate> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next()?.parse().ok().filter(|year| (1..=9999).contains(year))?;
    let month = parts.next().map_or(Some(1), |month| month.parse().ok())?;
    let day = parts.next().map_or(Some(1), |day| day.parse().ok())?;
    NaiveDate::from_ymd_opt(year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_as_long_as_it_is_known() {
        let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day);
        for (text, expected) in [
            ("2026-03-14", day(2026, 3, 14)),
            ("2026-03", day(2026, 3, 1)),
            ("1905", day(1905, 1, 1)),
            ("2026-13-01", None),
            ("2026-02-30", None),
            ("soon", None),
            ("", None),
            ("999999", None),
        ] {
            assert_eq!(parse_date(text), expected, "{text}");
        }
    }

    #[test]
    fn a_source_goes_one_way_and_may_fail_on_it() {
        use SourceStatus::{Failed, Fetched, Fetching, Pending, Processed, Processing};
        for pair in [Pending, Fetching, Fetched, Processing, Processed].windows(2) {
            assert!(pair[0].may_become(pair[1]), "{pair:?}");
            assert!(pair[0].may_become(Failed) && !pair[1].may_become(Pending), "{pair:?}");
        }
        assert!(!Pending.may_become(Fetched) && !Pending.may_become(Processing));
        assert!(!Processed.may_become(Failed), "what is there does not go by failing");
        assert!(Processed.may_become(Processing) && Failed.may_become(Pending));
        assert_eq!(SourceStatus::before(Processing), ["fetched", "processing", "processed", "failed"]);
    }
}
