//! Background jobs, as people may ask of them.

use std::collections::BTreeMap;

use okt_auth::{Caller, RepoScope, SystemScope};
use okt_model::{Error, Job, JobFilter, JobId, JobState, RepositoryId, Result, Waiting};
use okt_queue::jobs::{self, Whose};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// Whose jobs somebody may see: everybody's, or those of a repository. Can only be made of a proof.
pub enum JobScope {
    Installation(SystemScope),
    Repository(RepoScope),
}

impl From<SystemScope> for JobScope {
    fn from(scope: SystemScope) -> Self {
        Self::Installation(scope)
    }
}

impl From<RepoScope> for JobScope {
    fn from(scope: RepoScope) -> Self {
        Self::Repository(scope)
    }
}

impl JobScope {
    const fn whose(&self) -> Whose {
        match self {
            Self::Installation(_) => Whose::Everybodys,
            Self::Repository(scope) => Whose::Repository(scope.repository()),
        }
    }
}

/// How many jobs there are.
pub struct JobStats {
    pub kinds: Vec<KindStats>,
    /// False when there were more than are counted.
    pub complete: bool,
}

/// How many jobs of a kind there are, and who runs them.
pub struct KindStats {
    pub kind: String,
    /// Processes that live and run this kind.
    pub workers: i64,
    counts: BTreeMap<JobState, i64>,
}

impl KindStats {
    const fn of(kind: String) -> Self {
        Self { kind, workers: 0, counts: BTreeMap::new() }
    }

    pub fn count(&self, state: JobState) -> i64 {
        self.counts.get(&state).copied().unwrap_or(0)
    }
}

impl App {
    /// Newest first, from before `before`.
    pub async fn list_jobs(
        &self,
        scope: &JobScope,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: i64,
    ) -> Result<Vec<Job>> {
        jobs::list(self.databases(), scope.whose(), filter, before, limit).await
    }

    pub async fn find_job(&self, scope: &JobScope, id: JobId) -> Result<Job> {
        let found = match scope {
            JobScope::Installation(_) => jobs::find(self.databases(), Whose::Everybodys, id).await?,
            JobScope::Repository(scope) => self.look_for_job(scope.repository(), id).await?,
        };
        found.ok_or(Error::NotFound("job"))
    }

    /// Also finds a job that the queue has not heard of yet: whoever was told its id may ask at once.
    pub(crate) async fn look_for_job(&self, repository: RepositoryId, id: JobId) -> Result<Option<Job>> {
        let (databases, whose) = (self.databases(), Whose::Repository(repository));
        if let Some(job) = jobs::find(databases, whose, id).await? {
            return Ok(Some(job));
        }
        let Some(located) = self.auth().locate(&repository.to_string()).await? else { return Ok(None) };
        if let Some(job) = jobs::find_on_its_way(databases, &located.database, repository, id).await? {
            return Ok(Some(job));
        }
        // It may have arrived between the two looks.
        jobs::find(databases, whose, id).await
    }

    pub async fn job_stats(&self, scope: &JobScope) -> Result<JobStats> {
        let (counts, complete) = jobs::count(self.databases(), scope.whose()).await?;
        let mut kinds: BTreeMap<String, KindStats> = BTreeMap::new();
        for count in counts {
            let stats = kinds.entry(count.kind.clone()).or_insert_with(|| KindStats::of(count.kind));
            stats.counts.insert(count.state, count.count);
        }
        for (kind, workers) in jobs::workers(self.databases()).await? {
            kinds.entry(kind.clone()).or_insert_with(|| KindStats::of(kind)).workers = workers;
        }
        Ok(JobStats { kinds: kinds.into_values().collect(), complete })
    }

    /// Cancels a job: one that waits at once, one that runs at its next `await`.
    pub async fn cancel_job(&self, origin: &Origin, scope: RepoScope, id: JobId) -> Result<Job> {
        if jobs::cancel(self.databases(), Whose::Repository(scope.repository()), id).await?.is_some() {
            self.record_job(
                origin,
                scope.caller(),
                "job.cancelled",
                &id.to_string(),
                Some(scope.repository()),
            )
            .await?;
            return self.find_job(&scope.into(), id).await;
        }
        let job = self.find_job(&scope.into(), id).await?;
        Err(Error::Conflict(if job.waiting_for == Some(Waiting::Relay) {
            ON_ITS_WAY
        } else if job.state.is_final() {
            "the job has ended, so it can't be cancelled"
        } else {
            CHANGING
        }))
    }

    /// Queues a job again that was given up or cancelled, or does not wait any longer for the one that would be tried
    /// again.
    pub async fn retry_job(&self, origin: &Origin, scope: RepoScope, id: JobId) -> Result<Job> {
        if jobs::retry(self.databases(), Whose::Repository(scope.repository()), id).await?.is_some() {
            self.record_job(origin, scope.caller(), "job.retried", &id.to_string(), Some(scope.repository()))
                .await?;
            return self.find_job(&scope.into(), id).await;
        }
        let job = self.find_job(&scope.into(), id).await?;
        Err(Error::Conflict(match job.state {
            _ if job.waiting_for == Some(Waiting::Relay) => ON_ITS_WAY,
            JobState::Scheduled | JobState::Available => {
                "the job waits to be run; there is nothing to try again"
            }
            JobState::Running => "the job is running; cancel it first",
            JobState::Completed => "the job ended well; there is nothing to try again",
            JobState::Retryable | JobState::Cancelled | JobState::Discarded => CHANGING,
        }))
    }

    /// Gives back at once what dead processes hold; returns how many jobs.
    pub async fn rescue_jobs(&self, origin: &Origin, scope: &SystemScope) -> Result<u64> {
        let silence = self.config().task.heartbeat_timeout.duration();
        let rescued = jobs::rescue(self.databases(), silence).await?;
        self.record_job(origin, scope.caller(), "jobs.rescued", &format!("{rescued} jobs"), None).await?;
        Ok(rescued)
    }

    /// After the deed, because the queue may be on another server than the audit.
    async fn record_job(
        &self,
        origin: &Origin,
        caller: &Caller,
        action: &'static str,
        object: &str,
        repository: Option<RepositoryId>,
    ) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        record_in(&mut conn, origin, Actor::caller(caller), action, object, repository).await?;
        conn.done();
        Ok(())
    }
}

const ON_ITS_WAY: &str = "the job has not reached the queue yet, try again in a moment";
const CHANGING: &str = "the job has just changed, try again";
