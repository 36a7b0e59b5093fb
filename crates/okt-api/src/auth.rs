//! Registering, signing in and out.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::{NewAccount, SessionTokens, SignedIn};
use okt_http::{Json, Problem};
use okt_model::Error;
use okt_wire::auth::{Login, Refresh, Registration, SignedInView, TokensView};

use crate::Api;
use crate::extract::{CurrentCaller, RequestOrigin, Site, cookie};
use crate::web;

const COOKIE: &str = "okt_refresh";

/// Make an account and sign in.
///
/// The setting `auth.registration`, which `GET /api/v1/setup` returns, decides who may register: all users, users with an
/// invitation, or no users. If `bootstrap.auto_promote_first_user` is on, the first account of an installation becomes its
/// sysadmin; unless the request comes from the machine that the service runs on, this needs the setup code.
#[utoipa::path(post, path = "/api/v1/auth/register", tag = "Accounts",
    operation_id = "registerUser", request_body = Registration,
    responses((status = 201, body = SignedInView, description = "The account and its first session"),
              (status = 403, description = "registration_closed, setup_code_needed"),
              (status = 409, description = "already_exists")))]
pub async fn register(
    State(api): State<Api>,
    origin: RequestOrigin,
    Json(body): Json<Registration>,
) -> Result<Response, Problem> {
    api.sign_in.register(&api, origin.address)?;
    let (address, local) = (origin.address, origin.local);
    let new = NewAccount {
        email: &body.email,
        password: &body.password,
        name: &body.name,
        local,
        setup_code: body.setup_code.as_deref(),
        invitation: body.invitation.as_deref(),
    };
    let signed_in = api.app.register(&origin.into(), new).await?;
    api.sign_in.remember(address, &body.email);
    let location = format!("/api/v1/users/{}", signed_in.user.id);
    let mut response =
        (StatusCode::CREATED, signed_in_response(&api, signed_in, body.cookie)).into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Sign in.
///
/// The wrong password, an unknown address and a disabled account are answered alike.
#[utoipa::path(post, path = "/api/v1/auth/login", tag = "Accounts",
    operation_id = "logIn", request_body = Login,
    responses((status = 200, body = SignedInView, description = "A new session"),
              (status = 401, description = "unauthenticated")))]
pub async fn login(
    State(api): State<Api>,
    origin: RequestOrigin,
    Json(body): Json<Login>,
) -> Result<Response, Problem> {
    let address = origin.address;
    api.sign_in.login(&api, address, &body.email)?;
    let signed_in = api.app.login(&origin.into(), &body.email, &body.password).await?;
    api.sign_in.remember(address, &body.email);
    Ok(signed_in_response(&api, signed_in, body.cookie))
}

/// Exchange a refresh token for a new pair.
///
/// Each refresh token can be used once. One that comes again ends the session, unless the reply was lost within the
/// last ten seconds and its successor was never used.
#[utoipa::path(post, path = "/api/v1/auth/refresh", tag = "Accounts",
    operation_id = "refreshSession", request_body = Refresh,
    responses((status = 200, body = TokensView, description = "The next pair"),
              (status = 401, description = "unauthenticated"),
              (status = 403, description = "forbidden")))]
pub async fn refresh(
    State(api): State<Api>,
    origin: RequestOrigin,
    site: Site,
    headers: HeaderMap,
    Json(body): Json<Refresh>,
) -> Result<Response, Problem> {
    let from_cookie = if body.refresh_token.is_none() { cookie(&headers, COOKIE) } else { None };
    let as_cookie = from_cookie.is_some();
    // A cookie is sent by the browser, whoever asked it to.
    if as_cookie && !site.is_ours() {
        return Err(Error::Forbidden("another site can't use this session").into());
    }
    let token = body.refresh_token.or(from_cookie);
    let token = token.ok_or_else(|| Error::invalid("refresh_token", "must be given, here or as a cookie"))?;
    let tokens = api.app.refresh(&origin.into(), &token).await?;
    let (refresh_token, cookie) = deliver_refresh_token(&api, &tokens, as_cookie);
    let expires_in = tokens.expires_in.as_secs();
    let body = TokensView { token: tokens.access.expose().to_owned(), refresh_token, expires_in };
    Ok((cookie, Json(body)).into_response())
}

/// End the current session.
///
/// Its token stops working at once, on every process.
#[utoipa::path(post, path = "/api/v1/auth/logout", tag = "Accounts",
    operation_id = "logOut",
    responses((status = 204, description = "The session is over")))]
pub async fn logout(
    State(api): State<Api>,
    origin: RequestOrigin,
    caller: CurrentCaller,
) -> Result<Response, Problem> {
    api.app.logout(&origin.into(), &caller.0).await?;
    let gone = set_cookie(&api, "", 0);
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}

fn signed_in_response(api: &Api, signed_in: SignedIn, as_cookie: bool) -> Response {
    let SignedIn { user, tokens } = signed_in;
    let (refresh_token, cookie) = deliver_refresh_token(api, &tokens, as_cookie);
    let (token, expires_in) = (tokens.access.expose().to_owned(), tokens.expires_in.as_secs());
    let body = SignedInView { user: user.into(), token, refresh_token, expires_in };
    (cookie, Json(body)).into_response()
}

/// The refresh token goes into the body or into a cookie, never both.
fn deliver_refresh_token(api: &Api, tokens: &SessionTokens, as_cookie: bool) -> (Option<String>, HeaderMap) {
    if !as_cookie {
        return (Some(tokens.refresh.expose().to_owned()), HeaderMap::new());
    }
    let seconds = api.app.config().auth.refresh_ttl.duration().as_secs();
    (None, set_cookie(api, tokens.refresh.expose(), seconds))
}

/// Scripts can't read it, other sites can't send it, and only these routes get it.
fn set_cookie(api: &Api, value: &str, seconds: u64) -> HeaderMap {
    let prefix = web::prefix(api.app.config().oauth.issuer.as_ref());
    let text = format!(
        "{COOKIE}={value}; Path={prefix}/api/v1/auth; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict"
    );
    let mut headers = HeaderMap::new();
    if let Ok(mut text) = HeaderValue::from_str(&text) {
        text.set_sensitive(true);
        headers.insert(header::SET_COOKIE, text);
    }
    headers
}
