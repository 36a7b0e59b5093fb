//! Profiles, and what one may do.

use axum::extract::State;
use chrono::{DateTime, Utc};
use okt_app::{DomainPermissions, Origin, Profile, ProfileChange};
use okt_http::{Json, Path, Problem};
use okt_model::{Error, Permission, Role, User};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::{CallerOf, Caught};

#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    id: Uuid,
    email: String,
    name: String,
}

/// A profile. Of others, callers without `user:read` see the id and the name.
#[derive(Serialize, ToSchema)]
#[schema(as = Profile)]
pub struct ProfileView {
    id: Uuid,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<DateTime<Utc>>,
    /// Roles in the system domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_roles: Option<Vec<&'static str>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileUpdate {
    #[schema(max_length = 200)]
    name: Option<String>,
    #[schema(max_length = 254)]
    email: Option<String>,
    /// Yours, to change your own e-mail address on a public installation.
    #[schema(format = Password, max_length = 256)]
    password: Option<String>,
}

/// What the presented credential may do.
#[derive(Serialize, ToSchema)]
pub struct Permissions {
    user_id: Uuid,
    system_admin: bool,
    domains: Vec<DomainView>,
}

#[derive(Serialize, ToSchema)]
pub struct DomainView {
    /// `system`, or the id of a repository.
    domain: String,
    roles: Vec<&'static str>,
    permissions: Vec<PermissionView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Permission)]
pub struct PermissionView {
    #[schema(example = "source")]
    object: &'static str,
    #[schema(example = "read")]
    action: &'static str,
}

/// Your own profile.
#[utoipa::path(get, path = "/api/v1/users/me", tag = "Accounts",
    responses((status = 200, body = ProfileView, description = "The profile")))]
pub async fn me(State(api): State<Api>, caller: CallerOf) -> Result<Json<ProfileView>, Problem> {
    Ok(Json(api.app.own_profile(&caller.0).await?.into()))
}

/// A user's profile.
#[utoipa::path(get, path = "/api/v1/users/{userID}", tag = "Accounts", params(("userID" = Uuid, Path)),
    responses((status = 200, body = ProfileView, description = "The profile")))]
pub async fn show(
    State(api): State<Api>,
    caller: CallerOf,
    Path(id): Path<Uuid>,
) -> Result<Json<ProfileView>, Problem> {
    Ok(Json(api.app.profile(&caller.0, id.into()).await?.into()))
}

/// Change a profile: your own, or anybody's for a sysadmin.
#[utoipa::path(put, path = "/api/v1/users/{userID}", tag = "Accounts", params(("userID" = Uuid, Path)),
    request_body = ProfileUpdate,
    responses((status = 200, body = ProfileView, description = "The profile as it is now"),
              (status = 403, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: forbidden"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: already_exists")))]
pub async fn update(
    State(api): State<Api>,
    caller: CallerOf,
    origin: Caught,
    Path(id): Path<Uuid>,
    Json(body): Json<ProfileUpdate>,
) -> Result<Json<ProfileView>, Problem> {
    if body.email.is_some() {
        // Whether it is taken is told, and the password may be guessed at.
        api.sign_in.change_address(caller.0.user())?;
    }
    let change = ProfileChange {
        name: body.name.as_deref(),
        email: body.email.as_deref(),
        password: body.password.as_deref(),
    };
    let origin = Origin::from(origin);
    let changed = api.app.update_profile(&origin, &caller.0, id.into(), change).await;
    if let Err(Error::Forbidden(_)) = &changed {
        api.deny(&caller.0, &origin, "user:update", None).await?;
    }
    Ok(Json(changed?.into()))
}

/// What you may do, in every repository and in the system domain.
#[utoipa::path(get, path = "/api/v1/permissions", tag = "Accounts",
    responses((status = 200, body = Permissions, description = "Domain by domain")))]
pub async fn permissions(State(api): State<Api>, caller: CallerOf) -> Json<Permissions> {
    let domains = api.app.permissions(&caller.0).into_iter().map(DomainView::from).collect();
    Json(Permissions { user_id: caller.0.user().uuid(), system_admin: caller.0.is_sysadmin(), domains })
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self { id: user.id.uuid(), email: user.email, name: user.name }
    }
}

impl From<Profile> for ProfileView {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Whole(user, roles) => Self {
                id: user.id.uuid(),
                name: user.name,
                email: Some(user.email),
                created_at: Some(user.created_at),
                system_roles: Some(roles.into_iter().map(Role::as_str).collect()),
            },
            Profile::Public(user) => Self {
                id: user.id.uuid(),
                name: user.name,
                email: None,
                created_at: None,
                system_roles: None,
            },
        }
    }
}

impl From<DomainPermissions> for DomainView {
    fn from(row: DomainPermissions) -> Self {
        Self {
            domain: row.domain.to_string(),
            roles: row.roles.into_iter().map(Role::as_str).collect(),
            permissions: row.permissions.into_iter().map(PermissionView::from).collect(),
        }
    }
}

impl From<Permission> for PermissionView {
    fn from(permission: Permission) -> Self {
        Self { object: permission.object.as_str(), action: permission.action.as_str() }
    }
}
