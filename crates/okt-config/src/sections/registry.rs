//! The shared registry as a service of its own (`okt registry`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryService {
    /// `open`: anybody reads and writes; `read_open`: anybody reads, keys write; `closed`: keys for both.
    pub access: RegistryAccess,
    /// Which pushes are taken.
    pub promptset: Promptset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegistryAccess {
    Open,
    ReadOpen,
    Closed,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promptset {
    /// Whether a push without `promptset_hash` is refused.
    pub enable_validation: bool,
}
