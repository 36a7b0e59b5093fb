//! The pages on which a person signs in and decides what a client may do.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use okt_app::oauth::{Answer, Asking, Choice, PATIENCE, Param, Params, Question, Unanswerable};
use okt_auth::oauth::{FormToken, Step};
use okt_config::Secret;
use okt_http::{Code, Form, Problem};
use okt_model::{AuthorizationId, Error, RepositoryId};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::page::{self, Again};
use crate::Api;
use crate::extract::{self, Issuer, RequestOrigin, Site};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "for the documentation; a query is read by rules of its own")]
pub struct AuthorizationRequest {
    /// `code`.
    response_type: Option<String>,
    /// Who asks: a registered client, or the address of a document about it.
    client_id: Option<String>,
    /// Where the person is sent back to; one that the client registered.
    redirect_uri: Option<String>,
    /// Permission pairs such as `fact:read`, `read` for reading everything, `mcp`.
    scope: Option<String>,
    /// Comes back as it was sent.
    state: Option<String>,
    /// SHA-256 of the verifier (RFC 7636).
    code_challenge: Option<String>,
    /// `S256`.
    code_challenge_method: Option<String>,
    /// What the token is for (RFC 8707).
    resource: Option<String>,
}

/// What the page sends; only a browser does.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "for the documentation; a form is read by rules of its own")]
pub struct SignInForm {
    #[schema(example = "0195509d-4a40-7e22-b1d4-5a6b7c8d9e0f")]
    flow: String,
    #[schema(example = "okt_form_3nB…")]
    token: String,
    #[schema(example = "ada@example.org")]
    email: String,
    #[schema(format = Password)]
    password: String,
}

/// What the page sends; only a browser does.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "for the documentation; a form is read by rules of its own")]
pub struct DecisionForm {
    #[schema(example = "0195509d-4a40-7e22-b1d4-5a6b7c8d9e0f")]
    flow: String,
    #[schema(example = "okt_form_3nB…")]
    token: String,
    /// `allow` or `deny`.
    #[schema(example = "allow")]
    decision: String,
    /// `all`, or `some` with those under `repository`.
    repositories: Option<String>,
    repository: Option<Vec<String>>,
}

/// Ask a person for an authorization.
///
/// Where clients send people: a page to sign in on, then one to decide on.
#[utoipa::path(get, path = "/api/v1/oauth/authorize", tag = "OAuth",
    operation_id = "showAuthorization", params(AuthorizationRequest),
    responses((status = 200, body = String, content_type = "text/html", description = "A page"),
              (status = 303, description = "Back to the client, with an error"),
              (status = 400, body = String, content_type = "text/html", description = "A page that says what is wrong")))]
pub(crate) async fn show(State(api): State<Api>, issuer: Issuer, request: Asked) -> Response {
    let Asked { params, browser } = request;
    match (params.get("client_id"), params.get("flow")) {
        (Param::Absent, Param::Once(flow)) => {
            let question = match flow.parse() {
                Ok(id) => api.app.asked_before(id, browser.as_deref()).await,
                Err(_) => Err(no_question()),
            };
            let as_another = matches!(params.get("as"), Param::Once("another"));
            match (question, browser) {
                (Ok(question), Some(browser)) => shown(&issuer, &question, &browser, as_another),
                (Ok(_), None) => unanswerable(&issuer, no_question()),
                (Err(why), _) => unanswerable(&issuer, why),
            }
        }
        _ => match api.app.ask(&issuer.0, &params, browser.as_deref()).await {
            Ok(Asking::Ask(question, secret)) => {
                let known = secret.as_ref().map(|secret| secret.expose().to_owned()).or(browser);
                let page = shown(&issuer, &question, &known.unwrap_or_default(), false);
                with_cookie(page, &issuer, secret)
            }
            Ok(Asking::Tell(address)) => see_other(&address),
            Ok(Asking::Offer { address, text }) => page::offer(&issuer.0, &text, &address),
            Err(why) => unanswerable(&issuer, why),
        },
    }
}

