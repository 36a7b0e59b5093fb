//! Exports: what leaves okt in the formats of other programs. Each is written piece by piece, a page of rows at a time.
//!
//! Titles, names and texts come from strangers. Every format has its own way to say that something is text, and a value can't
//! end it. To add a format: a word in `okt-model/src/export.rs`, a file here, and a line in [`list`] or [`graph`].

mod bibtex;
mod citation;
mod csl;
mod csv;
pub mod graph;
mod graphml;
mod jsonld;
pub mod list;
pub mod report;
mod ris;

pub use citation::Citation;
pub use graph::GraphWriter;
pub use list::CitationList;

use serde::Deserialize;
use utoipa::IntoParams;

use okt_model::{CitationFormat, GraphFormat, ReportFormat, Result};

use crate::vocabulary::{read_if_given, schema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CitationExportQuery {
    /// `bibtex`, `ris` or `csl`.
    #[param(value_type = Option<schema::CitationFormat>, default = "bibtex")]
    format: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GraphExportQuery {
    /// `jsonld`, `graphml` or `csv`.
    #[param(value_type = Option<schema::GraphFormat>, default = "jsonld")]
    format: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReportExportQuery {
    /// `md`, `html`, `bibtex`, `ris` or `csl`.
    #[param(value_type = Option<schema::ReportFormat>, default = "md")]
    format: Option<String>,
}

impl ReportExportQuery {
    pub fn parsed(&self) -> Result<ReportFormat> {
        Ok(read_if_given("format", self.format.as_deref())?.unwrap_or(ReportFormat::Markdown))
    }
}

impl CitationExportQuery {
    pub fn parsed(&self) -> Result<CitationFormat> {
        Ok(read_if_given("format", self.format.as_deref())?.unwrap_or(CitationFormat::Bibtex))
    }
}

impl GraphExportQuery {
    pub fn parsed(&self) -> Result<GraphFormat> {
        Ok(read_if_given("format", self.format.as_deref())?.unwrap_or(GraphFormat::Jsonld))
    }
}

/// A text on one line, with single blanks, and without what no text has: control characters and those that stand for none.
pub(crate) fn line(text: &str) -> String {
    let broken = |c: char| if is_control(c) || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    text.chars().map(broken).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0xFDD0..=0xFDEF) || u32::from(c) & 0xFFFE == 0xFFFE
}
