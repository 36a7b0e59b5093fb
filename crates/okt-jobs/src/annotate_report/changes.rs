//! Why claims stand otherwise than before.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{ChangeCause, FactStatus, Posture, SentenceState};
use okt_store::report_annotations::Counted;
use okt_store::report_changes::NewChange;
use okt_store::report_sentences::Claim;

/// For each claim that stands otherwise: the facts that counted `before`, as they are now, are compared with those that count now.
pub(super) fn changes(
    claims: &[&Claim],
    states: &BTreeMap<i64, SentenceState>,
    before: &[Counted],
    now: &[Counted],
) -> Vec<NewChange> {
    let mut changes = Vec::new();
    for claim in claims {
        let after = states[&claim.no];
        if claim.state == Some(after) {
            continue;
        }
        let of = |all: &[Counted]| -> Vec<Counted> {
            all.iter().filter(|one| one.sentence == claim.no).cloned().collect()
        };
        let before = of(before);
        let (cause, fact) = cause(claim.state, &before, &of(now));
        let gone = before.into_iter().find(|one| one.status.is_none());
        let source_title = gone
            .filter(|_| cause == ChangeCause::FactRemoved && fact.is_none())
            .and_then(|one| one.source_title);
        changes.push(NewChange {
            sentence: claim.no,
            before: claim.state,
            after,
            cause,
            fact,
            source_title,
            person: None,
        });
    }
    changes
}

fn cause(state: Option<SentenceState>, before: &[Counted], now: &[Counted]) -> (ChangeCause, Option<i64>) {
    if state.is_none() {
        return (ChangeCause::Checked, now.first().map(|one| one.fact));
    }
    let said = |all: &[Counted]| -> BTreeSet<(i64, Posture)> {
        all.iter().map(|one| (one.fact, one.posture)).collect()
    };
    let (said_before, said_now) = (said(before), said(now));
    let facts =
        |said: &BTreeSet<(i64, Posture)>| -> BTreeSet<i64> { said.iter().map(|(fact, _)| *fact).collect() };
    let (facts_before, facts_now) = (facts(&said_before), facts(&said_now));
    // What a fact was merged into is near for that reason, so going comes before coming.
    if let Some(gone) = before.iter().find(|one| !is_open(one.status)) {
        let is_merged = gone.status == Some(FactStatus::Duplicate);
        let cause = if is_merged { ChangeCause::FactMerged } else { ChangeCause::FactRemoved };
        return (cause, gone.status.map(|_| gone.fact));
    }
    if let Some(come) = facts_now.difference(&facts_before).next() {
        return (ChangeCause::FactAdded, Some(*come));
    }
    // The same was said of the same facts: they count for something else, by their sources.
    let cause = if said_before == said_now { ChangeCause::SourceMarked } else { ChangeCause::Judged };
    (cause, now.first().map(|one| one.fact))
}

const fn is_open(status: Option<FactStatus>) -> bool {
    matches!(status, Some(FactStatus::New | FactStatus::Stable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(fact: i64, posture: Posture, status: Option<FactStatus>) -> Counted {
        Counted { sentence: 1, fact, posture, status, source_title: None }
    }

    #[test]
    fn what_made_the_difference_is_told() {
        let stable = Some(FactStatus::Stable);
        let supports = counted(7, Posture::Supports, stable);
        let was = Some(SentenceState::Unsupported);
        let one = std::slice::from_ref(&supports);
        assert_eq!(cause(None, &[], one), (ChangeCause::Checked, Some(7)));
        assert_eq!(cause(was, &[], one), (ChangeCause::FactAdded, Some(7)));
        assert_eq!(cause(was, one, one), (ChangeCause::SourceMarked, Some(7)));
        let merged = counted(7, Posture::Supports, Some(FactStatus::Duplicate));
        let other = counted(3, Posture::Supports, stable);
        assert_eq!(cause(was, &[merged], &[other]), (ChangeCause::FactMerged, Some(7)));
        let gone = counted(7, Posture::Supports, None);
        assert_eq!(cause(was, &[gone], &[]), (ChangeCause::FactRemoved, None));
        let rejected = counted(7, Posture::Supports, Some(FactStatus::Rejected));
        assert_eq!(cause(was, &[rejected], &[]), (ChangeCause::FactRemoved, Some(7)));
        let judged = counted(7, Posture::Contradicts, stable);
        assert_eq!(cause(was, &[supports], &[judged]), (ChangeCause::Judged, Some(7)));
    }
}
