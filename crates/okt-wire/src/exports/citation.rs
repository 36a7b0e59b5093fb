//! A source as lists of references name it.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate};
use okt_model::{MarkKind, Source, SourceId};

use super::line;

/// A source as lists of references name it. Texts are on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    pub id: SourceId,
    pub title: String,
    /// `Ada Moss` or `Moss, Ada`, as the source has them.
    pub authors: Vec<String>,
    /// The journal, or the name of the site.
    pub site: Option<String>,
    /// Of the web; a file that somebody brought along has none.
    pub url: Option<String>,
    pub doi: Option<String>,
    pub published: Option<NaiveDate>,
    pub accessed: Option<NaiveDate>,
    pub language: Option<String>,
    /// What a reader should know of it: that it was retracted or superseded, and why.
    pub note: Option<String>,
}

/// What a source is, as far as that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Article,
    Page,
    Document,
}

impl Citation {
    /// Stable, unique, and of letters, digits and hyphens: what somebody has cited stays right when the list is exported again.
    pub fn key(&self) -> String {
        format!("okt-{}", self.id.uuid().simple())
    }

    pub(crate) const fn shape(&self) -> Shape {
        match (&self.doi, &self.site, &self.url) {
            (Some(_), Some(_), _) => Shape::Article,
            (_, _, Some(_)) => Shape::Page,
            _ => Shape::Document,
        }
    }

    /// Year, month and day, as far as they are known.
    pub(crate) fn published_parts(&self) -> Vec<u32> {
        // A date of which only the year is known is stored as its first day.
        let Some(date) = self.published else { return Vec::new() };
        let parts = [u32::try_from(date.year()).unwrap_or(0), date.month(), date.day()];
        let known = match (date.month(), date.day()) {
            (1, 1) => 1,
            (_, 1) => 2,
            _ => 3,
        };
        parts[..known].to_vec()
    }

    /// As people read it, as much as is known.
    pub(crate) fn published_text(&self) -> Option<String> {
        let parts = self.published_parts();
        let (year, rest) = parts.split_first()?;
        let mut text = format!("{year:04}");
        for part in rest {
            let _ = write!(text, "-{part:02}");
        }
        Some(text)
    }

    /// Where it is found: by its DOI, which lasts longer than an address.
    pub(crate) fn link(&self) -> Option<String> {
        let doi = self.doi.as_deref().map(|doi| format!("https://doi.org/{}", address(doi)));
        doi.or_else(|| self.url.as_deref().filter(|url| is_web(url)).map(address))
    }
}

impl From<Source> for Citation {
    fn from(source: Source) -> Self {
        let text = |text: Option<String>| text.map(|text| line(&text)).filter(|text| !text.is_empty());
        let url = Some(line(&source.url)).filter(|url| is_web(url));
        let title = text(source.title).or_else(|| text(source.file_name)).or_else(|| url.clone());
        let note = source.mark.map(|mark| {
            let said = match mark.kind {
                MarkKind::Retracted => "Retracted",
                MarkKind::Superseded => "Superseded",
            };
            text(mark.reason).map_or_else(|| said.to_owned(), |reason| format!("{said}: {reason}"))
        });
        Self {
            id: source.id,
            title: title.unwrap_or_else(|| "Untitled".to_owned()),
            authors: text(source.author).map(|names| authors(&names)).unwrap_or_default(),
            site: text(source.site_name),
            doi: text(source.doi),
            published: source.published_at,
            accessed: source.fetched_at.filter(|_| url.is_some()).map(|at| at.date_naive()),
            language: text(source.language),
            url,
            note,
        }
    }
}

pub(crate) fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

/// The names of a line of authors: between semicolons, or between commas where these can't belong to a name.
fn authors(line: &str) -> Vec<String> {
    let parts = |mark: char| line.split(mark).map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = if line.contains(';') {
        parts(';').collect()
    } else if parts(',').all(|name| name.contains(' ')) {
        parts(',').collect()
    } else {
        vec![line.trim()]
    };
    names.into_iter().map(str::to_owned).collect()
}

/// The family and the given name, where the name says which is which.
pub(crate) fn family_first(name: &str) -> Option<(&str, &str)> {
    let (family, given) = name.split_once(',')?;
    let (family, given) = (family.trim(), given.trim());
    (!given.contains(',') && !family.is_empty() && !given.is_empty()).then_some((family, given))
}

/// An address or a DOI of which nothing can be taken for a mark of the format around it. What is escaped means the same.
pub(crate) fn address(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_graphic() && !matches!(c, '{' | '}' | '\\' | '^' | '"' | '`' | '<' | '>' | '|') {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What somebody writes who wants to break a list.
    pub(crate) const HOSTILE: &[&str] = &[
        "plain",
        "On {bees} and \\textbf{honey}",
        "}, author = {Mallory}, x = {",
        "@article{evil, title = {x}}",
        "50 % of $5 & #1 _under_ ~tilde^ \"quoted\" <b>bold</b> a|b",
        "unbalanced } brace",
        "unbalanced { brace",
        "backslash at the end \\",
        "日本語 — Ünïcödé 🐝 عربى",
        "=HYPERLINK(\"http://evil\")",
        "ER  - ",
        "TY  - JOUR",
        "</data></node><node id=\"evil\"/>",
        "]]> & &amp; <!-- --> ' \"",
        "Simon and Schuster",
        "- -- --- `` ''",
    ];

    pub(crate) fn citation(title: &str) -> Citation {
        Citation {
            id: SourceId::from(uuid::Uuid::from_u128(7)),
            title: title.to_owned(),
            authors: Vec::new(),
            site: None,
            url: None,
            doi: None,
            published: None,
            accessed: None,
            language: None,
            note: None,
        }
    }

    #[test]
    fn names_are_told_apart_where_the_line_says_how() {
        for (line, expected) in [
            ("Ada Moss", &["Ada Moss"][..]),
            ("Moss, Ada", &["Moss, Ada"]),
            ("Moss, Ada; Ode, Ben", &["Moss, Ada", "Ode, Ben"]),
            ("Ada Moss, Ben Ode", &["Ada Moss", "Ben Ode"]),
            ("Moss, Ada, Ode, Ben", &["Moss, Ada, Ode, Ben"]),
            ("WHO; ; Ada Moss;", &["WHO", "Ada Moss"]),
            ("WHO", &["WHO"]),
        ] {
            assert_eq!(authors(line), expected, "{line}");
        }
    }

    #[test]
    fn a_date_claims_no_more_than_is_known() {
        for (date, expected) in [
            ((2020, 3, 14), &[2020, 3, 14][..]),
            ((2020, 3, 1), &[2020, 3]),
            ((2020, 1, 1), &[2020]),
            ((2020, 1, 2), &[2020, 1, 2]),
        ] {
            let published = NaiveDate::from_ymd_opt(date.0, date.1, date.2);
            assert_eq!(Citation { published, ..citation("x") }.published_parts(), expected);
        }
        assert!(citation("x").published_parts().is_empty());
    }

    #[test]
    fn an_address_has_no_marks() {
        assert_eq!(address("https://example.org/a?b=c%20d&e=f~g#h"), "https://example.org/a?b=c%20d&e=f~g#h");
        assert_eq!(address("10.1/{a}\\b c\n\"é"), "10.1/%7Ba%7D%5Cb%20c%0A%22%C3%A9");
    }
}
