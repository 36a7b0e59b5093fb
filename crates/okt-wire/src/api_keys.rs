//! Personal API keys.

use chrono::{DateTime, Utc};
use okt_model::{ApiKey, RepositoryId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// A name to recognize the key by.
    #[schema(min_length = 1, max_length = 200, example = "Nightly import")]
    pub name: String,
    /// `object:action`, at least one. A key never does more than its owner may.
    #[schema(example = json!(["source:read"]), min_items = 1)]
    pub permissions: Vec<String>,
    /// Bind the key to one repository.
    pub repository_id: Option<Uuid>,
    /// Left out: as long as the installation allows (`api_keys.default_ttl`, `api_keys.max_ttl`); `expires_at` says
    /// how long that is.
    #[schema(minimum = 1, example = 90)]
    pub expires_in_days: Option<u32>,
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    pub id: Uuid,
    #[schema(example = "Nightly import")]
    pub name: String,
    /// The first characters of the token, to recognize it.
    #[schema(example = "okt_5vXc")]
    pub prefix: String,
    /// `object:action`.
    #[schema(example = json!(["source:read"]))]
    pub permissions: Vec<String>,
    pub repository_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// Null only where the installation has no upper bound (`api_keys.max_ttl`).
    pub expires_at: Option<DateTime<Utc>>,
    /// The last use, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A key with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct CreatedApiKey {
    #[serde(flatten)]
    pub key: ApiKeyView,
    /// For `Authorization: Bearer`.
    #[schema(example = "okt_5vXcQm…")]
    pub token: String,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.uuid(),
            name: key.name,
            prefix: key.prefix,
            permissions: key.permissions,
            repository_id: key.repository_id.map(RepositoryId::uuid),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}
