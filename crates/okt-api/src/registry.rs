//! What a repository asks of a registry.

use http::StatusCode;
use okt_http::Problem;
use okt_model::Error;

use crate::repositories::Repository;

/// Give all decompositions of the repository to its registry.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contribute-all", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 503, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: not_configured")))]
pub async fn contribute_all(_: Repository) -> Result<StatusCode, Problem> {
    Err(NOT_CONNECTED.into())
}

/// Take all decompositions of the repository's sources that its registry has.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/pull-all", tag = "Settings",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 503, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: not_configured")))]
pub async fn pull_all(_: Repository) -> Result<StatusCode, Problem> {
    Err(NOT_CONNECTED.into())
}

const NOT_CONNECTED: Error = Error::NotConfigured("this installation has no connection to a registry");
