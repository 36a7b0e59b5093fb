//! Making an account, and who may.

use okt_auth::opaque;
use okt_auth::seal::derived;
use okt_config::{Registration, Secret};
use okt_model::{Domain, Email, Error, Result, Role, User, UserId, checked_name};
use okt_store::{Connection, Tx, repositories, roles, users};
use subtle::ConstantTimeEq;

use crate::accounts::NAME_LIMIT;
use crate::audit::{Actor, record, record_in};
use crate::invitations::join;
use crate::roles::described;
use crate::{App, Origin, SignedIn};

/// What somebody says who wants an account.
#[derive(Clone, Copy)]
pub struct NewAccount<'a> {
    pub email: &'a str,
    pub password: &'a str,
    pub name: &'a str,
    /// Whether they sit at this machine, with nothing in between.
    pub local: bool,
    pub setup_code: Option<&'a str>,
    /// The secret of an invitation: they are a member from the start, or there is no account.
    pub invitation: Option<&'a str>,
}

/// How an installation stands, for whoever opens it in a browser.
pub struct Setup {
    /// Nobody has an account, and the first to make one becomes sysadmin.
    pub needs_admin: bool,
    pub registration: Registration,
}

impl App {
    /// Makes an account and signs it in. The very first one may become the administrator of the installation.
    pub async fn register(&self, origin: &Origin, new: NewAccount<'_>) -> Result<SignedIn> {
        let email = Email::parse(new.email)?;
        let name = checked_name("name", new.name, 0, NAME_LIMIT)?;
        self.check_new_password("password", new.password)?;
        // Before a password is hashed for nothing. What is found here is asked again in the transaction.
        if self.config().auth.registration != Registration::Open {
            let first = !users::any(&mut *self.databases().acquire_system().await?).await?;
            self.admit(first, new)?;
        }
        let hash = self.auth().passwords().hash(new.password).await?;

        let mut tx = self.databases().begin_system().await?;
        let first = is_first(&mut tx).await?;
        let promoted = self.admit(first, new)?;
        let user = users::insert(&mut tx, UserId::mint(), &email, &name, &hash).await?;
        roles::assign(&mut tx, user.id, Domain::System, Role::User).await?;
        record(&mut tx, origin, Actor::user(user.id), "user.registered", &user.id.to_string()).await?;
        if let Some(secret) = new.invitation {
            join(&mut tx, origin, Actor::user(user.id), user.id, "invitation", secret).await?;
        }
        if promoted {
            self.promote_first(&mut tx, origin, &user).await?;
        }
        let session = self.open_session(&mut tx, origin, user.id).await?;
        tx.commit().await?;
        if promoted {
            tracing::warn!(user.id = %user.id, "the first user became sysadmin");
        }
        Ok(SignedIn { tokens: self.signed(user.id, session), user })
    }

    pub async fn setup(&self) -> Result<Setup> {
        let mut conn = self.databases().acquire_system().await?;
        let empty = !users::any(&mut conn).await?;
        let needs_admin = empty && self.config().bootstrap.auto_promote_first_user;
        Ok(Setup { needs_admin, registration: self.config().auth.registration })
    }

    /// What the first person has to show who does not sit at this machine. All processes with the same settings have the
    /// same one, so that it does not matter which of them is asked.
    pub fn setup_code(&self) -> &Secret {
        &self.0.setup_code
    }

    /// Whether somebody may have an account; if so, whether they become sysadmin. Whether an invitation is a valid one is
    /// found when it is used up, in the transaction that makes the account.
    fn admit(&self, first: bool, new: NewAccount<'_>) -> Result<bool> {
        if first && self.config().bootstrap.auto_promote_first_user {
            let shown = new.setup_code.is_some_and(|code| self.is_setup_code(code));
            if new.local || shown {
                return Ok(true);
            }
            // Nobody else comes before them, or nobody could become sysadmin any more.
            return Err(Error::SetupCodeNeeded(match new.setup_code {
                None => {
                    "the first account needs the code that the service wrote to its log when it started; \
                     send it as setup_code, or register from the machine that the service runs on"
                }
                Some(_) => "this is not the code that the service wrote to its log when it started",
            }));
        }
        match self.config().auth.registration {
            Registration::Open => Ok(false),
            Registration::Invite if new.invitation.is_some() => Ok(false),
            Registration::Invite => Err(Error::RegistrationClosed(
                "registration is by invitation only; ask the administrator of a repository for an invitation",
            )),
            Registration::Closed => Err(Error::RegistrationClosed(
                "registration is closed; ask the administrator of this installation",
            )),
        }
    }

    /// In the same time, however much of it is right.
    fn is_setup_code(&self, shown: &str) -> bool {
        self.setup_code().expose().as_bytes().ct_eq(shown.trim().as_bytes()).into()
    }

    async fn promote_first(&self, tx: &mut Tx, origin: &Origin, user: &User) -> Result<()> {
        self.promote(tx, origin, user.id).await?;
        // The starter repository has waited for somebody.
        if let Some(id) = repositories::give_ownerless(tx, user.id).await? {
            let domain = Domain::Repository(id);
            roles::assign(tx, user.id, domain, Role::Repoadmin).await?;
            let object = described(user.id, domain, Role::Repoadmin);
            record_in(tx, origin, Actor::SERVICE, "role.assigned", &object, Some(id)).await?;
        }
        Ok(())
    }
}

/// The configured setup code, or one that nobody can guess who does not know the signing secret.
pub(crate) fn setup_code(configured: &Secret, secret: &[u8]) -> Secret {
    if configured.is_empty() {
        opaque::legible(&derived(secret, "okt setup code v1"))
    } else {
        configured.clone()
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
