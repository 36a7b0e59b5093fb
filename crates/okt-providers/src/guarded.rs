//! The guarded client: check the address, connect to what was checked and to nothing else, read up to a limit.
//!
//! reqwest is told the addresses to connect to. Left to itself it asks no resolver about IP literals, follows
//! redirects without a check, and looks a name up after whoever checked it did.

mod address;
mod error;
mod gzip;
mod response;
#[cfg(test)]
mod tests;

use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use address::Guard;
pub use error::{FetchError, Rule, Wait};
pub use response::Response;

/// Redirects that are followed, for a request that asks for it.
const MAX_REDIRECTS: usize = 5;
const MAX_BYTES: u64 = 50 * 1024 * 1024;
const AGENT: &str = concat!("okt/", env!("CARGO_PKG_VERSION"));

/// Makes requests to the outside. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: Guard,
    look_up: Arc<LookUp>,
    tls: rustls::ClientConfig,
}

type LookUp = dyn Fn(String) -> LookingUp + Send + Sync;
type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A GET, and what its caller is willing to wait for and to take.
pub struct Request {
    url: String,
    headers: HeaderMap,
    https_only: bool,
    follow: bool,
    max_bytes: u64,
    timeouts: Timeouts,
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To look the name up, and again to connect.
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
            https_only: false,
            follow: false,
            max_bytes: MAX_BYTES,
            timeouts: Timeouts::default(),
        }
    }

    /// Sent to the origin of the address; a redirect to another origin leaves it behind.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
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

    /// A client that is told by `look_up` what a name means, instead of by the system. It believes it no more.
    pub fn with_look_up<F, L>(allow_private: &[SocketAddr], look_up: F) -> Result<Self, FetchError>
    where
        F: Fn(String) -> L + Send + Sync + 'static,
        L: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Ok(Self {
            guard: Guard::new(allow_private),
            look_up: Arc::new(move |host| Box::pin(look_up(host))),
            tls: tls().map_err(|error| FetchError::NoAuthorities(error.into()))?,
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
        let Request { url, mut headers, https_only, follow, max_bytes, timeouts } = request;
        let mut url = Url::parse(&url).map_err(|_| FetchError::malformed())?;
        for _ in 0..=MAX_REDIRECTS {
            let checked = self.check(&url, https_only, timeouts.connect).await?;
            let answer = self.get(&url, checked, headers.clone(), timeouts.connect).await?;
            let next = if follow { redirect(&url, &answer)? } else { None };
            let Some(next) = next else {
                return Response::new(answer, url, max_bytes, timeouts, deadline);
            };
            if next.origin() != url.origin() {
                headers.clear();
            }
            url = next;
        }
        Err(FetchError::TooManyRedirects { place: address::place(&url), limit: MAX_REDIRECTS })
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
        let addresses = match host {
            Host::Ipv4(ip) => vec![ip.into()],
            Host::Ipv6(ip) => vec![ip.into()],
            Host::Domain(name) => timeout(limit, (self.look_up)(name.to_owned()))
                .await
                .map_err(|_| FetchError::TimedOut { wait: Wait::Connect, limit })?
                .and_then(
                    |found| if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) },
                )
                .map_err(|error| FetchError::Unresolvable {
                    place: address::place(url),
                    cause: error.into(),
                })?,
        };
        let addresses: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        addresses.iter().try_for_each(|address| self.guard.check_address(*address)).map_err(refused)?;
        Ok(addresses)
    }

    /// One request over a connection of its own to one of the `checked` addresses. A pool would have to know which
    /// check each of its connections passed; this way there is nothing to know.
    #[expect(clippy::disallowed_methods, reason = "this is the guarded client")]
    async fn get(
        &self,
        url: &Url,
        checked: Vec<SocketAddr>,
        mut headers: HeaderMap,
        connect: Duration,
    ) -> Result<reqwest::Response, FetchError> {
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(Pinned(checked))
            .no_proxy()
            // Whatever features another crate turns on: what reqwest unpacks is not counted.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(connect)
            .pool_max_idle_per_host(0)
            .build();
        let sent = match client {
            Ok(client) => client.get(url.clone()).headers(headers).send().await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| FetchError::of_sending(error, url, connect))
    }
}

/// Where the answer sends us, if it does.
fn redirect(from: &Url, answer: &reqwest::Response) -> Result<Option<Url>, FetchError> {
    let redirects = matches!(
        answer.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = answer.headers().get(LOCATION).filter(|_| redirects) else { return Ok(None) };
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
