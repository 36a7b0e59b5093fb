//! Scholarly works, by the `OpenAlex` protocol.

use std::collections::{BTreeMap, HashMap};

use okt_config::{AcademicSearch, Secret};
use serde::Deserialize;

use super::{Found, Question, RawHit, SearchError, ask, day};
use crate::guarded::{GuardedClient, Request, Service};

const NAME: &str = "the academic search service";
const REMEDY: &str = "an operator should check providers.search.academic.api_key, email and base_url";
/// Everything else of a work would only be carried.
const FIELDS: &str =
    "id,doi,display_name,publication_date,best_oa_location,primary_location,abstract_inverted_index";
/// Words of an abstract; longer ones are no abstracts.
const MOST_WORDS: usize = 2_000;

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
    best_oa_location: Option<Location>,
    primary_location: Option<Location>,
    abstract_inverted_index: Option<HashMap<String, Vec<usize>>>,
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
            for (name, value) in [("mailto", self.email.as_str()), ("api_key", self.api_key.expose())] {
                if !value.is_empty() {
                    query.append_pair(name, value);
                }
            }
        }
        let answer: Answer = ask(&self.service, Request::get(url), NAME, REMEDY).await?;
        // The last page has a cursor, too; it leads to an empty one.
        let more = answer.results.len() >= question.limit;
        Ok(Found {
            hits: answer.results.into_iter().filter_map(Work::hit).collect(),
            next: answer.meta.next_cursor.filter(|_| more),
        })
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
