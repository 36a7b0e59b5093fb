//! What a job has at hand, and the only easy way to end it: the transaction of its effect.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_model::{Cost, Error, JobId, Payload, Progress, RepositoryId, Waiting};
use okt_store::outbox::{self, When};
use okt_store::{Connection, Databases, Tx};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::claim::Claimed;
use crate::json;

/// How long a job waits for a repository that is being moved.
const MOVING: Duration = Duration::from_secs(5);

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
    /// As [`Self::Failed`], and not before the other side wants to hear from us again.
    Later { error: Error, after: Duration },
    /// It can't go on yet, and says why; this does not count as an attempt.
    Waits { why: Waiting, delay: Duration },
    /// An earlier run has had the effect.
    HasHappened,
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A job that was claimed, with what belongs to it.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) job: Arc<Claimed>,
    pub(crate) databases: Databases,
    pub(crate) cancel: CancellationToken,
    pub(crate) said: Arc<Said>,
}

/// What a job says of itself while it runs; written down now and then.
#[derive(Default)]
pub(crate) struct Said(Mutex<Words>);

#[derive(Default)]
struct Words {
    progress: Option<Progress>,
    cost: Cost,
    changed: bool,
}

impl Said {
    /// Goes on from what earlier runs have spent.
    pub(crate) fn since(cost: Cost) -> Self {
        Self(Mutex::new(Words { cost, ..Words::default() }))
    }

    /// Progress and cost, to be written down; what was never said is left as it is.
    pub(crate) fn as_json(&self) -> (Option<String>, Option<String>) {
        let words = self.words();
        let progress = words.progress.as_ref().and_then(|progress| json::storable(progress).ok());
        let cost = Some(words.cost).filter(|cost| *cost != Cost::default());
        (progress, cost.and_then(|cost| json::storable(&cost).ok()))
    }

    /// What was said could not be written down.
    pub(crate) fn say_again(&self) {
        self.words().changed = true;
    }

    /// Whether anything was said since this was last asked.
    pub(crate) fn anything(&self) -> bool {
        std::mem::take(&mut self.words().changed)
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    pub(crate) fn kind(&self) -> &str {
        &self.job.kind
    }

    pub(crate) fn payload<P: Payload>(&self) -> Result<P, JobError> {
        serde_json::from_str(&self.job.payload).map_err(|error| {
            JobError::Failed(Error::invalid(
                "payload",
                format!("is not what this kind of job expects: {error}"),
            ))
        })
    }

    fn say(&self, change: impl FnOnce(&mut Words)) {
        let mut words = self.said.words();
        change(&mut words);
        words.changed = true;
    }
}

/// What every job has at hand.
macro_rules! common {
    ($context:ident) => {
        impl $context {
            pub fn id(&self) -> JobId {
                self.held.job.id
            }

            /// From 1.
            pub fn attempt(&self) -> i32 {
                self.held.job.attempt
            }

            pub fn databases(&self) -> &Databases {
                &self.held.databases
            }

            /// Ends when somebody wants the job to stop, for work that can't be dropped at an `await`.
            pub async fn cancelled(&self) {
                self.held.cancel.cancelled().await;
            }

            /// Shown to whoever watches, up to four times a second.
            pub fn progress(&self, progress: Progress) {
                self.held.say(|words| words.progress = Some(progress));
            }

            /// Adds to what the job has spent.
            pub fn spent(&self, cost: Cost) {
                self.held.say(|words| {
                    words.cost.tokens_in += cost.tokens_in;
                    words.cost.tokens_out += cost.tokens_out;
                    words.cost.usd += cost.usd;
                });
            }
        }
    };
}

/// What a job on a repository has at hand.
pub struct JobContext {
    held: Held,
    repository: RepositoryId,
    database: String,
}

/// What a job of the installation has at hand.
pub struct SystemContext {
    held: Held,
}

common!(JobContext);
common!(SystemContext);

impl JobContext {
    pub(crate) fn new(held: Held) -> Result<Self, JobError> {
        let (Some(repository), Some(database)) = (held.job.repository, held.job.database.clone()) else {
            return Err(Error::internal("a job on a repository came without one").into());
        };
        Ok(Self { held, repository, database })
    }

