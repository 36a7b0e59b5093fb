//! The audit: who did what, and who was refused.

use okt_auth::{Caller, Credential, SystemScope};
use okt_model::{AuditEntry, AuditFilter, AuditId, NewAuditEntry, Result, UserId};
use okt_store::{Connection, audit};
use uuid::Uuid;

use crate::{App, Origin};

/// Who did something.
#[derive(Clone, Copy)]
pub(crate) struct Actor {
    user: Option<UserId>,
    kind: &'static str,
}

impl Actor {
    pub(crate) const SERVICE: Self = Self { user: None, kind: "service" };
    pub(crate) const STRANGER: Self = Self { user: None, kind: "anonymous" };

    /// Somebody who has just shown who they are.
    pub(crate) const fn user(user: UserId) -> Self {
        Self { user: Some(user), kind: "session" }
    }

    pub(crate) const fn caller(caller: &Caller) -> Self {
        let kind = match caller.credential() {
            Credential::Session(_) => "session",
            Credential::ApiKey(_) => "api_key",
        };
        Self { user: Some(caller.user()), kind }
    }
}

/// Records what `actor` did to `object`, in the transaction of the deed.
pub(crate) async fn record(
    conn: &mut Connection,
    origin: &Origin,
    actor: Actor,
    action: &'static str,
    object: &str,
) -> Result<()> {
    let address = origin.address.map(|address| address.to_string());
    let entry = NewAuditEntry {
        id: AuditId::mint(),
        actor: actor.user,
        actor_kind: actor.kind,
        action,
        object,
        repository: None,
        address: address.as_deref(),
        request_id: &origin.request_id,
    };
    audit::insert(conn, &entry).await
}

impl App {
    /// Records that a caller was refused; `what` is the permission that was missing.
    pub async fn record_denial(&self, caller: &Caller, origin: &Origin, what: &str) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        record(&mut conn, origin, Actor::caller(caller), "request.denied", what).await
    }

    /// Newest first.
    pub async fn list_audit(
        &self,
        _: &SystemScope,
        filter: &AuditFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>> {
        let mut conn = self.databases().acquire_system().await?;
        audit::list(&mut conn, filter, before, limit).await
    }
}
