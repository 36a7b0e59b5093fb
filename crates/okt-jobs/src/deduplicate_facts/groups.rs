//! What facts stand for beside themselves, and what people said about it. Two facts become one only if nothing stands against
//! it among all that would be one then: what contradicts each other may both be near a third that says less.

use std::collections::{HashMap, HashSet};

use okt_extract::Sameness;
use okt_model::{Difference, RepositoryId, Result};
use okt_store::fact_merges::{self, Comparable, Member};
use okt_store::{Tx, fact_contradictions};

/// Of those that a fact stands for, so many are compared word by word: what is said in more ways than that is said all day.
const COMPARED: usize = 50;

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
    /// Somebody has said that they are not the same.
    Judged,
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
        let pairs = |most| self.of(one, most).flat_map(move |a| self.of(other, most).map(move |b| (a, b)));
        if pairs(usize::MAX).any(|((a, _), (b, _))| self.judged.contains(&(a.min(b), a.max(b)))) {
            return Verdict::Judged;
        }
        let differing =
            pairs(COMPARED).find_map(|((a, one), (b, other))| match okt_extract::compare(one, other) {
                Sameness::Same => None,
                Sameness::Differs(difference) => Some(Verdict::Differ { facts: (a, b), difference }),
            });
        differing.unwrap_or(Verdict::Same)
    }

    /// From now on it stands for the other, too.
    pub(super) fn join(&mut self, fact: &Comparable, into: &Comparable) {
        let mut more = self.members.remove(&fact.no).unwrap_or_default();
        more.push(Member { no: fact.no, text: fact.text.clone(), merged_into: into.no });
        self.members.entry(into.no).or_default().extend(more);
    }

    /// A fact, and the first of those that it stands for.
    fn of<'g>(&'g self, fact: &'g Comparable, most: usize) -> impl Iterator<Item = (i64, &'g str)> {
        let members = self.members.get(&fact.no).into_iter().flatten().take(most);
        std::iter::once((fact.no, fact.text.as_str()))
            .chain(members.map(|member| (member.no, member.text.as_str())))
    }
}
