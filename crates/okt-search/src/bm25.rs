//! BM25 as Lucene computes it, and the term frequencies that it needs, read from a tsvector.

use std::iter::Peekable;
use std::str::Chars;

use crate::query::Term;
use crate::tsquery::scoped;

/// How many texts there are, and how many words they have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    pub documents: u64,
    pub words: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// How soon a repeated word stops counting.
    pub k1: f64,
    /// How much a long text is held against it.
    pub b: f64,
}

impl Bm25 {
    /// Sentences, which are about equally long.
    pub const FACTS: Self = Self { k1: 0.9, b: 0.4 };
    /// Passages and documents.
    pub const PASSAGES: Self = Self { k1: 1.2, b: 0.75 };

    /// The score of a text of so many words, from how often each term is in it and how many texts have that
    /// term. Without the constant factor `k1 + 1`, which changes no order.
    pub fn score(self, statistics: Statistics, terms: &[(u32, u64)], length: u64) -> f64 {
        let average = float(statistics.words) / float(statistics.documents.max(1));
        let relative = if average > 0.0 { float(length) / average } else { 1.0 };
        let saturation = self.k1 * (1.0 - self.b + self.b * relative);
        let scores = terms.iter().filter(|(frequency, _)| *frequency > 0).map(|(frequency, documents)| {
            let frequency = f64::from(*frequency);
            idf(statistics.documents, *documents) * frequency / (frequency + saturation)
        });
        scores.sum()
    }
}

/// Never negative. A count that is older than the text makes a term rarer than one text has it, never than
/// none.
fn idf(documents: u64, with_term: u64) -> f64 {
    let with_term = with_term.max(1);
    let without = documents.saturating_sub(with_term);
    (1.0 + (float(without) + 0.5) / (float(with_term) + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "counts of texts and words are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

/// How often each term is in a text, from the text form of its tsvector.
pub fn frequencies(vector: &str, scope: &str, terms: &[&Term]) -> Vec<u32> {
    let start = scoped(scope, "");
    let mut frequencies = vec![0_u32; terms.len()];
    for (lexeme, count) in entries(vector) {
        let Some(lexeme) = lexeme.strip_prefix(&start) else { continue };
        for (frequency, _) in frequencies.iter_mut().zip(terms).filter(|(_, term)| term.matches(lexeme)) {
            *frequency = frequency.saturating_add(count);
        }
    }
    frequencies
}

/// The lexemes of a tsvector as PostgreSQL prints it, with their scope, and how often each occurs: once
/// without positions. What is no tsvector ends the list.
pub fn entries(vector: &str) -> impl Iterator<Item = (String, u32)> + '_ {
    let mut rest = vector.chars().peekable();
    std::iter::from_fn(move || {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let lexeme = lexeme(&mut rest)?;
        Some((lexeme, positions(&mut rest)))
    })
}

fn lexeme(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    rest.next_if_eq(&'\'')?;
    let mut lexeme = String::new();
    loop {
        match rest.next()? {
            '\\' => lexeme.push(rest.next()?),
            // Two quotes are one that belongs to the lexeme.
            '\'' if rest.next_if_eq(&'\'').is_none() => return Some(lexeme),
            c => lexeme.push(c),
        }
    }
}

/// `:1,4A`: how many there are.
fn positions(rest: &mut Peekable<Chars<'_>>) -> u32 {
    let mut count: u32 = 1;
    if rest.next_if_eq(&':').is_some() {
        while let Some(c) = rest.next_if(|c| !c.is_whitespace()) {
            count = count.saturating_add(u32::from(c == ','));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prefix, Query, vector, words};

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9, "{one} {other}");
    }

    #[test]
    fn the_score_is_the_one_computed_by_hand() {
        // Ten texts of 10 words on average; this one has 20. One term is in it twice and in three texts, one
        // is not in it.
        let statistics = Statistics { documents: 10, words: 100 };
        // ln(1 + 7.5 / 3.5) = ln(22 / 7)
        let idf = (22.0_f64 / 7.0).ln();
        // 1.2 · (.25 + .75 · 2) = 2.1; 2 / 4.1.
        near(Bm25::PASSAGES.score(statistics, &[(2, 3), (0, 1)], 20), idf * 2.0 / 4.1);
        near(Bm25::PASSAGES.score(statistics, &[(2, 3), (0, 1)], 20), 0.558_601_124_050);
        // .9 · (.6 + .4 · 2) = 1.26; 2 / 3.26. The second: ln(1 + 9.5 / 1.5) = ln(22 / 3), 1 / 2.26.
        let second = (22.0_f64 / 3.0).ln() / 2.26;
        near(Bm25::FACTS.score(statistics, &[(2, 3), (1, 1)], 20), idf * 2.0 / 3.26 + second);
    }

    #[test]
    fn statistics_that_lag_behind_do_no_harm() {
        for (documents, words, with_term) in [(0, 0, 0), (0, 0, 9), (5, 0, 9), (5, 50, 0)] {
            let score = Bm25::FACTS.score(Statistics { documents, words }, &[(3, with_term)], 7);
            assert!(score.is_finite() && score > 0.0, "{documents} {words} {with_term}");
        }
    }

    #[test]
    fn a_printed_vector_is_read_exactly() {
        let read = |text: &str| entries(text).collect::<Vec<_>>();
        let entry = |lexeme: &str, count| (lexeme.to_owned(), count);
        assert_eq!(read("'r+abc':1,4 'r+def':2A"), [entry("r+abc", 2), entry("r+def", 1)]);
        assert_eq!(read("'a' 'b c':1A,2B,3"), [entry("a", 1), entry("b c", 3)]);
        assert_eq!(read(r"'o''b\\c'':9 x':7 '''':1,2"), [entry(r"o'b\c':9 x", 1), entry("'", 2)]);
        for broken in ["", "  ", "abc:1", "'abc", "'ab\\", ":1"] {
            assert!(read(broken).is_empty(), "{broken}");
        }
    }

    #[test]
    fn frequencies_are_those_of_the_text() {
        let text = "Galaxies and a galaxy; the galactic centre of dark galaxies. It's dark.";
        let vector = vector(&words(text, Some("en")), "r1");
        let query = Query::parse("galaxy dark missing gal", &["en"], Prefix::LastWord);
        let terms: Vec<&Term> = query.terms.iter().collect();
        assert_eq!(frequencies(&vector, "r1", &terms), [3, 2, 0, 4]);
        assert_eq!(frequencies(&vector, "r2", &terms), [0, 0, 0, 0]);
    }
}
