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
    /// The protocol that is spoken.
    pub kind: WebSearchKind,
    /// Where; empty for the public address of `serper` or `brave`. `searxng` has none, so it needs one.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub base_url: Option<Url>,
    /// Key for it.
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
    /// Where.
    #[schemars(schema_with = "format::required_http_url")]
    pub base_url: Url,
    /// Sent along, as the service asks of polite callers.
    #[schemars(schema_with = "format::email")]
    pub email: String,
    /// Key for it, if there is one.
    pub api_key: Secret,
}
