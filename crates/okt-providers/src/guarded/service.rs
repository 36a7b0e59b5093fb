//! Services that the operator named in the configuration.

use tokio::time::{Instant, timeout_at};
use url::Url;

use super::error::{FetchError, Rule, Wait};
use super::{GuardedClient, Request, Response, address};

/// A client for one service. It may be on a private address and on any port, since no stranger wrote it down: that is
/// why it goes nowhere else. A request to another origin is refused and a redirect is only an answer, so neither the
/// service nor what it is asked about can lead anywhere. All limits hold here, too.
#[derive(Clone)]
pub struct Service {
    client: GuardedClient,
    base: Url,
}

impl GuardedClient {
    /// `base` comes from the configuration and from nowhere else.
    pub fn service(&self, base: &Url) -> Service {
        Service { client: self.clone(), base: base.clone() }
    }
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
        let (host, port) = url.host().zip(url.port_or_known_default()).ok_or_else(FetchError::malformed)?;
        let addresses = self.client.addresses(&url, host, port, request.timeouts.connect).await?;
        self.client.exchange(&url, addresses, &request, deadline).await
    }
}