/// Sign in to decide.
#[utoipa::path(post, path = "/api/v1/oauth/authorize/login", tag = "OAuth",
    operation_id = "signInToAuthorize",
    request_body(content = SignInForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "On to the decision"),
              (status = 400, body = String, content_type = "text/html", description = "A page that says what is wrong"),
              (status = 401, body = String, content_type = "text/html", description = "The page once more"),
              (status = 403, body = String, content_type = "text/html", description = "The form is not ours")))]
pub(crate) async fn sign_in(
    State(api): State<Api>,
    issuer: Issuer,
    origin: RequestOrigin,
    posted: Posted,
    Form(form): Form,
) -> Response {
    let params = Params(form);
    let (id, browser) = match checked(&params, posted, Step::SignIn) {
        Ok(checked) => checked,
        Err(Foreign) => return page::wrong(&issuer.0, Foreign::TEXT, StatusCode::FORBIDDEN),
    };
    let text = |name| params.all(name).next().unwrap_or_default().to_owned();
    let (email, password) = (text("email"), text("password"));
    let address = origin.address;
    let limited = api.sign_in.login(&api, address, &email);
    let signed_in = match limited {
        Ok(()) => api.app.sign_in_to_answer(&origin.into(), id, Some(&browser), &email, &password).await,
        Err(limited) => return again(&api, &issuer, (id, &browser), &email, limited).await,
    };
    match signed_in {
        Ok(secret) => {
            api.sign_in.remember(address, &email);
            let next = format!("{}/api/v1/oauth/authorize?flow={id}", issuer.0);
            with_cookie(see_other(&next), &issuer, Some(secret))
        }
        Err(Unanswerable::Failed(error @ (Error::Unauthenticated(_) | Error::Overloaded(_)))) => {
            again(&api, &issuer, (id, &browser), &email, error.into()).await
        }
        Err(why) => unanswerable(&issuer, why),
    }
}

/// Decide.
#[utoipa::path(post, path = "/api/v1/oauth/authorize", tag = "OAuth",
    operation_id = "decideAuthorization",
    request_body(content = DecisionForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "Back to the client, with a code or an error"),
              (status = 400, body = String, content_type = "text/html", description = "A page that says what is wrong"),
              (status = 403, body = String, content_type = "text/html", description = "The form is not ours")))]
pub(crate) async fn decide(
    State(api): State<Api>,
    issuer: Issuer,
    origin: RequestOrigin,
    posted: Posted,
    Form(form): Form,
) -> Response {
    let params = Params(form);
    let (id, browser) = match checked(&params, posted, Step::Decide) {
        Ok(checked) => checked,
        Err(Foreign) => return page::wrong(&issuer.0, Foreign::TEXT, StatusCode::FORBIDDEN),
    };
    let choice = match choice(&params) {
        Ok(choice) => choice,
        Err(text) => return unanswerable(&issuer, Unanswerable::Because(text)),
    };
    match api.app.answer(&origin.into(), &issuer.0, id, Some(&browser), choice).await {
        Ok(Answer(address)) => see_other(&address),
        Err(why) => unanswerable(&issuer, why),
    }
}

/// What a client or our own page asks for.
pub(crate) struct Asked {
    params: Params,
    browser: Option<String>,
}

/// What a browser says of itself beside the form.
pub(crate) struct Posted {
    browser: Option<String>,
    site: Site,
}

/// A form that is not one of ours.
struct Foreign;

impl Foreign {
    const TEXT: &str =
        "This form did not come from a page of this service. Go back to the app and start again.";
}

/// Whether the form is one that we showed, in this browser, for this step.
fn checked(params: &Params, posted: Posted, step: Step) -> Result<(AuthorizationId, String), Foreign> {
    let (true, Some(browser)) = (posted.site.is_ours(), posted.browser) else { return Err(Foreign) };
    let (Param::Once(flow), Param::Once(token)) = (params.get("flow"), params.get("token")) else {
        return Err(Foreign);
    };
    let id = flow.parse().map_err(|_| Foreign)?;
    if FormToken::of(&browser, id, step).is(token) { Ok((id, browser)) } else { Err(Foreign) }
}

