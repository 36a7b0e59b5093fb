//! Groups: canonical facts with their duplicates, and the pairs that people have separated. Two groups become one only if no
//! fact of one contradicts a fact of the other: two that contradict each other may both be near a third that says less.

use std::collections::{HashMap, HashSet};

use okt_config::DedupPolicy;
use okt_extract::Sameness;
use okt_model::{Difference, MergedBy, RepositoryId, Result};
use okt_store::fact_merges::{Comparable, Held, Member};
use okt_store::{Tx, fact_contradictions};

/// So many pairs are compared word by word. What is said in more ways than that is said all day, and what comes then stays
/// by itself.
pub(crate) const PAIRS: usize = 2_500;

pub(super) struct Groups {
    policy: DedupPolicy,
    /// By the number of the canonical fact.
    members: HashMap<i64, Vec<Member>>,
    /// Pairs that a person has separated, the smaller number first.
    judged: HashSet<(i64, i64)>,
    /// What was compared already, the smaller number first: a pair is met from both sides, and in every group that it is in.
    compared: HashMap<(i64, i64), Compared>,
    /// Those that a model said to be the same.
    confirmed: HashSet<(i64, i64)>,
}

/// Two facts of which nothing says that they differ, and nothing that they are the same; the older one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnsurePair {
    pub numbers: (i64, i64),
    pub texts: (String, String),
}

/// What came of two texts.
#[derive(Clone, Copy)]
pub(crate) enum Compared {
    Same,
    Differ(Difference),
    /// Nothing says that they differ, and nothing that they are the same.
    Unsure,
}

/// Compares two texts as a policy wants it. Where that is left to a model, they are [`Compared::Unsure`].
pub(crate) fn compare(policy: DedupPolicy, one: &str, other: &str) -> Compared {
    if policy != DedupPolicy::Cosine && okt_extract::same_fact(one, other).is_some() {
        return Compared::Same;
    }
    match (okt_extract::compare(one, other), policy) {
        (Sameness::Differs(difference), _) => Compared::Differ(difference),
        (Sameness::Same, DedupPolicy::Cosine) => Compared::Same,
        (Sameness::Same, DedupPolicy::Rule | DedupPolicy::Judge) => Compared::Unsure,
    }
}

/// The duplicates of each fact and the pairs that people had separated, when they were read. A comparison depends on these and
/// on the texts, which do not change.
pub(super) struct Members {
    groups: HashMap<i64, HashSet<i64>>,
    judged: HashSet<(i64, i64)>,
}

