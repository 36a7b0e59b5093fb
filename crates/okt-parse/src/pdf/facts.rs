//! What a file says about itself, as far as it can be believed. When it was made is not when its text was published.

use pdfium_render::prelude::{PdfDocument, PdfDocumentMetadataTagType as Tag};

use super::flow::Flow;
use super::record::Record;
use super::{byline, dates};
use crate::clean;

pub struct Facts {
    pub title: Option<String>,
    pub author: Option<String>,
    pub published_at: Option<String>,
    pub language: Option<String>,
    pub doi: Option<String>,
}

/// A DOI of the paper itself stands at its beginning; those further down are of others.
const DOI_WITHIN: usize = 3_000;

/// `bytes` are those of the file, for what is in them in plain words.
pub fn read(file: &PdfDocument<'_>, bytes: &[u8], flow: &Flow) -> Facts {
    let record = Record::of(bytes);
    let text = &flow.text;
    let tag = |tag| file.metadata().get(tag).and_then(|tag| line(tag.value()));
    let title = tag(Tag::Title).into_iter().chain(flow.title.clone()).find(|title| is_title(title));
    let start = text.char_indices().nth(DOI_WITHIN).map_or(text.as_str(), |(at, _)| &text[..at]);
    let said = [tag(Tag::Subject), tag(Tag::Keywords), tag(Tag::Title)];
    Facts {
        author: author(flow, &record.creators, tag(Tag::Author)),
        published_at: dates::published(&flow.first_page, &flow.below_title).or(record.published),
        language: file.catalog().get_language().ok().and_then(|said| language(&said)),
        doi: said.iter().flatten().find_map(|said| doi(said)).or_else(|| doi(start)),
        title,
    }
}

/// The page names all authors where the file often names one, or whose computer it was.
fn author(flow: &Flow, creators: &[String], said: Option<String>) -> Option<String> {
    let names = byline::names(&flow.below_title);
    if !names.is_empty() {
        return line(&names.join(", "));
    }
    let creators: Vec<_> =
        creators.iter().filter(|name| byline::is_author(name)).map(String::as_str).collect();
    if creators.len() > 1 {
        return line(&creators.join(", "));
    }
    said.filter(|said| byline::is_author(said)).or_else(|| line(creators.first()?))
}

/// One line without control characters, of a length that a title or a name has.
fn line(value: &str) -> Option<String> {
    let words: Vec<_> = value
        .split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let value = words.join(" ");
    (!value.is_empty()).then(|| value.chars().take(1_000).collect())
}

/// What is written large on first pages and is the title of none.
const HEADINGS: [&str; 12] = [
    "contents",
    "table of contents",
    "abstract",
    "summary",
    "introduction",
    "inhalt",
    "inhaltsverzeichnis",
    "zusammenfassung",
    "table des matières",
    "résumé",
    "índice",
    "resumen",
];

/// Programs write the name of the file where the title belongs.
fn is_title(title: &str) -> bool {
    let lower = title.to_lowercase();
    let file = [".doc", ".docx", ".tex", ".dvi", ".pdf", ".indd", ".html", ".htm", ".qxd", ".rtf", ".odt"];
    title.chars().filter(|char| char.is_alphabetic()).count() > 2
        && !lower.starts_with("microsoft word - ")
        && !lower.starts_with("untitled")
        && !HEADINGS.contains(&lower.trim_end_matches(['.', ':']))
        && !lower.starts_with("http")
        && !file.iter().any(|ending| lower.ends_with(ending))
}

/// From `en-GB`, the part that is a language.
fn language(said: &str) -> Option<String> {
    let primary = said.split(['-', '_']).next()?.trim().to_ascii_lowercase();
    (primary.len() == 2 && primary.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(primary)
}

/// The first DOI in a text.
fn doi(text: &str) -> Option<String> {
    for (at, _) in text.match_indices("10.") {
        // Not the end of a longer number.
        if text[..at].ends_with(|char: char| char.is_ascii_digit() || char == '.') {
            continue;
        }
        let end =
            text[at..].find(|char: char| char.is_whitespace() || matches!(char, '"' | '<' | '>' | '{' | '}'));
        let candidate = end.map_or(&text[at..], |end| &text[at..at + end]);
        if let Some(found) = clean::doi(without_its_surroundings(candidate)) {
            return Some(found);
        }
    }
    None
}

/// Without the end of the sentence and of the brackets in which it stands.
fn without_its_surroundings(mut doi: &str) -> &str {
    loop {
        let shorter = doi.trim_end_matches(['.', ',', ';', ':', '\'', '”', '’', '*', '-']);
        let unopened = |open: char, close: char| {
            shorter.ends_with(close) && shorter.matches(close).count() > shorter.matches(open).count()
        };
        let bracket = unopened('(', ')') || unopened('[', ']');
        let shorter = if bracket { &shorter[..shorter.len() - 1] } else { shorter };
        if shorter.len() == doi.len() {
            return doi;
        }
        doi = shorter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doi_is_found_where_people_write_it() {
        for (text, found) in [
            ("https://doi.org/10.1234/Bee.2026.1.", Some("10.1234/bee.2026.1")),
            ("(doi:10.1016/S0140-6736(26)00001-2)", Some("10.1016/s0140-6736(26)00001-2")),
            ("[doi: 10.5281/zenodo.42]", Some("10.5281/zenodo.42")),
            ("version 3.10.1234/5", None),
            ("from 10.5 to 11.7 and 10.12/3", None),
            ("10.1234/", None),
        ] {
            assert_eq!(doi(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn a_language_is_taken_as_far_as_it_goes() {
        assert_eq!(language("de-AT").as_deref(), Some("de"));
        assert_eq!(language("x-unknown"), None);
    }

    #[test]
    fn the_name_of_a_file_is_no_title() {
        assert!(is_title("On Bees"));
        for title in
            ["Microsoft Word - bees.doc", "bees_final.tex", "untitled", "42", "https://example.org/a"]
        {
            assert!(!is_title(title), "{title}");
        }
    }
}
