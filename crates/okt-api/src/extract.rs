//! What handlers ask for in their signatures beside the path, the query and the body: the proof that the caller may do it,
//! who that is, and where the request came from.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};
use okt_app::Origin;
use okt_auth::{Caller, Credential, Needed, Proof, RepoScope, SystemScope};
use okt_config::Mode;
use okt_http::{ClientAddress, Code, Principal, Problem, ServerAddress, current_request_id};
use okt_model::Error;
use okt_store::repositories::Located;
use url::Url;

use crate::Api;

/// The proof that the gate let the caller in to the whole installation for `P`. The line of the table has to ask for `P`
/// too; where it does not, nobody gets this far.
pub struct System<P>(pub(crate) SystemScope<P>);

/// As [`System`], to the repository of the path.
pub struct Repository<P>(pub(crate) RepoScope<P>);

/// Whoever passed the gate.
pub struct CurrentCaller(pub(crate) Caller);

/// Where a request came from.
pub struct RequestOrigin {
    pub(crate) address: ClientAddress,
    /// From this machine, to this machine by name, with nothing in between.
    pub(crate) local: bool,
    origin: Origin,
}

/// The base address of the service, without a slash at its end. It stands in tokens and documents, so it is never taken
/// from what a stranger writes into a header: it is `oauth.issuer`, or in development the address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issuer(pub(crate) String);

/// What a browser says of the page that made it send something with our cookie.
pub(crate) struct Site(bool);

/// Where people find this service; empty where nobody has said so, and an address begins at its path.
pub(crate) struct Address(pub(crate) String);

impl<P: Needed, S: Send + Sync> FromRequestParts<S> for System<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(proof(parts)?.into_system()?))
    }
}

impl<P: Needed, S: Send + Sync> FromRequestParts<S> for Repository<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let located = parts.extensions.get::<Located>().cloned();
        let located = located.ok_or_else(|| Error::internal("the route is not one of a repository"))?;
        Ok(Self(proof(parts)?.into_repository(located)?))
    }
}

/// What the gate left.
fn proof(parts: &Parts) -> Result<Proof, Error> {
    let proof = parts.extensions.get::<Proof>().cloned();
    proof
        .ok_or_else(|| Error::internal("the guard of the route asks for no permission, and its handler does"))
}

impl<S: Send + Sync> FromRequestParts<S> for CurrentCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        Ok(Self(caller.ok_or_else(|| Error::internal("a route that asks for a caller has an open guard"))?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestOrigin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let address = parts.extensions.get::<ClientAddress>().copied();
        let address = address.ok_or_else(|| Error::internal("a request without an address"))?;
        let local = okt_http::is_local(parts);
        Ok(Self { address, local, origin: origin(parts) })
    }
}

impl From<RequestOrigin> for Origin {
    fn from(request: RequestOrigin) -> Self {
        request.origin
    }
}

impl Issuer {
    /// `None` where OAuth is off.
    pub(crate) fn of(api: &Api, parts: &Parts) -> Option<Self> {
        let config = api.app.config();
        match &config.oauth.issuer {
            Some(url) => Some(Self(url.as_str().trim_end_matches('/').to_owned())),
            None if config.mode == Mode::Development => Some(Self::of_this_machine(parts)),
            None => None,
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }

    pub(crate) fn origin(&self) -> String {
        Url::parse(&self.0).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
    }

    /// Which of its names for itself the client used; of any other name nothing is believed.
    fn of_this_machine(parts: &Parts) -> Self {
        let port = parts.extensions.get::<ServerAddress>().map_or(0, |server| server.0.port());
        let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host =
            host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
        let known = ["127.0.0.1", "localhost", "[::1]"];
        let host = known.into_iter().find(|name| host == format!("{name}:{port}")).unwrap_or("127.0.0.1");
        Self(format!("http://{host}:{port}"))
    }
}

impl FromRequestParts<Api> for Issuer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        Self::of(api, parts).ok_or_else(|| {
            Problem::new(Code::NotConfigured, "OAuth is off on this installation: oauth.issuer is not set")
        })
    }
}

impl FromRequestParts<Api> for Address {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        Ok(Self(Issuer::of(api, parts).map_or_else(String::new, |issuer| issuer.0)))
    }
}

impl Site {
    /// Whether it was a page of ours, or no browser at all.
    pub(crate) const fn is_ours(&self) -> bool {
        self.0
    }
}

impl FromRequestParts<Api> for Site {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let text = |name: HeaderName| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        // Where a browser says which site a request came from, that counts. Our pages tell nobody where they are, which
        // makes some browsers call our own origin null.
        let ours = match (text(HeaderName::from_static("sec-fetch-site")), text(header::ORIGIN)) {
            (Some(site), _) => site == "same-origin",
            (None, Some(origin)) => match Issuer::of(api, parts) {
                Some(issuer) => origin == issuer.origin(),
                None => origin.split_once("://").map(|(_, host)| host) == text(header::HOST),
            },
            (None, None) => true,
        };
        Ok(Self(ours))
    }
}

pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
}

/// The one bearer text of a request. A second header is a riddle about which one counts, and is refused.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err(Problem::new(Code::Malformed, "there is more than one Authorization header"));
    }
    let text = first.and_then(|value| value.to_str().ok());
    Ok(text
        .and_then(|text| text.split_once(' '))
        .and_then(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())))
}

/// Where a request came from.
pub(crate) fn origin(parts: &Parts) -> Origin {
    let address = parts.extensions.get::<ClientAddress>().map(|address| address.0);
    let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.map(|text| text.chars().take(200).collect());
    Origin { request_id: current_request_id(), address, agent, via: None }
}

/// Who a request is counted against.
pub(crate) fn principal(caller: &Caller) -> Principal {
    let person: Arc<str> = format!("user:{}", caller.user()).into();
    let credential = match caller.credential() {
        Credential::Session(_) => Arc::clone(&person),
        Credential::ApiKey(id) => format!("key:{id}").into(),
        Credential::Grant(id) => format!("grant:{id}").into(),
    };
    Principal { person, credential }
}
