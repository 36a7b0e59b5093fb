//! RIS: a line for each value, with two letters before it, from `TY  - ` to `ER  - `.

use super::{BadEntry, Reference, checked, label, row, values};
use crate::{ParseError, clean};

/// The list begins as one.
pub fn begins(head: &str) -> bool {
    head.lines().next().is_some_and(|line| matches!(tag(line), Some(("TY", _))))
}

pub fn is_in(head: &str) -> bool {
    head.lines().any(|line| matches!(tag(line), Some(("TY", _))))
}

pub fn read(text: &str) -> Result<Vec<Result<Reference, BadEntry>>, ParseError> {
    let mut rows = Vec::new();
    let mut count = 0;
    let mut open: Option<Entry> = None;
    let mut close = |entry: Option<Entry>| {
        let Some(entry) = entry else { return };
        count += 1;
        if count <= super::MOST_ENTRIES {
            rows.push(entry.read(count - 1));
        }
    };
    let end = if text.contains('\n') { '\n' } else { '\r' };
    for (line, text) in (1..).zip(text.split(end)) {
        match (tag(text), &mut open) {
            (Some(("TY", _)), _) => {
                // Whoever forgets the end of an entry still means the next one to be one.
                close(open.take());
                open = Some(Entry { line, typed: true, values: Vec::new() });
            }
            (Some(("ER", _)), _) => close(open.take()),
            (Some((tag, value)), Some(entry)) => entry.values.push((tag, value.to_owned())),
            (Some((tag, value)), None) => {
                open = Some(Entry { line, typed: false, values: vec![(tag, value.to_owned())] });
            }
            (None, Some(entry)) => {
                if let Some((_, value)) = entry.values.last_mut() {
                    value.push(' ');
                    value.push_str(text.trim());
                }
            }
            // Notes before, between and behind the entries.
            (None, None) => {}
        }
    }
    close(open);
    checked(count)?;
    Ok(rows)
}

/// Two letters, or a letter and a digit, and the value behind the hyphen.
fn tag(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches([' ', '\t', '\u{feff}']);
    let (tag, rest) = line.split_at_checked(2)?;
    let [first, second] = tag.as_bytes() else { return None };
    let sound = first.is_ascii_uppercase() && (second.is_ascii_uppercase() || second.is_ascii_digit());
    let value = rest.strip_prefix(' ')?.trim_start_matches(' ').strip_prefix('-')?;
    (sound && (value.is_empty() || value.starts_with([' ', '\t']))).then(|| (tag, value.trim()))
}

struct Entry<'t> {
    line: usize,
    typed: bool,
    values: Vec<(&'t str, String)>,
}

impl Entry<'_> {
    fn read(self, place: usize) -> Result<Reference, BadEntry> {
        let label = label(self.first(&["ID"]).unwrap_or_default(), place);
        if !self.typed {
            let message = "it does not begin with a line such as “TY  - JOUR”; add one".to_owned();
            return Err(BadEntry { label, line: self.line, message });
        }
        let url = self.all(&["UR", "LK", "L1", "L2"]).find_map(values::address);
        let database = self.first(&["DB"]).unwrap_or_default().to_ascii_lowercase();
        let in_pubmed = database.contains("pubmed") || database.contains("medline");
        let number = self.first(&["AN"]).filter(|_| in_pubmed).and_then(values::pmid);
        let reference = Reference {
            label,
            title: self.first(&["TI", "T1", "CT", "BT", "ST"]).and_then(values::title),
            author: self.authors(&["AU", "A1"]).or_else(|| self.authors(&["A2", "ED"])),
            published_at: self.published(),
            doi: self
                .all(&["DO", "DI"])
                .find_map(clean::doi)
                .or_else(|| clean::doi(url.as_deref()?))
                .or_else(|| self.all(&["M3", "L3"]).find_map(clean::doi)),
            arxiv: self.all(&["M1", "AN", "JO", "JF", "JA", "T2", "N1", "PB"]).find_map(values::arxiv_in),
            pmid: number.or_else(|| self.all(&["AN", "N1", "C2"]).find_map(values::pmid_in)),
            url,
        };
        row(reference, self.line)
    }

    /// The values of the first tag that has any, then of the next.
    fn all<'e>(&'e self, tags: &'e [&str]) -> impl Iterator<Item = &'e str> {
        tags.iter().flat_map(|tag| {
            self.values.iter().filter(move |(name, _)| name == tag).map(|(_, value)| value.as_str())
        })
    }

    fn first<'e>(&'e self, tags: &'e [&str]) -> Option<&'e str> {
        self.all(tags).find(|value| !value.trim().is_empty())
    }

    fn authors(&self, tags: &[&str]) -> Option<String> {
        values::authors(self.all(tags).map(|name| {
            let parts: Vec<&str> = name.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            match parts[..] {
                // Unlike in BibTeX, what comes last is `Jr.`.
                [last, first, suffix, ..] => values::turned(&[last, suffix, first]),
                _ => values::turned(&parts),
            }
        }))
    }

    /// The year is the one of `PY` or `Y1`; the day may stand in `DA`, with or without it.
    fn published(&self) -> Option<String> {
        let dates = || self.all(&["PY", "Y1", "DA"]).filter_map(values::date_in);
        let year = dates().next()?.get(..4)?.to_owned();
        let best = dates().filter(|date| date.starts_with(&year)).max_by_key(String::len)?;
        if best.len() > 4 {
            return Some(best);
        }
        let (month, day) = self.first(&["DA"]).map(values::month_in).unwrap_or_default();
        values::date(year.parse().ok()?, month, day)
    }
}
