//! What may be spent: on a source, and by a repository.

use std::sync::{Mutex, PoisonError};
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
    pub(super) const fn new(limit: Option<f64>, spent: f64) -> Self {
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
#[derive(Default)]
pub(crate) struct Budget(Mutex<Option<(Instant, bool)>>);

impl Budget {
    pub(super) async fn is_set(&self, databases: &Databases, repository: RepositoryId) -> Result<bool> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, set)) = known
            && since.elapsed() < AGE
        {
            return Ok(set);
        }
        let mut conn = databases.acquire_system().await?;
        let settings = repository_settings::find(&mut conn, repository).await?;
        conn.done();
        let set = settings.is_some_and(|settings| settings.monthly_usd.is_some());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), set));
        Ok(set)
    }
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
