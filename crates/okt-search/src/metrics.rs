//! How good a ranking is, and whether a difference between two is more than chance.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};

use crate::random::Random;

/// Normalised discounted cumulative gain of the first `k`, where an answer is relevant or not. 0 without
/// relevant ones.
pub fn ndcg_at<Id: Copy + Eq + Hash>(
    ranked: &[Id],
    relevant: &HashSet<Id, impl BuildHasher>,
    k: usize,
) -> f64 {
    let ideal: f64 = (1..=relevant.len().min(k)).map(discount).sum();
    if ideal == 0.0 {
        return 0.0;
    }
    let found = distinct(ranked).take(k).zip(1..).filter(|(id, _)| relevant.contains(id));
    found.map(|(_, rank)| discount(rank)).sum::<f64>() / ideal
}

/// The share of the relevant ones that is among the first `k`.
pub fn recall_at<Id: Copy + Eq + Hash>(
    ranked: &[Id],
    relevant: &HashSet<Id, impl BuildHasher>,
    k: usize,
) -> f64 {
    if relevant.is_empty() {
        return 0.0;
    }
    float(distinct(ranked).take(k).filter(|id| relevant.contains(id)).count()) / float(relevant.len())
}

/// 1 if any of the first `k` is relevant, else 0.
pub fn hits_at<Id: Copy + Eq + Hash>(
    ranked: &[Id],
    relevant: &HashSet<Id, impl BuildHasher>,
    k: usize,
) -> f64 {
    f64::from(u8::from(distinct(ranked).take(k).any(|id| relevant.contains(&id))))
}

/// 1 / rank of the first relevant one, 0 without any. Its [`mean`] over questions is the mean reciprocal rank.
pub fn reciprocal_rank<Id: Copy + Eq + Hash>(ranked: &[Id], relevant: &HashSet<Id, impl BuildHasher>) -> f64 {
    distinct(ranked).position(|id| relevant.contains(&id)).map_or(0.0, |at| 1.0 / float(at + 1))
}

/// 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / float(values.len()) }
}

/// A mean difference and where 95 % of its bootstrap draws lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

/// How much better the second ranking is than the first, question by question. The same seed gives the same
/// interval. None without questions or draws, or if the two were not asked the same number of them.
pub fn paired_interval(first: &[f64], second: &[f64], draws: usize, seed: u64) -> Option<Interval> {
    if first.len() != second.len() || first.is_empty() || draws == 0 {
        return None;
    }
    let differences: Vec<f64> = first.iter().zip(second).map(|(one, other)| other - one).collect();
    let mut random = Random::new(seed);
    let mut draw = || {
        let chosen = (0..differences.len()).filter_map(|_| differences.get(random.below(differences.len())));
        chosen.sum::<f64>() / float(differences.len())
    };
    let mut means: Vec<f64> = (0..draws).map(|_| draw()).collect();
    means.sort_by(f64::total_cmp);
    // A fortieth is cut off at either end.
    let cut = draws / 40;
    Some(Interval {
        difference: mean(&differences),
        low: *means.get(cut)?,
        high: *means.get(draws - 1 - cut)?,
    })
}

fn discount(rank: usize) -> f64 {
    1.0 / (float(rank) + 1.0).log2()
}

/// Who is ranked twice is found once.
fn distinct<Id: Copy + Eq + Hash>(ranked: &[Id]) -> impl Iterator<Item = Id> + '_ {
    let mut seen = HashSet::new();
    ranked.iter().copied().filter(move |id| seen.insert(*id))
}

#[expect(clippy::cast_precision_loss, reason = "counts of answers and questions are far below 2^52")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9, "{one} {other}");
    }

    #[test]
    fn the_gain_is_the_one_computed_by_hand() {
        let relevant = HashSet::from([2, 4, 9]);
        // Ranks 2 and 4 of an ideal 1, 2, 3: (1 / log2 3 + 1 / log2 5) / (1 + 1 / log2 3 + 1 / 2).
        near(
            ndcg_at(&[1, 2, 3, 4, 5], &relevant, 10),
            (0.630_929_753_571 + 0.430_676_558_073) / 2.130_929_753_571,
        );
        near(ndcg_at(&[1, 2, 3, 4, 5], &relevant, 2), 0.630_929_753_571 / 1.630_929_753_571);
        near(ndcg_at(&[9, 4, 2], &relevant, 10), 1.0);
        near(ndcg_at(&[9, 9, 9, 4, 2], &relevant, 10), 1.0);
        near(ndcg_at(&[1], &HashSet::<i32>::new(), 10), 0.0);
    }

    #[test]
    fn recall_hits_and_rank() {
        let relevant = HashSet::from([2, 4, 9]);
        near(recall_at(&[1, 2, 3, 4], &relevant, 3), 1.0 / 3.0);
        near(recall_at(&[1, 2, 3, 4], &relevant, 4), 2.0 / 3.0);
        near(recall_at(&[1], &HashSet::<i32>::new(), 4), 0.0);
        near(hits_at(&[1, 2], &relevant, 1), 0.0);
        near(hits_at(&[1, 2], &relevant, 2), 1.0);
        near(reciprocal_rank(&[1, 3, 4], &relevant), 1.0 / 3.0);
        near(reciprocal_rank(&[1], &relevant), 0.0);
        near(mean(&[1.0, 0.0, 0.5]), 0.5);
        near(mean(&[]), 0.0);
    }

    #[test]
    fn an_interval_says_what_chance_would() {
        let first: Vec<f64> = (0..200).map(|n| f64::from(n % 7) / 7.0).collect();
        let better: Vec<f64> = first.iter().map(|value| value + 0.1).collect();
        let sure = paired_interval(&first, &better, 2000, 1).unwrap();
        near(sure.difference, 0.1);
        near(sure.low, 0.1);
        // Half a point up for one question, down for the next: no difference.
        let noise: Vec<f64> =
            first.iter().zip(0..).map(|(v, n)| v + if n % 2 == 0 { 0.5 } else { -0.5 }).collect();
        let unsure = paired_interval(&first, &noise, 2000, 1).unwrap();
        // The mean of 200 such draws has a deviation of .5 / √200 = .035; 1.96 of them are .069.
        assert!(
            (-0.085..-0.055).contains(&unsure.low) && (0.055..0.085).contains(&unsure.high),
            "{unsure:?}"
        );
        assert_eq!(paired_interval(&first, &noise, 2000, 1), Some(unsure));
        assert_ne!(paired_interval(&first, &noise, 2000, 2), Some(unsure));
        assert_eq!(paired_interval(&first, &noise[1..], 2000, 1), None);
        assert_eq!(paired_interval(&[], &[], 2000, 1), None);
    }
}
