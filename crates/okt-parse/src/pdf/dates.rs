//! When a paper was published, as its first page says it.

use crate::clean;

/// What stands before such a date, best first. When it was received or accepted is not when it was published.
const LABELS: [&str; 12] = [
    "published online",
    "first published",
    "published",
    "publication date",
    "date of publication",
    "available online",
    "veröffentlicht",
    "erschienen",
    "publié",
    "issued",
    "dated",
    "date",
];

/// Between a label and its date.
const BETWEEN: usize = 12;

/// The day in the text of a first page, `2026-03-01`, or as much of it as is said; `below` are the paragraphs below its title.
pub fn published(page: &str, below: &[String]) -> Option<String> {
    let text = page.to_lowercase();
    labelled(&text)
        .or_else(|| stamp(&text))
        .or_else(|| below.iter().find_map(|paragraph| line(paragraph)))
        .or_else(|| copyright(&text))
}

/// The date of a paragraph that is nothing else.
pub fn line(paragraph: &str) -> Option<String> {
    let text = paragraph.trim().to_lowercase();
    let ends = text.ends_with(|c: char| c.is_ascii_digit());
    written(&text).filter(|_| ends && text.split_whitespace().count() <= 3)
}

fn labelled(text: &str) -> Option<String> {
    LABELS.iter().find_map(|label| {
        text.match_indices(label).find_map(|(at, _)| {
            let whole = !text[..at].ends_with(char::is_alphanumeric);
            let rest = &text[at + label.len()..];
            if !whole || rest.starts_with(char::is_alphanumeric) {
                return None;
            }
            let start = rest.find(|c: char| c.is_alphanumeric()).filter(|start| *start <= BETWEEN)?;
            let rest = rest[start..]
                .strip_prefix("on ")
                .or_else(|| rest[start..].strip_prefix("am "))
                .unwrap_or(&rest[start..]);
            let colon = rest.len() < text.len() && text[at + label.len()..].trim_start().starts_with(':');
            // `date` alone is a word like others.
            written(rest).filter(|_| colon || !matches!(*label, "date" | "dated" | "issued"))
        })
    })
}

/// `arXiv:2101.00001v2 [cs.CL] 12 Jan 2021`.
fn stamp(text: &str) -> Option<String> {
    let rest = &text[text.find("arxiv:")?..];
    let (_, rest) = rest.split_once(']')?;
    written(rest.trim_start())
}

/// `© 2024 The Authors`: the year alone.
fn copyright(text: &str) -> Option<String> {
    ["©", "(c)", "copyright"].iter().find_map(|sign| {
        text.match_indices(sign).find_map(|(at, _)| {
            let rest = text[at + sign.len()..].trim_start_matches(|c: char| !c.is_alphanumeric());
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            year(&rest[..digits]).map(|year| year.to_string())
        })
    })
}

/// The date that a text in lower case begins with: `23 may 2024`, `may 23, 2024`, `may 2024`, `2024-05-23`, `23.05.2024`.
pub fn written(text: &str) -> Option<String> {
    let head: String = text.chars().take(40).collect();
    let mut words = head.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let first = words.next()?;
    if let Some(date) = numbers(first) {
        return Some(date);
    }
    if first.len() == 10 && first.starts_with(['1', '2']) && first.as_bytes()[4] == b'-' {
        return clean::date(first);
    }
    let (second, third) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if let Some(day) = day(first) {
        return Some(format!("{}-{:02}-{day:02}", year(third)?, month(second)?));
    }
    let month = month(first)?;
    match (day(second), year(second)) {
        (Some(day), _) => Some(format!("{}-{month:02}-{day:02}", year(third)?)),
        (_, Some(year)) => Some(format!("{year}-{month:02}")),
        _ => None,
    }
}

/// `23.05.2024`; with slashes nobody knows which is the month.
fn numbers(word: &str) -> Option<String> {
    let mut parts = word.trim_end_matches('.').split('.');
    let (one, two, three) = (parts.next()?, parts.next()?, parts.next()?);
    let month: u32 = two.parse().ok().filter(|month| (1..=12).contains(month))?;
    Some(format!("{}-{month:02}-{:02}", year(three)?, day(one)?))
}

fn day(word: &str) -> Option<u32> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &word[digits..];
    let ordinal = matches!(rest, "" | "." | "st" | "nd" | "rd" | "th" | "º" | "er");
    word[..digits].parse().ok().filter(|day| ordinal && digits <= 2 && (1..=31).contains(day))
}

fn year(word: &str) -> Option<u32> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let ends = !word[digits..].starts_with(char::is_alphanumeric);
    word[..digits].parse().ok().filter(|year| ends && digits == 4 && (1500..2200).contains(year))
}

fn month(word: &str) -> Option<u32> {
    const NAMES: [&[&str]; 12] = [
        &["jan", "ene"],
        &["feb", "fév"],
        &["mar", "mär"],
        &["apr", "avr", "abr"],
        &["may", "mai"],
        &["jun", "juin"],
        &["jul", "juil"],
        &["aug", "août", "ago"],
        &["sep", "set"],
        &["oct", "okt", "out"],
        &["nov"],
        &["dec", "dez", "déc", "dic"],
    ];
    let word = word.trim_end_matches('.');
    if word.chars().count() > 10 || !word.chars().all(char::is_alphabetic) {
        return None;
    }
    let at = NAMES.iter().position(|names| names.iter().any(|name| word.starts_with(name)))?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_as_people_write_it() {
        for (text, date) in [
            ("Submitted: 03 April 2020 Published: 23 May 2024 License", Some("2024-05-23")),
            (
                "Received 1 March 2020; Accepted 2 May 2020; Published online May 9th, 2020",
                Some("2020-05-09"),
            ),
            ("Veröffentlicht am 3. März 2021", Some("2021-03-03")),
            ("Date: 23.05.2024", Some("2024-05-23")),
            ("Published 2024-05-23 by nobody", Some("2024-05-23")),
            ("First published March 2019", Some("2019-03")),
            ("arXiv:2101.00001v2 [cs.CL] 12 Jan 2021", Some("2021-01-12")),
            ("Copyright © 2018 by the authors", Some("2018")),
            ("Submitted: 03 April 2020, accepted in May 2020", None),
            ("the date of 12 May 2020 was kept", None),
            ("published by 17 authors in 4 countries", None),
        ] {
            assert_eq!(published(text, &[]).as_deref(), date, "{text}");
        }
    }

    #[test]
    fn a_line_below_the_title_can_be_the_date() {
        let below = ["Ada Moss".to_owned(), "January 3, 2024".to_owned()];
        assert_eq!(published("Copyright 2019", &below).as_deref(), Some("2024-01-03"));
        assert_eq!(line("3 May 2020 was a Sunday"), None);
        assert_eq!(line("12"), None);
    }
}
