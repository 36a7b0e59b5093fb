//! Reports: what somebody wrote, checked sentence by sentence against the facts.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, StatusCode, header};
use okt_auth::permissions::{ReportDelete, ReportRead, ReportUpdate as Update, ReportWrite};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Error, ReportId};
use okt_wire::contexts::Enqueued;
use okt_wire::reports::{
    AnnotationJudgement, AnnotationView, HealthQuery, HealthView, NewReport, ReportListQuery, ReportQuery,
    ReportRow, ReportSentenceView, ReportUpdate, ReportView,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The report of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct ReportPath {
    #[serde(rename = "reportID")]
    pub(crate) report: Uuid,
}

/// An annotation of a report.
#[derive(Deserialize)]
pub struct AnnotationPath {
    #[serde(rename = "reportID")]
    report: Uuid,
    n: i64,
}

/// The reports of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports", tag = "Reports", operation_id = "listReports",
    params(PageRequest, ReportListQuery),
    responses((status = 200, body = Page<ReportRow>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<ReportRead>,
    page: PageRequest,
    Query(query): Query<ReportListQuery>,
) -> Result<Page<ReportRow>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let (parent, before) = (query.parent_id.map(ReportId::from), before.map(ReportId::from));
    let rows = api.app.list_reports(&repository.0, parent, before, page.rows()).await?;
    page.page(rows.into_iter().map(ReportRow::from).collect(), |row| row.id)
}

/// Write a report.
///
/// Its sentences are checked in the background. The body may have up to `server.limits.report_bytes` (8 MiB).
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/reports", tag = "Reports", operation_id = "createReport",
    request_body = NewReport,
    responses((status = 201, body = ReportView, description = "The report, with the job that checks it")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<ReportWrite>,
    Json(body): Json<NewReport>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<ReportView>), Problem> {
    let (made, job) = api.app.create_report(&repository.0, body.parsed()).await?;
    let (repository, id) = (repository.0.repository(), made.report.id);
    let location = format!("/api/v1/repositories/{repository}/reports/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(ReportView::new(made, job))))
}

/// A report with how its claims stand.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports/{reportID}", tag = "Reports", operation_id = "getReport",
    params(ReportQuery),
    responses((status = 200, body = ReportView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<ReportRead>,
    Path(path): Path<ReportPath>,
    Query(query): Query<ReportQuery>,
) -> Result<Json<ReportView>, Problem> {
    let seen = api.app.find_report(&repository.0, path.report.into(), query.with_body()?).await?;
    Ok(Json(ReportView::new(seen, None)))
}

/// Change a report.
///
/// Sentences that stay keep what was said of them, also what people said; only the others are checked.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/reports/{reportID}", tag = "Reports",
    operation_id = "updateReport", request_body = ReportUpdate,
    responses((status = 200, body = ReportView, description = "As it is now, with the job that checks new sentences"),
              (status = 409, description = "conflict")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<Update>,
    Path(path): Path<ReportPath>,
    Json(body): Json<ReportUpdate>,
) -> Result<Json<ReportView>, Problem> {
    let (seen, job) = api.app.update_report(&repository.0, path.report.into(), body.parsed()?).await?;
    Ok(Json(ReportView::new(seen, job)))
}

/// Delete a report with all that was said of it. Its parts stay.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/reports/{reportID}", tag = "Reports",
    operation_id = "deleteReport",
    responses((status = 204, description = "Deleted")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<ReportDelete>,
    origin: RequestOrigin,
    Path(path): Path<ReportPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_report(&origin.into(), &repository.0, path.report.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Check all claims of a report once more.
///
/// Seldom needed: a report is checked by itself when facts come, change or go. What was judged by the model of now, or by a person,
/// is not judged again.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/reports/{reportID}/annotate", tag = "Reports",
    operation_id = "annotateReport",
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 503, description = "not_configured")))]
pub async fn annotate(
    State(api): State<Api>,
    repository: Repository<Update>,
    Path(path): Path<ReportPath>,
) -> Result<Response, Problem> {
    let job = api.app.annotate_report(&repository.0, path.report.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })).into_response())
}