fn choice(params: &Params) -> Result<Choice, String> {
    match (params.get("decision"), params.get("repositories")) {
        (Param::Once("deny"), _) => Ok(Choice::Deny),
        (Param::Once("allow"), Param::Once("all")) => Ok(Choice::Allow(None)),
        (Param::Once("allow"), Param::Once("some")) => {
            let chosen: Result<Vec<RepositoryId>, _> = params.all("repository").map(str::parse).collect();
            match chosen {
                Ok(chosen) if !chosen.is_empty() && chosen.len() <= 1000 => Ok(Choice::Allow(Some(chosen))),
                Ok(_) => {
                    Err("Choose at least one repository, or all of them. Go back and try again.".to_owned())
                }
                Err(_) => Err("What was chosen is no repository. Go back and try again.".to_owned()),
            }
        }
        _ => Err("The form does not say what you decided. Go back and try again.".to_owned()),
    }
}

fn shown(issuer: &Issuer, question: &Question, browser: &str, as_another: bool) -> Response {
    let step = if question.person.is_some() && !as_another { Step::Decide } else { Step::SignIn };
    let token = FormToken::of(browser, question.id, step);
    match step {
        Step::SignIn => page::sign_in(&issuer.0, question, token.as_str(), None),
        Step::Decide => page::decide(&issuer.0, question, token.as_str()),
    }
}

/// The page to sign in on once more, with what is wrong.
async fn again(
    api: &Api,
    issuer: &Issuer,
    (id, browser): (AuthorizationId, &str),
    email: &str,
    problem: Problem,
) -> Response {
    let wrong = match problem.code() {
        Code::Unauthenticated => "The e-mail address or the password is wrong.",
        Code::RateLimited => "There were too many tries. Wait a little and try again.",
        _ => "This service is too busy right now. Try again in a moment.",
    };
    let again = Again { email, wrong, status: problem.code().status() };
    match api.app.asked_before(id, Some(browser)).await {
        Ok(question) => {
            let token = FormToken::of(browser, question.id, Step::SignIn);
            let page = page::sign_in(&issuer.0, &question, token.as_str(), Some(&again));
            with_wait(page, problem.into_response().headers())
        }
        Err(why) => unanswerable(issuer, why),
    }
}

/// A person reads it, so it is a page whatever happened.
fn unanswerable(issuer: &Issuer, why: Unanswerable) -> Response {
    match why {
        Unanswerable::Because(text) => page::wrong(&issuer.0, &text, StatusCode::BAD_REQUEST),
        Unanswerable::Failed(error) => {
            let problem = Problem::from(error).into_response();
            let text = "Something is wrong on our side. Try again in a moment.";
            with_wait(page::wrong(&issuer.0, text, problem.status()), problem.headers())
        }
    }
}

fn with_wait(mut page: Response, headers: &HeaderMap) -> Response {
    if let Some(wait) = headers.get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, wait.clone());
    }
    page
}

fn no_question() -> Unanswerable {
    Unanswerable::Because(
        "There is no question open in this browser. Go back to the app and start again.".to_owned(),
    )
}

/// Never 307: that would send the form, with the password in it, to whoever is there.
fn see_other(address: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// Browsers keep `__Host-` cookies to themselves: no other host and no plain http can set or read them.
const fn cookie_name(issuer_is_https: bool) -> &'static str {
    if issuer_is_https { "__Host-okt_as" } else { "okt_as" }
}

fn with_cookie(mut response: Response, issuer: &Issuer, secret: Option<Secret>) -> Response {
    let Some(secret) = secret else { return response };
    let https = issuer.is_https();
    let text = format!(
        "{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{}",
        cookie_name(https),
        secret.expose(),
        PATIENCE.as_secs(),
        if https { "; Secure" } else { "" }
    );
    if let Ok(mut text) = HeaderValue::from_str(&text) {
        text.set_sensitive(true);
        response.headers_mut().insert(header::SET_COOKIE, text);
    }
    response
}

fn cookie(api: &Api, parts: &Parts) -> Option<String> {
    let https = Issuer::of(api, parts).is_some_and(|issuer| issuer.is_https());
    extract::cookie(&parts.headers, cookie_name(https))
}

impl axum::extract::FromRequestParts<Api> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let params = Params(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect());
        Ok(Self { params, browser: cookie(api, parts) })
    }
}

impl axum::extract::FromRequestParts<Api> for Posted {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        Ok(Self { browser: cookie(api, parts), site: Site::from_request_parts(parts, api).await? })
    }
}
