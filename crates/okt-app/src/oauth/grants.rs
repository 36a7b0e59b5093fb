//! What people gave to clients.

use okt_auth::Caller;
use okt_model::{Error, GrantId, OAuthGrant, Result};
use okt_store::oauth_grants;

use crate::audit::{Actor, record};
use crate::{App, Origin};

impl App {
    /// What the caller gave and has not taken back.
    pub async fn list_grants(
        &self,
        caller: &Caller,
        after: Option<GrantId>,
        limit: i64,
    ) -> Result<Vec<OAuthGrant>> {
        Ok(oauth_grants::list(&mut *self.databases().acquire_system().await?, caller.user(), after, limit)
            .await?)
    }

    /// Takes back what the caller gave. Its tokens stop working at once.
    pub async fn revoke_grant(&self, origin: &Origin, caller: &Caller, id: GrantId) -> Result<()> {
        let mut tx = self.databases().begin_system().await?;
        if !oauth_grants::revoke(&mut tx, caller.user(), id).await? {
            return Err(Error::NotFound("grant"));
        }
        record(&mut tx, origin, Actor::caller(caller), "grant.revoked", &id.to_string()).await?;
        Ok(tx.commit().await?)
    }
}
