//! What jobs, model calls and answers are about.

use uuid::Uuid;

use crate::SourceId;
use crate::permission::words;

words! {
    /// The kinds of things that work is done for.
    SubjectKind {
        Source = "source",
        Concept = "concept",
        Investigation = "investigation",
        Report = "report",
        Question = "question",
        /// The repository as a whole, by its id.
        Repository = "repository",
    }
}

/// What a job, a model call or an answer is about: it is found by it, its cost is counted by it, and it goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    pub kind: SubjectKind,
    pub id: Uuid,
}

impl Subject {
    pub const fn new(kind: SubjectKind, id: Uuid) -> Self {
        Self { kind, id }
    }

    /// The id, if it is of this kind.
    pub fn id_of(self, kind: SubjectKind) -> Option<Uuid> {
        (self.kind == kind).then_some(self.id)
    }

    /// From a row. `None` without an id, whatever kind the row names, and for a kind of a later release: a relay that does
    /// not know it must carry the job all the same.
    pub fn from_columns(kind: Option<&str>, id: Option<Uuid>) -> Option<Self> {
        Some(Self::new(kind?.parse().ok()?, id?))
    }
}

impl From<SourceId> for Subject {
    fn from(source: SourceId) -> Self {
        Self::new(SubjectKind::Source, source.uuid())
    }
}
