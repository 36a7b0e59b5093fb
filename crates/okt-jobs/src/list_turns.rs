//! Who writes the lists of words of a repository. Only one may at a time, and sources come by the hundred: whoever asked the
//! database again and again would take more of it than the writing. So the jobs of a process wait here, in the order in which
//! they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use okt_model::RepositoryId;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// One for a process.
#[derive(Default)]
pub(crate) struct ListTurns(Mutex<HashMap<RepositoryId, Arc<Turn<()>>>>);

impl ListTurns {
    /// Comes back when all who asked before are done.
    pub(crate) async fn take(&self, repository: RepositoryId) -> OwnedMutexGuard<()> {
        self.of(repository).lock_owned().await
    }

    fn of(&self, repository: RepositoryId) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody waits for these.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(repository).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_of_a_repository_wait_for_each_other_and_others_do_not() {
        let turns = ListTurns::default();
        let (one, other) = (RepositoryId::mint(), RepositoryId::mint());
        let first = turns.take(one).await;
        drop(turns.take(other).await);
        let second = turns.take(one);
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        drop(turns.of(other));
        assert_eq!(turns.0.lock().unwrap().len(), 1, "who is done is forgotten");
    }
}
