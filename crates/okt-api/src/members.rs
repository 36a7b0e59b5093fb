//! Members of a repository.

use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use okt_app::Whom;
use okt_http::{Json, Page, PageRequest, Problem};
use okt_model::{Action, Error, Member, Object, Permission, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::Caught;
use crate::repositories::Repository;

pub(crate) const MEMBER_READ: Permission = Permission::new(Object::Member, Action::Read);
pub(crate) const MEMBER_MANAGE: Permission = Permission::new(Object::Member, Action::Manage);

/// Somebody with roles in a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
pub struct MemberView {
    user_id: Uuid,
    name: String,
    #[schema(example = json!(["editor"]))]
    roles: Vec<&'static str>,
    since: DateTime<Utc>,
}

/// Who is meant, by id or by e-mail address, and as what.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberChange {
    user_id: Option<Uuid>,
    email: Option<String>,
    /// `repoadmin`, `editor`, `curator` or `viewer`.
    #[schema(example = "viewer")]
    role: String,
}

/// Who is meant, by id or by e-mail address.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberRemoval {
    user_id: Option<Uuid>,
    email: Option<String>,
}

/// Who has a role in the repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    params(("repoID" = String, Path, description = "Its id or its slug"), PageRequest),
    responses((status = 200, body = Page<MemberView>, description = "The oldest accounts first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository,
    page: PageRequest,
) -> Result<Page<MemberView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let members = api.app.list_members(&repository.0, after.map(Into::into), page.rows()).await?;
    page.page(members.into_iter().map(MemberView::from).collect(), |member| member.user_id)
}

/// Give somebody a role in the repository, in place of the one that they have.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = MemberChange,
    responses((status = 204, description = "They have this role"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn set(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<MemberChange>,
) -> Result<StatusCode, Problem> {
    let role = body.role.parse::<Role>();
    let role = role.map_err(|_| Error::invalid("role", "must be repoadmin, editor, curator or viewer"))?;
    let whom = whom(body.user_id, body.email.as_deref())?;
    api.app.set_member(&origin.into(), &repository.0, whom, role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take somebody's roles in the repository.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/members", tag = "Members",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = MemberRemoval,
    responses((status = 204, description = "They have no role there any more"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn remove(
    State(api): State<Api>,
    repository: Repository,
    origin: Caught,
    Json(body): Json<MemberRemoval>,
) -> Result<StatusCode, Problem> {
    let whom = whom(body.user_id, body.email.as_deref())?;
    api.app.remove_member(&origin.into(), &repository.0, whom).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn whom(user: Option<Uuid>, email: Option<&str>) -> Result<Whom<'_>, Error> {
    match (user, email) {
        (Some(id), None) => Ok(Whom::Id(id.into())),
        (None, Some(email)) => Ok(Whom::Email(email)),
        _ => Err(Error::invalid("user_id", "must be given, or email in its place")),
    }
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        Self {
            user_id: member.user.uuid(),
            name: member.name,
            roles: member.roles.into_iter().map(Role::as_str).collect(),
            since: member.since,
        }
    }
}
