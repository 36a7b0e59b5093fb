//! Named databases. Their addresses hold passwords, so no message repeats one.

use std::path::Path as FilePath;

use url::Url;

use super::{Breaches, is_loopback, no_such};
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
            found.at(
                &url,
                "must be set, here or as SVC__DATABASES__DEFAULT__URL: postgres://user:password@host:5432/database",
            );
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
        // The store gives the tables of repositories to every named database but this one.
        if *name == config.task.database && *name != config.isolation.default_database {
            found.between(
                "isolation.allowed_databases",
                &["task.database", "isolation.default_database"],
                format!(
                    "{name:?} is set apart for the job queue (task.database), so no repository can live there"
                ),
            );
        }
    }
    named("task.database", &config.task.database, found);
}

/// A database on another machine may well stand in a private network, so plain text is said and not refused.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    if !config.mode.is_production() {
        return Vec::new();
    }
    let is_bare = |database: &Database| {
        // One without an address shares that of `default`, and its note.
        let is_own = !database.url.is_empty();
        is_own && database.ssl_mode == SslMode::Disable && !is_on_this_machine(&database.url)
    };
    let bare = config.databases.iter().filter(|(_, database)| is_bare(database));
    bare.map(|(name, _)| {
        format!(
            "databases.{name}.ssl_mode: \"disable\" lets the network on the way to that database read along; \
             \"verify-full\" does not"
        )
    })
    .collect()
}

/// Whether the address leads to loopback or to a socket in the file system. As for the driver, the last host that it
/// names counts.
fn is_on_this_machine(address: &Secret) -> bool {
    let Ok(url) = Url::parse(address.expose()) else {
        return false;
    };
    let asked = url.query_pairs().filter(|(key, _)| key == "host" || key == "hostaddr").last();
    let host = match &asked {
        Some((_, host)) => host,
        None => url.host_str().unwrap_or_default(),
    };
    let is_socket = host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f");
    is_socket || is_loopback(host)
}

/// What may stand behind the question mark of an address.
const PARAMETERS: [&str; 8] =
    ["application_name", "dbname", "host", "hostaddr", "options", "password", "port", "user"];

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
    } else if url.query_pairs().any(|(key, _)| key.starts_with("ssl")) {
        // Two places for one thing would let the laxer one win unseen.
        Some("must not set TLS; use ssl_mode and ssl_root_cert beside it")
    } else if url.query_pairs().any(|(key, _)| !PARAMETERS.contains(&&*key)) {
        // The driver would pass over a mistyped one, and write it into the log with its value.
        Some(
            "may carry no parameters but application_name, dbname, host, hostaddr, options, password, port and user",
        )
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
