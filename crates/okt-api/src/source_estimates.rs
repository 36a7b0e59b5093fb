//! What it would cost to turn sources into facts.

use axum::extract::State;
use okt_auth::permissions::SourceWrite;
use okt_http::{Json, Problem};
use okt_model::{Error, SourceId};
use okt_wire::source_estimates::{EstimateRequest, EstimateView};

use crate::Api;
use crate::extract::Repository;

const MOST_SOURCES: usize = 100;

/// Estimate the cost of extracting facts from sources.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/estimate", tag = "Sources",
    operation_id = "estimateSources", request_body = EstimateRequest,
    responses((status = 200, body = EstimateView, description = "Nothing was asked or spent"),
              (status = 409, description = "conflict")))]
pub async fn estimate(
    State(api): State<Api>,
    repository: Repository<SourceWrite>,
    Json(body): Json<EstimateRequest>,
) -> Result<Json<EstimateView>, Problem> {
    if !(1..=MOST_SOURCES).contains(&body.source_ids.len()) {
        return Err(Error::invalid("source_ids", "must be 1 to 100 ids").into());
    }
    let ids: Vec<SourceId> = body.source_ids.into_iter().map(SourceId::from).collect();
    Ok(Json(api.app.estimate_sources(&repository.0, &ids).await?.into()))
}
