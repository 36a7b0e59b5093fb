//! Passwords: whose they are, and what ends when they change.

use okt_auth::{Caller, Credential, Passwords, Verified, opaque};
use okt_config::Secret;
use okt_model::{Email, Error, Result, SessionId, User, UserId};
use okt_store::{Connection, Tx, oauth_requests, sessions, users};

use crate::audit::{Actor, record};
use crate::{App, Origin};

/// Somebody who has shown a password, and the hash that it was compared with.
pub(crate) struct Proven {
    user: User,
    hash: String,
}

impl Proven {
    /// The user, unless the password was changed or the account disabled meanwhile. What begins in this transaction ends
    /// with either, because whoever does that waits for it.
    pub(crate) async fn hold(self, tx: &mut Tx) -> Result<User> {
        if users::hold_password(tx, self.user.id, &self.hash).await? { Ok(self.user) } else { Err(WRONG) }
    }
}

const WRONG: Error = Error::Unauthenticated("the e-mail address or the password is wrong");

impl App {
    /// Whose password it is. Whoever is not known hears the same as who is wrong, after the same time; and so does whoever
    /// knows the password of a disabled account, or guesses would find out what it is.
    pub(crate) async fn check_password(
        &self,
        origin: &Origin,
        email: &str,
        password: &str,
    ) -> Result<Proven> {
        let found = match Email::parse(email) {
            Ok(email) => users::find_by_email(&mut *self.databases().acquire_system().await?, &email).await?,
            Err(_) => None,
        };
        let hash = found.as_ref().map(|(_, hash)| hash.as_str());
        let verified = self.auth().passwords().verify(password, hash).await?;
        let (failed, object) = match (found, verified) {
            (Some((user, _)), Verified::Right | Verified::RightButRehash) if user.disabled_at.is_some() => {
                ("login.disabled", user.id.to_string())
            }
            (Some((user, hash)), Verified::Right) => return Ok(Proven { user, hash }),
            (Some((user, hash)), Verified::RightButRehash) => {
                return self.renewed(user, hash, password).await;
            }
            (found, Verified::Wrong) => {
                ("login.failed", found.map_or_else(String::new, |(user, _)| user.id.to_string()))
            }
            (None, _) => ("login.failed", String::new()),
        };
        let mut conn = self.databases().acquire_system().await?;
        record(&mut conn, origin, Actor::STRANGER, failed, &object).await?;
        Err(WRONG)
    }

    /// Hashes a password with today's parameters, where there is time for it: it can wait for a quieter moment.
    async fn renewed(&self, user: User, before: String, password: &str) -> Result<Proven> {
        let Ok(hash) = self.auth().passwords().hash(password).await else {
            return Ok(Proven { user, hash: before });
        };
        let mut conn = self.databases().acquire_system().await?;
        if users::replace_password_hash(&mut conn, user.id, &before, &hash).await? {
            drop(conn);
            return Ok(Proven { user, hash });
        }
        // Another sign-in has done it meanwhile, or the password was changed: then this one is not right any more.
        let now = users::find_by_email(&mut conn, &Email::parse(&user.email)?)
            .await?
            .map(|(_, hash)| hash)
            .ok_or(WRONG)?;
        drop(conn);
        match self.auth().passwords().verify(password, Some(&now)).await? {
            Verified::Right | Verified::RightButRehash => Ok(Proven { user, hash: now }),
            Verified::Wrong => Err(WRONG),
        }
    }

    /// Whether a password may be chosen.
    pub(crate) fn check_new_password(&self, field: &'static str, password: &str) -> Result<()> {
        Passwords::check_length(field, password)?;
        if self.is_public() { Passwords::check_uncommon(field, password) } else { Ok(()) }
    }

    /// Changes the caller's password, and ends everything but the session that they came with.
    pub async fn change_password(
        &self,
        origin: &Origin,
        caller: &Caller,
        current: &str,
        new: &str,
    ) -> Result<()> {
        let Credential::Session(session) = caller.credential() else {
            return Err(Error::Forbidden("this needs a person's session"));
        };
        self.check_new_password("new", new)?;
        let own = users::find(&mut *self.databases().acquire_system().await?, caller.user()).await?;
        let own = own.ok_or(Error::NotFound("user"))?;
        let wrong = |error| match error {
            Error::Unauthenticated(_) => Error::invalid("current", "is not your password"),
            error => error,
        };
        let proven = self.check_password(origin, &own.email, current).await.map_err(wrong)?;
        let hash = self.auth().passwords().hash(new).await?;
        let mut tx = self.databases().begin_system().await?;
        if !users::replace_password_hash(&mut tx, own.id, &proven.hash, &hash).await? {
            return Err(wrong(WRONG));
        }
        end_everything(&mut tx, own.id, Some(session)).await?;
        record(&mut tx, origin, Actor::caller(caller), "password.changed", &own.id.to_string()).await?;
        Ok(tx.commit().await?)
    }

    /// For the operator at the keyboard: gives an account this password, or a random one, and ends everything that began
    /// with the one before. Returns the password.
    pub async fn reset_password(&self, origin: &Origin, email: &str, new: Option<Secret>) -> Result<Secret> {
        let email = Email::parse(email)?;
        let new = new.map_or_else(opaque::password, Ok)?;
        self.check_new_password("password", new.expose())?;
        let hash = self.auth().passwords().hash(new.expose()).await?;
        let mut tx = self.databases().begin_system().await?;
        let (user, before) = users::find_by_email(&mut tx, &email).await?.ok_or(Error::NotFound("user"))?;
        if !users::replace_password_hash(&mut tx, user.id, &before, &hash).await? {
            return Err(Error::Conflict("the password was changed at the same moment; try again"));
        }
        end_everything(&mut tx, user.id, None).await?;
        record(&mut tx, origin, Actor::SERVICE, "password.reset", &user.id.to_string()).await?;
        tx.commit().await?;
        Ok(new)
    }
}

/// Ends every session of a user but one, what they gave to clients, and what they are being asked. To be called after the
/// change that it is for: whoever was in before it is seen, and whoever comes after it is not let in.
pub(crate) async fn end_everything(
    conn: &mut Connection,
    user: UserId,
    kept: Option<SessionId>,
) -> Result<()> {
    // First what can still become a session.
    oauth_requests::forget_user(conn, user).await?;
    sessions::revoke_all(conn, user, kept).await?;
    Ok(())
}
