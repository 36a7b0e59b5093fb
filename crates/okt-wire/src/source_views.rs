//! Sources as they are shown.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use okt_app::{ImageKind, SeenSource};
use okt_model::{
    ConceptExtraction, Error, Extraction, ImageId, Money, NoFacts, RegistryOrigin, Source, SourceImage,
    SourcePage, TextParts,
};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::registry::OriginView;
use crate::source_marks::MarkView;
use crate::vocabulary::schema;

/// Beginning and end of a piece of text.
#[derive(ToSchema)]
#[schema(value_type = Vec<i32>, min_items = 2, max_items = 2, example = json!([0, 64]))]
#[expect(
    dead_code,
    reason = "only its form is told: a tuple is two items, which many programs can't read as a type"
)]
pub struct TextSpan((i32, i32));

/// A source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceSummary)]
pub struct SourceRow {
    pub id: Uuid,
    /// The address that it was fetched from; `upload://…` for an uploaded file.
    #[schema(example = "https://example.org/bees")]
    pub url: String,
    #[schema(required, example = "10.1000/182")]
    pub doi: Option<String>,
    /// `pending`, `fetching`, `fetched`, `processing`, `processed` or `failed`.
    #[schema(value_type = schema::SourceStatus)]
    pub status: &'static str,
    /// Why the source failed; null otherwise.
    #[schema(required)]
    pub failure: Option<FailureView>,
    /// What the source waits for: `budget` or `rate_limit`; null otherwise.
    #[schema(required, value_type = Option<schema::Waiting>)]
    pub waiting_for: Option<String>,
    /// The budget that the source waits for: `repository` or `installation`; null otherwise.
    #[schema(required)]
    pub waiting_budget: Option<String>,
    /// `html`, `pdf`, `text` or `markdown`, once it has been read.
    #[schema(required, value_type = Option<schema::SourceKind>)]
    pub kind: Option<String>,
    #[schema(required, example = "application/pdf")]
    pub content_type: Option<String>,
    #[schema(required, example = "On bees")]
    pub parsed_title: Option<String>,
    #[schema(required, example = "Karl von Frisch")]
    pub author: Option<String>,
    #[schema(required)]
    pub site_name: Option<String>,
    #[schema(required, example = "2026-03-01")]
    pub published_at: Option<NaiveDate>,
    #[schema(required, example = "en")]
    pub language: Option<String>,
    #[schema(required)]
    pub license: Option<String>,
    /// Whether `GET …/body` has the original.
    pub has_stored_body: bool,
    /// The name of the uploaded file.
    #[schema(required, example = "bees.pdf")]
    pub file_name: Option<String>,
    pub cost: SourceCost,
    /// Whether it was retracted or is superseded; null otherwise.
    #[schema(required)]
    pub mark: Option<MarkView>,
    /// The most that processing the source may cost, in US dollars.
    #[schema(required)]
    pub max_cost_usd: Option<f64>,
    /// The job that processes the source, or did so last.
    pub job_id: Uuid,
    pub created_at: DateTime<Utc>,
    #[schema(required)]
    pub fetched_at: Option<DateTime<Utc>>,
    #[schema(required)]
    pub processed_at: Option<DateTime<Utc>>,
}

/// A source with what was read out of it.
#[derive(Serialize, ToSchema)]
#[schema(as = Source)]
pub struct SourceView {
    #[serde(flatten)]
    pub row: SourceRow,
    /// Null until it has been read; absent when `include` leaves it out. As everything below that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<String>,
             example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub parsed_text: Option<Option<String>>,
    /// Absent when `include` leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<String>,
             example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub parsed_markdown: Option<Option<String>>,
    /// Beginning and end of each sentence in Unicode code points of `parsed_text`. Absent when `include` leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, value_type = Vec<TextSpan>)]
    pub sentence_offsets: Option<Vec<(i32, i32)>>,
    /// For PDFs: for each sentence where it stands, five numbers for each place: the page from 1, then x0, y0, x1, y1 in PDF
    /// points (72 to the inch) from the lower left corner of the page as it is shown, turned and cropped. On a picture of the
    /// page, x is `x / width * image.width` and y, which pictures count from the top, `(1 - y / height) * image.height`, with
    /// `width` and `height` from `pages`. Absent when `include` leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Vec<Vec<f64>>>)]
    pub sentence_boxes: Option<Option<Box<RawValue>>>,
    /// What cut the sentences, by name and version.
    #[schema(required, example = "okt-sentences-1")]
    pub segmenter: Option<String>,
    /// SHA-256 of the parsed text.
    #[schema(required, example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: Option<String>,
    /// As many as `GET …/facts` lists: facts that say the same are one.
    #[schema(example = 24)]
    pub fact_count: i64,
    pub images: Vec<ImageView>,
    /// For PDFs: the size of each page. Empty for a source that was read before sizes were kept.
    pub pages: Vec<PageView>,
    /// Result of the extraction of facts; null until it has run.
    #[schema(required)]
    pub extraction: Option<ExtractionView>,
    /// The import that the source, or what it says, came with; null for one that was read here.
    #[schema(required)]
    pub origin: Option<OriginView>,
    /// The attempts to fetch the source, in order.
    pub fetch_attempts: Vec<AttemptView>,
}

