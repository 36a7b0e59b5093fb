//! Searching a repository.

use axum::extract::State;
use http::HeaderMap;
use okt_app::SearchRequest;
use okt_auth::permissions::FactRead;
use okt_http::{Json, PageRequest, Problem, Query};
use okt_wire::search::{CursorPlace, SearchPage, SearchQuery, SearchRow, after};

use crate::Api;
use crate::extract::Repository;

/// Facts, concepts, sources and passages that answer a question.
///
/// Words are ranked by BM25 with statistics of this repository only, vectors by their nearness, and the two rankings are fused
/// (`search.hybrid.fusion`). `search_mode` says how the question was answered; where vectors were wanted and could not be used,
/// `degraded_reason` says why, and the answer is lexical.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/search", tag = "Search",
    operation_id = "searchRepository", params(SearchQuery, PageRequest),
    responses((status = 200, body = SearchPage, description = "The best first")))]
pub async fn search(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Query(query): Query<SearchQuery>,
    page: PageRequest,
) -> Result<(HeaderMap, Json<SearchPage>), Problem> {
    let asked = query.parsed()?;
    let cursor: Option<CursorPlace> = page.after()?;
    let request = SearchRequest {
        q: asked.q,
        types: asked.types.as_deref(),
        mode: asked.mode,
        prefix: asked.prefix,
        grouped: asked.grouped,
        filters: &asked.filters,
        facets: asked.facets,
    };
    let limit = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let found = api.app.search(&repository.0, &request, cursor.and_then(after), limit).await?;
    let rows: Vec<SearchRow> = found.hits.into_iter().map(|hit| SearchRow::new(hit, asked.explain)).collect();
    let (search_mode, degraded_reason) = (found.mode.as_str(), found.degraded.or(found.unranked));
    let place = |row: &SearchRow| (row.place, search_mode.to_owned(), found.degraded.map(str::to_owned));
    let (headers, data, next_cursor) = page.page(rows, place)?.into_parts();
    let facets = found.facets.map(Into::into);
    Ok((headers, Json(SearchPage { data, next_cursor, search_mode, degraded_reason, facets })))
}
