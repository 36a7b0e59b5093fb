//! What happens once, on a fresh installation.

use okt_auth::Passwords;
use okt_model::{Domain, Email, Result, Role, UserId};
use okt_store::{roles, users};

use crate::accounts::{checked_name, is_first};
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
        conn.done();
        self.create_starter_repository(oldest.map(|user| user.id)).await
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
        let (email, name) = (Email::parse(email)?, checked_name(name)?);
        Passwords::check_length(password.expose())?;
        let hash = self.auth().passwords().hash(password.expose()).await?;

        let mut tx = self.databases().begin_system().await?;
        if !is_first(&mut tx).await? {
            return Ok(());
        }
        let user = users::insert(&mut tx, UserId::mint(), &email, name, &hash).await?;
        roles::assign(&mut tx, user.id, Domain::System, Role::User).await?;
        self.promote(&mut tx, &Origin::service("bootstrap"), user.id).await?;
        tx.commit().await?;
        tracing::warn!(user.id = %user.id, "the configured administrator was made");
        Ok(())
    }
}
