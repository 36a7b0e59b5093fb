//! The audit: who did what, and who was refused.

use axum::extract::State;
use chrono::{DateTime, Utc};
use okt_http::{Page, PageRequest, Problem, Query};
use okt_model::{AuditEntry, AuditFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::Api;
use crate::admin::Scope;
use crate::repositories::Repository;

/// Something that was done or refused.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    id: Uuid,
    at: DateTime<Utc>,
    actor: Option<Uuid>,
    /// `session`, `api_key`, `anonymous` or `service`.
    actor_kind: String,
    /// Which session or key.
    credential_id: Option<Uuid>,
    #[schema(example = "role.assigned")]
    action: String,
    object: String,
    repository_id: Option<Uuid>,
    address: Option<String>,
    /// What the program at the other end calls itself.
    user_agent: Option<String>,
    request_id: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Not before this time.
    from: Option<DateTime<Utc>>,
    /// Before this time.
    to: Option<DateTime<Utc>>,
    actor: Option<Uuid>,
    action: Option<String>,
    object: Option<String>,
}

/// Who did what, and who was refused.
#[utoipa::path(get, path = "/api/v1/admin/audit", tag = "Administration", params(AuditQuery, PageRequest),
    responses((status = 200, body = Page<AuditView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    scope: Scope,
    Query(query): Query<AuditQuery>,
    page: PageRequest,
) -> Result<Page<AuditView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let entries = api.app.list_audit(&scope.0, &query.into(), before, page.rows()).await?;
    page.page(entries.into_iter().map(AuditView::from).collect(), |entry| entry.id)
}

/// Who did what in a repository, and who was refused there.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/audit", tag = "Repositories",
    params(("repoID" = String, Path, description = "Its id or its slug"), AuditQuery, PageRequest),
    responses((status = 200, body = Page<AuditView>, description = "Newest first")))]
pub async fn list_in(
    State(api): State<Api>,
    repository: Repository,
    Query(query): Query<AuditQuery>,
    page: PageRequest,
) -> Result<Page<AuditView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let entries = api.app.list_repository_audit(&repository.0, &query.into(), before, page.rows()).await?;
    page.page(entries.into_iter().map(AuditView::from).collect(), |entry| entry.id)
}

impl From<AuditQuery> for AuditFilter {
    fn from(query: AuditQuery) -> Self {
        Self {
            from: query.from,
            to: query.to,
            actor: query.actor.map(Into::into),
            action: query.action,
            object: query.object,
        }
    }
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            actor: entry.actor.map(okt_model::UserId::uuid),
            actor_kind: entry.actor_kind,
            credential_id: entry.credential,
            action: entry.action,
            object: entry.object,
            repository_id: entry.repository.map(okt_model::RepositoryId::uuid),
            address: entry.address,
            user_agent: entry.agent,
            request_id: entry.request_id,
        }
    }
}
