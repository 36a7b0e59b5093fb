//! What you gave to clients.

use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use okt_http::{Page, PageRequest, Path, Problem};
use okt_model::{OAuthGrant, RepositoryId, Scope};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::extract::{CurrentCaller, RequestOrigin};

/// What a user allowed an OAuth client.
#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantView {
    id: Uuid,
    #[schema(example = "https://client.example/metadata.json")]
    client_id: String,
    /// The name that the client registered.
    #[schema(example = "Notes")]
    client_name: String,
    #[schema(example = "fact:read")]
    scope: String,
    /// The scope in words.
    #[schema(example = json!(["See facts"]))]
    allows: Vec<String>,
    /// The resource that its tokens are valid for.
    #[schema(example = "https://okt.example")]
    resource: String,
    /// Null: all repositories.
    repository_ids: Option<Vec<Uuid>>,
    created_at: DateTime<Utc>,
    /// The last use, to the minute.
    last_used_at: Option<DateTime<Utc>>,
    expires_at: DateTime<Utc>,
}

/// The grants that you have given to OAuth clients.
#[utoipa::path(get, path = "/api/v1/users/me/grants", tag = "OAuth",
    operation_id = "listGrants", params(PageRequest),
    responses((status = 200, body = Page<GrantView>, description = "Oldest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CurrentCaller,
    page: PageRequest,
) -> Result<Page<GrantView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let grants = api.app.list_grants(&caller.0, after.map(Into::into), page.rows()).await?;
    page.page(grants.into_iter().map(GrantView::from).collect(), |grant| grant.id)
}

/// Revoke a grant of yours.
///
/// Its tokens stop working at once, on every process.
#[utoipa::path(delete, path = "/api/v1/users/me/grants/{grantID}", tag = "OAuth",
    operation_id = "revokeGrant",
    responses((status = 204, description = "Ended")))]
pub async fn revoke(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    api.app.revoke_grant(&origin.into(), &caller.0, id.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<OAuthGrant> for GrantView {
    fn from(grant: OAuthGrant) -> Self {
        let scope = Scope::kept(&grant.scope);
        Self {
            id: grant.id.uuid(),
            client_id: grant.client_id,
            client_name: grant.client_name,
            scope: scope.to_string(),
            allows: scope.in_plain_words(),
            resource: grant.resource,
            repository_ids: grant.repositories.map(|ids| ids.into_iter().map(RepositoryId::uuid).collect()),
            created_at: grant.created_at,
            last_used_at: grant.last_used_at,
            expires_at: grant.expires_at,
        }
    }
}
