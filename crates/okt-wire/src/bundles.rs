//! Graph Bundles: what is asked for, and what was uploaded.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What a bundle is to be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphExportBody {
    /// What the bundle is called; by default as the repository.
    #[schema(example = "Bees of Europe")]
    pub name: Option<String>,
    pub description: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The registry to send it to; for the destination `registry`.
    pub registry_id: Option<String>,
    /// Whether it has the originals of sources, such as PDFs.
    #[serde(default)]
    #[schema(default = false)]
    pub include_bodies: bool,
    /// Whether it has the images of sources.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub include_images: bool,
    /// `file`: it can be downloaded for two days. `registry`: it is sent there.
    #[serde(default)]
    pub destination: GraphDestination,
}

/// Where a bundle goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphDestination {
    #[default]
    Registry,
    File,
}

/// Which bundle is to be taken in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphImportBody {
    /// A bundle that was uploaded to this repository.
    pub upload_id: Option<Uuid>,
    /// A bundle of a registry.
    pub registry_graph_id: Option<String>,
    /// The registry that has it.
    pub registry_id: Option<String>,
    /// Whether the job only tells what would be added.
    #[serde(default)]
    #[schema(default = false)]
    pub dry_run: bool,
}

/// A bundle that was uploaded.
#[derive(Serialize, ToSchema)]
pub struct GraphUploaded {
    pub upload_id: Uuid,
    pub bytes: u64,
    /// Of the file, not of the graph.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub sha256: String,
}

const fn yes() -> bool {
    true
}
