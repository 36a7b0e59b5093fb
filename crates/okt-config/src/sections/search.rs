//! Search inside a repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Lexical and vector search together.
    pub hybrid: Hybrid,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hybrid {
    /// `false` for lexical search only. It is lexical too while the vector store or the embedding model is not
    /// configured.
    pub enabled: bool,
    /// How the two rankings become one: `score` by what both say of a text, `rrf` by its ranks alone (reciprocal rank fusion),
    /// `auto` by score with the built-in embedding model and by ranks with others.
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
