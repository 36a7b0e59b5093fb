//! Finding and fetching sources, whatever the repository: what is set up here, and a way to try it.

use axum::extract::State;
use axum::response::Response;
use chrono::NaiveDate;
use okt_app::{FoundSource, ProviderInfo};
use okt_http::{Json, Path, Problem};
use okt_model::{Action, EXTRACTIVE_MODEL, Error, Locator, Object, Permission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::admin::Scope;
use crate::sources::{NewSource, SOURCE_READ, SOURCE_WRITE, SourceAccepted, answer};

pub(crate) const SOURCE_PROVIDER_EXECUTE: Permission =
    Permission::new(Object::SourceProvider, Action::Execute);
pub(crate) const SOURCE_PROVIDER_READ: Permission = Permission::new(Object::SourceProvider, Action::Read);
pub(crate) const DECOMPOSITION_READ: Permission = Permission::new(Object::Decomposition, Action::Read);
const MOST_HITS: usize = 50;

/// A way to find, fetch or take apart sources.
#[derive(Serialize, ToSchema)]
struct Provider {
    #[schema(example = "fetch")]
    id: &'static str,
    /// Whether it can be used as this installation is set up.
    configured: bool,
}

/// With what sources are found and fetched.
#[derive(Serialize, ToSchema)]
pub struct SourceProviders {
    search: Vec<Provider>,
    /// In the order in which they are tried.
    resolution: Vec<Provider>,
}

/// With what sources are taken apart.
#[derive(Serialize, ToSchema)]
pub struct DecompositionProviders {
    chunking: Vec<ChunkingProvider>,
    fact_extraction: Vec<ModelProvider>,
}

#[derive(Serialize, ToSchema)]
struct ChunkingProvider {
    #[schema(example = "sentences")]
    id: &'static str,
    /// In characters.
    chunk_size: u32,
    chunk_overlap: u32,
}

#[derive(Serialize, ToSchema)]
struct ModelProvider {
    #[schema(example = "model")]
    id: &'static str,
    /// The model that is asked; empty when none is. `extractive` asks none: it takes sentences that stand on their own.
    model: String,
    /// Whether it is the one that is used.
    configured: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSearch {
    #[schema(example = "honey bee navigation", min_length = 1, max_length = 400)]
    query: String,
    /// 1 to 50; 10 unless told.
    #[schema(minimum = 1, maximum = 50)]
    limit: Option<usize>,
    /// `next_cursor` of the answer before.
    cursor: Option<String>,
    /// With it, the answer says which sources the repository has already.
    repository_id: Option<Uuid>,
}

/// Some of what was found.
#[derive(Serialize, ToSchema)]
pub struct SourceHits {
    data: Vec<SourceHit>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// What a service has found; everything in it was written by strangers.
#[derive(Serialize, ToSchema)]
struct SourceHit {
    title: String,
    url: String,
    snippet: String,
    #[schema(required)]
    doi: Option<String>,
    #[schema(required)]
    published_at: Option<NaiveDate>,
    /// Null when no repository was named.
    #[schema(required)]
    already_exists: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// A web address; also the number of a paper (`arXiv:…`, `PMID:…`).
    url: Option<String>,
    /// In place of the address.
    doi: Option<String>,
    repository_id: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Classify {
    /// A web address, a DOI, or the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://doi.org/10.1000/182")]
    value: String,
}

/// What a text names, and where to look for it.
#[derive(Serialize, ToSchema)]
pub struct Classified {
    /// `url`, `pdf_url`, `doi`, `arxiv` or `pmid`.
    #[schema(example = "doi")]
    resource_type: &'static str,
    /// Texts that name the same have the same one.
    #[schema(example = "10.1000/182")]
    normalized: String,
    #[schema(example = "https://doi.org/10.1000/182")]
    url: String,
    #[schema(required, example = "10.1000/182")]
    doi: Option<String>,
}

/// Say what a text names: an address, a DOI, or the number of a paper. Nothing is fetched.
#[utoipa::path(post, path = "/api/v1/sources/classify", tag = "Sources", request_body = Classify,
    responses((status = 200, body = Classified, description = "What it names")))]
pub async fn classify(_: Scope, Json(body): Json<Classify>) -> Result<Json<Classified>, Problem> {
    let found = Locator::parse(&body.value)?;
    Ok(Json(Classified {
        resource_type: found.resource_type.as_str(),
        normalized: found.normalized,
        url: found.url,
        doi: found.doi,
    }))
}

/// With what sources are found and fetched here.
#[utoipa::path(get, path = "/api/v1/sources/providers", tag = "Sources",
    responses((status = 200, body = SourceProviders, description = "All that there are")))]
