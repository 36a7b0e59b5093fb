//! Scholarly works, by the `OpenAlex` protocol.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use okt_config::{AcademicSearch, Secret};
use okt_model::Locator;
use serde::Deserialize;
use url::Url;

use super::{Found, Question, RawHit, SearchError, answer, ask, day};
use crate::guarded::{GuardedClient, Request, Service, Timeouts};

const NAME: &str = "the academic search service";
const REMEDY: &str = "an operator should check providers.search.academic.api_key, email and base_url";
/// Everything else of a work would only be carried.
const FIELDS: &str = "id,doi,display_name,publication_date,is_retracted,best_oa_location,primary_location,abstract_inverted_index";
/// Of a work that is looked up.
const STATE: &str = "doi,is_retracted";
/// Words of an abstract; longer ones are no abstracts.
const MOST_WORDS: usize = 2_000;
const MAX_STATE_BYTES: u64 = 64 * 1024;
/// What is only looked up is not waited for long.
const LOOK_UP: Timeouts =
    Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(5), total: Duration::from_secs(5) };

#[derive(Clone)]
pub(super) struct Academic {
    service: Service,
    email: String,
    api_key: Secret,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    meta: Meta,
    #[serde(default)]
    results: Vec<Work>,
}

#[derive(Default, Deserialize)]
struct Meta {
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Work {
    id: Option<String>,
    doi: Option<String>,
    display_name: Option<String>,
    publication_date: Option<String>,
    is_retracted: Option<bool>,
    best_oa_location: Option<Location>,
    primary_location: Option<Location>,
    abstract_inverted_index: Option<HashMap<String, Vec<usize>>>,
}

#[derive(Deserialize)]
struct States {
    #[serde(default)]
    results: Vec<State>,
}

#[derive(Deserialize)]
struct State {
    doi: Option<String>,
    is_retracted: Option<bool>,
}

#[derive(Deserialize)]
struct Location {
    landing_page_url: Option<String>,
    pdf_url: Option<String>,
}

impl Academic {
    pub(super) fn new(settings: &AcademicSearch, client: &GuardedClient) -> Self {
        Self {
            service: client.service(&settings.base_url),
            email: settings.email.clone(),
            api_key: settings.api_key.clone(),
        }
    }

    pub(super) async fn search(&self, question: &Question<'_>) -> Result<Found, SearchError> {
        let mut url = self.service.url(["works"]);
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("search", question.query)
                .append_pair("per-page", &question.limit.to_string())
                .append_pair("cursor", question.from.unwrap_or("*"))
                .append_pair("select", FIELDS);
        }
        self.identify(&mut url);
        let answer: Answer = ask(&self.service, Request::get(url), NAME, REMEDY).await?;
        // The last page has a cursor, too; it leads to an empty one.
        let more = answer.results.len() >= question.limit;
        Ok(Found {
            hits: answer.results.into_iter().filter_map(Work::hit).collect(),
            next: answer.meta.next_cursor.filter(|_| more),
        })
    }

    /// Whether the work of this DOI was retracted, as far as the service knows it.
    pub(super) async fn is_retracted(&self, doi: &str) -> Result<Option<bool>, SearchError> {
        // These part filters and their values.
        if doi.contains([',', '|', '!', '"']) {
            return Ok(None);
        }
        let mut url = self.service.url(["works"]);
        url.query_pairs_mut()
            .append_pair("filter", &format!("doi:{doi}"))
            .append_pair("per-page", "1")
            .append_pair("select", STATE);
        self.identify(&mut url);
        let request = Request::get(url).max_bytes(MAX_STATE_BYTES).timeouts(LOOK_UP);
        let answered: States = answer(&self.service, request, NAME, REMEDY).await?;
        let is_it =
            |found: &str| Locator::parse(found).ok().and_then(|found| found.doi).as_deref() == Some(doi);
        let state = answered.results.into_iter().find(|state| state.doi.as_deref().is_some_and(is_it));
        Ok(state.and_then(|state| state.is_retracted))
    }

    /// Says who asks.
    fn identify(&self, url: &mut Url) {
        for (name, value) in [("mailto", self.email.as_str()), ("api_key", self.api_key.expose())] {
            if !value.is_empty() {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
    }
}

impl Work {
    fn hit(self) -> Option<RawHit> {
        let places = [self.best_oa_location, self.primary_location].into_iter().flatten();
        let place = places.flat_map(|place| [place.landing_page_url, place.pdf_url]).flatten().next();
        Some(RawHit {
            url: place.or_else(|| self.doi.clone()).or(self.id)?,
            title: self.display_name.unwrap_or_default(),
            snippet: self.abstract_inverted_index.map(|index| abstract_of(&index)).unwrap_or_default(),
            published_at: self.publication_date.as_deref().and_then(day),
            retracted: self.is_retracted == Some(true),
            doi: self.doi,
        })
    }
}

/// Puts the words back where they stood.
fn abstract_of(index: &HashMap<String, Vec<usize>>) -> String {
    let mut words = BTreeMap::new();
    for (word, places) in index {
        for place in places.iter().filter(|place| **place < MOST_WORDS) {
            words.insert(*place, word.as_str());
        }
    }
    words.into_values().collect::<Vec<_>>().join(" ")
}
