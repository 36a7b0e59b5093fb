//! Whole repositories.

use okt_app::{ExportPage, GraphExport};
use okt_model::GraphFormat;

use super::{csv, graphml, jsonld};

/// A repository that is being written: its beginning, its pages one after the other, its end.
#[derive(Clone, Copy)]
pub struct GraphWriter(GraphFormat);

impl GraphWriter {
    pub const fn new(format: GraphFormat) -> Self {
        Self(format)
    }

    pub fn begin(self, export: &GraphExport) -> String {
        match self.0 {
            GraphFormat::Jsonld => jsonld::begin(export),
            GraphFormat::Graphml => graphml::begin(export),
            GraphFormat::Csv => csv::begin(),
        }
    }

    pub fn page(self, export: &GraphExport, page: &ExportPage) -> String {
        match self.0 {
            GraphFormat::Jsonld => jsonld::page(export, page),
            GraphFormat::Graphml => graphml::page(page),
            GraphFormat::Csv => csv::page(page),
        }
    }

    pub const fn end(self) -> &'static str {
        match self.0 {
            GraphFormat::Jsonld => jsonld::END,
            GraphFormat::Graphml => graphml::END,
            GraphFormat::Csv => "",
        }
    }
}

pub const fn media_type(format: GraphFormat) -> &'static str {
    match format {
        GraphFormat::Jsonld => "application/ld+json",
        GraphFormat::Graphml => "application/graphml+xml",
        GraphFormat::Csv => "text/csv; charset=utf-8; header=present",
    }
}

/// How the name of a file ends.
pub const fn extension(format: GraphFormat) -> &'static str {
    format.as_str()
}
