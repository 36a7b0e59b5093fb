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
    /// A page with less text than this is not taken: another provider is asked, and when none finds more the source fails; in characters.
    pub min_content_chars: u32,
    /// Whether a site's robots.txt is heeded. Rules for the agent `okt`, or else for everyone, count.
    pub robots: bool,
    /// Requests to one host at once, over all sources.
    #[schemars(range(min = 1, max = 100))]
    pub per_host_concurrency: u32,
    /// Least time between the starts of two requests to one host. A longer `Crawl-delay` in robots.txt counts instead,
    /// up to 10 seconds.
    pub per_host_delay: Period,
    /// Plain HTTP.
    pub fetch: Fetch,
    /// Free copies of scholarly works, by the Unpaywall protocol.
    pub open_access: OpenAccess,
    /// HTTP with a browser's TLS fingerprint.
    pub tls: Tls,
    /// A browser that solves challenges, by the `FlareSolverr` protocol.
    pub challenge_solver: ChallengeSolver,
    /// Leaving out providers that keep failing for a host.
    pub auto_skip: AutoSkip,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Whether it is used.
    pub enabled: bool,
    /// For one whole attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
    /// Addresses, each with its port, that may be fetched although they are not public or the port is neither 80 nor
    /// 443. Every other private address and every other port is refused, whoever asks.
    #[schemars(schema_with = "format::socket_addresses")]
    pub allow_private: Vec<SocketAddr>,
    /// Further attempts.
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
    /// Where.
    #[schemars(schema_with = "format::required_http_url")]
    pub base_url: Url,
    /// The service refuses callers without one; empty turns it off.
    #[schemars(schema_with = "format::email")]
    pub email: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The browser to look like: `chrome`, `edge`, `firefox`, `opera` or `safari`, with a version such as `chrome_149` or
    /// without one for the newest that is known. Empty turns it off.
    pub impersonate: String,
    /// For one whole attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChallengeSolver {
    /// Where; empty turns it off, unless `endpoints` has some.
    #[serde(with = "format::optional")]
    #[schemars(schema_with = "format::http_url")]
    pub url: Option<Url>,
    /// Several solvers, used in turn.
    #[schemars(schema_with = "format::http_urls")]
    pub endpoints: Vec<Url>,
    /// Challenges being solved at once; 0 for no cap.
    pub max_concurrency: u32,
    /// For one whole attempt.
    #[schemars(extend("x-positive" = true))]
    pub timeout: Period,
    /// Further attempts.
    pub retry: Retry,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoSkip {
    /// Whether it is used.
    pub enabled: bool,
    /// Attempts before a host and provider are judged.
    #[schemars(range(min = 1))]
    pub min_sample: u32,
    /// Share of failures at which the pair is left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub failure_threshold: f64,
    /// How long it is left out.
    #[schemars(extend("x-positive" = true))]
    pub cooldown: Period,
}
