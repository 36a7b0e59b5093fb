//! `BibTeX`, in UTF-8.

use std::fmt::Write;

use super::Citation;
use super::citation::{Shape, address, family_first};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

pub(super) fn write(citation: &Citation, out: &mut String) {
    let (kind, site) = match citation.shape() {
        Shape::Article => ("article", "journal"),
        Shape::Page | Shape::Document => ("misc", "howpublished"),
    };
    let mut entry = Entry { out };
    let _ = writeln!(entry.out, "@{kind}{{{},", citation.key());
    // In two pairs of braces, so that no style changes the case of names in it.
    entry.field("title", &format!("{{{}}}", tex(&citation.title)));
    if !citation.authors.is_empty() {
        let names: Vec<String> = citation.authors.iter().map(|name| person(name)).collect();
        entry.field("author", &names.join(" and "));
    }
    if let Some(name) = &citation.site {
        entry.field(site, &tex(name));
    }
    let date = citation.published_parts();
    if let Some(year) = date.first() {
        entry.field("year", &year.to_string());
    }
    if let Some(month) = date.get(1).and_then(|month| MONTHS.get(*month as usize - 1)) {
        // A word of BibTeX's own, so without braces.
        let _ = writeln!(entry.out, "  month = {month},");
    }
    if let Some(doi) = &citation.doi {
        entry.field("doi", &address(doi));
    }
    if let Some(url) = &citation.url {
        entry.field("url", &address(url));
    }
    if let Some(accessed) = citation.accessed {
        entry.field("urldate", &accessed.to_string());
    }
    if let Some(note) = &citation.note {
        entry.field("note", &tex(note));
    }
    entry.out.push_str("}\n\n");
}

struct Entry<'a> {
    out: &'a mut String,
}

impl Entry<'_> {
    /// Braces in the value are in pairs.
    fn field(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.out, "  {name} = {{{value}}},");
    }
}

/// A name that is read as one. Whatever could be read as several names, or as parts of another one, is put into braces.
fn person(name: &str) -> String {
    let text = tex(name);
    let is_joined = name.split_whitespace().any(|word| word.eq_ignore_ascii_case("and"));
    let is_many = name.eq_ignore_ascii_case("others");
    if is_joined || is_many || (name.contains(',') && family_first(name).is_none()) {
        return format!("{{{text}}}");
    }
    text
}

/// A text that TeX shows as it is. Braces are named, not escaped, because `BibTeX` counts escaped ones as well.
fn tex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        // Two of these are another sign in TeX.
        if before == Some(c) && matches!(c, '-' | '`' | '\'' | ',') {
            out.push_str("{}");
        }
        before = Some(c);
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' => out.push_str("\\textbraceleft{}"),
            '}' => out.push_str("\\textbraceright{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '$' | '&' | '#' | '%' | '_' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::exports::citation::tests::{HOSTILE, citation};

    fn written(citation: &Citation) -> String {
        let mut out = String::new();
        write(citation, &mut out);
        out
    }

    #[test]
    fn an_entry_has_what_is_known() {
        let article = Citation {
            authors: vec!["Moss, Ada".to_owned(), "Simon and Schuster".to_owned(), "A, B, C".to_owned()],
            site: Some("Journal of Bees".to_owned()),
            url: Some("https://example.org/a_b?c=50%25&d={e}".to_owned()),
            doi: Some("10.1000/a_b".to_owned()),
            published: NaiveDate::from_ymd_opt(2020, 3, 14),
            accessed: NaiveDate::from_ymd_opt(2026, 11, 18),
            note: Some("Retracted: 5 % were made up".to_owned()),
            ..citation("Bees & honey")
        };
        assert_eq!(
            written(&article),
            "@article{okt-00000000000000000000000000000007,\n  title = {{Bees \\& honey}},\n  \
             author = {Moss, Ada and {Simon and Schuster} and {A, B, C}},\n  journal = {Journal of Bees},\n  \
             year = {2020},\n  month = mar,\n  doi = {10.1000/a_b},\n  \
             url = {https://example.org/a_b?c=50%25&d=%7Be%7D},\n  urldate = {2026-11-18},\n  \
             note = {Retracted: 5 \\% were made up},\n}\n\n"
        );
        assert_eq!(
            written(&citation("x")),
            "@misc{okt-00000000000000000000000000000007,\n  title = {{x}},\n}\n\n"
        );
    }

    #[test]
    fn a_text_is_shown_as_it_is() {
        assert_eq!(
            tex("a\\b {c} 5 % -- ``d'' <e> f_g"),
            "a\\textbackslash{}b \\textbraceleft{}c\\textbraceright{} 5 \\% -{}- `{}`d'{}' \
             \\textless{}e\\textgreater{} f\\_g"
        );
    }

    #[test]
    fn no_value_ends_its_field() {
        for text in HOSTILE {
            let named = Citation {
                authors: vec![(*text).to_owned()],
                site: Some((*text).to_owned()),
                url: Some(format!("https://example.org/{text}")),
                doi: Some((*text).to_owned()),
                note: Some((*text).to_owned()),
                ..citation(text)
            };
            let entry = written(&named);
            let mut depth = 0;
            for (at, c) in entry.trim_end().char_indices() {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                assert!(depth > 0 || at + 1 == entry.trim_end().len() || at < 9, "{text}: {entry}");
            }
            assert_eq!(depth, 0, "{text}: {entry}");
            assert_eq!(entry.trim_end().lines().count(), 8, "{text}: {entry}");
        }
    }
}
