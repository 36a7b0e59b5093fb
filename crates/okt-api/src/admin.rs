//! What administrators do: users and roles.

use axum::extract::State;
use http::StatusCode;
use okt_auth::permissions::{RoleManage, RoleRead, UserManage, UserRead};
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{Action, Object, Permission, Role};
use okt_wire::admin::{AccountStatus, AdminUser, KnownPermission, RoleAssignment, StatusChange};
use uuid::Uuid;

use crate::Api;
use crate::extract::{RequestOrigin, System};

/// All users.
#[utoipa::path(get, path = "/api/v1/admin/users", tag = "Administration",
    operation_id = "listUsers", params(PageRequest),
    responses((status = 200, body = Page<AdminUser>, description = "Oldest first")))]
pub async fn users(
    State(api): State<Api>,
    scope: System<UserRead>,
    page: PageRequest,
) -> Result<Page<AdminUser>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let users = api.app.list_users(&scope.0, after.map(Into::into), page.rows()).await?;
    page.page(users.into_iter().map(AdminUser::from).collect(), |user| user.id)
}

/// Disable an account, or make it active again.
///
/// With the next request, on every process, nothing of a disabled account works: its sessions and what it gave to clients
/// are over, and its API keys rest until it is active again. A user can't disable their own account, nor the last active sysadmin.
#[utoipa::path(put, path = "/api/v1/admin/users/{userID}/status", tag = "Administration",
    operation_id = "setUserStatus", request_body = StatusChange,
    responses((status = 204, description = "The status was set"),
              (status = 409, description = "conflict")))]
pub async fn set_status(
    State(api): State<Api>,
    scope: System<UserManage>,
    origin: RequestOrigin,
    Path(id): Path<Uuid>,
    Json(body): Json<StatusChange>,
) -> Result<StatusCode, Problem> {
    let active = body.status == AccountStatus::Active;
    api.app.set_user_status(&origin.into(), &scope.0, id.into(), active).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Give a user a role.
#[utoipa::path(put, path = "/api/v1/admin/users/roles", tag = "Administration",
    operation_id = "assignRole", request_body = RoleAssignment,
    responses((status = 204, description = "The user has the role")))]
pub async fn assign_role(
    State(api): State<Api>,
    scope: System<RoleManage>,
    origin: RequestOrigin,
    Json(body): Json<RoleAssignment>,
) -> Result<StatusCode, Problem> {
    let (domain, role) = body.parsed()?;
    api.app.assign_role(&origin.into(), &scope.0, body.user_id.into(), domain, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a role from a user.
#[utoipa::path(delete, path = "/api/v1/admin/users/roles", tag = "Administration",
    operation_id = "removeRole", request_body = RoleAssignment,
    responses((status = 204, description = "The user does not have the role any more"),
              (status = 409, description = "conflict")))]
pub async fn remove_role(
    State(api): State<Api>,
    scope: System<RoleManage>,
    origin: RequestOrigin,
    Json(body): Json<RoleAssignment>,
) -> Result<StatusCode, Problem> {
    let (domain, role) = body.parsed()?;
    api.app.remove_role(&origin.into(), &scope.0, body.user_id.into(), domain, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All known permissions and the roles that hold them.
#[utoipa::path(get, path = "/api/v1/admin/permissions", tag = "Administration",
    operation_id = "listPermissions",
    responses((status = 200, body = Page<KnownPermission>, description = "All of them, on one page")))]
pub async fn permissions(State(api): State<Api>, _: System<RoleRead>) -> Page<KnownPermission> {
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
