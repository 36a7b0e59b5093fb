//! Accounts and sessions.

use okt_auth::{Caller, Credential, Passwords, SystemScope, Verified, opaque, refresh};
use okt_config::Secret;
use okt_model::{Action, Domain, Email, Error, Object, Permission, Result, Role, SessionId, User, UserId};
use okt_store::{Connection, repositories, roles, sessions, users};

use crate::audit::{Actor, record, record_in};
use crate::roles::described;
use crate::{App, Origin};

const READ_USERS: Permission = Permission::new(Object::User, Action::Read);
const NAME_LIMIT: usize = 200;

/// A session that has just begun or gone on.
pub struct SignedIn {
    pub user: User,
    pub tokens: SessionTokens,
}

/// What a client keeps of a session.
pub struct SessionTokens {
    pub access: Secret,
    pub refresh: Secret,
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
    /// Makes an account and signs it in. The very first one may become the administrator of the installation.
    pub async fn register(
        &self,
        origin: &Origin,
        email: &str,
        password: &str,
        name: &str,
    ) -> Result<SignedIn> {
        let email = Email::parse(email)?;
        let name = checked_name(name)?;
        Passwords::check_length(password)?;
        if self.is_public() {
            Passwords::check_uncommon(password)?;
        }
        let hash = self.auth().passwords().hash(password).await?;

        let mut tx = self.databases().begin_system().await?;
        let first = is_first(&mut tx).await?;
        let user = users::insert(&mut tx, UserId::mint(), &email, name, &hash).await?;
        roles::assign(&mut tx, user.id, Domain::System, Role::User).await?;
        record(&mut tx, origin, Actor::user(user.id), "user.registered", &user.id.to_string()).await?;
        let promoted = first && self.config().bootstrap.auto_promote_first_user;
        if promoted {
            self.promote(&mut tx, origin, user.id).await?;
            // The starter repository has waited for somebody.
            if let Some(id) = repositories::give_ownerless(&mut tx, user.id).await? {
                let domain = Domain::Repository(id);
                roles::assign(&mut tx, user.id, domain, Role::Repoadmin).await?;
                let object = described(user.id, domain, Role::Repoadmin);
                record_in(&mut tx, origin, Actor::SERVICE, "role.assigned", &object, Some(id)).await?;
            }
        }
        let session = self.open_session(&mut tx, user.id).await?;
        tx.commit().await?;
        if promoted {
            tracing::warn!(user.id = %user.id, "the first user was made sysadmin");
        }
        Ok(SignedIn { tokens: self.signed(user.id, session), user })
    }

    pub async fn login(&self, origin: &Origin, email: &str, password: &str) -> Result<SignedIn> {
        let user = self.check_password(origin, email, password).await?;
        let mut tx = self.databases().begin_system().await?;
        record(&mut tx, origin, Actor::user(user.id), "login", &user.id.to_string()).await?;
        let session = self.open_session(&mut tx, user.id).await?;
        tx.commit().await?;
        Ok(SignedIn { tokens: self.signed(user.id, session), user })
    }

    /// Whose password it is. Whoever is not known hears the same as who is wrong, after the same time.
    pub(crate) async fn check_password(&self, origin: &Origin, email: &str, password: &str) -> Result<User> {
        let found = match Email::parse(email) {
            Ok(email) => users::find_by_email(&mut *self.databases().acquire_system().await?, &email).await?,
            Err(_) => None,
        };
        let hash = found.as_ref().map(|(_, hash)| hash.as_str());
        let verified = self.auth().passwords().verify(password, hash).await?;
        match (found, verified) {
            (Some((user, _)), Verified::Right) => Ok(user),
            (Some((user, _)), Verified::RightButRehash) => {
                // Renewing it can wait for a quieter moment.
                if let Ok(hash) = self.auth().passwords().hash(password).await {
                    let mut conn = self.databases().acquire_system().await?;
                    users::set_password_hash(&mut conn, user.id, &hash).await?;
                }
                Ok(user)
            }
            (found, _) => {
                let object = found.map_or_else(String::new, |(user, _)| user.id.to_string());
                let mut conn = self.databases().acquire_system().await?;
                record(&mut conn, origin, Actor::STRANGER, "login.failed", &object).await?;
                Err(Error::Unauthenticated("the e-mail address or the password is wrong"))
            }
        }
    }

