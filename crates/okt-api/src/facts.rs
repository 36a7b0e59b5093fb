//! Facts: what the sources of a repository say.

use axum::extract::State;
use okt_auth::permissions::{FactRead, FactUpdate, SourceRead};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{CurationId, Error};
use okt_wire::facts::{
    ChangedFactView, FactConceptView, FactQuery, FactRow, FactStatusChange, FactView, SimilarQuery,
    SimilarRow, SimilarView,
};
use okt_wire::vocabulary::{SettableFactStatus, read};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};
use crate::sources::SourcePath;

/// The fact of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct FactPath {
    #[serde(rename = "factID")]
    fact: Uuid,
}

/// The facts of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts", tag = "Facts",
    operation_id = "listFacts", params(FactQuery, PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "In the order asked for")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Query(query): Query<FactQuery>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let (filter, q, by_sources) = query.parsed()?;
    let after: Option<(i32, i64)> = page.after()?;
    let (rows, left) =
        api.app.list_facts(&repository.0, filter, q.as_deref(), by_sources, after, page.rows()).await?;
    let rows = rows.into_iter().map(FactRow::from).collect();
    if left.is_some() { page.page_until(rows, left) } else { page.page(rows, |row| row.place) }
}

/// The facts of a source.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/facts", tag = "Sources",
    operation_id = "listSourceFacts", params(PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "Newest first")))]
pub async fn list_of_source(
    State(api): State<Api>,
    repository: Repository<SourceRead>,
    Path(path): Path<SourcePath>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let after: Option<(i32, i64)> = page.after()?;
    let rows = api.app.list_source_facts(&repository.0, path.source.into(), after, page.rows()).await?;
    page.page(rows.into_iter().map(FactRow::from).collect(), |row| row.place)
}

/// A fact with its sources, the sentences that support it, and its concepts.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}", tag = "Facts",
    operation_id = "getFact",
    responses((status = 200, body = FactView, description = "As it is now")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<FactPath>,
) -> Result<Json<FactView>, Problem> {
    Ok(Json(api.app.find_fact(&repository.0, path.fact.into()).await?.into()))
}

/// The facts of the group of similar facts that a fact is in: near each other, and not found to say the same or to differ.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}/group", tag = "Facts",
    operation_id = "listFactGroup", params(PageRequest),
    responses((status = 200, body = Page<FactRow>, description = "Oldest first; a fact that is in no group is listed alone")))]
pub async fn group(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<FactPath>,
    page: PageRequest,
) -> Result<Page<FactRow>, Problem> {
    let after: Option<i64> = page.after()?;
    let rows = api.app.list_fact_group(&repository.0, path.fact.into(), after, page.rows()).await?;
    page.page(rows.into_iter().map(FactRow::from).collect(), |row| row.place.1)
}

/// The concepts that a fact mentions.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}/concepts", tag = "Facts",
    operation_id = "listFactConcepts", params(PageRequest),
    responses((status = 200, body = Page<FactConceptView>, description = "By name")))]
pub async fn concepts(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<FactPath>,
    page: PageRequest,
) -> Result<Page<FactConceptView>, Problem> {
    let after: Option<usize> = page.after()?;
    let seen = api.app.find_fact(&repository.0, path.fact.into()).await?;
    // There are few, so a place among them will do.
    let numbered =
        seen.concepts.into_iter().enumerate().skip(after.map_or(0, |after| after.saturating_add(1)));
    let rows = numbered.map(|(place, concept)| FactConceptView { place, ..concept.into() });
    page.page(rows.collect(), |row| row.place)
}

/// The facts whose vectors are nearest to the vector of a fact.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/facts/{factID}/similar", tag = "Facts",
    operation_id = "listSimilarFacts", params(SimilarQuery),
    responses((status = 200, body = SimilarView, description = "Empty while the fact has no vector"),
              (status = 503, description = "not_configured, unavailable")))]
pub async fn similar(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Path(path): Path<FactPath>,
    Query(query): Query<SimilarQuery>,
) -> Result<Json<SimilarView>, Problem> {
    let limit = query.limit.unwrap_or(10);
    if !(1..=50).contains(&limit) {
        return Err(Error::invalid("limit", "must be a whole number from 1 to 50").into());
    }
    let (model, found) = api.app.list_similar_facts(&repository.0, path.fact.into(), limit).await?;
    let data = found.into_iter().map(|found| SimilarRow { row: found.fact.into(), cosine: found.cosine });
    Ok(Json(SimilarView { model, data: data.collect() }))
}

/// Reject a fact, restore it, or undo the merge of a duplicate.
///
/// `rejected` is for a fact that is `new` or `stable`. `stable` restores a `rejected` fact, or undoes the merge of a `duplicate`
/// for good: the two are not merged again. Setting the status that a fact already has changes nothing. Anything else is 409
/// `conflict`: a `duplicate` can't be rejected, and a `new` fact can't be made `stable`.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/facts/{factID}", tag = "Facts",
    operation_id = "setFactStatus",
    request_body = FactStatusChange,
    responses((status = 200, body = ChangedFactView, description = "As it is now"),
              (status = 409, description = "conflict")))]
pub async fn set_status(
    State(api): State<Api>,
    repository: Repository<FactUpdate>,
    origin: RequestOrigin,
    Path(path): Path<FactPath>,
    Json(body): Json<FactStatusChange>,
) -> Result<Json<ChangedFactView>, Problem> {
    let rejected = read::<SettableFactStatus>("status", &body.status)? == SettableFactStatus::Rejected;
    let (fact, reason) = (path.fact.into(), body.reason.as_deref());
    let changed = api.app.set_fact_status(&origin.into(), &repository.0, fact, rejected, reason).await?;
    Ok(Json(ChangedFactView { curation_id: changed.0.map(CurationId::uuid), fact: changed.1.into() }))
}
