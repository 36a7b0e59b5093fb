//! What a job runs with, and the one way to end it: the transaction of its commit.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_model::{Cost, Error, JobId, Payload, Progress, RepositoryId, Waiting};
use okt_store::outbox::{self, When};
use okt_store::{Connection, Databases, Tx};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::claim_query::{self, ClaimedJob};
use crate::json;

/// How long a job waits for a repository that is being moved.
const MOVING: Duration = Duration::from_secs(5);
/// How long a job waits for one of the same kind about the same thing.
const TWIN_RUNS: Duration = Duration::from_secs(2);
/// How long a job whose payload nobody here understands waits before a process looks at it again, and that is longer each
/// time, up to four times this.
const NOT_UNDERSTOOD: Duration = Duration::from_secs(15);

/// The proof that a job has done what it had to.
#[derive(Debug)]
pub struct Finished {
    pub(crate) output: Option<serde_json::Value>,
}

/// Why a job did not end well.
#[derive(Debug)]
pub enum JobError {
    /// It is tried again exactly when the error says that this may help.
    Failed(Error),
    /// As [`Self::Failed`], and not before the time that the other service asked for.
    RetryAfter { error: Error, after: Duration },
    /// It cannot go on yet; this does not count as an attempt.
    Waits { why: Waiting, delay: Duration },
    /// The job was discarded and has recorded that on its subject; its outbox entry is kept, so that it can be retried.
    Discarded { message: String, output: Option<serde_json::Value> },
    /// An earlier run has committed.
    AlreadyCommitted,
}

impl<E: Into<Error>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// One run of a claimed job, with what it needs.
#[derive(Clone)]
pub(crate) struct JobRun {
    pub(crate) job: Arc<ClaimedJob>,
    pub(crate) databases: Databases,
    pub(crate) cancel: CancellationToken,
    pub(crate) tracker: Arc<ProgressTracker>,
}

/// Progress and cost of a run, which the worker records now and then.
#[derive(Default)]
pub(crate) struct ProgressTracker(Mutex<Tracked>);

#[derive(Default)]
struct Tracked {
    progress: Option<Progress>,
    cost: Cost,
    changed: bool,
}

impl ProgressTracker {
    /// Continues from the cost of earlier runs.
    pub(crate) fn resume(cost: Cost) -> Self {
        Self(Mutex::new(Tracked { cost, ..Tracked::default() }))
    }

    /// Progress and cost to record; `None` leaves what is recorded.
    pub(crate) fn as_json(&self) -> (Option<String>, Option<String>) {
        let tracked = self.tracked();
        let progress = tracked.progress.as_ref().and_then(|progress| json::storable(progress).ok());
        let cost = Some(tracked.cost).filter(|cost| *cost != Cost::default());
        (progress, cost.and_then(|cost| json::storable(&cost).ok()))
    }

    /// Recording failed; the next round tries again.
    pub(crate) fn mark_changed(&self) {
        self.tracked().changed = true;
    }

    /// Whether anything has changed since the last call.
    pub(crate) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.tracked().changed)
    }

    fn tracked(&self) -> std::sync::MutexGuard<'_, Tracked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobRun {
    pub(crate) fn kind(&self) -> &str {
        &self.job.kind
    }

    pub(crate) fn payload<P: Payload>(&self) -> serde_json::Result<P> {
        serde_json::from_str(&self.job.payload)
    }

    /// What becomes of a job whose payload can't be read: a newer process wrote it, and one is about to be started that can.
    /// It waits for that, as it would if nobody here knew its kind.
    pub(crate) fn not_understood(&self) -> JobError {
        let times = u32::try_from(self.job.fencing_token).unwrap_or(1).clamp(1, 4);
        JobError::Waits { why: Waiting::Worker, delay: NOT_UNDERSTOOD * times }
    }

    fn track(&self, change: impl FnOnce(&mut Tracked)) {
        let mut tracked = self.tracker.tracked();
        change(&mut tracked);
        tracked.changed = true;
    }
}

