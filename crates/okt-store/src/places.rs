//! Where the named databases are: one place per address, with the names that point to it and what lives there.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use okt_config::{Config, Database, SslMode};
use okt_model::{Error, Result};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::error::from_sqlx;
use crate::migrate::Schema;

/// A host that swallows packets must not hold up a start for as long as the kernel would.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// One place that one or more names point to.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) options: PgConnectOptions,
    pub(crate) names: Vec<String>,
    pub(crate) schemas: Vec<Schema>,
}

impl Place {
    pub(crate) fn server(&self) -> (&str, u16) {
        (self.options.get_host(), self.options.get_port())
    }
}

/// How to reach a database, without the limits of a pool.
pub fn connect_options(database: &Database) -> Result<PgConnectOptions> {
    // The parser's own message may repeat the address, and with it the password.
    let options = PgConnectOptions::from_str(database.url.expose())
        .map_err(|_| Error::invalid("databases.*.url", "is not a PostgreSQL address"))?;
    let ssl_mode = match database.ssl_mode {
        SslMode::Disable => PgSslMode::Disable,
        SslMode::Require => PgSslMode::Require,
        SslMode::VerifyCa => PgSslMode::VerifyCa,
        SslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    let options = options
        .application_name("okt")
        .ssl_mode(ssl_mode)
        .log_slow_statements(tracing::log::LevelFilter::Warn, Duration::from_secs(1));
    Ok(match &database.ssl_root_cert {
        Some(path) => options.ssl_root_cert(path),
        None => options,
    })
}

/// The places of this configuration, each under its first name. A name without an address of its own shares the
/// place of `default`; two names with addresses are two places, because their settings may differ. Repositories may live in
/// only one of those that lead to the same database, see [`crate::Databases::open`].
pub(crate) fn places(config: &Config) -> Result<BTreeMap<String, Place>> {
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    let (alone, sharing): (Vec<_>, Vec<_>) =
        config.databases.iter().partition(|(_, database)| !database.url.is_empty());
    for (name, database) in alone {
        let (database, options) = (database.clone(), connect_options(database)?);
        let place = Place { database, options, names: vec![name.clone()], schemas: schemas_of(config, name) };
        places.insert(name.clone(), place);
    }
    for (name, _) in sharing {
        let Some(place) = places.get_mut(Database::DEFAULT) else { continue };
        place.names.push(name.clone());
        place.schemas.extend(schemas_of(config, name));
        place.schemas.sort_unstable();
        place.schemas.dedup();
    }
    Ok(places)
}

/// A repository may live in any named database but the one that is set apart for the queue.
pub(crate) fn schemas_of(config: &Config, name: &str) -> Vec<Schema> {
    let (system, queue) = (name == config.system_database(), name == config.task.database);
    let repositories = !queue || name == config.isolation.default_database;
    let schemas = [
        (system, Schema::System),
        (repositories, Schema::Repository),
        (queue, Schema::Tasks),
        (repositories, Schema::Vectors),
    ];
    schemas.into_iter().filter_map(|(there, schema)| there.then_some(schema)).collect()
}

pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection> {
    match tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await {
        Ok(connected) => connected.map_err(from_sqlx),
        Err(elapsed) => Err(Error::Unavailable { service: "the database", cause: Box::new(elapsed) }),
    }
}

/// Waits for a server that is still starting, as it does when everything boots at once.
pub(crate) async fn await_server(name: &str, options: &PgConnectOptions) -> Result<()> {
    const TRIES: u32 = 60;
    let mut tries = 1;
    loop {
        match connect(options).await {
            Ok(conn) => return conn.close().await.map_err(from_sqlx),
            Err(error) if error.retryable() && tries < TRIES => {
                if tries % 10 == 1 {
                    tracing::warn!(database = name, "the database does not answer yet, trying again");
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
                tries += 1;
            }
            Err(error) => return Err(about(name, error)),
        }
    }
}

/// Names the database in what an operator reads.
pub(crate) fn about(name: &str, error: Error) -> Error {
    match error {
        Error::Unavailable { cause, .. } | Error::Internal(cause) => {
            Error::Operator(format!("databases.{name}: {cause}"))
        }
        error => error,
    }
}
