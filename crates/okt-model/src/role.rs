//! Roles: named sets of permissions, held in a domain.

use std::fmt;
use std::str::FromStr;

use crate::permission::words;
use crate::{Action, Object, Permission, PermissionSet, RepositoryId};

/// Where a role is held: one repository, or the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Domain {
    System,
    Repository(RepositoryId),
}

/// The text names no domain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a domain; write system, or the id of a repository")]
pub struct UnknownDomain;

impl FromStr for Domain {
    type Err = UnknownDomain;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "system" {
            return Ok(Self::System);
        }
        text.parse().map(Self::Repository).map_err(|_| UnknownDomain)
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Repository(id) => id.fmt(f),
        }
    }
}

words! {
    /// From the most to the least, first of the system, then of a repository.
    Role {
        Sysadmin = "sysadmin",
        User = "user",
        Repoadmin = "repoadmin",
        Editor = "editor",
        Curator = "curator",
        Viewer = "viewer",
    }
}

impl Role {
    /// A role that does not fit its domain gives nothing there.
    pub const fn fits(self, domain: Domain) -> bool {
        match self {
            Self::Sysadmin | Self::User => matches!(domain, Domain::System),
            Self::Repoadmin | Self::Editor | Self::Curator | Self::Viewer => {
                matches!(domain, Domain::Repository(_))
            }
        }
    }

    /// `users_may_create_repositories` is the setting `rbac.users_may_create_repositories`.
    pub const fn permissions(self, users_may_create_repositories: bool) -> PermissionSet {
        match self {
            Self::Sysadmin => PermissionSet::ALL,
            Self::User if users_may_create_repositories => {
                USER.with(Permission::new(Object::Repository, Action::Write))
            }
            Self::User => USER,
            Self::Repoadmin => REPOADMIN,
            Self::Editor => EDITOR,
            Self::Curator => CURATOR,
            Self::Viewer => VIEWER,
        }
    }
}

/// What anybody with an account may see of the installation. Not `source_provider:execute`: it spends the
/// operator's paid quota without a repository whose budget would stop it.
const USER: PermissionSet = reads(&[Object::SourceProvider, Object::Decomposition, Object::Promptset]);

/// Knowledge, how it comes about, and with whom it is shared. What others do and what it costs is for admins.
const VIEWER: PermissionSet = reads(&[
    Object::Repository,
    Object::Source,
    Object::Fact,
    Object::Concept,
    Object::Investigation,
    Object::Report,
    Object::Job,
    Object::Graph,
    Object::Promptset,
    Object::Member,
]);

/// Works with what is there. Facts are judged but never written by hand: each comes from a source.
const CURATOR: PermissionSet = VIEWER
    .union(on(Object::Investigation, &[Action::Write, Action::Update, Action::Delete]))
    .union(on(Object::Report, &[Action::Write, Action::Update, Action::Delete]))
    .union(on(Object::Concept, &[Action::Write, Action::Update]))
    .union(on(Object::Fact, &[Action::Update]));

/// Brings in what is not there yet, and so spends the repository's budget; takes knowledge out as well.
const EDITOR: PermissionSet = CURATOR
    .union(on(Object::Source, &[Action::Write, Action::Update, Action::Delete]))
    .union(on(Object::Job, &[Action::Cancel]))
    .union(on(Object::Remote, Action::ALL))
    .union(on(Object::Graph, &[Action::Export]));

/// Everything inside of one repository. Not `role:*`, which is the system's word: here it is `member:manage`.
const REPOADMIN: PermissionSet = EDITOR
    .union(on(Object::Repository, &[Action::Update, Action::Manage, Action::Delete]))
    .union(on(Object::Member, &[Action::Manage]))
    .union(on(Object::Graph, &[Action::Write]))
    .union(on(Object::Webhook, Action::ALL))
    .union(reads(&[Object::Audit, Object::AiUsage]));

const fn on(object: Object, actions: &[Action]) -> PermissionSet {
    let mut set = PermissionSet::EMPTY;
    let mut at = 0;
    while at < actions.len() {
        set = set.with(Permission::new(object, actions[at]));
        at += 1;
    }
    set
}

const fn reads(objects: &[Object]) -> PermissionSet {
    let mut set = PermissionSet::EMPTY;
    let mut at = 0;
    while at < objects.len() {
        set = set.with(Permission::new(objects[at], Action::Read));
        at += 1;
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_domains_read_back_as_written() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(*role));
        }
        for domain in [Domain::System, Domain::Repository(RepositoryId::mint())] {
            assert_eq!(domain.to_string().parse(), Ok(domain));
        }
        assert!("Viewer".parse::<Role>().is_err());
        for text in ["", "System", "system ", "default", "0193"] {
            assert_eq!(text.parse::<Domain>(), Err(UnknownDomain), "{text:?}");
        }
    }

    #[test]
    fn every_role_fits_one_kind_of_domain() {
        let repository = Domain::Repository(RepositoryId::mint());
        for role in Role::ALL {
            let of_the_system = matches!(role, Role::Sysadmin | Role::User);
            assert_eq!(role.fits(Domain::System), of_the_system);
            assert_eq!(role.fits(repository), !of_the_system);
        }
    }

    #[test]
    fn a_lower_role_may_do_less_than_the_next() {
        use Role::{Curator, Editor, Repoadmin, Sysadmin, User, Viewer};
        for may_create in [true, false] {
            for (lower, higher) in [
                (Viewer, Curator),
                (Curator, Editor),
                (Editor, Repoadmin),
                (Repoadmin, Sysadmin),
                (User, Sysadmin),
            ] {
                let (less, more) = (lower.permissions(may_create), higher.permissions(may_create));
                assert_eq!(less.intersection(more), less, "{lower:?} is within {higher:?}");
                assert_ne!(less, more, "{lower:?} is not {higher:?}");
            }
        }
    }

    /// The tables in full, so that a change of who may do what is a change of this text.
    #[test]
    fn each_role_adds_what_the_contract_says() {
        let added = |role: Role, below: PermissionSet| {
            let new = role.permissions(true).iter().filter(|permission| !below.contains(*permission));
            new.map(|permission| permission.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            added(Role::User, PermissionSet::EMPTY),
            "decomposition:read promptset:read repository:write source_provider:read"
        );
        assert_eq!(
            added(Role::Viewer, PermissionSet::EMPTY),
            "concept:read fact:read graph:read investigation:read job:read member:read promptset:read report:read \
             repository:read source:read"
        );
        assert_eq!(
            added(Role::Curator, VIEWER),
            "concept:update concept:write fact:update investigation:delete investigation:update \
             investigation:write report:delete report:update report:write"
        );
        assert_eq!(
            added(Role::Editor, CURATOR),
            "graph:export job:cancel remote:cancel remote:delete remote:execute remote:export remote:manage \
             remote:read remote:update remote:write source:delete source:update source:write"
        );
        assert_eq!(
            added(Role::Repoadmin, EDITOR),
            "ai_usage:read audit:read graph:write member:manage repository:delete repository:manage \
             repository:update webhook:cancel webhook:delete webhook:execute webhook:export webhook:manage \
             webhook:read webhook:update webhook:write"
        );
        assert_eq!(Role::Sysadmin.permissions(false), PermissionSet::ALL);
        assert!(!Role::User.permissions(false).contains(Permission::new(Object::Repository, Action::Write)));
    }
}
