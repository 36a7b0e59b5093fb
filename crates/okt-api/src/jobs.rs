//! Background jobs: what runs, what waits and why, and what became of the rest.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::StatusCode;
use okt_app::{JobScope, JobStats, KindStats};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Action, Error, Job, JobFilter, JobState, Object, Permission, RepositoryId, Subject};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Api;
use crate::admin::Scope;
use crate::auth::Caught;
use crate::repositories::Repository;
use crate::streams::{self, Watcher};

pub(crate) const JOB_READ: Permission = Permission::new(Object::Job, Action::Read);
pub(crate) const JOB_CANCEL: Permission = Permission::new(Object::Job, Action::Cancel);

/// A background job.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    id: Uuid,
    #[schema(example = "retrieve_source")]
    kind: String,
    /// Where it waits for its turn: the same as its kind.
    queue: String,
    /// `scheduled`, `available`, `running`, `retryable`, or for good `completed`, `cancelled`, `discarded`.
    #[schema(example = "running")]
    state: &'static str,
    /// How often it has been tried.
    attempt: i32,
    max_attempts: i32,
    /// Smaller is sooner.
    priority: i16,
    /// Null for the installation's own.
    #[schema(required)]
    repository_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    investigation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report_id: Option<Uuid>,
    /// Null until it has said something.
    #[schema(required)]
    progress: Option<ProgressView>,
    cost: CostView,
    /// The latest failures, oldest first.
    errors: Vec<FailureView>,
    /// Why it does not run: `relay` (on its way to the queue), `schedule` (its time has not come), `retry` (it failed, and
    /// will be tried again), `slot` (all places for its kind are taken), `worker` (no living process runs its kind),
    /// `rate_limit`, `budget` or `dependency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "slot")]
    waiting_for: Option<&'static str>,
    created_at: DateTime<Utc>,
    /// Not run before this.
    scheduled_at: DateTime<Utc>,
    #[schema(required)]
    started_at: Option<DateTime<Utc>>,
    /// When its process last said that it is alive.
    #[schema(required)]
    heartbeat_at: Option<DateTime<Utc>>,
    #[schema(required)]
    finished_at: Option<DateTime<Utc>>,
    /// What it left behind, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<serde_json::Value>,
}

/// How far a job is.
#[derive(Serialize, ToSchema)]
#[schema(as = JobProgress)]
struct ProgressView {
    stage: String,
    done: u64,
    #[schema(required)]
    total: Option<u64>,
    #[schema(required)]
    message: Option<String>,
}

/// What a job has spent on models.
#[derive(Serialize, ToSchema)]
#[schema(as = JobCost)]
struct CostView {
    tokens_in: u64,
    tokens_out: u64,
    usd: f64,
}

/// One time that a job failed.
#[derive(Serialize, ToSchema)]
#[schema(as = JobFailure)]
struct FailureView {
    at: DateTime<Utc>,
    attempt: i32,
    message: String,
}

/// How many jobs there are by kind and state.
#[derive(Serialize, ToSchema)]
#[schema(as = JobStats)]
pub struct StatsView {
    data: Vec<KindView>,
    /// False when there are more than are counted: then these are the least that there are.
    complete: bool,
}

/// How many jobs of a kind there are.
#[derive(Serialize, ToSchema)]
#[schema(as = JobKindStats)]
struct KindView {
    kind: String,
    /// Processes that live and run this kind.
    workers: i64,
    scheduled: i64,
    available: i64,
    running: i64,
    retryable: i64,
    /// Null for the whole installation: they are too many to be counted.
    #[schema(required)]
    completed: Option<i64>,
    cancelled: i64,
    discarded: i64,
}

/// What came of looking for jobs that nobody works on any more.
#[derive(Serialize, ToSchema)]
pub struct Rescued {
    /// How many were given back.
    rescued: u64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// `scheduled`, `available`, `running`, `retryable`, `completed`, `cancelled` or `discarded`.
    state: Option<String>,
    kind: Option<String>,
    source_id: Option<Uuid>,
    investigation_id: Option<Uuid>,
    report_id: Option<Uuid>,
}

