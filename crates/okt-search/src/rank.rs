//! What lists of several terms come to: the best texts, or those that have all terms.
//!
//! Lists are gone through block by block, with a place for every text of a block, so an entry costs a few
//! additions and nothing is kept of texts that are not among the best.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::bm25::{Bm25, Statistics, Weight};
use crate::postings::{BLOCK_BITS, Posting, each};

/// The places of a block.
const PLACES: usize = 1 << BLOCK_BITS;

/// A list of a word as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptList {
    pub block: i64,
    pub entries: Vec<u8>,
}

/// The lists of a term, of all its spellings, and how many texts have it in all: not all lists have to be here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermLists {
    pub documents: u64,
    pub lists: Vec<KeptList>,
    /// It only adds to the score of what others have found.
    pub follows: bool,
}

/// The best of the texts that are asked for, best first, each with its score. A text needs one of the terms that
/// lead. `None` if a list can't be read.
pub fn rank(
    terms: &[TermLists],
    statistics: Statistics,
    measure: Bm25,
    limit: usize,
    is_asked_for: impl Fn(i64) -> bool,
) -> Option<Vec<(i64, f64)>> {
    let weights: Vec<Weight> = terms.iter().map(|term| measure.weight(statistics, term.documents)).collect();
    let mut best = Best::new(limit);
    let mut scores = vec![0.0_f64; PLACES];
    let mut touched: Vec<usize> = Vec::new();
    for (block, lists) in by_block(terms) {
        let leading = lists.iter().filter(|(term, _)| !terms[**term].follows);
        let following = lists.iter().filter(|(term, _)| terms[**term].follows);
        for (term, lists) in leading.chain(following) {
            let (weight, follows) = (weights[*term], terms[*term].follows);
            let mut add = |at: usize, posting: Posting| {
                let known = scores[at] > 0.0;
                if follows && !known {
                    return;
                }
                if !known {
                    touched.push(at);
                }
                scores[at] += weight.score(posting.count, posting.length);
            };
            go_through(block, lists, &mut add)?;
        }
        for at in touched.drain(..) {
            let score = std::mem::take(&mut scores[at]);
            let unit = (block << BLOCK_BITS) + i64::try_from(at).ok()?;
            if best.may_take(score) && is_asked_for(unit) {
                best.take((unit, score));
            }
        }
    }
    Some(best.sorted())
}

/// The texts that have all of the terms, the last ones first. `None` if a list can't be read.
pub fn all_of(terms: &[TermLists]) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    let mut counts = vec![0_usize; PLACES];
    for (block, lists) in by_block(terms).into_iter().rev() {
        if lists.len() < terms.len() {
            continue;
        }
        for lists in lists.values() {
            go_through(block, lists, &mut |at, _| counts[at] += 1)?;
        }
        for (at, count) in counts.iter_mut().enumerate().rev() {
            if std::mem::take(count) == terms.len() {
                all.push((block << BLOCK_BITS) + i64::try_from(at).ok()?);
            }
        }
    }
    Some(all)
}

/// For each block the lists of each term.
fn by_block(terms: &[TermLists]) -> BTreeMap<i64, BTreeMap<usize, Vec<&[u8]>>> {
    let mut blocks: BTreeMap<i64, BTreeMap<usize, Vec<&[u8]>>> = BTreeMap::new();
    for (at, term) in terms.iter().enumerate() {
        for list in &term.lists {
            let of_block = blocks.entry(list.block).or_default();
            of_block.entry(at).or_default().push(&list.entries);
        }
    }
    blocks
}

/// Shows each text of the lists of a term in a block once, with its place in the block; what stands in several lists
/// counts together.
fn go_through(block: i64, lists: &[&[u8]], see: &mut impl FnMut(usize, Posting)) -> Option<()> {
    let mut odd = false;
    let mut place = |posting: Posting| match usize::try_from(posting.unit - (block << BLOCK_BITS)) {
        Ok(at) if at < PLACES && posting.count > 0 => see(at, posting),
        _ => odd = true,
    };
    if let [list] = lists {
        each(block, list, place)?;
    } else {
        let mut all: Vec<Posting> = Vec::new();
        for list in lists {
            each(block, list, |posting| all.push(posting))?;
        }
        all.sort_by_key(|posting| posting.unit);
        all.dedup_by(|next, kept| {
            let same = next.unit == kept.unit;
            if same {
                kept.count = kept.count.saturating_add(next.count);
            }
            same
        });
        all.into_iter().for_each(&mut place);
    }
    (!odd).then_some(())
}

/// The best so far, and some that may still have to go.
struct Best {
    limit: usize,
    held: Vec<(i64, f64)>,
    /// The score of the last one, once there are enough.
    least: Option<f64>,
}

