//! What is shared with a registry.

use serde::{Deserialize, Serialize};

use crate::{Payload, SourceId, Subject};

/// Gives the registry of the repository what was made of a source, or of all that it has not.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContributeSource {
    /// `None` for all of the repository, a job each.
    pub source: Option<SourceId>,
    /// Nobody asked: only where the repository contributes by itself.
    pub automatic: bool,
}

impl Payload for ContributeSource {
    const KIND: &'static str = "contribute_source";

    fn subject(&self) -> Option<Subject> {
        self.source.map(Into::into)
    }

    fn unique_key(&self) -> Option<String> {
        Some(self.source.map(|source| source.to_string()).unwrap_or_default())
    }
}

/// Takes what the registry of the repository has for its sources that could not be had.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullAllFromRegistry {
    /// Only counts what would be taken.
    pub dry_run: bool,
}

impl Payload for PullAllFromRegistry {
    const KIND: &'static str = "pull_all_from_registry";
}
