//! Reports: what somebody wrote, held against the facts of a repository sentence by sentence.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{FactId, Payload, ReportId, SourceId, Subject, SubjectKind, UserId};

/// Judges by rules, in the process.
pub const POSTURE_MODEL: &str = "builtin-posture-1";

/// As many sentences as a report may have.
pub const MOST_REPORT_SENTENCES: usize = 50_000;

words! {
    /// How a fact stands to a sentence. A fact that has nothing to do with the sentence has no posture.
    Posture {
        Related = "related",
        Supports = "supports",
        Contradicts = "contradicts",
    }
}

words! {
    /// Where a report stands.
    ReportStatus {
        /// Nothing of it was checked yet.
        Pending = "pending",
        /// Some sentences wait to be checked.
        Annotating = "annotating",
        Annotated = "annotated",
        /// Some sentences could not be checked.
        Failed = "failed",
    }
}

words! {
    /// How a sentence stands. One that facts contradict is contradicted, whatever supports it.
    SentenceState {
        Supported = "supported",
        Contradicted = "contradicted",
        Unsupported = "unsupported",
    }
}

impl SentenceState {
    /// From what the facts of a sentence say.
    pub const fn of(supports: bool, contradicts: bool) -> Self {
        if contradicts {
            Self::Contradicted
        } else if supports {
            Self::Supported
        } else {
            Self::Unsupported
        }
    }
}

words! {
    /// Why a sentence stands otherwise than before.
    ChangeCause {
        /// It was checked for the first time.
        Checked = "checked",
        FactAdded = "fact_added",
        /// Its sources were deleted, or a person rejected it.
        FactRemoved = "fact_removed",
        /// Another fact stands for it now.
        FactMerged = "fact_merged",
        /// The mark of a source was set or removed.
        SourceMarked = "source_marked",
        /// A person has judged.
        Person = "person",
        /// It was judged anew: another model, another threshold.
        Judged = "judged",
    }
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub id: ReportId,
    pub no: i64,
    pub title: String,
    pub topic: Option<String>,
    pub parent: Option<ReportId>,
    pub language: Option<String>,
    pub status: ReportStatus,
    /// Why its sentences could not all be checked.
    pub failure: Option<(String, String)>,
    pub sentence_count: i32,
    pub claim_count: i32,
    pub checked_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// How many claims of a report stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportCounts {
    pub supported: i64,
    pub contradicted: i64,
    pub unsupported: i64,
    /// Not checked yet, or to be checked again; counted beside how they stand.
    pub waiting: i64,
    pub not_a_claim: i64,
}

/// A sentence of a report, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSentence {
    pub no: i64,
    /// From 0.
    pub place: i32,
    /// Code points of the body.
    pub start: i32,
    pub end: i32,
    pub text: String,
    pub is_claim: bool,
    pub is_waiting: bool,
    /// `None` if it is no claim or was not checked yet.
    pub state: Option<SentenceState>,
}

/// What was said of a sentence and a fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    pub no: i64,
    pub sentence: ReportSentence,
    pub fact: FactId,
    pub fact_no: i64,
    pub fact_text: String,
    pub score: f32,
    /// `None`: they have nothing to do with each other, as a person says.
    pub posture: Option<Posture>,
    pub confidence: f32,
    /// A model, or `person`.
    pub judged_by: String,
    pub person: Option<UserId>,
    pub judged_at: DateTime<Utc>,
    /// All sources of the fact were retracted: it counts for nothing.
    pub retracted: bool,
    /// All sources of the fact are superseded; it counts all the same.
    pub superseded: bool,
}

/// A sentence that came to stand otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportChange {
    pub no: i64,
    pub sentence: i64,
    /// Its place and its words; missing when the report was changed and no longer has it.
    pub now: Option<(i32, String)>,
    pub before: Option<SentenceState>,
    pub after: SentenceState,
    pub cause: ChangeCause,
    /// The fact and the source that made the difference, while they are there.
    pub fact: Option<FactId>,
    pub source: Option<SourceId>,
    /// The title of the source or its address, also when it is gone.
    pub source_title: Option<String>,
    pub person: Option<UserId>,
    /// Where a person has judged: what was said of the fact before, and what they say; missing if they took it back.
    pub posture_before: Option<String>,
    pub posture_after: Option<String>,
    pub changed_at: DateTime<Utc>,
}

/// Checks the sentences of a report that wait for it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnotateReport {
    pub report: ReportId,
}

impl Payload for AnnotateReport {
    const KIND: &'static str = "annotate_report";

    fn subject(&self) -> Option<Subject> {
        Some(Subject::new(SubjectKind::Report, self.report.uuid()))
    }
}

/// Finds the sentences that changed facts concern, and has their reports checked.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckReports {}

impl Payload for CheckReports {
    const KIND: &'static str = "check_reports";
    const INTERNAL: bool = true;

    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}
