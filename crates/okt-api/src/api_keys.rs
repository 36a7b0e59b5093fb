//! Personal API keys.

use axum::extract::State;
use http::{HeaderName, StatusCode, header};
use okt_app::KeyRequest;
use okt_http::{Json, Page, PageRequest, Path, Problem};
use okt_model::{Error, Permission, RepositoryId};
use okt_wire::api_keys::{ApiKeyView, CreatedApiKey, NewApiKey};
use uuid::Uuid;

use crate::Api;
use crate::extract::{CurrentCaller, RequestOrigin};

/// Your API keys.
#[utoipa::path(get, path = "/api/v1/users/me/api-keys", tag = "API keys",
    operation_id = "listApiKeys", params(PageRequest),
    responses((status = 200, body = Page<ApiKeyView>, description = "Oldest first")))]
pub async fn list(
    State(api): State<Api>,
    caller: CurrentCaller,
    page: PageRequest,
) -> Result<Page<ApiKeyView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let keys = api.app.list_api_keys(&caller.0, after.map(Into::into), page.rows()).await?;
    page.page(keys.into_iter().map(ApiKeyView::from).collect(), |key| key.id)
}

/// Make an API key.
#[utoipa::path(post, path = "/api/v1/users/me/api-keys", tag = "API keys",
    operation_id = "createApiKey", request_body = NewApiKey,
    responses((status = 201, body = CreatedApiKey, description = "The key; its token is shown this once")))]
pub async fn create(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
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
#[utoipa::path(delete, path = "/api/v1/users/me/api-keys/{keyID}", tag = "API keys",
    operation_id = "revokeApiKey",
    responses((status = 204, description = "Revoked, on every process")))]
pub async fn revoke(
    State(api): State<Api>,
    caller: CurrentCaller,
    origin: RequestOrigin,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    api.app.revoke_api_key(&origin.into(), &caller.0, id.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}
