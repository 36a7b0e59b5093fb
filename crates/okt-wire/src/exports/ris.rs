//! RIS: a line for each value, which begins with a tag.

use std::fmt::Write;

use super::Citation;
use super::citation::{Shape, address};

pub(super) fn write(citation: &Citation, out: &mut String) {
    let kind = match citation.shape() {
        Shape::Article => "JOUR",
        Shape::Page => "ELEC",
        Shape::Document => "GEN",
    };
    // No value has a line break, so none can begin a line of its own.
    let mut tag = |tag: &str, value: &str| {
        let _ = write!(out, "{tag}  - {value}\r\n");
    };
    tag("TY", kind);
    tag("ID", &citation.key());
    tag("TI", &citation.title);
    for name in &citation.authors {
        tag("AU", name);
    }
    if let Some(site) = &citation.site {
        tag("T2", site);
    }
    let date = citation.published_parts();
    if let Some(year) = date.first() {
        tag("PY", &format!("{year:04}"));
        let part = |at: usize| date.get(at).map_or(String::new(), |part| format!("{part:02}"));
        tag("DA", &format!("{year:04}/{}/{}/", part(1), part(2)));
    }
    if let Some(doi) = &citation.doi {
        tag("DO", doi);
    }
    if let Some(url) = &citation.url {
        tag("UR", &address(url));
    }
    if let Some(accessed) = citation.accessed {
        tag("Y2", &accessed.format("%Y/%m/%d/").to_string());
    }
    if let Some(language) = &citation.language {
        tag("LA", language);
    }
    if let Some(note) = &citation.note {
        tag("N1", note);
    }
    out.push_str("ER  - \r\n\r\n");
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::exports::citation::tests::{HOSTILE, citation};

    #[test]
    fn an_entry_has_what_is_known() {
        let article = Citation {
            authors: vec!["Moss, Ada".to_owned(), "Ben Ode".to_owned()],
            site: Some("Journal of Bees".to_owned()),
            url: Some("https://example.org/a b".to_owned()),
            doi: Some("10.1000/182".to_owned()),
            published: NaiveDate::from_ymd_opt(2020, 3, 1),
            accessed: NaiveDate::from_ymd_opt(2026, 11, 18),
            language: Some("en".to_owned()),
            note: Some("Retracted".to_owned()),
            ..citation("Bees")
        };
        let mut out = String::new();
        write(&article, &mut out);
        assert_eq!(
            out,
            "TY  - JOUR\r\nID  - okt-00000000000000000000000000000007\r\nTI  - Bees\r\nAU  - Moss, Ada\r\n\
             AU  - Ben Ode\r\nT2  - Journal of Bees\r\nPY  - 2020\r\nDA  - 2020/03//\r\nDO  - 10.1000/182\r\n\
             UR  - https://example.org/a%20b\r\nY2  - 2026/11/18/\r\nLA  - en\r\nN1  - Retracted\r\nER  - \r\n\r\n"
        );
    }

    #[test]
    fn no_value_begins_a_line() {
        for text in HOSTILE {
            let mut out = String::new();
            write(&citation(&crate::exports::line(&format!("a\r\n{text}\u{2028}b\u{0}"))), &mut out);
            assert_eq!(out.lines().count(), 5, "{text}: {out}");
            assert_eq!(out.matches("\nER  - ").count(), 1, "{text}: {out}");
        }
    }
}