impl Members {
    /// Those of the facts that can still be merged and of which nothing has changed.
    pub(super) fn unchanged(&self, held: &[Held], judged: &HashSet<(i64, i64)>) -> HashSet<i64> {
        let mut now: HashMap<i64, HashSet<i64>> = HashMap::new();
        let mut merged_into: HashMap<i64, i64> = HashMap::new();
        for (fact, canonical) in held.iter().filter_map(|fact| Some((fact.no, fact.merged_into?))) {
            now.entry(canonical).or_default().insert(fact);
            merged_into.insert(fact, canonical);
        }
        let canonical = |fact: i64| merged_into.get(&fact).copied().unwrap_or(fact);
        // Pairs of facts that are not locked were not read again.
        let numbers: HashSet<i64> = held.iter().map(|fact| fact.no).collect();
        let both = |(a, b): &&(i64, i64)| numbers.contains(a) && numbers.contains(b);
        let before: HashSet<(i64, i64)> = self.judged.iter().filter(both).copied().collect();
        let changed: HashSet<i64> =
            judged.symmetric_difference(&before).flat_map(|(a, b)| [canonical(*a), canonical(*b)]).collect();
        let open = held.iter().filter(|fact| fact.open).map(|fact| fact.no);
        open.filter(|no| !changed.contains(no) && now.get(no) == self.groups.get(no)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupComparison {
    Same,
    /// Of all that would be one, these two.
    Differ {
        facts: (i64, i64),
        difference: Difference,
    },
    /// The texts have no named difference, and not only permitted ones.
    Unsure,
    /// A person has separated them, or there are too many pairs to compare.
    Apart,
}

impl Groups {
    /// Facts with their duplicates, and what people said of them and of those in their similar groups.
    pub(super) async fn read(
        tx: &mut Tx,
        repository: RepositoryId,
        facts: &[i64],
        duplicates: Vec<Member>,
        similar: &[i64],
        policy: DedupPolicy,
    ) -> Result<Self> {
        let mut members: HashMap<i64, Vec<Member>> = HashMap::new();
        let mut all = [facts, similar].concat();
        for member in duplicates {
            all.push(member.no);
            members.entry(member.of).or_default().push(member);
        }
        let judged = fact_contradictions::list_judged(tx, repository, &all).await?;
        let (compared, confirmed) = (HashMap::new(), HashSet::new());
        Ok(Self { policy, members, judged, compared, confirmed })
    }

    pub(super) fn members(&self) -> Members {
        let numbers = |members: &Vec<Member>| members.iter().map(|member| member.no).collect();
        let groups = self.members.iter().map(|(canonical, members)| (*canonical, numbers(members))).collect();
        Members { groups, judged: self.judged.clone() }
    }

    /// Compares every fact of one group with every fact of the other.
    pub(super) fn compare(&mut self, one: &Comparable, other: &Comparable) -> GroupComparison {
        let judged = |(a, b): &(i64, i64)| {
            let both = |a, b| self.of(one).any(|(no, _)| no == a) && self.of(other).any(|(no, _)| no == b);
            both(*a, *b) || both(*b, *a)
        };
        if self.judged.iter().any(judged) {
            return GroupComparison::Apart;
        }
        let mut known = std::mem::take(&mut self.compared);
        let mut pairs = self.of(one).flat_map(|a| self.of(other).map(move |b| (a, b)));
        let mut unsure = false;
        let differing = pairs.by_ref().take(PAIRS).find_map(|((a, one), (b, other))| {
            let pair = (a.min(b), a.max(b));
            match known.entry(pair).or_insert_with(|| compare(self.policy, one, other)) {
                Compared::Same => None,
                Compared::Unsure if self.confirmed.contains(&pair) => None,
                Compared::Unsure => {
                    unsure = true;
                    None
                }
                Compared::Differ(difference) => {
                    Some(GroupComparison::Differ { facts: (a, b), difference: *difference })
                }
            }
        });
        let result = differing.unwrap_or_else(|| match (pairs.next(), unsure) {
            (Some(_), _) => GroupComparison::Apart,
            (None, true) => GroupComparison::Unsure,
            (None, false) => GroupComparison::Same,
        });
        drop(pairs);
        self.compared = known;
        result
    }

    /// What a model has to say before two facts become one: every pair of theirs that is unsure. Nothing, if they are one or two
    /// anyway.
    pub(super) fn unsure(&mut self, one: &Comparable, other: &Comparable) -> Vec<UnsurePair> {
        if self.compare(one, other) != GroupComparison::Unsure {
            return Vec::new();
        }
        let pairs =
            self.of(one).flat_map(|a| self.of(other).map(move |b| if a.0 < b.0 { (a, b) } else { (b, a) }));
        let unsure = pairs.filter(|(a, b)| matches!(self.compared.get(&(a.0, b.0)), Some(Compared::Unsure)));
        let unsure =
            unsure.map(|(a, b)| UnsurePair { numbers: (a.0, b.0), texts: (a.1.to_owned(), b.1.to_owned()) });
        unsure.collect()
    }

    /// Takes these to be the same from now on, where nothing says that they differ.
    pub(super) fn confirm(&mut self, pairs: HashSet<(i64, i64)>) {
        self.confirmed = pairs;
    }

    /// What found that two facts are [`GroupComparison::Same`].
    pub(super) fn merged_by(&self, one: &Comparable, other: &Comparable) -> MergedBy {
        if self.policy == DedupPolicy::Cosine {
            return MergedBy::Cosine;
        }
        let mut pairs = self.of(one).flat_map(|a| self.of(other).map(move |b| (a.0.min(b.0), a.0.max(b.0))));
        let unsure = |pair: (i64, i64)| matches!(self.compared.get(&pair), Some(Compared::Unsure));
        if pairs.any(unsure) { MergedBy::Judge } else { MergedBy::Rule }
    }

    /// Whether two texts, each with the number of its fact, differ in no way that has a name, and nobody has said that they do.
    pub(super) fn is_alike(&mut self, one: (i64, &str), other: (i64, &str)) -> bool {
        let pair = (one.0.min(other.0), one.0.max(other.0));
        let compared = self.compared.entry(pair).or_insert_with(|| compare(self.policy, one.1, other.1));
        !self.judged.contains(&pair) && !matches!(compared, Compared::Differ(_))
    }

    /// Adds a fact, with its duplicates, to the group of another.
    pub(super) fn join(&mut self, fact: &Comparable, into: &Comparable) {
        let mut more = self.members.remove(&fact.no).unwrap_or_default();
        more.push(Member { no: fact.no, text: fact.text.clone(), of: into.no });
        self.members.entry(into.no).or_default().extend(more);
    }

    /// A fact and its duplicates.
    fn of<'g>(&'g self, fact: &'g Comparable) -> impl Iterator<Item = (i64, &'g str)> {
        let members = self.members.get(&fact.no).into_iter().flatten();
        std::iter::once((fact.no, fact.text.as_str()))
            .chain(members.map(|member| (member.no, member.text.as_str())))
    }
}

#[cfg(test)]
impl Groups {
    /// For facts without duplicates that nobody has judged.
    pub(super) fn of_none() -> Self {
        Self {
            policy: DedupPolicy::Rule,
            members: HashMap::new(),
            judged: HashSet::new(),
            compared: HashMap::new(),
            confirmed: HashSet::new(),
        }
    }
}

/// A fact that nothing is known of but its text.
#[cfg(test)]
pub(super) fn fact(no: i64, text: &str) -> Comparable {
    use okt_model::{FactId, FactKind, FactStatus};
    Comparable {
        id: FactId::mint(),
        no,
        text: text.to_owned(),
        kind: FactKind::Text,
        status: FactStatus::New,
        language: None,
        similar_to: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A canonical fact with so many duplicates that say the same, and at last this one.
    fn group(others: usize, last: &str) -> (Comparable, Groups) {
        let canonical = fact(1, "Coffee improves sleep in adults.");
        let mut groups = Groups::of_none();
        for no in 2..2 + i64::try_from(others).unwrap() {
            groups.join(&fact(no, &canonical.text), &canonical);
        }
        groups.join(&fact(100_000, last), &canonical);
        (canonical, groups)
    }

    #[test]
    fn a_fact_is_compared_with_the_last_of_many() {
        let (canonical, mut groups) = group(60, "Coffee does not improve sleep in adults.");
        let claim = fact(200_000, "Coffee improves sleep in adults.");
        let compared = groups.compare(&canonical, &claim);
        assert!(
            matches!(compared, GroupComparison::Differ { facts: (100_000, 200_000), .. }),
            "{compared:?}"
        );
    }

    /// What the guard has no word for is the case for which there is a rule.
    #[test]
    fn what_no_rule_permits_stays_two() {
        let pair = ("The mayor bribed the clerk.", "The mayor paid the clerk.");
        assert!(matches!(compare(DedupPolicy::Rule, pair.0, pair.1), Compared::Unsure | Compared::Differ(_)));
        let same = ("The centre opened on 5 May 2021.", "The center opened on May 5, 2021.");
        assert!(matches!(compare(DedupPolicy::Rule, same.0, same.1), Compared::Same));
        assert!(matches!(compare(DedupPolicy::Rule, same.0, same.0), Compared::Same));
    }

    #[test]
    fn what_can_not_be_compared_in_time_stays_by_itself() {
        let (canonical, mut groups) = group(PAIRS, "Coffee does not improve sleep in adults.");
        assert_eq!(groups.compare(&canonical, &fact(200_000, &canonical.text)), GroupComparison::Apart);
        let (canonical, mut groups) = group(PAIRS - 2, "Coffee improves sleep in adults.");
        assert_eq!(groups.compare(&canonical, &fact(200_000, &canonical.text)), GroupComparison::Same);
    }

    #[test]
    fn what_a_person_separated_stays_separate_in_every_group() {
        let (canonical, mut groups) = group(3, "Coffee improves sleep in adults.");
        let other = fact(7, &canonical.text);
        assert_eq!(groups.compare(&canonical, &other), GroupComparison::Same);
        groups.judged.insert((7, 100_000));
        assert_eq!(groups.compare(&canonical, &other), GroupComparison::Apart);
        assert_eq!(groups.compare(&other, &canonical), GroupComparison::Apart);
    }

    #[test]
    fn what_changed_since_it_was_compared_is_found_out() {
        let (canonical, groups) = group(1, "Coffee improves sleep in adults.");
        let before = groups.members();
        let held = |no, merged_into: Option<i64>| Held {
            no,
            open: merged_into.is_none(),
            merged_into,
            similar_to: None,
        };
        let as_read = [held(1, None), held(2, Some(1)), held(100_000, Some(1)), held(7, None)];
        let none = HashSet::new;
        assert_eq!(before.unchanged(&as_read, &none()), HashSet::from([canonical.no, 7]));
        let more = [&as_read[..], &[held(8, Some(1))]].concat();
        assert_eq!(before.unchanged(&more, &none()), HashSet::from([7]), "it has one more duplicate");
        let fewer = [as_read[0], as_read[1], held(100_000, None), as_read[3]];
        assert_eq!(before.unchanged(&fewer, &none()), HashSet::from([100_000, 7]), "one was taken out");
        let said = HashSet::from([(7, 100_000)]);
        assert_eq!(
            before.unchanged(&as_read, &said),
            HashSet::new(),
            "somebody has said that they are not the same"
        );
        let rejected = [Held { open: false, ..as_read[0] }, as_read[1], as_read[2], as_read[3]];
        assert_eq!(before.unchanged(&rejected, &none()), HashSet::from([7]));
    }

    #[test]
    fn what_was_said_of_a_fact_that_was_not_reached_in_time_changes_nothing() {
        let (canonical, mut groups) = group(1, "Coffee improves sleep in adults.");
        groups.judged.insert((7, 100_000));
        let held = |no, merged_into: Option<i64>| Held {
            no,
            open: merged_into.is_none(),
            merged_into,
            similar_to: None,
        };
        let without_7 = [held(1, None), held(2, Some(1)), held(100_000, Some(1))];
        assert_eq!(groups.members().unchanged(&without_7, &HashSet::new()), HashSet::from([canonical.no]));
    }
}
