//! How many jobs of each kind may run at once, and how many do.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// No more than this in one claim: a claim is one transaction.
const BATCH: u32 = 200;
/// How long a freed slot may wait for company, so that jobs are claimed by the dozen where they end by the dozen.
const BATCH_DELAY: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Default)]
struct Slot {
    limit: u32,
    used: u32,
    /// Whether the express slot is used: one more slot, for a tenant without a running job, so that another tenant's long
    /// jobs do not keep it waiting.
    express: bool,
    /// Jobs may have arrived since the express slot was last offered.
    newcomer: bool,
    /// More jobs may wait than there were free slots.
    backlogged: bool,
}

impl Slot {
    /// Whether only the express slot is free, and a job for it may have arrived.
    const fn is_crowded(&self) -> bool {
        self.newcomer && self.backlogged && self.used >= self.limit && !self.express
    }
}

pub(crate) struct Slots {
    kinds: Mutex<BTreeMap<String, Slot>>,
    freed: Notify,
}

impl Slots {
    pub(crate) fn new(limits: &BTreeMap<String, u32>) -> Self {
        let slot = |(kind, limit): (&String, &u32)| (kind.clone(), Slot { limit: *limit, ..Slot::default() });
        // A kind that is switched off has no express slot either.
        let limits = limits.iter().filter(|(_, limit)| **limit > 0);
        Self { kinds: Mutex::new(limits.map(slot).collect()), freed: Notify::new() }
    }

    /// How many of each kind could run now.
    pub(crate) fn free(&self) -> Vec<(String, i64)> {
        let kinds = self.kinds();
        let free = |slot: &Slot| i64::from(slot.limit.saturating_sub(slot.used).min(BATCH));
        kinds.iter().map(|(kind, slot)| (kind.clone(), free(slot))).filter(|(_, free)| *free > 0).collect()
    }

    /// Occupies a slot for each claimed job. Returns whether another claim may find more at once.
    pub(crate) fn occupy(&self, asked: &[(String, i64)], claimed: &BTreeMap<&str, u32>) -> bool {
        let mut kinds = self.kinds();
        let mut more = false;
        for (kind, asked) in asked {
            let Some(slot) = kinds.get_mut(kind) else { continue };
            let got = claimed.get(kind.as_str()).copied().unwrap_or(0);
            slot.used += got;
            slot.backlogged = i64::from(got) >= *asked;
            // A job that arrived meanwhile may have lost the last slot to one with a lower sequence number.
            more |= slot.backlogged && slot.used < slot.limit || slot.is_crowded();
        }
        more
    }

    /// Kinds with all regular slots used and the express slot free.
    pub(crate) fn crowded(&self) -> Vec<String> {
        let mut kinds = self.kinds();
        let crowded = kinds.iter_mut().filter(|(_, slot)| slot.is_crowded());
        let offered = crowded.map(|(kind, slot)| {
            slot.newcomer = false;
            kind.clone()
        });
        offered.collect()
    }

    pub(crate) fn occupy_express(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.express = true;
        }
    }

    pub(crate) fn release_express(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.express = false;
            slot.newcomer = true;
            self.freed.notify_one();
        }
    }

    /// Occupies one more slot, even above the limit.
    pub(crate) fn occupy_one(&self, kind: &str) {
        if let Some(slot) = self.kinds().get_mut(kind) {
            slot.used += 1;
        }
    }

    pub(crate) fn release(&self, kind: &str) {
        let mut kinds = self.kinds();
        let Some(slot) = kinds.get_mut(kind) else { return };
        slot.used = slot.used.saturating_sub(1);
        if slot.backlogged {
            self.freed.notify_one();
        }
    }

    /// Jobs of this kind are waiting; returns whether a slot is free.
    pub(crate) fn offer(&self, kind: &str) -> bool {
        let mut kinds = self.kinds();
        let Some(slot) = kinds.get_mut(kind) else { return false };
        slot.backlogged = true;
        slot.newcomer = true;
        slot.used < slot.limit || !slot.express
    }

    /// Waits until it is worth while to claim for a kind that had none free.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
        if !self.kinds().values().any(|slot| slot.backlogged && slot.used == 0) {
            tokio::time::sleep(BATCH_DELAY).await;
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
        assert!(slots.occupy(&asked, &claimed), "the one who came may still wait");
        assert_eq!(slots.crowded(), ["k"]);
        assert!(slots.crowded().is_empty(), "it is offered once");
        slots.release("k");
        assert!(!slots.occupy(&asked, &claimed), "nobody has come since");
    }
}
