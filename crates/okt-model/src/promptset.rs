//! Instructions for models, as they are kept.

use chrono::{DateTime, Utc};

use crate::ContentHash;

/// Instructions for models that somebody wrote.
#[derive(Clone, Debug)]
pub struct StoredPromptset {
    pub hash: ContentHash,
    pub registry_hash: ContentHash,
    pub name: String,
    /// JSON: a text for each phase.
    pub phases: String,
    pub created_at: DateTime<Utc>,
}
