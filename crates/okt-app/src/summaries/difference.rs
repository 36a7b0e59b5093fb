//! What changed from one version of a definition to another.

use std::collections::{BTreeSet, HashMap};

use okt_extract::summaries::claims;
use okt_model::FactId;
use okt_store::concept_syntheses::Synthesis;

/// The difference of two versions.
pub struct DefinitionDiff {
    pub from: i32,
    pub to: i32,
    /// Facts that only the later one cites, and those that only the earlier one does; without what they say where they are gone.
    pub came: Vec<(FactId, Option<String>)>,
    pub went: Vec<(FactId, Option<String>)>,
    /// The sentences of both, in order.
    pub sentences: Vec<(Changed, String)>,
}

/// What became of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    Same,
    Added,
    Removed,
}

impl DefinitionDiff {
    /// From one version with its text to another, with what facts say that are there.
    pub(super) fn new(
        (before, old): (&Synthesis, &str),
        (after, new): (&Synthesis, &str),
        texts: &HashMap<FactId, String>,
    ) -> Self {
        let only = |these: &[FactId], others: &[FactId]| {
            let others: BTreeSet<&FactId> = others.iter().collect();
            let these = these.iter().filter(|fact| !others.contains(fact));
            these.map(|fact| (*fact, texts.get(fact).cloned())).collect()
        };
        let sentences = |text: &str| claims(text).into_iter().map(|claim| claim.text).collect::<Vec<_>>();
        Self {
            from: before.version,
            to: after.version,
            came: only(&after.facts, &before.facts),
            went: only(&before.facts, &after.facts),
            sentences: aligned(&sentences(old), &sentences(new)),
        }
    }
}

/// Both lists as one, by their longest common part.
fn aligned(old: &[String], new: &[String]) -> Vec<(Changed, String)> {
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (at, one) in old.iter().enumerate().rev() {
        for (to, other) in new.iter().enumerate().rev() {
            common[at][to] = if one == other {
                common[at + 1][to + 1] + 1
            } else {
                common[at + 1][to].max(common[at][to + 1])
            };
        }
    }
    let (mut at, mut to, mut found) = (0, 0, Vec::with_capacity(old.len().max(new.len())));
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            found.push((Changed::Same, new[to].clone()));
            (at, to) = (at + 1, to + 1);
        } else if at < old.len() && (to == new.len() || common[at + 1][to] >= common[at][to + 1]) {
            found.push((Changed::Removed, old[at].clone()));
            at += 1;
        } else {
            found.push((Changed::Added, new[to].clone()));
            to += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_stays_in_place() {
        let list = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let (old, new): (Vec<String>, Vec<String>) = (list("a b c d"), list("b x d e"));
        let shown: Vec<String> = aligned(&old, &new)
            .into_iter()
            .map(|(changed, text)| match changed {
                Changed::Same => text,
                Changed::Added => format!("+{text}"),
                Changed::Removed => format!("-{text}"),
            })
            .collect();
        assert_eq!(shown, ["-a", "b", "-c", "+x", "d", "+e"]);
        assert!(aligned(&[], &[]).is_empty());
        assert_eq!(aligned(&old, &[]).len(), 4);
        assert_eq!(aligned(&[], &new).len(), 4);
    }
}
