//! Contexts: what the concepts of a repository are filed under.

use axum::extract::State;
use http::{HeaderName, StatusCode, header};
use okt_http::{Json, Path, Problem};
use okt_model::{Context, Error};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::Caught;
use crate::repositories::Repository;

/// What concepts may be filed under.
#[derive(Serialize, ToSchema)]
#[schema(as = Context)]
pub struct ContextView {
    #[schema(example = "Disease")]
    label: String,
    /// What belongs there, in words for the model.
    description: String,
    /// Whether it is the repository's own.
    custom: bool,
    /// The class of the ontology that it stands for.
    #[schema(required, example = "dbo:Disease")]
    ontology_class: Option<String>,
    concept_count: i64,
    /// The context whose part it is becoming.
    #[schema(required)]
    merging_into: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewContext {
    #[schema(example = "Beekeeping", min_length = 1, max_length = 100)]
    label: String,
    description: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextUpdate {
    #[schema(min_length = 1, max_length = 100)]
    label: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextMigration {
    /// The label of the context that it becomes a part of.
    #[schema(example = "Activity")]
    target: String,
}

/// A job that was asked for.
#[derive(Serialize, ToSchema)]
pub struct Enqueued {
    pub(crate) job_id: Uuid,
}

/// The context of a path; its repository is the gate's business.
#[derive(Deserialize)]
pub struct ContextPath {
    context: String,
}

/// Add a context of the repository's own.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contexts", tag = "Contexts",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = NewContext,
    responses((status = 201, body = ContextView, description = "The context"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: already_exists or conflict")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<NewContext>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<ContextView>), Problem> {
    let description = body.description.unwrap_or_default();
    let added = api.app.add_context(&origin.into(), &repository.0, &body.label, &description).await?;
    let location = location(&repository, &added.label)?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(added.into())))
}

/// Change a context of the repository's own. Its concepts stay where they are.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}", tag = "Contexts",
    params(("repoID" = String, Path, description = "Its id or its slug"),
           ("context" = String, Path, description = "Its label, in any case")), request_body = ContextUpdate,
    responses((status = 200, body = ContextView, description = "The context as it is now"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: already_exists or conflict")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<ContextPath>,
    Json(body): Json<ContextUpdate>,
) -> Result<Json<ContextView>, Problem> {
    let (label, description) = (body.label.as_deref(), body.description.as_deref());
    let origin = origin.into();
    let changed = api.app.update_context(&origin, &repository.0, &path.context, label, description);
    Ok(Json(changed.await?.into()))
}

/// Remove a context that no concept is filed under.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}", tag = "Contexts",
    params(("repoID" = String, Path, description = "Its id or its slug"),
           ("context" = String, Path, description = "Its label, in any case")),
    responses((status = 204, description = "It is gone"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: in_use or conflict")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<ContextPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_context(&origin.into(), &repository.0, &path.context).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a context a part of another one.
///
/// From now on nothing new is filed under it. A job moves its concepts; where the other one has a concept of the same name,
/// that one takes over the facts. In the end the context is gone.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/settings/contexts/{context}/migrate", tag = "Contexts",
    params(("repoID" = String, Path, description = "Its id or its slug"),
           ("context" = String, Path, description = "Its label, in any case")), request_body = ContextMigration,
    responses((status = 202, body = Enqueued, description = "The job that does it"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn migrate(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Path(path): Path<ContextPath>,
    Json(body): Json<ContextMigration>,
) -> Result<(StatusCode, Json<Enqueued>), Problem> {
    let job = api.app.migrate_context(&origin.into(), &repository.0, &path.context, &body.target).await?;
    Ok((StatusCode::ACCEPTED, Json(Enqueued { job_id: job.uuid() })))
}

/// A label may hold anything that has to be written otherwise in an address.
fn location(repository: &Repository, label: &str) -> Result<String, Error> {
    let base = format!("http://okt/api/v1/repositories/{}/settings/contexts", repository.0.repository());
    let mut url = Url::parse(&base).map_err(Error::internal)?;
    let segments = url.path_segments_mut();
    segments.map_err(|()| Error::internal("an address without a path"))?.push(label);
    Ok(url.path().to_owned())
}

impl From<Context> for ContextView {
    fn from(context: Context) -> Self {
        Self {
            label: context.label,
            description: context.description,
            custom: context.ontology_class.is_none(),
            ontology_class: context.ontology_class,
            concept_count: context.concept_count,
            merging_into: context.merging_into,
        }
    }
}
