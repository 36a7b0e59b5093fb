//! Bodies of requests and answers.

use chrono::{DateTime, NaiveDate, Utc};
use okt_interchange::origin;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::{DecompositionRow, GraphRow, SourceRow, WithdrawalRow};

/// A source that is to be known. At least one of `url`, `doi` and `sha256` is needed.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewRegistrySource)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    #[schema(example = "https://example.org/bees")]
    pub url: Option<String>,
    #[schema(example = "10.1000/182")]
    pub doi: Option<String>,
    /// SHA-256 of its content, in hexadecimal.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: Option<String>,
    #[schema(example = "Bees of Europe")]
    pub title: Option<String>,
    #[schema(example = "Ada Lovelace")]
    pub author: Option<String>,
    /// `html`, `pdf`, `text` or `markdown`.
    #[schema(example = "html")]
    pub kind: Option<String>,
    #[schema(example = "en")]
    pub language: Option<String>,
    pub published_at: Option<NaiveDate>,
}

/// A source that is known now.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistrySourceCreated)]
pub struct Created {
    pub source_id: Uuid,
}

/// A source.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistrySource)]
pub struct SourceView {
    pub source_id: Uuid,
    #[schema(required, example = "https://example.org/bees")]
    pub url: Option<String>,
    #[schema(required, example = "10.1000/182")]
    pub doi: Option<String>,
    #[schema(required, example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: Option<String>,
    #[schema(required, example = "Bees of Europe")]
    pub title: Option<String>,
    #[schema(required, example = "Ada Lovelace")]
    pub author: Option<String>,
    #[schema(required, example = "html")]
    pub kind: Option<String>,
    #[schema(required, example = "en")]
    pub language: Option<String>,
    #[schema(required)]
    pub published_at: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
}

/// What a search found.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryFound)]
pub struct Found {
    #[serde(rename = "found")]
    pub is_known: bool,
    #[schema(required)]
    pub source: Option<SourceView>,
    /// The latest package of each model and signer.
    pub decompositions: Vec<DecompositionView>,
}

/// A package that can be pulled.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryDecomposition)]
pub struct DecompositionView {
    #[schema(example = "example/model-1")]
    pub model_id: String,
    /// Counted from 1 with each push of another package.
    pub version: i32,
    pub fact_count: i32,
    pub concept_count: i32,
    /// Null for a package that is older than promptset hashes.
    #[schema(required, example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub promptset_hash: Option<String>,
    #[schema(required, example = "example/embedding-1")]
    pub embedding_model: Option<String>,
    #[schema(required, example = "okt 0.1.0")]
    pub decomposed_by: Option<String>,
    pub decomposed_at: DateTime<Utc>,
    pub pushed_at: DateTime<Utc>,
    /// The id of the key that pushed it; `anonymous` without one.
    #[schema(example = "okg_0a1b2c3d4e5f")]
    pub pushed_by: String,
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: String,
    pub bytes: i64,
    /// Whether it was pushed with a signature.
    pub signed: bool,
    /// The key that signed it.
    #[schema(required, example = "okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub key_id: Option<String>,
}

/// What came of a push.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryPushed)]
pub struct Pushed {
    pub source_id: Uuid,
    /// Facts that no package of the source had before.
    pub facts_new: i64,
    pub facts_linked: i64,
}

/// A package or a bundle that is not handed out any more.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryWithdrawal)]
pub struct WithdrawalView {
    /// Null for a bundle.
    #[schema(required)]
    pub source_id: Option<Uuid>,
    #[schema(required, example = "example/model-1")]
    pub model_id: Option<String>,
    #[schema(required)]
    pub version: Option<i32>,
    /// Null for a package.
    #[schema(required)]
    pub graph_id: Option<Uuid>,
    /// Of the package as it was pushed, or the hash of the graph.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: String,
    pub withdrawn_at: DateTime<Utc>,
    #[schema(example = "its facts are not in the source")]
    pub reason: String,
}

/// What came of a bundle.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryGraphPushed)]
pub struct GraphPushed {
    pub graph_id: Uuid,
    /// False if a bundle of this name and hash was there.
    pub new: bool,
}

/// A Graph Bundle.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryGraph)]
pub struct GraphView {
    pub graph_id: Uuid,
    #[schema(example = "Bees of Europe")]
    pub name: String,
    #[schema(example = "What is known of them.")]
    pub description: String,
    #[schema(example = json!(["bees"]))]
    pub tags: Vec<String>,
    /// The canonical hash of the graph.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub sha256: String,
    pub schema_version: i32,
    pub source_count: i64,
    pub fact_count: i64,
    pub concept_count: i64,
    pub bytes: i64,
    /// The id of the key that pushed it; `anonymous` without one.
    #[schema(example = "okg_0a1b2c3d4e5f")]
    pub owner: String,
    pub created_at: DateTime<Utc>,
    /// Whether it was pushed with a signature.
    pub signed: bool,
    /// The key that signed it.
    #[schema(required, example = "okp_11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    pub key_id: Option<String>,
}

impl From<SourceRow> for SourceView {
    fn from(row: SourceRow) -> Self {
        Self {
            source_id: row.id,
            url: row.url,
            doi: row.doi,
            sha256: row.sha256.map(hex::encode),
            title: row.title,
            author: row.author,
            kind: row.kind,
            language: row.language,
            published_at: row.published_at,
            created_at: row.created_at,
        }
    }
}

impl From<DecompositionRow> for DecompositionView {
    fn from(row: DecompositionRow) -> Self {
        Self {
            model_id: row.model_id,
            version: row.version,
            fact_count: row.fact_count,
            concept_count: row.concept_count,
            promptset_hash: row.promptset_hash,
            embedding_model: row.embedding_model,
            decomposed_by: row.decomposed_by,
            decomposed_at: row.decomposed_at,
            pushed_at: row.pushed_at,
            pushed_by: row.pushed_by,
            sha256: hex::encode(row.package_sha256),
            bytes: row.bytes,
            key_id: row.key_id,
            signed: row.signature.is_some(),
        }
    }
}

impl From<WithdrawalRow> for WithdrawalView {
    fn from(row: WithdrawalRow) -> Self {
        Self {
            source_id: row.model_id.is_some().then_some(row.id),
            graph_id: row.model_id.is_none().then_some(row.id),
            model_id: row.model_id,
            version: row.version,
            sha256: row.sha256,
            withdrawn_at: row.withdrawn_at,
            reason: row.why,
        }
    }
}

impl From<GraphRow> for GraphView {
    fn from(row: GraphRow) -> Self {
        Self {
            graph_id: row.id,
            name: row.name,
            description: row.description,
            tags: row.tags,
            sha256: row.sha256,
            schema_version: row.schema_version,
            source_count: row.source_count,
            fact_count: row.fact_count,
            concept_count: row.concept_count,
            bytes: row.bytes,
            owner: row.owner,
            created_at: row.created_at,
            key_id: row.signature.as_deref().and_then(origin::named).map(str::to_owned),
            signed: row.signature.is_some(),
        }
    }
}