/// What every job has at hand.
macro_rules! common {
    ($context:ident) => {
        impl $context {
            pub fn id(&self) -> JobId {
                self.run.job.id
            }

            /// From 1.
            pub fn attempt(&self) -> i32 {
                self.run.job.attempt
            }

            pub fn databases(&self) -> &Databases {
                &self.run.databases
            }

            /// Ends when somebody wants the job to stop, for work that can't be dropped at an `await`.
            pub async fn cancelled(&self) {
                self.run.cancel.cancelled().await;
            }

            /// Shown to watchers, up to four times a second.
            pub fn progress(&self, progress: Progress) {
                self.run.track(|tracked| tracked.progress = Some(progress));
            }

            /// Adds to what the job has spent.
            pub fn spent(&self, cost: Cost) {
                self.run.track(|tracked| {
                    tracked.cost.tokens_in += cost.tokens_in;
                    tracked.cost.tokens_out += cost.tokens_out;
                    tracked.cost.usd += cost.usd;
                });
            }
        }
    };
}

/// What a job on a repository has at hand.
pub struct JobContext {
    run: JobRun,
    repository: RepositoryId,
    database: String,
}

/// What a job of the installation has at hand.
pub struct SystemContext {
    run: JobRun,
}

common!(JobContext);
common!(SystemContext);

impl JobContext {
    pub(crate) fn new(run: JobRun) -> Result<Self, JobError> {
        let (Some(repository), Some(database)) = (run.job.repository, run.job.database.clone()) else {
            return Err(Error::internal(format!(
                "job {} of kind {:?} needs a repository and a database, and has {:?} and {:?}",
                run.job.id, run.job.kind, run.job.repository, run.job.database,
            ))
            .into());
        };
        Ok(Self { run, repository, database })
    }

    pub const fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// The named database that the repository lived in when the job was queued; the write fence there names the present one.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// A transaction to read the repository in. Drop it before awaiting anything slow.
    pub async fn read(&self) -> Result<Tx, JobError> {
        self.begin_fenced().await
    }

    /// A transaction for a part of the work that is idempotent. If an earlier run has committed, the job ends here,
    /// completed.
    pub async fn checkpoint(&self) -> Result<Tx, JobError> {
        let mut tx = self.begin_fenced().await?;
        if outbox::is_there(&mut tx, self.repository, self.id()).await? {
            Ok(tx)
        } else {
            Err(JobError::AlreadyCommitted)
        }
    }

    /// Begins the transaction that ends the job. It deletes the job's outbox entry; if an earlier run has committed, there
    /// is none, and the job ends here, completed.
    pub async fn begin(&self) -> Result<JobCommit, JobError> {
        let mut tx = self.begin_fenced().await?;
        if !outbox::take(&mut tx, self.repository, self.id()).await? {
            return Err(JobError::AlreadyCommitted);
        }
        Ok(self.job_commit(tx, true))
    }

    /// As [`Self::begin`], for a run that may have to discard the job: the outbox entry is locked, and deleted only by
    /// [`JobCommit::commit`].
    pub async fn begin_discardable(&self) -> Result<JobCommit, JobError> {
        let mut tx = self.begin_fenced().await?;
        if !outbox::hold(&mut tx, self.repository, self.id()).await? {
            return Err(JobError::AlreadyCommitted);
        }
        Ok(self.job_commit(tx, false))
    }

    fn job_commit(&self, tx: Tx, taken: bool) -> JobCommit {
        let ClaimedJob { id, fencing_token, .. } = *self.run.job;
        JobCommit { tx, repository: self.repository, job: id, fencing_token, successors: 0, taken }
    }

    /// Has the job wait while another one of its kind and about the same thing runs that was started before it.
    pub async fn one_at_a_time(&self) -> Result<(), JobError> {
        let mut conn = self.run.databases.acquire_tasks().await?;
        if claim_query::has_earlier_twin(&mut conn, self.id()).await? {
            return Err(JobError::Waits { why: Waiting::Dependency, delay: TWIN_RUNS });
        }
        Ok(())
    }

    /// Also for reads: the repository may have moved since the job was queued.
    async fn begin_fenced(&self) -> Result<Tx, JobError> {
        match self.run.databases.begin(&self.database, self.repository).await {
            Err(okt_pg::Error(Error::Moving)) => {
                Err(JobError::Waits { why: Waiting::Dependency, delay: MOVING })
            }
            begun => Ok(begun?),
        }
    }
}

