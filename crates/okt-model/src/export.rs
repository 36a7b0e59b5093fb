//! Exports: what leaves a repository in the formats of other programs.

use chrono::{DateTime, NaiveDate, Utc};

use crate::permission::words;
use crate::{Concept, ConceptId, Fact, FactId, MarkKind, SourceId};

words! {
    /// A format of a list of references.
    CitationFormat {
        Bibtex = "bibtex",
        Ris = "ris",
        Csl = "csl",
    }
}

words! {
    /// A format of a report: the text with what its claims rest on, or the sources that they rest on.
    ReportFormat {
        Markdown = "md",
        Html = "html",
        Bibtex = "bibtex",
        Ris = "ris",
        Csl = "csl",
    }
}

words! {
    /// A format of a whole repository.
    GraphFormat {
        Jsonld = "jsonld",
        Graphml = "graphml",
        Csv = "csv",
    }
}

/// A concept with what an export says of it.
#[derive(Clone, Debug)]
pub struct ExportedConcept {
    pub concept: Concept,
    /// Its other names, and those of the concepts that were merged into it.
    pub aliases: Vec<String>,
    /// Markdown, as it is stored.
    pub definition: Option<String>,
}

/// A fact with the concepts that it speaks of.
#[derive(Clone, Debug)]
pub struct ExportedFact {
    pub fact: Fact,
    pub concepts: Vec<(ConceptId, String)>,
}

/// A source of a fact, with the sentences that the fact rests on.
#[derive(Clone, Debug)]
pub struct ExportedLink {
    pub fact: FactId,
    pub source: SourceId,
    pub title: Option<String>,
    pub author: Option<String>,
    pub site_name: Option<String>,
    pub url: String,
    pub doi: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub mark: Option<MarkKind>,
    pub sentences: Vec<QuotedSentence>,
    /// When the source was added.
    pub created_at: DateTime<Utc>,
}

/// A sentence of a source, in code points of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedSentence {
    pub start: i32,
    pub end: i32,
    /// Empty where its reader did not ask.
    pub text: String,
}

/// Two concepts that share facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportedRelation {
    pub one: ConceptId,
    pub other: ConceptId,
    pub shared_fact_count: i64,
}
