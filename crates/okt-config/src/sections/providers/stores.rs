//! Where vectors and files are kept.

use std::path::PathBuf;

use okt_model::EMBEDDING_MODEL;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// `builtin-minilm-1`, the id of a model in `providers.ai.models`, or a name of your choice for the model in `path`; empty
    /// turns vectors off. Vectors are kept under this name: choose another, and run `okt reembed`, when the
    /// files in `path` or the settings below change. For another `passage_prefix` alone `okt reembed` is enough.
    pub model: String,
    /// Length of its vectors, 384 for `builtin-minilm-1`; must match the collections.
    #[schemars(range(min = 1, max = 65535))]
    pub dimensions: u32,
    /// Languages that the model was made for, as ISO 639-1 codes; empty for all. Facts in other languages are not compared by
    /// their vectors: they are merged only if their texts are equal, and are in no similar group. `builtin-minilm-1` was made
    /// for English, whatever is set here.
    pub languages: Vec<String>,
    /// Folder of a BERT-family embedding model (`config.json`, `tokenizer.json`, `model.safetensors`) that is run inside
    /// okt; empty for a model of the catalogue or the built-in one.
    #[serde(with = "format::optional_path")]
    #[schemars(with = "String")]
    pub path: Option<PathBuf>,
    /// How the model in `path` makes one vector of a text: `mean` of all tokens, or that of the first (`cls`). The model's
    /// description says which.
    pub pooling: Pooling,
    /// What the model in `path` wants before a question, as in `query: `. A model of the catalogue has its own.
    pub query_prefix: String,
    /// What the model in `path` wants before a text that is looked for, as in `passage: `. A model of the catalogue has its own.
    pub passage_prefix: String,
    /// Tokens of a text that the model in `path` reads; the rest of the text is left out.
    #[schemars(range(min = 8, max = 8192))]
    pub max_tokens: u32,
}

impl Embedding {
    /// The languages that a model was made for; empty for all. Of a model whose vectors are still searched although another
    /// one is configured, nothing is known.
    pub fn languages_of(&self, model: &str) -> Vec<String> {
        match model {
            EMBEDDING_MODEL => vec!["en".to_owned()],
            model if model == self.model => self.languages.clone(),
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    Mean,
    Cls,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VectorStore {
    /// Host name of a Qdrant; empty for pgvector, where the databases of repositories have it.
    pub host: String,
    /// Its gRPC port; REST is expected on the port below it.
    #[schemars(range(min = 2))]
    pub port: u16,
    /// API key; optional.
    pub api_key: Secret,
    /// Collection of facts.
    #[schemars(length(min = 1))]
    pub collection: String,
    /// Collection of concepts.
    #[schemars(length(min = 1))]
    pub concept_collection: String,
    /// Whether vectors of another model or of other dimensions are deleted at start-up and recreated: all facts of all
    /// repositories are embedded, and paid for, again.
    pub allow_recreate: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Storage backend of source files.
    pub backend: StorageBackend,
    /// Directory of the files, for `filesystem`. A relative path starts at the working directory.
    #[schemars(with = "String", length(min = 1))]
    pub root: PathBuf,
    /// Bucket of the files, for `s3`.
    pub s3: S3,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct S3 {
    /// Endpoint of an S3-compatible service; empty for AWS in the region.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub endpoint: Option<Url>,
    /// Region of the bucket.
    #[schemars(length(min = 1))]
    pub region: String,
    /// Name of the bucket, which must exist.
    pub bucket: String,
    /// Access key id.
    pub access_key_id: Secret,
    /// Secret access key.
    pub secret_access_key: Secret,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parsing {
    /// Path of the PDF library, `libpdfium.so`; empty for the one beside the program. Without it PDFs are rejected.
    #[serde(with = "format::optional_path")]
    #[schemars(with = "String")]
    pub pdfium: Option<PathBuf>,
    /// Whether text is recognised on PDF pages that are pictures, such as scans, by tesseract if it is installed. Such pages
    /// are marked. Recognition may take 5 minutes per file and rendering for it 10 seconds; pages not recognised by then have
    /// no text.
    pub ocr: bool,
    /// Path of tesseract; empty for the one in `PATH`.
    #[serde(with = "format::optional_path")]
    #[schemars(with = "String")]
    pub tesseract: Option<PathBuf>,
    /// Languages that text is recognised in, as tesseract names them: `eng`, or `eng+deu`. Each needs its data installed.
    #[schemars(regex(pattern = r"^[A-Za-z_]+(\+[A-Za-z_]+)*$"))]
    pub ocr_languages: String,
    /// The first pages of a PDF that are stored as images. Rendering may take 10 seconds; pages not rendered by then are
    /// skipped.
    #[schemars(range(max = 3000))]
    pub max_page_images: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageBackend {
    Filesystem,
    S3,
}
