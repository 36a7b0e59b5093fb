//! Investigations: sources that belong to one question.

use axum::extract::State;
use http::{HeaderMap, HeaderName, StatusCode, header};
use okt_app::{InvestigationConceptPlace, InvestigationFactPlace};
use okt_auth::permissions::{
    InvestigationDelete, InvestigationRead, InvestigationUpdate as Update, InvestigationWrite,
};
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{Error, InvestigationId, SourceId};
use okt_wire::facts::FactRow;
use okt_wire::investigations::{
    Addition, InvestigationAddition, InvestigationConceptPage, InvestigationConceptView, InvestigationRow,
    InvestigationSourcesAdded, InvestigationUpdate, InvestigationView, NewInvestigation,
};
use okt_wire::source_views::SourceRow;
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The investigation of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct InvestigationPath {
    #[serde(rename = "investigationID")]
    pub(crate) investigation: Uuid,
}

/// A source of an investigation.
#[derive(Deserialize)]
pub struct InvestigationSourcePath {
    #[serde(rename = "investigationID")]
    investigation: Uuid,
    #[serde(rename = "sourceID")]
    source: Uuid,
}

/// The investigations of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations", tag = "Investigations",
    operation_id = "listInvestigations", params(PageRequest),
    responses((status = 200, body = Page<InvestigationRow>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<InvestigationRead>,
    page: PageRequest,
) -> Result<Page<InvestigationRow>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let before = before.map(InvestigationId::from);
    let rows = api.app.list_investigations(&repository.0, before, page.rows()).await?;
    page.page(rows.into_iter().map(InvestigationRow::from).collect(), |row| row.id)
}

/// Begin an investigation.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/investigations", tag = "Investigations",
    operation_id = "createInvestigation", request_body = NewInvestigation,
    responses((status = 201, body = InvestigationView, description = "The investigation")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<InvestigationWrite>,
    Json(body): Json<NewInvestigation>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<InvestigationView>), Problem> {
    let made = api.app.create_investigation(&repository.0, &body.title, body.topic.as_deref()).await?;
    let (repository, id) = (repository.0.repository(), made.investigation.id);
    let location = format!("/api/v1/repositories/{repository}/investigations/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(made.into())))
}

/// An investigation with its progress and its cost.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}", tag = "Investigations",
    operation_id = "getInvestigation",
    responses((status = 200, body = InvestigationView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<InvestigationRead>,
    Path(path): Path<InvestigationPath>,
) -> Result<Json<InvestigationView>, Problem> {
    Ok(Json(api.app.find_investigation(&repository.0, path.investigation.into()).await?.into()))
}

/// Change the title or the topic of an investigation.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}", tag = "Investigations",
    operation_id = "updateInvestigation", request_body = InvestigationUpdate,
    responses((status = 200, body = InvestigationView, description = "As it is now")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<Update>,
    Path(path): Path<InvestigationPath>,
    Json(body): Json<InvestigationUpdate>,
) -> Result<Json<InvestigationView>, Problem> {
    let (title, topic) = (body.title.as_deref(), body.topic.as_deref());
    let id = path.investigation.into();
    Ok(Json(api.app.update_investigation(&repository.0, id, title, topic).await?.into()))
}

/// Delete an investigation. Its sources stay in the repository.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}", tag = "Investigations",
    operation_id = "deleteInvestigation",
    responses((status = 204, description = "Deleted")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<InvestigationDelete>,
    origin: RequestOrigin,
    Path(path): Path<InvestigationPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_investigation(&origin.into(), &repository.0, path.investigation.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The sources of an investigation.
///
/// `GET …/sources?investigation_id=…` has the same with filters.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/sources", tag = "Investigations",
    operation_id = "listInvestigationSources", params(PageRequest),
    responses((status = 200, body = Page<SourceRow>, description = "Newest first")))]
pub async fn sources(
    State(api): State<Api>,
    repository: Repository<InvestigationRead>,
    Path(path): Path<InvestigationPath>,
    page: PageRequest,
) -> Result<Page<SourceRow>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let (id, before) = (path.investigation.into(), before.map(SourceId::from));
    let rows = api.app.list_investigation_sources(&repository.0, id, before, page.rows()).await?;
    page.page(rows.into_iter().map(SourceRow::from).collect(), |row| row.id)
}

/// Add sources to an investigation: one that the repository has, or up to 50 candidates.
///
/// Each candidate is added as by `POST …/sources`, which needs `source:write` as well, and the answer says of each what became of
/// it. Sending the same again adds nothing.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/sources", tag = "Investigations",
    operation_id = "addInvestigationSources", request_body = InvestigationAddition,
    responses((status = 200, body = InvestigationSourcesAdded, description = "The result for each"),
              (status = 409, description = "conflict")))]
