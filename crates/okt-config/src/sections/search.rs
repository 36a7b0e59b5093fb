//! Search inside a repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::period::Period;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Lexical and vector search together.
    pub hybrid: Hybrid,
    /// Stretches of sources, whether or not facts rest on them.
    pub passages: Passages,
    /// A second look at the first hits, by a model that reads each together with the question. Off by default: it helps with
    /// questions that one text answers, and costs time and perhaps money. `mode=deep` never uses it, because it puts texts back
    /// that lead to the answer without being it.
    pub rerank: Rerank,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Passages {
    /// Whether passages are embedded, so that what no fact says is found by its meaning too. Off by default: every source is then
    /// embedded, and paid for, as a whole. Passages that are there already follow after the next start.
    pub vectors: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerank {
    /// Id of a reranking model in `providers.ai.models`, asked at `/rerank` as Jina and Cohere have it; empty turns it off. It
    /// is sent questions, and titles and texts of what was found.
    pub model: String,
    /// Base URL of who serves it, up to and including `/v1`; empty for that of the model's provider.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub url: Option<Url>,
    /// API key for `url`. Without `url` that of the model's provider is used.
    pub api_key: Secret,
    /// How many of the first hits it looks at.
    #[schemars(range(min = 2, max = 100))]
    pub candidates: u32,
    /// How long a question waits for it. Then the hits stay as they are, and the answer says so.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hybrid {
    /// `false` for lexical search only. It is lexical too while the vector store or the embedding model is not
    /// configured.
    pub enabled: bool,
    /// How the two rankings become one: `score` by what both say of a text, `rrf` by its ranks alone (reciprocal rank fusion),
    /// `auto` by score with the built-in embedding model and with models that have a `lexical_weight`, and by ranks with others.
    pub fusion: Fusion,
    /// Damping constant of reciprocal rank fusion.
    #[schemars(range(min = 1))]
    pub rrf_k: u32,
    /// Least cosine similarity of a vector hit; 0 accepts all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_score: f64,
    /// Each channel fetches this many times the requested number of hits before fusion.
    #[schemars(range(min = 1, max = 100))]
    pub over_fetch_multiplier: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fusion {
    Auto,
    Rrf,
    Score,
}
