//! Two that stand side by side in any order: between Peru and Bolivia, from nitrogen and hydrogen.

use super::Reading;
use super::tables::{Language, list};
use super::words::{Kind, Token};

/// No name of one thing has more words.
const MOST_WORDS: usize = 3;

/// Which words of the first text stand in a pair that the other has the other way round.
pub fn turned(a: &Reading, b: &Reading, language: &Language) -> Vec<usize> {
    let (links_a, links_b) = (links(a, language), links(b, language));
    // Spain and Portugal won 5 and 10: the order says which.
    if [a, b].into_iter().any(|text| is_in_order(text, language)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for &at in &links_a {
        for &other in &links_b {
            if let Some((before, after)) = turned_around((a, at), (b, other), language) {
                found.extend((at - before..at).chain(at + 1..=at + after));
            }
        }
    }
    found
}

fn links(text: &Reading, language: &Language) -> Vec<usize> {
    let is = |token: &Token| is_and(token) && language.has(list::LINKS, &token.text);
    (0..text.tokens.len()).filter(|at| is(&text.tokens[*at])).collect()
}

fn is_and(token: &Token) -> bool {
    let word = matches!(
        token.text.as_str(),
        "and" | "or" | "y" | "o" | "u" | "e" | "et" | "ou" | "und" | "oder" | "en" | "of"
    );
    token.is_word() && word
}

/// Two numbers side by side, or a word that says that the order counts.
fn is_in_order(text: &Reading, language: &Language) -> bool {
    let words = [
        "respectively",
        "respectivamente",
        "respectivement",
        "rispettivamente",
        "jeweils",
        "beziehungsweise",
    ];
    let amount = |at: Option<usize>| at.is_some_and(|at| is_amount(text, at));
    let ranged = |at: usize| at.checked_sub(2).is_some_and(|before| is_between(&text.tokens[before]));
    words.iter().any(|word| text.has(word))
        || links(text, language)
            .iter()
            .any(|&at| amount(at.checked_sub(1)) && amount(Some(at + 1)) && !ranged(at))
}

fn is_amount(text: &Reading, at: usize) -> bool {
    matches!(text.tokens.get(at).map(|token| &token.kind), Some(Kind::Amount(_) | Kind::Date(_)))
}

/// Whether a list of things is in another order, and the list of their numbers is not, or the other way round.
pub fn change_order(a: &Reading, b: &Reading, shared: &[(usize, usize)], language: &Language) -> bool {
    if ![a, b].into_iter().all(|text| is_in_order(text, language)) {
        return false;
    }
    let (of_a, of_b) = (links(a, language), links(b, language));
    let in_list = |text: &Reading, links: &[usize], at: usize| {
        let parts = |at: usize| links.contains(&at) || text.tokens.get(at).is_some_and(|token| token.is(","));
        parts(at + 1) || at.checked_sub(1).is_some_and(parts)
    };
    let listed = shared.iter().filter(|(one, other)| in_list(a, &of_a, *one) && in_list(b, &of_b, *other));
    let (amounts, words): (Vec<_>, Vec<_>) = listed.copied().partition(|(one, _)| is_amount(a, *one));
    let turned = |places: &[(usize, usize)]| {
        places.iter().any(|one| places.iter().any(|other| one.0 < other.0 && one.1 > other.1))
    };
    amounts.len() > 1 && words.len() > 1 && turned(&amounts) != turned(&words)
}

/// How many words there are on both sides of the link in the first text, if the other has them the other way round.
fn turned_around(
    (a, at): (&Reading, usize),
    (b, other): (&Reading, usize),
    language: &Language,
) -> Option<(usize, usize)> {
    let stems = |text: &Reading, from: usize, to: usize| -> Option<Vec<String>> {
        let tokens = text.tokens.get(from..to)?;
        let all = tokens.iter().all(|token| matches!(token.kind, Kind::Word | Kind::Code));
        all.then(|| tokens.iter().map(|token| token.stem.clone()).collect())
    };
    let sizes = (1..=MOST_WORDS).flat_map(|before| (1..=MOST_WORDS).map(move |after| (before, after)));
    sizes.into_iter().find(|&(before, after)| {
        let (Some(start_a), Some(start_b)) = (at.checked_sub(before), other.checked_sub(after)) else {
            return false;
        };
        let (end_a, end_b) = (at + after + 1, other + before + 1);
        let first = stems(a, start_a, at).zip(stems(b, other + 1, end_b));
        let last = stems(a, at + 1, end_a).zip(stems(b, start_b, other));
        let same =
            first.is_some_and(|(one, other)| one == other) && last.is_some_and(|(one, other)| one == other);
        same && is_list((a, start_a, end_a), language) && is_list((b, start_b, end_b), language)
    })
}

/// Whether these are two things, and not the end of one clause and the beginning of the next.
fn is_list((text, start, end): (&Reading, usize, usize), language: &Language) -> bool {
    let tokens = &text.tokens;
    let breaks = |token: &Token| matches!(token.kind, Kind::Mark | Kind::Date(_));
    let article =
        |token: &Token| token.is_word() && language.has(list::SMALL, &token.text) && !is_between(token);
    let before = start.checked_sub(1).map(|at| &tokens[at]);
    let before = match before {
        Some(token) if article(token) && !language.has(list::PREPOSITIONS, &token.text) => {
            start.checked_sub(2).map(|at| &tokens[at])
        }
        other => other,
    };
    let opens = before.is_none_or(|token| breaks(token) || is_between(token));
    let closes = tokens.get(end).is_none_or(|token| {
        breaks(token) || (token.is_word() && language.has(list::PREPOSITIONS, &token.text))
    });
    opens || closes
}

fn is_between(token: &Token) -> bool {
    matches!(token.text.as_str(), "between" | "entre" | "zwischen" | "tra" | "fra" | "tussen")
}
