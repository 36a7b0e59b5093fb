//! Accounts and sessions.

use std::time::Duration;

use okt_auth::permissions::{UserManage, UserRead};
use okt_auth::{Caller, Credential, Needed as _, SystemScope, opaque, refresh};
use okt_config::Secret;
use okt_model::{Domain, Email, Error, Result, Role, SessionId, User, UserId, checked_name, plain};
use okt_store::sessions::Device;
use okt_store::{Connection, roles, sessions, users};

use crate::audit::{Actor, record};
use crate::passwords::end_everything;
use crate::{App, Origin};

pub(crate) const NAME_LIMIT: usize = 200;

/// A session that has just begun or gone on.
pub struct SignedIn {
    pub user: User,
    pub tokens: SessionTokens,
}

/// What a client keeps of a session.
pub struct SessionTokens {
    pub access: Secret,
    pub refresh: Secret,
    /// Of the access token.
    pub expires_in: Duration,
}

/// What is to be changed of a profile.
#[derive(Clone, Copy, Default)]
pub struct ProfileChange<'a> {
    pub name: Option<&'a str>,
    pub email: Option<&'a str>,
    /// Of the caller, for a change of their own address.
    pub password: Option<&'a str>,
}

/// As much of a user as the caller may see.
pub enum Profile {
    Whole(User, Vec<Role>),
    Public(User),
}

impl App {
    pub async fn login(&self, origin: &Origin, email: &str, password: &str) -> Result<SignedIn> {
        let proven = self.check_password(origin, email, password).await?;
        let mut tx = self.databases().begin_system().await?;
        let user = proven.hold(&mut tx).await?;
        record(&mut tx, origin, Actor::user(user.id), "login", &user.id.to_string()).await?;
        let session = self.open_session(&mut tx, origin, user.id).await?;
        tx.commit().await?;
        Ok(SignedIn { tokens: self.signed(user.id, session), user })
    }

    /// Ends the session that the caller came with.
    pub async fn logout(&self, origin: &Origin, caller: &Caller) -> Result<()> {
        let Credential::Session(session) = caller.credential() else { return Ok(()) };
        let mut tx = self.databases().begin_system().await?;
        sessions::revoke(&mut tx, session).await?;
        record(&mut tx, origin, Actor::caller(caller), "logout", &session.to_string()).await?;
        Ok(tx.commit().await?)
    }

    /// Exchanges a refresh token for a new pair.
    pub async fn refresh(&self, origin: &Origin, token: &str) -> Result<SessionTokens> {
        const REFUSED: Error = Error::Unauthenticated("the refresh token is not valid");
        let Some(hash) = opaque::parse(opaque::Prefix::SessionRefresh, token) else { return Err(REFUSED) };
        let mut tx = self.databases().begin_system().await?;
        let Some(presented) = sessions::present_refresh_token(&mut tx, hash.as_bytes()).await? else {
            return Err(REFUSED);
        };
        let (user, session) = (presented.user, presented.session);
        match refresh::next(&presented) {
            refresh::Next::Refuse => Err(REFUSED),
            refresh::Next::Revoke => {
                sessions::revoke(&mut tx, session).await?;
                let object = session.to_string();
                record(&mut tx, origin, Actor::STRANGER, "session.token_reused", &object).await?;
                tx.commit().await?;
                tracing::warn!(user.id = %user, "refresh token reused; revoked the session");
                Err(REFUSED)
            }
            refresh::Next::Rotate => {
                let (token, successor) = opaque::mint(opaque::Prefix::SessionRefresh)?;
                let ttl = self.config().auth.refresh_ttl.duration();
                sessions::rotate_refresh_token(&mut tx, hash.as_bytes(), successor.as_bytes(), session, ttl)
                    .await?;
                tx.commit().await?;
                Ok(self.signed(user, (session, token)))
            }
        }
    }

    /// The caller's own profile.
    pub async fn own_profile(&self, caller: &Caller) -> Result<Profile> {
        self.profile(caller, caller.user()).await
    }

    /// Others' profiles show less, unless the caller may read users.
    pub async fn profile(&self, caller: &Caller, id: UserId) -> Result<Profile> {
        let mut conn = self.databases().acquire_system().await?;
        let user = users::find(&mut conn, id).await?.ok_or(Error::NotFound("user"))?;
        // A client that was not let see accounts does not see its own person's either.
        let unseen =
            matches!(caller.credential(), Credential::Grant(_)) && !caller.was_given(UserRead::PERMISSION);
        if unseen {
            return Ok(Profile::Public(user));
        }
        if id == caller.user() {
            return Ok(Profile::Whole(user, caller.roles(Domain::System)));
        }
        if !caller.may(Domain::System, UserRead::PERMISSION) {
            return Ok(Profile::Public(user));
        }
        let theirs = roles::list_of(&mut conn, id).await?;
        Ok(Profile::Whole(user, in_system(theirs)))
    }

