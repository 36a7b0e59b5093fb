//! Tells the receivers of webhooks what has happened.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use okt_config::Config;
use tokio::time::Instant;
use url::{Host, Url};

use crate::text::one_line;
use crate::{FetchError, GuardedClient, Request, Response, Timeouts};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(10),
};
/// Of an answer this much is taken at most, and of one that refuses so many characters are kept.
const MOST_BYTES: u64 = 64 << 10;
const MOST_CHARACTERS: usize = 300;

/// The way to all of them. Cheap to clone.
#[derive(Clone)]
pub struct Receivers {
    client: GuardedClient,
    /// Plain http only to addresses that the operator names.
    https_only: bool,
    excepted: Arc<[SocketAddr]>,
}

/// What came of telling one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub ms: u64,
    pub status: Option<u16>,
    /// Why it does not count as told.
    pub error: Option<String>,
    /// How an answer begins that is no success.
    pub response: Option<String>,
}

impl Receivers {
    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        Self {
            client: client.clone(),
            https_only: config.mode.is_production(),
            excepted: config.providers.resolution.fetch.allow_private.clone().into(),
        }
    }

    /// Refuses an address that nothing is ever sent to. A name that leads nowhere today may lead somewhere tomorrow.
    pub async fn check(&self, url: &Url) -> Result<(), FetchError> {
        match self.client.may_post(url, self.is_https_only(url)).await {
            Err(refused @ FetchError::Refused { .. }) => Err(refused),
            _ => Ok(()),
        }
    }

    /// One attempt. Whatever the receiver answers with a status of success, it has been told; nothing else is an error of ours.
    pub async fn tell(&self, url: &str, headers: &[(&'static str, String)], body: Bytes) -> Told {
        let begun = Instant::now();
        let (status, error, response) = match self.send(url, headers, body).await {
            Ok(answer) if answer.status.is_success() => (Some(answer.status), None, None),
            Ok(answer) => {
                let status = answer.status;
                (Some(status), Some(refusal(status)), beginning(answer).await)
            }
            Err(error) => (None, Some(error.to_string()), None),
        };
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Told { ms, status: status.map(|status| status.as_u16()), error, response }
    }

    async fn send(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> Result<Response, FetchError> {
        let mut request = Request::post(url, body).timeouts(TIMEOUTS).max_bytes(MOST_BYTES);
        if Url::parse(url).is_ok_and(|url| self.is_https_only(&url)) {
            request = request.https_only();
        }
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        self.client.send(request).await
    }

    fn is_https_only(&self, url: &Url) -> bool {
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            _ => None,
        };
        let address = ip.zip(url.port_or_known_default()).map(SocketAddr::from);
        self.https_only && !address.is_some_and(|address| self.excepted.contains(&address))
    }
}

fn refusal(status: StatusCode) -> String {
    if status.is_redirection() {
        return "the receiver redirects, which is not followed; enter the address that it redirects to"
            .to_owned();
    }
    match status {
        StatusCode::GONE => "the receiver is gone for good".to_owned(),
        status => format!("the receiver answered {}", status.as_u16()),
    }
}

/// `None` when there is nothing to see.
async fn beginning(mut answer: Response) -> Option<String> {
    let mut read = Vec::new();
    while read.len() < 4 * MOST_CHARACTERS
        && let Ok(Some(piece)) = answer.chunk().await
    {
        read.extend_from_slice(&piece);
    }
    // What one piece may bring is not all looked at.
    read.truncate(16 * MOST_CHARACTERS);
    Some(one_line(&String::from_utf8_lossy(&read), MOST_CHARACTERS)).filter(|text| !text.is_empty())
}
