//! Named databases. Their addresses hold passwords, so no message repeats one.

use std::path::Path as FilePath;

use url::Url;

use super::{Breaches, no_such};
use crate::secret::Secret;
use crate::sections::{Config, Database, SslMode};

pub(super) fn rules(config: &Config, is_file: &dyn Fn(&FilePath) -> bool, found: &mut Breaches) {
    for (name, database) in &config.databases {
        let url = format!("databases.{name}.url");
        if !database.url.is_empty() {
            if let Some(message) = address_fault(&database.url) {
                found.at(&url, message);
            }
        } else if name == Database::DEFAULT {
            found.at(&url, "must be set: every other database may fall back on it");
        }
        certificate(name, database, is_file, found);
    }

    let named = |key: &str, name: &str, found: &mut Breaches| {
        if !config.databases.contains_key(name) {
            found.at(key, no_such("database", name, config.databases.keys().map(String::as_str)));
        }
    };
    named("system.database", config.system_database(), found);
    named("isolation.default_database", &config.isolation.default_database, found);
    for name in &config.isolation.allowed_databases {
        named("isolation.allowed_databases", name, found);
    }
    named("task.database", &config.task.database, found);
}

fn address_fault(address: &Secret) -> Option<&'static str> {
    let Ok(url) = Url::parse(address.expose()) else {
        return Some("must be an address such as postgres://user:password@host:5432/database");
    };
    let asks = |name: &str| url.query_pairs().any(|(key, _)| key == name);
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        Some("must begin with postgres:// or postgresql://")
    } else if url.host_str().is_none_or(str::is_empty) && !asks("host") {
        Some("must name a host")
    } else if url.path().trim_matches('/').is_empty() && !asks("dbname") {
        Some("must name a database, as in postgres://host/database")
    } else if asks("sslmode") || asks("sslrootcert") {
        // Two places for one thing would let the laxer one win unseen.
        Some("must not set TLS; use ssl_mode and ssl_root_cert beside it")
    } else {
        None
    }
}

fn certificate(name: &str, database: &Database, is_file: &dyn Fn(&FilePath) -> bool, found: &mut Breaches) {
    let Some(file) = &database.ssl_root_cert else {
        return;
    };
    let key = format!("databases.{name}.ssl_root_cert");
    if matches!(database.ssl_mode, SslMode::VerifyCa | SslMode::VerifyFull) && !is_file(file) {
        found.at(&key, format!("{} is not a file", file.display()));
    }
}
