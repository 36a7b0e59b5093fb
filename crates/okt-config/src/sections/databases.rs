//! Named databases, and who lives in which.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;
use crate::period::Period;
use crate::secret::Secret;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://user:password@host:port/database`. Never shown. Empty shares the database of `default`.
    pub url: Secret,
    /// `verify-ca` checks the server's certificate, `verify-full` also its host name.
    pub ssl_mode: SslMode,
    /// File of certificates to trust, PEM; empty trusts the system's.
    #[serde(with = "format::optional_path")]
    #[schemars(with = "String")]
    pub ssl_root_cert: Option<PathBuf>,
    /// Size of the connection pool.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_conns: u32,
    /// How long to wait for a free connection.
    #[schemars(extend("x-positive" = true, "x-at-most" = "5m"))]
    pub acquire_timeout: Period,
    // PostgreSQL holds the next four in milliseconds, as 32-bit numbers, which end within the 25th day. It refuses
    // every connection that asks for more.
    /// How long one statement of a request may take; `0s` for no limit.
    #[schemars(extend("x-at-most" = "24d"))]
    pub statement_timeout: Period,
    /// How long one statement of a job may take; `0s` for no limit.
    #[schemars(extend("x-at-most" = "24d"))]
    pub worker_statement_timeout: Period,
    /// How long a statement waits for a lock; `0s` for no limit.
    #[schemars(extend("x-at-most" = "24d"))]
    pub lock_timeout: Period,
    /// How long a transaction may sit idle; `0s` for no limit.
    #[schemars(extend("x-at-most" = "24d"))]
    pub idle_in_transaction_timeout: Period,
}

impl Database {
    /// The entry that must exist.
    pub const DEFAULT: &str = "default";
}

impl Default for Database {
    /// What an entry added in an override file has where it says nothing. A test keeps it equal to the
    /// `default` entry of `defaults.toml`.
    fn default() -> Self {
        Self {
            url: Secret::default(),
            ssl_mode: SslMode::Disable,
            ssl_root_cert: None,
            max_conns: 200,
            acquire_timeout: Period::from_secs(3),
            statement_timeout: Period::from_secs(10),
            worker_statement_timeout: Period::from_secs(60),
            lock_timeout: Period::from_secs(3),
            idle_in_transaction_timeout: Period::from_secs(30),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    Disable,
    Require,
    VerifyCa,
    VerifyFull,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The database carrying the system tables; empty for `default`.
    pub database: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// Where new repositories land.
    #[schemars(length(min = 1))]
    pub default_database: String,
    /// Databases that may be picked when a repository is created; empty for none. The one that is set apart for
    /// the job queue can't be among them.
    pub allowed_databases: Vec<String>,
}
