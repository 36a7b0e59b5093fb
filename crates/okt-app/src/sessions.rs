//! The sessions of a person.

use okt_auth::{Caller, Credential};
use okt_model::{Error, Result, Session, SessionId};
use okt_store::sessions;

use crate::audit::{Actor, record};
use crate::{App, Origin};

impl App {
    /// Where the caller is signed in, oldest first, and which of them they came with.
    pub async fn list_sessions(
        &self,
        caller: &Caller,
        after: Option<SessionId>,
        limit: i64,
    ) -> Result<Vec<(Session, bool)>> {
        let mut conn = self.databases().acquire_system().await?;
        let sessions = sessions::list(&mut conn, caller.user(), after, limit).await?;
        let marked = sessions.into_iter().map(|session| {
            let current = caller.credential() == Credential::Session(session.id);
            (session, current)
        });
        Ok(marked.collect())
    }

    /// Ends a session of the caller's. Its token stops working at once.
    pub async fn end_session(&self, origin: &Origin, caller: &Caller, id: SessionId) -> Result<()> {
        let mut tx = self.databases().begin_system().await?;
        if !sessions::revoke_of(&mut tx, caller.user(), id).await? {
            return Err(Error::NotFound("session"));
        }
        record(&mut tx, origin, Actor::caller(caller), "session.ended", &id.to_string()).await?;
        Ok(tx.commit().await?)
    }
}