pub async fn add(
    State(api): State<Api>,
    repository: Repository<Update>,
    Path(path): Path<InvestigationPath>,
    Json(body): Json<InvestigationAddition>,
) -> Result<Json<InvestigationSourcesAdded>, Problem> {
    let id = path.investigation.into();
    Ok(Json(match body.parsed()? {
        Addition::Source(source) => {
            let linked = api.app.add_investigation_source(&repository.0, id, source).await?;
            InvestigationSourcesAdded::of_source(source, linked)
        }
        Addition::Candidates(candidates) => {
            api.app.add_candidates(&repository.0, id, candidates).await?.into()
        }
    }))
}

/// Take a source out of an investigation. It stays in the repository.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/sources/{sourceID}",
    tag = "Investigations", operation_id = "removeInvestigationSource",
    responses((status = 204, description = "Removed")))]
pub async fn remove(
    State(api): State<Api>,
    repository: Repository<Update>,
    Path(path): Path<InvestigationSourcePath>,
) -> Result<StatusCode, Problem> {
    let (id, source) = (path.investigation.into(), path.source.into());
    api.app.remove_investigation_source(&repository.0, id, source).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The facts that the sources of an investigation state, each once.
///
/// A page may have fewer rows than asked for although `next_cursor` is not null, if many sources have no facts.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/facts", tag = "Investigations",
    operation_id = "listInvestigationFacts", params(PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "By source, the newest sources first")))]
pub async fn facts(
    State(api): State<Api>,
    repository: Repository<InvestigationRead>,
    Path(path): Path<InvestigationPath>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let after: Option<InvestigationFactPlace> = page.after()?;
    let id = path.investigation.into();
    let (found, left) = api.app.list_investigation_facts(&repository.0, id, after, page.rows()).await?;
    let limit = usize::try_from(page.limit()).map_err(Error::internal)?;
    let next = left.or_else(|| found.get(limit).and(found.get(limit - 1)).map(|(place, _)| *place));
    page.page_until(found.into_iter().take(limit).map(|(_, fact)| fact.into()).collect(), next)
}

/// The concepts that the facts of an investigation speak of.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/investigations/{investigationID}/concepts", tag = "Investigations",
    operation_id = "listInvestigationConcepts", params(PageRequest),
    responses((status = 200, body = InvestigationConceptPage, description = "Those with the most facts of the investigation first")))]
pub async fn concepts(
    State(api): State<Api>,
    repository: Repository<InvestigationRead>,
    Path(path): Path<InvestigationPath>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<InvestigationConceptPage>), Problem> {
    let after: Option<InvestigationConceptPlace> = page.after()?;
    let id = path.investigation.into();
    let found = api.app.list_investigation_concepts(&repository.0, id, after, page.rows()).await?;
    let complete = found.complete;
    let rows = found.rows.into_iter().map(InvestigationConceptView::from).collect();
    let (headers, data, next_cursor) = page.page(rows, |row| row.place)?.into_parts();
    Ok((headers, Json(InvestigationConceptPage { data, next_cursor, complete })))
}
