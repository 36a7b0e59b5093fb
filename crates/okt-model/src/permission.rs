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
        let object = Object::ALL.iter().find(|o| o.as_str() == object).ok_or(UnknownPermission)?;
        let action = Action::ALL.iter().find(|a| a.as_str() == action).ok_or(UnknownPermission)?;
        Ok(Self::new(*object, *action))
    }
}

/// Declares an enum of words together with its list and its spelling, so that the three can't drift apart.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

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
}
