//! Repositories.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::{HeaderName, StatusCode, header};
use okt_app::{RepositoryRequest, SeenRepository};
use okt_auth::{Decision, RepoScope};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{Action, Counts, Domain, Error, Object, Permission, RepositoryId, Role, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Api;
use crate::admin::Scope;
use crate::auth::{CallerOf, Caught};
use crate::users::DomainView;

pub(crate) const REPOSITORY_READ: Permission = Permission::new(Object::Repository, Action::Read);
pub(crate) const REPOSITORY_WRITE: Permission = Permission::new(Object::Repository, Action::Write);
pub(crate) const REPOSITORY_UPDATE: Permission = Permission::new(Object::Repository, Action::Update);
pub(crate) const REPOSITORY_DELETE: Permission = Permission::new(Object::Repository, Action::Delete);

/// A repository: the boundary between tenants.
#[derive(Serialize, ToSchema)]
#[schema(as = Repository)]
pub struct RepositoryView {
    id: Uuid,
    name: String,
    /// Its name in addresses; stands for the id wherever one is asked for.
    #[schema(example = "bees")]
    slug: String,
    description: String,
    /// The named database that it lives in.
    #[schema(example = "default")]
    database: String,
    /// How its owner wants it kept: `shared`, `isolated` or `sovereign`.
    #[schema(example = "shared")]
    tier: &'static str,
    #[schema(example = "general")]
    preset: String,
    /// Who made it.
    #[schema(required)]
    owner_id: Option<Uuid>,
    /// Your own there; a key or a client has none, only permissions.
    roles: Vec<&'static str>,
    /// Null while its database does not answer.
    #[schema(required)]
    counts: Option<CountsView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// How much there is in a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryCounts)]
struct CountsView {
    sources: i64,
    facts: i64,
    concepts: i64,
    reports: i64,
    investigations: i64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRepository {
    #[schema(example = "Bees", min_length = 1, max_length = 200)]
    name: String,
    /// 1 to 64 of a-z, 0-9 and -; made from the name when it is left out.
    slug: Option<String>,
    description: Option<String>,
    /// A named database. Who may not pick one gets the default one, whatever they write.
    database: Option<String>,
    /// `shared` (the default), `isolated` or `sovereign`.
    tier: Option<String>,
    /// See `GET /api/v1/repositories/presets`.
    preset: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryUpdate {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Deletion {
    /// Only says what would go.
    dry_run: Option<bool>,
}

/// What goes with a repository.
#[derive(Serialize, ToSchema)]
pub struct WouldBeDeleted {
    dry_run: bool,
    #[schema(required)]
    counts: Option<CountsView>,
}

/// The repositories that you can see, your own and those that are shared with you.
#[utoipa::path(get, path = "/api/v1/repositories", tag = "Repositories", params(PageRequest),
    responses((status = 200, body = Page<RepositoryView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CallerOf,
    page: PageRequest,
) -> Result<Page<RepositoryView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let (rows, next) = api.app.list_repositories(&caller.0, before.map(Into::into), page.limit()).await?;
    page.page_until(rows.into_iter().map(RepositoryView::from).collect(), next.map(RepositoryId::uuid))
}

/// Make a repository; you become its administrator.
#[utoipa::path(post, path = "/api/v1/repositories", tag = "Repositories", request_body = NewRepository,
    responses((status = 201, body = RepositoryView, description = "The repository"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: already_exists")))]
pub async fn create(
    State(api): State<Api>,
    scope: Scope,
    origin: Caught,
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
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 200, body = RepositoryView, description = "The repository")))]
pub async fn show(State(api): State<Api>, repository: Repository) -> Result<Json<RepositoryView>, Problem> {
    Ok(Json(api.app.find_repository(&repository.0).await?.into()))
}

/// Change a repository's name or description. Its slug stays.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}", tag = "Repositories",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = RepositoryUpdate,
    responses((status = 200, body = RepositoryView, description = "The repository as it is now")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<RepositoryUpdate>,
) -> Result<Json<RepositoryView>, Problem> {
    let (name, description) = (body.name.as_deref(), body.description.as_deref());
    Ok(Json(api.app.update_repository(&origin.into(), &repository.0, name, description).await?.into()))
}

/// Delete a repository with everything in it.
///
/// It is hidden with the next request, from whoever may do everything within a second; what lies in it is removed in the
/// background. With `dry_run` nothing happens
/// but that you are told how much would go.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}", tag = "Repositories",
    params(("repoID" = String, Path, description = "Its id or its slug"), Deletion),
    responses((status = 200, body = WouldBeDeleted, description = "What would go"),
              (status = 204, description = "It is gone")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Query(query): Query<Deletion>,
) -> Result<Response, Problem> {
    if query.dry_run == Some(true) {
        let counts = api.app.find_repository(&repository.0).await?.counts.map(CountsView::from);
        return Ok(Json(WouldBeDeleted { dry_run: true, counts }).into_response());
    }
    api.app.delete_repository(&origin.into(), &repository.0).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What you may do in a repository.
///
/// Nobody is refused: who may do nothing there is told just that, whether there is such a repository or not.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/permissions", tag = "Repositories",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    responses((status = 200, body = DomainView, description = "With the credential that you showed")))]
pub async fn permissions(
    State(api): State<Api>,
    caller: CallerOf,
    Path(named): Path<String>,
) -> Result<Json<DomainView>, Problem> {
    let domain = Domain::Repository(api.repository_named(&named).await?);
    let unseen = caller.0.decide(domain, REPOSITORY_READ) == Decision::Invisible;
    // A slug would tell that there is a repository; an id tells nothing that the caller did not know.
    if unseen && named.parse::<Uuid>().is_err() {
        return Err(Error::NotFound("repository").into());
    }
    if !unseen && api.app.auth().locate(&named).await?.is_none() {
        return Err(Error::NotFound("repository").into());
    }
    Ok(Json(api.app.permissions_in(&caller.0, domain).into()))
}

/// The proof that the gate let somebody through to the repository of the path.
pub struct Repository(pub(crate) RepoScope);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Repository {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Problem> {
        let scope = parts.extensions.get::<RepoScope>().cloned();
        Ok(Self(scope.ok_or_else(|| Error::internal("a route of a repository needs no permission there"))?))
    }
}

impl From<SeenRepository> for RepositoryView {
    fn from(seen: SeenRepository) -> Self {
        let repository = seen.repository;
        Self {
            id: repository.id.uuid(),
            name: repository.name,
            slug: repository.slug,
            description: repository.description,
            database: repository.database,
            tier: repository.tier.as_str(),
            preset: repository.preset,
            owner_id: repository.owner.map(UserId::uuid),
            roles: seen.roles.into_iter().map(Role::as_str).collect(),
            counts: seen.counts.map(CountsView::from),
            created_at: repository.created_at,
            updated_at: repository.updated_at,
        }
    }
}

impl From<Counts> for CountsView {
    fn from(counts: Counts) -> Self {
        Self {
            sources: counts.sources,
            facts: counts.facts,
            concepts: counts.concepts,
            reports: counts.reports,
            investigations: counts.investigations,
        }
    }
}
