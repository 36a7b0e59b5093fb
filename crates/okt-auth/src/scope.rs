//! The proofs that use cases ask for.
//!
//! [`Caller::let_in`] decides once, for one permission in one domain, and makes a [`Proof`] that remembers both. A proof
//! becomes a [`RepoScope`] or a [`SystemScope`] of that permission and of no other.

use std::marker::PhantomData;
use std::ops::Deref;

use okt_model::{Domain, Error, Permission, RepositoryId, Result};
use okt_store::repositories::Located;

use crate::caller::Caller;
use crate::grants::Refused;
use crate::permissions::Needed;

/// That a caller holds a permission in a domain. Only [`Caller::let_in`] makes one.
#[derive(Clone)]
pub struct Proof {
    caller: Caller,
    domain: Domain,
    permission: Permission,
}

/// The proof that a caller holds the permission `P` on the whole installation.
pub struct SystemScope<P> {
    caller: Caller,
    permission: PhantomData<fn() -> P>,
}

/// The proof that a caller holds the permission `P` in a repository.
pub struct RepoScope<P> {
    access: RepoAccess,
    permission: PhantomData<fn() -> P>,
}

/// A caller in a repository, and where that lives: what the inner functions of use cases need. It does not say what the
/// caller may do there, so no public use case takes one.
#[derive(Clone)]
pub struct RepoAccess {
    caller: Caller,
    located: Located,
}

impl Caller {
    /// Lets a caller in who holds the permission in the domain.
    pub fn let_in(&self, domain: Domain, permission: Permission) -> Result<Proof, Refused> {
        self.decide(domain, permission)?;
        Ok(Proof { caller: self.clone(), domain, permission })
    }
}

impl Proof {
    pub fn into_system<P: Needed>(self) -> Result<SystemScope<P>> {
        self.check::<P>(Domain::System)?;
        Ok(SystemScope { caller: self.caller, permission: PhantomData })
    }

    /// `located` is the repository that the proof is about.
    pub fn into_repository<P: Needed>(self, located: Located) -> Result<RepoScope<P>> {
        self.check::<P>(Domain::Repository(located.id))?;
        Ok(RepoScope { access: RepoAccess { caller: self.caller, located }, permission: PhantomData })
    }

    /// A proof of something else is a fault of ours: a line of the route table and its handler ask for different things.
    fn check<P: Needed>(&self, domain: Domain) -> Result<()> {
        if (self.permission, self.domain) == (P::PERMISSION, domain) {
            return Ok(());
        }
        Err(Error::internal(format!(
            "the caller was authorized for {} in {}, but the use case needs {} in {domain}",
            self.permission,
            self.domain,
            P::PERMISSION,
        )))
    }
}

impl<P> SystemScope<P> {
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }
}

// By hand, since a derived one would ask `P` for it.
impl<P> Clone for RepoScope<P> {
    fn clone(&self) -> Self {
        Self { access: self.access.clone(), permission: PhantomData }
    }
}

impl<P> Deref for RepoScope<P> {
    type Target = RepoAccess;

    fn deref(&self) -> &RepoAccess {
        &self.access
    }
}

impl RepoAccess {
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub const fn repository(&self) -> RepositoryId {
        self.located.id
    }

    /// The named database that the repository lives in.
    pub fn database(&self) -> &str {
        &self.located.database
    }

