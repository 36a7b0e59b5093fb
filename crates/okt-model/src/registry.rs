//! What is shared with a registry.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{ContentHash, Payload, SourceId, Subject};

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

    /// What somebody asks for is not the same as what a repository may do by itself, which may be nothing.
    fn unique_key(&self) -> Option<String> {
        let source = self.source.map(|source| source.to_string()).unwrap_or_default();
        Some(if self.automatic { format!("{source} automatic") } else { source })
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

words! {
    /// Whose packages and bundles a repository takes from a registry.
    #[derive(Default)]
    Trust {
        /// Signed or not.
        #[default]
        Anyone = "anyone",
        /// With a valid signature, whoever made it.
        Signed = "signed",
        /// Signed by one of the repository's trusted keys.
        Listed = "listed",
    }
}

words! {
    /// In what form something came from elsewhere.
    ImportKind {
        Package = "package",
        Bundle = "bundle",
    }
}

/// Where something came from that was not made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOrigin {
    pub kind: ImportKind,
    /// As the configuration calls it; `None` for a bundle that somebody uploaded.
    pub registry: Option<String>,
    /// Who signed it.
    pub key_id: Option<String>,
    /// Who gave it to the registry, as the registry says.
    pub pushed_by: Option<String>,
    /// Of a package as it was sent, or of a graph.
    pub sha256: ContentHash,
    pub imported_at: DateTime<Utc>,
    /// Since when the registry does not hand it out any more, and why.
    pub withdrawn: Option<(DateTime<Utc>, String)>,
}

/// What was, or would be, removed of what came from a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    pub imports: i64,
    /// Sources that a bundle brought, which go.
    pub sources: i64,
    /// Sources that were here and got what they say from a package: they stay, and can be retried.
    pub emptied: i64,
    /// Statements of sources.
    pub facts: i64,
    pub concepts: i64,
    pub summaries: i64,
    pub definitions: i64,
    pub reports: i64,
    pub investigations: i64,
}

impl std::ops::AddAssign for Revoked {
    fn add_assign(&mut self, other: Self) {
        self.imports += other.imports;
        self.sources += other.sources;
        self.emptied += other.emptied;
        self.facts += other.facts;
        self.concepts += other.concepts;
        self.summaries += other.summaries;
        self.definitions += other.definitions;
        self.reports += other.reports;
        self.investigations += other.investigations;
    }
}
