//! Where a value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::tree::Path;

/// The layer that gave a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The defaults inside of the binary.
    #[default]
    Default,
    /// A file, and the line in it when it is known.
    File { path: PathBuf, line: Option<usize> },
    /// The environment variable of that name.
    Environment(String),
}

impl Origin {
    /// The place to go and mend it: `in /etc/okt/okt.toml:3`.
    pub fn place(&self) -> String {
        match self {
            Self::Default => "default".into(),
            Self::File { path, line: Some(line) } => format!("in {}:{line}", path.display()),
            Self::File { path, line: None } => format!("in {}", path.display()),
            Self::Environment(name) => format!("in environment {name}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, .. } => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                write!(f, "{} ({})", name.display(), path.display())
            }
            Self::Environment(name) => write!(f, "environment {name}"),
        }
    }
}

/// Who set what, while the layers are put on each other. What nobody set is a default.
#[derive(Default)]
pub(crate) struct Sources(BTreeMap<Path, Origin>);

impl Sources {
    /// Notes that a later layer sets this place. A value that is not a table hides all that was below it.
    pub fn note(&mut self, path: &Path, origin: Origin, is_table: bool) {
        if !is_table {
            self.0.retain(|below, _| !below.is_within(path));
        }
        self.0.insert(path.clone(), origin);
    }

    /// Who set this value, itself or as a member of a list.
    pub fn of_value(&self, path: &Path) -> Origin {
        let found = self.0.get(path);
        if found.is_none() && path.is_in_list() {
            return self.nearest(path);
        }
        found.cloned().unwrap_or(Origin::Default)
    }

    /// Who set this place or, as it may be missing, the one around it.
    pub fn nearest(&self, path: &Path) -> Origin {
        let mut place = Some(path.clone());
        while let Some(path) = place {
            if let Some(origin) = self.0.get(&path) {
                return origin.clone();
            }
            place = path.parent();
        }
        Origin::Default
    }
}
