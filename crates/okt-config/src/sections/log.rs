//! Logs and traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The least important line that is still written.
    pub level: LogLevel,
    /// `pretty` for people, `json` for collectors.
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Pretty,
    Json,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// Base address of an OTLP/HTTP collector; empty sends nothing.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub otlp_endpoint: Option<Url>,
    /// The name under which traces of this process appear.
    #[schemars(length(min = 1))]
    pub service_name: String,
}
