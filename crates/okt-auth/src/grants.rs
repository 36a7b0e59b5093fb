//! What somebody may do: the sum of their roles in a domain, less what their credential leaves out.

use std::collections::{HashMap, HashSet};

use okt_model::{Domain, Permission, PermissionSet, RepositoryId, Role};

use crate::permissions::{Needed as _, RepositoryRead};

/// The rights of one user.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    sysadmin: bool,
    system: PermissionSet,
    repositories: HashMap<RepositoryId, PermissionSet>,
}

/// What an API key or an OAuth token limits its owner to. It narrows and never widens.
#[derive(Clone, Debug)]
pub struct Narrow {
    pub permissions: PermissionSet,
    /// `None` is everywhere. With a list there is nothing outside of it, not even the system.
    pub repositories: Option<HashSet<RepositoryId>>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They may know that it is there, but not do this.
    Forbidden,
    /// They may not even know that there is such a repository.
    Invisible,
}

impl Grants {
    /// A role that does not fit its domain is passed over: `sysadmin` written beside a repository is not a sysadmin.
    pub fn new(
        assignments: impl IntoIterator<Item = (Domain, Role)>,
        users_may_create_repositories: bool,
    ) -> Self {
        let mut grants = Self::default();
        for (domain, role) in assignments {
            if !role.fits(domain) {
                continue;
            }
            let held = match domain {
                Domain::System => &mut grants.system,
                Domain::Repository(id) => grants.repositories.entry(id).or_default(),
            };
            *held = held.union(role.permissions(users_may_create_repositories));
            grants.sysadmin |= role == Role::Sysadmin;
        }
        grants
    }

    pub fn permissions(&self, domain: Domain) -> PermissionSet {
        if self.sysadmin {
            return PermissionSet::ALL;
        }
        match domain {
            Domain::System => self.system,
            Domain::Repository(id) => self.repositories.get(&id).copied().unwrap_or_default(),
        }
    }

    /// What is left of the permissions with this credential.
    pub fn narrowed(&self, narrow: &Narrow, domain: Domain) -> PermissionSet {
        if narrow.reaches(domain) {
            self.permissions(domain).intersection(narrow.permissions)
        } else {
            PermissionSet::EMPTY
        }
    }

    /// Whether a repository can be seen is up to the owner and to where the credential reaches, not to what else it
    /// may do: a key for `source:write` alone works, and is told plainly when something else is asked of it.
    pub fn decide(
        &self,
        domain: Domain,
        permission: Permission,
        narrow: Option<&Narrow>,
    ) -> Result<(), Refused> {
        let held = self.permissions(domain);
        let reached = narrow.is_none_or(|narrow| narrow.reaches(domain));
        if matches!(domain, Domain::Repository(_)) && !(reached && held.contains(SEE)) {
            return Err(Refused::Invisible);
        }
        let granted = narrow.is_none_or(|narrow| narrow.permissions.contains(permission));
        if reached && granted && held.contains(permission) { Ok(()) } else { Err(Refused::Forbidden) }
    }
}

const SEE: Permission = RepositoryRead::PERMISSION;

impl Narrow {
    fn reaches(&self, domain: Domain) -> bool {
        match (&self.repositories, domain) {
            (None, _) => true,
            (Some(_), Domain::System) => false,
            (Some(repositories), Domain::Repository(id)) => repositories.contains(&id),
        }
    }
}

#[cfg(test)]
mod tests {
    use okt_model::{Action, Object};

    use super::*;

    fn everything() -> impl Iterator<Item = Permission> {
        PermissionSet::ALL.iter()
    }

    /// Every permission alone, and all of them, here, elsewhere and everywhere.
    fn narrows(here: RepositoryId, elsewhere: RepositoryId) -> Vec<Narrow> {
        let sets = everything().map(|permission| PermissionSet::EMPTY.with(permission));
        let sets = sets.chain([PermissionSet::ALL, PermissionSet::EMPTY]);
        let places = [None, Some([here].into()), Some([elsewhere].into()), Some([here, elsewhere].into())];
        let pair = |permissions| {
            places.clone().map(|repositories: Option<HashSet<_>>| Narrow { permissions, repositories })
        };
        sets.flat_map(pair).collect()
    }

