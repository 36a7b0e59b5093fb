//! Where the named databases are: one endpoint per address, with the names that point to it and the schemas there.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_config::{Config, Database, Origin, SslMode};
use okt_model::Error;
use okt_pg::{Result, Why, connect};
use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::migrations::Schema;

/// For somebody at a keyboard who waits to hear it.
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a service that starts waits for a server that starts, too.
const PATIENCE: Duration = Duration::from_secs(30);

/// An address of a database that one or more names point to.
pub(crate) struct Endpoint {
    pub(crate) database: Database,
    pub(crate) options: PgConnectOptions,
    pub(crate) names: Vec<String>,
    pub(crate) schemas: Vec<Schema>,
}

impl Endpoint {
    pub(crate) fn server(&self) -> (&str, u16) {
        (self.options.get_host(), self.options.get_port())
    }

    /// Whether nothing works without it: the system's and the queue's. Any other holds some repositories, and only
    /// those wait for it.
    pub(crate) fn is_required(&self, config: &Config) -> bool {
        let required = [config.system_database(), &config.task.database];
        self.names.iter().any(|name| required.contains(&name.as_str()))
    }
}

/// How to reach a database, without the limits of a pool.
pub fn connect_options(database: &Database) -> Result<PgConnectOptions> {
    let ssl_mode = match database.ssl_mode {
        SslMode::Disable => PgSslMode::Disable,
        SslMode::Require => PgSslMode::Require,
        SslMode::VerifyCa => PgSslMode::VerifyCa,
        SslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    okt_pg::options(database.url.expose(), "okt", ssl_mode, database.ssl_root_cert.as_deref())
        .ok_or_else(|| Error::invalid("databases.*.url", "is not a PostgreSQL address").into())
}

/// The endpoints of this configuration, each under its first name. A name without an address of its own shares the
/// endpoint of `default`; two names with addresses are two endpoints, because their settings may differ. Repositories may live in
/// only one of those that lead to the same database, see [`crate::Databases::open`].
pub(crate) fn endpoints(config: &Config) -> Result<BTreeMap<String, Endpoint>> {
    let mut endpoints: BTreeMap<String, Endpoint> = BTreeMap::new();
    let (alone, sharing): (Vec<_>, Vec<_>) =
        config.databases.iter().partition(|(_, database)| !database.url.is_empty());
    for (name, database) in alone {
        let (database, options) = (database.clone(), connect_options(database)?);
        let endpoint =
            Endpoint { database, options, names: vec![name.clone()], schemas: schemas_of(config, name) };
        endpoints.insert(name.clone(), endpoint);
    }
    for (name, _) in sharing {
        let Some(endpoint) = endpoints.get_mut(Database::DEFAULT) else { continue };
        endpoint.names.push(name.clone());
        endpoint.schemas.extend(schemas_of(config, name));
        endpoint.schemas.sort_unstable();
        endpoint.schemas.dedup();
    }
    Ok(endpoints)
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

/// Waits for a server that is still starting.
pub(crate) async fn await_server(name: &str, endpoint: &Endpoint) -> Result<()> {
    // Nobody has said that there is a database at the default address, so nobody has to wait for it.
    let named = endpoint.database.url_origin != Origin::Default;
    let patience = if named { PATIENCE } else { Duration::ZERO };
    okt_pg::await_server(name, &endpoint.options, patience, |error| endpoint.about(name, error)).await
}

impl Endpoint {
    /// Whether it can be connected to right now, and else at once what is in the way.
    pub(crate) async fn reach(&self, name: &str) -> Result<PgConnection> {
        let reached = connect(&self.options, Some(REACH_TIMEOUT)).await;
        reached.map_err(|error| self.about(name, error))
    }

    /// As [`about`], with where the address was set.
    pub(crate) fn about(&self, name: &str, error: okt_pg::Error) -> okt_pg::Error {
        let error = match (about(name, error).0, &self.database.url_origin) {
            (Error::Operator(said), Origin::Default) => Error::Operator(format!(
                "no database is configured: set SVC__DATABASES__DEFAULT__URL, or url below [databases.default] in \
                 okt.toml, to postgres://user:password@host:5432/database. The default does not work here: {said}"
            )),
            (Error::Operator(said), origin) => Error::Operator(format!("{said} ({})", origin.place())),
            (error, _) => error,
        };
        error.into()
    }
}

/// Names the database in what an operator reads.
pub(crate) fn about(name: &str, error: okt_pg::Error) -> okt_pg::Error {
    let error = match error.0 {
        Error::Unavailable { cause, .. } | Error::Internal(cause) => {
            let said = match cause.downcast_ref::<sqlx::Error>() {
                // Its own words add where in PostgreSQL's source the error was raised.
                Some(error) => Why::of(error, None).to_string(),
                None => cause.to_string(),
            };
            Error::Operator(format!("databases.{name}: {said}"))
        }
        Error::Operator(text) if !text.starts_with("databases.") => {
            Error::Operator(format!("databases.{name}: {text}"))
        }
        error => error,
    };
    error.into()
}