    /// Changes a profile: one's own, or anybody's for a sysadmin. Whoever changes the address of an account can take it
    /// over, so on a public installation its owner shows the password again.
    pub async fn update_profile(
        &self,
        origin: &Origin,
        caller: &Caller,
        id: UserId,
        change: ProfileChange<'_>,
    ) -> Result<Profile> {
        if id != caller.user() && !caller.is_sysadmin() {
            return Err(Error::Forbidden("only the user or a sysadmin may change a profile"));
        }
        let name = change.name.map(|name| checked_name("name", name, 0, NAME_LIMIT)).transpose()?;
        let email = change.email.map(Email::parse).transpose()?;
        self.confirm(origin, caller, id, email.as_ref(), change.password).await?;
        let mut tx = self.databases().begin_system().await?;
        let user = users::update(&mut tx, id, name.as_deref(), email.as_ref()).await?;
        let user = user.ok_or(Error::NotFound("user"))?;
        record(&mut tx, origin, Actor::caller(caller), "user.updated", &id.to_string()).await?;
        let theirs = roles::list_of(&mut tx, id).await?;
        tx.commit().await?;
        Ok(Profile::Whole(user, in_system(theirs)))
    }

    /// Whether the owner of an account shows the password where a change of its address asks for it. A password that could
    /// be taken for a new one is refused, or whoever sent it would believe that it was changed.
    async fn confirm(
        &self,
        origin: &Origin,
        caller: &Caller,
        id: UserId,
        email: Option<&Email>,
        password: Option<&str>,
    ) -> Result<()> {
        if password.is_some() && (email.is_none() || id != caller.user()) {
            let message = "only confirms a new e-mail address of your own; to change the password, use \
                           POST /api/v1/users/me/password";
            return Err(Error::invalid("password", message));
        }
        let Some(email) = email.filter(|_| id == caller.user()) else { return Ok(()) };
        if password.is_none() && !self.is_public() {
            return Ok(());
        }
        let own = users::find(&mut *self.databases().acquire_system().await?, id).await?;
        let own = own.ok_or(Error::NotFound("user"))?;
        if password.is_none() && email.as_str() == own.email {
            return Ok(());
        }
        let checked = self.check_password(origin, &own.email, password.unwrap_or_default()).await;
        checked.map(|_| ()).map_err(|error| match error {
            Error::Unauthenticated(_) => Error::invalid(
                "password",
                "must be your current one, to change your e-mail address; to change the password, use \
                 POST /api/v1/users/me/password",
            ),
            error => error,
        })
    }

    /// Lets an account be used again, or not any more: its sessions and what it gave to clients end, and its keys and
    /// everything else rest until it is active again.
    pub async fn set_user_status(
        &self,
        origin: &Origin,
        scope: &SystemScope<UserManage>,
        id: UserId,
        active: bool,
    ) -> Result<()> {
        if !active && id == scope.caller().user() {
            return Err(Error::Conflict("you can't disable your own account; another sysadmin can"));
        }
        let mut tx = self.databases().begin_system().await?;
        let other = active || roles::another_sysadmin(&mut tx, id).await?;
        let changed = users::set_disabled(&mut tx, id, !active).await?.ok_or(Error::NotFound("user"))?;
        if !other {
            return Err(Error::Conflict(
                "the last active sysadmin can't be disabled; make another one first",
            ));
        }
        if changed {
            let action = if active { "user.enabled" } else { "user.disabled" };
            record(&mut tx, origin, Actor::caller(scope.caller()), action, &id.to_string()).await?;
        }
        if !active {
            end_everything(&mut tx, id, None).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Everybody, oldest first.
    pub async fn list_users(
        &self,
        _: &SystemScope<UserRead>,
        after: Option<UserId>,
        limit: i64,
    ) -> Result<Vec<User>> {
        Ok(users::list(&mut *self.databases().acquire_system().await?, after, limit).await?)
    }

    /// Whether strangers can reach this installation, as far as we know.
    pub(crate) fn is_public(&self) -> bool {
        self.config().oauth.issuer.is_some()
    }

    pub(crate) async fn open_session(
        &self,
        conn: &mut Connection,
        origin: &Origin,
        user: UserId,
    ) -> Result<(SessionId, Secret)> {
        let ttl = self.config().auth.refresh_ttl.duration();
        let session = SessionId::mint();
        let (token, hash) = opaque::mint(opaque::Prefix::SessionRefresh)?;
        let address = origin.address.map(|address| address.to_string());
        let agent = origin.agent.as_deref().map(plain);
        let device = Device { address: address.as_deref(), agent: agent.as_deref() };
        sessions::insert(conn, session, user, ttl, device).await?;
        sessions::insert_refresh_token(conn, hash.as_bytes(), session, ttl).await?;
        Ok((session, token))
    }

    pub(crate) fn signed(&self, user: UserId, (session, refresh): (SessionId, Secret)) -> SessionTokens {
        let expires_in = self.config().auth.token_ttl.duration();
        SessionTokens { access: self.auth().sign_session(user, session), refresh, expires_in }
    }
}

fn in_system(assignments: Vec<(Domain, Role)>) -> Vec<Role> {
    assignments.into_iter().filter(|(domain, _)| *domain == Domain::System).map(|(_, role)| role).collect()
}
