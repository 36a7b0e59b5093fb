//! How much anybody may have and spend.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What a repository may spend on models in a calendar month (UTC) unless a budget is set for it, in US
    /// dollars; 0 for no limit.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub default_usd: f64,
    /// Upper limit of the monthly budget of any repository, in US dollars; 0 for no limit.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub max_usd: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Repositories that one person may own; 0 for no limit.
    pub repositories_per_user: u32,
    /// Sources in one repository; 0 for no limit.
    pub sources_per_repository: u64,
    /// Bytes of files that one person may have uploaded, all repositories together; 0 for no limit. What is
    /// fetched from URLs is not counted: `sources_per_repository` and the sizes in `providers.resolution.fetch` bound it.
    pub bytes_per_user: u64,
}
