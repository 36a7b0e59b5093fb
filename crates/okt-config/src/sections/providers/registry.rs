//! The shared registries that this instance uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::period::Period;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryClient {
    /// Base URL; empty turns it off.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub url: Option<Url>,
    /// How this instance authenticates. `bearer` and `hmac` need a key.
    pub auth_mode: AuthMode,
    /// Key for writing.
    pub api_key: Secret,
    /// Key for reading; empty for the one for writing.
    pub read_api_key: Secret,
    /// With what contributions are signed (`okt admin signing-key` makes one); empty: not at all. For all registries.
    pub signing_key: Secret,
    /// Models whose decompositions are accepted; `"*"` for all.
    pub allowed_models: Vec<String>,
    /// Results in one page of a search.
    #[schemars(range(min = 1, max = 200))]
    pub per_page: u32,
    /// Timeout of one search.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryEntry {
    /// Name in the settings of repositories; unique.
    #[schemars(schema_with = "format::name")]
    pub id: String,
    /// Base URL.
    #[schemars(schema_with = "format::required_http_url")]
    pub url: Url,
    /// How this instance authenticates. `bearer` and `hmac` need a key.
    #[serde(default)]
    pub auth_mode: AuthMode,
    /// Key for writing.
    #[serde(default)]
    pub api_key: Secret,
    /// Key for reading; empty for the one for writing.
    #[serde(default)]
    pub read_api_key: Secret,
    /// Models whose decompositions are accepted; `"*"` for all.
    #[serde(default = "all_models")]
    pub allowed_models: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    #[default]
    None,
    Bearer,
    Hmac,
}

fn all_models() -> Vec<String> {
    vec!["*".into()]
}
