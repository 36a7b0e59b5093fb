//! Services that the operator named, in the configuration or on the command line.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::error::{FetchError, Rule, Unresolved, Wait};
use super::{GuardedClient, LookUp, Request, Response, address, announce, ask, builder, not_nothing};

/// To look the name up and to connect, together. One connection serves many requests, so it is none of theirs.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection is kept that nobody uses.
const KEPT: Duration = Duration::from_mins(1);

/// A client for one service. It may be on a private address and on any port, since no stranger wrote it down: that is
/// why it goes nowhere else. A request to another origin is refused and a redirect is only an answer, so neither the
/// service nor what it is asked about can lead anywhere. All limits hold here, too.
///
/// Connections are kept for the next request: nothing is checked about where they lead but the origin. Nobody looks
/// like a browser here.
#[derive(Clone)]
pub struct Service {
    kept: reqwest::Client,
    base: Url,
    offline: bool,
}

impl GuardedClient {
    /// `base` comes from the configuration or the command line, and from nowhere else.
    pub fn service(&self, base: &Url) -> Service {
        Service { kept: self.kept.clone(), base: base.clone(), offline: self.guard.offline }
    }
}

/// What makes the requests of all services of one client. It keeps connections by origin.
pub(super) fn kept(tls: &rustls::ClientConfig, look_up: Arc<LookUp>) -> reqwest::Result<reqwest::Client> {
    builder(tls, CONNECT).dns_resolver(Names(look_up)).pool_idle_timeout(KEPT).build()
}

impl Service {
    /// An address below the base. Whatever is in a segment stays in it.
    pub fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Sends it and waits for the head of the answer.
    pub async fn send(&self, request: Request) -> Result<Response, FetchError> {
        let total = request.timeouts.total;
        let deadline = Instant::now() + total;
        timeout_at(deadline, self.exchange(request, deadline))
            .await
            .unwrap_or(Err(FetchError::TimedOut { wait: Wait::Total, limit: total }))
    }

    async fn exchange(&self, request: Request, deadline: Instant) -> Result<Response, FetchError> {
        let url = Url::parse(&request.url).map_err(|_| FetchError::malformed())?;
        let refused = |rule| FetchError::Refused { place: address::place(&url), rule };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused(Rule::Scheme));
        }
        if url.origin() != self.base.origin() {
            return Err(refused(Rule::Elsewhere));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(Rule::Credentials));
        }
        if self.offline && !url.host().is_some_and(|host| address::is_this_machine(&host)) {
            return Err(refused(Rule::Offline));
        }
        let mut headers = request.headers.clone();
        announce(&mut headers, &request);
        let answer = ask(&self.kept, &url, headers, &request)
            .await
            .map_err(|error| FetchError::of_sending(error, &url, CONNECT))?;
        Ok(Response::new(answer.into(), url, &request, deadline))
    }
}

/// Looks names up like everybody, when a connection is made.
struct Names(Arc<LookUp>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let found = (self.0)(name.as_str().to_owned());
        Box::pin(async move {
            let found = found.await.and_then(not_nothing).map_err(Unresolved)?;
            // The port is that of the address that was asked for.
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