    pub const fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// The named database that the repository lived in when the job was queued; its door there leads on.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// A transaction to look at the repository in; to be dropped before anything is waited for.
    pub async fn look(&self) -> Result<Tx, JobError> {
        self.enter().await
    }

    /// A transaction for a part of the work that does no harm when it is done again. Where an earlier run has had the
    /// effect, the job ends here and well.
    pub async fn step(&self) -> Result<Tx, JobError> {
        let mut tx = self.enter().await?;
        if outbox::is_there(&mut tx, self.repository, self.id()).await? {
            Ok(tx)
        } else {
            Err(JobError::HasHappened)
        }
    }

    /// Begins the transaction of the effect. It takes away the right to it: where an earlier run has had the effect,
    /// the job ends here and well.
    pub async fn begin(&self) -> Result<Effect, JobError> {
        let mut tx = self.enter().await?;
        if !outbox::take(&mut tx, self.repository, self.id()).await? {
            return Err(JobError::HasHappened);
        }
        Ok(Effect { tx, repository: self.repository, job: self.id(), successors: 0 })
    }

    /// Also to look: a job may have heard long ago where the repository lives.
    async fn enter(&self) -> Result<Tx, JobError> {
        match self.held.databases.begin(&self.database, self.repository).await {
            Err(Error::Moving) => Err(JobError::Waits { why: Waiting::Dependency, delay: MOVING }),
            begun => Ok(begun?),
        }
    }
}

impl SystemContext {
    pub(crate) const fn new(held: Held) -> Self {
        Self { held }
    }

    /// Ends the job.
    pub fn finish(self, output: Option<serde_json::Value>) -> Finished {
        Finished { output }
    }
}

/// The one transaction of a job: what it changes, what comes next, and that it has happened.
pub struct Effect {
    tx: Tx,
    repository: RepositoryId,
    job: JobId,
    successors: u32,
}

impl Effect {
    /// Asks for another job on the same repository, if and when this one has its effect.
    pub async fn push<P: Payload>(&mut self, payload: &P, when: When) -> Result<JobId, JobError> {
        let id = successor(self.job, P::KIND, self.successors);
        self.successors += 1;
        outbox::push(&mut self.tx, self.repository, id, payload, when).await?;
        Ok(id)
    }

    /// Makes everything true at once.
    pub async fn commit(self, output: Option<serde_json::Value>) -> Result<Finished, JobError> {
        self.tx.commit().await?;
        Ok(Finished { output })
    }
}

impl Deref for Effect {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.tx
    }
}

impl DerefMut for Effect {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.tx
    }
}

/// The id of the n-th job that another one asks for: the same whenever it asks.
fn successor(job: JobId, kind: &str, n: u32) -> JobId {
    let hash =
        Sha256::new().chain_update(job.uuid().as_bytes()).chain_update(n.to_be_bytes()).chain_update(kind);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    // The same moment as the job's own, so that what belongs together lies together in an index.
    bytes[..6].copy_from_slice(&job.uuid().as_bytes()[..6]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_has_an_id_of_its_own_and_always_the_same() {
        let (job, other) = (JobId::mint(), JobId::mint());
        let ids = [
            successor(job, "embed_facts", 0),
            successor(job, "embed_facts", 1),
            successor(job, "cleanup_facts", 0),
            successor(other, "embed_facts", 0),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(ids[0], successor(job, "embed_facts", 0));
        assert_eq!(ids[0].uuid().as_bytes()[..6], job.uuid().as_bytes()[..6]);
        assert_eq!(ids[0].uuid().get_version_num(), 8);
    }
}
