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
}

impl Payload for ExportGraph {
    const KIND: &'static str = "export_graph";
}

/// Takes a bundle in that somebody has uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportGraph {
    pub upload: Uuid,
    /// Only tells what would become of it.
    pub dry_run: bool,
}

impl Payload for ImportGraph {
    const KIND: &'static str = "import_graph";
}
