//! The shared registry as a service of its own (`okt registry`).

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::providers::Storage;
use crate::format;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryService {
    /// Address that the registry listens on.
    #[schemars(schema_with = "format::ip_address")]
    pub host: IpAddr,
    /// Port; 0 lets the system pick one.
    pub port: u16,
    /// Which of the named databases holds its rows.
    #[schemars(length(min = 1))]
    pub database: String,
    /// Where packages and bundles are kept.
    pub storage: Storage,
    /// `open`: no key needed; `read_open`: writing needs a key; `closed`: reading and writing need a key.
    pub access: RegistryAccess,
    /// Packages and bundles that all callers without a key together may push in a day (UTC), where `access` is `open`.
    pub anonymous_daily_pushes: u32,
    /// Bytes of packages and bundles that a key may push in a day (UTC), and all callers without a key together.
    pub daily_bytes: u64,
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
