//! The guarded client: check the address, connect to what was checked and to nothing else, read up to a limit.
//!
//! reqwest is told the addresses to connect to. Left to itself it asks no resolver about IP literals, follows
//! redirects without a check, and looks a name up after whoever checked it did.

mod address;
#[cfg(feature = "impersonate")]
mod browser;
#[cfg(not(feature = "impersonate"))]
#[path = "guarded/no_browser.rs"]
mod browser;
mod error;
mod gzip;
mod response;
mod service;
#[cfg(test)]
#[cfg(feature = "impersonate")]
mod tests;

use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use okt_config::Providers;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use address::Guard;
use browser::Authorities;
pub use browser::Profile;
pub use error::{FetchError, Rule, Wait};
pub use response::Response;
pub use service::Service;

/// Redirects that are followed, for a request that asks for it.
pub(crate) const MAX_REDIRECTS: usize = 5;
const MAX_BYTES: u64 = 50 * 1024 * 1024;
const AGENT: &str = concat!("okt/", env!("CARGO_PKG_VERSION"));

/// Makes requests to the outside. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: Guard,
    look_up: Arc<LookUp>,
    tls: rustls::ClientConfig,
    /// For services only, see `service.rs`.
    kept: reqwest::Client,
    /// For requests that look like a browser's, which have TLS of their own.
    authorities: Authorities,
}

type LookUp = dyn Fn(String) -> LookingUp + Send + Sync;
type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// What is asked, and what its caller is willing to wait for and to take.
pub struct Request {
    url: String,
    headers: HeaderMap,
    /// Unless it is named, a request that has a body is a POST, and any other is a GET.
    method: Option<Method>,
    /// JSON unless a header says otherwise.
    body: Option<Body>,
    profile: Option<Profile>,
    https_only: bool,
    follow: bool,
    max_bytes: u64,
    timeouts: Timeouts,
}

/// The pieces of a body, one after the other.
pub type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

#[derive(Clone)]
enum Body {
    Whole(Bytes),
    /// One that is not held in memory, read anew each time that it is sent.
    Pieces(Arc<dyn Fn() -> Pieces + Send + Sync>),
}

impl From<Body> for reqwest::Body {
    fn from(body: Body) -> Self {
        match body {
            Body::Whole(bytes) => bytes.into(),
            Body::Pieces(read) => Self::wrap_stream(read()),
        }
    }
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To look the name up, and again to connect. A [`Service`] has a limit of its own for both.
    pub connect: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// For everything: look-ups, redirects, and reading the body.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), idle: Duration::from_secs(10), total: Duration::from_mins(1) }
    }
}

