//! `BibTeX` and `BibLaTeX`. The text is cut into entries first, so that a brace that nobody closed costs one entry.

mod cut;

use std::collections::HashMap;

use super::{BadEntry, DEEPEST, Lines, Reference, checked, label, latex, row, values};
use crate::{ParseError, clean};
use cut::{Cut, Wrong};

/// Of one field with all that is put into it, in bytes; what is kept of it is shorter.
const LONGEST_FIELD: usize = 16 * 1024;

/// Of one `@string`, in bytes.
const LONGEST_STRING: usize = 4 * 1024;

/// What is read of an entry.
const FIELDS: [&str; 22] = [
    "title",
    "author",
    "editor",
    "date",
    "year",
    "month",
    "day",
    "doi",
    "url",
    "eprint",
    "eprinttype",
    "archiveprefix",
    "pmid",
    "howpublished",
    "note",
    "journal",
    "volume",
    "booktitle",
    "annote",
    "subtitle",
    "journaltitle",
    "number",
];

/// Types of entries that a text which is not called a list may begin with.
const KINDS: [&str; 24] = [
    "article",
    "book",
    "booklet",
    "collection",
    "comment",
    "conference",
    "dataset",
    "inbook",
    "incollection",
    "inproceedings",
    "manual",
    "mastersthesis",
    "misc",
    "online",
    "patent",
    "phdthesis",
    "preamble",
    "proceedings",
    "report",
    "software",
    "string",
    "techreport",
    "thesis",
    "unpublished",
];

pub fn is_in(head: &str, said: bool) -> bool {
    let mut lines =
        head.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('%'));
    let begins = |line: &str, known: bool| {
        cut::opening(line)
            .is_some_and(|(kind, _)| !known || KINDS.contains(&kind.to_ascii_lowercase().as_str()))
    };
    if said {
        lines.any(|line| begins(line, false))
    } else {
        lines.next().is_some_and(|line| begins(line, true))
    }
}

pub fn read(text: &str) -> Result<Vec<Result<Reference, BadEntry>>, ParseError> {
    let mut strings = HashMap::new();
    let mut lines = Lines::new(text);
    let mut rows = Vec::new();
    let mut count = 0;
    for Cut { kind, start, body } in cut::cut(text) {
        let kind = kind.to_ascii_lowercase();
        if kind == "comment" || kind == "preamble" {
            continue;
        }
        if kind == "string" {
            if let Ok(body) = body {
                define(body, &mut strings);
            }
            continue;
        }
        count += 1;
        if count <= super::MOST_ENTRIES {
            rows.push(entry(&body, count - 1, lines.of(start), &strings));
        }
    }
    checked(count)?;
    Ok(rows)
}

type Strings = HashMap<String, String>;

fn define(body: &str, strings: &mut Strings) {
    // What can't be read is as if nobody had defined it.
    let Ok(fields) = cut::fields(body) else { return };
    for (name, pieces) in fields {
        let value = joined(&pieces, strings, LONGEST_STRING);
        strings.insert(name.to_ascii_lowercase(), value);
    }
}

