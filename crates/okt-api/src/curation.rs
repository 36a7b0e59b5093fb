//! Curation: what people decide about concepts and facts, and taking it back.

use axum::extract::State;
use okt_auth::permissions::{ConceptRead, ConceptUpdate};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::FactId;
use okt_wire::curation::{
    AliasChange, ConceptMerge, ConceptSplit, ConceptUpdate as Update, CuratedView, CurationQuery,
    CurationView, ReasonQuery,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::concepts::ConceptPath;
use crate::extract::{Repository, RequestOrigin};

/// A fact and a concept of a path.
#[derive(Deserialize)]
pub struct LinkPath {
    #[serde(rename = "factID")]
    fact: Uuid,
    #[serde(rename = "conceptID")]
    concept: Uuid,
}

/// A step of a path.
#[derive(Deserialize)]
pub struct StepPath {
    #[serde(rename = "curationID")]
    step: Uuid,
}

/// The steps of curation in a repository: who decided what, when and why.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/curation", tag = "Curation",
    operation_id = "listCuration", params(CurationQuery, PageRequest),
    responses((status = 200, body = Page<CurationView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Query(query): Query<CurationQuery>,
    page: PageRequest,
) -> Result<Page<CurationView>, Problem> {
    let before: Option<i64> = page.after()?;
    let concept = query.concept_id.map(Into::into);
    let steps = api.app.list_curation(&repository.0, concept, before, page.rows()).await?;
    page.page(steps.into_iter().map(CurationView::from).collect(), |step| step.place)
}

/// Undo a step of curation.
///
/// Everything that the step changed is as it was before. A later step that changed the same has to be undone first: 409
/// `conflict` names such steps, the newest first. A step can be undone once.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/curation/{curationID}/undo", tag = "Curation",
    operation_id = "undoCuration",
    responses((status = 200, body = CurationView, description = "The step, now undone"),
              (status = 409, description = "conflict, already_exists")))]
pub async fn undo(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<StepPath>,
) -> Result<Json<CurationView>, Problem> {
    Ok(Json(api.app.undo_curation(&origin.into(), &repository.0, path.step.into()).await?.into()))
}

/// Merge a concept into another one.
///
/// The facts, aliases and name of the concept are those of the other one from now on, and its id leads there.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/merge", tag = "Curation",
    operation_id = "mergeConcept", request_body = ConceptMerge,
    responses((status = 200, body = CuratedView, description = "The concept that remains"),
              (status = 409, description = "conflict")))]
pub async fn merge(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ConceptPath>,
    Json(body): Json<ConceptMerge>,
) -> Result<Json<CuratedView>, Problem> {
    let (concept, into, reason) = (path.concept.into(), body.into.into(), body.reason.as_deref());
    let merged = api.app.merge_concepts(&origin.into(), &repository.0, concept, into, reason).await?;
    Ok(Json(merged.into()))
}

/// Make a new concept of some facts of a concept.
///
/// No job links these facts to the old concept again, or merges the two.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/split", tag = "Curation",
    operation_id = "splitConcept", request_body = ConceptSplit,
    responses((status = 200, body = CuratedView, description = "The new concept"),
              (status = 409, description = "already_exists, conflict")))]
pub async fn split(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ConceptPath>,
    Json(body): Json<ConceptSplit>,
) -> Result<Json<CuratedView>, Problem> {
    let facts: Vec<FactId> = body.fact_ids.into_iter().map(Into::into).collect();
    let (named, reason) = ((body.name.as_str(), body.context.as_str()), body.reason.as_deref());
    let concept = path.concept.into();
    let split = api.app.split_concept(&origin.into(), &repository.0, concept, &facts, named, reason).await?;
    Ok(Json(split.into()))
}

/// Rename a concept, or move it to another context.
///
/// Jobs that find the former name in the former context still find this concept.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}", tag = "Curation",
    operation_id = "updateConcept", request_body = Update,
    responses((status = 200, body = CuratedView, description = "The concept as it is now"),
              (status = 409, description = "already_exists, conflict")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ConceptPath>,
    Json(body): Json<Update>,
) -> Result<Json<CuratedView>, Problem> {
    let named = (body.canonical_name.as_deref(), body.context.as_deref());
    let (concept, reason) = (path.concept.into(), body.reason.as_deref());
    let renamed = api.app.rename_concept(&origin.into(), &repository.0, concept, named, reason).await?;
    Ok(Json(renamed.into()))
}

/// Give a concept another name beside its own.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/aliases", tag = "Curation",
    operation_id = "addAlias", request_body = AliasChange,
    responses((status = 200, body = CuratedView, description = "The concept"),
              (status = 409, description = "already_exists, conflict")))]
pub async fn add_alias(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ConceptPath>,
    Json(body): Json<AliasChange>,
) -> Result<Json<CuratedView>, Problem> {
    let (concept, reason) = (path.concept.into(), body.reason.as_deref());
    let added = api.app.add_alias(&origin.into(), &repository.0, concept, &body.alias, reason).await?;
    Ok(Json(added.into()))
}

/// Take an alias away from a concept. No job gives it back.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/aliases", tag = "Curation",
    operation_id = "removeAlias", request_body = AliasChange,
    responses((status = 200, body = CuratedView, description = "The concept")))]
pub async fn remove_alias(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ConceptPath>,
    Json(body): Json<AliasChange>,
) -> Result<Json<CuratedView>, Problem> {
    let (concept, reason) = (path.concept.into(), body.reason.as_deref());
    let removed = api.app.remove_alias(&origin.into(), &repository.0, concept, &body.alias, reason).await?;
    Ok(Json(removed.into()))
}

/// Remove a fact from a concept that it does not mention. No job links the two again.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/facts/{factID}/concepts/{conceptID}", tag = "Curation",
    operation_id = "rejectLink", params(ReasonQuery),
    responses((status = 200, body = CuratedView, description = "The concept")))]
pub async fn reject_link(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    origin: RequestOrigin,
    Path(path): Path<LinkPath>,
    Query(query): Query<ReasonQuery>,
) -> Result<Json<CuratedView>, Problem> {
    let (fact, concept, reason) = (path.fact.into(), path.concept.into(), query.reason.as_deref());
    let rejected = api.app.reject_link(&origin.into(), &repository.0, fact, concept, reason).await?;
    Ok(Json(rejected.into()))
}