/// Why a source failed.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceFailure)]
pub struct FailureView {
    /// `fetch`, `parse` or `decomposition`.
    #[schema(value_type = schema::SourceStage)]
    pub stage: String,
    /// Stable, for programs.
    #[schema(example = "not_found")]
    pub code: String,
    #[schema(example = "the server says that there is no such page")]
    pub message: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

/// The result of the extraction of facts from a source.
#[derive(Serialize, ToSchema)]
#[schema(as = Extraction)]
pub struct ExtractionView {
    /// The model that was asked. `builtin-extractive-1` is not a model: it takes sentences as they are, with whole
    /// names.
    #[schema(example = "builtin-extractive-1")]
    pub model: String,
    /// The `registry_hash` of the promptset that the model was given; null without a model.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub promptset_hash: String,
    pub chunks: u32,
    pub images: u32,
    /// Chunks and images without a usable answer.
    pub failed: u32,
    /// The first 20 failures.
    pub failures: Vec<ChunkFailureView>,
    /// What did not become a fact, counted by reason. Of what a model said: `no_sentence`, `not_in_text`,
    /// `number_not_in_text`, `too_long`, `not_atomic`, `empty`, `too_many`, `not_a_sentence`, and `truncated`: answers that were
    /// truncated, and of which the complete facts were taken. Of the sentences of the text, without a model: `not_a_sentence`,
    /// `run_together`, `question`, `quotation`, `reference`, `caption`, `boilerplate`, `instruction`, `first_or_second_person`,
    /// `connective`, `pronoun`, `unnamed_subject`, `relative_time`, `no_language_rules`.
    #[schema(example = json!({"pronoun": 3, "question": 1}))]
    pub dropped: BTreeMap<String, u32>,
    pub sentences: u32,
    pub cited_sentences: u32,
    /// The share of sentences that support some fact; `GET …/references?cited=false` lists the others.
    #[schema(example = 0.8)]
    pub coverage: f64,
    /// Why there are no facts although nothing failed; null where there are some.
    #[schema(required)]
    pub reason: Option<NoFactsView>,
    /// Result of the extraction of concepts from its facts; null until that has run.
    #[schema(required)]
    pub concepts: Option<ConceptExtractionView>,
    /// The package of a registry that the facts and concepts were imported from; null where they were extracted here. The text
    /// of such a source is its quoted sentences, one on each line.
    #[schema(required)]
    pub registry: Option<RegistryOriginView>,
}

/// The package of a registry that facts were imported from.
#[derive(Serialize, ToSchema)]
#[schema(as = PackageOrigin)]
pub struct RegistryOriginView {
    /// The id of the registry in the configuration.
    #[schema(example = "default")]
    pub registry: String,
    /// The id of the source in the registry.
    #[schema(example = "0197a3c0-0000-7000-8000-000000000001")]
    pub source_id: String,
    /// Who made the package, in the words of whoever pushed it.
    #[schema(required, example = "okt 0.1.0")]
    pub decomposed_by: Option<String>,
    #[schema(example = "2026-01-02T03:04:05Z")]
    pub decomposed_at: String,
    /// SHA-256 of the package as it was downloaded.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub package_sha256: String,
    /// The key that signed the package; null without a signature that was verified.
    #[schema(required, example = "okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub key_id: Option<String>,
    /// The key that gave it to the registry, as the registry says.
    #[schema(required, example = "okg_0a1b2c3d4e5f")]
    pub pushed_by: Option<String>,
}

impl From<RegistryOrigin> for RegistryOriginView {
    fn from(origin: RegistryOrigin) -> Self {
        Self {
            registry: origin.registry,
            source_id: origin.source_id,
            decomposed_by: origin.decomposed_by,
            decomposed_at: origin.decomposed_at,
            package_sha256: origin.package_sha256,
            key_id: origin.key_id,
            pushed_by: origin.pushed_by,
        }
    }
}

/// The result of the last extraction of concepts from the facts of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptExtraction)]
pub struct ConceptExtractionView {
    /// The model that was asked. `builtin-concepts-1` is not a model: it takes names, titles and noun phrases.
    #[schema(example = "builtin-concepts-1")]
    pub model: String,
    /// The `registry_hash` of the promptset that the model was given, or the hash of the built-in rules.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub promptset_hash: String,
    /// Facts of the source that were read, by this run or an earlier one. The others are duplicates, or failed.
    #[schema(example = 24)]
    pub facts: u32,
    /// Links from these facts to concepts.
    #[schema(example = 61)]
    pub links: u32,
    /// What a model named in this run and was not believed, counted by reason: `unknown_fact`, `no_fact`, `not_in_fact`, `alias`,
    /// `no_context`, `pronoun`, `date_or_number`, `generic`, `too_long`, `empty`, `too_many`, and `unmapped_context` where
    /// the repository skips contexts that it does not have.
    #[schema(example = json!({"not_in_fact": 2, "pronoun": 1}))]
    pub skipped: BTreeMap<String, u32>,
    /// Facts that were not read, because the model gave no usable answer. The next run reads them.
    pub failed: u32,
    /// Why: the first reason; null where nothing failed.
    #[schema(required)]
    pub failure: Option<NoFactsView>,
}

impl From<ConceptExtraction> for ConceptExtractionView {
    fn from(found: ConceptExtraction) -> Self {
        Self {
            model: found.model,
            promptset_hash: found.promptset_hash,
            facts: found.facts,
            links: found.links,
            skipped: found.skipped,
            failed: found.failed,
            failure: found.failure.map(Into::into),
        }
    }
}

/// Why a source gave no facts although nothing failed.
#[derive(Serialize, ToSchema)]
#[schema(as = NoFacts)]
pub struct NoFactsView {
    /// Stable, for programs. Without a model: `no_sentences`, `no_language_rules`, `no_statements` or `nothing_stands_alone`;
    /// with one: `no_sentences`, `nothing_found` or `nothing_grounded`; with either `list_of_references`; with neither
    /// `extraction_off`.
    #[schema(example = "no_language_rules")]
    pub code: String,
    /// The same in words.
    #[schema(example = "there are no rules for Georgian, so no sentence is known to stand alone")]
    pub message: String,
}

impl From<NoFacts> for NoFactsView {
    fn from(reason: NoFacts) -> Self {
        Self { code: reason.code, message: reason.message }
    }
}

/// A part of a source that gave nothing that could be used. A retry asks for it alone.
#[derive(Serialize, ToSchema)]
#[schema(as = ChunkFailure)]
pub struct ChunkFailureView {
    #[schema(required)]
    pub chunk_index: Option<u32>,
    #[schema(required)]
    pub image_id: Option<Uuid>,
    #[schema(required)]
    pub first_sentence: Option<u32>,
    #[schema(required)]
    pub last_sentence: Option<u32>,
    /// Stable, for programs: `misfit`, `too_coarse`, `truncated`, `filtered`, `refused`, `unanswered`, `image_missing`, or why the whole source
    /// was given up (`model_refused`, `max_cost_reached`).
    #[schema(example = "truncated")]
    pub code: String,
    #[schema(example = "the answer was cut off")]
    pub message: String,
}

/// What the source has cost so far.
#[derive(Serialize, ToSchema)]
pub struct SourceCost {
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: f64,
}

/// An image of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceImage)]
pub struct ImageView {
    pub id: Uuid,
    /// `inline`, or `page` for a page of a PDF as a picture.
    #[schema(value_type = schema::ImageKind)]
    pub kind: String,
    /// For PDFs, from 1.
    #[schema(required, example = 1)]
    pub page_number: Option<i32>,
    /// From 0, in the order of the document.
    #[schema(example = 0)]
    pub position: i32,
    /// The address of an image that the document only links to.
    #[schema(required)]
    pub url: Option<String>,
    /// In pixels.
    #[schema(required, example = 1_200)]
    pub width: Option<i32>,
    /// In pixels.
    #[schema(required, example = 1_697)]
    pub height: Option<i32>,
    #[schema(required)]
    pub alt_text: Option<String>,
    #[schema(required, example = "image/png")]
    pub content_type: Option<String>,
    /// Whether `GET …/images/{imageID}` has it.
    pub stored: bool,
}

/// A page of a PDF as it is shown: turned and cropped.
#[derive(Serialize, ToSchema)]
#[schema(as = SourcePage)]
pub struct PageView {
    /// From 1.
    pub number: u32,
    /// In PDF points, 72 to the inch.
    #[schema(example = 595.28)]
    pub width: f32,
    /// In PDF points.
    #[schema(example = 841.89)]
    pub height: f32,
    /// By how many degrees clockwise the file has it turned to be shown: 0, 90, 180 or 270. Sizes and places are those after
    /// turning.
    #[schema(example = 0)]
    pub rotation: u16,
    /// Whether its text was recognised in its picture, as that of a scanned page is. It may have mistakes that the document
    /// has not.
    pub ocr: bool,
    /// The picture of the page among `images`; absent when it was not drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<Uuid>,
}

/// One attempt to fetch a source.
#[derive(Serialize, ToSchema)]
#[schema(as = FetchAttempt)]
pub struct AttemptView {
    #[schema(example = "fetch")]
    pub provider: String,
    #[schema(example = "https://example.org/bees")]
    pub url: String,
    /// The HTTP status of the response; null if there was none.
    #[schema(required, example = 200)]
    pub status: Option<u16>,
    /// How long it took.
    #[schema(example = 310)]
    pub ms: u64,
    #[schema(example = "taken")]
    pub outcome: String,
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
            waiting_budget: source.waiting_budget,
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
            cost: SourceCost {
                tokens_in: source.cost.tokens_in,
                tokens_out: source.cost.tokens_out,
                usd: source.cost.usd.to_usd(),
            },
            mark: source.mark.map(MarkView::from),
            max_cost_usd: source.max_cost_usd.map(Money::to_usd),
            job_id: source.job.uuid(),
            created_at: source.created_at,
            fetched_at: source.fetched_at,
            processed_at: source.processed_at,
        }
    }
}

