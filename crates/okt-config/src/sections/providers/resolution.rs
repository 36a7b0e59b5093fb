//! How an address or DOI becomes a document.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::format;
use crate::period::Period;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// A page with less text than this is rejected: another provider is tried, and if none finds more the source fails; in
    /// characters.
    pub min_content_chars: u32,
    /// Whether robots.txt is obeyed: the rules for the agent `okt`, or else those for all agents.
    pub robots: bool,
    /// Requests to one host at once, over all sources.
    #[schemars(range(min = 1, max = 100))]
    pub per_host_concurrency: u32,
    /// Least time between the starts of two requests to one host. A longer `Crawl-delay` in robots.txt counts instead,
    /// up to 10 seconds.
    pub per_host_delay: Period,
    /// Plain HTTP.
    pub fetch: Fetch,
    /// Open-access copies of scholarly works, by the Unpaywall protocol.
    pub open_access: OpenAccess,
    /// HTTP with a browser's TLS fingerprint.
    pub tls: Tls,
    /// A browser that solves challenges, by the `FlareSolverr` protocol.
    pub challenge_solver: ChallengeSolver,
    /// Skipping of providers that keep failing for a host.
    pub auto_skip: AutoSkip,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Timeout of one attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
    /// Addresses, each with its port, that may be fetched although they are not public or the port is neither 80 nor
    /// 443. Every other private address and every other port is rejected for all users. Webhooks may be sent there, in production
    /// also by plain http.
    #[schemars(schema_with = "format::socket_addresses")]
    pub allow_private: Vec<SocketAddr>,
    /// Retries.
    pub retry: Retry,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts, the first included; 1 for no second.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Wait before the second attempt; doubled for each further one.
    pub base_delay: Period,
    /// Longest wait.
    pub max_delay: Period,
    /// Further attempts after a 403; 0 takes a 403 as final.
    #[schemars(range(max = 100))]
    pub retry_403_max_attempts: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAccess {
    /// Base URL.
    #[schemars(schema_with = "format::required_http_url")]
    pub base_url: Url,
    /// Contact e-mail address, which the service requires; empty turns it off.
    #[schemars(schema_with = "format::email")]
    pub email: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The browser to look like: `chrome`, `edge`, `firefox`, `opera` or `safari`, with a version such as `chrome_149` or
    /// without one for the newest that is known. Empty turns it off.
    pub impersonate: String,
    /// Timeout of one attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChallengeSolver {
    /// Base URL of a solver; empty turns it off, unless `endpoints` has some.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub url: Option<Url>,
    /// Base URLs of several solvers, used in turn.
    #[schemars(schema_with = "format::http_urls")]
    pub endpoints: Vec<Url>,
    /// Challenges solved at once; 0 for no limit.
    pub max_concurrency: u32,
    /// Timeout of one attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
    /// Retries.
    pub retry: Retry,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoSkip {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Least number of attempts before a pair of host and provider is skipped.
    #[schemars(range(min = 1))]
    pub min_sample: u32,
    /// Share of failures at which the pair is skipped.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub failure_threshold: f64,
    /// How long it is skipped.
    #[schemars(extend("x-positive" = true))]
    pub cooldown: Period,
}
