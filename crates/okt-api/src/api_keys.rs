//! Personal API keys.

use axum::extract::State;
use chrono::{DateTime, Utc};
use http::{HeaderName, StatusCode, header};
use okt_app::KeyRequest;
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{ApiKey, Error, Permission, RepositoryId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::{CallerOf, Caught};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// `object:action`, at least one. A key never does more than its owner may.
    #[schema(example = json!(["source:read"]), min_items = 1)]
    permissions: Vec<String>,
    /// Bind the key to one repository.
    repository_id: Option<Uuid>,
    #[schema(minimum = 1)]
    expires_in_days: Option<u32>,
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    id: Uuid,
    name: String,
    /// The first characters of the token, to know it by.
    prefix: String,
    permissions: Vec<String>,
    repository_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

/// A key with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct CreatedApiKey {
    #[serde(flatten)]
    key: ApiKeyView,
    /// For `Authorization: Bearer`.
    token: String,
}

/// Your API keys.
#[utoipa::path(get, path = "/api/v1/users/me/api-keys", tag = "API keys", params(PageRequest),
    responses((status = 200, body = Page<ApiKeyView>, description = "Oldest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CallerOf,
    page: PageRequest,
) -> Result<Page<ApiKeyView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let keys = api.app.list_api_keys(&caller.0, after.map(Into::into), page.rows()).await?;
    page.page(keys.into_iter().map(ApiKeyView::from).collect(), |key| key.id)
}

/// Make an API key.
#[utoipa::path(post, path = "/api/v1/users/me/api-keys", tag = "API keys", request_body = NewApiKey,
    responses((status = 201, body = CreatedApiKey, description = "The key; its token is shown this once")))]
pub async fn create(
    State(api): State<Api>,
    caller: CallerOf,
    origin: Caught,
    Json(body): Json<NewApiKey>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<CreatedApiKey>), Problem> {
    let permissions = body.permissions.iter().map(|text| {
        text.parse::<Permission>().map_err(|error| Error::invalid("permissions", format!("{text}: {error}")))
    });
    let request = KeyRequest {
        permissions: permissions.collect::<Result<_, _>>()?,
        name: body.name,
        repository: body.repository_id.map(RepositoryId::from),
        expires_in_days: body.expires_in_days,
    };
    let (key, token) = api.app.create_api_key(&origin.into(), &caller.0, request).await?;
    let location = format!("/api/v1/users/me/api-keys/{}", key.id);
    let body = CreatedApiKey { key: key.into(), token: token.expose().to_owned() };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

/// Revoke an API key.
#[utoipa::path(delete, path = "/api/v1/users/me/api-keys/{keyID}", tag = "API keys", params(("keyID" = Uuid, Path)),
    responses((status = 204, description = "It stopped working, on every process")))]
pub async fn revoke(
    State(api): State<Api>,
    caller: CallerOf,
    origin: Caught,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    api.app.revoke_api_key(&origin.into(), &caller.0, id.into()).await?;
    Ok(StatusCode::NO_CONTENT)
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
