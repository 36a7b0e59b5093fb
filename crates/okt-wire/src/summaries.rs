//! What is known of concepts, in words.

use chrono::{DateTime, Utc};
use okt_app::{Changed, DefinitionDiff, SeenDefinition, SeenSlice, SynthesisEstimate, SynthesisVersion};
use okt_model::{Error, FactId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{EstimateBasis, SentenceChange, schema};

/// A text about some facts of a concept.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptSummarySlice)]
pub struct SliceView {
    /// Null for an extractive text that is not stored.
    #[schema(required)]
    pub id: Option<Uuid>,
    /// From 1.
    #[schema(example = 1)]
    pub slice_number: i32,
    /// Whether it takes in new facts. A full slice is closed.
    pub is_open: bool,
    /// Markdown. Each sentence cites the facts that it rests on: `[text](<fact:ID>)`.
    #[schema(example = "[Honey bees live in colonies.](<fact:019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37>)")]
    pub content: String,
    /// `model`, or `extractive`: made of the facts that say most while it is read, and stored nowhere.
    #[schema(value_type = schema::TextMethod)]
    pub method: &'static str,
    /// The facts that it covers.
    pub fact_ids: Vec<Uuid>,
    /// The facts that the text cites and all of whose sources were retracted. A sentence that cites no others rests on nothing
    /// else.
    pub retracted_facts: Vec<Uuid>,
    /// False while the text is about other facts than these: some came or went, and it is about to be written again. Sentences
    /// about facts that went are left out.
    pub is_current: bool,
    /// Sentences that the model wrote without a fact to stand on. They are not in the text.
    pub dropped_sentences: i32,
    #[schema(required, example = "small-chat")]
    pub model: Option<String>,
    /// The `hash` of the promptset that the model was given.
    #[schema(required)]
    pub promptset_hash: Option<String>,
    #[schema(required)]
    pub written_at: Option<DateTime<Utc>>,
    /// Why the text was not written, if that was given up; null otherwise.
    #[schema(required)]
    pub failure: Option<String>,
    #[serde(skip)]
    pub place: i32,
}

/// What a name means, over all its contexts.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptDefinition)]
pub struct DefinitionView {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub concept_id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    /// Markdown. Each sentence cites the facts that it rests on: `[text](<fact:ID>)`. Images are cited as
    /// `![description](<image:ID>)`.
    #[schema(example = "[Honey bees live in colonies.](<fact:019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37>)")]
    pub content: String,
    /// `model`, or `extractive`: made of the facts that say most while it is read, and stored nowhere.
    #[schema(value_type = schema::TextMethod)]
    pub method: &'static str,
    /// Null for an extractive text.
    #[schema(required)]
    pub synthesis: Option<SynthesisView>,
    /// The facts that the text cites.
    pub facts: Vec<CitedFact>,
    /// Those of them all of whose sources were retracted. A sentence that cites no others rests on nothing else.
    pub retracted_facts: Vec<Uuid>,
    /// The versions that are kept, the latest first.
    pub versions: Vec<VersionView>,
    /// With `diff`: what changed from that version on; null otherwise.
    #[schema(required)]
    pub diff: Option<DiffView>,
}

/// A version of a definition, as a model wrote it.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptSynthesis)]
pub struct SynthesisView {
    #[schema(example = 3)]
    pub version: i32,
    #[schema(example = "small-chat")]
    pub model: String,
    /// The `hash` of the promptset that the model was given.
    #[schema(example = "1fefb0a2657f71aec562cc0b5afcf8faf582f3b7858c5ff11a948a60434b82e1")]
    pub promptset_hash: String,
    pub created_at: DateTime<Utc>,
    /// Whether it is the latest version, and nothing that it covers has changed since.
    pub is_current: bool,
    /// Sentences that the model wrote without a fact to stand on. They are not in the text.
    pub dropped_sentences: i32,
    /// The concepts whose slices it covers: those of its name.
    pub concept_ids: Vec<Uuid>,
    pub summary_ids: Vec<Uuid>,
    pub images: Vec<ImageOfDefinition>,
}

/// An image that a definition shows.
#[derive(Serialize, ToSchema)]
#[schema(as = DefinitionImage)]
pub struct ImageOfDefinition {
    pub image_id: Uuid,
    /// `GET /sources/{source_id}/images/{image_id}` has it.
    pub source_id: Uuid,
}

/// A fact that a text cites.
#[derive(Serialize, ToSchema)]
pub struct CitedFact {
    pub fact_id: Uuid,
    /// What it says; null for a fact that was deleted or rejected.
    #[schema(required, example = "Honey bees live in colonies.")]
    pub text: Option<String>,
}

/// A version of a definition.
#[derive(Serialize, ToSchema)]
#[schema(as = DefinitionVersion)]
pub struct VersionView {
    #[schema(example = 3)]
    pub version: i32,
    #[schema(example = "small-chat")]
    pub model: String,
    pub created_at: DateTime<Utc>,
}

/// What changed from one version of a definition to another.
#[derive(Serialize, ToSchema)]
#[schema(as = DefinitionDiff)]
pub struct DiffView {
    #[schema(example = 2)]
    pub from: i32,
    #[schema(example = 3)]
    pub to: i32,
    /// Facts that only the later version cites.
    pub facts_added: Vec<CitedFact>,
    /// Facts that only the earlier version cites.
    pub facts_removed: Vec<CitedFact>,
    /// The sentences of both, in order.
    pub sentences: Vec<DiffSentence>,
}

/// A sentence of one of two versions, or of both.
#[derive(Serialize, ToSchema)]
pub struct DiffSentence {
    /// `same`, `added` or `removed`.
    #[schema(value_type = schema::SentenceChange)]
    pub change: &'static str,
    #[schema(example = "Honey bees live in colonies.")]
    pub text: String,
}

/// What it would cost to write a definition anew: nothing, if all that would be asked was answered before. Nothing is asked or
/// spent.
#[derive(Serialize, ToSchema)]
#[schema(as = SynthesisEstimate)]
pub struct SynthesisEstimateView {
    #[schema(example = true)]
    pub dry_run: bool,
    /// The model that would be asked.
    #[schema(example = "small-chat")]
    pub model: String,
    /// `history`: what the repository has seen of the model lately. `rule_of_thumb`: how much models read and write by and
    /// large.
    #[schema(value_type = schema::EstimateBasis)]
    pub basis: &'static str,
    pub calls: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: f64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DefinitionQuery {
    /// A version that is kept, instead of the latest one.
    #[param(minimum = 1)]
    pub version: Option<i32>,
    /// Compare with this version.
    #[param(minimum = 1)]
    pub diff: Option<i32>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ResynthesisQuery {
    /// `true` for an estimate of the cost instead.
    #[param(default = false)]
    pub dry_run: Option<bool>,
}

impl DefinitionQuery {
    pub fn checked(&self) -> Result<(), Error> {
        for (field, version) in [("version", self.version), ("diff", self.diff)] {
            if version.is_some_and(|version| version < 1) {
                return Err(Error::invalid(field, "must be a version, from 1"));
            }
        }
        Ok(())
    }
}

impl From<SynthesisVersion> for VersionView {
    fn from(version: SynthesisVersion) -> Self {
        Self { version: version.version, model: version.model, created_at: version.created_at }
    }
}

impl From<SeenSlice> for SliceView {
    fn from(seen: SeenSlice) -> Self {
        Self {
            id: seen.id.map(okt_model::SummaryId::uuid),
            slice_number: seen.number,
            is_open: seen.is_open,
            content: seen.content,
            method: seen.method.as_str(),
            fact_ids: seen.facts.into_iter().map(FactId::uuid).collect(),
            retracted_facts: seen.retracted.into_iter().map(FactId::uuid).collect(),
            is_current: seen.is_current,
            dropped_sentences: seen.dropped,
            model: seen.model,
            promptset_hash: seen.promptset_hash.map(|hash| hash.to_string()),
            written_at: seen.written_at,
            failure: seen.failure,
            place: seen.number,
        }
    }
}

impl From<SeenDefinition> for DefinitionView {
    fn from(seen: SeenDefinition) -> Self {
        let synthesis = seen.written.map(|written| SynthesisView {
            version: written.version,
            model: written.model,
            promptset_hash: written.promptset_hash.to_string(),
            created_at: written.created_at,
            is_current: written.is_current,
            dropped_sentences: written.dropped,
            concept_ids: written.concepts.into_iter().map(okt_model::ConceptId::uuid).collect(),
            summary_ids: written.summaries.into_iter().map(okt_model::SummaryId::uuid).collect(),
            images: written
                .images
                .into_iter()
                .map(|(source, image)| ImageOfDefinition { image_id: image.uuid(), source_id: source.uuid() })
                .collect(),
        });
        Self {
            concept_id: seen.concept.id.uuid(),
            canonical_name: seen.concept.canonical_name,
            content: seen.content,
            method: seen.method.as_str(),
            synthesis,
            facts: seen.facts.into_iter().map(|(fact, text)| cited((fact, Some(text)))).collect(),
            retracted_facts: seen.retracted.into_iter().map(FactId::uuid).collect(),
            versions: seen.versions.into_iter().map(Into::into).collect(),
            diff: seen.diff.map(Into::into),
        }
    }
}

impl From<DefinitionDiff> for DiffView {
    fn from(diff: DefinitionDiff) -> Self {
        let sentences = diff.sentences.into_iter().map(|(change, text)| DiffSentence {
            change: match change {
                Changed::Same => SentenceChange::Same,
                Changed::Added => SentenceChange::Added,
                Changed::Removed => SentenceChange::Removed,
            }
            .as_str(),
            text,
        });
        Self {
            from: diff.from,
            to: diff.to,
            facts_added: diff.came.into_iter().map(cited).collect(),
            facts_removed: diff.went.into_iter().map(cited).collect(),
            sentences: sentences.collect(),
        }
    }
}

impl From<SynthesisEstimate> for SynthesisEstimateView {
    fn from(estimate: SynthesisEstimate) -> Self {
        let basis = if estimate.from_history { EstimateBasis::History } else { EstimateBasis::RuleOfThumb };
        Self {
            dry_run: true,
            model: estimate.model,
            basis: basis.as_str(),
            calls: estimate.calls,
            tokens_in: estimate.tokens_in,
            tokens_out: estimate.tokens_out,
            usd: estimate.usd.to_usd(),
        }
    }
}

fn cited((fact, text): (FactId, Option<String>)) -> CitedFact {
    CitedFact { fact_id: fact.uuid(), text }
}