fn joined(pieces: &[cut::Piece], strings: &Strings, longest: usize) -> String {
    let mut out = String::new();
    for piece in pieces {
        let text = match piece {
            cut::Piece::Text(text) => text,
            // Names of months are known to everybody, and an unknown name tells more than nothing.
            cut::Piece::Name(name) => strings.get(&name.to_ascii_lowercase()).map_or(*name, String::as_str),
        };
        let mut end = text.len().min(longest - out.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        out.push_str(&text[..end]);
        if end < text.len() {
            break;
        }
    }
    out
}

fn entry(
    body: &Result<&str, Wrong>,
    place: usize,
    line: usize,
    strings: &Strings,
) -> Result<Reference, BadEntry> {
    let bad = |label: String, message: String| BadEntry { label, line, message };
    let body = match body {
        Ok(body) => body,
        Err(Wrong::Open(start)) => {
            let key = cut::key(start).0;
            let message = "a brace or a quotation mark in it is never closed; close it".to_owned();
            return Err(bad(label(key, place), message));
        }
        Err(Wrong::Deep(start)) => {
            let message = format!("its braces are nested more than {DEEPEST} deep; take some out");
            return Err(bad(label(cut::key(start).0, place), message));
        }
    };
    let (key, rest) = cut::key(body);
    let label = label(key, place);
    let fields = cut::fields(rest).map_err(|message| bad(label.clone(), message))?;
    let mut known: HashMap<&str, String> = HashMap::new();
    for (name, pieces) in fields {
        let name = name.to_ascii_lowercase();
        // As BibTeX does, of two fields of one name the first counts.
        if let Some(name) = FIELDS.iter().find(|known| **known == name) {
            known.entry(name).or_insert_with(|| joined(&pieces, strings, LONGEST_FIELD));
        }
    }
    row(reference(label, &known), line)
}

fn reference(label: String, fields: &HashMap<&str, String>) -> Reference {
    let raw = |name: &str| fields.get(name).map(String::as_str).filter(|value| !value.trim().is_empty());
    let exact = |name: &str| raw(name).map(latex::verbatim);
    let title = raw("title").map(latex::text);
    let title = match (title, raw("subtitle").map(latex::text)) {
        (Some(title), Some(subtitle)) => Some(format!("{title}: {subtitle}")),
        (title, subtitle) => title.or(subtitle),
    };
    let doi = exact("doi");
    let url = ["url", "howpublished", "note", "annote"]
        .iter()
        .find_map(|name| exact(name).and_then(|value| values::address(&value)));
    let archive = exact("archiveprefix").or_else(|| exact("eprinttype")).unwrap_or_default();
    let archive = archive.trim().to_ascii_lowercase();
    let eprint = exact("eprint");
    let arxiv = eprint.as_deref().filter(|_| matches!(&*archive, "" | "arxiv")).and_then(values::arxiv);
    let arxiv = arxiv
        .or_else(|| {
            let places = ["journal", "journaltitle", "howpublished", "note", "number", "volume", "booktitle"];
            places.iter().find_map(|name| exact(name).and_then(|value| values::arxiv_in(&value)))
        })
        // How one large catalogue of computer science names papers of arXiv.
        .or_else(|| exact("volume").and_then(|volume| values::arxiv(volume.strip_prefix("abs/")?)));
    let pmid = exact("pmid")
        .or(eprint.filter(|_| matches!(&*archive, "pubmed" | "pmid")))
        .and_then(|number| values::pmid(&number))
        .or_else(|| exact("note").and_then(|note| values::pmid_in(&note)));
    Reference {
        label,
        title: title.and_then(|title| values::title(&title)),
        author: raw("author").and_then(authors).or_else(|| raw("editor").and_then(authors)),
        published_at: published(&raw),
        doi: doi.and_then(|doi| clean::doi(&doi)).or_else(|| clean::doi(url.as_deref()?)),
        url,
        arxiv,
        pmid,
    }
}

fn published<'f>(raw: &impl Fn(&str) -> Option<&'f str>) -> Option<String> {
    if let Some(date) = raw("date").and_then(|date| values::date_in(&latex::verbatim(date))) {
        return Some(date);
    }
    let year = latex::text(raw("year")?);
    let Some(month) = raw("month").map(latex::text) else { return values::date_in(&year) };
    let (month, day) = values::month_in(&month);
    let written = raw("day").and_then(|day| latex::text(day).trim().parse().ok());
    values::date(values::year_in(&year)?, month, written.or(day))
}

/// Names with `and` between them, in which braces keep together what belongs together.
fn authors(source: &str) -> Option<String> {
    let words = outside(source, char::is_whitespace);
    let people = words.split(|word| word.eq_ignore_ascii_case("and"));
    values::authors(people.filter_map(|words| {
        let name = words.join(" ");
        let parts: Vec<String> =
            outside(&name, |c| c == ',').iter().map(|part| latex::text(part).trim().to_owned()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let said = |name: &str| {
            parts
                .iter()
                .find_map(|part| part.strip_prefix(name)?.trim_start().strip_prefix('='))
                .map(str::trim)
        };
        if let Some(family) = said("family") {
            let names = [said("given"), said("prefix"), Some(family), said("suffix")];
            return Some(names.into_iter().flatten().collect::<Vec<_>>().join(" "));
        }
        (parts != ["others"]).then(|| values::turned(&parts))
    }))
}

/// The parts of a text between signs that no braces hold.
fn outside(text: &str, is_sign: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 && is_sign(c) => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}
