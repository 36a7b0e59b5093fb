//! The shared registry as a service of its own (`okt registry`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryService {
    /// `open`: no key needed; `read_open`: writing needs a key; `closed`: reading and writing need a key.
    pub access: RegistryAccess,
    /// Which pushes are accepted.
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
    /// Whether a push without `promptset_hash` is rejected.
    pub enable_validation: bool,
}
