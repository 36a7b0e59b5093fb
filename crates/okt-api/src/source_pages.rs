//! Single pages of PDFs.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use okt_auth::permissions::SourceRead;
use okt_http::{Budget, Json, Path, Problem};
use okt_wire::source_pages::PageTextView;
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::Repository;

/// Places up to this size are read without asking whether there is room for them.
const LARGE: usize = 64 * 1024;

#[derive(Deserialize)]
pub struct SourcePagePath {
    #[serde(rename = "sourceID")]
    source: Uuid,
    /// From 1.
    #[serde(rename = "n")]
    number: u32,
}

/// A page of a PDF with its sentences, where they stand, and the facts that they support.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/sources/{sourceID}/pages/{n}", tag = "Sources",
    operation_id = "getSourcePage",
    params(("n" = u32, Path, description = "The number of the page, from 1", example = 1)),
    responses((status = 200, body = PageTextView, description = "In the order of the text")))]
pub async fn show(
    State(api): State<Api>,
    repository: Repository<SourceRead>,
    Path(path): Path<SourcePagePath>,
    budget: Budget,
) -> Result<Response, Problem> {
    // As text, and as numbers.
    let admit = |bytes: usize| -> Result<_, Problem> {
        Ok(if bytes > LARGE { Some(budget.reserve(2 * bytes)?) } else { None })
    };
    let (page, reserved) =
        api.app.find_source_page(&repository.0, path.source.into(), path.number, admit).await?;
    let response = Json(PageTextView::from(page)).into_response();
    Ok(match reserved {
        Some(reserved) => reserved.answer(response),
        None => response,
    })
}
