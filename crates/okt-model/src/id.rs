//! Typed ids. UUIDv7, so that rows written together lie together in an index.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A repository: the boundary between tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepositoryId(Uuid);

impl RepositoryId {
    /// Mints a new id.
    #[expect(clippy::disallowed_methods, reason = "the one place that mints ids")]
    pub fn mint() -> Self {
        Self(Uuid::now_v7())
    }

    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for RepositoryId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl FromStr for RepositoryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
