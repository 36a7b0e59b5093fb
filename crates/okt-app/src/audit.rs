//! The audit: who did what, and who was refused.
//!
//! What is done in the system database is recorded there in the same transaction. What is done in a repository is recorded
//! in its own database, in the same transaction too, and carried to the audit right after the commit, or by
//! [`App::carry_audit`] where that failed.

use std::time::Duration;

use okt_auth::permissions::AuditRead;
use okt_auth::{Caller, Credential, RepoAccess, RepoScope, SystemScope};
use okt_model::{AuditEntry, AuditFilter, AuditId, GrantId, NewAuditEntry, RepositoryId, Result, UserId};
use okt_store::{Connection, Tx, audit, audit_outbox};
use uuid::Uuid;

use crate::{App, Origin};

/// How long somebody waits for the entry of what they did to reach the audit; it gets there anyway.
const CARRYING: Duration = Duration::from_secs(1);

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

/// Records what `actor` did to `object`, in the transaction that does it.
pub(crate) async fn record(
    conn: &mut Connection,
    origin: &Origin,
    actor: Actor,
    action: &'static str,
    object: &str,
) -> Result<()> {
    record_in(conn, origin, actor, action, object, None).await
}

/// As [`record`], where `object` belongs to a repository.
pub(crate) async fn record_in(
    conn: &mut Connection,
    origin: &Origin,
    actor: Actor,
    action: &'static str,
    object: &str,
    repository: Option<RepositoryId>,
) -> Result<()> {
    let address = origin.address.map(|address| address.to_string());
    Ok(audit::insert(conn, &entry(origin, actor, action, object, repository, address.as_deref())).await?)
}

fn entry<'a>(
    origin: &'a Origin,
    actor: Actor,
    action: &'static str,
    object: &'a str,
    repository: Option<RepositoryId>,
    address: Option<&'a str>,
) -> NewAuditEntry<'a> {
    NewAuditEntry {
        id: AuditId::mint(),
        actor: actor.user,
        actor_kind: actor.kind,
        credential: actor.credential,
        action,
        object,
        repository,
        address,
        agent: origin.agent.as_deref(),
        via: origin.via,
        request_id: &origin.request_id,
    }
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

    /// Commits what was done in a repository together with its entry in the audit. Once it is committed nothing fails any
    /// more: an entry that can't be carried now is carried later.
    pub(crate) async fn commit_recorded(
        &self,
        mut tx: Tx,
        origin: &Origin,
        scope: &RepoAccess,
        action: &'static str,
        object: &str,
    ) -> Result<()> {
        let (repository, actor) = (scope.repository(), Actor::caller(scope.caller()));
        let address = origin.address.map(|address| address.to_string());
        let entry = entry(origin, actor, action, object, Some(repository), address.as_deref());
        audit_outbox::insert(&mut tx, repository, &entry).await?;
        tx.commit().await?;
        let carried = audit_outbox::carry(self.databases(), scope.database());
        match tokio::time::timeout(CARRYING, carried).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    action,
                    error,
                    "failed to write an audit entry to the system database; will retry"
                );
            }
            Err(_) => {
                tracing::warn!(action, "timed out writing an audit entry to the system database; will retry");
            }
        }
        Ok(())
    }

    /// Carries to the audit what was not carried when it was done.
    pub(crate) async fn carry_audit(&self) {
        for database in self.databases().shards() {
            match audit_outbox::carry(self.databases(), database).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(database, count, "wrote delayed audit entries to the system database");
                }
                // Said once already by whoever opened or probed it.
                Err(error) if error.retryable() => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(database, error, "failed to write delayed audit entries; will retry");
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(database, error, "failed to write delayed audit entries");
                }
            }
        }
    }

    /// Newest first.
    pub async fn list_audit(
        &self,
        _: &SystemScope<AuditRead>,
        filter: &AuditFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>> {
        let mut tx = self.databases().begin_system().await?;
        Ok(audit::list(&mut tx, None, filter, before, limit).await?)
    }

    /// What belongs to a repository, newest first.
    pub async fn list_repository_audit(
        &self,
        scope: &RepoScope<AuditRead>,
        filter: &AuditFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>> {
        let mut tx = self.databases().begin_system().await?;
        Ok(audit::list(&mut tx, Some(scope.repository()), filter, before, limit).await?)
    }
}