pub async fn list(State(api): State<Api>, _: Scope) -> Json<SourceProviders> {
    let shown = |found: Vec<ProviderInfo>| {
        found.into_iter().map(|info| Provider { id: info.id, configured: info.configured }).collect()
    };
    Json(SourceProviders {
        search: shown(api.app.search_providers()),
        resolution: shown(api.app.resolution_providers()),
    })
}

/// With what sources are taken apart here.
#[utoipa::path(get, path = "/api/v1/sources/decomposition/providers", tag = "Sources",
    responses((status = 200, body = DecompositionProviders, description = "All that there are")))]
pub async fn decomposition(State(api): State<Api>, _: Scope) -> Json<DecompositionProviders> {
    let settings = &api.app.config().providers.decomposition;
    let (chunking, model) = (&settings.chunking, settings.fact_extraction.model.clone());
    let (chunk_size, chunk_overlap) = (chunking.chunk_size, chunking.chunk_overlap);
    Json(DecompositionProviders {
        chunking: vec![ChunkingProvider { id: "sentences", chunk_size, chunk_overlap }],
        fact_extraction: vec![
            ModelProvider {
                id: "model",
                configured: !model.is_empty() && model != EXTRACTIVE_MODEL,
                model: if model == EXTRACTIVE_MODEL { String::new() } else { model.clone() },
            },
            ModelProvider {
                id: "extractive",
                configured: model == EXTRACTIVE_MODEL,
                model: EXTRACTIVE_MODEL.to_owned(),
            },
        ],
    })
}

/// Look for sources with one of the search providers: `web` or `academic`.
#[utoipa::path(post, path = "/api/v1/sources/{provider}/search", tag = "Sources",
    params(("provider" = String, Path, description = "`web` or `academic`")), request_body = SourceSearch,
    responses((status = 200, body = SourceHits, description = "What was found"),
              (status = 503, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: not_configured, unavailable or overloaded")))]
pub async fn search(
    State(api): State<Api>,
    scope: Scope,
    Path(provider): Path<String>,
    Json(body): Json<SourceSearch>,
) -> Result<Json<SourceHits>, Problem> {
    let query = body.query.trim();
    if query.is_empty() || query.chars().count() > 400 {
        return Err(Error::invalid("query", "must be 1 to 400 characters").into());
    }
    let limit = body.limit.unwrap_or(10);
    if !(1..=MOST_HITS).contains(&limit) {
        return Err(Error::invalid("limit", "must be a whole number from 1 to 50").into());
    }
    let repository = match body.repository_id {
        Some(id) => Some(api.app.let_in(&scope.0, id.into(), SOURCE_READ).await?),
        None => None,
    };
    let found = api.app.search_sources(&provider, query, limit, body.cursor.as_deref(), repository.as_ref());
    let found = found.await?;
    let data = found.found.into_iter().map(SourceHit::from).collect();
    Ok(Json(SourceHits { data, next_cursor: found.next_cursor }))
}

/// Add a source to a repository; the same as `POST /api/v1/repositories/{repoID}/sources`.
#[utoipa::path(post, path = "/api/v1/sources/retrieve", tag = "Sources", request_body = Retrieval,
    responses((status = 202, body = SourceAccepted, description = "It will be fetched"),
              (status = 200, body = SourceAccepted, description = "It was there before")))]
pub async fn retrieve(
    State(api): State<Api>,
    scope: Scope,
    Json(body): Json<Retrieval>,
) -> Result<Response, Problem> {
    let repository = api.app.let_in(&scope.0, body.repository_id.into(), SOURCE_WRITE).await?;
    let new = NewSource { url: body.url, doi: body.doi, investigation_id: None, max_cost_usd: None };
    let accepted = api.app.add_source(&repository, &new.parsed()?).await?;
    Ok(answer(repository.repository(), accepted))
}

impl From<FoundSource> for SourceHit {
    fn from(found: FoundSource) -> Self {
        Self {
            title: found.title,
            url: found.url,
            snippet: found.snippet,
            doi: found.doi,
            published_at: found.published_at,
            already_exists: found.already_exists,
        }
    }
}