/// The sentences of a report, and how they stand.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports/{reportID}/sentences", tag = "Reports",
    operation_id = "listReportSentences", params(PageRequest),
    responses((status = 200, body = Page<ReportSentenceView>, description = "In their order")))]
pub async fn sentences(
    State(api): State<Api>,
    repository: Repository<ReportRead>,
    Path(path): Path<ReportPath>,
    page: PageRequest,
) -> Result<Page<ReportSentenceView>, Problem> {
    let after: Option<i32> = page.after()?;
    let from = after.map_or(0, |place| place.saturating_add(1));
    let rows = api.app.list_report_sentences(&repository.0, path.report.into(), from, page.rows()).await?;
    page.page(rows.into_iter().map(ReportSentenceView::from).collect(), |row| row.sentence_index)
}

/// What the facts near its sentences say of a report.
///
/// In the order of the sentences, for each the nearest facts first. All rows of a sentence are on one page, which may have more rows
/// than `limit` for that. Where many sentences have none a page may have fewer, or none, and a `next_cursor`.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports/{reportID}/annotations", tag = "Reports",
    operation_id = "listReportAnnotations", params(PageRequest),
    responses((status = 200, body = Page<AnnotationView>, description = "Sentence by sentence")))]
pub async fn annotations(
    State(api): State<Api>,
    repository: Repository<ReportRead>,
    Path(path): Path<ReportPath>,
    page: PageRequest,
) -> Result<Page<AnnotationView>, Problem> {
    let from: Option<i32> = page.after()?;
    let limit = usize::try_from(page.limit()).map_err(Error::internal)?;
    let (found, next) =
        api.app.list_annotations(&repository.0, path.report.into(), from.unwrap_or(0), limit).await?;
    page.page_until(found.into_iter().map(AnnotationView::from).collect(), next)
}

/// Say how a fact stands to a sentence.
///
/// What a person says stays, whatever a model would say later, also while the fact is a duplicate of another one. `null` takes it
/// back, and the pair is judged anew.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/reports/{reportID}/annotations/{n}", tag = "Reports",
    operation_id = "judgeReportAnnotation", request_body = AnnotationJudgement,
    params(("n" = i64, Path, description = "The `n` of the annotation")),
    responses((status = 200, body = AnnotationView, description = "As it is now"),
              (status = 409, description = "conflict")))]
pub async fn judge(
    State(api): State<Api>,
    repository: Repository<Update>,
    origin: RequestOrigin,
    Path(path): Path<AnnotationPath>,
    Json(body): Json<AnnotationJudgement>,
) -> Result<Json<AnnotationView>, Problem> {
    let (id, posture) = (path.report.into(), body.parsed()?);
    Ok(Json(api.app.judge_annotation(&origin.into(), &repository.0, id, path.n, posture).await?.into()))
}

/// How the claims of a report stand, and how they came to.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/reports/{reportID}/health", tag = "Reports",
    operation_id = "getReportHealth", params(PageRequest, HealthQuery),
    responses((status = 200, body = HealthView, description = "As it is now, with a page of its history, newest first")))]
pub async fn health(
    State(api): State<Api>,
    repository: Repository<ReportRead>,
    Path(path): Path<ReportPath>,
    page: PageRequest,
    Query(query): Query<HealthQuery>,
) -> Result<Json<HealthView>, Problem> {
    let before: Option<i64> = page.after()?;
    let rows = query.history.unwrap_or(true).then(|| page.rows());
    let health = api.app.find_report_health(&repository.0, path.report.into(), before, rows).await?;
    let limit = usize::try_from(page.limit()).map_err(Error::internal)?;
    let next = health.changes.get(limit).and(health.changes.get(limit - 1)).map(|change| change.no);
    let (_, _, next_cursor) = page.page_until(Vec::<()>::new(), next)?.into_parts();
    Ok(Json(HealthView::new(health, next_cursor, limit)))
}
