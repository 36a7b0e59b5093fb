//! Where a text says what was asked for.

use std::ops::Range;

use crate::query::{Phrase, Query, Term};
use crate::words::{Word, first_unit, is_pair, words};

/// The bytes of a text that match the terms and phrases of a query, from left to right, none overlapping. A
/// phrase is one range, with the stop words inside it; so are the pairs of a script that is written without
/// spaces. A phrase is marked only where it stands as a whole. Texts are read in their own language, as they
/// are indexed.
pub fn highlights(text: &str, language: Option<&str>, query: &Query) -> Vec<Range<usize>> {
    let words = words(text, language);
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in &words {
        let terms = query.terms.iter().filter(|term| term.matches(&word.lexeme));
        found.extend(terms.map(|term| marked(text, word, term)));
    }
    for phrase in &query.phrases {
        found.extend((0..words.len()).filter_map(|at| phrase_at(text, &words[at..], phrase)));
    }
    merged(found)
}

/// A single character that was asked for is marked alone, not the pair that begins with it.
fn marked(text: &str, word: &Word, term: &Term) -> Range<usize> {
    let written = &text[word.range.clone()];
    let first = first_unit(written);
    let single =
        term.prefix && is_pair(written) && term.alternatives.iter().all(|it| first_unit(it) == it.len());
    if single { word.range.start..word.range.start + first } else { word.range.clone() }
}

/// The phrase that begins with the first of some words.
fn phrase_at(text: &str, words: &[Word], phrase: &Phrase) -> Option<Range<usize>> {
    let start = words.first()?;
    let mut end = 0;
    for (offset, term) in phrase {
        let position = start.position + offset;
        let word = words
            .iter()
            .take_while(|word| word.position <= position)
            .find(|word| word.position == position)?;
        end =
            Some(word).filter(|word| term.matches(&word.lexeme)).map(|word| marked(text, word, term).end)?;
    }
    (end > start.range.start).then_some(start.range.start..end)
}

/// Sorted, with one range for those that overlap or touch.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prefix;

    fn marked(text: &'static str, language: &str, asked: &str) -> Vec<&'static str> {
        let query = Query::parse(asked, &[language], Prefix::LastWord);
        highlights(text, Some(language), &query).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn words_are_marked_in_every_form() {
        assert_eq!(marked("Galaxies: a galaxy, and the Galactic.", "en", "galaxy "), ["Galaxies", "galaxy"]);
        assert_eq!(marked("Die Häuser am Haus.", "de", "häuser "), ["Häuser", "Haus"]);
        assert_eq!(marked("Gravitational waves", "en", "wav"), ["waves"]);
        assert!(marked("Nothing here", "en", "galaxy -nothing").is_empty());
        assert!(marked("", "en", "galaxy").is_empty());
    }

    #[test]
    fn a_phrase_is_marked_as_a_whole() {
        let text = "The speed of light; light speed. The speed with light and the speed.";
        assert_eq!(marked(text, "en", "\"speed of light\""), ["speed of light", "speed with light"]);
        assert_eq!(marked(text, "en", "\"light speed\""), ["light speed"]);
    }

    #[test]
    fn pairs_are_marked_together() {
        assert_eq!(marked("私は東京大学の学生です", "ja", "東京大学 "), ["東京大学"]);
        assert_eq!(marked("黒い猫は眠る", "ja", "猫 "), ["猫"]);
        assert_eq!(marked("北京大学在北京", "zh", "\"北京\""), ["北京", "北京"]);
    }
}
