//! From a code or a refresh token to tokens, and their end.

use axum::extract::State;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode, header};
use okt_app::oauth::{ClientCredentials, CodeExchange, IssuedTokens, Params};
use okt_http::{Form, Json};
use okt_model::OAuthClient;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{OAuthError, OAuthErrorBody};
use crate::Api;
use crate::extract::{Issuer, RequestOrigin};

/// For `grant_type=authorization_code`: `code`, `code_verifier` and, if one likes, `redirect_uri`. For
/// `grant_type=refresh_token`: `refresh_token` and, to narrow it, `scope`.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "for the documentation; a form is read by rules of its own")]
pub struct TokenRequest {
    /// `authorization_code` or `refresh_token`.
    #[schema(example = "authorization_code")]
    grant_type: String,
    #[schema(example = "client_4hT9…")]
    client_id: Option<String>,
    client_secret: Option<String>,
    #[schema(example = "oktc_7pK…")]
    code: Option<String>,
    #[schema(example = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")]
    code_verifier: Option<String>,
    redirect_uri: Option<String>,
    refresh_token: Option<String>,
    scope: Option<String>,
    resource: Option<String>,
}

/// The token to revoke.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "for the documentation; a form is read by rules of its own")]
pub struct RevocationRequest {
    #[schema(example = "okto_8Qm2…")]
    token: String,
    token_type_hint: Option<String>,
    #[schema(example = "client_4hT9…")]
    client_id: Option<String>,
    client_secret: Option<String>,
}

/// Tokens (RFC 6749 §5.1).
#[derive(Serialize, ToSchema)]
pub struct TokenResponse {
    #[schema(example = "eyJhbGciOiJFUzI1NiJ9.eyJ…")]
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// In seconds.
    #[schema(example = 900)]
    expires_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "okto_8Qm2…")]
    refresh_token: Option<String>,
    #[schema(example = "fact:read")]
    scope: String,
}

/// Exchange a code or a refresh token for tokens.
#[utoipa::path(post, path = "/api/v1/oauth/token", tag = "OAuth",
    operation_id = "issueToken",
    request_body(content = TokenRequest, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = TokenResponse, description = "The tokens"),
              (status = 400, body = OAuthErrorBody, description = "invalid_request, invalid_grant, invalid_scope, invalid_target, unauthorized_client or unsupported_grant_type"),
              (status = 401, body = OAuthErrorBody, description = "invalid_client")))]
pub(crate) async fn issue(
    State(api): State<Api>,
    Issuer(issuer): Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Json<TokenResponse>, OAuthError> {
    let params = Params(form);
    let grant_type = params.needed("grant_type")?;
    if !["authorization_code", "refresh_token"].contains(&grant_type) {
        let description = "grant_type: authorization_code or refresh_token";
        return Err(OAuthError::refused("unsupported_grant_type", description));
    }
    let client = client(&api, &origin, &headers, &params).await?;
    if !client.grant_types.iter().any(|kind| kind == grant_type) {
        let description = "the client did not register for this grant_type";
        return Err(OAuthError::refused("unauthorized_client", description));
    }
    let resource: Vec<String> = params.all("resource").map(str::to_owned).collect();
    let origin = origin.into();
    let tokens = if grant_type == "authorization_code" {
        let exchange = CodeExchange {
            code: params.needed("code")?,
            verifier: params.needed("code_verifier")?,
            redirect_uri: params.once("redirect_uri")?,
            resource: &resource,
        };
        api.app.exchange_code(&origin, &issuer, &client, exchange).await?
    } else {
        let (token, scope) = (params.needed("refresh_token")?, params.once("scope")?);
        api.app.refresh_grant(&origin, &issuer, &client, token, scope, &resource).await?
    };
    Ok(Json(tokens.into()))
}

/// Revoke a refresh or access token (RFC 7009).
///
/// The whole grant ends: its access tokens stop working at once, on every process.
#[utoipa::path(post, path = "/api/v1/oauth/revoke", tag = "OAuth",
    operation_id = "revokeToken",
    request_body(content = RevocationRequest, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The token is not valid"),
              (status = 400, body = OAuthErrorBody, description = "invalid_request or unsupported_token_type"),
              (status = 401, body = OAuthErrorBody, description = "invalid_client")))]
pub(crate) async fn revoke(
    State(api): State<Api>,
    Issuer(issuer): Issuer,
    origin: RequestOrigin,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<StatusCode, OAuthError> {
    let params = Params(form);
    let token = params.needed("token")?;
    let client = client(&api, &origin, &headers, &params).await?;
    api.app.revoke_token(&origin.into(), &issuer, &client, token).await?;
    Ok(StatusCode::OK)
}

/// The client that came, if it proves to be itself in one way and not in two.
async fn client(
    api: &Api,
    origin: &RequestOrigin,
    headers: &HeaderMap,
    params: &Params,
) -> Result<OAuthClient, OAuthError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let basic = given.next().map(|value| value.to_str().unwrap_or_default());
    if given.next().is_some() {
        let description = "there is more than one Authorization header";
        return Err(OAuthError::refused("invalid_request", description));
    }
    let (id, secret) = (params.once("client_id")?, params.once("client_secret")?);
    let given = match basic {
        Some(_) if secret.is_some() => {
            let description = "the client proves itself in the header or in the body, not in both";
            return Err(OAuthError::refused("invalid_request", description));
        }
        Some(text) => {
            let unreadable = || OAuthError::Refused {
                error: "invalid_client",
                description: "the Authorization header is no readable Basic credential".to_owned(),
                basic: true,
            };
            let (name, secret) = basic_credentials(text).ok_or_else(unreadable)?;
            if id.is_some_and(|id| id != name) {
                let description = "client_id: another one than in the header";
                return Err(OAuthError::refused("invalid_request", description));
            }
            (name, Some(secret), "client_secret_basic")
        }
        None => {
            let missing = || OAuthError::refused("invalid_request", "client_id: missing");
            let id = id.ok_or_else(missing)?.to_owned();
            let method = if secret.is_some() { "client_secret_post" } else { "none" };
            (id, secret.map(str::to_owned), method)
        }
    };
    let (id, secret, method) = given;
    api.oauth.token(&id, origin.address)?;
    let credentials = ClientCredentials { id: &id, secret: secret.as_deref(), method };
    api.app.authenticate_client(credentials).await.map_err(|refusal| match refusal.into() {
        OAuthError::Refused { error, description, .. } => {
            OAuthError::Refused { error, description, basic: basic.is_some() }
        }
        problem @ OAuthError::Problem(_) => problem,
    })
}

/// Both halves are encoded like a form before they are joined (RFC 6749 §2.3.1).
fn basic_credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, secret) = text.split_once(':')?;
    // What would begin another field of a form is a character like any other here.
    let plain = |half: &str| {
        let field = format!("a={}", half.replace('&', "%26"));
        url::form_urlencoded::parse(field.as_bytes()).next().map(|(_, v)| v.into_owned())
    };
    Some((plain(name)?, plain(secret)?))
}

impl From<IssuedTokens> for TokenResponse {
    fn from(issued: IssuedTokens) -> Self {
        Self {
            access_token: issued.access.expose().to_owned(),
            token_type: "Bearer",
            expires_in: issued.expires_in.as_secs(),
            refresh_token: issued.refresh.map(|token| token.expose().to_owned()),
            scope: issued.scope.to_string(),
        }
    }
}