impl Request {
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: HeaderMap::new(),
            method: None,
            body: None,
            profile: None,
            https_only: false,
            follow: false,
            max_bytes: MAX_BYTES,
            timeouts: Timeouts::default(),
        }
    }

    /// Sends `body` along. Nothing that was posted is posted again elsewhere: a redirect is an answer like any other.
    pub fn post_json(url: impl Into<String>, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::post(url, serde_json::to_vec(body)?.into()))
    }

    /// Sends JSON that is written already, since it may be sent more than once.
    pub(crate) fn post(url: impl Into<String>, json: Bytes) -> Self {
        Self { body: Some(Body::Whole(json)), ..Self::get(url) }
    }

    /// Sends a body of another type along, such as a form with a file.
    pub fn post_as(url: impl Into<String>, content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        Self { body: Some(Body::Whole(body.into())), ..Self::get(url) }.header(CONTENT_TYPE, content_type)
    }

    /// Sends a body along that may be larger than memory.
    pub fn post_pieces(
        url: impl Into<String>,
        content_type: HeaderValue,
        read: impl Fn() -> Pieces + Send + Sync + 'static,
    ) -> Self {
        Self { body: Some(Body::Pieces(Arc::new(read))), ..Self::get(url) }.header(CONTENT_TYPE, content_type)
    }

    /// Sent to the origin of the address; a redirect to another origin leaves it behind.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// For what is neither a GET nor a POST.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Sends this along.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(Body::Whole(body.into()));
        self
    }

    fn is_get(&self) -> bool {
        self.method.as_ref().map_or(self.body.is_none(), |method| *method == Method::GET)
    }

    /// Makes a GET look like that of a browser, down to its TLS. All that is checked and limited is so here, too.
    #[must_use]
    pub const fn like(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Refuses plain http, also where a redirect leads to it.
    #[must_use]
    pub const fn https_only(mut self) -> Self {
        self.https_only = true;
        self
    }

    /// Follows up to 5 redirects; without it, a redirect is an answer like any other.
    #[must_use]
    pub const fn follow_redirects(mut self) -> Self {
        self.follow = true;
        self
    }

    /// The largest body to take, unpacked; 50 MiB unless told.
    #[must_use]
    pub const fn max_bytes(mut self, limit: u64) -> Self {
        self.max_bytes = limit;
        self
    }

    #[must_use]
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

impl GuardedClient {
    /// `allow_private`: addresses, each with its port, that may be fetched although they are not public.
    pub fn new(allow_private: &[SocketAddr]) -> Result<Self, FetchError> {
        Self::with_look_up(allow_private, |host| async move {
            Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect())
        })
    }

    /// The client of an installation. One that is offline reaches nobody but this machine, and asks no server of names.
    pub fn of(providers: &Providers) -> Result<Self, FetchError> {
        let allow_private = &providers.resolution.fetch.allow_private;
        if !providers.offline {
            return Self::new(allow_private);
        }
        let this_machine = |host: String| {
            let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            ready(if address::is_localhost(&host) {
                Ok(own.to_vec())
            } else {
                Err(io::ErrorKind::Unsupported.into())
            })
        };
        let mut client = Self::with_look_up(allow_private, this_machine)?;
        client.guard.offline = true;
        Ok(client)
    }

    /// A client that is told by `look_up` what a name means, instead of by the system. It believes it no more.
    pub fn with_look_up<F, L>(allow_private: &[SocketAddr], look_up: F) -> Result<Self, FetchError>
    where
        F: Fn(String) -> L + Send + Sync + 'static,
        L: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        let look_up: Arc<LookUp> = Arc::new(move |host| Box::pin(look_up(host)));
        let tls = tls().map_err(|error| FetchError::NoAuthorities(error.into()))?;
        let kept = service::kept(&tls, Arc::clone(&look_up));
        Ok(Self {
            guard: Guard::new(allow_private),
            look_up,
            kept: kept.map_err(|error| FetchError::NoAuthorities(error.into()))?,
            tls,
            authorities: Authorities::default(),
        })
    }

    /// Sends it and waits for the head of the answer; the body is read from the [`Response`].
    pub async fn send(&self, request: Request) -> Result<Response, FetchError> {
        let total = request.timeouts.total;
        let deadline = Instant::now() + total;
        timeout_at(deadline, self.follow(request, deadline))
            .await
            .unwrap_or(Err(FetchError::TimedOut { wait: Wait::Total, limit: total }))
    }

    async fn follow(&self, request: Request, deadline: Instant) -> Result<Response, FetchError> {
        let mut request = request;
        let mut url = Url::parse(&request.url).map_err(|_| FetchError::malformed())?;
        for _ in 0..=MAX_REDIRECTS {
            let checked = self.check(&url, request.https_only, request.timeouts.connect).await?;
            let answer = self.exchange(&url, checked, &request, deadline).await?;
            let follows = request.follow && request.is_get();
            let Some(next) = (if follows { answer.redirect()? } else { None }) else { return Ok(answer) };
            if next.origin() != url.origin() {
                request.headers.clear();
            }
            url = next;
        }
        Err(FetchError::too_many_redirects(&url))
    }

    /// Whether it would be fetched: the address and all that its name leads to right now.
    pub async fn may_fetch(&self, url: &Url) -> Result<(), FetchError> {
        self.check(url, false, Timeouts::default().connect).await.map(|_| ())
    }

    /// As [`Self::may_fetch`], for what is to be posted there; to plain http only if that is allowed.
    pub async fn may_post(&self, url: &Url, https_only: bool) -> Result<(), FetchError> {
        self.check(url, https_only, Timeouts::default().connect).await.map(|_| ())
    }

    /// Whether it is of a network that is not everybody's: by its name, or by what that leads to right now. What leads nowhere is not.
    pub async fn is_private(&self, url: &Url) -> bool {
        let Some((host, port)) = url.host().zip(url.port_or_known_default()) else { return true };
        if address::is_private_name(&host) {
            return true;
        }
        let found = self.addresses(url, host, port, Timeouts::default().connect).await;
        found.is_ok_and(|found| found.iter().any(|address| !address::is_public(address.ip())))
    }

    /// The addresses that this hop may connect to: those of one look-up, and only if every one of them is allowed.
    async fn check(
        &self,
        url: &Url,
        https_only: bool,
        limit: Duration,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let refused = |rule| FetchError::Refused { place: address::place(url), rule };
        let (host, port) = self.guard.check_url(url, https_only).map_err(refused)?;
        let addresses = self.addresses(url, host, port, limit).await?;
        addresses.iter().try_for_each(|address| self.guard.check_address(*address)).map_err(refused)?;
        Ok(addresses)
    }

    /// What one look-up says; nothing of it is checked.
    async fn addresses(
        &self,
        url: &Url,
        host: Host<&str>,
        port: u16,
        limit: Duration,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let addresses = match host {
            Host::Ipv4(ip) => vec![ip.into()],
            Host::Ipv6(ip) => vec![ip.into()],
            Host::Domain(name) => timeout(limit, (self.look_up)(name.to_owned()))
                .await
                .map_err(|_| FetchError::TimedOut { wait: Wait::Connect, limit })?
                .and_then(not_nothing)
                .map_err(|error| FetchError::Unresolvable {
                    place: address::place(url),
                    cause: error.into(),
                })?,
        };
        Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// One request over a connection of its own to one of the `checked` addresses. A pool would have to know which
    /// check each of its connections passed; this way there is nothing to know.
    async fn exchange(
        &self,
        url: &Url,
        checked: Vec<SocketAddr>,
        request: &Request,
        deadline: Instant,
    ) -> Result<Response, FetchError> {
        let mut headers = request.headers.clone();
        let connect = request.timeouts.connect;
        if let Some(profile) = request.profile.filter(|_| request.is_get()) {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            let answer = browser::get(&self.authorities, profile, url, checked, headers, connect).await?;
            return Ok(Response::new(answer, url.clone(), request, deadline));
        }
        announce(&mut headers, request);
        let answer = self
            .send_to(url, checked, headers, request, connect)
            .await
            .map_err(|error| FetchError::of_sending(error, url, connect))?;
        Ok(Response::new(answer.into(), url.clone(), request, deadline))
    }

    async fn send_to(
        &self,
        url: &Url,
        checked: Vec<SocketAddr>,
        headers: HeaderMap,
        request: &Request,
        connect: Duration,
    ) -> reqwest::Result<reqwest::Response> {
        let client =
            builder(&self.tls, connect).dns_resolver(Pinned(checked)).pool_max_idle_per_host(0).build()?;
        ask(&client, url, headers, request).await
    }
}

