//! Promptsets: the instructions that models get.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use okt_app::SeenPromptset;
use okt_extract::Phase;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Instructions for every phase. They never change: another text is another promptset.
#[derive(Serialize, ToSchema)]
#[schema(as = Promptset)]
pub struct PromptsetView {
    /// SHA-256 over all phases.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub hash: String,
    /// SHA-256 over the four phases that are shared through a registry; facts carry it.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub registry_hash: String,
    #[schema(example = "Terse facts")]
    pub name: String,
    pub built_in: bool,
    /// The text of each phase by its name.
    #[schema(example = json!({"fact_extraction": "List the facts that the text states, one sentence each."}))]
    pub phases: BTreeMap<&'static str, String>,
    /// Null for the built-in one.
    #[schema(required)]
    pub created_at: Option<DateTime<Utc>>,
}

/// Instructions to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPromptset {
    #[schema(example = "Terse facts", min_length = 1, max_length = 200)]
    pub name: String,
    /// `fact_extraction`, `image_fact_extraction`, `concept_extraction`, `refinement`, `summarization`, `synthesis`,
    /// `posture`, `image_picker`; a phase that is left out is as in the built-in promptset.
    #[schema(example = json!({"fact_extraction": "List the facts that the text states, one sentence each."}))]
    pub phases: BTreeMap<String, String>,
}

impl From<SeenPromptset> for PromptsetView {
    fn from(seen: SeenPromptset) -> Self {
        let phases =
            Phase::ALL.into_iter().map(|phase| (phase.as_str(), seen.promptset.text(phase).to_owned()));
        Self {
            hash: seen.hash.to_string(),
            registry_hash: seen.registry_hash.to_string(),
            name: seen.name,
            built_in: seen.built_in,
            phases: phases.collect(),
            created_at: seen.created_at,
        }
    }
}
