//! Profiles, and what one may do.

use chrono::{DateTime, Utc};
use okt_app::{DomainPermissions, Profile};
use okt_model::{Permission, Role, User};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::schema;

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    pub id: Uuid,
    #[schema(example = "ada@example.org")]
    pub email: String,
    #[schema(example = "Ada Lovelace")]
    pub name: String,
}

/// A profile. Of others, callers without `user:read` see the id and the name.
#[derive(Serialize, ToSchema)]
#[schema(as = Profile)]
pub struct ProfileView {
    pub id: Uuid,
    #[schema(example = "Ada Lovelace")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ada@example.org")]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// Roles in the system domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<schema::Role>>)]
    pub system_roles: Option<Vec<&'static str>>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileUpdate {
    #[schema(max_length = 200, example = "Ada King")]
    pub name: Option<String>,
    #[schema(max_length = 254)]
    pub email: Option<String>,
    /// Your present one, which confirms a new e-mail address of your own on a public installation. A new one is set with
    /// `POST /api/v1/users/me/password`.
    #[schema(format = Password, max_length = 256)]
    pub password: Option<String>,
}

/// What the presented credential may do.
#[derive(Serialize, ToSchema)]
pub struct Permissions {
    pub user_id: Uuid,
    pub system_admin: bool,
    pub domains: Vec<DomainView>,
}

/// What may be done in a domain.
#[derive(Serialize, ToSchema)]
#[schema(as = DomainPermissions)]
pub struct DomainView {
    /// `system`, or the id of a repository.
    #[schema(example = "system")]
    pub domain: String,
    #[schema(value_type = Vec<schema::Role>)]
    pub roles: Vec<&'static str>,
    pub permissions: Vec<PermissionView>,
}

/// A permission.
#[derive(Serialize, ToSchema)]
#[schema(as = Permission)]
pub struct PermissionView {
    #[schema(value_type = schema::PermissionObject)]
    pub object: &'static str,
    #[schema(value_type = schema::PermissionAction)]
    pub action: &'static str,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self { id: user.id.uuid(), email: user.email, name: user.name }
    }
}

impl From<Profile> for ProfileView {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Whole(user, roles) => Self {
                id: user.id.uuid(),
                name: user.name,
                email: Some(user.email),
                created_at: Some(user.created_at),
                system_roles: Some(roles.into_iter().map(Role::as_str).collect()),
            },
            Profile::Public(user) => Self {
                id: user.id.uuid(),
                name: user.name,
                email: None,
                created_at: None,
                system_roles: None,
            },
        }
    }
}

impl From<DomainPermissions> for DomainView {
    fn from(row: DomainPermissions) -> Self {
        Self {
            domain: row.domain.to_string(),
            roles: row.roles.into_iter().map(Role::as_str).collect(),
            permissions: row.permissions.into_iter().map(PermissionView::from).collect(),
        }
    }
}

impl From<Permission> for PermissionView {
    fn from(permission: Permission) -> Self {
        Self { object: permission.object.as_str(), action: permission.action.as_str() }
    }
}
