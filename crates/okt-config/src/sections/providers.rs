//! The outside of the service, and the stages of processing that use it.

mod ai;
mod decomposition;
mod knowledge;
mod registry;
mod resolution;
mod search;
mod stores;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ai::{Ai, AiEndpoint, AiProvider, LlmRetry, Model};
pub use decomposition::{Chunking, ConceptExtraction, Decomposition, FactExtraction, ImageExtraction};
pub use knowledge::{Dedup, Posture, Refinement, Reports, Summarization, Synthesis, ThinkingLevel};
pub use registry::{AuthMode, RegistryClient, RegistryEntry};
pub use resolution::{AutoSkip, ChallengeSolver, Fetch, OpenAccess, Resolution, Retry, Tls};
pub use search::{AcademicSearch, SearchProviders, WebSearch, WebSearchKind};
pub use stores::{Embedding, Parsing, S3, Storage, StorageBackend, VectorStore};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Providers {
    /// Where new sources are looked for.
    pub search: SearchProviders,
    /// How an address or DOI becomes a document.
    pub resolution: Resolution,
    /// How a file becomes text.
    pub parsing: Parsing,
    /// How a document becomes facts and concepts.
    pub decomposition: Decomposition,
    /// The model that turns text into vectors.
    pub embedding: Embedding,
    /// The vector store, spoken to over gRPC.
    pub vector_store: VectorStore,
    /// Folding of facts that say the same.
    pub dedup: Dedup,
    /// Annotation of reports, sentence by sentence.
    pub reports: Reports,
    /// Where the bodies and images of sources are kept.
    pub storage: Storage,
    /// The shared registry that this instance uses.
    pub registry: RegistryClient,
    /// Several registries in place of the one in `providers.registry`, which then only gives `per_page` and
    /// `timeout`.
    pub registries: Vec<RegistryEntry>,
    /// Summaries of what facts say about a concept.
    pub summarization: Summarization,
    /// Clearing up of concepts that were named badly.
    pub refinement: Refinement,
    /// Authoritative definitions of concepts.
    pub synthesis: Synthesis,
    /// Chat and embedding models.
    pub ai: Ai,
    /// What happens when a model does not answer.
    pub llm_retry: LlmRetry,
}
