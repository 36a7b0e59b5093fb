//! Facts: what sources say, in statements that stand on their own.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{
    ConceptExtraction, ConceptId, ContentHash, FactId, ImageId, MarkedSources, SourceId, SourceMark,
};

/// Stands where the name of a model would, where sentences are taken as facts and no model is asked. Another name when its
/// rules change.
pub const EXTRACTIVE_MODEL: &str = "builtin-extractive-1";

/// The model that turns texts into vectors in our own process. Another name when its weights change: vectors bear the name
/// of their model, and only those of one model can be compared.
pub const EMBEDDING_MODEL: &str = "builtin-minilm-1";
/// Numbers in a vector of [`EMBEDDING_MODEL`].
pub const EMBEDDING_DIMENSIONS: u32 = 384;

words! {
    /// What became of a fact.
    FactStatus {
        /// Not yet compared with the others.
        New = "new",
        Stable = "stable",
        /// Another one says the same.
        Duplicate = "duplicate",
        /// Somebody who looked at it does not want it.
        Rejected = "rejected",
    }
}

words! {
    /// What a fact rests on.
    FactKind {
        Text = "text",
        Image = "image",
    }
}

words! {
    /// Why two facts that sound alike are not one.
    Difference {
        /// One says that it is so, the other that it is not.
        Negation = "negation",
        Number = "number",
        /// The same number of something else.
        Unit = "unit",
        Date = "date",
        /// Up and down, before and after, for and against.
        Direction = "direction",
        /// Who did it, and to whom; which of two goes with which.
        Roles = "roles",
        /// Of somebody or something else.
        Name = "name",
        /// All, some, most, few, only.
        Quantifier = "quantifier",
        /// One says that it is so, the other that it may be so; one that it must, the other that it should.
        Certainty = "certainty",
        /// One word stands for another, and it is not known to mean the same; or both are too long to be compared.
        Wording = "wording",
        /// A person undid their merge.
        Judged = "judged",
    }
}

/// A fact that a source makes, and where.
#[derive(Clone, Debug)]
pub struct NewFact {
    pub text: String,
    pub hash: ContentHash,
    pub kind: FactKind,
    /// Who put it into words.
    pub model: String,
    /// The part of the source that was looked at.
    pub chunk: Option<i32>,
    /// By their place in the text.
    pub sentences: Vec<i32>,
    pub image: Option<ImageId>,
}

/// A fact.
#[derive(Clone, Debug)]
pub struct Fact {
    pub id: FactId,
    pub no: i64,
    pub text: String,
    pub hash: ContentHash,
    pub kind: FactKind,
    pub status: FactStatus,
    /// Who put it into words.
    pub model: String,
    pub promptset_hash: Option<ContentHash>,
    pub source_count: i32,
    pub created_at: DateTime<Utc>,
    /// The number of the fact that represents its group of similar facts, unless it does so itself or is alone.
    pub similar_to: Option<i64>,
    /// The canonical fact of a duplicate, where the reader asked for it.
    pub duplicate_of: Option<FactId>,
    /// The group of similar facts that it is in, where it is in one and its reader asked.
    pub group: Option<FactGroup>,
    /// How many of its sources are marked, where its reader asked.
    pub marked: MarkedSources,
}

/// Facts that say something alike, each in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactGroup {
    /// The fact that represents it.
    pub id: FactId,
    /// How many facts, the representative included.
    pub size: i64,
    /// How many sources make any of them.
    pub sources: i64,
}

/// One source that makes a fact.
#[derive(Clone, Debug)]
pub struct FactSource {
    pub source: SourceId,
    pub title: Option<String>,
    pub url: String,
    /// Where its reader asked.
    pub mark: Option<SourceMark>,
    pub chunk: Option<i32>,
    pub sentences: Vec<i32>,
    pub image: Option<ImageId>,
}

/// A concept that a fact speaks of.
#[derive(Clone, Debug)]
pub struct FactConcept {
    pub id: ConceptId,
    pub canonical_name: String,
    pub context: String,
}

/// Which facts are asked for.
#[derive(Clone, Debug, Default)]
pub struct FactFilter {
    pub status: Option<FactStatus>,
    pub kind: Option<FactKind>,
    /// Only these, by their numbers.
    pub among: Option<Vec<i64>>,
    pub source: Option<SourceId>,
    /// Facts that speak of all of these.
    pub concepts: Vec<ConceptId>,
    /// One of each group of similar facts: the representative, or else the oldest that is asked for.
    pub grouped: bool,
}

/// What came of looking for facts in a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// Who was asked.
    pub model: String,
    pub promptset_hash: String,
    pub chunks: u32,
    #[serde(default)]
    pub images: u32,
    /// How many of the chunks and images gave nothing that could be used.
    pub failed: u32,
    /// The first of them, with why.
    pub failures: Vec<ChunkFailure>,
    /// What did not become a fact, by why: what a model said and the text does not, or, without a model, sentences.
    #[serde(default)]
    pub dropped: std::collections::BTreeMap<String, u32>,
    pub sentences: u32,
    /// Sentences that some fact rests on.
    pub cited_sentences: u32,
    /// Why there are no facts, where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NoFacts>,
    /// What came of looking for concepts in its facts; `None` until that has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concepts: Option<ConceptExtraction>,
    /// Where it was taken from, if nobody here looked for facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryOrigin>,
}

/// The package of a registry that facts were taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryOrigin {
    /// As the configuration calls it.
    pub registry: String,
    /// What the registry calls the source.
    pub source_id: String,
    /// In the words of its producer.
    pub decomposed_by: Option<String>,
    pub decomposed_at: String,
    /// SHA-256 of the package as it was sent.
    pub package_sha256: String,
    /// Who signed it.
    pub key_id: Option<String>,
    /// Who gave it to the registry, as the registry says.
    #[serde(default)]
    pub pushed_by: Option<String>,
    /// It came with concepts, so nobody looks for them.
    pub has_concepts: bool,
}

/// Why a source gave no facts although nothing failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFacts {
    /// Stable.
    pub code: String,
    pub message: String,
}

impl NoFacts {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// A part of a source that gave nothing that could be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkFailure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sentence: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sentence: Option<u32>,
    /// Stable.
    pub code: String,
    pub message: String,
}
