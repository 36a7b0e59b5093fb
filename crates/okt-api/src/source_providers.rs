//! Finding and fetching sources: what is set up here, a way to try it, and candidates for a repository.

use axum::extract::State;
use axum::response::Response;
use okt_app::{FoundSources, ProviderInfo};
use okt_auth::permissions::{DecompositionRead, SourceProviderExecute, SourceProviderRead, SourceWrite};
use okt_http::{Json, Path, Problem};
use okt_model::{EXTRACTIVE_MODEL, Locator};
use okt_wire::source_providers::{
    CandidateSearch, ChunkingProvider, Classified, Classify, DecompositionProviders, ModelProvider, Provider,
    Retrieval, SourceHit, SourceHits, SourceProviders, SourceSearch,
};
use okt_wire::sources::{NewSource, SourceAccepted};
use okt_wire::vocabulary::schema;

use crate::Api;
use crate::extract::{Repository, System};
use crate::sources::answer;

/// Classify a text: a web address, a DOI, or the number of a paper. Nothing is fetched.
#[utoipa::path(post, path = "/api/v1/sources/classify", tag = "Sources",
    operation_id = "classifySource", request_body = Classify,
    responses((status = 200, body = Classified, description = "What it names")))]
pub async fn classify(
    _: System<SourceProviderExecute>,
    Json(body): Json<Classify>,
) -> Result<Json<Classified>, Problem> {
    let found = Locator::parse(&body.value)?;
    Ok(Json(Classified {
        resource_type: found.resource_type.as_str(),
        normalized: found.normalized,
        url: found.url,
        doi: found.doi,
    }))
}

/// The providers that find and fetch sources.
#[utoipa::path(get, path = "/api/v1/sources/providers", tag = "Sources",
    operation_id = "listSourceProviders",
    responses((status = 200, body = SourceProviders, description = "All that there are")))]
pub async fn list(State(api): State<Api>, scope: System<SourceProviderRead>) -> Json<SourceProviders> {
    let shown = |found: Vec<ProviderInfo>| {
        found.into_iter().map(|info| Provider { id: info.id, configured: info.configured }).collect()
    };
    Json(SourceProviders {
        search: shown(api.app.search_providers(&scope.0)),
        resolution: shown(api.app.resolution_providers(&scope.0)),
    })
}

/// The providers that decompose sources.
#[utoipa::path(get, path = "/api/v1/sources/decomposition/providers", tag = "Sources",
    operation_id = "listDecompositionProviders",
    responses((status = 200, body = DecompositionProviders, description = "All that there are")))]
pub async fn decomposition(
    State(api): State<Api>,
    _: System<DecompositionRead>,
) -> Json<DecompositionProviders> {
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
    operation_id = "searchSources",
    params(("provider" = schema::SearchProvider, Path, description = "The search provider")), request_body = SourceSearch,
    responses((status = 200, body = SourceHits, description = "What was found"),
              (status = 503, description = "not_configured, unavailable, overloaded")))]
pub async fn search(
    State(api): State<Api>,
    scope: System<SourceProviderExecute>,
    Path(provider): Path<String>,
    Json(body): Json<SourceSearch>,
) -> Result<Json<SourceHits>, Problem> {
    let question = body.parsed()?;
    let repository = match body.repository_id {
        Some(id) => Some(api.app.let_in(&scope.0, id.into()).await?),
        None => None,
    };
    let found = api.app.search_sources(&scope.0, &provider, &question, repository.as_ref()).await?;
    Ok(Json(shown(found)))
}

/// Look for sources to add, with a search provider that is switched on in the repository.
///
/// Each result says whether the repository has it. Results are added by `POST …/investigations/{investigationID}/sources`, or
/// one by one by `POST …/sources`.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/search", tag = "Sources",
    operation_id = "searchCandidates", request_body = CandidateSearch,
    responses((status = 200, body = SourceHits, description = "What was found"),
              (status = 409, description = "conflict"),
              (status = 503, description = "not_configured, unavailable, overloaded")))]
pub async fn search_in(
    State(api): State<Api>,
    repository: Repository<SourceWrite>,
    Json(body): Json<CandidateSearch>,
) -> Result<Json<SourceHits>, Problem> {
    let (provider, question) = body.parsed()?;
    let limited = api.source_searches.check(&repository.0.caller().user());
    limited.map_err(|problem| problem.saying("you search for sources too often"))?;
    Ok(Json(shown(api.app.search_candidates(&repository.0, provider, &question).await?)))
}

fn shown(found: FoundSources) -> SourceHits {
    let data = found.found.into_iter().map(SourceHit::from).collect();
    SourceHits { data, next_cursor: found.next_cursor }
}

/// Add a source to a repository; the same as `POST /api/v1/repositories/{repoID}/sources`.
#[utoipa::path(post, path = "/api/v1/sources/retrieve", tag = "Sources",
    operation_id = "retrieveSource", request_body = Retrieval,
    responses((status = 202, body = SourceAccepted, description = "It will be fetched"),
              (status = 200, body = SourceAccepted, description = "It existed already")))]
pub async fn retrieve(
    State(api): State<Api>,
    scope: System<SourceProviderExecute>,
    Json(body): Json<Retrieval>,
) -> Result<Response, Problem> {
    let repository = api.app.let_in(&scope.0, body.repository_id.into()).await?;
    let new = NewSource { url: body.url, doi: body.doi, investigation_id: None, max_cost_usd: None };
    let accepted = api.app.add_source(&repository, &new.parsed()?).await?;
    Ok(answer(repository.repository(), accepted))
}
