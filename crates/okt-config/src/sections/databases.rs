//! Named databases, and who lives in which.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use crate::format;
use crate::origin::Origin;
use crate::period::Period;
use crate::secret::{MASK, Secret};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://user:password@host:port/database`. Its password is never shown. Empty shares the database of
    /// `default`.
    #[serde(serialize_with = "without_password")]
    pub url: Secret,
    /// Where `url` was set, for whoever has to correct it.
    #[serde(skip)]
    pub url_origin: Origin,
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
    /// How long a transaction may be idle; `0s` for no limit.
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
            url_origin: Origin::Default,
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
    /// Database of new repositories.
    #[schemars(length(min = 1))]
    pub default_database: String,
    /// Databases that may be picked when a repository is created; empty for none. A database reserved for
    /// the job queue cannot be among them.
    pub allowed_databases: Vec<String>,
}

/// Which server and database are in force is what people look for; only the password is secret.
fn without_password<S: Serializer>(address: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    let Ok(mut url) = Url::parse(address.expose()) else {
        return address.serialize(serializer);
    };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return serializer.serialize_str(MASK);
    }
    if url.query_pairs().any(|(key, _)| key == "password") {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let shown = |(key, value): (String, String)| {
            let value = if key == "password" { MASK.to_owned() } else { value };
            (key, value)
        };
        url.query_pairs_mut().clear().extend_pairs(pairs.into_iter().map(shown));
    }
    serializer.serialize_str(url.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, shown) in [
            ("", ""),
            ("postgres://okt@127.0.0.1:5432/okt", "postgres://okt@127.0.0.1:5432/okt"),
            ("postgres://okt:s3cr3t@db.example:6432/okt", "postgres://okt:***@db.example:6432/okt"),
            (
                "postgres://okt:s3%40cr3t@h/okt?application_name=a",
                "postgres://okt:***@h/okt?application_name=a",
            ),
            ("postgres://h/okt?user=u&password=s3cr3t", "postgres://h/okt?user=u&password=***"),
            ("postgres:///okt?host=/run/pg&password=s3cr3t", "postgres:///okt?host=%2Frun%2Fpg&password=***"),
            ("s3cr3t", "***"),
        ] {
            let database = Database { url: Secret::from(address.to_owned()), ..Database::default() };
            assert_eq!(serde_json::to_value(&database).unwrap()["url"], shown, "{address}");
        }
    }
}
