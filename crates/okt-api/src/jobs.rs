//! Background jobs: what runs, what waits and why, and what became of the rest.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use okt_app::JobScope;
use okt_auth::permissions::{JobCancel, JobRead};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_wire::jobs::{JobQuery, JobView, Rescued, StatsView};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin, System};
use crate::streams::{self, last_event_id};

/// The job of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct JobPath {
    #[serde(rename = "jobID")]
    job: Uuid,
}

/// All jobs of the installation.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "Jobs",
    operation_id = "listJobs", params(JobQuery, PageRequest),
    responses((status = 200, body = Page<JobView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    scope: System<JobRead>,
    Query(query): Query<JobQuery>,
    page: PageRequest,
) -> Result<Page<JobView>, Problem> {
    page_of(&api, &scope.0.into(), query, &page).await
}

/// How many jobs there are in the installation.
#[utoipa::path(get, path = "/api/v1/jobs/stats", tag = "Jobs",
    operation_id = "getJobStats",
    responses((status = 200, body = StatsView, description = "By kind")))]
pub async fn stats(State(api): State<Api>, scope: System<JobRead>) -> Result<Json<StatsView>, Problem> {
    let stats = api.app.job_stats(&scope.0.into()).await?;
    Ok(Json(StatsView::new(stats, false)))
}

/// A job.
#[utoipa::path(get, path = "/api/v1/jobs/{jobID}", tag = "Jobs",
    operation_id = "getJob",
    responses((status = 200, body = JobView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    scope: System<JobRead>,
    Path(id): Path<Uuid>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(api.app.find_job(&scope.0.into(), id.into()).await?.into()))
}

/// The jobs of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs", tag = "Jobs",
    operation_id = "listRepositoryJobs", params(JobQuery, PageRequest),
    responses((status = 200, body = Page<JobView>, description = "Newest first")))]
pub async fn list_in(
    State(api): State<Api>,
    repository: Repository<JobRead>,
    Query(query): Query<JobQuery>,
    page: PageRequest,
) -> Result<Page<JobView>, Problem> {
    page_of(&api, &repository.0.into(), query, &page).await
}

/// How many jobs a repository has.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/stats", tag = "Jobs",
    operation_id = "getRepositoryJobStats",
    responses((status = 200, body = StatsView, description = "By kind")))]
pub async fn stats_in(
    State(api): State<Api>,
    repository: Repository<JobRead>,
) -> Result<Json<StatsView>, Problem> {
    let stats = api.app.job_stats(&repository.0.into()).await?;
    Ok(Json(StatsView::new(stats, true)))
}

/// A job of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/{jobID}", tag = "Jobs",
    operation_id = "getRepositoryJob",
    responses((status = 200, body = JobView, description = "As it is now")))]
pub async fn show_in(
    State(api): State<Api>,
    repository: Repository<JobRead>,
    Path(path): Path<JobPath>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(api.app.find_job(&repository.0.into(), path.job.into()).await?.into()))
}

/// Cancel a job.
///
/// One that waits is cancelled at once; one that runs stops within moments, and its state says when it has.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/cancel", tag = "Jobs",
    operation_id = "cancelJob",
    responses((status = 202, body = JobView, description = "As it is now"),
              (status = 409, description = "conflict")))]
pub async fn cancel(
    State(api): State<Api>,
    repository: Repository<JobCancel>,
    origin: RequestOrigin,
    Path(path): Path<JobPath>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let job = api.app.cancel_job(&origin.into(), &repository.0, path.job.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(job.into())))
}

/// Try a job again.
///
/// For one that was given up or cancelled, or that waits to be tried again anyway. Its attempts are counted anew.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/retry", tag = "Jobs",
    operation_id = "retryJob",
    responses((status = 202, body = JobView, description = "As it is now"),
              (status = 409, description = "conflict")))]
pub async fn retry(
    State(api): State<Api>,
    repository: Repository<JobCancel>,
    origin: RequestOrigin,
    Path(path): Path<JobPath>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let job = api.app.retry_job(&origin.into(), &repository.0, path.job.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(job.into())))
}

/// Release the jobs of workers that died.
///
/// This happens by itself within moments; nothing is taken from a process that lives.
#[utoipa::path(post, path = "/api/v1/admin/jobs/rescue", tag = "Administration",
    operation_id = "rescueJobs",
    responses((status = 200, body = Rescued, description = "How many jobs were released")))]
pub async fn rescue(
    State(api): State<Api>,
    scope: System<JobCancel>,
    origin: RequestOrigin,
) -> Result<Json<Rescued>, Problem> {
    let rescued = api.app.rescue_jobs(&origin.into(), &scope.0).await?;
    Ok(Json(Rescued { rescued }))
}

/// The jobs of a repository as they change.
///
/// Server-sent events named `job`; their data is the job. When the claims of a report came to stand otherwise, an event named
/// `report.health_changed` comes before that of its job, with `report_id`, how many have `changed`, and the `counts`. Send the last id as `Last-Event-ID` to get every job that
/// ended meanwhile; without it the stream begins with the jobs that have not ended, at most the newest 200 and those
/// that run. A job may be reported twice. The stream ends after 15 minutes, when the caller loses the right to read, and when
/// the process is stopped: connect again.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/events", tag = "Jobs",
    operation_id = "watchJobs",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events, without end",
               example = "id: 41\nevent: job\ndata: {\"id\":\"0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60\",\"state\":\"running\"}\n\n")))]
pub async fn events(
    State(api): State<Api>,
    scope: Repository<JobRead>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let watch = api.app.watch_jobs(&scope.0, last_event_id(&headers)).await?;
    Ok(streams::answer(watch))
}

/// A job and its successors as they change.
///
/// Server-sent events named `job`, the first with the present state; then also of the jobs that this one asked for, of those
/// that they asked for, and so on. The stream ends when all of them have ended: for a source, when its facts are there and
/// compared. Reconnecting with the id of the last event as `Last-Event-ID` gets 204.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/jobs/{jobID}/events", tag = "Jobs",
    operation_id = "watchJob", params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events until the job and its successors have ended",
               example = "id: 41\nevent: job\ndata: {\"id\":\"0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60\",\"state\":\"completed\"}\n\n"),
              (status = 204, description = "All have ended, and the last event was received")))]
pub async fn job_events(
    State(api): State<Api>,
    scope: Repository<JobRead>,
    Path(path): Path<JobPath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(match api.app.watch_job(&scope.0, path.job.into(), last_event_id(&headers)).await? {
        Some(watch) => streams::answer(watch),
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