    /// Ends the session that the caller came with.
    pub async fn logout(&self, origin: &Origin, caller: &Caller) -> Result<()> {
        let Credential::Session(session) = caller.credential() else { return Ok(()) };
        let mut tx = self.databases().begin_system().await?;
        sessions::revoke(&mut tx, session).await?;
        record(&mut tx, origin, Actor::caller(caller), "logout", &session.to_string()).await?;
        tx.commit().await
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
                tracing::warn!(user.id = %user, "a refresh token came again, the session was ended");
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
        let unseen = matches!(caller.credential(), Credential::Grant(_)) && !caller.was_given(READ_USERS);
        if unseen {
            return Ok(Profile::Public(user));
        }
        if id == caller.user() {
            conn.done();
            return Ok(Profile::Whole(user, caller.roles(Domain::System)));
        }
        if !caller.may(Domain::System, READ_USERS) {
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
        let name = change.name.map(checked_name).transpose()?;
        let email = change.email.map(Email::parse).transpose()?;
        if let Some(email) = &email
            && id == caller.user()
            && (self.is_public() || change.password.is_some())
        {
            let own = users::find(&mut *self.databases().acquire_system().await?, id).await?;
            let own = own.ok_or(Error::NotFound("user"))?;
            if email.as_str() != own.email {
                let password = change.password.unwrap_or_default();
                self.check_password(origin, &own.email, password).await.map_err(|error| match error {
                    Error::Unauthenticated(_) => {
                        Error::invalid("password", "must be your password, to change your e-mail address")
                    }
                    error => error,
                })?;
            }
        }
        let mut tx = self.databases().begin_system().await?;
        let user = users::update(&mut tx, id, name, email.as_ref()).await?.ok_or(Error::NotFound("user"))?;
        record(&mut tx, origin, Actor::caller(caller), "user.updated", &id.to_string()).await?;
        let theirs = roles::list_of(&mut tx, id).await?;
        tx.commit().await?;
        Ok(Profile::Whole(user, in_system(theirs)))
    }

    /// Everybody, oldest first.
    pub async fn list_users(&self, _: &SystemScope, after: Option<UserId>, limit: i64) -> Result<Vec<User>> {
        users::list(&mut *self.databases().acquire_system().await?, after, limit).await
    }

    /// Whether strangers can reach this installation, as far as we know.
    fn is_public(&self) -> bool {
        self.config().oauth.issuer.is_some()
    }

    async fn open_session(&self, conn: &mut Connection, user: UserId) -> Result<(SessionId, Secret)> {
        let ttl = self.config().auth.refresh_ttl.duration();
        let session = SessionId::mint();
        let (token, hash) = opaque::mint(opaque::Prefix::SessionRefresh)?;
        sessions::insert(conn, session, user, ttl).await?;
        sessions::insert_refresh_token(conn, hash.as_bytes(), session, ttl).await?;
        Ok((session, token))
    }

    fn signed(&self, user: UserId, (session, refresh): (SessionId, Secret)) -> SessionTokens {
        SessionTokens { access: self.auth().sign_session(user, session), refresh }
    }
}

/// Whether nobody has an account. While that may be so, everybody who asks waits for the one before.
pub(crate) async fn is_first(conn: &mut Connection) -> Result<bool> {
    if users::any(conn).await? {
        return Ok(false);
    }
    users::lock_first(conn).await?;
    Ok(!users::any(conn).await?)
}

fn in_system(assignments: Vec<(Domain, Role)>) -> Vec<Role> {
    assignments.into_iter().filter(|(domain, _)| *domain == Domain::System).map(|(_, role)| role).collect()
}

pub(crate) fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if name.chars().count() > NAME_LIMIT || name.chars().any(char::is_control) {
        return Err(Error::invalid("name", "must be at most 200 characters without control characters"));
    }
    Ok(name)
}
