//! How a document becomes facts and concepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decomposition {
    /// Splitting of text into chunks.
    pub chunking: Chunking,
    /// Facts from text.
    pub fact_extraction: FactExtraction,
    /// Facts from images.
    pub image_extraction: ImageExtraction,
    /// Concepts from facts.
    pub concept_extraction: ConceptExtraction,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chunking {
    /// Characters in a chunk.
    #[schemars(range(min = 1))]
    pub chunk_size: u32,
    /// Characters a chunk shares with the one before it; less than `chunk_size`.
    pub chunk_overlap: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactExtraction {
    /// Id of a model in `providers.ai.models`; empty turns the stage off.
    pub model: String,
    /// Concurrent calls for the chunks of one source.
    #[schemars(range(min = 1))]
    pub concurrency: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageExtraction {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models` that accepts images; empty turns the stage off.
    pub model: String,
    /// Larger images are skipped.
    #[schemars(range(min = 1))]
    pub max_image_bytes: u64,
    /// Images of one source that are sent to the model.
    pub max_images_per_source: u32,
    /// Concurrent calls for the images of one source.
    #[schemars(range(min = 1))]
    pub concurrency: u32,
}

impl ImageExtraction {
    /// Whether images are looked at, where a repository may have chosen otherwise.
    pub fn is_on(&self, chosen: Option<bool>) -> bool {
        chosen.unwrap_or(self.enabled) && !self.model.is_empty()
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConceptExtraction {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Id of a model in `providers.ai.models`, or `builtin-concepts-1`, which asks no model: it takes names, titles and
    /// noun phrases, for nothing. Empty turns the stage off.
    pub model: String,
    /// Facts per call.
    #[schemars(range(min = 1))]
    pub fact_batch_size: u32,
    /// Concurrent calls.
    #[schemars(range(min = 1))]
    pub concurrency: u32,
}

impl ConceptExtraction {
    /// Whether concepts are looked for.
    pub const fn is_on(&self) -> bool {
        self.enabled && !self.model.is_empty()
    }
}
