//! What a repository asks of a registry.

use axum::extract::State;
use http::StatusCode;
use okt_auth::permissions::{GraphWrite, RepositoryManage, SourceWrite};
use okt_http::{Json, Problem, Query};
use okt_model::UserId;
use okt_wire::contexts::Enqueued;
use okt_wire::registry::{FoundView, GraphsQuery, RegistryGraphs, RegistryQuery};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// Contribute all decompositions of the repository to its registry.
///
/// A job for each processed source that was added by its address and that a chat model was asked about. What came from a registry is
/// not contributed, and neither are uploaded files.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contribute-all", tag = "Settings",
    operation_id = "contributeAll",
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 503, description = "not_configured: no registry is configured")))]
pub async fn contribute_all(
    State(api): State<Api>,
    scope: Repository<RepositoryManage>,
    origin: RequestOrigin,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.contribute_all(&origin.into(), &scope.0).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// Pull what the registry has for sources of the repository that could not be had.
///
/// A job asks for each source that was added by its address and failed before it had any facts. Nothing is fetched. With
/// `dry_run=true` the job only counts.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/pull-all", tag = "Settings",
    operation_id = "pullAll",
    params(PullQuery),
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 503, description = "not_configured: no registry is configured")))]
pub async fn pull_all(
    State(api): State<Api>,
    scope: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Query(query): Query<PullQuery>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.pull_all(&origin.into(), &scope.0, query.dry_run).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// How to pull.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PullQuery {
    /// Only count what would be imported.
    #[serde(default)]
    #[param(required = false, default = false)]
    dry_run: bool,
}

/// Look up what the registry of the repository has of a source.
///
/// Nothing is imported: what the registry has is taken when the source is added. Each package says whether the repository would take
/// it, and why not.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/registry/search", tag = "Sources",
    operation_id = "searchRegistry", params(RegistryQuery),
    responses((status = 200, body = FoundView, description = "What it has"),
              (status = 503, description = "not_configured, unavailable")))]
pub async fn search(
    State(api): State<Api>,
    scope: Repository<SourceWrite>,
    Query(query): Query<RegistryQuery>,
) -> Result<Json<FoundView>, Problem> {
    let named = query.parsed()?;
    asked(&api, scope.0.caller().user())?;
    Ok(Json(api.app.search_registry(&scope.0, &named).await?.into()))
}

/// List bundles of a registry.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/registry/graphs", tag = "Graph bundles",
    operation_id = "listRegistryGraphs", params(GraphsQuery),
    responses((status = 200, body = RegistryGraphs, description = "The newest first"),
              (status = 503, description = "not_configured, unavailable")))]
pub async fn graphs(
    State(api): State<Api>,
    scope: Repository<GraphWrite>,
    Query(query): Query<GraphsQuery>,
) -> Result<Json<RegistryGraphs>, Problem> {
    asked(&api, scope.0.caller().user())?;
    let words = (query.q.as_deref(), query.tag.as_deref());
    let (registry, cursor) = (query.registry_id.as_deref(), query.cursor.as_deref());
    Ok(Json(api.app.list_registry_graphs(&scope.0, registry, words, cursor).await?.into()))
}

/// Counts it as a search for sources.
fn asked(api: &Api, user: UserId) -> Result<(), Problem> {
    api.source_searches.check(&user).map_err(|problem| problem.saying("you ask the registry too often"))
}
