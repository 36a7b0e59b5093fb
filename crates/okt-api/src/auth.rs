//! Registering, signing in and out.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::{Origin, SessionTokens, SignedIn};
use okt_auth::Caller;
use okt_http::{ClientAddress, Json, Problem};
use okt_model::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Api;
use crate::users::UserView;

const COOKIE: &str = "okt_refresh";

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    #[schema(example = "ada@example.org", max_length = 254)]
    email: String,
    /// 8 to 256 characters.
    #[schema(format = Password, min_length = 8, max_length = 256)]
    password: String,
    #[serde(default)]
    #[schema(max_length = 200)]
    name: String,
    /// For browsers: the refresh token comes as a cookie and not in the body.
    #[serde(default)]
    cookie: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    email: String,
    #[schema(format = Password)]
    password: String,
    /// For browsers: the refresh token comes as a cookie and not in the body.
    #[serde(default)]
    cookie: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// May be left out when it comes as a cookie.
    refresh_token: Option<String>,
}

/// A session that has begun.
#[derive(Serialize, ToSchema)]
pub struct SignedInView {
    user: UserView,
    /// For `Authorization: Bearer`.
    token: String,
    /// Absent when it was sent as a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

/// A session that goes on.
#[derive(Serialize, ToSchema)]
pub struct TokensView {
    /// For `Authorization: Bearer`.
    token: String,
    /// Absent when it was sent as a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

/// Make an account and sign in.
#[utoipa::path(post, path = "/api/v1/auth/register", tag = "Accounts", request_body = Registration,
    responses((status = 201, body = SignedInView, description = "The account and its first session"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: already_exists")))]
pub async fn register(
    State(api): State<Api>,
    origin: Caught,
    Json(body): Json<Registration>,
) -> Result<Response, Problem> {
    api.sign_in.register(&api, origin.address)?;
    let signed_in = api.app.register(&origin.into(), &body.email, &body.password, &body.name).await?;
    let location = format!("/api/v1/users/{}", signed_in.user.id);
    let mut response = (StatusCode::CREATED, begun(&api, signed_in, body.cookie)).into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Sign in.
#[utoipa::path(post, path = "/api/v1/auth/login", tag = "Accounts", request_body = Login,
    responses((status = 200, body = SignedInView, description = "A new session"),
              (status = 401, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: unauthenticated")))]
pub async fn login(
    State(api): State<Api>,
    origin: Caught,
    Json(body): Json<Login>,
) -> Result<Response, Problem> {
    api.sign_in.login(&api, origin.address, &body.email)?;
    let signed_in = api.app.login(&origin.into(), &body.email, &body.password).await?;
    Ok(begun(&api, signed_in, body.cookie))
}

/// Exchange a refresh token for a new pair.
///
/// Each refresh token can be used once. One that comes again ends the session, unless the reply was lost within the
/// last ten seconds and its successor was never used.
#[utoipa::path(post, path = "/api/v1/auth/refresh", tag = "Accounts", request_body = Refresh,
    responses((status = 200, body = TokensView, description = "The next pair"),
              (status = 401, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: unauthenticated")))]
pub async fn refresh(
    State(api): State<Api>,
    origin: Caught,
    headers: HeaderMap,
    Json(body): Json<Refresh>,
) -> Result<Response, Problem> {
    let from_cookie = if body.refresh_token.is_none() { cookie(&headers, COOKIE) } else { None };
    let as_cookie = from_cookie.is_some();
    let token = body.refresh_token.or(from_cookie);
    let token = token.ok_or_else(|| Error::invalid("refresh_token", "must be given, here or as a cookie"))?;
    let tokens = api.app.refresh(&origin.into(), &token).await?;
    let (refresh_token, cookie) = placed(&api, &tokens, as_cookie);
    let body = TokensView { token: tokens.access.expose().to_owned(), refresh_token };
    Ok((cookie, Json(body)).into_response())
}

/// End the current session.
///
/// Its token stops working at once, on every process.
#[utoipa::path(post, path = "/api/v1/auth/logout", tag = "Accounts",
    responses((status = 204, description = "The session is over")))]
pub async fn logout(State(api): State<Api>, origin: Caught, caller: CallerOf) -> Result<Response, Problem> {
    api.app.logout(&origin.into(), &caller.0).await?;
    let gone = set_cookie("", 0);
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}

/// Where a request came from.
pub struct Caught {
    pub(crate) address: ClientAddress,
    origin: Origin,
}

/// Whoever passed the gate.
pub struct CallerOf(pub(crate) Caller);

fn begun(api: &Api, signed_in: SignedIn, as_cookie: bool) -> Response {
    let SignedIn { user, tokens } = signed_in;
    let (refresh_token, cookie) = placed(api, &tokens, as_cookie);
    let body = SignedInView { user: user.into(), token: tokens.access.expose().to_owned(), refresh_token };
    (cookie, Json(body)).into_response()
}

/// The refresh token goes into the body or into a cookie, never both.
fn placed(api: &Api, tokens: &SessionTokens, as_cookie: bool) -> (Option<String>, HeaderMap) {
    if !as_cookie {
        return (Some(tokens.refresh.expose().to_owned()), HeaderMap::new());
    }
    let seconds = api.app.config().auth.refresh_ttl.duration().as_secs();
    (None, set_cookie(tokens.refresh.expose(), seconds))
}

/// Scripts can't read it, other sites can't send it, and only these routes get it.
fn set_cookie(value: &str, seconds: u64) -> HeaderMap {
    let text =
        format!("{COOKIE}={value}; Path=/api/v1/auth; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict");
    let mut headers = HeaderMap::new();
    if let Ok(mut text) = HeaderValue::from_str(&text) {
        text.set_sensitive(true);
        headers.insert(header::SET_COOKIE, text);
    }
    headers
}

pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
}

impl From<Caught> for Origin {
    fn from(caught: Caught) -> Self {
        caught.origin
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Caught {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Problem> {
        let address = parts.extensions.get::<ClientAddress>().copied();
        let address = address.ok_or_else(|| Error::internal("a request without an address"))?;
        Ok(Self { address, origin: crate::api::origin(parts) })
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for CallerOf {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        Ok(Self(caller.ok_or_else(|| Error::internal("a route that asks for a caller has an open guard"))?))
    }
}
