//! Members of a repository.

use chrono::{DateTime, Utc};
use okt_model::{Member, Role};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::schema;

/// A user with roles in a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
pub struct MemberView {
    pub user_id: Uuid,
    #[schema(example = "Ada Lovelace")]
    pub name: String,
    #[schema(value_type = Vec<schema::RepositoryRole>)]
    pub roles: Vec<&'static str>,
    pub since: DateTime<Utc>,
}

/// A user and a role. To add a person whose id you don't know, invite them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberChange {
    #[schema(value_type = Uuid, example = "0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60")]
    pub user_id: Option<Uuid>,
    /// E-mail addresses are not verified, so members are not found by them.
    #[schema(ignore)]
    pub email: Option<IgnoredAny>,
    /// `repoadmin`, `editor`, `curator` or `viewer`.
    #[schema(value_type = schema::RepositoryRole)]
    pub role: String,
}

/// The user to be removed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberRemoval {
    #[schema(value_type = Uuid, example = "0195509d-4a40-7c2a-8f3a-3c1d2b4e5f60")]
    pub user_id: Option<Uuid>,
    #[schema(ignore)]
    pub email: Option<IgnoredAny>,
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        Self {
            user_id: member.user.uuid(),
            name: member.name,
            roles: member.roles.into_iter().map(Role::as_str).collect(),
            since: member.since,
        }
    }
}
