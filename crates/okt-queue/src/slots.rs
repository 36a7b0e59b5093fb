//! How many jobs of each kind may run at once, and how many do.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// No more than this in one claim: a claim is one transaction.
const BATCH: u32 = 200;
/// How long a freed slot may wait for company, so that jobs are claimed by the dozen where they end by the dozen.
const COMPANY: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Default)]
struct Slot {
    limit: u32,
    taken: u32,
    /// One place more, for a repository that has none: a tenant whose jobs take hours does not keep out another's.
    express: bool,
    /// Somebody may have come since that place was last offered.
    newcomer: bool,
    /// There may be more waiting than could be taken.
    hungry: bool,
}

impl Slot {
    /// Whether somebody may have come who finds every place taken but the one for newcomers.
    const fn is_crowded(&self) -> bool {
        self.newcomer && self.hungry && self.taken >= self.limit && !self.express
    }
}

pub(crate) struct Slots {
    kinds: Mutex<BTreeMap<String, Slot>>,
    freed: Notify,
}

impl Slots {
    pub(crate) fn new(limits: &BTreeMap<String, u32>) -> Self {
        let slot = |(kind, limit): (&String, &u32)| (kind.clone(), Slot { limit: *limit, ..Slot::default() });
        // A kind that is switched off has no place for newcomers either.
        let limits = limits.iter().filter(|(_, limit)| **limit > 0);
        Self { kinds: Mutex::new(limits.map(slot).collect()), freed: Notify::new() }
    }

    /// How many of each kind could run now.
    pub(crate) fn free(&self) -> Vec<(String, i64)> {
        let kinds = self.kinds();
        let free = |slot: &Slot| i64::from(slot.limit.saturating_sub(slot.taken).min(BATCH));
        kinds.iter().map(|(kind, slot)| (kind.clone(), free(slot))).filter(|(_, free)| *free > 0).collect()
    }

    /// Takes as many as were claimed of what was asked for. Where all that was asked for came, more may wait; returns
    /// whether some of that could be had at once.
    pub(crate) fn take(&self, asked: &[(String, i64)], claimed: &BTreeMap<&str, u32>) -> bool {
        let mut kinds = self.kinds();
        let mut at_once = false;
        for (kind, asked) in asked {
            let Some(slot) = kinds.get_mut(kind) else { continue };
            let got = claimed.get(kind.as_str()).copied().unwrap_or(0);
            slot.taken += got;
            slot.hungry = i64::from(got) >= *asked;
            // Whoever came meanwhile may have been passed over for one whose turn was before theirs.
            at_once |= slot.hungry && slot.taken < slot.limit || slot.is_crowded();
        }
        at_once
    }

    /// Kinds of which more wait than there are places, with the one for newcomers free and perhaps somebody for it.
    pub(crate) fn crowded(&self) -> Vec<String> {
        let mut kinds = self.kinds();
        let crowded = kinds.iter_mut().filter(|(_, slot)| slot.is_crowded());
        let offered = crowded.map(|(kind, slot)| {
            slot.newcomer = false;
            kind.clone()
        });
        offered.collect()
    }

    pub(crate) fn take_express(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.express = true;
        }
    }

    pub(crate) fn give_back_express(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.express = false;
            slot.newcomer = true;
            self.freed.notify_one();
        }
    }

    /// Takes one more, even where there is none.
    pub(crate) fn take_one(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.taken += 1;
        }
    }

    pub(crate) fn give_back(&self, kind: &str) {
        let mut kinds = self.kinds();
        let Some(slot) = kinds.get_mut(kind) else { return };
        slot.taken = slot.taken.saturating_sub(1);
        if slot.hungry {
            self.freed.notify_one();
        }
    }

    /// Jobs of this kind are said to wait; returns whether one could run.
    pub(crate) fn offer(&self, kind: &str) -> bool {
        let mut kinds = self.kinds();
        let Some(slot) = kinds.get_mut(kind) else { return false };
        slot.hungry = true;
        slot.newcomer = true;
        slot.taken < slot.limit || !slot.express
    }

    /// Waits until it is worth while to claim for a kind that had none free.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
        if !self.kinds().values().any(|slot| slot.hungry && slot.taken == 0) {
            tokio::time::sleep(COMPANY).await;
        }
    }

    fn kinds(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Slot>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_while_the_last_place_goes_to_another_is_offered_the_one_for_newcomers_at_once() {
        let slots = Slots::new(&BTreeMap::from([("k".to_owned(), 1)]));
        assert!(slots.offer("k"));
        assert!(slots.crowded().is_empty(), "there is an ordinary place");
        let (asked, claimed) = (slots.free(), BTreeMap::from([("k", 1)]));
        assert!(slots.take(&asked, &claimed), "the one who came may still wait");
        assert_eq!(slots.crowded(), ["k"]);
        assert!(slots.crowded().is_empty(), "it is offered once");
        slots.give_back("k");
        assert!(!slots.take(&asked, &claimed), "nobody has come since");
    }
}
