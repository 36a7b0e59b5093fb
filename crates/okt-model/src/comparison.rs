//! Comparing facts: the vectors by which they are found, and the jobs that make one fact of those that say the same.

use serde::{Deserialize, Serialize};

use crate::job::Payload;
use crate::permission::words;
use crate::{Difference, FactId, SourceId, Subject};

words! {
    /// What has vectors.
    SpaceKind {
        Facts = "facts",
        Concepts = "concepts",
        Passages = "passages",
    }
}

words! {
    /// What the vectors of a model are good for.
    SpaceState {
        /// Not every fact has one yet.
        Filling = "filling",
        /// They are searched.
        Current = "current",
        /// Others are searched in their place.
        Retired = "retired",
    }
}

/// The vectors of one kind of thing by one model. Those of two models can't be compared, nor those with other words before each text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingSpace {
    pub no: i16,
    pub kind: SpaceKind,
    pub model: String,
    pub dimensions: u32,
    /// What stood before each text.
    pub passage_prefix: String,
    pub state: SpaceState,
}

/// A fact as it is turned into a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOfFact {
    pub id: FactId,
    pub no: i64,
    pub text: String,
}

/// A fact that sounds like another one and does not say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    pub fact: FactId,
    pub text: String,
    pub difference: Difference,
    pub cosine: f32,
    /// Whether it rests on retracted sources alone, where its reader asked.
    pub retracted: bool,
}

words! {
    /// What found that two facts say the same.
    MergedBy {
        /// Every difference between their words is permitted.
        Rule = "rule",
        /// Their vectors are near, and they have no named difference.
        Cosine = "cosine",
        /// Their vectors are near, they have no named difference, and a model said so twice.
        Judge = "judge",
    }
}

/// Gives facts their vectors: those of a source, or all that have none.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedFacts {
    pub source: Option<SourceId>,
}

impl Payload for EmbedFacts {
    const KIND: &'static str = "embed_facts";

    fn subject(&self) -> Option<Subject> {
        self.source.map(Into::into)
    }
}

/// Makes one fact of those that say the same: new ones of a source, or all new ones.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeduplicateFacts {
    pub source: Option<SourceId>,
}

impl Payload for DeduplicateFacts {
    const KIND: &'static str = "deduplicate_facts";

    fn subject(&self) -> Option<Subject> {
        self.source.map(Into::into)
    }
}

/// Sees that facts and vectors fit together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanupFacts {
    /// Something is known to be left over.
    pub soon: bool,
}

impl Payload for CleanupFacts {
    const KIND: &'static str = "cleanup_facts";
    const INTERNAL: bool = true;

    /// It looks at how things are then. One that comes soon is not kept waiting by one that comes later.
    fn unique_key(&self) -> Option<String> {
        Some(if self.soon { "soon" } else { "later" }.to_owned())
    }
}
