//! Which facts belong to which slice.

use std::collections::{BTreeMap, BTreeSet};

use okt_store::concept_summaries::{Coverage, SliceChanges, SliceState};

/// How slices have to change so that each fact of the concept is in one of them: what is not the concept's any more goes, and
/// what is new fills the open slice up to `size`, then further ones. Full slices are closed. A closed slice only ever loses
/// facts, so its text is written again only when one of them is gone.
pub(super) fn changes(coverage: &Coverage, size: usize) -> SliceChanges {
    let Coverage { slices, covered, facts } = coverage;
    let size = i32::try_from(size.max(1)).unwrap_or(i32::MAX);
    let removed: Vec<i64> = covered.keys().filter(|fact| !facts.contains(fact)).copied().collect();
    let mut now: BTreeMap<i32, (bool, i32)> =
        slices.iter().map(|slice| (slice.number, (slice.is_open, 0))).collect();
    for (fact, slice) in covered {
        if facts.contains(fact)
            && let Some((_, count)) = now.get_mut(slice)
        {
            *count += 1;
        }
    }
    let before: BTreeMap<i32, i32> = slices.iter().map(|slice| (slice.number, slice.fact_count)).collect();
    let (mut added, mut grown, mut closed) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut next = now.keys().next_back().map_or(1, |last| last + 1);
    // One at most; a number that is larger than that of the others.
    let mut open = now.iter().rev().find(|(_, (open, _))| *open).map(|(number, _)| *number);
    for fact in facts.iter().filter(|fact| !covered.contains_key(fact)) {
        let room = open.filter(|open| now.get(open).is_some_and(|(_, count)| *count < size));
        let slice = room.unwrap_or_else(|| {
            now.insert(next, (true, 0));
            next += 1;
            next - 1
        });
        open = Some(slice);
        added.push((*fact, slice));
        grown.insert(slice);
        if let Some((_, count)) = now.get_mut(&slice) {
            *count += 1;
        }
    }
    let mut found = SliceChanges { removed, added, ..SliceChanges::default() };
    for (number, (is_open, count)) in now {
        let still_open = is_open && count < size && open == Some(number);
        if count == 0 {
            found.emptied.push(number);
        } else if grown.contains(&number) || before.get(&number) != Some(&count) {
            found.changed.push(SliceState { number, is_open: still_open, fact_count: count });
        } else if is_open && !still_open {
            closed.push(number);
        }
    }
    found.closed = closed;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A concept whose slices are as they should be for these facts.
    fn covered(facts: impl IntoIterator<Item = i64>, size: usize) -> Coverage {
        let coverage = Coverage { facts: facts.into_iter().collect(), ..Coverage::default() };
        let found = changes(&coverage, size);
        after(coverage, &found)
    }

    fn after(mut coverage: Coverage, changes: &SliceChanges) -> Coverage {
        for fact in &changes.removed {
            coverage.covered.remove(fact);
        }
        for (fact, slice) in &changes.added {
            assert_eq!(coverage.covered.insert(*fact, *slice), None, "{fact} is covered twice");
        }
        coverage.slices.retain(|slice| {
            !changes.emptied.contains(&slice.number)
                && !changes.changed.iter().any(|changed| changed.number == slice.number)
        });
        coverage.slices.extend(changes.changed.iter().copied());
        for slice in &mut coverage.slices {
            slice.is_open &= !changes.closed.contains(&slice.number);
        }
        coverage.slices.sort_by_key(|slice| slice.number);
        coverage
    }

    fn slice(number: i32, is_open: bool, fact_count: i32) -> SliceState {
        SliceState { number, is_open, fact_count }
    }

    #[test]
    fn full_slices_are_closed_and_one_is_open() {
        let coverage = covered(1..=7, 3);
        assert_eq!(coverage.slices, [slice(1, false, 3), slice(2, false, 3), slice(3, true, 1)]);
        assert_eq!(changes(&coverage, 3), SliceChanges::default(), "nothing has changed");
        let coverage = covered(1..=6, 3);
        assert_eq!(coverage.slices, [slice(1, false, 3), slice(2, false, 3)], "none is open and empty");
    }

    #[test]
    fn new_facts_touch_the_open_slice_alone() {
        let mut coverage = covered(1..=7, 3);
        coverage.facts.extend([8, 9, 10]);
        let found = changes(&coverage, 3);
        assert_eq!(found.changed, [slice(3, false, 3), slice(4, true, 1)]);
        assert_eq!(found.added, [(8, 3), (9, 3), (10, 4)]);
        assert!(found.removed.is_empty() && found.emptied.is_empty() && found.closed.is_empty());
    }

    #[test]
    fn a_fact_that_goes_touches_its_slice_alone() {
        let mut coverage = covered(1..=7, 3);
        coverage.facts.remove(&2);
        let found = changes(&coverage, 3);
        assert_eq!((found.removed.clone(), found.changed.clone()), (vec![2], vec![slice(1, false, 2)]));
        // It is not filled up again.
        let mut coverage = after(coverage, &found);
        coverage.facts.insert(8);
        assert_eq!(changes(&coverage, 3).added, [(8, 3)]);
        // One that was deleted is not covered any more, and missed all the same.
        coverage.facts.remove(&8);
        coverage.facts.remove(&4);
        coverage.covered.remove(&4);
        let found = changes(&coverage, 3);
        assert_eq!((found.removed.clone(), found.changed.clone()), (vec![], vec![slice(2, false, 2)]));
        let mut coverage = after(coverage, &found);
        coverage.facts.retain(|fact| *fact > 6);
        assert_eq!(changes(&coverage, 3).emptied, [1, 2]);
    }

    #[test]
    fn smaller_slices_are_made_from_then_on() {
        let mut coverage = covered(1..=8, 10);
        let found = changes(&coverage, 5);
        assert_eq!((found.closed.clone(), found.changed.len()), (vec![1], 0), "its text stays");
        coverage = after(coverage, &found);
        coverage.facts.insert(9);
        assert_eq!(changes(&coverage, 5).added, [(9, 2)]);
    }

    /// Whatever comes and goes: each fact is in one slice, and closed slices only lose facts.
    #[test]
    fn no_fact_is_lost_or_covered_twice() {
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(random >> 33).unwrap_or(0)
        };
        let mut coverage = Coverage::default();
        for _ in 0..2_000 {
            for _ in 0..next() % 5 {
                coverage.facts.insert(next() % 200);
            }
            for _ in 0..next() % 3 {
                let gone = next() % 200;
                coverage.facts.remove(&gone);
                if next() % 2 == 0 {
                    coverage.covered.remove(&gone);
                }
            }
            let before = coverage.clone();
            let found = changes(&coverage, 4);
            coverage = after(coverage, &found);
            assert!(coverage.covered.keys().eq(coverage.facts.iter()), "each in one slice");
            assert!(coverage.slices.iter().filter(|slice| slice.is_open).count() <= 1);
            for slice in &coverage.slices {
                let of = |coverage: &Coverage| -> BTreeSet<i64> {
                    let all = coverage.covered.iter().filter(|(_, number)| **number == slice.number);
                    all.map(|(fact, _)| *fact).collect()
                };
                let (old, new) = (of(&before), of(&coverage));
                assert_eq!(usize::try_from(slice.fact_count).unwrap(), new.len());
                assert!(new.len() <= 4 && (new.len() == 4) <= !slice.is_open);
                let closed = before.slices.iter().any(|old| old.number == slice.number && !old.is_open);
                assert!(!closed || new.is_subset(&old), "a closed slice takes in nothing");
            }
            assert_eq!(changes(&coverage, 4), SliceChanges::default());
        }
    }
}
