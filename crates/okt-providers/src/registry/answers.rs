//! What registries are asked for, and what they say.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

/// A source by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What a registry knows of a source beside its decompositions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrySource {
    #[serde(default, alias = "id", skip_serializing)]
    pub source_id: String,
    #[serde(flatten)]
    pub names: Names,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// A date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
}

/// A decomposition that can be pulled.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Decomposition {
    pub model_id: String,
    /// Which one of those of the model.
    #[serde(default)]
    pub version: Option<i32>,
    #[serde(default)]
    pub fact_count: Option<u64>,
    #[serde(default)]
    pub promptset_hash: Option<String>,
    #[serde(default)]
    pub embedding_model: Option<String>,
    #[serde(default)]
    pub decomposed_at: Option<String>,
    /// The key that pushed it.
    #[serde(default)]
    pub pushed_by: Option<String>,
    /// Whether it comes with a signature.
    #[serde(default)]
    pub signed: bool,
    /// Whose, as the registry says.
    #[serde(default)]
    pub key_id: Option<String>,
}

/// What a search found.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Found {
    #[serde(default)]
    pub found: bool,
    #[serde(default)]
    pub source: Option<RegistrySource>,
    #[serde(default)]
    pub decompositions: Vec<Decomposition>,
}

/// A package as it arrived.
#[derive(Debug)]
pub struct Pulled {
    /// To be held for as long as anything of it is in memory.
    pub room: OwnedSemaphorePermit,
    pub body: Vec<u8>,
    pub sha256: [u8; 32],
    /// The key that signed it, verified.
    pub key_id: Option<String>,
    /// Who pushed it, as the registry says.
    pub pushed_by: Option<String>,
}

/// What is not handed out any more: a page of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Withdrawals {
    pub data: Vec<WithdrawnItem>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct WithdrawnItem {
    /// Of a package.
    #[serde(default)]
    pub source_id: Option<String>,
    #[serde(default)]
    pub model_id: Option<String>,
    /// Of a bundle.
    #[serde(default)]
    pub graph_id: Option<String>,
    /// Of a package as it was pushed, or of a graph.
    pub sha256: String,
    pub withdrawn_at: DateTime<Utc>,
    #[serde(default)]
    pub reason: String,
}

/// What came of a push.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pushed {
    #[serde(default)]
    pub source_id: String,
    #[serde(default)]
    pub facts_new: u64,
    #[serde(default)]
    pub facts_linked: u64,
}