/// The job of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct JobPath {
    #[serde(rename = "jobID")]
    job: Uuid,
}

/// All jobs of the installation.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "Jobs", params(JobQuery, PageRequest),
    responses((status = 200, body = Page<JobView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    scope: Scope,
    Query(query): Query<JobQuery>,
    page: PageRequest,
) -> Result<Page<JobView>, Problem> {
    page_of(&api, &scope.0.into(), query, &page).await
}

/// How many jobs there are in the installation.
#[utoipa::path(get, path = "/api/v1/jobs/stats", tag = "Jobs",
    responses((status = 200, body = StatsView, description = "By kind")))]
pub async fn stats(State(api): State<Api>, scope: Scope) -> Result<Json<StatsView>, Problem> {
    let stats = api.app.job_stats(&scope.0.into()).await?;
    Ok(Json(StatsView::new(stats, false)))
}

/// A job.
#[utoipa::path(get, path = "/api/v1/jobs/{jobID}", tag = "Jobs", params(("jobID" = Uuid, Path)),
    responses((status = 200, body = JobView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    scope: Scope,
    Path(id): Path<Uuid>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(api.app.find_job(&scope.0.into(), id.into()).await?.into()))
}

/// The jobs of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), JobQuery, PageRequest),
    responses((status = 200, body = Page<JobView>, description = "Newest first")))]
pub async fn list_in(
    State(api): State<Api>,
    repository: Repository,
    Query(query): Query<JobQuery>,
    page: PageRequest,
) -> Result<Page<JobView>, Problem> {
    page_of(&api, &repository.0.into(), query, &page).await
}

/// How many jobs a repository has.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/stats", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 200, body = StatsView, description = "By kind")))]
pub async fn stats_in(State(api): State<Api>, repository: Repository) -> Result<Json<StatsView>, Problem> {
    let stats = api.app.job_stats(&repository.0.into()).await?;
    Ok(Json(StatsView::new(stats, true)))
}

/// A job of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/{jobID}", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("jobID" = Uuid, Path)),
    responses((status = 200, body = JobView, description = "As it is now")))]
pub async fn show_in(
    State(api): State<Api>,
    repository: Repository,
    Path(path): Path<JobPath>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(api.app.find_job(&repository.0.into(), path.job.into()).await?.into()))
}

/// Cancel a job.
///
/// One that waits is cancelled at once; one that runs stops within moments, and its state says when it has.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/cancel", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("jobID" = Uuid, Path)),
    responses((status = 202, body = JobView, description = "As it is now"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn cancel(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<JobPath>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let job = api.app.cancel_job(&origin.into(), repository.0, path.job.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(job.into())))
}

/// Try a job again.
///
/// For one that was given up or cancelled, or that waits to be tried again anyway. Its attempts are counted anew.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/retry", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("jobID" = Uuid, Path)),
    responses((status = 202, body = JobView, description = "As it is now"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn retry(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<JobPath>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let job = api.app.retry_job(&origin.into(), repository.0, path.job.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(job.into())))
}

/// Give back the jobs of processes that died.
///
/// This happens by itself within moments; nothing is taken from a process that lives.
#[utoipa::path(post, path = "/api/v1/admin/jobs/rescue", tag = "Administration",
    responses((status = 200, body = Rescued, description = "How many were given back")))]
pub async fn rescue(State(api): State<Api>, scope: Scope, origin: Caught) -> Result<Json<Rescued>, Problem> {
    let rescued = api.app.rescue_jobs(&origin.into(), &scope.0).await?;
    Ok(Json(Rescued { rescued }))
}

