//! One list out of several.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

/// By ranks alone: the sum of 1 / (k + rank) over the lists. For lists whose scores can't be compared.
pub fn reciprocal<Id: Copy + Ord + Hash>(lists: &[&[Id]], k: f64) -> Vec<(Id, f64)> {
    let mut sums: HashMap<Id, f64> = HashMap::new();
    for list in lists {
        let mut rank = 0.0;
        let mut seen = std::collections::HashSet::new();
        for id in list.iter().filter(|id| seen.insert(**id)) {
            rank += 1.0;
            *sums.entry(*id).or_default() += 1.0 / (k + rank);
        }
    }
    sorted(sums)
}

/// By scores: `weight` of the first list and the rest of the second, whose scores are from 0 to 1 ([`scaled`]). What a list
/// lacks counts 0 there.
pub fn by_score<Id: Copy + Ord + Hash>(
    first: &[(Id, f64)],
    second: &[(Id, f64)],
    weight: f64,
) -> Vec<(Id, f64)> {
    let mut sums: HashMap<Id, f64> = HashMap::new();
    for (list, weight) in [(first, weight), (second, 1.0 - weight)] {
        for (id, score) in list {
            *sums.entry(*id).or_default() += weight * score;
        }
    }
    sorted(sums)
}

/// Best first, and by id where scores are equal, so that the same input always gives the same order.
pub fn sorted<Id: Copy + Ord + Hash>(scores: impl IntoIterator<Item = (Id, f64)>) -> Vec<(Id, f64)> {
    let mut sorted: Vec<(Id, f64)> = scores.into_iter().collect();
    sorted.sort_by(|one, other| best_first(one, other));
    sorted
}

fn best_first<Id: Ord>(one: &(Id, f64), other: &(Id, f64)) -> Ordering {
    other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0))
}

/// Scores from 0 to 1, best first: 1 for the best of a list and 0 for a floor, which is what all texts have that are not in the
/// list; without one, the score of the last. An id that is in the list twice has its best score, and a score that is no number is
/// left out.
pub fn scaled<Id: Copy + Ord + Hash>(list: &[(Id, f64)], floor: Option<f64>) -> Vec<(Id, f64)> {
    let numbers = || list.iter().filter(|(_, score)| score.is_finite());
    let best = numbers().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    let worst = numbers().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
    let worst = floor.unwrap_or(worst);
    let width = best - worst;
    let mut scaled: HashMap<Id, f64> = HashMap::new();
    for (id, score) in numbers() {
        let score = if width > 0.0 { ((score - worst) / width).max(0.0) } else { 1.0 };
        scaled.entry(*id).and_modify(|known| *known = known.max(score)).or_insert(score);
    }
    sorted(scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[(u32, f64)], wanted: &[(u32, f64)]) {
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (one, other) in found.iter().zip(wanted) {
            assert!(one.0 == other.0 && (one.1 - other.1).abs() < 1e-9, "{found:?} {wanted:?}");
        }
    }

    #[test]
    fn ranks_add_up() {
        near(
            &reciprocal(&[&[1, 2, 3], &[3, 4]], 60.0),
            &[(3, 1.0 / 63.0 + 1.0 / 61.0), (1, 1.0 / 61.0), (2, 1.0 / 62.0), (4, 1.0 / 62.0)],
        );
        // Who is in a list twice is in it once.
        near(&reciprocal(&[&[1, 1, 2]], 60.0), &[(1, 1.0 / 61.0), (2, 1.0 / 62.0)]);
        assert!(reciprocal::<u32>(&[], 60.0).is_empty());
    }

    #[test]
    fn scores_are_brought_to_one_scale() {
        let lexical = scaled(&[(1, 12.0), (2, 7.0), (3, 2.0)], None);
        let vector = scaled(&[(4, 0.9), (2, 0.8), (5, 0.4)], None);
        // 2: .7 · .5 + .3 · .8.
        near(&by_score(&lexical, &vector, 0.7), &[(1, 0.7), (2, 0.59), (4, 0.3), (3, 0.0), (5, 0.0)]);
        // Where all that is not in the list has nothing, the last is worth something.
        near(&scaled(&[(1, 8.0), (2, 4.0), (3, 2.0)], Some(0.0)), &[(1, 1.0), (2, 0.5), (3, 0.25)]);
    }

    #[test]
    fn a_list_of_equals_counts_in_full() {
        near(&scaled(&[(8, 0.2), (7, 0.2)], None), &[(7, 1.0), (8, 1.0)]);
        near(&scaled(&[(9, 3.0)], None), &[(9, 1.0)]);
        near(&by_score(&[], &[(1, 0.5)], 0.7), &[(1, 0.15)]);
        near(&scaled(&[(1, f64::NAN), (2, 4.0), (3, 1.0)], None), &[(2, 1.0), (3, 0.0)]);
    }
}
