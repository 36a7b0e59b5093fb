//! Types of repository to choose from.

use serde::Serialize;
use utoipa::ToSchema;

use crate::vocabulary::schema;

/// A type of repository that can be chosen at creation.
#[derive(Serialize, ToSchema)]
#[schema(as = Preset)]
pub struct PresetView {
    #[schema(example = "general")]
    pub id: String,
    #[schema(example = "General")]
    pub label: String,
    #[schema(example = "For any subject")]
    pub description: String,
    pub providers: PresetProviders,
    pub contexts: ContextsView,
    pub custom_contexts: Vec<CustomContext>,
    /// Taken when a repository is created without naming one.
    pub default: bool,
}

/// Which providers such a repository starts with.
#[derive(Serialize, ToSchema)]
pub struct PresetProviders {
    #[schema(value_type = Vec<schema::SearchProvider>)]
    pub search: Vec<&'static str>,
    #[schema(value_type = Vec<schema::Provider>, example = json!(["fetch", "open_access"]))]
    pub resolution: Vec<&'static str>,
}

/// The built-in contexts that such a repository allows: the word "all", or a list of labels.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PresetContexts)]
pub enum ContextsView {
    #[schema(example = "all")]
    All(&'static str),
    Labels(Vec<String>),
}

/// A context that such a repository begins with.
#[derive(Serialize, ToSchema)]
pub struct CustomContext {
    #[schema(example = "Product")]
    pub label: String,
    #[schema(example = "What the company makes")]
    pub description: String,
}
