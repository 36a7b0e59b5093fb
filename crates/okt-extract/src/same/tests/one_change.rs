//! Facts of real texts, each with one change that makes another fact of it: none is the same any more.
//!
//! The short form takes facts of the project's own articles and of its tests. `OKT_ONE_CHANGE=FILE`, with one fact on each line, is the long one:
//! `OKT_ONE_CHANGE=… cargo nextest run --workspace --no-capture -E 'test(one_change)'`.

use std::collections::BTreeMap;

use super::super::*;
use crate::{Text, extractive};

const ARTICLES: [&str; 3] = [
    include_str!("../../../../okt-testkit/tests/it/facts/articles/honey.txt"),
    include_str!("../../../../okt-testkit/tests/it/facts/articles/lighthouse.txt"),
    include_str!("../../../../okt-testkit/tests/it/facts/articles/tides.txt"),
];

const HEDGES: [&str; 5] = ["allegedly", "probably", "almost", "reportedly", "perhaps"];
const NEGATIONS: [&str; 3] = ["not", "never", "hardly"];
const TENSES: [(&str, &str); 16] = [
    ("is", "was"),
    ("was", "is"),
    ("are", "were"),
    ("were", "are"),
    ("has", "had"),
    ("have", "had"),
    ("had", "has"),
    ("will", "would"),
    ("would", "will"),
    ("can", "could"),
    ("could", "can"),
    ("is", "will be"),
    ("was", "will be"),
    ("does", "did"),
    ("makes", "made"),
    ("said", "says"),
];

fn facts() -> Vec<String> {
    if let Ok(file) = std::env::var("OKT_ONE_CHANGE") {
        return std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    }
    let place = |place: u32| i32::try_from(place).unwrap();
    let facts = ARTICLES.iter().flat_map(|article| {
        let offsets = okt_parse::sentences(article, Some("en"));
        let offsets: Vec<(i32, i32)> =
            offsets.into_iter().map(|(start, end)| (place(start), place(end))).collect();
        extractive::extract(&Text::new(article, &offsets), Some("en")).facts
    });
    let written = super::pairs(super::SAME).map(|[_, fact, _]| fact.to_owned());
    facts.map(|fact| fact.text).chain(written).collect()
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word is a name, as far as that can be seen.
fn is_name(at: usize, word: &str) -> bool {
    at > 0 && bare(word).chars().next().is_some_and(char::is_uppercase) && bare(word).chars().count() > 2
}

fn with(words: &[&str], at: usize, instead: &str) -> String {
    let changed = words[at].replacen(bare(words[at]), instead, 1);
    let mut words = words.to_vec();
    words[at] = &changed;
    words.join(" ")
}

/// Every fact that one change makes of a text, by the kind of change.
fn changes(text: &str) -> Vec<(&'static str, String)> {
    let words: Vec<&str> = text.split(' ').collect();
    let mut changed = Vec::new();
    for at in 1..words.len() {
        let insert = |word: &str| [&words[..at], &[word], &words[at..]].concat().join(" ");
        changed.extend(HEDGES.map(|word| ("hedge", insert(word))));
        changed.extend(NEGATIONS.map(|word| ("negation", insert(word))));
    }
    let names: Vec<usize> = (0..words.len()).filter(|at| is_name(*at, words[*at])).collect();
    for (n, &at) in names.iter().enumerate() {
        changed.push(("name", with(&words, at, "Ardwick")));
        // The two change places: who did it, and to whom.
        for &other in &names[n + 1..] {
            let (one, two) = (bare(words[at]), bare(words[other]));
            let listed = |word: &&str| ["and", "or"].contains(&bare(word)) || is_name(1, word);
            let beside = words[at + 1..other].iter().all(listed);
            if one != two && !beside {
                let half = with(&words, at, two);
                let half: Vec<&str> = half.split(' ').collect();
                changed.push(("roles", with(&half, other, one)));
            }
        }
    }
    for (at, word) in words.iter().enumerate() {
        if let Ok(number) = bare(word).replace(',', "").parse::<u64>() {
            changed.push(("number", with(&words, at, &(number + 1).to_string())));
            changed.push(("number", with(&words, at, &(number * 10 + 3).to_string())));
        }
        let tenses = TENSES.iter().filter(|(from, _)| *from == *word);
        changed.extend(tenses.map(|(_, to)| ("tense", with(&words, at, to))));
    }
    changed.retain(|(_, other)| other != text);
    changed
}

#[test]
fn one_change_makes_another_fact() {
    let facts = facts();
    assert!(facts.len() >= 50, "{}", facts.len());
    // Pairs, and of them those that differ in no way that has a name.
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut merged = Vec::new();
    for fact in &facts {
        for (kind, other) in changes(fact) {
            let count = counts.entry(kind).or_default();
            count.0 += 1;
            if let Some(by) = same_fact(fact, &other) {
                merged.push(format!("{kind} {by:?}: {fact} | {other}"));
            } else if guard::compare(fact, &other) == Sameness::Same {
                count.1 += 1;
            }
        }
    }
    println!("{} facts, pairs and those without a named difference: {counts:?}", facts.len());
    assert_eq!(counts.len(), 6, "{counts:?}");
    assert!(merged.is_empty(), "{} were merged:\n{}", merged.len(), merged.join("\n"));
}
