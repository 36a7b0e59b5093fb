//! Profiles, and what one may do.

use axum::extract::State;
use okt_app::{Origin, ProfileChange};
use okt_http::{Json, Path, Problem};
use okt_model::Error;
use okt_wire::users::{DomainView, Permissions, ProfileUpdate, ProfileView};
use uuid::Uuid;

use crate::Api;
use crate::extract::{CurrentCaller, RequestOrigin};

/// Your own profile.
#[utoipa::path(get, path = "/api/v1/users/me", tag = "Accounts",
    operation_id = "getMe",
    responses((status = 200, body = ProfileView, description = "The profile")))]
pub async fn me(State(api): State<Api>, caller: CurrentCaller) -> Result<Json<ProfileView>, Problem> {
    Ok(Json(api.app.own_profile(&caller.0).await?.into()))
}

/// A user's profile.
#[utoipa::path(get, path = "/api/v1/users/{userID}", tag = "Accounts",
    operation_id = "getUser",
    responses((status = 200, body = ProfileView, description = "The profile")))]
pub async fn show(
    State(api): State<Api>,
    caller: CurrentCaller,
    Path(id): Path<Uuid>,
) -> Result<Json<ProfileView>, Problem> {
    Ok(Json(api.app.profile(&caller.0, id.into()).await?.into()))
}

/// Change your profile. A sysadmin can change any profile.
#[utoipa::path(put, path = "/api/v1/users/{userID}", tag = "Accounts",
    operation_id = "updateUser",
    request_body = ProfileUpdate,
    responses((status = 200, body = ProfileView, description = "The profile as it is now"),
              (status = 403, description = "forbidden"),
              (status = 409, description = "already_exists")))]
pub async fn update(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Path(id): Path<Uuid>,
    Json(body): Json<ProfileUpdate>,
) -> Result<Json<ProfileView>, Problem> {
    if body.email.is_some() || body.password.is_some() {
        // Whether it is taken is told, and the password may be guessed at.
        api.sign_in.change(caller.0.user())?;
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
    operation_id = "getPermissions",
    responses((status = 200, body = Permissions, description = "Domain by domain")))]
pub async fn permissions(State(api): State<Api>, caller: CurrentCaller) -> Json<Permissions> {
    let domains = api.app.permissions(&caller.0).into_iter().map(DomainView::from).collect();
    Json(Permissions { user_id: caller.0.user().uuid(), system_admin: caller.0.is_sysadmin(), domains })
}
