//! The audit: who did what, and who was refused.

use chrono::{DateTime, Utc};
use okt_model::{AuditEntry, AuditFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Something that was done or refused.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    pub id: Uuid,
    pub at: DateTime<Utc>,
    pub actor: Option<Uuid>,
    /// `session`, `api_key`, `client`, `anonymous` or `service`.
    #[schema(example = "session")]
    pub actor_kind: String,
    /// The session, key or grant that was used.
    pub credential_id: Option<Uuid>,
    #[schema(example = "role.assigned")]
    pub action: String,
    /// What the action was done to.
    #[schema(example = "0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60")]
    pub object: String,
    pub repository_id: Option<Uuid>,
    pub address: Option<String>,
    /// The `User-Agent` header of the request.
    pub user_agent: Option<String>,
    /// `mcp` where it was done or refused through the tools for agents; otherwise null.
    #[schema(example = "mcp")]
    pub via: Option<String>,
    /// The id of the request, as in its `X-Request-Id` header.
    #[schema(example = "0195509d-4a40-7d11-9c55-1f2e3d4c5b6a")]
    pub request_id: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Not before this time.
    pub from: Option<DateTime<Utc>>,
    /// Before this time.
    pub to: Option<DateTime<Utc>>,
    /// Only what this user did.
    pub actor: Option<Uuid>,
    /// Only this, such as `role.assigned`.
    pub action: Option<String>,
    /// Only what was done to this.
    pub object: Option<String>,
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
            via: entry.via,
            request_id: entry.request_id,
        }
    }
}
