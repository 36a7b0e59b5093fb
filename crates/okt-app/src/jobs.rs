//! Background jobs, as people may ask of them.

use std::collections::BTreeMap;

use okt_auth::permissions::{JobCancel, JobRead};
use okt_auth::{Caller, RepoAccess, RepoScope, SystemScope};
use okt_config::JOB_KINDS;
use okt_model::{
    Error, InvestigationId, Job, JobFilter, JobId, JobState, RepositoryId, Result, SubjectKind, Waiting,
};
use okt_queue::Backlog;
use okt_queue::jobs::{self, TenantFilter};
use okt_store::investigations;
use uuid::Uuid;

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// Which jobs a caller may see: all, or those of a repository. Can only be made of a proof.
pub enum JobScope {
    Installation(SystemScope<JobRead>),
    Repository(RepoScope<JobRead>),
}

impl From<SystemScope<JobRead>> for JobScope {
    fn from(scope: SystemScope<JobRead>) -> Self {
        Self::Installation(scope)
    }
}

impl From<RepoScope<JobRead>> for JobScope {
    fn from(scope: RepoScope<JobRead>) -> Self {
        Self::Repository(scope)
    }
}

impl JobScope {
    fn tenant_filter(&self) -> TenantFilter {
        match self {
            Self::Installation(_) => TenantFilter::All,
            Self::Repository(scope) => TenantFilter::Repository(scope.repository()),
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

/// A job and all that came of it.
pub(crate) struct Family {
    /// Those that asked before those that were asked for; empty when there is none.
    pub(crate) jobs: Vec<Job>,
    /// False when there may be more to come, which the database of the repository does not say now.
    pub(crate) is_known: bool,
}

impl Family {
    /// Whether all have ended, and none is still to come.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_known && self.jobs.iter().all(|job| job.state.is_final())
    }
}

impl App {
    /// What waits in the queue, of every kind. For whoever runs the installation: it names no repository.
    pub async fn backlog(&self) -> Result<Vec<Backlog>> {
        Ok(okt_queue::backlog(self.databases(), &JOB_KINDS).await?)
    }

    /// Newest first, from before `before`.
    pub async fn list_jobs(
        &self,
        scope: &JobScope,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: i64,
    ) -> Result<Vec<Job>> {
        let investigation = filter.subject.and_then(|subject| subject.id_of(SubjectKind::Investigation));
        if let (JobScope::Repository(scope), Some(id)) = (scope, investigation) {
            return self.list_investigation_jobs(scope, id.into(), filter, before, limit).await;
        }
        Ok(jobs::list(self.databases(), scope.tenant_filter(), filter, before, limit).await?)
    }

    /// Those about the investigation itself and those about its sources.
    async fn list_investigation_jobs(
        &self,
        scope: &RepoAccess,
        id: InvestigationId,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: i64,
    ) -> Result<Vec<Job>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let sources = investigations::list_sources(&mut tx, repository, id).await?;
        tx.commit().await?;
        let sources = sources.into_iter().map(|(_, source)| source.uuid());
        let subjects: Vec<Uuid> = std::iter::once(id.uuid()).chain(sources).collect();
        Ok(okt_queue::list_about(self.databases(), repository, &subjects, filter, before, limit).await?)
    }

    pub async fn find_job(&self, scope: &JobScope, id: JobId) -> Result<Job> {
        match scope {
            JobScope::Installation(_) => {
                let found = jobs::find(self.databases(), TenantFilter::All, id).await?;
                found.ok_or(Error::NotFound("job"))
            }
            JobScope::Repository(scope) => self.load_job(scope, id).await,
        }
    }

    async fn load_job(&self, scope: &RepoAccess, id: JobId) -> Result<Job> {
        self.look_for_job(scope.repository(), id).await?.ok_or(Error::NotFound("job"))
    }

    /// Also finds a job that the queue has not heard of yet: whoever was told its id may ask at once.
    async fn look_for_job(&self, repository: RepositoryId, id: JobId) -> Result<Option<Job>> {
        let (databases, tenant) = (self.databases(), TenantFilter::Repository(repository));
        let found = jobs::find(databases, tenant, id).await?;
        if found.as_ref().is_some_and(|job| !job.state.is_final()) {
            return Ok(found);
        }
        let Some(located) = self.auth().locate(&repository.to_string()).await? else { return Ok(found) };
        if let Some(mut job) = found {
            let coming =
                okt_queue::unqueued_successors(databases, &located.database, repository, &[id]).await;
            for (_, next) in or_unknown(coming)?.unwrap_or_default() {
                add_successor(&mut job, next.id);
            }
            return Ok(Some(job));
        }
        if let Some(job) = jobs::find_in_outbox(databases, &located.database, repository, id).await? {
            return Ok(Some(job));
        }
        // It may have arrived between the two looks.
        Ok(jobs::find(databases, tenant, id).await?)
    }

    pub(crate) async fn look_for_family(&self, repository: RepositoryId, id: JobId) -> Result<Family> {
        let databases = self.databases();
        loop {
            let mut jobs = okt_queue::job_tree(databases, repository, id).await?;
            if jobs.is_empty() {
                let job = self.look_for_job(repository, id).await?;
                return Ok(Family { jobs: job.into_iter().collect(), is_known: true });
            }
            if jobs.iter().any(|job| !job.state.is_final()) {
                return Ok(Family { jobs, is_known: true });
            }
            let Some(located) = self.auth().locate(&repository.to_string()).await? else {
                return Ok(Family { jobs, is_known: true });
            };
            let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
            let coming = okt_queue::unqueued_successors(databases, &located.database, repository, &ids).await;
            let Some(coming) = or_unknown(coming)? else { return Ok(Family { jobs, is_known: false }) };
            if coming.is_empty() {
                // One may have arrived between the two looks, or have ended by now.
                let again = okt_queue::job_tree(databases, repository, id).await?;
                if again.len() == jobs.len() {
                    return Ok(Family { jobs: again, is_known: true });
                }
                continue;
            }
            for (cause, next) in coming {
                if let Some(job) = jobs.iter_mut().find(|job| job.id == cause) {
                    add_successor(job, next.id);
                }
                jobs.push(next);
            }
            return Ok(Family { jobs, is_known: true });
        }
    }

    pub async fn job_stats(&self, scope: &JobScope) -> Result<JobStats> {
        let (counts, complete) = jobs::count(self.databases(), scope.tenant_filter()).await?;
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
    pub async fn cancel_job(&self, origin: &Origin, scope: &RepoScope<JobCancel>, id: JobId) -> Result<Job> {
        if jobs::cancel(self.databases(), TenantFilter::Repository(scope.repository()), id).await?.is_some() {
            self.record_job(
                origin,
                scope.caller(),
                "job.cancelled",
                &id.to_string(),
                Some(scope.repository()),
            )
            .await;
            return self.load_job(scope, id).await;
        }
        let job = self.load_job(scope, id).await?;
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
    pub async fn retry_job(&self, origin: &Origin, scope: &RepoScope<JobCancel>, id: JobId) -> Result<Job> {
        if jobs::retry(self.databases(), TenantFilter::Repository(scope.repository()), id).await?.is_some() {
            self.record_job(origin, scope.caller(), "job.retried", &id.to_string(), Some(scope.repository()))
                .await;
            return self.load_job(scope, id).await;
        }
        let job = self.load_job(scope, id).await?;
        Err(Error::Conflict(match job.state {
            _ if job.waiting_for == Some(Waiting::Relay) => ON_ITS_WAY,
            JobState::Scheduled | JobState::Available => {
                "the job is queued and has not failed; there is nothing to retry"
            }
            JobState::Running => "the job is running; cancel it first",
            JobState::Completed => "the job completed; there is nothing to retry",
            JobState::Retryable | JobState::Cancelled | JobState::Discarded => CHANGING,
        }))
    }

    /// Gives back at once what dead processes hold; returns how many jobs.
    pub async fn rescue_jobs(&self, origin: &Origin, scope: &SystemScope<JobCancel>) -> Result<u64> {
        let silence = self.config().task.heartbeat_timeout.duration();
        let rescued = jobs::rescue(self.databases(), silence).await?;
        self.record_job(origin, scope.caller(), "jobs.rescued", &format!("{rescued} jobs"), None).await;
        Ok(rescued)
    }

    /// After the fact, because the queue may be on another server than the audit, and has no outbox for it. What was done is
    /// done whether or not it can be recorded; the log has the entry then.
    async fn record_job(
        &self,
        origin: &Origin,
        caller: &Caller,
        action: &'static str,
        object: &str,
        repository: Option<RepositoryId>,
    ) {
        let recorded = async {
            let mut conn = self.databases().acquire_system().await?;
            record_in(&mut conn, origin, Actor::caller(caller), action, object, repository).await?;
            Ok::<_, Error>(())
        };
        if let Err(error) = recorded.await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(action, object, user.id = %caller.user(), error, "failed to write an audit entry");
        }
    }
}

/// `None` where the database does not answer: what the queue knows is told all the same.
fn or_unknown<T>(found: Result<T, okt_store::Error>) -> Result<Option<T>> {
    match found {
        Err(error) if error.retryable() => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn add_successor(job: &mut Job, next: JobId) {
    if !job.successors.contains(&next) {
        job.successors.push(next);
    }
}

const ON_ITS_WAY: &str = "the job has not reached the queue yet, try again in a moment";
const CHANGING: &str = "the job has just changed, try again";
