//! Web search: serper, brave, or a `SearXNG` of one's own.

use chrono::NaiveDate;
use http::{HeaderName, HeaderValue};
use okt_config::{Secret, WebSearch, WebSearchKind};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Found, Question, RawHit, SearchError, ask, day};
use crate::guarded::{GuardedClient, Request, Service};

const NAME: &str = "the web search service";
const REMEDY: &str = "an operator should check providers.search.web.api_key and base_url";
const SEARXNG_REMEDY: &str = "an operator should check providers.search.web.base_url, and that the service has json among its \
                              search.formats";

#[derive(Clone)]
pub(super) struct Web {
    kind: WebSearchKind,
    service: Service,
    api_key: Secret,
}

impl Web {
    /// `None` when the service needs a key or an address that it has not got.
    pub(super) fn new(settings: &WebSearch, client: &GuardedClient) -> Option<Self> {
        let (kind, api_key) = (settings.kind, settings.api_key.clone());
        let public = match kind {
            WebSearchKind::Serper => Some("https://google.serper.dev/"),
            WebSearchKind::Brave => Some("https://api.search.brave.com/"),
            WebSearchKind::Searxng => None,
        };
        let base = settings.base_url.clone().or_else(|| Url::parse(public?).ok())?;
        let ready = kind == WebSearchKind::Searxng || !api_key.is_empty();
        ready.then(|| Self { kind, service: client.service(&base), api_key })
    }

    pub(super) async fn search(&self, question: &Question<'_>) -> Result<Found, SearchError> {
        match self.kind {
            WebSearchKind::Serper => self.serper(question).await,
            WebSearchKind::Brave => self.brave(question).await,
            WebSearchKind::Searxng => self.searxng(question).await,
        }
    }

    async fn serper(&self, question: &Question<'_>) -> Result<Found, SearchError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            organic: Vec<Organic>,
        }
        #[derive(Deserialize)]
        struct Organic {
            #[serde(default)]
            title: String,
            link: String,
            #[serde(default)]
            snippet: String,
            date: Option<String>,
        }
        let page = number(question.from, 1)?;
        let order = json!({ "q": question.query, "num": question.limit, "page": page });
        let request = Request::post_json(self.service.url(["search"]), &order)
            .map_err(|error| SearchError::Silent { service: NAME, cause: error.into() })?;
        let request = self.with_key(request, "x-api-key")?;
        let answer: Answer = ask(&self.service, request, NAME, REMEDY).await?;
        let next = (!answer.organic.is_empty() && page < 100).then(|| (page + 1).to_string());
        let hits = answer.organic.into_iter().map(|hit| RawHit {
            retracted: false,
            published_at: hit.date.as_deref().and_then(written_day),
            title: hit.title,
            url: hit.link,
            snippet: hit.snippet,
            doi: None,
        });
        Ok(Found { hits: hits.collect(), next })
    }

    async fn brave(&self, question: &Question<'_>) -> Result<Found, SearchError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            query: Query,
            #[serde(default)]
            web: Results,
        }
        #[derive(Default, Deserialize)]
        struct Query {
            #[serde(default)]
            more_results_available: bool,
        }
        #[derive(Default, Deserialize)]
        struct Results {
            #[serde(default)]
            results: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            #[serde(default)]
            title: String,
            url: String,
            #[serde(default)]
            description: String,
            page_age: Option<String>,
        }
        // So many at once, and so many pages, and no more.
        let (count, last) = (question.limit.min(20), 9);
        let offset = number(question.from, 0)?;
        let mut url = self.service.url(["res", "v1", "web", "search"]);
        url.query_pairs_mut()
            .append_pair("q", question.query)
            .append_pair("count", &count.to_string())
            .append_pair("offset", &offset.to_string());
        let request = self.with_key(Request::get(url), "x-subscription-token")?;
        let answer: Answer = ask(&self.service, request, NAME, REMEDY).await?;
        let next = (answer.query.more_results_available && offset < last).then(|| (offset + 1).to_string());
        let hits = answer.web.results.into_iter().map(|hit| RawHit {
            retracted: false,
            published_at: hit.page_age.as_deref().and_then(day),
            title: hit.title,
            url: hit.url,
            snippet: hit.description,
            doi: None,
        });
        Ok(Found { hits: hits.collect(), next })
    }

    /// It decides itself how many make a page. So a place is a page and how many of it were handed out.
    async fn searxng(&self, question: &Question<'_>) -> Result<Found, SearchError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            results: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            #[serde(default)]
            title: Option<String>,
            url: String,
            #[serde(default)]
            content: Option<String>,
            #[serde(rename = "publishedDate")]
            published: Option<String>,
            doi: Option<String>,
        }
        let (page, seen) =
            question.from.map_or(Some(("1", "0")), |from| from.split_once('.')).ok_or(SearchError::Cursor)?;
        let (page, seen) = (number(Some(page), 1)?, number(Some(seen), 0)?);
        let mut url = self.service.url(["search"]);
        url.query_pairs_mut()
            .append_pair("q", question.query)
            .append_pair("format", "json")
            .append_pair("pageno", &page.to_string());
        let answer: Answer = ask(&self.service, Request::get(url), NAME, SEARXNG_REMEDY).await?;
        let handed_out = usize::try_from(seen).unwrap_or(usize::MAX).saturating_add(question.limit);
        let next = if answer.results.len() > handed_out {
            Some(format!("{page}.{handed_out}"))
        } else {
            (!answer.results.is_empty()).then(|| format!("{}.0", page + 1))
        };
        let hits =
            answer.results.into_iter().take(handed_out).skip(handed_out - question.limit).map(|hit| RawHit {
                retracted: false,
                published_at: hit.published.as_deref().and_then(day),
                title: hit.title.unwrap_or_default(),
                url: hit.url,
                snippet: hit.content.unwrap_or_default(),
                doi: hit.doi,
            });
        Ok(Found { hits: hits.collect(), next })
    }

    fn with_key(&self, request: Request, header: &'static str) -> Result<Request, SearchError> {
        let mut key = HeaderValue::from_str(self.api_key.expose()).map_err(|_| SearchError::Refused {
            service: NAME,
            status: 401,
            remedy: "providers.search.web.api_key contains characters that are not allowed in a header",
        })?;
        key.set_sensitive(true);
        Ok(request.header(HeaderName::from_static(header), key))
    }
}

/// A place that this module handed out, and not a number that makes a service count for long.
fn number(text: Option<&str>, first: u32) -> Result<u32, SearchError> {
    text.map_or(Ok(first), str::parse)
        .ok()
        .filter(|number| (first..1_000).contains(number))
        .ok_or(SearchError::Cursor)
}

/// `Jan 31, 2024`. "3 days ago" is no day that would still be true tomorrow.
fn written_day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text.trim(), "%b %d, %Y").ok()
}
