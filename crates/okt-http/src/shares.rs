//! What there is only so much of, such as places for bodies or bytes of answers: nobody gets all of it, and a quarter is
//! kept for whoever has none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Shares {
    most: usize,
    of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    total: usize,
    /// Never zero, so that the memory follows those who have something.
    by_holder: HashMap<Arc<str>, usize>,
}

/// What somebody has, until dropped.
pub(crate) struct Share {
    shares: Arc<Shares>,
    holder: Arc<str>,
    amount: usize,
}

/// Why somebody gets nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// They have this much already.
    HasEnough(usize),
    /// There is nothing left for them.
    NothingLeft,
}

impl Shares {
    pub(crate) fn new(most: usize, of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, of_one, taken: Mutex::default() })
    }

    /// Who has nothing may have any amount at once, as far as there is as much; when nobody has anything, more than that.
    pub(crate) fn take(self: &Arc<Self>, holder: &Arc<str>, amount: usize) -> Result<Share, Refused> {
        let taken = self.taken();
        let theirs = taken.by_holder.get(holder).copied().unwrap_or(0);
        if theirs > 0 && theirs.saturating_add(amount) > self.of_one {
            return Err(Refused::HasEnough(theirs));
        }
        let kept = if theirs == 0 { 0 } else { self.most / 4 };
        if taken.total > 0 && taken.total.saturating_add(amount) > self.most - kept {
            metrics::counter!("okt_http_shed_total").increment(1);
            return Err(Refused::NothingLeft);
        }
        Ok(self.give(taken, holder, amount))
    }

    /// Whether or not there is as much: they have it already.
    pub(crate) fn force(self: &Arc<Self>, holder: &Arc<str>, amount: usize) -> Share {
        self.give(self.taken(), holder, amount)
    }

    /// How much they have, if that is more than their share.
    pub(crate) fn excess(&self, holder: &str) -> Option<usize> {
        self.taken().by_holder.get(holder).copied().filter(|theirs| *theirs > self.of_one)
    }

    fn give(self: &Arc<Self>, mut taken: MutexGuard<'_, Taken>, holder: &Arc<str>, amount: usize) -> Share {
        taken.total += amount;
        *taken.by_holder.entry(Arc::clone(holder)).or_insert(0) += amount;
        drop(taken);
        Share { shares: Arc::clone(self), holder: Arc::clone(holder), amount }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing is half-done in it when a thread panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(crate) const fn amount(&self) -> usize {
        self.amount
    }

    pub(crate) fn give_back(&mut self, amount: usize) {
        self.amount -= amount;
        let mut taken = self.shares.taken();
        taken.total -= amount;
        if let Some(theirs) = taken.by_holder.get_mut(&self.holder) {
            *theirs -= amount;
            if *theirs == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Arc<str> {
        "ada".into()
    }

    #[test]
    fn a_quarter_is_kept_for_those_who_have_none() {
        let shares = Shares::new(16, 8);
        let mut held = Vec::new();
        let mut take = |holder: &str| match shares.take(&holder.into(), 1) {
            Ok(share) => {
                held.push(share);
                None
            }
            Err(refused) => Some(refused),
        };
        for _ in 0..8 {
            assert_eq!(take("ada"), None);
        }
        assert_eq!(take("ada"), Some(Refused::HasEnough(8)));
        for _ in 0..4 {
            assert_eq!(take("bob"), None);
        }
        assert_eq!(take("bob"), Some(Refused::NothingLeft), "the last four are for others");
        for holder in ["c", "d", "e", "f"] {
            assert_eq!(take(holder), None);
        }
        assert_eq!(take("g"), Some(Refused::NothingLeft));
        held.clear();
        let taken = shares.taken();
        assert_eq!((taken.total, taken.by_holder.len()), (0, 0));
    }

    #[test]
    fn who_has_nothing_may_have_one_of_any_size() {
        let shares = Shares::new(800, 100);
        let large = shares.take(&ada(), 700).expect("one of any size");
        assert_eq!(shares.take(&ada(), 1).err(), Some(Refused::HasEnough(700)));
        let small = shares.take(&"bob".into(), 100).expect("there is room for others");
        assert_eq!(shares.take(&"eve".into(), 1).err(), Some(Refused::NothingLeft));
        drop((large, small));
        assert!(shares.take(&ada(), 900).is_ok(), "nobody has anything");
    }

    #[test]
    fn nine_who_take_all_they_can_leave_something_for_a_tenth() {
        let shares = Shares::new(800, 100);
        let mut held = Vec::new();
        for holder in 0..9 {
            while let Ok(share) = shares.take(&format!("{holder}").into(), 10) {
                held.push(share);
            }
        }
        assert_eq!(held.len(), 60 + 3, "those who came late have one each");
        assert!(shares.take(&"tenth".into(), 10).is_ok());
    }

    #[test]
    fn what_is_there_already_counts_and_may_be_too_much() {
        let shares = Shares::new(800, 100);
        let mut forced = shares.force(&ada(), 101);
        assert_eq!(shares.excess("ada"), Some(101));
        forced.give_back(1);
        assert_eq!((forced.amount(), shares.excess("ada"), shares.excess("bob")), (100, None, None));
    }
}
