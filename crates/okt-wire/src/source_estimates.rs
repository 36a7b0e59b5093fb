//! What it would cost to turn sources into facts.

use okt_app::{Estimate, SourceEstimate};
use okt_model::Money;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::{EstimateBasis, schema};

/// The sources in question.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateRequest {
    /// 1 to 100 sources that have been fetched.
    #[schema(min_items = 1, max_items = 100)]
    pub source_ids: Vec<Uuid>,
}

/// What it would cost to turn sources into facts, and to read these for concepts. Nothing is asked or spent.
#[derive(Serialize, ToSchema)]
#[schema(as = SourcesEstimate)]
pub struct EstimateView {
    /// The model that would be asked; empty if extraction is off.
    #[schema(example = "builtin-extractive-1")]
    pub model: String,
    /// `history`: what the repository has seen of the model lately. `rule_of_thumb`: how much models read and write by and
    /// large.
    #[schema(value_type = schema::EstimateBasis)]
    pub basis: &'static str,
    pub total: EstimateRow,
    pub registry: RegistryShare,
    pub data: Vec<SourceEstimateRow>,
}

/// An estimate of the cost.
#[derive(Serialize, ToSchema)]
#[schema(as = Estimate)]
pub struct EstimateRow {
    pub chunks: u64,
    /// Chunks that were answered before, and cost nothing.
    pub answered_chunks: u64,
    /// Calls of models: one for each chunk, each image, and each batch of facts that is read for concepts.
    pub calls: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: f64,
}

/// An estimate of the cost of one source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceEstimate)]
pub struct SourceEstimateRow {
    pub source_id: Uuid,
    #[serde(flatten)]
    pub row: EstimateRow,
}

/// What a registry would provide at no cost.
#[derive(Serialize, ToSchema)]
pub struct RegistryShare {
    /// Whether one was asked.
    pub asked: bool,
    pub sources: u64,
    pub usd: f64,
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
        }
        total.usd = estimate.sources.iter().map(|source| source.usd).sum::<Money>().to_usd();
        Self {
            model: estimate.model,
            basis: if estimate.from_history { EstimateBasis::History } else { EstimateBasis::RuleOfThumb }
                .as_str(),
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
                usd: estimate.usd.to_usd(),
            },
        }
    }
}
