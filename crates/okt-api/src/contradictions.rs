//! Facts that may contradict each other, and what people say of them.

use axum::extract::State;
use okt_auth::permissions::{FactRead, FactUpdate};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_wire::contradictions::{
    ContradictionMarking, ContradictionQuery, FoundContradictionView, MarkedContradictionView, contradicting,
};
use serde::Deserialize;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

/// The contradiction of a path.
#[derive(Deserialize)]
pub struct ContradictionPath {
    #[serde(rename = "contradictionID")]
    contradiction: String,
}

/// Facts of a repository that may contradict each other.
///
/// Each pair is listed once, with its canonical facts, whichever of their duplicates it was found between.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/contradictions", tag = "Facts",
    operation_id = "listContradictions", params(ContradictionQuery, PageRequest),
    responses((status = 200, body = Page<FoundContradictionView>, description = "Those of the newest facts first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<FactRead>,
    Query(query): Query<ContradictionQuery>,
    page: PageRequest,
) -> Result<Page<FoundContradictionView>, Problem> {
    let (state, before): (_, Option<(i64, i64)>) = (query.parsed()?, page.after()?);
    let rows = api.app.list_contradictions(&repository.0, state, before, page.rows()).await?;
    page.page(rows.into_iter().map(FoundContradictionView::from).collect(), |row| row.place)
}

/// Say whether two facts contradict each other.
///
/// It holds for the duplicates of both, also those of later, and when a source is processed again. Facts that are not a
/// contradiction are no longer shown as candidates at each other, and definitions need not cite both. It is a step of
/// curation, and can be undone.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/contradictions/{contradictionID}", tag = "Facts",
    operation_id = "markContradiction", request_body = ContradictionMarking,
    responses((status = 200, body = MarkedContradictionView, description = "As it is now")))]
pub async fn mark(
    State(api): State<Api>,
    repository: Repository<FactUpdate>,
    origin: RequestOrigin,
    Path(path): Path<ContradictionPath>,
    Json(body): Json<ContradictionMarking>,
) -> Result<Json<MarkedContradictionView>, Problem> {
    let (pair, state) = (contradicting(&path.contradiction)?, body.parsed()?);
    let marked =
        api.app.mark_contradiction(&origin.into(), &repository.0, pair, state, body.note.as_deref()).await?;
    Ok(Json(marked.into()))
}
