//! The audit: who did what, and who was refused.

use axum::extract::State;
use okt_auth::permissions::AuditRead;
use okt_http::{Page, PageRequest, Problem, Query};
use okt_wire::audit::{AuditQuery, AuditView};
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, System};

/// Who did what, and who was refused.
#[utoipa::path(get, path = "/api/v1/admin/audit", tag = "Administration",
    operation_id = "listAuditEntries", params(AuditQuery, PageRequest),
    responses((status = 200, body = Page<AuditView>, description = "Newest first")))]
pub async fn list(
    State(api): State<Api>,
    scope: System<AuditRead>,
    Query(query): Query<AuditQuery>,
    page: PageRequest,
) -> Result<Page<AuditView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let entries = api.app.list_audit(&scope.0, &query.into(), before, page.rows()).await?;
    page.page(entries.into_iter().map(AuditView::from).collect(), |entry| entry.id)
}

/// Who did what in a repository, and who was refused there.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/audit", tag = "Repositories",
    operation_id = "listRepositoryAuditEntries", params(AuditQuery, PageRequest),
    responses((status = 200, body = Page<AuditView>, description = "Newest first")))]
pub async fn list_in(
    State(api): State<Api>,
    repository: Repository<AuditRead>,
    Query(query): Query<AuditQuery>,
    page: PageRequest,
) -> Result<Page<AuditView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let entries = api.app.list_repository_audit(&repository.0, &query.into(), before, page.rows()).await?;
    page.page(entries.into_iter().map(AuditView::from).collect(), |entry| entry.id)
}
