//! The typed shape of the configuration, one file per noun. Doc comments become the descriptions in the JSON
//! schema and in the reference page, so they are written for the person who sets the key.

mod ask;
mod auth;
mod concepts;
mod databases;
mod limits;
mod log;
mod mcp;
mod providers;
mod registry;
mod search;
mod server;
mod task;

use std::collections::BTreeMap;

use okt_model::{EMBEDDING_MODEL, Money, SpendingLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ask::Ask;
pub use auth::{ApiKeys, Audit, Auth, Bootstrap, OAuth, Rbac, Registration};
pub use concepts::Concepts;
pub use databases::{Database, Isolation, SslMode, System};
pub use limits::{Budget, Limits};
pub use log::{Log, LogFormat, LogLevel, Telemetry};
pub use mcp::Mcp;
pub use providers::*;
pub use registry::{Promptset, RegistryAccess, RegistryService};
pub use search::{Fusion, Hybrid, Rerank, Search};
pub use server::{BodyLimits, Metrics, RateLimits, Server};
pub use task::{JOB_KINDS, LLM_JOB_KINDS, Task};

use crate::format;
use crate::presets::Preset;

pub(crate) const FACT_EXTRACTION: &str = "providers.decomposition.fact_extraction.model";
pub(crate) const CONCEPT_EXTRACTION: &str = "providers.decomposition.concept_extraction.model";
pub(crate) const POSTURE: &str = "providers.reports.posture.model";
pub(crate) const EMBEDDING: &str = "providers.embedding.model";
pub(crate) const JUDGE: &str = "providers.dedup.judge_model";
pub(crate) const RERANK: &str = "search.rerank.model";
pub(crate) const ASK_CHECK: &str = "ask.check_model";

/// What words count for beside vectors of the built-in model, measured on public data: with less they are worse than words alone.
const BUILTIN_LEXICAL_WEIGHT: f64 = 0.7;

/// Everything that can be set. The shipped values stand in `defaults.toml`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "okt configuration")]
pub struct Config {
    /// `development` creates its own token secret and allows plain http; `production` refuses to start with either.
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
    /// The endpoint for agents (Model Context Protocol).
    pub mcp: Mcp,
    /// Personal API keys.
    pub api_keys: ApiKeys,
    /// The record of permission changes and denied requests.
    pub audit: Audit,
    /// What repositories may spend on models. What all of them may spend together is `providers.ai.monthly_usd`.
    pub budget: Budget,
    /// Quotas. They apply to administrators as well.
    pub limits: Limits,
    /// Permissions without a role.
    pub rbac: Rbac,
    /// First start with an empty database.
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
    /// Answers to questions.
    pub ask: Ask,
    /// Which concepts and relations are shown.
    pub concepts: Concepts,
    /// External services, and the processing stages that use them.
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

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Production => "production",
        }
    }
}

impl Config {
    /// The database of that name, with the address and TLS settings of `default` filled in where it has none.
    pub fn database(&self, name: &str) -> Option<Database> {
        let mut found = self.databases.get(name)?.clone();
        if found.url.is_empty() {
            let default = self.databases.get(Database::DEFAULT)?;
            found.url = default.url.clone();
            found.url_origin = default.url_origin.clone();
            found.ssl_mode = default.ssl_mode;
            found.ssl_root_cert.clone_from(&default.ssl_root_cert);
        }
        Some(found)
    }

    /// How many facts a concept has to have to be listed and summed up.
    pub fn concept_floor(&self) -> u32 {
        let refinement = &self.providers.refinement;
        let noise = if refinement.enabled { refinement.prune_threshold } else { 0 };
        self.concepts.min_concept_fact_count.max(noise)
    }

    /// What may be spent on models in a month.
    pub fn spending_limits(&self) -> SpendingLimits {
        let limit = |usd: f64| Money::from_usd(usd).filter(|money| !money.is_zero());
        SpendingLimits {
            installation: limit(self.providers.ai.monthly_usd),
            default: limit(self.budget.default_usd),
            most: limit(self.budget.max_usd),
        }
    }

    /// Every setting that names a model, with the name; empty for none.
    pub(crate) fn named_models(&self) -> [(&'static str, &str); 12] {
        let providers = &self.providers;
        let decomposition = &providers.decomposition;
        [
            (FACT_EXTRACTION, &decomposition.fact_extraction.model),
            ("providers.decomposition.image_extraction.model", &decomposition.image_extraction.model),
            (CONCEPT_EXTRACTION, &decomposition.concept_extraction.model),
            (EMBEDDING, &providers.embedding.model),
            (JUDGE, &providers.dedup.judge_model),
            (POSTURE, &providers.reports.posture.model),
            ("providers.summarization.model", &providers.summarization.model),
            ("providers.refinement.model", &providers.refinement.model),
            ("providers.synthesis.model", &providers.synthesis.model),
            (RERANK, &self.search.rerank.model),
            ("ask.model", &self.ask.model),
            (ASK_CHECK, &self.ask.check_model),
        ]
        .map(|(key, model)| (key, model.as_str()))
    }

    /// What words count for when the ranking by words and that by vectors become one by score; `None` if it is not known for the
    /// embedding model.
    pub fn lexical_weight(&self) -> Option<f64> {
        let model = &self.providers.embedding.model;
        if model == EMBEDDING_MODEL {
            return Some(BUILTIN_LEXICAL_WEIGHT);
        }
        self.providers.ai.models.iter().find(|known| known.id == *model)?.lexical_weight
    }

    /// The models of the catalogue that a setting names, each with the first one that does.
    pub fn models_in_use(&self) -> impl Iterator<Item = (&'static str, &Model)> {
        self.providers.ai.models.iter().filter_map(|model| {
            let (key, _) = self.named_models().into_iter().find(|(_, name)| *name == model.id)?;
            Some((key, model))
        })
    }

    /// Where `/metrics` is served: what it tells is not for the public, so in production it has to be configured.
    pub fn metrics(&self) -> Metrics {
        let server = &self.server;
        match server.metrics_addr {
            Some(address) if (address.ip(), address.port()) == (server.host, server.port) => Metrics::Main,
            Some(address) => Metrics::At(address),
            None if self.mode.is_production() => Metrics::Nowhere,
            None => Metrics::Main,
        }
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
