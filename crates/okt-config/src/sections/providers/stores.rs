//! Where vectors and files are kept.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// `builtin-minilm-1`, or the id of a model in `providers.ai.models`; empty turns vectors off.
    pub model: String,
    /// Length of its vectors, 384 for `builtin-minilm-1`; must match the collections.
    #[schemars(range(min = 1, max = 65535))]
    pub dimensions: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VectorStore {
    /// Host name of a Qdrant; empty for pgvector, where the databases of repositories have it.
    pub host: String,
    /// Its gRPC port; REST is expected on the port below it.
    #[schemars(range(min = 2))]
    pub port: u16,
    /// Key for it, if it wants one.
    pub api_key: Secret,
    /// Collection of facts.
    #[schemars(length(min = 1))]
    pub collection: String,
    /// Collection of concepts.
    #[schemars(length(min = 1))]
    pub concept_collection: String,
    /// Whether a collection of other dimensions is deleted and made anew. That loses its vectors.
    pub allow_recreate: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// What keeps the files.
    pub backend: StorageBackend,
    /// Their directory, for `filesystem`. A relative path starts at the working directory.
    #[schemars(with = "String", length(min = 1))]
    pub root: PathBuf,
    /// Their bucket, for `s3`.
    pub s3: S3,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct S3 {
    /// Address of a service that speaks the protocol; empty for Amazon's own in the region.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub endpoint: Option<Url>,
    /// Its region.
    #[schemars(length(min = 1))]
    pub region: String,
    /// Name of the bucket, which must exist.
    pub bucket: String,
    /// Id of the key.
    pub access_key_id: Secret,
    /// The key.
    pub secret_access_key: Secret,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parsing {
    /// The library that reads PDFs, `libpdfium.so`; empty: the one beside the program, and without one PDFs are refused.
    #[serde(with = "format::optional_path")]
    #[schemars(with = "String")]
    pub pdfium: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageBackend {
    Filesystem,
    S3,
}
