//! What it would cost to turn sources into facts.

use axum::extract::State;
use okt_app::{Estimate, SourceEstimate};
use okt_http::{Json, Problem};
use okt_model::{Error, SourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::repositories::Repository;

const MOST_SOURCES: usize = 100;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateRequest {
    /// 1 to 100 sources that have been fetched.
    #[schema(min_items = 1, max_items = 100)]
    source_ids: Vec<Uuid>,
}

/// What it would cost to turn sources into facts. Nothing is asked or spent.
#[derive(Serialize, ToSchema)]
#[schema(as = SourcesEstimate)]
pub struct EstimateView {
    /// Who would be asked; empty when facts are not looked for.
    model: String,
    /// `history`: what the repository has seen of the model lately. `rule_of_thumb`: how much models read and write by and
    /// large.
    #[schema(example = "history")]
    basis: &'static str,
    total: EstimateRow,
    registry: RegistryShare,
    data: Vec<SourceEstimateRow>,
}

#[derive(Serialize, ToSchema)]
struct EstimateRow {
    chunks: u64,
    /// Chunks that were answered before, and cost nothing.
    answered_chunks: u64,
    /// Calls of models, each image being one more.
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    usd: f64,
}

#[derive(Serialize, ToSchema)]
struct SourceEstimateRow {
    source_id: Uuid,
    #[serde(flatten)]
    row: EstimateRow,
}

/// What a registry would give for nothing.
#[derive(Serialize, ToSchema)]
struct RegistryShare {
    /// Whether one was asked.
    asked: bool,
    sources: u64,
    usd: f64,
}

/// Say what it would cost to turn sources into facts, before anybody pays.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/estimate", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug")), request_body = EstimateRequest,
    responses((status = 200, body = EstimateView, description = "Nothing was asked or spent"),
              (status = 409, body = okt_http::ProblemBody, content_type = "application/problem+json",
               description = "Problem: conflict")))]
pub async fn estimate(
    State(api): State<Api>,
    repository: Repository,
    Json(body): Json<EstimateRequest>,
) -> Result<Json<EstimateView>, Problem> {
    if !(1..=MOST_SOURCES).contains(&body.source_ids.len()) {
        return Err(Error::invalid("source_ids", "must be 1 to 100 ids").into());
    }
    let ids: Vec<SourceId> = body.source_ids.into_iter().map(SourceId::from).collect();
    Ok(Json(api.app.estimate_sources(&repository.0, &ids).await?.into()))
}

impl From<Estimate> for EstimateView {
    fn from(estimate: Estimate) -> Self {
        let mut total =
            EstimateRow { chunks: 0, answered_chunks: 0, calls: 0, tokens_in: 0, tokens_out: 0, usd: 0.0 };
        for source in &estimate.sources {
            total.chunks += source.chunks;
            total.answered_chunks += source.answered;
            total.calls += source.calls;
            total.tokens_in += source.tokens_in;
            total.tokens_out += source.tokens_out;
            total.usd += source.usd;
        }
        Self {
            model: estimate.model,
            basis: if estimate.from_history { "history" } else { "rule_of_thumb" },
            total,
            // A registry that knows some of them is to be asked here.
            registry: RegistryShare { asked: false, sources: 0, usd: 0.0 },
            data: estimate.sources.into_iter().map(SourceEstimateRow::from).collect(),
        }
    }
}

impl From<SourceEstimate> for SourceEstimateRow {
    fn from(estimate: SourceEstimate) -> Self {
        Self {
            source_id: estimate.source.uuid(),
            row: EstimateRow {
                chunks: estimate.chunks,
                answered_chunks: estimate.answered,
                calls: estimate.calls,
                tokens_in: estimate.tokens_in,
                tokens_out: estimate.tokens_out,
                usd: estimate.usd,
            },
        }
    }
}
