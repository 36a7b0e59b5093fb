//! Members: who has which role in a repository.

use okt_auth::RepoScope;
use okt_auth::permissions::{MemberManage, MemberRead};
use okt_model::{Domain, Error, Member, Result, Role, UserId};
use okt_store::{Tx, roles};

use crate::{App, Origin};

impl App {
    /// In the order of their ids, from behind `after`.
    pub async fn list_members(
        &self,
        scope: &RepoScope<MemberRead>,
        after: Option<UserId>,
        limit: i64,
    ) -> Result<Vec<Member>> {
        let mut conn = self.databases().acquire_system().await?;
        let members = roles::members(&mut conn, scope.repository(), after, limit).await?;
        Ok(members)
    }

    /// Gives somebody this role and no other in the repository.
    pub async fn set_member(
        &self,
        origin: &Origin,
        scope: &RepoScope<MemberManage>,
        user: UserId,
        role: Role,
    ) -> Result<()> {
        let domain = Domain::Repository(scope.repository());
        if !role.fits(domain) {
            return Err(Error::invalid("role", "must be repoadmin, editor, curator or viewer"));
        }
        let mut tx = self.databases().begin_system().await?;
        let admins = roles::lock_two_holders(&mut tx, domain, Role::Repoadmin).await?;
        let given = roles::assign(&mut tx, user, domain, role).await?;
        let taken = roles::remove_others(&mut tx, user, domain, Some(role)).await?;
        keep_an_admin(&mut tx, domain, admins).await?;
        if given || taken > 0 {
            let object = format!("{user} {}", role.as_str());
            self.record_change(&mut tx, origin, scope, "member.set", &object).await?;
        }
        Ok(tx.commit().await?)
    }

    pub async fn remove_member(
        &self,
        origin: &Origin,
        scope: &RepoScope<MemberManage>,
        user: UserId,
    ) -> Result<()> {
        let domain = Domain::Repository(scope.repository());
        let mut tx = self.databases().begin_system().await?;
        let admins = roles::lock_two_holders(&mut tx, domain, Role::Repoadmin).await?;
        if roles::remove_others(&mut tx, user, domain, None).await? == 0 {
            return Err(Error::NotFound("member"));
        }
        keep_an_admin(&mut tx, domain, admins).await?;
        self.record_change(&mut tx, origin, scope, "member.removed", &user.to_string()).await?;
        Ok(tx.commit().await?)
    }
}

/// A repository that had an administrator keeps one. The holders are locked, so two can't leave at once.
pub(crate) async fn keep_an_admin(tx: &mut Tx, domain: Domain, before: usize) -> Result<()> {
    if before > 0 && roles::lock_two_holders(tx, domain, Role::Repoadmin).await? == 0 {
        return Err(Error::Conflict("the last repoadmin can't be removed; make another one first"));
    }
    Ok(())
}
