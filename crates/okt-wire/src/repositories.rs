//! Repositories.

use chrono::{DateTime, Utc};
use okt_app::SeenRepository;
use okt_model::{Counts, Role, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::schema;

/// A repository: the boundary between tenants.
#[derive(Serialize, ToSchema)]
#[schema(as = Repository)]
pub struct RepositoryView {
    pub id: Uuid,
    #[schema(example = "Bees")]
    pub name: String,
    /// The name of the repository in paths; accepted wherever its id is.
    #[schema(example = "bees")]
    pub slug: String,
    #[schema(example = "What is known of bees")]
    pub description: String,
    /// The named database that stores the repository.
    #[schema(example = "default")]
    pub database: String,
    /// How its owner wants it kept: `shared`, `isolated` or `sovereign`.
    #[schema(value_type = schema::Tier)]
    pub tier: &'static str,
    #[schema(example = "general")]
    pub preset: String,
    /// The user who created the repository.
    #[schema(required)]
    pub owner_id: Option<Uuid>,
    /// Your own there; a key or a client has none, only permissions.
    #[schema(value_type = Vec<schema::RepositoryRole>)]
    pub roles: Vec<&'static str>,
    /// Null while its database does not answer.
    #[schema(required)]
    pub counts: Option<CountsView>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// The number of objects in a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryCounts)]
pub struct CountsView {
    pub sources: i64,
    pub facts: i64,
    pub concepts: i64,
    pub reports: i64,
    pub investigations: i64,
}

/// A repository to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRepository {
    #[schema(example = "Bees", min_length = 1, max_length = 200)]
    pub name: String,
    /// 1 to 64 of a-z, 0-9 and -; made from the name when it is left out.
    #[schema(example = "bees")]
    pub slug: Option<String>,
    #[schema(example = "What is known of bees")]
    pub description: Option<String>,
    /// A named database. Who may not pick one gets the default one, whatever they write.
    pub database: Option<String>,
    /// `shared` (the default), `isolated` or `sovereign`.
    #[schema(value_type = Option<schema::Tier>)]
    pub tier: Option<String>,
    /// See `GET /api/v1/repositories/presets`.
    pub preset: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryUpdate {
    #[schema(min_length = 1, max_length = 200, example = "Honey bees")]
    pub name: Option<String>,
    pub description: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Deletion {
    /// Only says what would go.
    pub dry_run: Option<bool>,
}

/// What would be deleted with a repository.
#[derive(Serialize, ToSchema)]
#[schema(as = RepositoryWouldBeDeleted)]
pub struct WouldBeDeleted {
    pub dry_run: bool,
    #[schema(required)]
    pub counts: Option<CountsView>,
}

impl From<SeenRepository> for RepositoryView {
    fn from(seen: SeenRepository) -> Self {
        let repository = seen.repository;
        Self {
            id: repository.id.uuid(),
            name: repository.name,
            slug: repository.slug,
            description: repository.description,
            database: repository.database,
            tier: repository.tier.as_str(),
            preset: repository.preset,
            owner_id: repository.owner.map(UserId::uuid),
            roles: seen.roles.into_iter().map(Role::as_str).collect(),
            counts: seen.counts.map(CountsView::from),
            created_at: repository.created_at,
            updated_at: repository.updated_at,
        }
    }
}

impl From<Counts> for CountsView {
    fn from(counts: Counts) -> Self {
        Self {
            sources: counts.sources,
            facts: counts.facts,
            concepts: counts.concepts,
            reports: counts.reports,
            investigations: counts.investigations,
        }
    }
}
