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
pub use knowledge::{
    Contradictions, Dedup, DedupPolicy, Posture, Refinement, Reports, Summarization, Synthesis, ThinkingLevel,
};
pub use registry::{AuthMode, RegistryClient, RegistryEntry};
pub use resolution::{AutoSkip, ChallengeSolver, Fetch, OpenAccess, Resolution, Retry, Tls};
pub use search::{AcademicSearch, SearchProviders, WebSearch, WebSearchKind};
pub use stores::{Embedding, Parsing, Pooling, S3, Storage, StorageBackend, VectorStore};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Providers {
    /// Ask nobody outside of this machine but the databases: no page is fetched, no model, search service or registry is
    /// called, and no name is looked up. Services on this machine may be used. `okt up --offline` sets it.
    pub offline: bool,
    /// Search for new sources.
    pub search: SearchProviders,
    /// Fetching of documents by URL or DOI.
    pub resolution: Resolution,
    /// Extraction of text from files.
    pub parsing: Parsing,
    /// Extraction of facts and concepts from documents.
    pub decomposition: Decomposition,
    /// The model that turns text into vectors.
    pub embedding: Embedding,
    /// The vector store, spoken to over gRPC.
    pub vector_store: VectorStore,
    /// Deduplication of facts.
    pub dedup: Dedup,
    /// Annotation of reports, sentence by sentence.
    pub reports: Reports,
    /// Facts that contradict each other.
    pub contradictions: Contradictions,
    /// Storage of the bodies and images of sources.
    pub storage: Storage,
    /// The shared registry that this instance uses.
    pub registry: RegistryClient,
    /// Several registries in place of the one in `providers.registry`, which then only gives `per_page` and
    /// `timeout`.
    pub registries: Vec<RegistryEntry>,
    /// Summaries of what facts say about a concept.
    pub summarization: Summarization,
    /// Merging of concepts that are one thing under two names.
    pub refinement: Refinement,
    /// Authoritative definitions of concepts.
    pub synthesis: Synthesis,
    /// Chat and embedding models.
    pub ai: Ai,
    /// Retries of model calls.
    pub llm_retry: LlmRetry,
}

impl Providers {
    /// What stands before each text that `providers.embedding.model` turns into a vector.
    pub fn passage_prefix(&self) -> &str {
        let embedding = &self.embedding;
        if embedding.path.is_some() {
            return &embedding.passage_prefix;
        }
        let model = self.ai.models.iter().find(|model| model.id == embedding.model);
        model.map_or("", |model| &model.passage_prefix)
    }
}