impl Best {
    const fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), least: None }
    }

    fn order(one: &(i64, f64), other: &(i64, f64)) -> Ordering {
        other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
    }

    fn may_take(&self, score: f64) -> bool {
        self.least.is_none_or(|least| score >= least)
    }

    fn take(&mut self, found: (i64, f64)) {
        self.held.push(found);
        if self.held.len() >= 4 * self.limit.max(256) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.held.len() > self.limit {
            self.held.select_nth_unstable_by(self.limit, Self::order);
            self.held.truncate(self.limit);
            self.least = self.held.iter().map(|(_, score)| *score).min_by(f64::total_cmp);
        }
    }

    fn sorted(mut self) -> Vec<(i64, f64)> {
        self.cut();
        self.held.sort_unstable_by(Self::order);
        self.held
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use crate::postings::{block, encode};
    use crate::random::Random;

    fn posting(unit: i64, count: u32, length: u32) -> Posting {
        Posting { unit, count, length }
    }

    fn lists(postings: &[Posting]) -> Vec<KeptList> {
        let parts = postings.chunk_by(|one, other| block(one.unit) == block(other.unit));
        parts.map(|part| KeptList { block: block(part[0].unit), entries: encode(part) }).collect()
    }

    fn term(documents: u64, postings: &[Posting], follows: bool) -> TermLists {
        TermLists { documents, lists: lists(postings), follows }
    }

    const STATISTICS: Statistics = Statistics { documents: 10, words: 100 };

    fn ranked(terms: &[TermLists]) -> Vec<(i64, f64)> {
        rank(terms, STATISTICS, Bm25::FACTS, 10, |_| true).unwrap()
    }

    #[test]
    fn a_rare_word_counts_more_and_what_follows_finds_nothing_by_itself() {
        let rare = term(1, &[posting(2, 1, 10)], false);
        let postings = [posting(1, 1, 10), posting(2, 1, 10), posting(3, 3, 10)];
        let (common, following) = (term(3, &postings, false), term(3, &postings, true));
        let units = |terms: &[TermLists]| ranked(terms).into_iter().map(|(unit, _)| unit).collect::<Vec<_>>();
        assert_eq!(units(&[rare.clone(), common.clone()]), [2, 3, 1]);
        // Also where it stands in front.
        assert_eq!(units(&[following.clone(), rare.clone()]), [2]);
        let score = |terms: &[TermLists]| ranked(terms)[0].1;
        assert!((score(&[rare.clone(), following]) - score(&[rare.clone(), common.clone()])).abs() < 1e-12);
        let asked = rank(&[rare, common], STATISTICS, Bm25::FACTS, 10, |unit| unit != 2).unwrap();
        assert_eq!(asked.into_iter().map(|(unit, _)| unit).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn two_spellings_of_a_term_count_together() {
        let one = [posting(1, 1, 5), posting(3, 1, 5)];
        let other = [posting(2, 4, 5), posting(3, 2, 5)];
        let mut both = term(4, &one, false);
        both.lists.extend(lists(&other));
        let together = term(4, &[posting(1, 1, 5), posting(2, 4, 5), posting(3, 3, 5)], false);
        assert_eq!(ranked(&[both.clone()]), ranked(&[together]));
        assert_eq!(all_of(&[both, term(2, &[posting(2, 1, 5), posting(9, 1, 5)], false)]), Some(vec![2]));
    }

    /// Against a plain sum over all entries.
    #[test]
    fn the_best_are_those_of_a_plain_sum() {
        let mut random = Random::new(11);
        let statistics = Statistics { documents: 20_000, words: 400_000 };
        let mut terms = Vec::new();
        let mut sums: HashMap<i64, f64> = HashMap::new();
        let mut every: Option<BTreeSet<i64>> = None;
        for documents in [300_u64, 6_000, 9_000] {
            let mut units: Vec<i64> =
                (0..documents).map(|_| i64::try_from(random.below(20_000)).unwrap()).collect();
            units.sort_unstable();
            units.dedup();
            let postings: Vec<Posting> = units
                .iter()
                .map(|unit| posting(*unit, u32::try_from(1 + random.below(3)).unwrap(), 20))
                .collect();
            let weight = Bm25::FACTS.weight(statistics, documents);
            for posting in &postings {
                *sums.entry(posting.unit).or_default() += weight.score(posting.count, posting.length);
            }
            let units: BTreeSet<i64> = units.into_iter().collect();
            every = Some(every.map_or(units.clone(), |known| &known & &units));
            terms.push(term(documents, &postings, false));
        }
        let mut plain: Vec<(i64, f64)> = sums.into_iter().collect();
        plain.sort_by(Best::order);
        for limit in [1, 10, 700, 100_000] {
            let ranked = rank(&terms, statistics, Bm25::FACTS, limit, |_| true).unwrap();
            assert_eq!(ranked.len(), limit.min(plain.len()));
            for (one, other) in ranked.iter().zip(&plain) {
                assert!((one.1 - other.1).abs() < 1e-9, "{one:?} {other:?}");
            }
        }
        let every: Vec<i64> = every.unwrap().into_iter().rev().collect();
        assert!(every.len() > 5);
        assert_eq!(all_of(&terms), Some(every));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let odd = |entries: &[u8]| TermLists {
            documents: 1,
            lists: vec![KeptList { block: 0, entries: entries.to_vec() }],
            follows: false,
        };
        // Cut off; a text of another block; a word that is not in the text.
        for entries in [&[1, 2][..], &[0x80, 0x40, 1, 1], &[1, 0, 1]] {
            assert_eq!(rank(&[odd(entries)], STATISTICS, Bm25::FACTS, 5, |_| true), None, "{entries:?}");
            assert_eq!(all_of(&[odd(entries)]), None, "{entries:?}");
        }
        assert_eq!(ranked(&[]), []);
        assert_eq!(all_of(&[]), Some(Vec::new()));
    }
}
