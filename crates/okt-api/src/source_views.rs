//! Sources as they are shown.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use okt_app::SeenSource;
use okt_model::{BlobHash, Error, Extraction, ImageId, Source, SourceImage};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

/// A source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceSummary)]
pub struct SourceRow {
    pub(crate) id: Uuid,
    /// Where it is from; `upload://…` for a file that somebody brought along.
    #[schema(example = "https://example.org/bees")]
    url: String,
    #[schema(required, example = "10.1000/182")]
    doi: Option<String>,
    /// `pending`, `fetching`, `fetched`, `processing`, `processed` or `failed`.
    #[schema(example = "processed")]
    status: &'static str,
    /// Why it failed; null otherwise.
    #[schema(required)]
    failure: Option<FailureView>,
    /// Why it does not go on although nothing failed: `budget` or `rate_limit`; null otherwise.
    #[schema(required)]
    waiting_for: Option<String>,
    /// `html`, `pdf`, `text` or `markdown`, once it has been read.
    #[schema(required, example = "pdf")]
    kind: Option<String>,
    #[schema(required, example = "application/pdf")]
    content_type: Option<String>,
    #[schema(required)]
    parsed_title: Option<String>,
    #[schema(required)]
    author: Option<String>,
    #[schema(required)]
    site_name: Option<String>,
    #[schema(required, example = "2026-03-01")]
    published_at: Option<NaiveDate>,
    #[schema(required, example = "en")]
    language: Option<String>,
    #[schema(required)]
    license: Option<String>,
    /// Whether `GET …/body` has the original.
    has_stored_body: bool,
    /// What the file was called by whoever brought it along.
    #[schema(required)]
    file_name: Option<String>,
    fact_count: i64,
    cost: SourceCost,
    /// The most that may be spent on it.
    #[schema(required)]
    max_cost_usd: Option<f64>,
    /// The job that brings it on, or did so last.
    job_id: Uuid,
    created_at: DateTime<Utc>,
    #[schema(required)]
    fetched_at: Option<DateTime<Utc>>,
    #[schema(required)]
    processed_at: Option<DateTime<Utc>>,
}

/// A source with what was read out of it.
#[derive(Serialize, ToSchema)]
#[schema(as = Source)]
pub struct SourceView {
    #[serde(flatten)]
    row: SourceRow,
    #[schema(required)]
    parsed_text: Option<String>,
    #[schema(required)]
    parsed_markdown: Option<String>,
    /// Beginning and end of each sentence in Unicode code points of `parsed_text`.
    sentence_offsets: Vec<(i32, i32)>,
    /// For PDFs: for each sentence where it stands, five numbers for each place: page, x0, y0, x1, y1 in PDF points.
    #[schema(required, value_type = Option<Vec<Vec<f64>>>)]
    sentence_boxes: Option<Box<RawValue>>,
    /// What cut the sentences, by name and version.
    #[schema(required)]
    segmenter: Option<String>,
    /// SHA-256 of the parsed text.
    #[schema(required)]
    sha256: Option<String>,
    images: Vec<ImageView>,
    /// What came of looking for facts; null until somebody did.
    #[schema(required)]
    extraction: Option<ExtractionView>,
    /// How it was tried to get hold of it, in order.
    fetch_attempts: Vec<AttemptView>,
}

/// Why a source failed.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceFailure)]
struct FailureView {
    /// `fetch`, `parse` or `decomposition`.
    stage: String,
    /// Stable, for programs.
    #[schema(example = "not_found")]
    code: String,
    message: String,
    /// Whether the same may go well another time.
    retryable: bool,
}

/// What came of looking for facts in a source.
#[derive(Serialize, ToSchema)]
#[schema(as = Extraction)]
struct ExtractionView {
    /// Who was asked. `builtin-extractive-1` is no model: it takes sentences as they are.
    #[schema(example = "builtin-extractive-1")]
    model: String,
    promptset_hash: String,
    chunks: u32,
    images: u32,
    /// Chunks and images that gave nothing that could be used.
    failed: u32,
    /// The first 20 of them.
    failures: Vec<ChunkFailureView>,
    /// What a model said and the text does not bear out, by why it was left out.
    dropped: BTreeMap<String, u32>,
    sentences: u32,
    cited_sentences: u32,
    /// The share of sentences that some fact rests on; `GET …/references?cited=false` lists the others.
    #[schema(example = 0.8)]
    coverage: f64,
}

/// A part of a source that gave nothing that could be used. A retry asks for it alone.
#[derive(Serialize, ToSchema)]
#[schema(as = ChunkFailure)]
struct ChunkFailureView {
    #[schema(required)]
    chunk_index: Option<u32>,
    #[schema(required)]
    image_id: Option<Uuid>,
    #[schema(required)]
    first_sentence: Option<u32>,
    #[schema(required)]
    last_sentence: Option<u32>,
    /// Stable, for programs: `misfit`, `truncated`, `filtered`, `refused`, `unanswered`, `image_missing`, or why the whole source
    /// was given up (`model_refused`, `max_cost_reached`).
    #[schema(example = "truncated")]
    code: String,
    message: String,
}

