//! Which texts have a word: a list as it is kept, and what several lists come to.
//!
//! A list is a run of variable-length numbers, three for each text: how far its number is from the one before,
//! how often the word is in it, and how many words it has. So a list needs about four bytes for each text, and
//! with the number of texts in all it is everything that BM25 asks for.

use std::collections::HashMap;

use crate::bm25::{Bm25, Statistics};

/// A text that has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub unit: i64,
    /// How often the word is in it.
    pub count: u32,
    /// How many words it has.
    pub length: u32,
}

/// Lists are cut into blocks of so many numbers of texts, as a power of two: what is written often stays small.
const BLOCK_BITS: u32 = 12;

/// The block of a text.
pub const fn block(unit: i64) -> i64 {
    unit >> BLOCK_BITS
}

/// A list as it is kept. The texts are in the order of their numbers, each once, all of one block.
pub fn encode(postings: &[Posting]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(postings.len() * 4);
    let mut before = postings.first().map_or(0, |first| block(first.unit) << BLOCK_BITS);
    for posting in postings {
        put(&mut bytes, posting.unit.abs_diff(before));
        put(&mut bytes, u64::from(posting.count));
        put(&mut bytes, u64::from(posting.length));
        before = posting.unit;
    }
    bytes
}

/// Reads a list of a block. `None` if it is none.
pub fn decode(block: i64, mut bytes: &[u8]) -> Option<Vec<Posting>> {
    let mut postings = Vec::with_capacity(bytes.len() / 4);
    let mut unit = block << BLOCK_BITS;
    while !bytes.is_empty() {
        unit = unit.checked_add(i64::try_from(take(&mut bytes)?).ok()?)?;
        let count = u32::try_from(take(&mut bytes)?).ok()?;
        let length = u32::try_from(take(&mut bytes)?).ok()?;
        postings.push(Posting { unit, count, length });
    }
    Some(postings)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The texts that have a term, in the order of their numbers, and how many they are in all: of some terms only
/// those texts are read that other terms have found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermPostings {
    pub documents: u64,
    pub postings: Vec<Posting>,
    /// It only adds to the score of what others have found.
    pub follows: bool,
}

/// The best texts for terms, best first, each with its score. A text needs one of the terms that lead.
pub fn rank(terms: &[TermPostings], statistics: Statistics, measure: Bm25, limit: usize) -> Vec<(i64, f64)> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for term in terms.iter().filter(|term| !term.follows) {
        for posting in &term.postings {
            *scores.entry(posting.unit).or_default() += of(term, posting, statistics, measure);
        }
    }
    for term in terms.iter().filter(|term| term.follows) {
        for posting in &term.postings {
            if let Some(score) = scores.get_mut(&posting.unit) {
                *score += of(term, posting, statistics, measure);
            }
        }
    }
    let mut ranked: Vec<(i64, f64)> = scores.into_iter().collect();
    let order = |one: &(i64, f64), other: &(i64, f64)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
    if ranked.len() > limit {
        ranked.select_nth_unstable_by(limit, order);
        ranked.truncate(limit);
    }
    ranked.sort_unstable_by(order);
    ranked
}

fn of(term: &TermPostings, posting: &Posting, statistics: Statistics, measure: Bm25) -> f64 {
    measure.score(statistics, &[(posting.count, term.documents)], u64::from(posting.length))
}

/// Lists of one term, by one block each or by one spelling each, as one list: what stands in several counts together.
pub fn merged(mut lists: Vec<Vec<Posting>>) -> Vec<Posting> {
    if lists.len() == 1 {
        return lists.pop().unwrap_or_default();
    }
    let mut all: Vec<Posting> = lists.into_iter().flatten().collect();
    all.sort_by_key(|posting| posting.unit);
    all.dedup_by(|next, kept| {
        let same = next.unit == kept.unit;
        if same {
            kept.count = kept.count.saturating_add(next.count);
        }
        same
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn posting(unit: i64, count: u32, length: u32) -> Posting {
        Posting { unit, count, length }
    }

    #[test]
    fn a_list_comes_back_as_it_was() {
        let mut random = Random::new(3);
        for _ in 0..2_000 {
            let first = i64::try_from(random.below(1 << 40)).unwrap();
            let end = (block(first) + 1) << BLOCK_BITS;
            let mut list = Vec::new();
            let mut unit = first;
            while unit < end && list.len() < random.below(50) {
                let count = u32::try_from(1 + random.below(400)).unwrap();
                list.push(posting(unit, count, u32::try_from(random.below(1 << 20)).unwrap()));
                unit += 1 + i64::try_from(random.below(300)).unwrap();
            }
            assert_eq!(decode(block(first), &encode(&list)), Some(list));
        }
        assert_eq!(encode(&[posting(4_100, 1, 20), posting(4_101, 2, 30)]).len(), 6);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bytes in [&[0x80][..], &[1], &[1, 2], &[0xff; 11], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1]] {
            assert_eq!(decode(0, bytes), None, "{bytes:?}");
        }
        assert_eq!(decode(7, &[]), Some(Vec::new()));
    }

    #[test]
    fn a_rare_word_counts_more_and_what_follows_finds_nothing_by_itself() {
        let rare = TermPostings { documents: 1, postings: vec![posting(2, 1, 10)], follows: false };
        let postings = vec![posting(1, 1, 10), posting(2, 1, 10), posting(3, 3, 10)];
        let common = TermPostings { documents: 3, postings, follows: false };
        let statistics = Statistics { documents: 10, words: 100 };
        let first = |terms: &[TermPostings]| {
            let ranked = rank(terms, statistics, Bm25::FACTS, 10);
            ranked.into_iter().map(|(unit, _)| unit).collect::<Vec<_>>()
        };
        assert_eq!(first(&[rare.clone(), common.clone()]), [2, 3, 1]);
        let following = TermPostings { follows: true, ..common.clone() };
        assert_eq!(first(&[rare.clone(), following.clone()]), [2]);
        let score = |terms: &[TermPostings]| rank(terms, statistics, Bm25::FACTS, 1)[0].1;
        assert!((score(&[rare.clone(), following]) - score(&[rare, common])).abs() < 1e-12);
    }

    #[test]
    fn two_spellings_of_a_term_count_together() {
        let one = vec![posting(1, 1, 5), posting(3, 1, 5)];
        let other = vec![posting(2, 4, 5), posting(3, 2, 5)];
        assert_eq!(merged(vec![one, other]), [posting(1, 1, 5), posting(2, 4, 5), posting(3, 3, 5)]);
    }
}
