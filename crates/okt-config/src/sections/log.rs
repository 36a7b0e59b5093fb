//! Logs and traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Least severe level that is logged.
    pub level: LogLevel,
    /// `pretty` for people, `json` for log collectors.
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
    /// Base URL of an OTLP/HTTP collector; empty exports nothing.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub otlp_endpoint: Option<Url>,
    /// Service name of this process in traces.
    #[schemars(length(min = 1))]
    pub service_name: String,
}
