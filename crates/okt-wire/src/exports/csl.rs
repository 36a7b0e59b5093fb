//! CSL-JSON, as citation processors and reference managers read it.

use chrono::{Datelike, NaiveDate};
use serde::Serialize;

use super::Citation;
use super::citation::{Shape, family_first};

#[derive(Serialize)]
struct Item<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    author: Vec<Name<'a>>,
    #[serde(rename = "container-title", skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accessed: Option<Date>,
    #[serde(rename = "DOI", skip_serializing_if = "Option::is_none")]
    doi: Option<&'a str>,
    #[serde(rename = "URL", skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Name<'a> {
    Parts { family: &'a str, given: &'a str },
    Whole { literal: &'a str },
}

#[derive(Serialize)]
struct Date {
    #[serde(rename = "date-parts")]
    parts: [Vec<u32>; 1],
}

pub(super) fn write(citation: &Citation, out: &mut String) {
    let kind = match citation.shape() {
        Shape::Article => "article-journal",
        Shape::Page => "webpage",
        Shape::Document => "document",
    };
    let names = citation.authors.iter().map(|name| match family_first(name) {
        Some((family, given)) => Name::Parts { family, given },
        // Which part of it is the family name is not known.
        None => Name::Whole { literal: name },
    });
    let published = citation.published_parts();
    let item = Item {
        id: citation.key(),
        kind,
        title: &citation.title,
        author: names.collect(),
        site: citation.site.as_deref(),
        issued: (!published.is_empty()).then_some(Date { parts: [published] }),
        accessed: citation.accessed.map(day),
        doi: citation.doi.as_deref(),
        url: citation.url.as_deref(),
        language: citation.language.as_deref(),
        note: citation.note.as_deref(),
    };
    // Of plain data, which always has a form in JSON.
    out.push_str(&serde_json::to_string(&item).unwrap_or_default());
}

fn day(date: NaiveDate) -> Date {
    Date { parts: [vec![u32::try_from(date.year()).unwrap_or(0), date.month(), date.day()]] }
}

#[cfg(test)]
mod tests {
    use okt_model::CitationFormat;
    use serde_json::{Value, json};

    use super::*;
    use crate::exports::CitationList;
    use crate::exports::citation::tests::{HOSTILE, citation};

    fn list(citations: &[Citation]) -> Value {
        let mut list = CitationList::new(CitationFormat::Csl);
        // In two pieces, as a long one comes.
        let (first, rest) = citations.split_at(citations.len() / 2);
        let text = format!("{}{}{}", list.add(first), list.add(rest), list.end());
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_list_is_one_of_any_length() {
        assert_eq!(list(&[]), json!([]));
        for count in 1..5 {
            assert_eq!(list(&vec![citation("x"); count]).as_array().unwrap().len(), count);
        }
        let all: Vec<Citation> = HOSTILE.iter().map(|text| citation(text)).collect();
        let read = list(&all);
        let titles: Vec<&str> =
            read.as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
        assert_eq!(titles, HOSTILE);
    }

    #[test]
    fn names_are_parted_only_where_they_say_how() {
        let authors = vec!["Moss, Ada".to_owned(), "Ada Moss".to_owned(), "A, B, C".to_owned()];
        let read = list(&[Citation { authors, ..citation("x") }]);
        assert_eq!(
            read[0]["author"],
            json!([{"family": "Moss", "given": "Ada"}, {"literal": "Ada Moss"}, {"literal": "A, B, C"}])
        );
    }
}
