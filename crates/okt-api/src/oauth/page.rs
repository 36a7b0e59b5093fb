//! Pages for people: plain HTML that needs no script, with a policy that lets nothing else in.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue, StatusCode, header};
use minijinja::{Environment, Value, context};
use okt_app::oauth::Question;
use okt_auth::oauth::is_loopback;
use okt_http::Problem;
use okt_model::Error;
use sha2::{Digest, Sha256};
use url::Url;

const STYLE: &str = include_str!("../../templates/oauth/style.css");

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    for (name, source) in [
        ("frame.html", include_str!("../../templates/oauth/frame.html")),
        ("sign_in.html", include_str!("../../templates/oauth/sign_in.html")),
        ("decide.html", include_str!("../../templates/oauth/decide.html")),
        ("wrong.html", include_str!("../../templates/oauth/wrong.html")),
        ("offer.html", include_str!("../../templates/oauth/offer.html")),
        ("invite.html", include_str!("../../templates/oauth/invite.html")),
    ] {
        environment.add_template(name, source).expect("our templates are well-formed");
    }
    environment
});

/// What was wrong with a try to sign in.
pub(super) struct Again<'a> {
    pub(super) email: &'a str,
    pub(super) wrong: &'a str,
    pub(super) status: StatusCode,
}

/// Where a person signs in.
pub(super) fn sign_in(issuer: &str, question: &Question, token: &str, again: Option<&Again<'_>>) -> Response {
    let email = match (again, &question.person) {
        (Some(again), _) => Some(again.email),
        (None, Some(person)) => Some(person.user.email.as_str()),
        (None, None) => None,
    };
    let (wrong, status) = again.map_or((None, StatusCode::OK), |again| (Some(again.wrong), again.status));
    let about = context! { ..about(issuer, question, token), ..context! { wrong, email } };
    rendered("sign_in.html", &about, status, None)
}

/// Where they decide.
pub(super) fn decide(issuer: &str, question: &Question, token: &str) -> Response {
    let Some(person) = &question.person else {
        return Problem::from(Error::internal("the consent page has no signed-in user")).into_response();
    };
    let repositories: Vec<Value> = person
        .repositories
        .iter()
        .map(
            |one| context! { id => one.id.to_string(), name => one.name.as_str(), slug => one.slug.as_str() },
        )
        .collect();
    let about = context! {
        ..about(issuer, question, token),
        ..context! {
            account => person.user.email.as_str(),
            name => person.user.name.as_str(),
            allows => question.scope.in_plain_words(),
            repositories,
        }
    };
    rendered("decide.html", &about, StatusCode::OK, origin(&question.redirect_uri).as_deref())
}

/// Where they read that there is nothing to decide.
pub(super) fn wrong(issuer: &str, text: &str, status: StatusCode) -> Response {
    rendered("wrong.html", &context! { text, service => host(issuer) }, status, None)
}

/// Where they read the same and may go back to the app, at an address that nobody has vouched for.
pub(super) fn offer(issuer: &str, text: &str, address: &str) -> Response {
    let about = context! { text, address, host => host(address), service => host(issuer) };
    rendered("offer.html", &about, StatusCode::BAD_REQUEST, None)
}

/// What an invitation is, for whoever follows its link.
pub(crate) fn invitation(issuer: &str) -> Response {
    rendered("invite.html", &context! { service => host(issuer) }, StatusCode::OK, None)
}

fn about(issuer: &str, question: &Question, token: &str) -> Value {
    let client = &question.client;
    context! {
        flow => question.id.to_string(),
        token,
        client => client.name.as_str(),
        // Whoever controls that address has vouched for the client; for all others nobody has.
        vouched => client.id.starts_with("https://").then(|| host(&client.id)),
        redirect => host(&question.redirect_uri),
        local => is_loopback(&question.redirect_uri),
        service => host(issuer),
        // Behind a proxy that serves us under a path, our own addresses begin with it.
        base => Url::parse(issuer).map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned()),
    }
}

/// `answer_to` is where the form may lead besides ourselves: browsers apply the policy to the redirect after it too.
fn rendered(template: &str, about: &Value, status: StatusCode, answer_to: Option<&str>) -> Response {
    let page = TEMPLATES.get_template(template).and_then(|template| {
        template.render(context! { style => Value::from_safe_string(STYLE.to_owned()), ..about.clone() })
    });
    let page = match page {
        Ok(page) => page,
        Err(error) => return Problem::from(Error::internal(error)).into_response(),
    };
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let answer_to = answer_to.map(|origin| format!(" {origin}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'{answer_to}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let mut response = (status, Html(page)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => address.to_owned(),
    }
}

/// As a policy can name it: it knows no IPv6 addresses, so of those only the port counts.
fn origin(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    match url.host()? {
        url::Host::Ipv6(_) => Some(format!("{}://*:{}", url.scheme(), url.port_or_known_default()?)),
        _ => Some(url.origin().ascii_serialization()),
    }
}
