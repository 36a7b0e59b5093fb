//! CSL-JSON: an array of entries, an object with one, or a single entry.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{BadEntry, DEEPEST, Lines, Reference, checked, label, row, values};
use crate::{ParseError, clean};

/// Types that only a list of references has, or that are seldom seen elsewhere.
const KINDS: [&str; 22] = [
    "article",
    "article-journal",
    "article-magazine",
    "article-newspaper",
    "bill",
    "book",
    "chapter",
    "dataset",
    "entry-encyclopedia",
    "journal-article",
    "legal_case",
    "manuscript",
    "paper-conference",
    "patent",
    "periodical",
    "post",
    "post-weblog",
    "report",
    "software",
    "speech",
    "thesis",
    "webpage",
];

/// Fields of which a list without a name has one, so that not every object with a type is taken for one.
const FIELDS: [&str; 6] =
    ["\"DOI\"", "\"URL\"", "\"issued\"", "\"container-title\"", "\"author\"", "\"publisher\""];

pub fn is_in(head: &str, said: bool) -> bool {
    if !head.starts_with(['[', '{']) {
        return false;
    }
    said || (head.split("\"type\"").skip(1).any(is_kind) && FIELDS.iter().any(|field| head.contains(field)))
}

fn is_kind(behind: &str) -> bool {
    let value = behind.trim_start().strip_prefix(':').map(str::trim_start);
    value
        .and_then(|value| value.strip_prefix('"')?.split('"').next())
        .is_some_and(|kind| KINDS.contains(&kind))
}

#[derive(Deserialize)]
struct Wrapped<'t> {
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

pub fn read(text: &str) -> Result<Vec<Result<Reference, BadEntry>>, ParseError> {
    if is_deep(text) {
        return Err(ParseError::TooMuch(format!("its brackets are nested more than {DEEPEST} deep")));
    }
    let damaged = |error: serde_json::Error| ParseError::Damaged(format!("it is not valid JSON: {error}"));
    let elements: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(damaged)?
    } else {
        match serde_json::from_str::<Wrapped>(text).map_err(damaged)?.items {
            Some(items) => items,
            None => vec![serde_json::from_str(text).map_err(damaged)?],
        }
    };
    checked(elements.len())?;
    let mut lines = Lines::new(text);
    let rows = elements.iter().enumerate().map(|(place, element)| {
        let start = element.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        entry(element.get(), place, lines.of(start))
    });
    Ok(rows.collect())
}

fn is_deep(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

fn entry(text: &str, place: usize, line: usize) -> Result<Reference, BadEntry> {
    let bad = |message: String| BadEntry { label: label("", place), line, message };
    let element: Value =
        serde_json::from_str(text).map_err(|error| bad(format!("it is not valid JSON: {error}")))?;
    let Value::Object(fields) = &element else {
        let kind = match element {
            Value::Null => "nothing",
            Value::Bool(_) => "a truth value",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            _ => "a list",
        };
        return Err(bad(format!("there is {kind} where an object with a title or a DOI is expected")));
    };
    let get = |name: &str| fields.get(name).and_then(written);
    let url = get("URL").and_then(|url| values::address(&url));
    let note = get("note").unwrap_or_default();
    let at_arxiv = ["archive", "publisher", "source"]
        .iter()
        .any(|name| get(name).is_some_and(|value| value.to_ascii_lowercase().contains("arxiv")));
    let numbers = ["number", "archive_location", "archive-location"];
    let arxiv = numbers
        .iter()
        .filter_map(|name| get(name))
        .find_map(|value| if at_arxiv { values::arxiv(&value) } else { values::arxiv_in(&value) })
        .or_else(|| get("container-title").and_then(|value| values::arxiv_in(&value)))
        .or_else(|| values::arxiv_in(&note));
    let reference = Reference {
        label: label(&get("id").or_else(|| get("citation-key")).unwrap_or_default(), place),
        title: get("title").and_then(|title| values::title(&plain(&title))),
        author: fields.get("author").and_then(people).or_else(|| fields.get("editor").and_then(people)),
        published_at: fields.get("issued").and_then(published),
        doi: get("DOI").and_then(|doi| clean::doi(&doi)).or_else(|| clean::doi(url.as_deref()?)),
        url,
        arxiv,
        pmid: get("PMID").and_then(|number| values::pmid(&number)).or_else(|| values::pmid_in(&note)),
    };
    row(reference, line)
}

/// Numbers are written with and without quotation marks; a title may be a list of one.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(values) => values.first().and_then(Value::as_str).map(str::to_owned),
        _ => None,
    }
}

/// Without the few tags that titles may have.
fn plain(title: &str) -> String {
    let mut out = String::with_capacity(title.len());
    let mut rest = title;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest[1..].trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len())];
        let known =
            matches!(name.to_ascii_lowercase().as_str(), "i" | "b" | "sub" | "sup" | "sc" | "em" | "span");
        // A tag is short and has no other within it, or it is none.
        let longest = if known { 200 } else { 0 };
        let end = rest.char_indices().take(longest).skip(1).find(|(_, c)| matches!(c, '<' | '>'));
        let end = end.filter(|(_, c)| *c == '>');
        if end.is_none() {
            out.push('<');
        }
        rest = &rest[end.map_or(1, |(end, _)| end + 1)..];
    }
    out + rest
}

fn people(value: &Value) -> Option<String> {
    let text = |person: &Value, name: &str| person.get(name).and_then(Value::as_str).map(str::to_owned);
    values::authors(value.as_array()?.iter().filter_map(|person| {
        if let Some(name) = person.as_str() {
            return Some(name.to_owned());
        }
        let parts = ["given", "dropping-particle", "non-dropping-particle", "family", "suffix"];
        let name: Vec<String> = parts.iter().filter_map(|part| text(person, part)).collect();
        if name.is_empty() {
            text(person, "literal").or_else(|| text(person, "name"))
        } else {
            Some(name.join(" "))
        }
    }))
}

fn published(issued: &Value) -> Option<String> {
    if let Some(parts) = issued.pointer("/date-parts/0").and_then(Value::as_array) {
        let part = |at: usize| written(parts.get(at)?)?.trim().parse::<u32>().ok();
        if let Some(date) = part(0).and_then(|year| values::date(year, part(1), part(2))) {
            return Some(date);
        }
    }
    let said = ["raw", "literal"].iter().filter_map(|name| issued.get(name));
    said.chain([issued]).filter_map(written).find_map(|text| values::date_in(&text))
}
