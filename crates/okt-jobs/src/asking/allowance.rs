//! What may be spent: on a source, and by a repository.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use okt_model::{RepositoryId, Result};
use okt_store::{Databases, repository_settings};
use tokio::time::Instant;

/// How long it may go unnoticed that a repository has a budget now.
const AGE: Duration = Duration::from_secs(5);

/// What may be spent on one source.
pub(crate) struct Purse {
    pub(super) limit: Option<f64>,
    /// What was spent, and what is set aside for calls that are out.
    state: Mutex<(f64, f64)>,
}

/// Whether more may be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    There,
    /// When calls that are out turn out to be cheaper than they might have been.
    Later,
    Never,
}

impl Purse {
    /// `limit` is the most that may be spent, `spent` what has been.
    pub(crate) const fn new(limit: Option<f64>, spent: f64) -> Self {
        Self { limit, state: Mutex::new((spent, 0.0)) }
    }

    /// Sets so much aside, if there is room for it.
    pub(super) fn take(&self, usd: f64) -> Room {
        let mut state = self.state();
        let (spent, held) = *state;
        let limit = self.limit.unwrap_or(f64::INFINITY);
        if spent + held + usd <= limit {
            state.1 += usd;
            Room::There
        } else if spent + usd <= limit {
            Room::Later
        } else {
            Room::Never
        }
    }

    /// What was set aside is spent, or it is not.
    pub(super) fn settle(&self, held: f64, spent: f64) {
        let mut state = self.state();
        state.0 += spent;
        state.1 -= held;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (f64, f64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the repository has a budget, as it was a moment ago: where there is none, nothing has to be set aside.
pub(crate) struct Budget(Mutex<(Instant, bool)>);

impl Budget {
    /// As it was read at that time.
    pub(crate) const fn new(at: Instant, set: bool) -> Self {
        Self(Mutex::new((at, set)))
    }

    pub(super) async fn is_set(&self, databases: &Databases, repository: RepositoryId) -> Result<bool> {
        let (before, now) = {
            let mut known = self.known();
            if known.0.elapsed() < AGE {
                return Ok(known.1);
            }
            // One asks; the others, who hold places of a model, go on with what was known.
            let now = Instant::now();
            (std::mem::replace(&mut known.0, now), now)
        };
        let set = has_budget(databases, repository).await;
        let mut known = self.known();
        if known.0 == now {
            // Who could not ask leaves it to the next one.
            *known = set.as_ref().map_or((before, known.1), |set| (now, *set));
        }
        set
    }

    fn known(&self) -> MutexGuard<'_, (Instant, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn has_budget(databases: &Databases, repository: RepositoryId) -> Result<bool> {
    let mut conn = databases.acquire_system().await?;
    let settings = repository_settings::find(&mut conn, repository).await?;
    conn.done();
    Ok(settings.is_some_and(|settings| settings.monthly_usd.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purse_gives_no_more_than_is_in_it() {
        let purse = Purse::new(Some(1.0), 0.25);
        assert_eq!((purse.take(0.5), purse.take(0.5)), (Room::There, Room::Later));
        purse.settle(0.5, 0.125);
        assert_eq!(purse.take(0.5), Room::There);
        purse.settle(0.5, 0.5);
        assert_eq!(purse.take(0.25), Room::Never, "0.875 of 1 is spent");
        let open = Purse::new(None, 1e9);
        assert_eq!(open.take(1e9), Room::There);
    }
}