/// The jobs of a repository as they change.
///
/// Server-sent events named `job`; their data is the job. Send the last id as `Last-Event-ID` to hear of every job that
/// ended meanwhile; without it the stream begins with the jobs that have not ended, at most the newest 200 and those
/// that run. A job may be told twice. The stream ends after 15 minutes, when the caller loses the right to read, and when
/// the process is stopped: connect again.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/events", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("Last-Event-ID" = Option<String>, Header, description = "The id to go on after")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events, without end")))]
pub async fn events(State(api): State<Api>, watcher: Watcher) -> Result<Response, Problem> {
    let place = watcher.take_place(&api)?;
    let watch = api.app.watch_jobs(watcher.scope(), watcher.last.as_deref()).await?;
    Ok(streams::answer(&api, watch, watcher, JOB_READ, place))
}

/// A job as it changes.
///
/// Server-sent events named `job`, the first with the present state; the stream ends after the last one. Whoever comes
/// back with the id of the last one as `Last-Event-ID` gets 204.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/events", tag = "Jobs",
    params(("repoID" = String, Path, description = "Its id or its slug"), ("jobID" = Uuid, Path),
           ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was heard")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events until the job has ended"),
              (status = 204, description = "The job has ended, and the caller knows")))]
pub async fn job_events(
    State(api): State<Api>,
    watcher: Watcher,
    Path(path): Path<JobPath>,
) -> Result<Response, Problem> {
    let place = watcher.take_place(&api)?;
    Ok(match api.app.watch_job(watcher.scope(), path.job.into(), watcher.last.as_deref()).await? {
        Some(watch) => streams::answer(&api, watch, watcher, JOB_READ, place),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn page_of(
    api: &Api,
    scope: &JobScope,
    query: JobQuery,
    page: &PageRequest,
) -> Result<Page<JobView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let filter = query.filter()?;
    let jobs = api.app.list_jobs(scope, &filter, before.map(Into::into), page.rows()).await?;
    page.page(jobs.into_iter().map(JobView::from).collect(), |job| job.id)
}

impl JobQuery {
    fn filter(self) -> Result<JobFilter, Error> {
        let known = |text: &str| JobState::ALL.iter().copied().find(|state| state.as_str() == text);
        let unknown = || Error::invalid("state", "no job is ever in this state");
        let state = self.state.map(|text| known(&text).ok_or_else(unknown)).transpose()?;
        let subject =
            Subject { source: self.source_id, investigation: self.investigation_id, report: self.report_id };
        Ok(JobFilter { state, kind: self.kind, subject })
    }
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self {
            id: job.id.uuid(),
            queue: job.kind.clone(),
            kind: job.kind,
            state: job.state.as_str(),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            priority: job.priority,
            repository_id: job.repository.map(RepositoryId::uuid),
            source_id: job.subject.source,
            investigation_id: job.subject.investigation,
            report_id: job.subject.report,
            progress: job.progress.map(|progress| ProgressView {
                stage: progress.stage,
                done: progress.done,
                total: progress.total,
                message: progress.message,
            }),
            cost: CostView {
                tokens_in: job.cost.tokens_in,
                tokens_out: job.cost.tokens_out,
                usd: job.cost.usd,
            },
            errors: job
                .failures
                .into_iter()
                .map(|failure| FailureView {
                    at: failure.at,
                    attempt: failure.attempt,
                    message: failure.message,
                })
                .collect(),
            waiting_for: job.waiting_for.map(okt_model::Waiting::as_str),
            created_at: job.created_at,
            scheduled_at: job.scheduled_at,
            started_at: job.started_at,
            heartbeat_at: job.heartbeat_at,
            finished_at: job.finished_at,
            output: job.output,
        }
    }
}

impl StatsView {
    fn new(stats: JobStats, of_a_repository: bool) -> Self {
        let view = |kind: KindStats| KindView {
            workers: kind.workers,
            scheduled: kind.count(JobState::Scheduled),
            available: kind.count(JobState::Available),
            running: kind.count(JobState::Running),
            retryable: kind.count(JobState::Retryable),
            completed: of_a_repository.then(|| kind.count(JobState::Completed)),
            cancelled: kind.count(JobState::Cancelled),
            discarded: kind.count(JobState::Discarded),
            kind: kind.kind,
        };
        Self { data: stats.kinds.into_iter().map(view).collect(), complete: stats.complete }
    }
}
