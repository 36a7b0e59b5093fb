//! The typed shape of the configuration, one file per noun. Doc comments become the descriptions in the JSON
//! schema and in the reference page, so they are written for the person who sets the key.

mod auth;
mod concepts;
mod databases;
mod log;
mod providers;
mod registry;
mod search;
mod server;
mod task;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use auth::{ApiKeys, Audit, Auth, Bootstrap, OAuth, Rbac};
pub use concepts::Concepts;
pub use databases::{Database, Isolation, SslMode, System};
pub use log::{Log, LogFormat, LogLevel, Telemetry};
pub use providers::*;
pub use registry::{Promptset, RegistryAccess, RegistryService};
pub use search::{Hybrid, Search};
pub use server::{BodyLimits, RateLimits, Server};
pub use task::{JOB_KINDS, LLM_JOB_KINDS, Task};

use crate::format;
use crate::presets::Preset;

/// Everything that can be set. The shipped values stand in `defaults.toml`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "okt configuration")]
pub struct Config {
    /// `development` forgives what a public deployment must not: it makes its own token secret and allows
    /// plain http. `production` refuses to start on such things.
    pub mode: Mode,
    /// The HTTP listener.
    pub server: Server,
    /// How many requests one caller may make. Stricter limits on sign-in and registration are fixed.
    pub rate_limits: RateLimits,
    /// What is written to standard error.
    pub log: Log,
    /// Traces sent to a collector.
    pub telemetry: Telemetry,
    /// Session tokens.
    pub auth: Auth,
    /// The OAuth 2.1 authorization server.
    pub oauth: OAuth,
    /// Personal API keys.
    pub api_keys: ApiKeys,
    /// The record of permission changes and denied requests.
    pub audit: Audit,
    /// Who may do what without being given a role.
    pub rbac: Rbac,
    /// What happens on the first start with an empty database.
    pub bootstrap: Bootstrap,
    /// Named Postgres databases. `default` is required; `tasks` holds the job queue; add one entry per tenant
    /// that needs its own. An entry with an empty `url` shares the database of `default`.
    #[schemars(schema_with = "format::by_name::<Database>")]
    pub databases: BTreeMap<String, Database>,
    /// The database of users, roles and repositories.
    pub system: System,
    /// Where repositories are put.
    pub isolation: Isolation,
    /// Background jobs.
    pub task: Task,
    /// Search inside a repository.
    pub search: Search,
    /// Which concepts and relations are shown.
    pub concepts: Concepts,
    /// Everything outside of the service, and the stages of processing that use it.
    pub providers: Providers,
    /// The shared registry service (`okt registry`). To use a registry, see `providers.registry`.
    pub registry: RegistryService,
    /// The preset of a repository that is created without naming one.
    pub default_repository_preset: String,
    /// Types of repository to choose from at creation, by id. Shipped: `general`, `scientific`, `enterprise`.
    #[schemars(schema_with = "format::by_name::<Preset>")]
    pub repository_presets: BTreeMap<String, Preset>,
}

/// How strict the service is with its own configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Development,
    Production,
}

impl Mode {
    pub fn is_production(self) -> bool {
        self == Self::Production
    }
}

impl Config {
    /// The database of that name, with the address and TLS settings of `default` filled in where it has none.
    pub fn database(&self, name: &str) -> Option<Database> {
        let mut found = self.databases.get(name)?.clone();
        if found.url.is_empty() {
            let default = self.databases.get(Database::DEFAULT)?;
            found.url = default.url.clone();
            found.ssl_mode = default.ssl_mode;
            found.ssl_root_cert.clone_from(&default.ssl_root_cert);
        }
        Some(found)
    }

    /// The name of the database that carries the system tables.
    pub fn system_database(&self) -> &str {
        if self.system.database.is_empty() { Database::DEFAULT } else { &self.system.database }
    }
}

impl Default for Config {
    /// The shipped defaults, read from the same text that is the lowest layer of [`crate::load`].
    fn default() -> Self {
        crate::defaults::typed()
    }
}