    /// For what needs another permission as well: the same caller in the same repository, if they hold `P` there.
    pub fn also<P: Needed>(&self) -> Result<RepoScope<P>> {
        match self.caller.let_in(Domain::Repository(self.located.id), P::PERMISSION) {
            Ok(proof) => proof.into_repository(self.located.clone()),
            Err(Refused::Invisible | Refused::Forbidden) => {
                Err(Error::Forbidden("another permission is missing in this repository"))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use okt_model::Role;

    use super::*;
    use crate::permissions::ALL;

    /// A permission, and what becomes of a proof when its type is asked for.
    pub(crate) struct Asked {
        permission: Permission,
        in_system: fn(Proof) -> Result<()>,
        in_repository: fn(Proof, Located) -> Result<()>,
    }

    impl Asked {
        pub(crate) const fn of<P: Needed>() -> Self {
            Self {
                permission: P::PERMISSION,
                in_system: |proof| proof.into_system::<P>().map(drop),
                in_repository: |proof, located| proof.into_repository::<P>(located).map(drop),
            }
        }
    }

    /// What an operator finds in the log.
    fn told(refused: Result<()>) -> String {
        match refused {
            Err(Error::Internal(cause)) => cause.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn located() -> Located {
        Located { id: RepositoryId::mint(), database: "default".into() }
    }

    #[test]
    fn a_proof_of_one_permission_is_never_a_scope_of_another() {
        let (sysadmin, here) = (Caller::with_role(Domain::System, Role::Sysadmin), located());
        for (number, proven) in ALL.iter().enumerate() {
            let there = sysadmin.let_in(Domain::Repository(here.id), proven.permission).ok().unwrap();
            let everywhere = sysadmin.let_in(Domain::System, proven.permission).ok().unwrap();
            for (other, asked) in ALL.iter().enumerate() {
                let same = number == other;
                let pair = format!("{} for {}", proven.permission, asked.permission);
                assert_eq!((asked.in_repository)(there.clone(), here.clone()).is_ok(), same, "{pair}");
                assert_eq!((asked.in_system)(everywhere.clone()).is_ok(), same, "{pair}");
            }
        }
    }

    #[test]
    fn a_proof_that_does_not_fit_is_a_fault_that_names_both() {
        let sysadmin = Caller::with_role(Domain::System, Role::Sysadmin);
        let (held, asked) = (&ALL[0], &ALL[1]);
        let proof = sysadmin.let_in(Domain::System, held.permission).ok().unwrap();
        let expected = format!(
            "the caller was authorized for {} in system, but the use case needs {} in system",
            held.permission, asked.permission
        );
        assert_eq!(told((asked.in_system)(proof)), expected);
    }

    #[test]
    fn a_proof_is_good_for_its_domain_alone() {
        let (sysadmin, here) = (Caller::with_role(Domain::System, Role::Sysadmin), located());
        for asked in ALL {
            let there = sysadmin.let_in(Domain::Repository(here.id), asked.permission).ok().unwrap();
            let everywhere = sysadmin.let_in(Domain::System, asked.permission).ok().unwrap();
            assert!((asked.in_repository)(there.clone(), located()).is_err(), "{}", asked.permission);
            assert!((asked.in_system)(there).is_err(), "{}", asked.permission);
            assert!((asked.in_repository)(everywhere, here.clone()).is_err(), "{}", asked.permission);
        }
    }

    #[test]
    fn another_permission_is_given_only_to_those_who_hold_it() {
        use crate::permissions::{InvestigationUpdate, SourceRead, SourceWrite};

        let here = located();
        for (role, held) in [(Role::Curator, false), (Role::Editor, true)] {
            let caller = Caller::with_role(Domain::Repository(here.id), role);
            let proof = caller.let_in(Domain::Repository(here.id), InvestigationUpdate::PERMISSION);
            let scope = proof.ok().unwrap().into_repository::<InvestigationUpdate>(here.clone()).unwrap();
            assert_eq!(scope.also::<SourceWrite>().is_ok(), held, "{role:?}");
            assert_eq!(scope.also::<SourceRead>().unwrap().repository(), here.id);
        }
    }

    #[test]
    fn there_is_no_proof_of_what_a_caller_may_not_do() {
        let here = located();
        let viewer = Caller::with_role(Domain::Repository(here.id), Role::Viewer);
        for asked in ALL {
            let held = Role::Viewer.permissions(true).contains(asked.permission);
            let there = viewer.let_in(Domain::Repository(here.id), asked.permission);
            assert_eq!(there.map(drop), if held { Ok(()) } else { Err(Refused::Forbidden) });
            let elsewhere = viewer.let_in(Domain::Repository(RepositoryId::mint()), asked.permission);
            assert_eq!(elsewhere.map(drop), Err(Refused::Invisible));
        }
    }
}
