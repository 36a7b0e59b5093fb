//! Graph Bundles: what is asked for.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Payload;

/// Writes the repository into a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportGraph {
    /// What the bundle says of itself.
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub include_bodies: bool,
    pub include_images: bool,
    /// The registry that it is given to, as the configuration calls it.
    #[serde(default)]
    pub registry: Option<String>,
}

impl Payload for ExportGraph {
    const KIND: &'static str = "export_graph";
}

/// Takes a bundle in: one that somebody has uploaded, or one of a registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportGraph {
    #[serde(default)]
    pub upload: Option<Uuid>,
    #[serde(default)]
    pub registry: Option<RegistryGraph>,
    /// Only tells what would become of it.
    pub dry_run: bool,
}

/// A bundle of a registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegistryGraph {
    /// As the configuration calls the registry.
    pub registry: String,
    /// What the registry calls the bundle.
    pub graph: String,
}

impl Payload for ImportGraph {
    const KIND: &'static str = "import_graph";
}
