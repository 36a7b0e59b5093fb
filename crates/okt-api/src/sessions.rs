//! Your password, and where you are signed in.

use axum::extract::State;
use http::StatusCode;
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_wire::sessions::{PasswordChange, SessionView};
use uuid::Uuid;

use crate::Api;
use crate::extract::{CurrentCaller, RequestOrigin};

/// Change your password.
///
/// It ends every other session of yours and all that you gave to clients; the session that asks goes on, and API keys do.
#[utoipa::path(post, path = "/api/v1/users/me/password", tag = "Accounts",
    operation_id = "changePassword", request_body = PasswordChange,
    responses((status = 204, description = "The password was changed")))]
pub async fn change_password(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Json(body): Json<PasswordChange>,
) -> Result<StatusCode, Problem> {
    api.sign_in.change(caller.0.user())?;
    api.app.change_password(&origin.into(), &caller.0, &body.current, &body.new).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Your sessions.
#[utoipa::path(get, path = "/api/v1/users/me/sessions", tag = "Accounts",
    operation_id = "listSessions", params(PageRequest),
    responses((status = 200, body = Page<SessionView>, description = "Oldest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CurrentCaller,
    page: PageRequest,
) -> Result<Page<SessionView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let sessions = api.app.list_sessions(&caller.0, after.map(Into::into), page.rows()).await?;
    page.page(sessions.into_iter().map(SessionView::from).collect(), |session| session.id)
}

/// End a session of yours.
///
/// Its token stops working at once, on every process.
#[utoipa::path(delete, path = "/api/v1/users/me/sessions/{sessionID}", tag = "Accounts",
    operation_id = "endSession",
    responses((status = 204, description = "Ended")))]
pub async fn end(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    api.app.end_session(&origin.into(), &caller.0, id.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}