impl SystemContext {
    pub(crate) const fn new(run: JobRun) -> Self {
        Self { run }
    }

    /// Ends the job.
    pub fn finish(self, output: Option<serde_json::Value>) -> Finished {
        Finished { output }
    }
}

/// The transaction that ends a job: its changes, its successors, and the deletion of its outbox entry.
pub struct JobCommit {
    tx: Tx,
    repository: RepositoryId,
    job: JobId,
    fencing_token: i32,
    successors: u32,
    /// Whether the outbox entry is deleted already.
    taken: bool,
}

impl JobCommit {
    /// Enqueues another job on the same repository, if and when this one commits.
    pub async fn push<P: Payload>(&mut self, payload: &P, when: When) -> Result<JobId, JobError> {
        let id = successor((self.job, self.fencing_token), P::KIND, self.successors);
        self.successors += 1;
        outbox::push_after(&mut self.tx, self.repository, id, payload, when, Some(self.job)).await?;
        Ok(id)
    }

    /// Commits the changes, the successors and the deletion of the outbox entry.
    pub async fn commit(mut self, output: Option<serde_json::Value>) -> Result<Finished, JobError> {
        if !self.taken {
            outbox::take(&mut self.tx, self.repository, self.job).await?;
        }
        self.tx.commit().await?;
        Ok(Finished { output })
    }

    /// Commits, and discards the job: it ends as `discarded` with this message, and can be retried. Only after
    /// [`JobContext::begin_discardable`], which keeps the outbox entry that a retry needs.
    pub async fn discard(
        self,
        message: String,
        output: Option<serde_json::Value>,
    ) -> Result<Finished, JobError> {
        debug_assert!(!self.taken, "a job that has taken its outbox entry can't be retried");
        self.tx.commit().await?;
        Err(JobError::Discarded { message, output })
    }
}

impl Deref for JobCommit {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.tx
    }
}

impl DerefMut for JobCommit {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.tx
    }
}

/// The id of the n-th job that a run of another one asks for. A job that was given up and is retried asks for others.
fn successor((job, fencing_token): (JobId, i32), kind: &str, n: u32) -> JobId {
    let hash = Sha256::new()
        .chain_update(job.uuid().as_bytes())
        .chain_update(fencing_token.to_be_bytes())
        .chain_update(n.to_be_bytes())
        .chain_update(kind);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let parent = job.uuid();
    // The same moment as the job's own, so that what belongs together lies together in an index. The successors of a job are
    // looked up by this: `sql/jobs.sql`, `job_tree`, `outbox::list_caused`.
    bytes[..6].copy_from_slice(&parent.as_bytes()[..6]);
    // Then how many jobs came before, so that a list by id shows a chain in the order in which it runs.
    let depth = if parent.get_version_num() == 8 { parent.as_bytes()[6] & 0x0f } else { 0 };
    bytes[6] = (depth + 1).min(0x0f);
    bytes[7] = u8::try_from(n).unwrap_or(u8::MAX);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_has_an_id_of_its_own_and_always_the_same() {
        let (job, other) = (JobId::mint(), JobId::mint());
        let ids = [
            successor((job, 1), "embed_facts", 0),
            successor((job, 1), "embed_facts", 1),
            successor((job, 2), "embed_facts", 0),
            successor((job, 1), "cleanup_facts", 0),
            successor((other, 1), "embed_facts", 0),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(ids[0], successor((job, 1), "embed_facts", 0));
        assert_eq!(ids[0].uuid().as_bytes()[..6], job.uuid().as_bytes()[..6]);
        assert_eq!(ids[0].uuid().get_version_num(), 8);
    }

    #[test]
    fn a_chain_is_in_order_by_id() {
        let mut chain = vec![JobId::mint()];
        for _ in 0..14 {
            let last = chain[chain.len() - 1];
            chain.push(successor((last, 1), "embed_facts", 0));
        }
        assert!(chain.is_sorted());
        assert!(successor((chain[0], 1), "embed_facts", 0) < successor((chain[0], 1), "cleanup_facts", 1));
    }
}
