//! The MCP endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// Names under which clients may address `/mcp`, beside the host of `oauth.issuer`: `host`, or `host:port` where the port
    /// is not that of the scheme. In development also every name of this machine for itself.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call `/mcp`, beside that of `oauth.issuer`, such as `https://app.example.org`. In
    /// development also pages of this machine.
    pub allowed_origins: Vec<String>,
}