/// What a source has cost so far.
#[derive(Serialize, ToSchema)]
struct SourceCost {
    tokens_in: u64,
    tokens_out: u64,
    usd: f64,
}

/// An image of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceImage)]
struct ImageView {
    id: Uuid,
    /// `inline`, or `page` for a page of a PDF as a picture.
    #[schema(example = "inline")]
    kind: String,
    #[schema(required)]
    page_number: Option<i32>,
    position: i32,
    #[schema(required)]
    url: Option<String>,
    #[schema(required)]
    width: Option<i32>,
    #[schema(required)]
    height: Option<i32>,
    #[schema(required)]
    alt_text: Option<String>,
    #[schema(required, example = "image/png")]
    content_type: Option<String>,
    /// Whether `GET …/images/{imageID}` has it.
    stored: bool,
}

/// One try to get hold of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = FetchAttempt)]
struct AttemptView {
    #[schema(example = "fetch")]
    provider: String,
    url: String,
    #[schema(required)]
    status: Option<u16>,
    ms: u64,
    #[schema(example = "taken")]
    outcome: String,
}

impl From<Source> for SourceRow {
    fn from(source: Source) -> Self {
        Self {
            id: source.id.uuid(),
            url: source.url,
            doi: source.doi,
            status: source.status.as_str(),
            failure: source.failure.map(|failure| FailureView {
                stage: failure.stage,
                code: failure.code,
                message: failure.message,
                retryable: failure.retryable,
            }),
            waiting_for: source.waiting_for,
            kind: source.kind,
            content_type: source.content_type,
            parsed_title: source.title,
            author: source.author,
            site_name: source.site_name,
            published_at: source.published_at,
            language: source.language,
            license: source.license,
            has_stored_body: source.body.is_some(),
            file_name: source.file_name,
            fact_count: source.fact_count,
            cost: SourceCost {
                tokens_in: source.cost.tokens_in,
                tokens_out: source.cost.tokens_out,
                usd: source.cost.usd,
            },
            max_cost_usd: source.max_cost_usd,
            job_id: source.job.uuid(),
            created_at: source.created_at,
            fetched_at: source.fetched_at,
            processed_at: source.processed_at,
        }
    }
}

impl TryFrom<SeenSource> for SourceView {
    type Error = Error;

    fn try_from(seen: SeenSource) -> Result<Self, Error> {
        let SeenSource { mut source, text, images } = seen;
        let attempts = std::mem::take(&mut source.fetch_attempts).into_iter().map(|attempt| AttemptView {
            provider: attempt.provider,
            url: attempt.url,
            status: attempt.status,
            ms: attempt.ms,
            outcome: attempt.outcome,
        });
        let sha256 = text.as_ref().map(|text| BlobHash(Sha256::digest(&text.text).into()).to_string());
        let (sentences, boxes, segmenter, markdown, text) = match text {
            Some(text) => (
                text.sentences,
                text.boxes.map(RawValue::from_string).transpose().map_err(Error::internal)?,
                Some(text.segmenter),
                Some(text.markdown),
                Some(text.text),
            ),
            None => Default::default(),
        };
        Ok(Self {
            fetch_attempts: attempts.collect(),
            extraction: source.extraction.take().map(ExtractionView::from),
            row: source.into(),
            parsed_text: text,
            parsed_markdown: markdown,
            sentence_offsets: sentences,
            sentence_boxes: boxes,
            segmenter,
            sha256,
            images: images.into_iter().map(ImageView::from).collect(),
        })
    }
}

impl From<Extraction> for ExtractionView {
    fn from(found: Extraction) -> Self {
        let failures = found.failures.into_iter().map(|failure| ChunkFailureView {
            chunk_index: failure.chunk,
            image_id: failure.image.map(ImageId::uuid),
            first_sentence: failure.first_sentence,
            last_sentence: failure.last_sentence,
            code: failure.code,
            message: failure.message,
        });
        Self {
            model: found.model,
            promptset_hash: found.promptset_hash,
            chunks: found.chunks,
            images: found.images,
            failed: found.failed,
            failures: failures.collect(),
            dropped: found.dropped,
            sentences: found.sentences,
            cited_sentences: found.cited_sentences,
            coverage: f64::from(found.cited_sentences) / f64::from(found.sentences.max(1)),
        }
    }
}

impl From<SourceImage> for ImageView {
    fn from(image: SourceImage) -> Self {
        Self {
            id: image.id.uuid(),
            kind: image.kind,
            page_number: image.page_number,
            position: image.position,
            url: image.url,
            width: image.width,
            height: image.height,
            alt_text: image.alt_text,
            content_type: image.content_type,
            stored: image.blob.is_some(),
        }
    }
}
