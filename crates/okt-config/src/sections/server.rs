//! The HTTP listener and its limits.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;
use crate::period::Period;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Address to listen on. `0.0.0.0` or `::` for all.
    #[schemars(schema_with = "format::ip_address")]
    pub host: IpAddr,
    /// Port to listen on; 0 lets the system pick a free one.
    pub port: u16,
    /// How long a whole request body may take to arrive.
    #[schemars(extend("x-positive" = true))]
    pub read_timeout: Period,
    /// How long a handler has to answer, once the body has arrived. A peer that reads the answer slowly is not cut
    /// off.
    #[schemars(extend("x-positive" = true))]
    pub write_timeout: Period,
    /// How long a request's head may take.
    #[schemars(extend("x-positive" = true))]
    pub header_timeout: Period,
    /// Between being told to stop and refusing connections: time for a load balancer to notice.
    pub drain_delay: Period,
    /// How long running requests may take to end after that.
    #[schemars(extend("x-positive" = true))]
    pub drain_timeout: Period,
    /// A second listener for `/metrics`; empty serves it on the first.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::socket_address")]
    pub metrics_addr: Option<SocketAddr>,
    // The next two become counts of semaphores, and tokio panics on a count that it can't hold. No machine serves
    // more than this.
    /// Requests being answered at once; more are told 503 with `Retry-After`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// Connections open at once; more wait in the system's backlog.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// Networks whose `X-Forwarded-For` is believed.
    #[schemars(schema_with = "format::ip_networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// How large the parts of a request may be.
    pub limits: BodyLimits,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyLimits {
    /// A JSON body.
    #[schemars(range(min = 1))]
    pub json_bytes: usize,
    /// Nesting of a JSON body.
    #[schemars(range(min = 1, max = 127))]
    pub json_depth: usize,
    /// The request target.
    #[schemars(range(min = 1))]
    pub url_bytes: usize,
    /// All headers together; the HTTP library needs at least 8 KiB.
    #[schemars(range(min = 8192))]
    pub header_bytes: usize,
    /// An uploaded file.
    #[schemars(range(min = 1))]
    pub upload_bytes: u64,
    /// A Decomposition Package.
    #[schemars(range(min = 1))]
    pub package_bytes: u64,
    /// A Graph Bundle, gzipped.
    #[schemars(range(min = 1))]
    pub bundle_bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    /// Requests a minute for each signed-in caller; 0 for no limit.
    pub api_per_minute: u32,
    /// Requests a minute for each address without a credential; 0 for no limit.
    pub anonymous_per_minute: u32,
    /// Tries to sign in, a minute for each address; 0 for no limit.
    pub login_per_minute: u32,
    /// Tries to sign in, an hour for each account; 0 for no limit.
    pub login_per_hour_per_account: u32,
    /// New accounts, an hour for each address; 0 for no limit.
    pub register_per_hour: u32,
    /// OAuth clients that register themselves, an hour for each address; 0 for no limit.
    pub oauth_register_per_hour: u32,
    /// Requests for tokens, a minute for each OAuth client and address; 0 for no limit.
    pub oauth_token_per_minute: u32,
}
