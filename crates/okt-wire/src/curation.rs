//! Curation: what people decide about concepts and facts.

use chrono::{DateTime, Utc};
use okt_app::Curated;
use okt_model::{Concept, ConceptId, CuratedConcept, CurationId, CurationStep, FactId, JobId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::schema;

/// A step of curation that was taken, and the concept as it is now.
#[derive(Serialize, ToSchema)]
#[schema(as = Curated)]
pub struct CuratedView {
    /// The step, by which it can be undone; null if nothing had to be changed.
    #[schema(required, example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub curation_id: Option<Uuid>,
    pub concept: CurrentConceptView,
}

/// A concept as it is now.
#[derive(Serialize, ToSchema)]
#[schema(as = CurrentConcept)]
pub struct CurrentConceptView {
    pub id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    /// The label of its context.
    #[schema(example = "Species")]
    pub context: String,
    /// How many facts mention it, as last counted; counted anew in the background after a change.
    #[schema(example = 12)]
    pub fact_count: i64,
}

/// A step of curation.
#[derive(Serialize, ToSchema)]
#[schema(as = CurationStep)]
pub struct CurationView {
    pub id: Uuid,
    /// `merge`, `split`, `rename`, `move`, `add_alias`, `remove_alias`, `reject_link`, `reject_fact`,
    /// `restore_fact` or `mark_contradiction`.
    #[schema(value_type = schema::CurationAction)]
    pub action: &'static str,
    /// The concept before the step, as it was called then; null for a step about a fact alone.
    #[schema(required)]
    pub concept: Option<FormerConceptView>,
    /// What the concept was merged into, what was split off, or the concept itself with its new name and context; else null.
    #[schema(required)]
    pub other: Option<FormerConceptView>,
    /// The alias that was added or removed; else null.
    #[schema(required, example = "Apis mellifera")]
    pub alias: Option<String>,
    /// The facts that were split off, parted from the concept, rejected or restored, or that may contradict each other.
    pub fact_ids: Vec<Uuid>,
    /// What was said of two facts: `open`, `real`, `scope_differs` or `not_a_contradiction`; else null.
    #[schema(required, example = "real")]
    pub contradiction: Option<String>,
    #[schema(required, example = "Another species")]
    pub reason: Option<String>,
    /// The user who took the step; null for a job.
    #[schema(required)]
    pub user_id: Option<Uuid>,
    /// The job that took the step; null for a person.
    #[schema(required)]
    pub job_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// When the step was undone; null while it is in force.
    #[schema(required)]
    pub undone_at: Option<DateTime<Utc>>,
    /// The user who undid it.
    #[schema(required)]
    pub undone_by: Option<Uuid>,
    #[serde(skip)]
    pub place: i64,
}

/// A concept as it was called at the time of a step.
#[derive(Serialize, ToSchema)]
#[schema(as = FormerConcept)]
pub struct FormerConceptView {
    pub id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    #[schema(example = "Species")]
    pub context: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CurationQuery {
    /// Only steps that concern this concept, or one that was merged into it.
    pub concept_id: Option<Uuid>,
}

/// Why a step is taken.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReasonQuery {
    /// Why, at most 1,000 characters.
    #[param(max_length = 1000, example = "The fact is about bumblebees")]
    pub reason: Option<String>,
}

/// What a concept is merged into.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConceptMerge {
    /// The id of the concept that remains.
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub into: Uuid,
    #[schema(max_length = 1000, example = "Two names of one species")]
    pub reason: Option<String>,
}

/// What is split off from a concept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConceptSplit {
    /// The facts of the concept that the new one gets.
    #[schema(min_items = 1, max_items = 1000)]
    pub fact_ids: Vec<Uuid>,
    /// The name of the new concept.
    #[schema(min_length = 1, max_length = 500, example = "Bumblebee")]
    pub name: String,
    /// The label of its context.
    #[schema(example = "Species")]
    pub context: String,
    #[schema(max_length = 1000, example = "Another genus")]
    pub reason: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConceptUpdate {
    #[schema(min_length = 1, max_length = 500, example = "Western honey bee")]
    pub canonical_name: Option<String>,
    /// The label of the context to move it to.
    #[schema(example = "Species")]
    pub context: Option<String>,
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Another name of a concept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AliasChange {
    #[schema(min_length = 1, max_length = 500, example = "Apis mellifera")]
    pub alias: String,
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl From<Curated> for CuratedView {
    fn from(curated: Curated) -> Self {
        Self { curation_id: curated.step.map(CurationId::uuid), concept: curated.concept.into() }
    }
}

impl From<Concept> for CurrentConceptView {
    fn from(concept: Concept) -> Self {
        Self {
            id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            fact_count: concept.fact_count,
        }
    }
}

impl From<CurationStep> for CurationView {
    fn from(step: CurationStep) -> Self {
        Self {
            id: step.id.uuid(),
            action: step.action.as_str(),
            concept: step.details.concept.map(FormerConceptView::from),
            other: step.details.other.map(FormerConceptView::from),
            alias: step.details.alias,
            fact_ids: step.details.facts.into_iter().map(FactId::uuid).collect(),
            contradiction: step.details.contradiction,
            reason: step.reason,
            user_id: step.person.map(UserId::uuid),
            job_id: step.job.map(JobId::uuid),
            created_at: step.created_at,
            undone_at: step.undone_at,
            undone_by: step.undone_by.map(UserId::uuid),
            place: step.no,
        }
    }
}

impl From<CuratedConcept> for FormerConceptView {
    fn from(concept: CuratedConcept) -> Self {
        Self {
            id: ConceptId::uuid(concept.id),
            canonical_name: concept.canonical_name,
            context: concept.context,
        }
    }
}
