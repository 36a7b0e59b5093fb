//! Contexts: what the concepts of a repository are filed under.

use okt_model::Context;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A category of concepts.
#[derive(Serialize, ToSchema)]
#[schema(as = Context)]
pub struct ContextView {
    #[schema(example = "Disease")]
    pub label: String,
    /// What belongs to the context, as instructions for the model.
    #[schema(example = "An illness of people, animals or plants")]
    pub description: String,
    /// Whether the repository defined the context.
    pub custom: bool,
    /// The class of the built-in ontology.
    #[schema(required, example = "dbo:Disease")]
    pub ontology_class: Option<String>,
    /// How many concepts the context has.
    #[schema(example = 12)]
    pub concept_count: i64,
    /// The context that this one is being merged into.
    #[schema(required)]
    pub merging_into: Option<String>,
}

/// A context to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewContext {
    #[schema(example = "Beekeeping", min_length = 1, max_length = 100)]
    pub label: String,
    /// What belongs to the context, as instructions for the model.
    #[schema(example = "Keeping bees, and what is used for it")]
    pub description: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextUpdate {
    #[schema(min_length = 1, max_length = 100)]
    pub label: Option<String>,
    /// What belongs to the context, as instructions for the model.
    #[schema(example = "Keeping bees, and what is used for it")]
    pub description: Option<String>,
}

/// Where the concepts of a context go.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextMigration {
    /// The label of the context to merge into.
    #[schema(example = "Activity")]
    pub target: String,
}

/// A job that was asked for.
#[derive(Serialize, ToSchema)]
pub struct Enqueued {
    pub job_id: Uuid,
}

impl From<Context> for ContextView {
    fn from(context: Context) -> Self {
        Self {
            label: context.label,
            description: context.description,
            custom: context.ontology_class.is_none(),
            ontology_class: context.ontology_class,
            concept_count: context.concept_count,
            merging_into: context.merging_into,
        }
    }
}
