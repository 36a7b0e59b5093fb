//! Lists of references.

use okt_model::CitationFormat;

use super::{Citation, bibtex, csl, ris};

/// A list of references that is being written.
pub struct CitationList {
    format: CitationFormat,
    is_empty: bool,
}

impl CitationList {
    pub const fn new(format: CitationFormat) -> Self {
        Self { format, is_empty: true }
    }

    /// The next entries.
    pub fn add<'a>(&mut self, citations: impl IntoIterator<Item = &'a Citation>) -> String {
        let mut out = String::new();
        for citation in citations {
            match self.format {
                CitationFormat::Bibtex => bibtex::write(citation, &mut out),
                CitationFormat::Ris => ris::write(citation, &mut out),
                CitationFormat::Csl => {
                    out.push_str(if self.is_empty { "[\n" } else { ",\n" });
                    csl::write(citation, &mut out);
                }
            }
            self.is_empty = false;
        }
        out
    }

    /// What comes after the last entry.
    pub const fn end(&self) -> &'static str {
        match (self.format, self.is_empty) {
            (CitationFormat::Csl, true) => "[]\n",
            (CitationFormat::Csl, false) => "\n]\n",
            _ => "",
        }
    }
}

pub const fn media_type(format: CitationFormat) -> &'static str {
    match format {
        CitationFormat::Bibtex => "application/x-bibtex; charset=utf-8",
        CitationFormat::Ris => "application/x-research-info-systems; charset=utf-8",
        CitationFormat::Csl => "application/vnd.citationstyles.csl+json",
    }
}

/// How the name of a file ends.
pub const fn extension(format: CitationFormat) -> &'static str {
    match format {
        CitationFormat::Bibtex => "bib",
        CitationFormat::Ris => "ris",
        // So that it is told from other JSON when it is imported.
        CitationFormat::Csl => "csl.json",
    }
}
