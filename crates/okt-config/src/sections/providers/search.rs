//! Where new sources are looked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchProviders {
    /// Web search.
    pub web: WebSearch,
    /// Search in scholarly works, by the `OpenAlex` protocol.
    pub academic: AcademicSearch,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    /// Protocol of the service.
    pub kind: WebSearchKind,
    /// Base URL; empty for the public address of `serper` or `brave`. `searxng` has none, so it needs one.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub base_url: Option<Url>,
    /// API key.
    pub api_key: Secret,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebSearchKind {
    Serper,
    Searxng,
    Brave,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcademicSearch {
    /// Base URL.
    #[schemars(schema_with = "format::required_http_url")]
    pub base_url: Url,
    /// Contact e-mail address sent with each request, as the service asks.
    #[schemars(schema_with = "format::email")]
    pub email: String,
    /// API key; optional.
    pub api_key: Secret,
}
