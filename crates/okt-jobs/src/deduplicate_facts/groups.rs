//! What facts stand for beside themselves, and what people said about it. Two facts become one only if nothing stands against
//! it among all that would be one then: what contradicts each other may both be near a third that says less.

use std::collections::{HashMap, HashSet};

use okt_extract::Sameness;
use okt_model::{Difference, RepositoryId, Result};
use okt_store::fact_merges::{self, Comparable, Member};
use okt_store::{Tx, fact_contradictions};

#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// By the number of the fact that stands for them.
    members: HashMap<i64, Vec<Member>>,
    /// Pairs that somebody said are not the same, the smaller number first.
    judged: HashSet<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    Differ(Difference),
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
        let pairs = || self.of(one).flat_map(|a| self.of(other).map(move |b| (a, b)));
        if pairs().any(|((a, _), (b, _))| self.judged.contains(&(a.min(b), a.max(b)))) {
            return Verdict::Judged;
        }
        let differences = pairs().map(|((_, a), (_, b))| okt_extract::compare(a, b));
        for sameness in differences {
            if let Sameness::Differs(difference) = sameness {
                return Verdict::Differ(difference);
            }
        }
        Verdict::Same
    }

    /// From now on it stands for the other, too.
    pub(super) fn join(&mut self, fact: &Comparable, into: &Comparable) {
        let mut more = self.members.remove(&fact.no).unwrap_or_default();
        more.push(Member { no: fact.no, text: fact.text.clone(), merged_into: into.no });
        self.members.entry(into.no).or_default().extend(more);
    }

    /// Whether somebody has said meanwhile that two of these are not the same.
    pub(super) fn is_judged_since(&self, now: &Self) -> bool {
        !now.judged.is_subset(&self.judged)
    }

    /// Whether a fact stands for the same ones as before.
    pub(super) fn is_as_before(&self, now: &Self, fact: i64) -> bool {
        self.members.get(&fact) == now.members.get(&fact)
    }

    fn of<'g>(&'g self, fact: &'g Comparable) -> impl Iterator<Item = (i64, &'g str)> {
        let members = self.members.get(&fact.no).into_iter().flatten();
        std::iter::once((fact.no, fact.text.as_str()))
            .chain(members.map(|member| (member.no, member.text.as_str())))
    }
}
