//! What happens once, on a fresh installation.

use okt_auth::Passwords;
use okt_model::{Domain, Email, Result, Role, UserId, checked_name};
use okt_store::{roles, users};

use crate::accounts::NAME_LIMIT;
use crate::registration::is_first;
use crate::{App, Origin};

impl App {
    /// Makes the configured administrator when nobody has an account, and a starter repository when there has never been
    /// one; safe to call at every start of every process. Runs before the first request, so it comes before anybody who
    /// could register.
    pub async fn bootstrap(&self) -> Result<()> {
        self.seed_admin().await?;
        if !self.config().bootstrap.default_repository {
            return Ok(());
        }
        let mut conn = self.databases().acquire_system().await?;
        let oldest = users::list(&mut conn, None, 1).await?.pop();
        drop(conn);
        match self.create_starter_repository(oldest.map(|user| user.id)).await {
            // It is made at the next start; nothing else waits for it.
            Err(error) if error.retryable() => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "failed to create the starter repository: its database does not answer; will retry at the next start"
                );
                Ok(())
            }
            made => made,
        }
    }

    /// Says how the first administrator is made, while nobody has an account.
    pub async fn announce_setup(&self) -> Result<()> {
        if users::any(&mut *self.databases().acquire_system().await?).await? {
            return Ok(());
        }
        let bootstrap = &self.config().bootstrap;
        if bootstrap.auto_promote_first_user && bootstrap.setup_code.is_empty() {
            tracing::warn!(
                setup_code = self.setup_code().expose(),
                "no account exists: the first user to register becomes sysadmin; from another machine or through a \
                 proxy, registration needs this setup code"
            );
        } else if bootstrap.auto_promote_first_user {
            tracing::warn!(
                "no account exists: the first user to register becomes sysadmin; from another machine or through a \
                 proxy, registration needs the code of bootstrap.setup_code"
            );
        } else {
            tracing::warn!(
                "no account exists, and registering does not make a sysadmin: use bootstrap.default_admin, or \
                 register and run `okt admin promote EMAIL`"
            );
        }
        Ok(())
    }

    async fn seed_admin(&self) -> Result<()> {
        let config = &self.config().bootstrap;
        let (email, password, name) =
            (&config.default_admin_email, &config.default_admin_password, &config.default_admin_display_name);
        if !config.seeds_admin() {
            return Ok(());
        }
        if users::any(&mut *self.databases().acquire_system().await?).await? {
            return Ok(());
        }
        let (email, name) = (Email::parse(email)?, checked_name("name", name, 0, NAME_LIMIT)?);
        Passwords::check_length("password", password.expose())?;
        let hash = self.auth().passwords().hash(password.expose()).await?;

        let mut tx = self.databases().begin_system().await?;
        if !is_first(&mut tx).await? {
            return Ok(());
        }
        let user = users::insert(&mut tx, UserId::mint(), &email, &name, &hash).await?;
        roles::assign(&mut tx, user.id, Domain::System, Role::User).await?;
        self.promote(&mut tx, &Origin::service("bootstrap"), user.id).await?;
        tx.commit().await?;
        tracing::warn!(user.id = %user.id, "created the configured administrator");
        Ok(())
    }
}
