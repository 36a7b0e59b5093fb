//! Has the facts of all repositories looked at after their vectors were deleted, and those embedded that have none any more.
//!
//! It is asked for before anything is deleted, so whoever dies then leaves it behind. Harmless to repeat.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_model::{CleanupFacts, Error, Payload, Repository, RepositoryId, Result, Waiting};
use okt_queue::{Finished, JobError, SystemContext, jobs};
use serde::{Deserialize, Serialize};

use crate::spaces::{next, push};

/// Deleting takes seconds where it is one statement and minutes where it is many.
const DELETING: Duration = Duration::from_secs(5);
/// Until those are tried again that could not be asked.
const AWAY: Duration = Duration::from_secs(30);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefillVectors {
    /// Only the repositories in these databases, and these; all if there are none of either.
    pub(crate) databases: BTreeSet<String>,
    pub(crate) repositories: BTreeSet<RepositoryId>,
}

impl Payload for RefillVectors {
    const KIND: &'static str = "refill_vectors";
    const INTERNAL: bool = true;

    /// One for all also does what another one for all was to do. One that comes back for some does not.
    fn unique_key(&self) -> Option<String> {
        self.is_for_all().then(String::new)
    }
}

impl RefillVectors {
    fn is_for_all(&self) -> bool {
        self.databases.is_empty() && self.repositories.is_empty()
    }

    fn is_for(&self, repository: &Repository) -> bool {
        self.is_for_all()
            || self.databases.contains(&repository.database)
            || self.repositories.contains(&repository.id)
    }
}

pub(crate) async fn run(payload: RefillVectors, ctx: SystemContext) -> Result<Finished, JobError> {
    let databases = ctx.databases();
    // Whoever asked for it may just be deleting.
    let Some(over) = databases.take_vectors().await? else {
        return Err(JobError::Waits { why: Waiting::Dependency, delay: DELETING });
    };
    drop(over);
    let (mut before, mut asked, mut left) = (None, 0_u64, RefillVectors::default());
    while let Some(repository) = next(databases, &mut before).await? {
        // One that is away is waited for once.
        if !payload.is_for(&repository) || left.databases.contains(&repository.database) {
            continue;
        }
        match push(databases, &repository, &CleanupFacts { soon: true }).await {
            Ok(()) => asked += 1,
            // It was deleted meanwhile.
            Err(Error::NotFound(_)) => {}
            Err(Error::Moving) => drop(left.repositories.insert(repository.id)),
            Err(error) if error.retryable() => drop(left.databases.insert(repository.database)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    repository.id = %repository.id, database = repository.database, error,
                    "failed to enqueue the re-embedding of a repository; run `okt doctor vectors --repair`"
                );
            }
        }
    }
    tracing::info!(repositories = asked, "enqueued the embedding of facts without a vector");
    let output = serde_json::json!({ "repositories": asked, "databases_away": left.databases });
    if !left.is_for_all() {
        jobs::push(databases, &left, AWAY).await?;
    }
    Ok(ctx.finish(Some(output)))
}
