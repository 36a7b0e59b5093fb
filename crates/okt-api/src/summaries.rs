//! What is known of concepts, in words: summaries and definitions.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use okt_auth::permissions::{ConceptRead, ConceptUpdate};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_wire::contexts::Enqueued;
use okt_wire::summaries::{
    DefinitionQuery, DefinitionView, ResynthesisQuery, SliceView, SynthesisEstimateView,
};

use crate::Api;
use crate::concepts::ConceptPath;
use crate::extract::Repository;

/// Summaries of what facts say about a concept.
///
/// Each covers some facts of the concept, and no fact is in two of them. Where no model has written any, one extractive summary
/// is made of the facts that say most while it is read.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/summaries", tag = "Concepts",
    operation_id = "listConceptSummaries", params(PageRequest),
    responses((status = 200, body = Page<SliceView>, description = "By their numbers")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    page: PageRequest,
) -> Result<Page<SliceView>, Problem> {
    let after: Option<i32> = page.after()?;
    let found =
        api.app.list_concept_summaries(&repository.0, path.concept.into(), after, page.rows()).await?;
    page.page(found.into_iter().map(SliceView::from).collect(), |row| row.place)
}

/// What a concept's name means.
///
/// One text over all contexts of the name. Where no model has written one, it is made of the facts that say most while it is
/// read. `version` shows an earlier one, `diff` compares.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/definition", tag = "Concepts",
    operation_id = "getConceptDefinition", params(DefinitionQuery),
    responses((status = 200, body = DefinitionView, description = "The latest, or the version asked for")))]
pub async fn definition(
    State(api): State<Api>,
    repository: Repository<ConceptRead>,
    Path(path): Path<ConceptPath>,
    Query(query): Query<DefinitionQuery>,
) -> Result<Json<DefinitionView>, Problem> {
    query.checked()?;
    let (version, diff) = (query.version, query.diff);
    let seen = api.app.find_concept_definition(&repository.0, path.concept.into(), version, diff).await?;
    Ok(Json(seen.into()))
}

/// Write the definition of a concept's name anew.
///
/// Also if nothing that it covers has changed. With `dry_run=true` the answer is an estimate of the cost, and nothing is asked.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/concepts/{conceptID}/resynthesize", tag = "Concepts",
    operation_id = "resynthesizeConcept", params(ResynthesisQuery),
    responses((status = 200, body = SynthesisEstimateView, description = "With `dry_run=true`: what it would cost"),
              (status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, description = "conflict"),
              (status = 503, description = "not_configured")))]
pub async fn resynthesize(
    State(api): State<Api>,
    repository: Repository<ConceptUpdate>,
    Path(path): Path<ConceptPath>,
    Query(query): Query<ResynthesisQuery>,
) -> Result<Response, Problem> {
    let id = path.concept.into();
    if query.dry_run == Some(true) {
        let estimate = api.app.estimate_resynthesis(&repository.0, id).await?;
        return Ok(Json(SynthesisEstimateView::from(estimate)).into_response());
    }
    let job = api.app.resynthesize_concept(&repository.0, id).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })).into_response())
}