    #[test]
    fn a_role_decides_in_its_domain_and_nowhere_else() {
        let (here, elsewhere) = (RepositoryId::mint(), RepositoryId::mint());
        let domains = [Domain::System, Domain::Repository(here), Domain::Repository(elsewhere)];
        for may_create in [true, false] {
            for (role, held_in) in Role::ALL.iter().flat_map(|role| domains.map(|domain| (*role, domain))) {
                let grants = Grants::new([(held_in, role)], may_create);
                for (domain, permission) in domains.iter().flat_map(|d| everything().map(|p| (*d, p))) {
                    let counts = role.fits(held_in) && (role == Role::Sysadmin || held_in == domain);
                    let holds = counts && role.permissions(may_create).contains(permission);
                    let expected = match domain {
                        _ if holds => Ok(()),
                        Domain::Repository(_) if !counts => Err(Refused::Invisible),
                        _ => Err(Refused::Forbidden),
                    };
                    assert_eq!(
                        grants.decide(domain, permission, None),
                        expected,
                        "{role:?} in {held_in} asks for {permission} in {domain}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_credential_narrows_and_never_widens() {
        let (here, elsewhere) = (RepositoryId::mint(), RepositoryId::mint());
        let domains = [Domain::System, Domain::Repository(here), Domain::Repository(elsewhere)];
        for role in Role::ALL {
            let held_in = if role.fits(Domain::System) { Domain::System } else { domains[1] };
            let grants = Grants::new([(held_in, *role)], true);
            for narrow in narrows(here, elsewhere) {
                for domain in domains {
                    let within = match (&narrow.repositories, domain) {
                        (None, _) => true,
                        (Some(_), Domain::System) => false,
                        (Some(list), Domain::Repository(id)) => list.contains(&id),
                    };
                    let left = grants.narrowed(&narrow, domain);
                    for permission in everything() {
                        let owner = grants.permissions(domain).contains(permission);
                        let expected = owner && within && narrow.permissions.contains(permission);
                        assert_eq!(
                            left.contains(permission),
                            expected,
                            "{role:?} {narrow:?} {domain} {permission}"
                        );
                        let allowed = grants.decide(domain, permission, Some(&narrow)).is_ok();
                        assert_eq!(allowed, expected, "{role:?} {narrow:?} {domain} {permission}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_is_refused_plainly_where_it_reaches_and_blind_where_it_does_not() {
        let (here, elsewhere) = (RepositoryId::mint(), RepositoryId::mint());
        let (write, read) =
            (Permission::new(Object::Source, Action::Write), Permission::new(Object::Source, Action::Read));
        let roles = [here, elsewhere].map(|id| (Domain::Repository(id), Role::Editor));
        let grants = Grants::new(roles.into_iter().chain([(Domain::System, Role::User)]), true);
        let key = Narrow { permissions: PermissionSet::EMPTY.with(write), repositories: Some([here].into()) };
        let decide = |domain, permission| grants.decide(domain, permission, Some(&key));
        assert_eq!(decide(Domain::Repository(here), write), Ok(()));
        assert_eq!(decide(Domain::Repository(here), read), Err(Refused::Forbidden));
        assert_eq!(decide(Domain::Repository(here), SEE), Err(Refused::Forbidden));
        assert_eq!(decide(Domain::Repository(elsewhere), write), Err(Refused::Invisible));
        assert_eq!(decide(Domain::System, write), Err(Refused::Forbidden));
    }

    #[test]
    fn several_roles_add_up() {
        let repository = Domain::Repository(RepositoryId::mint());
        let grants = Grants::new([(repository, Role::Viewer), (repository, Role::Editor)], true);
        assert_eq!(grants.permissions(repository), Role::Editor.permissions(true));
        let nobody = Grants::new([], true);
        assert_eq!(nobody.permissions(repository), PermissionSet::EMPTY);
        assert_eq!(nobody.decide(repository, SEE, None), Err(Refused::Invisible));
    }

    #[test]
    fn whoever_holds_a_role_in_a_repository_can_see_it() {
        let repository = Domain::Repository(RepositoryId::mint());
        for role in Role::ALL.iter().filter(|role| role.fits(repository)) {
            assert!(role.permissions(true).contains(SEE), "{role:?}");
        }
    }
}
