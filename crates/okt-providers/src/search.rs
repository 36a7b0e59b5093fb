//! Where new sources are looked for: the web, and scholarly works.
//!
//! What a service finds is data of strangers: its texts are made plain and short, and an address that is not of the web is
//! left out. To add a kind of service: a file or a function below `search/` that turns a [`Question`] into [`Found`].

mod academic;
mod web;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::NaiveDate;
use okt_config::{Config, SearchProvider};
use okt_model::{Error, Locator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use academic::Academic;
use web::Web;

use crate::guarded::{FetchError, GuardedClient, Request, Service, Timeouts};
use crate::retry_after::retry_after;
use crate::text::plain;

/// Asks search services. Cheap to clone.
#[derive(Clone)]
pub struct Search {
    web: Option<Web>,
    academic: Academic,
}

/// Some of what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchPage {
    pub hits: Vec<Hit>,
    /// Hands out what comes next.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    pub title: String,
    pub url: Url,
    pub snippet: String,
    pub doi: Option<String>,
    pub published_at: Option<NaiveDate>,
    /// The service says so.
    pub retracted: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("{0}")]
    NotConfigured(&'static str),
    #[error("the cursor was not issued by this search")]
    Cursor,
    /// The key is wrong, or the service is set up in another way than it is asked.
    #[error("{service} rejected the request with {status}: {remedy}")]
    Refused { service: &'static str, status: u16, remedy: &'static str },
    #[error("{service} limits the rate of requests; try again later")]
    RateLimited { service: &'static str, retry_after: Option<Duration> },
    #[error("{service} did not answer")]
    Silent {
        service: &'static str,
        #[source]
        cause: okt_model::Cause,
    },
}

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::NotConfigured(words) => Self::NotConfigured(words),
            SearchError::Cursor => Self::invalid("cursor", "was not issued by this search"),
            SearchError::Refused { .. } => Self::NotConfigured(
                "the search service rejected the request; an operator has to check its key under providers.search",
            ),
            SearchError::RateLimited { .. } => {
                Self::Overloaded("the search service limits the rate of requests; try again later")
            }
            SearchError::Silent { service, cause } => Self::Unavailable { service, cause },
        }
    }
}

/// What a service is asked: never more than it hands out at once, and from where on.
struct Question<'a> {
    query: &'a str,
    limit: usize,
    /// As the service wrote it, or as its module counts; `None` for the beginning.
    from: Option<&'a str>,
}

/// What a service answered, as it stands there.
struct Found {
    hits: Vec<RawHit>,
    next: Option<String>,
}

#[derive(Default)]
struct RawHit {
    title: String,
    url: String,
    snippet: String,
    doi: Option<String>,
    published_at: Option<NaiveDate>,
    retracted: bool,
}

const MOST: usize = 100;
const MAX_BYTES: u64 = 8 * 1024 * 1024;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(20),
};

impl Search {
    pub fn new(config: &Config, client: &GuardedClient) -> Self {
        let search = &config.providers.search;
        Self { web: Web::new(&search.web, client), academic: Academic::new(&search.academic, client) }
    }

    /// Whether it can be asked.
    pub const fn is_configured(&self, provider: SearchProvider) -> bool {
        match provider {
            SearchProvider::Web => self.web.is_some(),
            SearchProvider::Academic => true,
        }
    }

    /// Whether the academic service says that the work of this DOI was retracted; `None` if it does not know.
    pub async fn is_retracted(&self, doi: &str) -> Result<Option<bool>, SearchError> {
        self.academic.is_retracted(doi).await
    }

    /// Up to `limit` hits, perhaps fewer although there are more: that is what `next_cursor` tells.
    pub async fn search(
        &self,
        provider: SearchProvider,
        query: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<SearchPage, SearchError> {
        let from =
            cursor.map(|cursor| read_cursor(provider, cursor).ok_or(SearchError::Cursor)).transpose()?;
        let question = Question { query, limit: limit.clamp(1, MOST), from: from.as_deref() };
        let found = match provider {
            SearchProvider::Academic => self.academic.search(&question).await?,
            SearchProvider::Web => match &self.web {
                Some(web) => web.search(&question).await?,
                None => {
                    return Err(SearchError::NotConfigured(
                        "web search is not configured; an operator can set it up under providers.search.web",
                    ));
                }
            },
        };
        Ok(SearchPage {
            hits: found.hits.into_iter().filter_map(RawHit::cleaned).take(question.limit).collect(),
            next_cursor: found.next.map(|next| write_cursor(provider, &next)),
        })
    }
}

/// Opaque to callers, who would count pages otherwise.
fn write_cursor(provider: SearchProvider, from: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{from}", provider.as_str()))
}

fn read_cursor(provider: SearchProvider, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    Some(text.strip_prefix(provider.as_str())?.strip_prefix(':')?.to_owned())
}

impl RawHit {
    fn cleaned(self) -> Option<Hit> {
        let url = Url::parse(&self.url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.as_str().len() <= 2_000
        })?;
        let title = plain(&self.title, 300);
        Some(Hit {
            title: if title.is_empty() { url.host_str().unwrap_or_default().to_owned() } else { title },
            snippet: plain(&self.snippet, 1_000),
            doi: self.doi.or_else(|| Some(url.to_string())).and_then(|text| Locator::parse(&text).ok()?.doi),
            published_at: self.published_at,
            retracted: self.retracted,
            url,
        })
    }
}

/// Asks, and reads the answer; `remedy` is what an operator should look at when the service refuses us.
async fn ask<T: DeserializeOwned>(
    service: &Service,
    request: Request,
    name: &'static str,
    remedy: &'static str,
) -> Result<T, SearchError> {
    answer(service, request.max_bytes(MAX_BYTES).timeouts(TIMEOUTS), name, remedy).await
}

/// As [`ask`], within the limits of the request.
async fn answer<T: DeserializeOwned>(
    service: &Service,
    request: Request,
    name: &'static str,
    remedy: &'static str,
) -> Result<T, SearchError> {
    let silent = |cause: okt_model::Cause| SearchError::Silent { service: name, cause };
    let failed = |error: FetchError| silent(error.into());
    let answer = service.send(request).await.map_err(failed)?;
    match answer.status.as_u16() {
        200 => {
            let body = answer.bytes().await.map_err(failed)?;
            serde_json::from_slice(&body).map_err(|error| silent(error.into()))
        }
        429 => Err(SearchError::RateLimited { service: name, retry_after: retry_after(&answer.headers) }),
        status @ 500..=599 => Err(silent(format!("it answered {status}").into())),
        status => Err(SearchError::Refused { service: name, status, remedy }),
    }
}

/// The day at the beginning of `2024-01-31T12:00:00`.
fn day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text.get(..10)?, "%Y-%m-%d").ok()
}
