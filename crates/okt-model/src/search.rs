//! What is found by its words.

use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{Payload, SourceId, Subject};

words! {
    /// How a question is answered.
    SearchMode {
        /// Hybrid, or lexical where that can't be.
        Auto = "auto",
        Lexical = "lexical",
        Vector = "vector",
        Hybrid = "hybrid",
        /// Hybrid, and from the best sources on to those that share a name with them.
        Deep = "deep",
    }
}

words! {
    /// What is looked for.
    SearchType {
        Facts = "facts",
        Concepts = "concepts",
        Sources = "sources",
        Passages = "passages",
        Reports = "reports",
    }
}

words! {
    /// How something was found.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    FoundThrough {
        Lexical = "lexical",
        Vector = "vector",
        Hop = "hop",
        /// The question names its source.
        Anchor = "anchor",
    }
}

/// A source has so many passages at most; those of source `n` are numbered from `n * PASSAGES_OF_SOURCE` on.
pub const PASSAGES_OF_SOURCE: i64 = 256;

/// What a text that can be found is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitKind {
    Fact,
    /// A few sentences of a source, whether or not facts rest on them.
    Passage,
    /// Title, author and the whole text.
    Source,
}

impl UnitKind {
    pub const ALL: [Self; 3] = [Self::Fact, Self::Passage, Self::Source];

    /// As it is kept.
    pub const fn number(self) -> i16 {
        match self {
            Self::Fact => 1,
            Self::Passage => 2,
            Self::Source => 3,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// Has a source found by its words: its facts, its passages and itself.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSource {
    pub source: SourceId,
    /// Its number, if it was deleted: what was found of it is found no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<i64>,
    /// Its facts came from a bundle: reports are not compared with them before somebody asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl IndexSource {
    pub const fn of(source: SourceId) -> Self {
        Self { source, gone: None, imported: false }
    }

    /// Of a source that was imported.
    pub const fn of_imported(source: SourceId) -> Self {
        Self { source, gone: None, imported: true }
    }
}

impl Payload for IndexSource {
    const KIND: &'static str = "index_source";
    const INTERNAL: bool = true;

    fn subject(&self) -> Option<Subject> {
        Some(self.source.into())
    }

    /// It looks at how things are then.
    fn unique_key(&self) -> Option<String> {
        // One that waits and does not know the number would find nothing.
        Some(format!("{}{}", self.source, if self.gone.is_some() { " gone" } else { "" }))
    }
}

/// Gives the passages of a source their vectors.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedPassages {
    pub source: SourceId,
}

impl Payload for EmbedPassages {
    const KIND: &'static str = "embed_passages";
    const INTERNAL: bool = true;

    fn subject(&self) -> Option<Subject> {
        Some(self.source.into())
    }

    /// It looks at how things are then.
    fn unique_key(&self) -> Option<String> {
        Some(self.source.to_string())
    }
}
