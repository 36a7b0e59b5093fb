//! Members of a repository.

use axum::extract::State;
use http::StatusCode;
use okt_auth::permissions::{MemberManage, MemberRead};
use okt_http::{Json, Page, PageRequest, Problem};
use okt_model::{Error, Role, UserId};
use okt_wire::members::{MemberChange, MemberRemoval, MemberView};
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// Who has a role in the repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    operation_id = "listMembers", params(PageRequest),
    responses((status = 200, body = Page<MemberView>, description = "The oldest accounts first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<MemberRead>,
    page: PageRequest,
) -> Result<Page<MemberView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let members = api.app.list_members(&repository.0, after.map(Into::into), page.rows()).await?;
    page.page(members.into_iter().map(MemberView::from).collect(), |member| member.user_id)
}

/// Give a user a role in the repository, replacing the current one.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    operation_id = "setMember", request_body = MemberChange,
    responses((status = 204, description = "The user has this role"),
              (status = 409, description = "conflict")))]
pub async fn set(
    State(api): State<Api>,
    repository: Repository<MemberManage>,
    origin: RequestOrigin,
    Json(body): Json<MemberChange>,
) -> Result<StatusCode, Problem> {
    let role = body.role.parse::<Role>();
    let role = role.map_err(|_| Error::invalid("role", "must be repoadmin, editor, curator or viewer"))?;
    let user = user(body.user_id, body.email)?;
    api.app.set_member(&origin.into(), &repository.0, user, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a user's roles in the repository.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    operation_id = "removeMember", request_body = MemberRemoval,
    responses((status = 204, description = "The user has no role in the repository"),
              (status = 409, description = "conflict")))]
pub async fn remove(
    State(api): State<Api>,
    repository: Repository<MemberManage>,
    origin: RequestOrigin,
    Json(body): Json<MemberRemoval>,
) -> Result<StatusCode, Problem> {
    let user = user(body.user_id, body.email)?;
    api.app.remove_member(&origin.into(), &repository.0, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn user(id: Option<Uuid>, email: Option<IgnoredAny>) -> Result<UserId, Error> {
    const INVITE: &str = "is not taken here: invite the person with POST /api/v1/repositories/{repoID}/invitations, or give user_id";
    match (id, email) {
        (_, Some(_)) => Err(Error::invalid("email", INVITE)),
        (Some(id), None) => Ok(id.into()),
        (None, None) => Err(Error::invalid("user_id", "must be given; GET …/members lists those of members")),
    }
}
