//! What administrators do: users and roles.

use chrono::{DateTime, Utc};
use okt_model::{Domain, Error, Role, User};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::{read, schema};

/// A user, for administrators.
#[derive(Serialize, ToSchema)]
pub struct AdminUser {
    pub id: Uuid,
    #[schema(example = "ada@example.org")]
    pub email: String,
    #[schema(example = "Ada Lovelace")]
    pub name: String,
    pub created_at: DateTime<Utc>,
    pub status: AccountStatus,
}

/// Whether an account can be used.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountStatus {
    Active,
    Disabled,
}

/// Whether an account may be used.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusChange {
    pub status: AccountStatus,
}

/// A role of a user in a domain.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleAssignment {
    pub user_id: Uuid,
    #[schema(value_type = schema::Role)]
    pub role: String,
    /// `system`, or the id of a repository.
    #[schema(example = "system")]
    pub domain: String,
}

/// A permission and the roles that hold it.
#[derive(Serialize, ToSchema)]
pub struct KnownPermission {
    #[schema(value_type = schema::PermissionObject)]
    pub object: &'static str,
    #[schema(value_type = schema::PermissionAction)]
    pub action: &'static str,
    #[schema(value_type = Vec<schema::Role>)]
    pub roles: Vec<&'static str>,
}

impl RoleAssignment {
    pub fn parsed(&self) -> Result<(Domain, Role), Error> {
        let domain = self.domain.parse();
        let domain =
            domain.map_err(|_| Error::invalid("domain", "must be `system` or the id of a repository"))?;
        Ok((domain, read("role", &self.role)?))
    }
}

impl From<User> for AdminUser {
    fn from(user: User) -> Self {
        let status = if user.disabled_at.is_some() { AccountStatus::Disabled } else { AccountStatus::Active };
        Self { id: user.id.uuid(), email: user.email, name: user.name, created_at: user.created_at, status }
    }
}
