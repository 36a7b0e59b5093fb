//! What administrators do: users and roles.

use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use okt_auth::SystemScope;
use okt_http::{Json, Page, PageRequest, Problem};
use okt_model::{Action, Domain, Error, Object, Permission, Role, User};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::Caught;

/// A user, for administrators.
#[derive(Serialize, ToSchema)]
pub struct AdminUser {
    id: Uuid,
    email: String,
    name: String,
    created_at: DateTime<Utc>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleAssignment {
    user_id: Uuid,
    #[schema(example = "viewer")]
    role: String,
    /// `system`, or the id of a repository.
    #[schema(example = "system")]
    domain: String,
}

/// A permission and the roles that hold it.
#[derive(Serialize, ToSchema)]
pub struct KnownPermission {
    object: &'static str,
    action: &'static str,
    roles: Vec<&'static str>,
}

/// All users.
#[utoipa::path(get, path = "/api/v1/admin/users", tag = "Administration", params(PageRequest),
    responses((status = 200, body = Page<AdminUser>, description = "Oldest first")))]
pub async fn users(
    State(api): State<Api>,
    scope: Scope,
    page: PageRequest,
) -> Result<Page<AdminUser>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let users = api.app.list_users(&scope.0, after.map(Into::into), page.rows()).await?;
    page.page(users.into_iter().map(AdminUser::from).collect(), |user| user.id)
}

/// Give a user a role.
#[utoipa::path(put, path = "/api/v1/admin/users/roles", tag = "Administration", request_body = RoleAssignment,
    responses((status = 204, description = "The user has the role")))]
pub async fn assign_role(
    State(api): State<Api>,
    scope: Scope,
    origin: Caught,
    Json(body): Json<RoleAssignment>,
) -> Result<StatusCode, Problem> {
    let (domain, role) = body.parsed()?;
    api.app.assign_role(&origin.into(), &scope.0, body.user_id.into(), domain, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a role from a user.
#[utoipa::path(delete, path = "/api/v1/admin/users/roles", tag = "Administration", request_body = RoleAssignment,
    responses((status = 204, description = "The user does not have the role any more"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn remove_role(
    State(api): State<Api>,
    scope: Scope,
    origin: Caught,
    Json(body): Json<RoleAssignment>,
) -> Result<StatusCode, Problem> {
    let (domain, role) = body.parsed()?;
    api.app.remove_role(&origin.into(), &scope.0, body.user_id.into(), domain, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All known permissions and the roles that hold them.
#[utoipa::path(get, path = "/api/v1/admin/permissions", tag = "Administration",
    responses((status = 200, body = Page<KnownPermission>, description = "All of them, on one page")))]
pub async fn permissions(State(api): State<Api>, _: Scope) -> Page<KnownPermission> {
    let users_may_create = api.app.config().rbac.users_may_create_repositories;
    let pairs = Object::ALL
        .iter()
        .flat_map(|object| Action::ALL.iter().map(|action| Permission::new(*object, *action)));
    let known = pairs.map(|permission| KnownPermission {
        object: permission.object.as_str(),
        action: permission.action.as_str(),
        roles: Role::ALL
            .iter()
            .filter(|role| role.permissions(users_may_create).contains(permission))
            .map(|role| role.as_str())
            .collect(),
    });
    Page::whole(known.collect())
}

/// The proof that the gate let somebody through to the whole installation.
pub struct Scope(pub(crate) SystemScope);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Problem> {
        let scope = parts.extensions.get::<SystemScope>().cloned();
        Ok(Self(scope.ok_or_else(|| Error::internal("a route that asks for a scope needs no permission"))?))
    }
}

impl RoleAssignment {
    fn parsed(&self) -> Result<(Domain, Role), Error> {
        let domain = self.domain.parse();
        let domain =
            domain.map_err(|_| Error::invalid("domain", "must be `system` or the id of a repository"))?;
        let role = self.role.parse().map_err(|_| Error::invalid("role", "no role has this name"))?;
        Ok((domain, role))
    }
}

impl From<User> for AdminUser {
    fn from(user: User) -> Self {
        Self { id: user.id.uuid(), email: user.email, name: user.name, created_at: user.created_at }
    }
}
