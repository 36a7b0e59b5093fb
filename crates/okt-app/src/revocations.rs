//! Taking out again what came from a key, in all repositories.

use okt_model::{Error, Repository, Result, Revoked};
use okt_store::imports::{self, AT_ONCE, Part, SOURCES};
use okt_store::{registry_trust, repositories};

use crate::audit::{Actor, record};
use crate::{App, Origin};

/// What was, or would be, taken out of a repository.
pub struct RevokedIn {
    pub repository: Repository,
    /// None while it is being moved, and can't be changed.
    pub revoked: Option<Revoked>,
}

impl App {
    /// Removes what came from a key, whether it signed it or pushed it to a registry, and takes nothing of it any more. With `dry_run`
    /// nothing changes, and what would be removed is told. Calls `told` for each repository that has some of it, or is being moved.
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
                self.would_revoke(&repository, key).await
            } else {
                imports::revoke_all(self.databases(), &repository.database, repository.id, key)
                    .await
                    .map_err(Error::from)
            };
            match revoked {
                Ok(revoked) if revoked == Revoked::default() => {}
                Ok(revoked) => told(RevokedIn { repository, revoked: Some(revoked) }),
                // Those behind it are not to keep what came from the key for that.
                Err(Error::Moving) => told(RevokedIn { repository, revoked: None }),
                // Deleted meanwhile.
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Does it, and forgets that it was done: a few imports at a time, so that others wait for no more than that.
    async fn would_revoke(&self, repository: &Repository, key: &str) -> Result<Revoked> {
        let mut tx = self.databases().begin_to_read(&repository.database, repository.id).await?;
        let found = imports::list_of_key(&mut tx, repository.id, key).await?;
        tx.commit().await?;
        let mut revoked = Revoked::default();
        for some in found.chunks(AT_ONCE) {
            let mut tx = self.databases().begin(&repository.database, repository.id).await?;
            let mut next = Some(Part::Sources);
            while let Some(part) = next {
                let (gone, then) = imports::revoke(&mut tx, repository.id, some, part, SOURCES).await?;
                revoked += gone;
                next = then;
            }
            drop(tx);
        }
        Ok(revoked)
    }
}
