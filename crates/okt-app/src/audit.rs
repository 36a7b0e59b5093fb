//! The audit: who did what, and who was refused.

use okt_auth::{Caller, Credential, RepoScope, SystemScope};
use okt_model::{AuditEntry, AuditFilter, AuditId, GrantId, NewAuditEntry, RepositoryId, Result, UserId};
use okt_store::{Connection, audit};
use uuid::Uuid;

use crate::{App, Origin};

/// Who did something.
#[derive(Clone, Copy)]
pub(crate) struct Actor {
    user: Option<UserId>,
    kind: &'static str,
    credential: Option<Uuid>,
}

impl Actor {
    pub(crate) const SERVICE: Self = Self { user: None, kind: "service", credential: None };
    pub(crate) const STRANGER: Self = Self { user: None, kind: "anonymous", credential: None };

    /// Somebody who has just shown who they are.
    pub(crate) const fn user(user: UserId) -> Self {
        Self { user: Some(user), kind: "session", credential: None }
    }

    /// A client that somebody let in.
    pub(crate) const fn grant(user: UserId, grant: GrantId) -> Self {
        Self { user: Some(user), kind: "client", credential: Some(grant.uuid()) }
    }

    pub(crate) const fn caller(caller: &Caller) -> Self {
        let (kind, credential) = match caller.credential() {
            Credential::Session(id) => ("session", id.uuid()),
            Credential::ApiKey(id) => ("api_key", id.uuid()),
            Credential::Grant(id) => ("client", id.uuid()),
        };
        Self { user: Some(caller.user()), kind, credential: Some(credential) }
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
    record_in(conn, origin, actor, action, object, None).await
}

/// As [`record`], where the deed belongs to a repository.
pub(crate) async fn record_in(
    conn: &mut Connection,
    origin: &Origin,
    actor: Actor,
    action: &'static str,
    object: &str,
    repository: Option<RepositoryId>,
) -> Result<()> {
    let address = origin.address.map(|address| address.to_string());
    let entry = NewAuditEntry {
        id: AuditId::mint(),
        actor: actor.user,
        actor_kind: actor.kind,
        credential: actor.credential,
        action,
        object,
        repository,
        address: address.as_deref(),
        agent: origin.agent.as_deref(),
        request_id: &origin.request_id,
    };
    audit::insert(conn, &entry).await
}

impl App {
    /// Records that a caller was refused; `what` is the permission that was missing.
    pub async fn record_denial(
        &self,
        caller: &Caller,
        origin: &Origin,
        what: &str,
        repository: Option<RepositoryId>,
    ) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        record_in(&mut conn, origin, Actor::caller(caller), "request.denied", what, repository).await
    }

    /// Records what was done in a repository. After the deed, because the repository may be on another server than the audit.
    pub(crate) async fn record_after(
        &self,
        origin: &Origin,
        scope: &RepoScope,
        action: &'static str,
        object: &str,
    ) -> Result<()> {
        let mut conn = self.databases().acquire_system().await?;
        let actor = Actor::caller(scope.caller());
        record_in(&mut conn, origin, actor, action, object, Some(scope.repository())).await?;
        conn.done();
        Ok(())
    }

    /// Newest first.
    pub async fn list_audit(
        &self,
        _: &SystemScope,
        filter: &AuditFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>> {
        let mut tx = self.databases().begin_system().await?;
        audit::list(&mut tx, None, filter, before, limit).await
    }

    /// What belongs to a repository, newest first.
    pub async fn list_repository_audit(
        &self,
        scope: &RepoScope,
        filter: &AuditFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>> {
        let mut tx = self.databases().begin_system().await?;
        audit::list(&mut tx, Some(scope.repository()), filter, before, limit).await
    }
}
