//! Marks of sources: what was retracted, and what another source supersedes.

use chrono::{DateTime, Utc};

use crate::permission::words;
use crate::{SourceId, UserId};

words! {
    /// What became of a source after it was published.
    MarkKind {
        Retracted = "retracted",
        Superseded = "superseded",
    }
}

words! {
    /// Who says so. What a person says stays, whatever the others say later.
    MarkOrigin {
        Person = "person",
        Provider = "provider",
        List = "list",
    }
}

/// The mark of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMark {
    pub kind: MarkKind,
    /// The source that supersedes it, while that is there.
    pub by: Option<SourceId>,
    pub reason: Option<String>,
    pub origin: MarkOrigin,
    /// The person who set it, or who sent the list.
    pub person: Option<UserId>,
    pub marked_at: DateTime<Utc>,
}

/// How many of the sources of a fact are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkedSources {
    /// All of them.
    pub sources: i64,
    pub retracted: i64,
    pub superseded: i64,
}

impl MarkedSources {
    /// Whether every source was retracted.
    pub const fn is_retracted(self) -> bool {
        self.retracted > 0 && self.retracted == self.sources
    }

    /// Whether every source is superseded.
    pub const fn is_superseded(self) -> bool {
        self.superseded > 0 && self.superseded == self.sources
    }
}
