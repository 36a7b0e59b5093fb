//! Facts that are near each other and were not merged: each joins the group of the oldest representative that it is near to.
//!
//! A group is a star: every member was near its representative when it came, and a representative is no member. No two facts of
//! a group differ in a way that has a name, so whichever of them represents it later, the group says something alike.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use okt_model::FactStatus;
use okt_store::fact_merges::{Comparable, Held, Member};

use super::groups::{GroupComparison, Groups};
use super::{COMPARING, Proposed};

/// So many members a group has beside its representative; who comes then looks for another. It keeps reading a group cheap.
const MOST_MEMBERS: usize = 100;

/// Facts that are in groups, as they were read and as they are to become.
pub(super) struct Similar {
    /// By the number of the representative: numbers and texts of the others.
    members: HashMap<i64, Vec<(i64, String)>>,
    /// The numbers when they were read.
    before: HashMap<i64, BTreeSet<i64>>,
    /// Who joins whom, by their numbers.
    joins: BTreeMap<i64, i64>,
}

impl Similar {
    /// Groups with these members.
    pub(super) fn new(members: Vec<Member>) -> Self {
        let mut similar = Self { members: HashMap::new(), before: HashMap::new(), joins: BTreeMap::new() };
        for member in members {
            similar.before.entry(member.of).or_default().insert(member.no);
            similar.members.entry(member.of).or_default().push((member.no, member.text));
        }
        similar
    }

    /// The numbers of all members.
    pub(super) fn numbers(&self) -> Vec<i64> {
        self.members.values().flatten().map(|(no, _)| *no).collect()
    }

    /// Decides for new facts which group each of them joins; returns for how many there was time, at least one. Those in `gone`
    /// are merged into others.
    pub(super) fn decide(
        &mut self,
        new: &[Comparable],
        proposed: &Proposed,
        groups: &mut Groups,
        gone: &HashSet<i64>,
    ) -> usize {
        let until = Instant::now() + COMPARING;
        for (at, fact) in new.iter().enumerate() {
            if at > 0 && Instant::now() > until {
                return at;
            }
            if gone.contains(&fact.no) || !self.is_free(fact) || self.members.contains_key(&fact.no) {
                continue;
            }
            let there = |other: &&Comparable| {
                other.no != fact.no && other.kind == fact.kind && !gone.contains(&other.no)
            };
            let near: BTreeMap<i64, &Comparable> =
                proposed.representatives(fact).filter(there).map(|other| (other.no, other)).collect();
            // Those that joined somebody in this round represent nobody any more.
            let near: Vec<&Comparable> = near.into_values().filter(|other| self.is_free(other)).collect();
            let leading =
                near.iter().filter(|other| other.no < fact.no || self.members.contains_key(&other.no));
            let into = leading.copied().find(|other| self.fits(groups, fact, other));
            if let Some(into) = into {
                self.join(fact, into);
                continue;
            }
            // Who was compared earlier although it is younger.
            let younger = near.into_iter().filter(|other| {
                other.no > fact.no
                    && other.status == FactStatus::Stable
                    && !self.before.contains_key(&other.no)
            });
            for other in younger.collect::<Vec<_>>() {
                if self.fits(groups, other, fact) {
                    self.join(other, fact);
                }
            }
        }
        new.len()
    }

    /// Those joins that are still true of facts that are held, and whom the others were decided for.
    pub(super) fn still_true(
        &self,
        held: &[Held],
        unchanged: &HashSet<i64>,
    ) -> (Vec<(i64, i64)>, HashSet<i64>) {
        let mut now: HashMap<i64, BTreeSet<i64>> = HashMap::new();
        let mut in_groups = HashSet::new();
        for (no, representative) in held.iter().filter_map(|fact| Some((fact.no, fact.similar_to?))) {
            now.entry(representative).or_default().insert(no);
            in_groups.insert(no);
        }
        let (mut joins, mut outdated) = (Vec::new(), HashSet::new());
        for (&fact, &into) in &self.joins {
            let free = |no: &i64| unchanged.contains(no) && !in_groups.contains(no);
            if free(&fact)
                && free(&into)
                && !now.contains_key(&fact)
                && now.get(&into) == self.before.get(&into)
            {
                joins.push((fact, into));
            } else {
                outdated.extend([fact, into]);
            }
        }
        (joins, outdated)
    }

    /// Whether a fact is in nobody's group.
    fn is_free(&self, fact: &Comparable) -> bool {
        fact.similar_to.is_none() && !self.joins.contains_key(&fact.no)
    }

    /// Whether nothing that has a name keeps a fact from any that it would be in one group with.
    fn fits(&self, groups: &mut Groups, fact: &Comparable, into: &Comparable) -> bool {
        let members = self.members.get(&into.no).map(Vec::as_slice).unwrap_or_default();
        members.len() < MOST_MEMBERS
            && matches!(groups.compare(into, fact), GroupComparison::Same | GroupComparison::Unsure)
            && members.iter().all(|(no, text)| groups.is_alike((*no, text), (fact.no, &fact.text)))
    }

    fn join(&mut self, fact: &Comparable, into: &Comparable) {
        self.joins.insert(fact.no, into.no);
        self.members.entry(into.no).or_default().push((fact.no, fact.text.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::fact;
    use super::*;

    fn group_of(members: usize) -> Similar {
        let members = (2..).take(members).map(|no| (no, "In Bern a bridge spans the river.".to_owned()));
        Similar {
            members: HashMap::from([(1, members.collect())]),
            before: HashMap::new(),
            joins: BTreeMap::new(),
        }
    }

    #[test]
    fn a_group_that_is_full_takes_nobody_in() {
        let (first, other) =
            (fact(1, "A bridge spans the river in Bern."), fact(900, "A bridge in Bern spans the river."));
        let mut groups = Groups::of_none();
        assert!(group_of(MOST_MEMBERS - 1).fits(&mut groups, &other, &first));
        assert!(!group_of(MOST_MEMBERS).fits(&mut groups, &other, &first));
    }

    /// What is written is what is true under the lock; what has changed is compared again.
    #[test]
    fn joins_that_are_not_true_any_more_are_not_made() {
        let mut similar = group_of(1);
        similar.before = HashMap::from([(1, BTreeSet::from([2]))]);
        similar.join(
            &fact(7, "A bridge in Bern spans the river."),
            &fact(1, "A bridge spans the river in Bern."),
        );
        let held = |no, similar_to| Held { no, open: true, merged_into: None, similar_to };
        let as_read = [held(1, None), held(2, Some(1)), held(7, None)];
        let all = HashSet::from([1, 2, 7]);
        assert_eq!(similar.still_true(&as_read, &all), (vec![(7, 1)], HashSet::new()));
        let again = (Vec::new(), HashSet::from([1, 7]));
        let one_more = [as_read[0], as_read[1], as_read[2], held(8, Some(1))];
        assert_eq!(
            similar.still_true(&one_more, &all),
            again,
            "somebody joined whom it was not compared with"
        );
        let member = [held(1, Some(3)), as_read[1], as_read[2]];
        assert_eq!(similar.still_true(&member, &all), again, "the representative is a member now: a chain");
        let leads = [as_read[0], as_read[1], as_read[2], held(9, Some(7))];
        assert_eq!(similar.still_true(&leads, &all), again, "it represents somebody now: a chain");
        assert_eq!(similar.still_true(&as_read, &HashSet::from([2, 7])), again, "the representative is gone");
    }
}
