//! What sites say about robots: RFC 9309.
//!
//! A file that is not there (4xx) allows everything. One that the site can't give us right now (5xx, 429) forbids
//! everything for a while, as the standard wants it. Where not even a connection comes about, the page would not be had
//! either: that is told as what it is, and not remembered.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use moka::Expiry;
use moka::sync::Cache;
use robotxt::{BYTE_LIMIT, Robots};
use url::Url;

use super::attempt::{Outcome, Trouble};
use super::hosts::Hosts;
use crate::guarded::{FetchError, GuardedClient, Request, Timeouts};

const AGENT: &str = "okt";
/// Longer delays are asked for by sites that do not want robots at all, and nobody would wait.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
const FRESH: Duration = Duration::from_hours(1);
const UNREACHABLE: Duration = Duration::from_mins(5);
/// All files that are remembered, together.
const MEMORY: u64 = 32 * 1024 * 1024;

pub(super) struct RobotsFiles {
    known: Cache<String, Arc<File>>,
    timeouts: Timeouts,
}

enum File {
    Rules { rules: Robots, bytes: usize },
    Unreachable(StatusCode),
}

struct Fresh;

impl Expiry<String, Arc<File>> for Fresh {
    fn expire_after_create(&self, _: &String, file: &Arc<File>, _: std::time::Instant) -> Option<Duration> {
        Some(match **file {
            File::Rules { .. } => FRESH,
            File::Unreachable(_) => UNREACHABLE,
        })
    }
}

impl RobotsFiles {
    pub(super) fn new(page_timeout: Duration) -> Self {
        let weight = |_: &String, file: &Arc<File>| match **file {
            // What is parsed takes more room than the text.
            File::Rules { bytes, .. } => u32::try_from(1024 + 2 * bytes).unwrap_or(u32::MAX),
            File::Unreachable(_) => 1024,
        };
        let total = page_timeout.min(Duration::from_secs(10));
        Self {
            known: Cache::builder().max_capacity(MEMORY).weigher(weight).expire_after(Fresh).build(),
            timeouts: Timeouts { total, ..Timeouts::default() },
        }
    }

    /// Whether `url` may be asked for, and how long its host wants to be left alone afterwards.
    pub(super) async fn check(
        &self,
        client: &GuardedClient,
        hosts: &Hosts,
        url: &Url,
    ) -> Result<Duration, Trouble> {
        let origin = url.origin().ascii_serialization();
        let file = match self.known.get(&origin) {
            Some(file) => file,
            None => self.load(client, hosts, url, origin).await?,
        };
        match &*file {
            File::Rules { rules, .. } if rules.is_url_allowed(url) => {
                Ok(rules.crawl_delay().unwrap_or_default().min(LONGEST_DELAY))
            }
            File::Rules { .. } => Err(Trouble::new(
                Outcome::Robots,
                "the robots.txt of the site does not want this page to be fetched by programs; upload the document \
                 instead, or let an operator decide about providers.resolution.robots",
            )),
            File::Unreachable(status) => Err(Trouble {
                retryable: true,
                retry_after: Some(UNREACHABLE),
                ..Trouble::new(
                    Outcome::Robots,
                    format!(
                        "the robots.txt of the site can't be read (it answers {}), and until it can, none of its pages \
                         is fetched; try again later",
                        status.as_u16()
                    ),
                )
            }),
        }
    }

    async fn load(
        &self,
        client: &GuardedClient,
        hosts: &Hosts,
        url: &Url,
        origin: String,
    ) -> Result<Arc<File>, Trouble> {
        let _turn = hosts.turn(url, Duration::ZERO).await;
        // Somebody who had the turn before may have asked the same.
        if let Some(file) = self.known.get(&origin) {
            return Ok(file);
        }
        let mut place = url.clone();
        place.set_path("/robots.txt");
        place.set_query(None);
        place.set_fragment(None);
        let file =
            Arc::new(read(client, Request::get(place).follow_redirects().timeouts(self.timeouts)).await?);
        self.known.insert(origin, Arc::clone(&file));
        Ok(file)
    }
}

async fn read(client: &GuardedClient, request: Request) -> Result<File, FetchError> {
    let none = File::Rules { rules: Robots::allow_all(), bytes: 0 };
    let mut response = match client.send(request).await {
        Ok(response) => response,
        Err(FetchError::TooManyRedirects { .. }) => return Ok(none),
        Err(error) => return Err(error),
    };
    let status = response.status;
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Ok(File::Unreachable(status));
    }
    if !status.is_success() {
        return Ok(none);
    }
    let mut text = Vec::new();
    // One byte more tells the parser that the last line may be half of one.
    while text.len() <= BYTE_LIMIT {
        match response.chunk().await {
            Ok(Some(piece)) => text.extend_from_slice(&piece),
            Ok(None) => break,
            // A file that nobody can read says nothing.
            Err(FetchError::Encoding { .. } | FetchError::Bomb { .. }) => return Ok(none),
            Err(error) => return Err(error),
        }
    }
    text.truncate(BYTE_LIMIT + 1);
    Ok(File::Rules { rules: Robots::parse(&text, AGENT), bytes: text.len() })
}
