//! A table for spreadsheets (RFC 4180): a row for each fact and each of its sources.

use okt_app::ExportPage;
use okt_model::{ExportedFact, ExportedLink};

/// What a spreadsheet shows in a cell, and a little less.
const LONGEST_CELL: usize = 32_000;

const COLUMNS: [&str; 14] = [
    "fact_id",
    "fact",
    "concepts",
    "fact_created_at",
    "fact_retracted",
    "source_id",
    "source_title",
    "source_author",
    "source_site",
    "source_url",
    "source_doi",
    "source_published_at",
    "source_mark",
    "quote",
];

/// With a mark of UTF-8, or some spreadsheets read another encoding.
pub(super) fn begin() -> String {
    let mut out = String::from('\u{feff}');
    row(&mut out, &COLUMNS.map(str::to_owned));
    out
}

pub(super) fn page(page: &ExportPage) -> String {
    let mut out = String::new();
    if let ExportPage::Links(facts, links) = page {
        for link in links {
            if let Some(fact) = facts.iter().find(|fact| fact.fact.id == link.fact) {
                row(&mut out, &cells(fact, link));
            }
        }
    }
    out
}

fn cells(exported: &ExportedFact, link: &ExportedLink) -> [String; 14] {
    let fact = &exported.fact;
    let names: Vec<&str> = exported.concepts.iter().map(|(_, name)| &**name).collect();
    let quotes: Vec<&str> = link.sentences.iter().map(|sentence| &*sentence.text).collect();
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        fact.id.to_string(),
        fact.text.clone(),
        names.join("; "),
        fact.created_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        if fact.marked.is_retracted() { "yes" } else { "no" }.to_owned(),
        link.source.to_string(),
        known(&link.title),
        known(&link.author),
        known(&link.site_name),
        link.url.clone(),
        known(&link.doi),
        link.published_at.map(|date| date.to_string()).unwrap_or_default(),
        link.mark.map(|mark| mark.as_str().to_owned()).unwrap_or_default(),
        quotes.join(" "),
    ]
}

fn row(out: &mut String, cells: &[String; 14]) {
    for (at, text) in cells.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        cell(out, text);
    }
    out.push_str("\r\n");
}

/// A cell that is text for a spreadsheet too. What begins as a formula does is run by some of them, and could send the others
/// away; an apostrophe before it says that it is text.
fn cell(out: &mut String, text: &str) {
    out.push('"');
    if text.starts_with(|c| "=+-@\t\r\n＝＋－＠".contains(c)) {
        out.push('\'');
    }
    for c in text.chars().take(LONGEST_CELL) {
        match c {
            '"' => out.push_str("\"\""),
            '\u{0}' => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::citation::tests::HOSTILE;

    fn cell_of(text: &str) -> String {
        let mut out = String::new();
        cell(&mut out, text);
        out
    }

    #[test]
    fn no_cell_is_a_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "=HYPERLINK(\"x\")"] {
            assert!(cell_of(text).starts_with("\"'"), "{text:?}");
        }
        assert_eq!(cell_of("a=1"), "\"a=1\"");
        assert_eq!(cell_of(""), "\"\"");
    }

    #[test]
    fn no_text_ends_its_cell() {
        for text in HOSTILE {
            let written = cell_of(text);
            assert_eq!(written.matches('"').count(), 2 + 2 * text.matches('"').count(), "{written}");
        }
        assert_eq!(cell_of(&"x".repeat(40_000)).len(), LONGEST_CELL + 2);
    }
}
