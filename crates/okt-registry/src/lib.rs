//! The shared registry (`okt registry`): Decomposition Packages of sources and Graph Bundles, given by some installations and taken by
//! others.
//!
//! It has a database and files of its own and knows nothing of repositories. Rows say what there is, files hold it; a file is
//! written before the row that speaks of it, and is named by what is in it. What is pushed is read whole and refused whole.

mod auth;
mod decompositions;
mod files;
mod graphs;
mod keys;
mod openapi;
mod pages;
mod sources;
mod store;
mod views;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use okt_config::{Config, Metrics, RegistryAccess, SslMode};
use okt_http::Guard::{self, Probe, Public};
use okt_http::{Edge, Routes, route};
use okt_model::{Action, Error, Object, Permission, Result};
use okt_pg::{Limits, Migrator, Pool, Pooled, Tx};
use sqlx::SqlSafeStr as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

pub use keys::{Key, NewKey};

use crate::files::Files;
use crate::keys::Seal;

const SCHEMA: &str = "okt_registry";
const PATIENCE: Duration = Duration::from_secs(5);
/// What nobody needs any more is removed so often.
const TIDY: Duration = Duration::from_mins(1);

const READ: Guard = Guard::Needs(Permission { object: Object::Source, action: Action::Read });
const WRITE: Guard = Guard::Needs(Permission { object: Object::Source, action: Action::Write });

/// Writes down what was counted in this process.
pub type Render = Box<dyn Fn() -> String + Send + Sync>;

/// The registry of this process. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Shared>);

pub struct Shared {
    pool: Pool,
    files: Files,
    access: RegistryAccess,
    /// Whether a push needs a promptset hash.
    validates: bool,
    bundle_bytes: u64,
    seal: Seal,
    document: OnceLock<Bytes>,
    edge: OnceLock<Arc<Edge>>,
    metrics: Render,
    /// Whether everybody who reaches the service may read its metrics.
    shows_metrics: bool,
}

impl Deref for Registry {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Registry {
    /// Brings the database up to date and opens it. `secret` is the signing secret of the configuration.
    pub async fn open(config: &Config, secret: &[u8], metrics: Render) -> Result<Self> {
        let (options, limits, connections) = database(config)?;
        okt_pg::await_server(&config.registry.database, &options, Duration::from_secs(30), |error| error)
            .await?;
        let schema = okt_pg::Schema::new(SCHEMA, sqlx::migrate!("../okt-store/migrations/registry"));
        Migrator::lock(&options, "okt registry").await?.run(&[schema], None).await?;
        let session = okt_pg::session(&options, &limits);
        Ok(Self(Arc::new(Shared {
            pool: Pool::new(session, None, connections, PATIENCE),
            files: Files::open(&config.registry.storage)?,
            access: config.registry.access,
            validates: config.registry.promptset.enable_validation,
            bundle_bytes: config.server.limits.bundle_bytes,
            seal: Seal::derive(secret),
            document: OnceLock::new(),
            edge: OnceLock::new(),
            metrics,
            shows_metrics: matches!(config.metrics(), Metrics::Main),
        })))
    }

    /// All routes of the service.
    pub fn table(&self, edge: &Arc<Edge>) -> Result<Routes<Self>> {
        let _ = self.edge.set(Arc::clone(edge));
        let routes = if self.shows_metrics { self.probes(edge) } else { self.health(edge) };
        let routes = routes
            .at_any_query(Public, route!(openapi::show))
            .at_any_query(READ, route!(pages::browse))
            .at_any_query(READ, route!(pages::source))
            .at(READ, route!(sources::search))
            .at(WRITE, route!(sources::create))
            .at(READ, route!(sources::list))
            .at(READ, route!(sources::show))
            .at(READ, route!(decompositions::list))
            .at_upload(WRITE, route!(decompositions::push))
            .at_download(READ, route!(decompositions::pull))
            .at(READ, route!(decompositions::withdrawals))
            .at_upload(WRITE, route!(graphs::push))
            .at(READ, route!(graphs::list))
            .at(READ, route!(graphs::show))
            .at_download(READ, route!(graphs::pull))
            .at(WRITE, route!(graphs::delete));
        let mut document = routes.openapi();
        openapi::open_up(&mut document, self.access);
        let document = serde_json::to_vec(&document).map_err(Error::internal)?;
        let _ = self.document.set(document.into());
        Ok(routes)
    }

    /// What the listener for metrics answers, where there is one.
    pub fn probes(&self, edge: &Arc<Edge>) -> Routes<Self> {
        self.health(edge).at(Probe, route!(openapi::metrics))
    }

    fn health(&self, edge: &Arc<Edge>) -> Routes<Self> {
        Routes::new(self.clone(), Arc::clone(edge), openapi::document())
            .at(Probe, route!(openapi::live))
            .at(Probe, route!(openapi::ready))
    }

    fn edge(&self) -> Option<&Arc<Edge>> {
        self.edge.get()
    }

    async fn is_database_well(&self) -> bool {
        self.acquire().await.is_ok()
    }

    /// Removes what nobody needs any more, now and then. Runs until dropped.
    pub async fn keep_tidy(&self) {
        let mut timer = tokio::time::interval(TIDY);
        loop {
            timer.tick().await;
            self.pool.close_idle().await;
            if let Err(error) = self.forget_nonces().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "failed to remove old nonces");
            }
        }
    }

    async fn forget_nonces(&self) -> Result<()> {
        let mut conn = self.acquire().await?;
        Ok(store::forget_nonces(&mut conn).await?)
    }

    /// Has a bundle no longer handed out. False if there is none.
    pub async fn withdraw_graph(&self, graph: uuid::Uuid, why: &str) -> Result<bool> {
        let mut conn = self.acquire().await?;
        Ok(store::withdraw_graph(&mut conn, graph, why).await?)
    }

    /// Has a package no longer handed out; whoever has it learns of that. False if there is none.
    pub async fn withdraw(&self, source: uuid::Uuid, model: &str, why: &str) -> Result<bool> {
        let mut conn = self.acquire().await?;
        Ok(store::withdraw(&mut conn, source, model, why).await?)
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn acquire(&self) -> Result<Pooled> {
        Ok(self.pool.acquire().await.map_err(okt_pg::Error::from)?)
    }

    async fn begin(&self) -> Result<Tx> {
        Ok(self.pool.begin("BEGIN".into_sql_str()).await.map_err(okt_pg::Error::from)?)
    }
}

fn database(config: &Config) -> Result<(PgConnectOptions, Limits, u32)> {
    let name = config.registry.database.as_str();
    let unknown =
        || Error::Operator(format!("registry.database: there is no database {name:?} below [databases]"));
    let mut database = config.databases.get(name).ok_or_else(unknown)?;
    if database.url.is_empty() {
        database = config.databases.get(okt_config::Database::DEFAULT).ok_or_else(unknown)?;
    }
    let ssl_mode = match database.ssl_mode {
        SslMode::Disable => PgSslMode::Disable,
        SslMode::Require => PgSslMode::Require,
        SslMode::VerifyCa => PgSslMode::VerifyCa,
        SslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    let options =
        okt_pg::options(database.url.expose(), "okt registry", ssl_mode, database.ssl_root_cert.as_deref());
    let options = options
        .ok_or_else(|| Error::Operator(format!("databases.{name}.url is not a PostgreSQL address")))?;
    let limits = Limits {
        statement: database.statement_timeout.duration(),
        lock: database.lock_timeout.duration(),
        idle_in_transaction: database.idle_in_transaction_timeout.duration(),
    };
    Ok((options, limits, database.max_conns))
}
