//! The Graph Bundle of one repository: everything that was derived from its sources, as one gzipped JSON document.
//!
//! Rows refer to each other by numbers that hold within the bundle. The sections come in one order ([`Section`]), so that a
//! bundle is read and written in one go, in memory that does not grow with it. Its hash ([`hash`]) depends on the graph alone:
//! not on files, vectors, the instance or the moment.

mod check;
pub mod hash;
pub mod read;
pub mod rows;
pub mod write;

use std::fmt;

pub use hash::Hash;
pub use read::{Limits, Read, read};
pub use rows::{
    AliasRow, AnnotationRow, BodyRow, ConceptRow, CurationRow, Decimal, FactConceptRow, FactRow,
    FactSourceRow, ImageRow, InvestigationRow, InvestigationSourceRow, Metadata, OwnedRow, ReferenceRow,
    ReportRow, Row, SourceRow, SummaryRow, SynthesisRow,
};
pub use write::{Spool, Writer};

/// The version that is written, and the highest that is read.
pub const SCHEMA_VERSION: u32 = 2;

/// The sections, in the order of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Sources,
    Images,
    Bodies,
    SourceImages,
    SourceBodies,
    Facts,
    FactSources,
    FactReferences,
    Concepts,
    ConceptAliases,
    FactConcepts,
    ConceptSummaries,
    ConceptSyntheses,
    Investigations,
    InvestigationSources,
    Reports,
    ReportAnnotations,
    Curation,
    Embeddings,
}

impl Section {
    pub const ALL: [Self; 19] = [
        Self::Sources,
        Self::Images,
        Self::Bodies,
        Self::SourceImages,
        Self::SourceBodies,
        Self::Facts,
        Self::FactSources,
        Self::FactReferences,
        Self::Concepts,
        Self::ConceptAliases,
        Self::FactConcepts,
        Self::ConceptSummaries,
        Self::ConceptSyntheses,
        Self::Investigations,
        Self::InvestigationSources,
        Self::Reports,
        Self::ReportAnnotations,
        Self::Curation,
        Self::Embeddings,
    ];

    /// As the document names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sources => "sources",
            Self::Images => "images",
            Self::Bodies => "bodies",
            Self::SourceImages => "source_images",
            Self::SourceBodies => "source_bodies",
            Self::Facts => "facts",
            Self::FactSources => "fact_sources",
            Self::FactReferences => "fact_references",
            Self::Concepts => "concepts",
            Self::ConceptAliases => "concept_aliases",
            Self::FactConcepts => "fact_concepts",
            Self::ConceptSummaries => "concept_summaries",
            Self::ConceptSyntheses => "concept_syntheses",
            Self::Investigations => "investigations",
            Self::InvestigationSources => "investigation_sources",
            Self::Reports => "reports",
            Self::ReportAnnotations => "report_annotations",
            Self::Curation => "curation",
            Self::Embeddings => "embeddings",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }

    /// Whether a bundle without it is incomplete.
    pub const fn is_required(self) -> bool {
        !matches!(
            self,
            Self::Images
                | Self::Bodies
                | Self::SourceBodies
                | Self::FactReferences
                | Self::Curation
                | Self::Embeddings
        )
    }

    /// Whether the hash is over its rows. `source_images` is hashed as an empty list, the other ones not at all.
    pub const fn is_hashed(self) -> bool {
        self.is_required() && !matches!(self, Self::SourceImages)
    }

    /// Its place in a version of the format: the first one had files and what refers to them behind the facts.
    const fn place(self, version: u32) -> u32 {
        let place = self as u32;
        match self {
            Self::Images | Self::Bodies | Self::SourceImages | Self::SourceBodies if version == 1 => {
                place + 100
            }
            _ if version == 1 && place > Self::Facts as u32 => place + 200,
            _ => place,
        }
    }
}

/// Why a document was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Such as `facts[17]`; empty where it is about the whole.
    pub place: String,
    pub reason: String,
}

impl Refused {
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "{}: {}", self.place, self.reason)
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests;
