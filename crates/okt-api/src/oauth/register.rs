//! Clients that register themselves (RFC 7591), and look after their registration (RFC 7592).

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use okt_app::oauth::Registered;
use okt_http::{Code, Json, Path, Problem};
use okt_model::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{OAuthError, OAuthErrorBody};
use crate::Api;
use crate::extract::{Issuer, RequestOrigin, bearer};

/// The metadata of a client. Other fields are ignored.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "for the documentation; the body is read by rules of its own, with errors of its own"
)]
pub struct ClientRegistration {
    /// 1 to 10; https, or http to `127.0.0.1`, `[::1]` or `localhost`.
    #[schema(example = json!(["http://127.0.0.1/callback"]), min_items = 1, max_items = 10)]
    redirect_uris: Vec<String>,
    #[schema(example = "Notes")]
    client_name: Option<String>,
    client_uri: Option<String>,
    /// `none`, `client_secret_basic` (the default) or `client_secret_post`.
    #[schema(example = "none")]
    token_endpoint_auth_method: Option<String>,
    /// `authorization_code` (the default), and `refresh_token` to go on without asking again.
    #[schema(example = json!(["authorization_code", "refresh_token"]))]
    grant_types: Option<Vec<String>>,
    #[schema(example = json!(["code"]))]
    response_types: Option<Vec<String>>,
    /// The largest scope that the client may request.
    #[schema(example = "read")]
    scope: Option<String>,
}

/// A client as it was registered.
#[derive(Serialize, ToSchema)]
pub struct RegisteredClient {
    #[schema(example = "client_4hT9…")]
    client_id: String,
    /// Shown this once, and only to a client that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[schema(example = 1_772_357_400)]
    client_id_issued_at: i64,
    /// 0: never. There is one where there is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret_expires_at: Option<u64>,
    #[schema(example = "Notes")]
    client_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_uri: Option<String>,
    #[schema(example = json!(["http://127.0.0.1/callback"]))]
    redirect_uris: Vec<String>,
    #[schema(example = json!(["authorization_code", "refresh_token"]))]
    grant_types: Vec<String>,
    #[schema(value_type = Vec<String>, example = json!(["code"]))]
    response_types: [&'static str; 1],
    #[schema(example = "none")]
    token_endpoint_auth_method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// For reading, changing and deleting this registration. Another one with every answer.
    #[schema(example = "oktm_2Lw…")]
    registration_access_token: String,
    #[schema(example = "https://okt.example/api/v1/oauth/register/client_4hT9…")]
    registration_client_uri: String,
}

/// Register a client.
///
/// Needs no credential. A client has no access until a person approves it; a client without an approval is deleted after a day.
#[utoipa::path(post, path = "/api/v1/oauth/register", tag = "OAuth",
    operation_id = "registerClient", request_body = ClientRegistration,
    responses((status = 201, body = RegisteredClient, description = "The client and its credentials"),
              (status = 400, body = OAuthErrorBody, description = "invalid_redirect_uri or invalid_client_metadata")))]
pub(crate) async fn create(
    State(api): State<Api>,
    Issuer(issuer): Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, OAuthError> {
    api.oauth.register(&api, origin.address)?;
    let registered = api.app.register_client(&origin.into(), &document(&headers, &body)?).await?;
    let view = view(&issuer, registered);
    let location = [(header::LOCATION, view.registration_client_uri.clone())];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// A client's registration.
#[utoipa::path(get, path = "/api/v1/oauth/register/{clientID}", tag = "OAuth",
    operation_id = "getClient", params(("clientID" = String, Path)),
    responses((status = 200, body = RegisteredClient, description = "With the next registration access token"),
              (status = 401, description = "unauthenticated")))]
pub(crate) async fn show(
    State(api): State<Api>,
    Issuer(issuer): Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, OAuthError> {
    let token = token(&headers)?;
    let registered = api.app.read_registration(&origin.into(), &id, &token).await?;
    Ok(Json(view(&issuer, registered)).into_response())
}

/// Change a client's registration.
#[utoipa::path(put, path = "/api/v1/oauth/register/{clientID}", tag = "OAuth",
    operation_id = "updateClient", params(("clientID" = String, Path)),
    request_body = ClientRegistration,
    responses((status = 200, body = RegisteredClient, description = "With the next registration access token"),
              (status = 400, body = OAuthErrorBody, description = "invalid_redirect_uri or invalid_client_metadata"),
              (status = 401, description = "unauthenticated")))]
pub(crate) async fn update(
    State(api): State<Api>,
    Issuer(issuer): Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, OAuthError> {
    let (token, document) = (token(&headers)?, document(&headers, &body)?);
    let registered = api.app.update_registration(&origin.into(), &id, &token, &document).await?;
    Ok(Json(view(&issuer, registered)).into_response())
}

/// Delete a client's registration.
///
/// What people gave to the client ends with it.
#[utoipa::path(delete, path = "/api/v1/oauth/register/{clientID}", tag = "OAuth",
    operation_id = "deleteClient", params(("clientID" = String, Path)),
    responses((status = 204, description = "The registration was deleted"),
              (status = 401, description = "unauthenticated")))]
pub(crate) async fn delete(
    State(api): State<Api>,
    _: Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<StatusCode, OAuthError> {
    let token = token(&headers)?;
    api.app.delete_registration(&origin.into(), &id, &token).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn document(headers: &HeaderMap, body: &[u8]) -> Result<Value, OAuthError> {
    // The edge lets forms in as well, and looks for other things in them.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.trim().to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
        return Err(Problem::new(Code::UnsupportedMediaType, "the body must be application/json").into());
    }
    serde_json::from_slice(body)
        .map_err(|_| OAuthError::refused("invalid_client_metadata", "the body must be a JSON object"))
}

fn token(headers: &HeaderMap) -> Result<String, Problem> {
    let token = bearer(headers)?;
    let missing = Error::Unauthenticated("this needs the registration access token: Authorization: Bearer …");
    Ok(token.ok_or(missing)?.to_owned())
}

fn view(issuer: &str, registered: Registered) -> RegisteredClient {
    let Registered { client, secret, management } = registered;
    RegisteredClient {
        registration_client_uri: format!("{issuer}/api/v1/oauth/register/{}", client.id),
        client_id: client.id,
        client_secret: secret.as_ref().map(|secret| secret.expose().to_owned()),
        client_id_issued_at: client.created_at.timestamp(),
        client_secret_expires_at: secret.map(|_| 0),
        client_name: client.name,
        client_uri: client.uri,
        redirect_uris: client.redirect_uris,
        grant_types: client.grant_types,
        response_types: ["code"],
        token_endpoint_auth_method: client.auth_method,
        scope: client.scope.map(|scope| scope.to_string()),
        registration_access_token: management.expose().to_owned(),
    }
}
