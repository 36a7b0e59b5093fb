//! Taking out again what came from a key, in all repositories.

use okt_model::{
    CheckReports, CleanupFacts, Error, JobId, RefreshConceptRelations, Repository, Result, Revoked,
};
use okt_store::imports::{self, Revocable};
use okt_store::outbox::{self, When};
use okt_store::{Connection, registry_trust, report_facts, repositories};

use crate::audit::{Actor, record};
use crate::{App, Origin};

/// Sources that are taken out in one transaction.
const SOURCES: i64 = 100;

/// What was, or would be, taken out of a repository.
pub struct RevokedIn {
    pub repository: Repository,
    pub revoked: Revoked,
}

impl App {
    /// Removes what came from a key, whether it signed it or pushed it to a registry, and takes nothing of it any more. With `dry_run`
    /// nothing changes, and what would be removed is told. Calls `told` for each repository that has some of it.
    pub async fn revoke_origin(
        &self,
        origin: &Origin,
        key: &str,
        dry_run: bool,
        mut told: impl FnMut(RevokedIn),
    ) -> Result<()> {
        if !key.starts_with("ok") || key.len() > 100 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid(
                "key",
                "must be the id of a signing key (okp_…) or of a key of a registry (okg_…)",
            ));
        }
        if !dry_run {
            // First of all, so that nothing comes in meanwhile.
            let mut tx = self.databases().begin_system().await?;
            if registry_trust::revoke(&mut tx, key).await? {
                record(&mut tx, origin, Actor::SERVICE, "origin.revoked", key).await?;
            }
            tx.commit().await?;
        }
        let mut before = None;
        loop {
            let mut conn = self.databases().acquire_system().await?;
            let found = repositories::list(&mut conn, before, 1).await?.into_iter().next();
            drop(conn);
            let Some(repository) = found else { return Ok(()) };
            before = Some(repository.id);
            let revoked = if dry_run {
                self.would_revoke(&repository, key).await?
            } else {
                self.revoke_in(&repository, key).await?
            };
            if revoked != Revoked::default() {
                told(RevokedIn { repository, revoked });
            }
        }
    }

    async fn imports_of(&self, repository: &Repository, key: &str) -> Result<Vec<Revocable>> {
        let mut tx = self.databases().begin_to_read(&repository.database, repository.id).await?;
        let found = imports::list_of_key(&mut tx, repository.id, key).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Does it, and forgets that it was done.
    async fn would_revoke(&self, repository: &Repository, key: &str) -> Result<Revoked> {
        let mut revoked = Revoked::default();
        let found = self.imports_of(repository, key).await?;
        if found.is_empty() {
            return Ok(revoked);
        }
        let mut tx = self.databases().begin(&repository.database, repository.id).await?;
        for import in found {
            loop {
                let (some, is_done) = imports::revoke(&mut tx, repository.id, import, SOURCES).await?;
                revoked += some;
                if is_done {
                    break;
                }
            }
        }
        drop(tx);
        Ok(revoked)
    }

    async fn revoke_in(&self, repository: &Repository, key: &str) -> Result<Revoked> {
        let mut revoked = Revoked::default();
        for import in self.imports_of(repository, key).await? {
            loop {
                let mut tx = self.databases().begin(&repository.database, repository.id).await?;
                let (some, is_done) = imports::revoke(&mut tx, repository.id, import, SOURCES).await?;
                revoked += some;
                if is_done {
                    Self::follow_up(&mut tx, repository).await?;
                }
                tx.commit().await?;
                if is_done {
                    break;
                }
            }
        }
        Ok(revoked)
    }

    /// What has to be looked at again where facts are gone.
    async fn follow_up(tx: &mut Connection, repository: &Repository) -> Result<()> {
        let id = repository.id;
        // It has nothing to do where facts have no vectors.
        outbox::push(tx, id, JobId::mint(), &CleanupFacts { soon: true }, When::default()).await?;
        outbox::push(tx, id, JobId::mint(), &RefreshConceptRelations {}, When::default()).await?;
        if report_facts::is_any(tx, id).await? {
            outbox::push(tx, id, JobId::mint(), &CheckReports {}, When::default()).await?;
        }
        Ok(())
    }
}
