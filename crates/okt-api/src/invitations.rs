//! Invitations to a repository.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderName, StatusCode, header};
use okt_auth::permissions::MemberManage;
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{Error, Role};
use okt_wire::invitations::{Acceptance, CreatedInvitation, InvitationView, JoinedView, NewInvitation};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Address, CurrentCaller, Repository, RequestOrigin};
use crate::oauth::invitation_page;

#[derive(Deserialize)]
pub struct InvitationPath {
    #[serde(rename = "invitationID")]
    invitation: Uuid,
}

/// Who was invited and has not joined yet.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/invitations", tag = "Members",
    operation_id = "listInvitations", params(PageRequest),
    responses((status = 200, body = Page<InvitationView>, description = "Oldest first, without those that have expired")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<MemberManage>,
    page: PageRequest,
) -> Result<Page<InvitationView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let found = api.app.list_invitations(&repository.0, after.map(Into::into), page.rows()).await?;
    page.page(found.into_iter().map(InvitationView::from).collect(), |invitation| invitation.id)
}

/// Invite a person.
///
/// The link is for you to hand over, by whatever way you trust; no mail is sent. It can be used once, within seven days, as
/// long as you may still give the role. Inviting the same address again ends the invitation before.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/invitations", tag = "Members",
    operation_id = "inviteMember", request_body = NewInvitation,
    responses((status = 201, body = CreatedInvitation, description = "The invitation; its secret is shown this once"),
              (status = 409, description = "conflict")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<MemberManage>,
    origin: RequestOrigin,
    address: Address,
    Json(body): Json<NewInvitation>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<CreatedInvitation>), Problem> {
    let role = body.role.parse::<Role>();
    let role = role.map_err(|_| Error::invalid("role", "must be repoadmin, editor, curator or viewer"))?;
    let (invitation, secret) = api.app.invite(&origin.into(), &repository.0, &body.email, role).await?;
    let location =
        format!("/api/v1/repositories/{}/invitations/{}", repository.0.repository(), invitation.id);
    let body = CreatedInvitation {
        invitation: invitation.into(),
        link: format!("{}/invite#{}", address.0, secret.expose()),
        secret: secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

/// Withdraw an invitation.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/invitations/{invitationID}", tag = "Members",
    operation_id = "withdrawInvitation",
    responses((status = 204, description = "The invitation was withdrawn")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<MemberManage>,
    origin: RequestOrigin,
    Path(path): Path<InvitationPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_invitation(&origin.into(), &repository.0, path.invitation.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Join a repository.
///
/// A caller who has a role with at least these permissions keeps it. To make an account with an invitation, send its secret along with
/// the registration.
#[utoipa::path(post, path = "/api/v1/invitations/accept", tag = "Members",
    operation_id = "acceptInvitation", request_body = Acceptance,
    responses((status = 200, body = JoinedView, description = "You are a member")))]
pub async fn accept(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Json(body): Json<Acceptance>,
) -> Result<Json<JoinedView>, Problem> {
    let joined = api.app.accept_invitation(&origin.into(), &caller.0, &body.secret).await?;
    Ok(Json(JoinedView {
        repository_id: joined.repository.id.uuid(),
        name: joined.repository.name,
        slug: joined.repository.slug,
        role: joined.role.as_str(),
    }))
}

/// The page behind an invitation's link: what to do with it.
#[utoipa::path(get, path = "/invite", tag = "Members",
    operation_id = "showInvitationPage",
    responses((status = 200, body = String, content_type = "text/html", description = "A page to read")))]
pub async fn page(address: Address) -> Response {
    invitation_page(&address.0)
}
