//! Sources: what the knowledge of a repository rests on.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, StatusCode, header};
use okt_app::Accepted;
use okt_auth::permissions::{SourceDelete, SourceRead, SourceUpdate, SourceWrite};
use okt_http::{Budget, Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Error, RepositoryId, SourceId};
use okt_wire::contexts::Enqueued;
use okt_wire::source_views::{SourceRow, SourceView};
use okt_wire::sources::{
    NewSource, Reference, ReferenceQuery, SourceAccepted, SourceDeletion, SourceParts, SourceQuery,
    SourceWouldBeDeleted,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The source of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct SourcePath {
    #[serde(rename = "sourceID")]
    pub(crate) source: Uuid,
}

/// A text up to this size is read without asking whether there is room for it.
const LARGE: usize = 64 * 1024;

/// The sources of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources", tag = "Sources",
    operation_id = "listSources", params(SourceQuery, PageRequest),
    responses((status = 200, body = Page<SourceRow>, description = "In the order asked for")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<SourceRead>,
    Query(query): Query<SourceQuery>,
    page: PageRequest,
) -> Result<Page<SourceRow>, Problem> {
    let (filter, q, oldest) = query.parsed()?;
    let after: Option<Uuid> = page.after()?;
    let after = after.map(SourceId::from);
    let rows = api.app.list_sources(&repository.0, filter, q.as_deref(), oldest, after, page.rows()).await?;
    page.page(rows.into_iter().map(SourceRow::from).collect(), |row| row.id)
}

/// Add a source by its address or DOI.
///
/// It is fetched and processed in the background. A source of the same address or DOI is answered with 200 and not added again.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources", tag = "Sources",
    operation_id = "addSource", request_body = NewSource,
    responses((status = 202, body = SourceAccepted, description = "It will be fetched"),
              (status = 200, body = SourceAccepted, description = "It existed already")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<SourceWrite>,
    Json(body): Json<NewSource>,
) -> Result<Response, Problem> {
    let accepted = api.app.add_source(&repository.0, &body.parsed()?).await?;
    Ok(answer(repository.0.repository(), accepted))
}

/// A source with its text, its sentences and its images.
///
/// The text of a large one is megabytes: `include` says which parts are wanted, and `…/text` and `…/markdown` have them alone.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}", tag = "Sources",
    operation_id = "getSource", params(SourceParts),
    responses((status = 200, body = SourceView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    Query(query): Query<SourceParts>,
    budget: Budget,
) -> Result<Response, Problem> {
    let parts = query.parsed()?;
    // Twice: as it is read, and as it is written.
    let admit = |bytes: usize| -> Result<_, Problem> {
        let large = bytes > LARGE;
        Ok((bytes, if large { Some(budget.reserve(2 * bytes)?) } else { None }))
    };
    let (seen, (bytes, reserved)) =
        api.app.find_source(&repository.0, path.source.into(), parts, admit).await?;
    // It may have tens of megabytes, which take a core for as many milliseconds.
    let written = tokio::task::spawn_blocking(move || {
        let mut json = Vec::with_capacity(bytes + bytes / 16 + 8 * 1024);
        let view = SourceView::new(seen, parts)?;
        serde_json::to_writer(&mut json, &view).map_err(Error::internal)?;
        Ok::<_, Error>(json)
    });
    let json = written.await.map_err(Error::internal)??;
    let response = ([(header::CONTENT_TYPE, "application/json")], json).into_response();
    Ok(match reserved {
        Some(reserved) => reserved.answer(response),
        None => response,
    })
}

/// Remove a source with everything that only it supports.
///
/// What other sources support as well stays. With `dry_run=true` nothing is removed, and the answer says what would go.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/sources/{sourceID}", tag = "Sources",
    operation_id = "deleteSource", params(SourceDeletion),
    responses((status = 204, description = "Deleted"),
              (status = 200, body = SourceWouldBeDeleted, description = "What would be deleted, for a dry run")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<SourceDelete>,
    origin: RequestOrigin,
    Path(path): Path<SourcePath>,
    Query(query): Query<SourceDeletion>,
) -> Result<Response, Problem> {
    let id = path.source.into();
    if query.dry_run == Some(true) {
        let contents = api.app.source_contents(&repository.0, id).await?;
        let (facts, images, bytes) = (contents.facts, contents.images, contents.bytes);
        return Ok(Json(SourceWouldBeDeleted { dry_run: true, facts, images, bytes }).into_response());
    }
    api.app.delete_source(&origin.into(), &repository.0, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Extract facts from the text of a source, also if it was done before.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/process", tag = "Sources",
    operation_id = "processSource",
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, description = "conflict")))]
pub async fn process(
    State(api): State<Api>,
    repository: Repository<SourceUpdate>,
    Path(path): Path<SourcePath>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.process_source(&repository.0, path.source.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// Retry a failed source from the stage that failed.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/retry", tag = "Sources",
    operation_id = "retrySource",
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, description = "conflict")))]
pub async fn retry(
    State(api): State<Api>,
    repository: Repository<SourceUpdate>,
    Path(path): Path<SourcePath>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.retry_source(&repository.0, path.source.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// The sentences of a source, each with the facts that it supports.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/references", tag = "Sources",
    operation_id = "listSourceReferences", params(ReferenceQuery,
           PageRequest),
    responses((status = 200, body = Page<Reference>, description = "In the order of the text")))]
pub async fn references(
    State(api): State<Api>,
    repository: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    Query(query): Query<ReferenceQuery>,
    page: PageRequest,
) -> Result<Page<Reference>, Problem> {
    let after: Option<usize> = page.after()?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let rows = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let found = api.app.list_sentences(&repository.0, path.source.into(), query.cited, from, rows).await?;
    page.page(found.into_iter().map(Reference::from).collect(), |row| row.sentence_index)
}

/// What was accepted, with where it is.
pub(crate) fn answer(repository: RepositoryId, accepted: Accepted) -> Response {
    let status = if accepted.existing { StatusCode::OK } else { StatusCode::ACCEPTED };
    let location = format!("/api/v1/repositories/{repository}/sources/{}", accepted.source);
    let headers: [(HeaderName, String); 1] = [(header::LOCATION, location)];
    let body = SourceAccepted {
        source_id: accepted.source.uuid(),
        job_id: accepted.job.uuid(),
        resource_type: accepted.resource_type.map_or("upload", okt_model::ResourceType::as_str),
        existing: accepted.existing,
    };
    (status, headers, Json(body)).into_response()
}