/// A client that does nothing by itself.
#[expect(clippy::disallowed_methods, reason = "this is the guarded client")]
fn builder(tls: &rustls::ClientConfig, connect: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .no_proxy()
        // Whatever features another crate turns on: what reqwest unpacks is not counted.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(connect)
}

/// What the request says of itself and of us.
fn announce(headers: &mut HeaderMap, request: &Request) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if request.body.is_some() {
        let json = HeaderValue::from_static("application/json");
        headers.entry(CONTENT_TYPE).or_insert(json);
    }
}

async fn ask(
    client: &reqwest::Client,
    url: &Url,
    headers: HeaderMap,
    request: &Request,
) -> reqwest::Result<reqwest::Response> {
    let usual = if request.body.is_some() { Method::POST } else { Method::GET };
    let method = request.method.clone().unwrap_or(usual);
    let sent = client.request(method, url.clone()).headers(headers);
    request.body.clone().into_iter().fold(sent, reqwest::RequestBuilder::body).send().await
}

/// A name that leads nowhere is as good as none.
fn not_nothing(found: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
    if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
}

/// Where an answer from `from` sends us, if it does.
fn redirect(from: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, FetchError> {
    let redirects = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = headers.get(LOCATION).filter(|_| redirects) else { return Ok(None) };
    let location = str::from_utf8(location.as_bytes()).ok().and_then(|location| from.join(location).ok());
    location.map(Some).ok_or_else(FetchError::malformed)
}

/// Answers every look-up with the addresses that were checked, so that there is no second opinion.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(ready(Ok(addresses)))
    }
}

/// Certificates are held against the system's authorities, read once.
fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth())
}