impl SourceView {
    /// With these parts of the text.
    pub fn new(seen: SeenSource, parts: TextParts) -> Result<Self, Error> {
        let SeenSource { mut source, text, images, origin } = seen;
        let attempts = std::mem::take(&mut source.fetch_attempts).into_iter().map(|attempt| AttemptView {
            provider: attempt.provider,
            url: attempt.url,
            status: attempt.status,
            ms: attempt.ms,
            outcome: attempt.outcome,
        });
        let (segmenter, sha256) =
            text.as_ref().map(|text| (text.segmenter.clone(), text.sha256.clone())).unzip();
        let text = text.unwrap_or_default();
        let sentences = text.sentences.unwrap_or_default();
        let offsets = || sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let boxes = text.boxes.map(RawValue::from_string).transpose().map_err(Error::internal)?;
        Ok(Self {
            fetch_attempts: attempts.collect(),
            extraction: source.extraction.take().map(ExtractionView::from),
            origin: origin.map(OriginView::from),
            fact_count: source.fact_count,
            row: source.into(),
            parsed_text: parts.text.then_some(text.text),
            parsed_markdown: parts.markdown.then_some(text.markdown),
            sentence_offsets: parts.sentences.then(offsets),
            sentence_boxes: parts.boxes.then_some(boxes),
            segmenter,
            sha256,
            pages: text.pages.into_iter().map(|page| PageView::new(page, &images)).collect(),
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
            reason: found.reason.map(Into::into),
            concepts: found.concepts.map(Into::into),
            registry: found.registry.map(Into::into),
        }
    }
}

impl PageView {
    pub fn new(page: SourcePage, images: &[SourceImage]) -> Self {
        let SourcePage { number, width, height, rotation, ocr } = page;
        let drawn = |image: &&SourceImage| {
            image.kind == ImageKind::Page.as_str()
                && image.page_number.is_some_and(|n| u32::try_from(n) == Ok(number))
        };
        let image_id = images.iter().find(drawn).map(|image| image.id.uuid());
        Self { number, width, height, rotation, ocr, image_id }
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
