//! The stages that work on facts and concepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::period::Period;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dedup {
    /// Cosine similarity from which two facts are compared. What happens then is up to `policy`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
    /// When two facts that are compared become one. `rule`: only if every difference between their words is of a kind that is
    /// known to keep the meaning; there is such a rule for English, and facts in other languages stay two unless they are
    /// equal. `cosine`: always, unless a difference is found that is known to change the meaning (a number, a date, a name, a
    /// negation). It merges more, and among what it merges are facts that differ. `judge`: as `rule`, and of the others a pair
    /// without such a difference if `judge_model` says twice, in both orders, that they say the same. It costs model calls.
    pub policy: DedupPolicy,
    /// Id of the model in `providers.ai.models` that `policy = "judge"` asks. Take a large one: what it accepts becomes one
    /// fact. A model of 1.5 billion parameters accepted 15 of 30 pairs that differ.
    pub judge_model: String,
    /// Facts that are still `new` after this time become `stable` without being compared.
    #[schemars(extend("x-positive" = true))]
    pub catchup_max_age: Period,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DedupPolicy {
    Rule,
    Judge,
    Cosine,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Least cosine similarity between a sentence and a fact.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub similarity_threshold: f64,
    /// Facts linked to one sentence.
    #[schemars(range(min = 1))]
    pub max_facts_per_sentence: u32,
    /// Shorter sentences are skipped; in characters.
    pub min_sentence_runes: u32,
    /// Whether a fact supports or contradicts a sentence.
    pub posture: Posture,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contradictions {
    /// Whether facts that share a concept are compared, and judged by `providers.reports.posture`. Facts that come while it is off
    /// are compared only when others come near them later.
    pub enabled: bool,
    /// Least cosine similarity between two facts that are compared.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub similarity_threshold: f64,
    /// A new fact is compared with so many of the nearest at most.
    #[schemars(range(min = 1, max = 100))]
    pub max_candidates: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Posture {
    /// Whether it is enabled; otherwise every link is `related`.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models`, or `builtin-posture-1`, which asks no model: it compares the words, and is silent
    /// more often than wrong. Empty turns the stage off.
    pub model: String,
    /// Pairs per call.
    #[schemars(range(min = 1))]
    pub batch_size: u32,
    /// Concurrent calls.
    #[schemars(range(min = 1))]
    pub max_concurrent: u32,
    /// Maximum output tokens per call. A pair takes up to 100, and no more pairs are in a call than there is room for.
    #[schemars(range(min = 100))]
    pub max_tokens: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summarization {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models`; empty turns the stage off.
    pub model: String,
    /// Facts in a slice.
    #[schemars(range(min = 1))]
    pub batch_size: u32,
    /// Concepts in one job.
    #[schemars(range(min = 1))]
    pub max_concepts_per_run: u32,
    /// A lock older than this is taken over.
    #[schemars(extend("x-positive" = true))]
    pub lock_staleness: Period,
    /// Maximum output tokens per call.
    #[schemars(range(min = 1))]
    pub max_tokens: u32,
}

impl Summarization {
    /// Whether concepts are summed up, where a repository may have chosen otherwise.
    pub fn is_on(&self, chosen: Option<bool>) -> bool {
        chosen.unwrap_or(self.enabled) && !self.model.is_empty()
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refinement {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models` that judges concepts which may be one thing. Empty: only certain spellings and
    /// abbreviations are merged.
    pub model: String,
    /// Concepts in one job.
    #[schemars(range(min = 1))]
    pub max_candidates_per_run: u32,
    /// With refinement on, lists leave out concepts with fewer facts, unless asked for. Nothing is deleted.
    pub prune_threshold: u32,
    /// Maximum output tokens per call.
    #[schemars(range(min = 1))]
    pub max_tokens: u32,
    /// Concurrent calls.
    #[schemars(range(min = 1))]
    pub max_concurrency: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthesis {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models`; empty turns the stage off.
    pub model: String,
    /// Maximum output tokens per call.
    #[schemars(range(min = 1))]
    pub max_tokens: u32,
    /// How long the model may think, if its entry in `providers.ai.models` says that it `thinks`.
    pub thinking_level: ThinkingLevel,
    /// Images shown in a definition.
    pub max_images: u32,
    /// Images to choose those from.
    pub max_image_candidates: u32,
    /// Related concepts that are named.
    pub max_related_concepts: u32,
    /// Related definitions that are read.
    pub max_related_syntheses: u32,
}

impl Synthesis {
    /// Whether names are defined, where a repository may have chosen otherwise.
    pub fn is_on(&self, chosen: Option<bool>) -> bool {
        chosen.unwrap_or(self.enabled) && !self.model.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    Low,
    Medium,
    High,
}

impl ThinkingLevel {
    /// As models are told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
