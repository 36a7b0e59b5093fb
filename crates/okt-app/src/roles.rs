//! Roles: who may do what where.

use okt_auth::permissions::RoleManage;
use okt_auth::{Caller, SystemScope};
use okt_model::{Domain, Error, Permission, RepositoryId, Result, Role, UserId};
use okt_store::{Connection, roles, users};

use crate::audit::{Actor, record, record_in};
use crate::members::keep_an_admin;
use crate::{App, Origin};

/// What a caller may do in one domain.
pub struct DomainPermissions {
    pub domain: Domain,
    pub roles: Vec<Role>,
    pub permissions: Vec<Permission>,
}

impl App {
    /// What the presented credential may do, domain by domain.
    pub fn permissions(&self, caller: &Caller) -> Vec<DomainPermissions> {
        let rows = caller.domains().into_iter().map(|(domain, roles)| DomainPermissions {
            permissions: caller.permissions(domain).iter().collect(),
            roles,
            domain,
        });
        rows.filter(|row| !row.permissions.is_empty()).collect()
    }

    /// What the presented credential may do in one domain.
    pub fn permissions_in(&self, caller: &Caller, domain: Domain) -> DomainPermissions {
        let permissions = caller.permissions(domain).iter().collect();
        DomainPermissions { domain, roles: caller.roles(domain), permissions }
    }

    pub async fn assign_role(
        &self,
        origin: &Origin,
        scope: &SystemScope<RoleManage>,
        user: UserId,
        domain: Domain,
        role: Role,
    ) -> Result<()> {
        check_fit(domain, role)?;
        if let Domain::Repository(id) = domain
            && self.auth().locate(&id.to_string()).await?.is_none()
        {
            return Err(Error::NotFound("repository"));
        }
        let mut tx = self.databases().begin_system().await?;
        if roles::assign(&mut tx, user, domain, role).await? {
            let object = described(user, domain, role);
            record_in(&mut tx, origin, Actor::caller(scope.caller()), "role.assigned", &object, of(domain))
                .await?;
        }
        Ok(tx.commit().await?)
    }

    /// The last sysadmin stays, or nobody could ever make another; so does the last administrator of a repository.
    pub async fn remove_role(
        &self,
        origin: &Origin,
        scope: &SystemScope<RoleManage>,
        user: UserId,
        domain: Domain,
        role: Role,
    ) -> Result<()> {
        check_fit(domain, role)?;
        let mut tx = self.databases().begin_system().await?;
        let last = role == Role::Sysadmin && !roles::another_sysadmin(&mut tx, user).await?;
        let admins = roles::lock_two_holders(&mut tx, domain, Role::Repoadmin).await?;
        if !roles::remove(&mut tx, user, domain, role).await? {
            return Err(Error::NotFound("role assignment"));
        }
        if last {
            return Err(Error::Conflict("the last active sysadmin can't be removed; make another one first"));
        }
        keep_an_admin(&mut tx, domain, admins).await?;
        let object = described(user, domain, role);
        record_in(&mut tx, origin, Actor::caller(scope.caller()), "role.removed", &object, of(domain))
            .await?;
        Ok(tx.commit().await?)
    }

    /// For the operator at the keyboard: makes an existing user sysadmin; false when they were.
    pub async fn promote_by_email(&self, origin: &Origin, email: &str) -> Result<bool> {
        let email = okt_model::Email::parse(email)?;
        let mut tx = self.databases().begin_system().await?;
        let (user, _) = users::find_by_email(&mut tx, &email).await?.ok_or(Error::NotFound("user"))?;
        let promoted = self.promote(&mut tx, origin, user.id).await?;
        tx.commit().await?;
        Ok(promoted)
    }

    pub(crate) async fn promote(&self, conn: &mut Connection, origin: &Origin, user: UserId) -> Result<bool> {
        let promoted = roles::assign(conn, user, Domain::System, Role::Sysadmin).await?;
        if promoted {
            let object = described(user, Domain::System, Role::Sysadmin);
            record(conn, origin, Actor::SERVICE, "role.assigned", &object).await?;
        }
        Ok(promoted)
    }
}

fn check_fit(domain: Domain, role: Role) -> Result<()> {
    if role.fits(domain) {
        return Ok(());
    }
    Err(Error::invalid("role", format!("{} is not a role of this domain", role.as_str())))
}

pub(crate) fn described(user: UserId, domain: Domain, role: Role) -> String {
    format!("{user} {} in {domain}", role.as_str())
}

fn of(domain: Domain) -> Option<RepositoryId> {
    match domain {
        Domain::System => None,
        Domain::Repository(id) => Some(id),
    }
}
