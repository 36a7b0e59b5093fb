//! What a repository asks of a registry.

use http::StatusCode;
use okt_auth::permissions::RepositoryManage;
use okt_http::Problem;
use okt_model::Error;

use crate::extract::Repository;

/// Contribute all decompositions of the repository to its registry.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contribute-all", tag = "Settings",
    operation_id = "contributeAll",
    responses((status = 503, description = "not_configured")))]
pub async fn contribute_all(_: Repository<RepositoryManage>) -> Result<StatusCode, Problem> {
    Err(NOT_CONNECTED.into())
}

/// Pull all decompositions of the repository's sources that its registry has.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/pull-all", tag = "Settings",
    operation_id = "pullAll",
    responses((status = 503, description = "not_configured")))]
pub async fn pull_all(_: Repository<RepositoryManage>) -> Result<StatusCode, Problem> {
    Err(NOT_CONNECTED.into())
}

pub(crate) const NOT_CONNECTED: Error =
    Error::NotConfigured("this installation has no connection to a registry");
