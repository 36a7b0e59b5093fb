//! Finding and fetching sources, whatever the repository: what is set up here, and a way to try it.

use chrono::NaiveDate;
use okt_app::{FoundSource, SourceQuestion};
use okt_config::SearchProvider;
use okt_model::{Error, Result};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::{read_if_given, schema};

const MOST_HITS: usize = 50;
const LONGEST_QUERY: usize = 400;

/// A provider that finds, fetches or decomposes sources.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderState)]
pub struct Provider {
    #[schema(value_type = schema::Provider)]
    pub id: &'static str,
    /// Whether it can be used as this installation is set up.
    pub configured: bool,
}

/// The providers that find and fetch sources.
#[derive(Serialize, ToSchema)]
pub struct SourceProviders {
    pub search: Vec<Provider>,
    /// In the order in which they are tried.
    pub resolution: Vec<Provider>,
}

/// The providers that decompose sources.
#[derive(Serialize, ToSchema)]
pub struct DecompositionProviders {
    pub chunking: Vec<ChunkingProvider>,
    pub fact_extraction: Vec<ModelProvider>,
}

/// How texts are split into chunks.
#[derive(Serialize, ToSchema)]
pub struct ChunkingProvider {
    #[schema(example = "sentences")]
    pub id: &'static str,
    /// In characters.
    #[schema(example = 4_000)]
    pub chunk_size: u32,
    /// How many characters two neighbouring chunks share.
    #[schema(example = 200)]
    pub chunk_overlap: u32,
}

/// A provider that extracts facts.
#[derive(Serialize, ToSchema)]
pub struct ModelProvider {
    #[schema(example = "model")]
    pub id: &'static str,
    /// The model that is asked; empty when none is. `extractive` asks none: it takes sentences that stand on their own.
    #[schema(example = "builtin-extractive-1")]
    pub model: String,
    /// Whether this provider is in use.
    pub configured: bool,
}

/// A search.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSearch {
    #[schema(example = "honey bee navigation", min_length = 1, max_length = 400)]
    pub query: String,
    /// How many results to return, 1 to 50; 10 by default.
    #[schema(minimum = 1, maximum = 50)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous response.
    pub cursor: Option<String>,
    /// With it, the answer says which sources the repository has already.
    pub repository_id: Option<Uuid>,
}

/// A search for sources that could be added to a repository.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CandidateSearch {
    #[schema(example = "honey bee navigation", min_length = 1, max_length = 400)]
    pub query: String,
    /// `web` or `academic`; left out, the first of them that is configured and switched on in the repository.
    #[schema(value_type = Option<schema::SearchProvider>)]
    pub provider: Option<String>,
    /// How many results to return, 1 to 50; 10 by default.
    #[schema(minimum = 1, maximum = 50)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous response.
    pub cursor: Option<String>,
}

/// A page of search results.
#[derive(Serialize, ToSchema)]
pub struct SourceHits {
    pub data: Vec<SourceHit>,
    /// The cursor of the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A search result. Its texts come from third parties.
#[derive(Serialize, ToSchema)]
pub struct SourceHit {
    #[schema(example = "On bees")]
    pub title: String,
    #[schema(example = "https://example.org/bees")]
    pub url: String,
    /// The excerpt that the search service returned.
    #[schema(example = "Honey bees tell each other where food is …")]
    pub snippet: String,
    #[schema(required)]
    pub doi: Option<String>,
    #[schema(required)]
    pub published_at: Option<NaiveDate>,
    /// Whether the search service lists it as retracted. Only `academic` knows.
    pub retracted: bool,
    /// Whether the repository has it; null when no repository was named.
    #[schema(required)]
    pub already_exists: Option<bool>,
    /// The source that it is, if the repository has it.
    #[schema(required)]
    pub source_id: Option<Uuid>,
}

/// A source to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// A web address; also the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://example.org/bees")]
    pub url: Option<String>,
    /// A DOI, instead of `url`.
    pub doi: Option<String>,
    /// The repository that it is added to.
    pub repository_id: Uuid,
}

/// A text to be classified.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Classify {
    /// A web address, a DOI, or the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://doi.org/10.1000/182")]
    pub value: String,
}

/// What a text names, and where to look for it.
#[derive(Serialize, ToSchema)]
pub struct Classified {
    /// `url`, `pdf_url`, `doi`, `arxiv` or `pmid`.
    #[schema(example = "doi")]
    pub resource_type: &'static str,
    /// Texts that name the same have the same one.
    #[schema(example = "10.1000/182")]
    pub normalized: String,
    #[schema(example = "https://doi.org/10.1000/182")]
    pub url: String,
    #[schema(required, example = "10.1000/182")]
    pub doi: Option<String>,
}

impl SourceSearch {
    pub fn parsed(&self) -> Result<SourceQuestion<'_>> {
        question(&self.query, self.limit, self.cursor.as_deref())
    }
}

impl CandidateSearch {
    pub fn parsed(&self) -> Result<(Option<SearchProvider>, SourceQuestion<'_>)> {
        let provider = read_if_given("provider", self.provider.as_deref())?;
        Ok((provider, question(&self.query, self.limit, self.cursor.as_deref())?))
    }
}

fn question<'a>(query: &'a str, limit: Option<usize>, cursor: Option<&'a str>) -> Result<SourceQuestion<'a>> {
    let (query, limit) = (query.trim(), limit.unwrap_or(10));
    if query.is_empty() || query.chars().count() > LONGEST_QUERY {
        return Err(Error::invalid("query", "must be 1 to 400 characters"));
    }
    if !(1..=MOST_HITS).contains(&limit) {
        return Err(Error::invalid("limit", "must be a whole number from 1 to 50"));
    }
    Ok(SourceQuestion { query, limit, cursor })
}

impl From<FoundSource> for SourceHit {
    fn from(found: FoundSource) -> Self {
        Self {
            title: found.title,
            url: found.url,
            snippet: found.snippet,
            doi: found.doi,
            published_at: found.published_at,
            retracted: found.retracted,
            already_exists: found.already_exists,
            source_id: found.source.map(okt_model::SourceId::uuid),
        }
    }
}
