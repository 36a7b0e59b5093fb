//! What facts stand for beside themselves, and what people said about it. Two facts become one only if nothing stands against
//! it among all that would be one then: what contradicts each other may both be near a third that says less.

use std::collections::{HashMap, HashSet};

use okt_extract::Sameness;
use okt_model::{Difference, RepositoryId, Result};
use okt_store::fact_merges::{self, Comparable, Member};
use okt_store::{Tx, fact_contradictions};

/// So many pairs are compared word by word. What is said in more ways than that is said all day, and what comes then stays
/// by itself.
const PAIRS: usize = 2_500;

pub(super) struct Groups {
    /// By the number of the fact that stands for them.
    members: HashMap<i64, Vec<Member>>,
    /// Pairs that somebody said are not the same, the smaller number first.
    judged: HashSet<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// Of all that would be one, these two.
    Differ {
        facts: (i64, i64),
        difference: Difference,
    },
    /// Somebody has said that they are not the same, or nobody can tell in time.
    Apart,
}

impl Groups {
    pub(super) async fn read(tx: &mut Tx, repository: RepositoryId, facts: &[i64]) -> Result<Self> {
        let mut members: HashMap<i64, Vec<Member>> = HashMap::new();
        let mut all = facts.to_vec();
        for member in fact_merges::list_members(tx, repository, facts).await? {
            all.push(member.no);
            members.entry(member.merged_into).or_default().push(member);
        }
        let judged = fact_contradictions::list_judged(tx, repository, &all).await?;
        Ok(Self { members, judged })
    }

    /// All that one stands for with all that the other stands for.
    pub(super) fn compare(&self, one: &Comparable, other: &Comparable) -> Verdict {
        let judged = |(a, b): &(i64, i64)| {
            let both = |a, b| self.of(one).any(|(no, _)| no == a) && self.of(other).any(|(no, _)| no == b);
            both(*a, *b) || both(*b, *a)
        };
        if self.judged.iter().any(judged) {
            return Verdict::Apart;
        }
        let mut pairs = self.of(one).flat_map(|a| self.of(other).map(move |b| (a, b)));
        let differing = pairs.by_ref().take(PAIRS).find_map(|((a, one), (b, other))| {
            match okt_extract::compare(one, other) {
                Sameness::Same => None,
                Sameness::Differs(difference) => Some(Verdict::Differ { facts: (a, b), difference }),
            }
        });
        differing.unwrap_or_else(|| if pairs.next().is_none() { Verdict::Same } else { Verdict::Apart })
    }

    /// From now on it stands for the other, too.
    pub(super) fn join(&mut self, fact: &Comparable, into: &Comparable) {
        let mut more = self.members.remove(&fact.no).unwrap_or_default();
        more.push(Member { no: fact.no, text: fact.text.clone(), merged_into: into.no });
        self.members.entry(into.no).or_default().extend(more);
    }

    /// A fact, and those that it stands for.
    fn of<'g>(&'g self, fact: &'g Comparable) -> impl Iterator<Item = (i64, &'g str)> {
        let members = self.members.get(&fact.no).into_iter().flatten();
        std::iter::once((fact.no, fact.text.as_str()))
            .chain(members.map(|member| (member.no, member.text.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use okt_model::{FactId, FactKind};

    use super::*;

    fn fact(no: i64, text: &str) -> Comparable {
        Comparable { id: FactId::mint(), no, text: text.to_owned(), kind: FactKind::Text }
    }

    /// One that stands for so many others that say the same, and at last for this one.
    fn group(others: usize, last: &str) -> (Comparable, Groups) {
        let root = fact(1, "Coffee improves sleep in adults.");
        let mut groups = Groups { members: HashMap::new(), judged: HashSet::new() };
        for no in 2..2 + i64::try_from(others).unwrap() {
            groups.join(&fact(no, &root.text), &root);
        }
        groups.join(&fact(100_000, last), &root);
        (root, groups)
    }

    #[test]
    fn a_fact_is_compared_with_the_last_of_many() {
        let (root, groups) = group(60, "Coffee does not improve sleep in adults.");
        let claim = fact(200_000, "Coffee improves sleep in adults.");
        let verdict = groups.compare(&root, &claim);
        assert!(matches!(verdict, Verdict::Differ { facts: (100_000, 200_000), .. }), "{verdict:?}");
    }

    #[test]
    fn what_can_not_be_compared_in_time_stays_by_itself() {
        let (root, groups) = group(PAIRS, "Coffee does not improve sleep in adults.");
        assert_eq!(groups.compare(&root, &fact(200_000, &root.text)), Verdict::Apart);
        let (root, groups) = group(PAIRS - 2, "Coffee improves sleep in adults.");
        assert_eq!(groups.compare(&root, &fact(200_000, &root.text)), Verdict::Same);
    }

    #[test]
    fn what_somebody_took_apart_stays_apart_whoever_stands_for_it() {
        let (root, mut groups) = group(3, "Coffee improves sleep in adults.");
        let other = fact(7, &root.text);
        assert_eq!(groups.compare(&root, &other), Verdict::Same);
        groups.judged.insert((7, 100_000));
        assert_eq!(groups.compare(&root, &other), Verdict::Apart);
        assert_eq!(groups.compare(&other, &root), Verdict::Apart);
    }
}
