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
    /// How long a handler may take, once the request body has arrived. How long the client may take to read the response
    /// is limited by `write_stall_timeout`.
    #[schemars(extend("x-positive" = true))]
    pub write_timeout: Period,
    /// A client that reads less than 1 KiB/s of a response for this long is disconnected: the connection, or over HTTP/2
    /// the stream. Reading a large response may take twenty times as long in total.
    #[schemars(extend("x-positive" = true))]
    pub write_stall_timeout: Period,
    /// How long the headers of a request may take to arrive.
    #[schemars(extend("x-positive" = true))]
    pub header_timeout: Period,
    /// Delay between the stop signal and refusing connections, for load balancers to notice.
    pub drain_delay: Period,
    /// How long running requests may take to end after that.
    #[schemars(extend("x-positive" = true))]
    pub drain_timeout: Period,
    /// Address of a separate listener for `/metrics`. The address of the main listener (`host` and `port`) serves it
    /// there. Empty serves it on the main listener in development, and nowhere in production.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::socket_address")]
    pub metrics_addr: Option<SocketAddr>,
    // The next two become counts of semaphores, and tokio panics on a count that it can't hold. No machine serves
    // more than this.
    /// Requests handled at once; further ones get 503 with `Retry-After`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// Open connections; further ones wait in the listen backlog of the operating system.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// Networks whose `X-Forwarded-For` is trusted.
    #[schemars(schema_with = "format::ip_networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// Size limits of requests and responses.
    pub limits: BodyLimits,
}

/// Where `/metrics` is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metrics {
    Nowhere,
    /// On the main listener.
    Main,
    /// On a listener of its own.
    At(SocketAddr),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyLimits {
    /// Size of a JSON body.
    #[schemars(range(min = 1))]
    pub json_bytes: usize,
    /// Size of a JSON body that carries a report.
    #[schemars(range(min = 1))]
    pub report_bytes: usize,
    /// Nesting depth of a JSON body.
    #[schemars(range(min = 1, max = 127))]
    pub json_depth: usize,
    /// Length of the request target.
    #[schemars(range(min = 1))]
    pub url_bytes: usize,
    /// Size of all headers together; the HTTP library needs at least 8 KiB.
    #[schemars(range(min = 8192))]
    pub header_bytes: usize,
    /// Size of an uploaded file.
    #[schemars(range(min = 1))]
    pub upload_bytes: u64,
    /// Size of all buffered responses together: an eighth for all anonymous callers, the rest for authenticated ones. One
    /// caller may use an eighth of either share.
    #[schemars(range(min = 1))]
    pub answer_bytes: usize,
    /// Size of a Decomposition Package.
    #[schemars(range(min = 1))]
    pub package_bytes: u64,
    /// Size of a gzipped Graph Bundle.
    #[schemars(range(min = 1))]
    pub bundle_bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    /// Requests per minute and credential; all credentials of one user together have twice as many. 0 for no limit.
    pub api_per_minute: u32,
    /// Requests per minute and client address without a credential; 0 for no limit.
    pub anonymous_per_minute: u32,
    /// Sign-in attempts per minute and client address; 0 for no limit.
    pub login_per_minute: u32,
    /// Sign-in attempts per hour, account and client address; 0 for no limit.
    pub login_per_hour_per_account: u32,
    /// Sign-in attempts per hour and account, from all client addresses together; 0 for no limit. An address that signed
    /// in to the account recently is neither counted nor rejected.
    pub login_per_hour_per_account_in_all: u32,
    /// New accounts per hour and client address; 0 for no limit.
    pub register_per_hour: u32,
    /// Dynamic OAuth client registrations per hour and client address; 0 for no limit.
    pub oauth_register_per_hour: u32,
    /// Token requests per minute, OAuth client and client address; 0 for no limit.
    pub oauth_token_per_minute: u32,
    /// Searches for new sources per hour and user, in all repositories together; 0 for no limit. Those of the whole
    /// installation (`source_provider:execute`) are not counted.
    pub source_search_per_hour: u32,
}
