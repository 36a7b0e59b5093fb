//! Words that are no concept and end one.

use std::collections::HashSet;
use std::sync::LazyLock;

static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("../../nouns/stop.txt").lines().filter(|line| !line.starts_with(['#', '=']));
    lines.flat_map(str::split_whitespace).collect()
});

/// Those that may begin a name.
static QUALITIES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines =
        include_str!("../../nouns/stop.txt").lines().skip_while(|line| !line.starts_with('=')).skip(1);
    lines.flat_map(str::split_whitespace).collect()
});

/// An adjective that is no part of a concept unless it has a capital: `New York`.
pub fn is_quality(word: &str) -> bool {
    QUALITIES.contains(word)
}

/// A word that holds sentences together, a numeral, a day or a month; in small letters.
pub fn is_stop(word: &str) -> bool {
    STOP.contains(word)
}

/// After these a noun is expected, also where it may be a verb.
pub fn announces_noun(word: &str) -> bool {
    matches!(
        word,
        "a" | "an"
            | "the"
            | "this"
            | "that"
            | "these"
            | "those"
            | "his"
            | "her"
            | "its"
            | "their"
            | "our"
            | "my"
            | "your"
            | "of"
            | "in"
            | "by"
            | "for"
            | "with"
            | "from"
            | "at"
            | "on"
            | "as"
            | "into"
            | "between"
            | "each"
            | "every"
            | "some"
            | "any"
            | "no"
            | "many"
            | "several"
            | "most"
            | "all"
            | "both"
            | "more"
            | "per"
            | "under"
            | "over"
            | "through"
            | "without"
            | "during"
            | "against"
            | "new"
            | "first"
            | "other"
            | "another"
            | "such"
            | "two"
            | "three"
            | "four"
            | "five"
            | "six"
    )
}

/// A month or a day of the week, which names dates and nothing else.
pub fn is_calendar(word: &str) -> bool {
    matches!(
        word,
        "monday"
            | "tuesday"
            | "wednesday"
            | "thursday"
            | "friday"
            | "saturday"
            | "sunday"
            | "january"
            | "february"
            | "march"
            | "april"
            | "may"
            | "june"
            | "july"
            | "august"
            | "september"
            | "october"
            | "november"
            | "december"
            | "jan"
            | "feb"
            | "mar"
            | "apr"
            | "jun"
            | "jul"
            | "aug"
            | "sep"
            | "sept"
            | "oct"
            | "nov"
            | "dec"
            | "bc"
            | "ad"
            | "bce"
            | "ce"
            | "am"
            | "pm"
            | "a.m."
            | "p.m."
            | "b.c."
            | "a.d."
            | "gmt"
            | "utc"
            | "est"
            | "pst"
            | "et"
    )
}
