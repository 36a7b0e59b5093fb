//! Repositories.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, StatusCode, header};
use okt_app::RepositoryRequest;
use okt_auth::permissions::{self, RepositoryDelete, RepositoryRead, RepositoryWrite};
use okt_auth::{Needed as _, Refused};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Domain, Error, RepositoryId};
use okt_wire::repositories::{
    CountsView, Deletion, NewRepository, RepositoryUpdate, RepositoryView, WouldBeDeleted,
};
use okt_wire::users::DomainView;
use uuid::Uuid;

use crate::Api;
use crate::extract::{CurrentCaller, Repository, RequestOrigin, System};

/// The repositories that you can see, your own and those that are shared with you.
#[utoipa::path(get, path = "/api/v1/repositories", tag = "Repositories",
    operation_id = "listRepositories", params(PageRequest),
    responses((status = 200, body = Page<RepositoryView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CurrentCaller,
    page: PageRequest,
) -> Result<Page<RepositoryView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let (rows, next) = api.app.list_repositories(&caller.0, before.map(Into::into), page.limit()).await?;
    page.page_until(rows.into_iter().map(RepositoryView::from).collect(), next.map(RepositoryId::uuid))
}

/// Make a repository; you become its administrator.
#[utoipa::path(post, path = "/api/v1/repositories", tag = "Repositories",
    operation_id = "createRepository", request_body = NewRepository,
    responses((status = 201, body = RepositoryView, description = "The repository"),
              (status = 409, description = "already_exists")))]
pub async fn create(
    State(api): State<Api>,
    scope: System<RepositoryWrite>,
    origin: RequestOrigin,
    Json(body): Json<NewRepository>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<RepositoryView>), Problem> {
    let request = RepositoryRequest {
        name: body.name,
        slug: body.slug,
        description: body.description,
        database: body.database,
        tier: body.tier,
        preset: body.preset,
    };
    let made = api.app.create_repository(&origin.into(), &scope.0, &request).await?;
    let location = format!("/api/v1/repositories/{}", made.repository.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(made.into())))
}

/// A repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}", tag = "Repositories",
    operation_id = "getRepository",
    responses((status = 200, body = RepositoryView, description = "The repository")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<RepositoryRead>,
) -> Result<Json<RepositoryView>, Problem> {
    Ok(Json(api.app.find_repository(&repository.0).await?.into()))
}

/// Change a repository's name or description. Its slug stays.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}", tag = "Repositories",
    operation_id = "updateRepository", request_body = RepositoryUpdate,
    responses((status = 200, body = RepositoryView, description = "The repository as it is now")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<permissions::RepositoryUpdate>,
    origin: RequestOrigin,
    Json(body): Json<RepositoryUpdate>,
) -> Result<Json<RepositoryView>, Problem> {
    let (name, description) = (body.name.as_deref(), body.description.as_deref());
    Ok(Json(api.app.update_repository(&origin.into(), &repository.0, name, description).await?.into()))
}

/// Delete a repository with everything in it.
///
/// It is hidden from the next request on, from sysadmins within a second; its data is removed in the
/// background. With `dry_run` nothing happens
/// but that you are told how much would go.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}", tag = "Repositories",
    operation_id = "deleteRepository", params(Deletion),
    responses((status = 200, body = WouldBeDeleted, description = "What would be deleted"),
              (status = 204, description = "Deleted")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<RepositoryDelete>,
    origin: RequestOrigin,
    Query(query): Query<Deletion>,
) -> Result<Response, Problem> {
    if query.dry_run == Some(true) {
        let counts = api.app.repository_contents(&repository.0).await?.map(CountsView::from);
        return Ok(Json(WouldBeDeleted { dry_run: true, counts }).into_response());
    }
    api.app.delete_repository(&origin.into(), &repository.0).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What you may do in a repository.
///
/// A caller without permissions there gets an empty list, whether or not the repository exists.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/permissions", tag = "Repositories",
    operation_id = "getRepositoryPermissions",
    responses((status = 200, body = DomainView, description = "With the credential that you showed")))]
pub async fn permissions(
    State(api): State<Api>,
    caller: CurrentCaller,
    Path(named): Path<String>,
) -> Result<Json<DomainView>, Problem> {
    let domain = Domain::Repository(api.repository_named(&named).await?);
    let unseen = caller.0.decide(domain, RepositoryRead::PERMISSION) == Err(Refused::Invisible);
    // A slug would tell that there is a repository; an id tells nothing that the caller did not know.
    if unseen && named.parse::<Uuid>().is_err() {
        return Err(Error::NotFound("repository").into());
    }
    if !unseen && api.app.auth().locate(&named).await?.is_none() {
        return Err(Error::NotFound("repository").into());
    }
    Ok(Json(api.app.permissions_in(&caller.0, domain).into()))
}
