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

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use okt_config::{Config, Metrics, RegistryAccess, SslMode};
use okt_http::Guard::{self, Probe, Public};
use okt_http::{Edge, Routes, route};
use okt_model::{Action, Error, Object, Permission, Result};
use okt_pg::{Limits, Migrator, Pool, Pooled, Tx};
use sqlx::SqlSafeStr as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::sync::{Semaphore, SemaphorePermit};

pub use keys::{Key, NewKey};

use crate::files::Files;
use crate::keys::Seal;

const SCHEMA: &str = "okt_registry";
const PATIENCE: Duration = Duration::from_secs(5);
/// MiB of packages in memory at once, with what is made of them; one of the largest in any case.
const ROOM: u32 = 256;
/// A package that is read takes so many times the memory of its bytes.
const WEIGHT: u32 = 4;
const READERS: usize = 4;
/// What nobody needs any more is removed so often.
const TIDY: Duration = Duration::from_mins(1);
/// A file that no row has spoken of for so long is nobody's.
const STRAY: Duration = Duration::from_hours(24);

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
    /// When the storage was looked at, and how it was.
    storage: tokio::sync::Mutex<Option<(Instant, bool)>>,
    access: RegistryAccess,
    /// Whether a push needs a promptset hash.
    validates: bool,
    /// Pushes of all without a key together in a day.
    anonymous_pushes: i32,
    /// Of each key in a day, and of all without one together.
    daily_bytes: i64,
    package_bytes: u64,
    bundle_bytes: u64,
    /// Room for packages that are read at once, in MiB.
    room: Semaphore,
    /// Bundles that are read at once.
    readers: Semaphore,
    /// Who pushes one just now: one each, so that nobody takes all places.
    pushing: Mutex<BTreeSet<String>>,
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
        let previous = &config.auth.jwt_secret_previous;
        let previous = (!previous.is_empty()).then(|| previous.expose().as_bytes());
        Ok(Self(Arc::new(Shared {
            pool: Pool::new(session, None, connections, PATIENCE),
            files: Files::open(&config.registry.storage)?,
            storage: tokio::sync::Mutex::default(),
            access: config.registry.access,
            validates: config.registry.promptset.enable_validation,
            anonymous_pushes: i32::try_from(config.registry.anonymous_daily_pushes).unwrap_or(i32::MAX),
            daily_bytes: i64::try_from(config.registry.daily_bytes).unwrap_or(i64::MAX),
            package_bytes: config.server.limits.package_bytes,
            bundle_bytes: config.server.limits.bundle_bytes,
            room: Semaphore::new(
                ROOM.max(WEIGHT.saturating_mul(mebibytes(config.server.limits.package_bytes))) as usize,
            ),
            readers: Semaphore::new(READERS),
            pushing: Mutex::default(),
            seal: Seal::derive(secret, previous),
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
            .at_large_upload(WRITE, route!(graphs::push))
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

    /// Waits a little until there is room for so many bytes of a package, beside what it has already: whoever announces much and sends
    /// little takes little.
    async fn take_room<'r>(&'r self, room: &mut Option<SemaphorePermit<'r>>, bytes: usize) -> Result<()> {
        let wanted = WEIGHT.saturating_mul(mebibytes(bytes as u64).max(1));
        let held = room.as_ref().map_or(0, SemaphorePermit::num_permits);
        let more = wanted.saturating_sub(u32::try_from(held).unwrap_or(u32::MAX));
        if more == 0 {
            return Ok(());
        }
        let Ok(more) = tokio::time::timeout(PATIENCE, self.room.acquire_many(more)).await else {
            return Err(Error::Overloaded("too many packages are being pushed"));
        };
        let more = more.map_err(Error::internal)?;
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        Ok(())
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
        // One folder at a time: all of them in four hours.
        for folder in (0..=u8::MAX).cycle() {
            timer.tick().await;
            self.pool.close_idle().await;
            if let Err(error) = self.forget_nonces().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "failed to remove old nonces");
            }
            if let Err(error) = self.sweep(folder, STRAY).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "failed to remove stray files");
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

    /// Has one version of a package, with others of the same bytes, or all versions no longer handed out; whoever has them learns of
    /// that. How many that are.
    pub async fn withdraw(
        &self,
        source: uuid::Uuid,
        model: &str,
        version: Option<i32>,
        why: &str,
    ) -> Result<u64> {
        let mut conn = self.acquire().await?;
        Ok(store::withdraw(&mut conn, source, model, version, why).await?)
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

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
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
