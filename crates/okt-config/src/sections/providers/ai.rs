//! Chat and embedding models, by the OpenAI-compatible protocol.

use okt_model::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::period::Period;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ai {
    /// A gateway to many vendors' models.
    pub gateway: AiEndpoint,
    /// One vendor's own service.
    pub cloud: AiEndpoint,
    /// A self-hosted model server.
    pub local: AiEndpoint,
    /// Texts per embedding request.
    #[schemars(range(min = 1))]
    pub embed_batch_size: u32,
    /// How long a call may wait for `rate_limit_rpm`.
    pub rate_limit_wait_timeout: Period,
    /// The most that all repositories together may spend on models in a calendar month (UTC), in US dollars; 0 for no
    /// limit. A call that could exceed it waits, and its job says so.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub monthly_usd: f64,
    /// The models that may be used, with their prices.
    pub models: Vec<Model>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AiEndpoint {
    /// Base URL up to and including `/v1`; empty turns it off.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub base_url: Option<Url>,
    /// API key.
    pub api_key: Secret,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name of the model at its provider.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Endpoint that serves it.
    pub provider: AiProvider,
    /// Price of a million input tokens, in US dollars.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub input_cost_per_1m: f64,
    /// Price of a million output tokens, in US dollars.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub output_cost_per_1m: f64,
    /// Price of a thousand searches, in US dollars, for a reranking model that is paid by the search.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub search_cost_per_1k: f64,
    /// What an embedding model wants before a question, such as `query: `.
    #[serde(default)]
    pub query_prefix: String,
    /// What an embedding model wants before a text that is looked for, such as `passage: `. With another one the vectors are
    /// others: run `okt reembed`.
    #[serde(default)]
    pub passage_prefix: String,
    /// How much words count when the ranking by words and that by this embedding model's vectors become one: 1 for words alone, 0
    /// for vectors alone. Without it the two are fused by ranks, unless `search.hybrid.fusion` says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 1.0))]
    pub lexical_weight: Option<f64>,
    /// Requests per minute; 0 for no limit.
    #[serde(default)]
    pub rate_limit_rpm: u32,
    /// Concurrent calls from one process; 0 for no limit.
    #[serde(default)]
    pub max_in_flight: u32,
    /// Whether it can be told how long to think (`reasoning_effort`). Other models refuse a request that says so.
    #[serde(default)]
    pub thinks: bool,
}

impl Model {
    /// Of so many tokens.
    pub fn price(&self, tokens_in: u64, tokens_out: u64) -> Money {
        Money::price(&[(tokens_in, self.input_cost_per_1m), (tokens_out, self.output_cost_per_1m)])
    }

    /// Of having texts ranked.
    pub fn rerank_price(&self, tokens_in: u64, searches: u64) -> Money {
        Money::price(&[(tokens_in, self.input_cost_per_1m), (searches, self.search_cost_per_1k * 1_000.0)])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AiProvider {
    Gateway,
    Cloud,
    Local,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmRetry {
    /// Attempts, the first included.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Wait before the second attempt; doubled for each further one.
    pub base_delay: Period,
    /// Longest wait.
    pub max_delay: Period,
    /// Timeout of one attempt. A job that calls a model must be allowed more than all attempts and waits together.
    #[schemars(extend("x-positive" = true))]
    pub per_call_timeout: Period,
}
