//! Permissions: (object, action) pairs, written `source:read`.

use std::fmt;
use std::str::FromStr;

/// What may be done to which kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Permission {
    pub object: Object,
    pub action: Action,
}

impl Permission {
    pub const fn new(object: Object, action: Action) -> Self {
        Self { object, action }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.object.as_str(), self.action.as_str())
    }
}

/// The text names no permission.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a permission; write object:action, for example source:read")]
pub struct UnknownPermission;

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (object, action) = text.split_once(':').ok_or(UnknownPermission)?;
        let object: Object = object.parse().map_err(|_| UnknownPermission)?;
        let action: Action = action.parse().map_err(|_| UnknownPermission)?;
        Ok(Self::new(object, action))
    }
}

/// A set of permissions. Small enough to copy, and a look into it is an index and a mask.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PermissionSet([u8; Object::ALL.len()]);

/// One bit per action. A ninth action does not compile, and asks for a wider number.
const ALL_ACTIONS: u8 = u8::MAX >> (u8::BITS as usize - Action::ALL.len());

impl PermissionSet {
    pub const EMPTY: Self = Self([0; Object::ALL.len()]);
    pub const ALL: Self = Self([ALL_ACTIONS; Object::ALL.len()]);

    #[must_use]
    pub const fn with(mut self, permission: Permission) -> Self {
        self.0[permission.object as usize] |= 1 << permission.action as u8;
        self
    }

    pub const fn contains(&self, permission: Permission) -> bool {
        self.0[permission.object as usize] & (1 << permission.action as u8) != 0
    }

    #[must_use]
    pub const fn union(mut self, other: Self) -> Self {
        let mut object = 0;
        while object < self.0.len() {
            self.0[object] |= other.0[object];
            object += 1;
        }
        self
    }

    #[must_use]
    pub const fn intersection(mut self, other: Self) -> Self {
        let mut object = 0;
        while object < self.0.len() {
            self.0[object] &= other.0[object];
            object += 1;
        }
        self
    }

    /// In the order of `Object::ALL`, then of `Action::ALL`.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Object::ALL
            .iter()
            .flat_map(|object| Action::ALL.iter().map(|action| Permission::new(*object, *action)))
            .filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        permissions.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for PermissionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|permission| permission.to_string())).finish()
    }
}

/// Declares an enum of words together with its list and its spelling, so that the three can't drift apart.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$line:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        #[strum(const_into_str)]
        pub enum $name { $($(#[$line])* #[strum(serialize = $text)] $variant),+ }

        impl $name {
            pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

            pub const fn as_str(self) -> &'static str {
                self.into_str()
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Kinds of things that permissions speak of.
    Object {
        AiUsage = "ai_usage",
        Audit = "audit",
        Concept = "concept",
        Database = "database",
        Decomposition = "decomposition",
        Fact = "fact",
        Graph = "graph",
        Investigation = "investigation",
        Job = "job",
        Member = "member",
        Promptset = "promptset",
        Remote = "remote",
        Report = "report",
        Repository = "repository",
        Role = "role",
        Source = "source",
        SourceProvider = "source_provider",
        User = "user",
        Webhook = "webhook",
    }
}

words! {
    /// What can be done to them.
    Action {
        Cancel = "cancel",
        Delete = "delete",
        Execute = "execute",
        Export = "export",
        Manage = "manage",
        Read = "read",
        Update = "update",
        Write = "write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_reads_back_as_written() {
        for object in Object::ALL {
            for action in Action::ALL {
                let permission = Permission::new(*object, *action);
                assert_eq!(permission.to_string().parse(), Ok(permission));
            }
        }
    }

    #[test]
    fn what_names_no_permission_is_refused() {
        for text in ["", "source", "source:", ":read", "source:fly", "Source:read", "source:read "] {
            assert_eq!(text.parse::<Permission>(), Err(UnknownPermission), "{text:?}");
        }
    }
    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let all: Vec<_> = PermissionSet::ALL.iter().collect();
        assert_eq!(all.len(), Object::ALL.len() * Action::ALL.len());
        assert!(all.is_sorted());
        assert_eq!(PermissionSet::EMPTY.iter().count(), 0);
        assert_eq!(all.iter().copied().collect::<PermissionSet>(), PermissionSet::ALL);
        for one in &all {
            let set = PermissionSet::EMPTY.with(*one);
            for other in &all {
                assert_eq!(set.contains(*other), one == other, "{one} {other}");
            }
            assert!(set.iter().eq([*one]));
        }
    }

    #[test]
    fn union_and_intersection_are_those_of_sets() {
        let every = |n: usize| PermissionSet::ALL.iter().step_by(n).collect::<PermissionSet>();
        let (twos, threes) = (every(2), every(3));
        for permission in PermissionSet::ALL.iter() {
            let (two, three) = (twos.contains(permission), threes.contains(permission));
            assert_eq!(twos.union(threes).contains(permission), two || three);
            assert_eq!(twos.intersection(threes).contains(permission), two && three);
        }
        assert_eq!(twos.intersection(threes), every(6));
    }
}
