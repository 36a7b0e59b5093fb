//! Lists of references, as reference managers and search engines write them: `BibTeX`, RIS and CSL-JSON.
//!
//! A list is read entry by entry, and an entry that can't be read is a row that says why; the others stand. All three
//! readers go through the text once and none calls itself, so a list can neither keep one busy nor break it.

mod bibtex;
mod csl;
mod latex;
mod ris;
mod values;

use serde::{Deserialize, Serialize};

use crate::ParseError;

/// Of one list.
pub const MOST_ENTRIES: usize = 1_000;

/// Of one list, in bytes.
pub const LONGEST_LIST: usize = 4 * 1024 * 1024;

/// Of braces and brackets. Nobody writes more than a handful.
const DEEPEST: usize = 64;

/// Where the marks of a format are looked for, in bytes.
const HEAD: usize = 64 * 1024;

/// One entry of a list of references. There is a title, or something by which the work can be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The citation key, or the place in the list: `#3`.
    pub label: String,
    pub title: Option<String>,
    /// `Ada Lovelace; Charles Babbage`.
    pub author: Option<String>,
    /// `2026-03-01`, `2026-03` or `2026`, as much as is known.
    pub published_at: Option<String>,
    /// In lower case and without an address before it.
    pub doi: Option<String>,
    /// http or https, as written.
    pub url: Option<String>,
    /// `2101.00001v2` or `hep-th/9901001`.
    pub arxiv: Option<String>,
    pub pmid: Option<String>,
}

/// An entry that can't be read, and why, in words for whoever wrote or exported the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("line {line}: {message}")]
pub struct BadEntry {
    /// As in [`Reference`].
    pub label: String,
    /// Where the entry begins, from 1.
    pub line: usize,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// And `BibLaTeX`.
    Bibtex,
    Ris,
    CslJson,
}

/// Which kind of list a text is, if any. The text has to look like one; what its name and type say only settles doubts.
pub fn detect(text: &str, file_name: Option<&str>, content_type: Option<&str>) -> Option<Format> {
    let said = said(file_name, content_type);
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = text[..end].trim_start_matches('\u{feff}').trim_start();
    if ris::begins(head) || (said == Some(Format::Ris) && ris::is_in(head)) {
        return Some(Format::Ris);
    }
    if csl::is_in(head, said == Some(Format::CslJson)) {
        return Some(Format::CslJson);
    }
    bibtex::is_in(head, said == Some(Format::Bibtex)).then_some(Format::Bibtex)
}

/// The entries in the order of the list. An error is one of the list as a whole.
pub fn read(text: &str, format: Format) -> Result<Vec<Result<Reference, BadEntry>>, ParseError> {
    if text.len() > LONGEST_LIST {
        return Err(ParseError::TooMuch(format!(
            "the list has {} bytes, and at most {LONGEST_LIST} are read; divide it",
            text.len()
        )));
    }
    let text = text.trim_start_matches('\u{feff}');
    let rows = match format {
        Format::Bibtex => bibtex::read(text),
        Format::Ris => ris::read(text),
        Format::CslJson => csl::read(text),
    }?;
    if rows.is_empty() {
        return Err(ParseError::Damaged("there is no reference in it".to_owned()));
    }
    Ok(rows)
}

fn said(file_name: Option<&str>, content_type: Option<&str>) -> Option<Format> {
    let name = file_name.unwrap_or_default().to_ascii_lowercase();
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    match media_type.trim().to_ascii_lowercase().as_str() {
        "application/x-bibtex" | "text/x-bibtex" | "application/x-bibtex-text-file" => {
            return Some(Format::Bibtex);
        }
        "application/x-research-info-systems" => return Some(Format::Ris),
        "application/vnd.citationstyles.csl+json" => return Some(Format::CslJson),
        _ => {}
    }
    match name.rsplit_once('.')? {
        (_, "bib" | "bibtex") => Some(Format::Bibtex),
        (_, "ris") => Some(Format::Ris),
        (_, "csljson") => Some(Format::CslJson),
        (stem, "json") if stem.rsplit('.').next() == Some("csl") => Some(Format::CslJson),
        _ => None,
    }
}

fn checked(count: usize) -> Result<(), ParseError> {
    if count <= MOST_ENTRIES {
        return Ok(());
    }
    Err(ParseError::TooMuch(format!(
        "it lists {count} references, and at most {MOST_ENTRIES} are read at once; divide it"
    )))
}

/// What every reader does at last: an entry that tells nothing is none.
fn row(reference: Reference, line: usize) -> Result<Reference, BadEntry> {
    let Reference { title, doi, url, arxiv, pmid, .. } = &reference;
    if [title, doi, url, arxiv, pmid].iter().all(|value| value.is_none()) {
        return Err(BadEntry {
            label: reference.label,
            line,
            message: "it has no title and no DOI, web address, arXiv or PubMed number; add one of them"
                .to_owned(),
        });
    }
    Ok(reference)
}

/// The key, if there is one, or the place from 0.
fn label(key: &str, place: usize) -> String {
    crate::clean::line(key, 200).unwrap_or_else(|| format!("#{}", place + 1))
}

/// Tells lines of a text apart, for places that are asked for in their order.
struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn of(&mut self, place: usize) -> usize {
        let passed = self.text.get(self.at..place).unwrap_or_default();
        self.line += passed.matches('\n').count();
        self.at = self.at.max(place);
        self.line
    }
}
