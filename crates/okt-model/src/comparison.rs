//! Comparing facts: the vectors by which they are found, and the jobs that make one fact of those that say the same.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::job::Payload;
use crate::permission::words;
use crate::{Difference, Fact, FactId, SourceId, Subject, UserId};

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
    /// What people say of the two.
    pub state: ContradictionState,
    /// Whether it rests on retracted sources alone, where its reader asked.
    pub retracted: bool,
}

words! {
    /// What people say of two facts that may contradict each other.
    ContradictionState {
        /// Nothing yet.
        Open = "open",
        /// They do.
        Real = "real",
        /// Both are true: of another time, place, group or method.
        ScopeDiffers = "scope_differs",
        NotAContradiction = "not_a_contradiction",
    }
}

words! {
    /// How it was found that two facts may contradict each other.
    ContradictionFoundBy {
        /// They were to be merged, and their words forbade it.
        RefusedMerge = "refused_merge",
        /// They share a concept, and a judge says that one contradicts the other.
        Posture = "posture",
    }
}

/// Two facts that may contradict each other, by their numbers, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundContradiction {
    /// The canonical facts, the smaller number first.
    pub facts: (i64, i64),
    pub difference: Difference,
    pub cosine: f32,
    pub found_by: ContradictionFoundBy,
    pub found_at: DateTime<Utc>,
    /// Who says that they contradict each other, and how sure, from 0 to 1.
    pub judged: Option<(String, f32)>,
    /// Missing while it is open.
    pub mark: Option<ContradictionMark>,
    /// Where it stands in its list.
    pub place: (i64, i64),
}

/// What a person said of two facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContradictionMark {
    pub state: ContradictionState,
    pub note: Option<String>,
    /// Missing where it came with a bundle.
    pub person: Option<UserId>,
    pub decided_at: DateTime<Utc>,
}

/// One of two facts that may contradict each other.
#[derive(Clone, Debug)]
pub struct ContradictionSide {
    pub fact: Fact,
    /// How many sources make it, and when the first and the last of them were published, as far as they say.
    pub sources: i64,
    pub published: (Option<NaiveDate>, Option<NaiveDate>),
    /// Some of these sources, the first ones.
    pub shown: Vec<SideSource>,
}

/// A source of one of two facts that may contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideSource {
    pub id: SourceId,
    pub title: Option<String>,
    pub published_at: Option<NaiveDate>,
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

/// Compares facts with those near them that share a concept, and has those found that contradict each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckContradictions {}

impl Payload for CheckContradictions {
    const KIND: &'static str = "check_contradictions";
    const INTERNAL: bool = true;

    /// It looks at whatever has changed by then.
    fn unique_key(&self) -> Option<String> {
        Some(String::new())
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
