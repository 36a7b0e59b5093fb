//! Invitations: how somebody becomes a member who agrees to it.
//!
//! Nobody proves an e-mail address to us, so none is believed: an invitation is a secret that its author hands to the person
//! they mean, and whoever has it joins. It says nothing about who has an account.

use std::time::Duration;

use okt_auth::opaque::{self, Prefix};
use okt_auth::permissions::MemberManage;
use okt_auth::{Caller, Grants, Needed as _, RepoScope};
use okt_config::Secret;
use okt_model::{Domain, Email, Error, Invitation, InvitationId, Repository, Result, Role, UserId};
use okt_store::invitations::{self, NewInvitation};
use okt_store::{Tx, repositories, roles, users};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

const LIFETIME: Duration = Duration::from_hours(7 * 24);
/// Open ones of one repository.
const MOST: i64 = 1_000;

/// What somebody has joined.
pub struct Joined {
    pub repository: Repository,
    /// The one they have now: theirs, where that allows as much.
    pub role: Role,
}

impl App {
    /// Invites somebody; the secret is told here and never again. Another invitation for the same address ends this one.
    pub async fn invite(
        &self,
        origin: &Origin,
        scope: &RepoScope<MemberManage>,
        email: &str,
        role: Role,
    ) -> Result<(Invitation, Secret)> {
        let domain = Domain::Repository(scope.repository());
        if !role.fits(domain) {
            return Err(Error::invalid("role", "must be repoadmin, editor, curator or viewer"));
        }
        let email = Email::parse(email)?;
        let (secret, hash) = opaque::mint(Prefix::Invitation)?;
        let new = NewInvitation {
            id: InvitationId::mint(),
            repository: scope.repository(),
            email: &email,
            role,
            hash: hash.as_bytes(),
            invited_by: scope.caller().user(),
        };
        let mut tx = self.databases().begin_system().await?;
        if !may_give(&mut tx, new.invited_by, domain, role).await? {
            return Err(Error::Forbidden("you cannot invite to a role that allows more than your own"));
        }
        let invitation = invitations::insert(&mut tx, &new, LIFETIME, MOST).await?;
        let invitation = invitation
            .ok_or(Error::Conflict("the repository has 1000 open invitations; delete some of them first"))?;
        let object = format!("{} {}", invitation.id, role.as_str());
        self.record_change(&mut tx, origin, scope, "invitation.created", &object).await?;
        tx.commit().await?;
        Ok((invitation, secret))
    }

    /// Those that can still be used, in the order of their ids, from behind `after`.
    pub async fn list_invitations(
        &self,
        scope: &RepoScope<MemberManage>,
        after: Option<InvitationId>,
        limit: i64,
    ) -> Result<Vec<Invitation>> {
        let mut conn = self.databases().acquire_system().await?;
        let found = invitations::list(&mut conn, scope.repository(), after, limit).await?;
        Ok(found)
    }

    pub async fn delete_invitation(
        &self,
        origin: &Origin,
        scope: &RepoScope<MemberManage>,
        id: InvitationId,
    ) -> Result<()> {
        let mut tx = self.databases().begin_system().await?;
        if !invitations::delete(&mut tx, scope.repository(), id).await? {
            return Err(Error::NotFound("invitation"));
        }
        self.record_change(&mut tx, origin, scope, "invitation.deleted", &id.to_string()).await?;
        Ok(tx.commit().await?)
    }

    /// Makes the caller a member.
    pub async fn accept_invitation(&self, origin: &Origin, caller: &Caller, secret: &str) -> Result<Joined> {
        let mut tx = self.databases().begin_system().await?;
        let joined = join(&mut tx, origin, Actor::caller(caller), caller.user(), "secret", secret).await?;
        tx.commit().await?;
        Ok(joined)
    }
}

/// Uses an invitation up for somebody, in the caller's transaction: when that fails, the invitation is still there. `field` is
/// where the secret stood.
pub(crate) async fn join(
    tx: &mut Tx,
    origin: &Origin,
    actor: Actor,
    user: UserId,
    field: &'static str,
    secret: &str,
) -> Result<Joined> {
    let refused = || {
        let why =
            "is no open invitation: it was used or withdrawn, or seven days have passed; ask for another one";
        Error::invalid(field, why)
    };
    let hash = opaque::parse(Prefix::Invitation, secret.trim()).ok_or_else(refused)?;
    let taken = invitations::use_up(tx, hash.as_bytes()).await?.ok_or_else(refused)?;
    let domain = Domain::Repository(taken.repository);
    // Somebody who was removed or disabled must not come back by what they wrote before.
    let author = users::find(tx, taken.invited_by).await?;
    if author.is_none_or(|author| author.disabled_at.is_some())
        || !may_give(tx, taken.invited_by, domain, taken.role).await?
    {
        return Err(refused());
    }
    let repository = repositories::find(tx, taken.repository).await?.ok_or_else(refused)?;
    let held = roles::list_of(tx, user).await?;
    let held = held.into_iter().find(|(of, role)| *of == domain && allows(*role, taken.role));
    let role = if let Some((_, role)) = held {
        role
    } else {
        roles::assign(tx, user, domain, taken.role).await?;
        roles::remove_others(tx, user, domain, Some(taken.role)).await?;
        taken.role
    };
    let object = format!("{} {user} {}", taken.id, role.as_str());
    record_in(tx, origin, actor, "invitation.accepted", &object, Some(taken.repository)).await?;
    Ok(Joined { repository, role })
}

/// Whether somebody's roles let them give this one.
async fn may_give(tx: &mut Tx, user: UserId, domain: Domain, role: Role) -> Result<bool> {
    let held = Grants::new(roles::list_of(tx, user).await?, false).permissions(domain);
    Ok(held.contains(MemberManage::PERMISSION) && held.union(role.permissions(false)) == held)
}

fn allows(role: Role, other: Role) -> bool {
    let held = role.permissions(false);
    held.union(other.permissions(false)) == held
}
