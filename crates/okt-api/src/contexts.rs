//! Contexts: what the concepts of a repository are filed under.

use axum::extract::State;
use http::{HeaderName, StatusCode, header};
use okt_auth::permissions::RepositoryManage;
use okt_http::{Json, Path, Problem};
use okt_model::Error;
use okt_wire::contexts::{ContextMigration, ContextUpdate, ContextView, Enqueued, NewContext};
use serde::Deserialize;
use url::Url;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The context of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct ContextPath {
    context: String,
}

/// Add a context of the repository's own.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contexts", tag = "Contexts",
    operation_id = "addContext", request_body = NewContext,
    responses((status = 201, body = ContextView, description = "The context"),
              (status = 409, description = "already_exists, conflict")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Json(body): Json<NewContext>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<ContextView>), Problem> {
    let description = body.description.unwrap_or_default();
    let added = api.app.add_context(&origin.into(), &repository.0, &body.label, &description).await?;
    let location = location(&repository, &added.label)?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(added.into())))
}

/// Change a context of the repository's own. Its concepts stay where they are.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}", tag = "Contexts",
    operation_id = "updateContext",
    params(("context" = String, Path, description = "Its label, in any case")), request_body = ContextUpdate,
    responses((status = 200, body = ContextView, description = "The context as it is now"),
              (status = 409, description = "already_exists, conflict")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Path(path): Path<ContextPath>,
    Json(body): Json<ContextUpdate>,
) -> Result<Json<ContextView>, Problem> {
    let (label, description) = (body.label.as_deref(), body.description.as_deref());
    let origin = origin.into();
    let changed = api.app.update_context(&origin, &repository.0, &path.context, label, description);
    Ok(Json(changed.await?.into()))
}

/// Delete a context that has no concepts.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}", tag = "Contexts",
    operation_id = "deleteContext", params(("context" = String, Path, description = "Its label, in any case")),
    responses((status = 204, description = "Deleted"),
              (status = 409, description = "in_use, conflict")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Path(path): Path<ContextPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_context(&origin.into(), &repository.0, &path.context).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Merge a context into another one.
///
/// From now on nothing new is filed under it. A job moves its concepts; where the other one has a concept of the same name,
/// that one takes over the facts. In the end the context is gone.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}/migrate", tag = "Contexts",
    operation_id = "migrateContext",
    params(("context" = String, Path, description = "Its label, in any case")), request_body = ContextMigration,
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, description = "conflict")))]
pub async fn migrate(
    State(api): State<Api>,
    repository: Repository<RepositoryManage>,
    origin: RequestOrigin,
    Path(path): Path<ContextPath>,
    Json(body): Json<ContextMigration>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.migrate_context(&origin.into(), &repository.0, &path.context, &body.target).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// A label may hold anything that has to be written otherwise in an address.
fn location(repository: &Repository<RepositoryManage>, label: &str) -> Result<String, Error> {
    let base = format!("http://okt/api/v1/repositories/{}/settings/contexts", repository.0.repository());
    let mut url = Url::parse(&base).map_err(Error::internal)?;
    let segments = url.path_segments_mut();
    segments.map_err(|()| Error::internal("an address without a path"))?.push(label);
    Ok(url.path().to_owned())
}
