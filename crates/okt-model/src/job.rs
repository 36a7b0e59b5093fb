//! Background jobs: what is asked for, and what is known of one.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{JobId, Money, RepositoryId, Subject};

/// What one kind of job is told. Small: ids of what to work on, never the thing itself.
pub trait Payload: Serialize + DeserializeOwned + Send + Sync {
    /// Names the kind in the queue, in the settings and in the traces.
    const KIND: &'static str;

    /// What it is about, so that people can find the jobs of a source, an investigation or a report.
    fn subject(&self) -> Option<Subject> {
        None
    }

    /// While a job of the same repository with this key waits or runs, another one with it is not queued. One that runs has
    /// perhaps read already what it works on: a key is for work that is the same whenever it is done.
    fn unique_key(&self) -> Option<String> {
        None
    }

    /// Upkeep that belongs to no other job and whose id nobody is told: it is no successor of the job that asks for it, and
    /// beside a twin that waits it is dropped without a trace. One that runs has perhaps looked already at what is to be
    /// looked at now, so another is queued, which may run beside it.
    const INTERNAL: bool = false;
}

/// A job to be queued.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: JobId,
    /// `None` for the installation's own.
    pub repository: Option<RepositoryId>,
    /// Which named database holds its outbox entry.
    pub database: Option<String>,
    pub kind: String,
    /// JSON.
    pub payload: String,
    pub subject: Option<Subject>,
    pub unique_key: Option<String>,
    /// Smaller is sooner.
    pub priority: i16,
    /// Not before this many milliseconds from now.
    pub delay_ms: i64,
    /// The job whose effect asked for it.
    pub caused_by: Option<JobId>,
    /// See [`Payload::INTERNAL`].
    pub internal: bool,
}

impl NewJob {
    /// A job of the installation itself, which has no outbox entry and so must be harmless to repeat.
    pub fn of_the_system<P: Payload>(id: JobId, payload: &P) -> serde_json::Result<Self> {
        Ok(Self {
            id,
            repository: None,
            database: None,
            kind: P::KIND.to_owned(),
            payload: serde_json::to_string(payload)?,
            subject: payload.subject(),
            unique_key: payload.unique_key(),
            priority: 0,
            delay_ms: 0,
            caused_by: None,
            internal: P::INTERNAL,
        })
    }
}

words! {
    /// Where a job stands.
    JobState {
        Scheduled = "scheduled",
        Available = "available",
        Running = "running",
        Retryable = "retryable",
        Completed = "completed",
        Cancelled = "cancelled",
        Discarded = "discarded",
    }
}

impl JobState {
    /// Whether nothing more will happen by itself.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Discarded)
    }
}

words! {
    /// Why a job does not run.
    Waiting {
        /// Its outbox entry has not reached the queue.
        Relay = "relay",
        /// Its time has not come.
        Schedule = "schedule",
        /// It failed and will be tried again.
        Retry = "retry",
        /// All places for its kind are taken.
        Slot = "slot",
        /// No living process runs its kind, or understands its payload: a newer process wrote it.
        Worker = "worker",
        /// A limit on calls to a model or a host.
        RateLimit = "rate_limit",
        /// The repository has spent what it may.
        Budget = "budget",
        /// Something else has to happen first.
        Dependency = "dependency",
    }
}

/// How far a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub stage: String,
    pub done: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a job has spent on models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: Money,
}

/// One time that a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub at: DateTime<Utc>,
    pub attempt: i32,
    pub message: String,
}

/// What is known of a job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub repository: Option<RepositoryId>,
    pub kind: String,
    pub state: JobState,
    pub priority: i16,
    pub subject: Option<Subject>,
    pub attempt: i32,
    pub max_attempts: i32,
    pub crashes: i32,
    pub progress: Option<Progress>,
    pub cost: Cost,
    /// The latest ones, oldest first.
    pub failures: Vec<Failure>,
    pub waiting_for: Option<Waiting>,
    pub created_at: DateTime<Utc>,
    pub scheduled_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub heartbeat_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub output: Option<serde_json::Value>,
    /// The jobs that its effect asked for.
    pub successors: Vec<JobId>,
}

/// Which jobs are asked for.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub kind: Option<String>,
    pub subject: Option<Subject>,
}
