//! The audit: who did what.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{AuditId, RepositoryId, UserId};

/// Something that was done or refused, to be recorded.
pub struct NewAuditEntry<'a> {
    pub id: AuditId,
    /// `None` for strangers and for the service itself.
    pub actor: Option<UserId>,
    /// `session`, `api_key`, `client`, `anonymous` or `service`.
    pub actor_kind: &'static str,
    /// Which session, key or grant.
    pub credential: Option<Uuid>,
    /// For example `role.assigned`.
    pub action: &'static str,
    /// What it was done to; never a secret, never an e-mail address.
    pub object: &'a str,
    pub repository: Option<RepositoryId>,
    pub address: Option<&'a str>,
    /// What the program at the other end calls itself.
    pub agent: Option<&'a str>,
    /// Through what, where that is not the API: `mcp`.
    pub via: Option<&'static str>,
    pub request_id: &'a str,
}

/// A record.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    pub id: Uuid,
    pub at: DateTime<Utc>,
    pub actor: Option<UserId>,
    pub actor_kind: String,
    pub credential: Option<Uuid>,
    pub action: String,
    pub object: String,
    pub repository: Option<RepositoryId>,
    pub address: Option<String>,
    pub agent: Option<String>,
    pub via: Option<String>,
    pub request_id: String,
}

/// Which records are asked for.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
    pub actor: Option<UserId>,
    pub action: Option<String>,
    pub object: Option<String>,
}
