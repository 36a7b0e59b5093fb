//! What a repository asks of a registry.

use axum::extract::State;
use http::StatusCode;
use okt_auth::permissions::RepositoryManage;
use okt_http::{Json, Problem, Query};
use okt_model::Error;
use okt_wire::contexts::Enqueued;
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

pub(crate) const NOT_CONNECTED: Error =
    Error::NotConfigured("this installation has no connection to a registry");
