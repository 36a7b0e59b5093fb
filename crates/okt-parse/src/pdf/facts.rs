//! What a file says about itself, as far as it can be believed.

use pdfium_render::prelude::{PdfDocument, PdfDocumentMetadataTagType as Tag};

pub struct Facts {
    pub title: Option<String>,
    pub author: Option<String>,
    pub published_at: Option<String>,
    pub language: Option<String>,
    pub doi: Option<String>,
}

/// A DOI of the paper itself stands at its beginning; those further down are of others.
const DOI_WITHIN: usize = 3_000;

pub fn read(file: &PdfDocument<'_>, text: &str) -> Facts {
    let tag = |tag| file.metadata().get(tag).and_then(|tag| clean(tag.value()));
    let title = tag(Tag::Title).filter(|title| is_title(title));
    let start = text.char_indices().nth(DOI_WITHIN).map_or(text, |(at, _)| &text[..at]);
    let said = [tag(Tag::Subject), tag(Tag::Keywords), tag(Tag::Title)];
    Facts {
        author: tag(Tag::Author),
        published_at: tag(Tag::CreationDate).and_then(|date| day(&date)),
        language: file.catalog().get_language().ok().and_then(|said| language(&said)),
        doi: said.iter().flatten().find_map(|said| doi(said)).or_else(|| doi(start)),
        title,
    }
}

/// One line without control characters, of a length that a title or a name has.
fn clean(value: &str) -> Option<String> {
    let words: Vec<_> = value
        .split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let value = words.join(" ");
    (!value.is_empty()).then(|| value.chars().take(1_000).collect())
}

/// Programs write the name of the file where the title belongs.
fn is_title(title: &str) -> bool {
    let lower = title.to_lowercase();
    let file = [".doc", ".docx", ".tex", ".dvi", ".pdf", ".indd", ".html", ".htm", ".qxd", ".rtf", ".odt"];
    title.chars().filter(|char| char.is_alphabetic()).count() > 2
        && !lower.starts_with("microsoft word - ")
        && !lower.starts_with("untitled")
        && !lower.starts_with("http")
        && !file.iter().any(|ending| lower.ends_with(ending))
}

/// From `D:20260301120000Z`, as much of it as there is.
fn day(date: &str) -> Option<String> {
    let digits = date.trim_start_matches("D:");
    let part = |from, to| digits.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let year = part(0, 4).filter(|year| ("1900"..="2999").contains(year))?;
    let month = part(4, 6).filter(|month| ("01"..="12").contains(month));
    let day = part(6, 8).filter(|day| ("01"..="31").contains(day));
    Some(match (month, day) {
        (Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        (Some(month), None) => format!("{year}-{month}"),
        _ => year.to_owned(),
    })
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
        let candidate = &text[at..end.map_or(text.len(), |end| at + end)];
        let Some((prefix, suffix)) = candidate.split_once('/') else { continue };
        let registrant = &prefix[3..];
        let digits = registrant.split('.').next().unwrap_or_default();
        if !(4..=9).contains(&digits.len())
            || !registrant.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            continue;
        }
        let suffix = suffix.trim_end_matches(['.', ',', ';', ':', '\'', '”', '’', '*', '-']);
        let suffix = if suffix.contains('(') { suffix } else { suffix.trim_end_matches(')') };
        let suffix = if suffix.contains('[') { suffix } else { suffix.trim_end_matches(']') };
        if !suffix.is_empty() {
            return Some(format!("{prefix}/{}", suffix.trim_end_matches('.')).to_lowercase());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doi_is_found_where_people_write_it() {
        for (text, found) in [
            ("https://doi.org/10.1234/Bee.2026.1.", Some("10.1234/bee.2026.1")),
            ("(doi:10.1016/S0140-6736(26)00001-2)", Some("10.1016/s0140-6736(26)00001-2)")),
            ("[doi: 10.5281/zenodo.42]", Some("10.5281/zenodo.42")),
            ("version 3.10.1234/5", None),
            ("from 10.5 to 11.7 and 10.12/3", None),
            ("10.1234/", None),
        ] {
            assert_eq!(doi(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn dates_and_languages_are_taken_as_far_as_they_go() {
        assert_eq!(day("D:20260301120000+01'00'").as_deref(), Some("2026-03-01"));
        assert_eq!(day("D:202613").as_deref(), Some("2026"));
        assert_eq!(day("yesterday"), None);
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
