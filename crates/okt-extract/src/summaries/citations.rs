//! Citations in Markdown: `[text](<fact:ID>)`.

use std::fmt::Write;
use std::ops::Range;

use okt_model::FactId;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::markdown::escaped;

/// A citation and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// In bytes, from the bracket to the parenthesis.
    pub range: Range<usize>,
    pub fact: FactId,
}

/// The citations of a Markdown text, in its order. What stands in code, is escaped, or is written in any other form, is none.
pub fn citations(markdown: &str) -> Vec<Citation> {
    let events = parser(markdown).into_offset_iter();
    let link = |(event, range): (Event, Range<usize>)| match event {
        Event::Start(Tag::Link { .. }) => {
            let fact = cited(markdown, &range)?;
            Some(Citation { range, fact })
        }
        _ => None,
    };
    events.filter_map(link).collect()
}

/// Markdown as it is read here, with tables, as pages show it.
pub(super) fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

/// The fact of a link, if it is a citation.
pub(super) fn cited(markdown: &str, range: &Range<usize>) -> Option<FactId> {
    let (_, id) = markdown.get(range.clone())?.strip_suffix(">)")?.rsplit_once("](<fact:")?;
    // As ids are written: other forms of a UUID would be missed where ids are compared as text.
    let fact: FactId = id.parse().ok()?;
    (fact.to_string() == id).then_some(fact)
}

/// A statement as Markdown, with the facts on which it rests: `[statement](<fact:A>)[²](<fact:B>)`. A statement without facts
/// is no statement: the text is empty then.
pub fn cite(statement: &str, facts: &[FactId]) -> String {
    let mut out = String::new();
    for (at, fact) in facts.iter().enumerate() {
        let text = if at == 0 { escaped(statement) } else { superscript(at + 1) };
        // Writing to a string does not fail.
        let _ = write!(out, "[{text}](<fact:{fact}>)");
    }
    out
}

fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = number.to_string();
    digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0197a3c0-0000-7000-8000-00000000000a";
    const B: &str = "0197a3c0-0000-7000-8000-00000000000b";

    fn id(text: &str) -> FactId {
        text.parse().unwrap()
    }

    #[test]
    fn a_statement_is_written_with_its_facts_and_found_again() {
        let text = cite("Gulls [of *Skomer*] nest.", &[id(A), id(B)]);
        assert_eq!(text, format!(r"[Gulls \[of \*Skomer\*\] nest.](<fact:{A}>)[²](<fact:{B}>)"));
        let found = citations(&text);
        assert_eq!(found.iter().map(|one| one.fact).collect::<Vec<_>>(), [id(A), id(B)]);
        assert_eq!(&text[found[1].range.clone()], format!("[²](<fact:{B}>)"));
        assert_eq!(cite("Nobody says so.", &[]), "");
        let many: Vec<FactId> = (0..12).map(|_| id(A)).collect();
        assert!(cite("x", &many).ends_with(&format!("[¹²](<fact:{A}>)")));
    }

    #[test]
    fn only_citations_are_found() {
        let upper = A.to_uppercase();
        for (text, expected) in [
            (format!("x [a](<fact:{A}>) y"), 1),
            (format!("[a [b] c](<fact:{A}>)"), 1),
            (format!(r"[a \] c](<fact:{A}>)"), 1),
            (format!("# H [a](<fact:{A}>)\n\n- [b](<fact:{B}>)\n> [c](<fact:{B}>)"), 3),
            (format!("[![i](<image:{B}>)](<fact:{A}>)"), 1),
            (format!("[\u{202e}שלום](<fact:{A}>)"), 1),
            // No citations.
            (format!("`[a](<fact:{A}>)`"), 0),
            (format!("```\n[a](<fact:{A}>)\n```"), 0),
            (format!("    [a](<fact:{A}>)"), 0),
            (format!(r"\[a](<fact:{A}>)"), 0),
            (format!(r"[a\](<fact:{A}>)"), 0),
            (format!("![a](<fact:{A}>)"), 0),
            (format!("[a](fact:{A})"), 0),
            (format!("[a](<fact:{A}> \"title\")"), 0),
            (format!("[a](<fact:{upper}>)"), 0),
            (format!("[a](<fact:{}>)", A.replace('-', "")), 0),
            (format!("[a](<fact: {A}>)"), 0),
            ("[a](<fact:7>) [a](<fact:>)".to_owned(), 0),
            (format!("[a][b]\n\n[b]: <fact:{A}>"), 0),
            (format!("<a href=\"fact:{A}\">a</a> <fact:{A}>"), 0),
            (format!("[a](<fact:{A}>"), 0),
            (format!("[a](<https://example.org/](<fact:{A}>)"), 0),
        ] {
            assert_eq!(citations(&text).len(), expected, "{text}");
        }
    }
}
