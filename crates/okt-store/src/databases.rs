//! The named databases: where each lives, how many connections this process may hold to it, and for how long.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use okt_config::{Config, Database, SslMode};
use okt_model::{Error, RepositoryId, Result};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgPool, Postgres, Transaction};
use tokio::sync::Mutex;

use crate::error::from_sqlx;
use crate::migrate::{self, Report, Schema};

/// The role the service works as where its login could pass row-level security.
pub(crate) const SERVICE_ROLE: &str = "okt_service";

/// Whom a set of pools serves. People wait for the one; the other may hold a connection for longer. Kept apart, so
/// that a flood of background work never leaves a person without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Api,
    Worker,
}

impl Purpose {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
        }
    }
}

/// The pools of this process for one purpose, by the name of the database. Cheap to clone.
#[derive(Clone)]
pub struct Databases {
    purpose: Purpose,
    pools: Arc<BTreeMap<String, PgPool>>,
    system: Arc<str>,
    tasks: Arc<str>,
    probes: Arc<Probes>,
}

/// Which places answered, by name.
type Answers = Vec<(String, bool)>;

/// A connection per place that is kept for asking whether it answers, so that a busy pool does not look like a dead
/// database, and the last answers.
struct Probes {
    pools: BTreeMap<String, PgPool>,
    last: Mutex<Option<(Instant, Answers)>>,
}

/// Connections of one pool.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub open: u32,
    pub idle: u32,
    pub limit: u32,
}

/// How old an answer of [`Databases::probe`] may be.
const PROBE_AGE: Duration = Duration::from_millis(250);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

impl Databases {
    /// Brings every named database up to date. Waits a while for one that is still starting.
    pub async fn migrate(config: &Config) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for (name, target) in targets(config)? {
            await_server(&name, &target.options).await?;
            reports.extend(migrate::migrate(&name, &target.options, &target.schemas).await?);
        }
        Ok(reports)
    }

    /// What [`Self::migrate`] would do.
    pub async fn pending(config: &Config) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for (name, target) in targets(config)? {
            reports.extend(migrate::pending(&name, &target.options, &target.schemas).await?);
        }
        Ok(reports)
    }

    /// Opens the pools for each purpose, sharing out what the servers allow.
    pub async fn open(config: &Config, purposes: &[Purpose]) -> Result<Vec<Self>> {
        let targets = targets(config)?;
        let mut limits = BTreeMap::new();
        for (name, target) in &targets {
            await_server(name, &target.options).await?;
            let neighbours = targets.values().filter(|other| other.server() == target.server()).count();
            let share = usable_connections(&target.options).await?
                / u32::try_from(neighbours * purposes.len()).unwrap_or(u32::MAX).max(1);
            let limit = target.database.max_conns.min(share.max(2));
            if limit < target.database.max_conns {
                tracing::info!(
                    database = %name,
                    max_conns = target.database.max_conns,
                    limit,
                    "pool made smaller to fit the server's max_connections"
                );
            }
            limits.insert(name.clone(), limit);
        }

        Ok(purposes.iter().map(|purpose| Self::of(config, *purpose, &targets, &limits)).collect())
    }

    fn of(
        config: &Config,
        purpose: Purpose,
        targets: &BTreeMap<String, Target>,
        limits: &BTreeMap<String, u32>,
    ) -> Self {
        let (mut pools, mut probes) = (BTreeMap::new(), BTreeMap::new());
        for (name, target) in targets {
            probes.insert(name.clone(), pool(&target.database, &target.options, purpose, 1));
            let pool = pool(&target.database, &target.options, purpose, limits[name]);
            for alias in &target.names {
                pools.insert(alias.clone(), pool.clone());
            }
        }
        Self {
            purpose,
            pools: Arc::new(pools),
            system: config.system_database().into(),
            tasks: config.task.database.as_str().into(),
            probes: Arc::new(Probes { pools: probes, last: Mutex::new(None) }),
        }
    }

    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Users, roles, settings.
    pub fn system(&self) -> &PgPool {
        &self.pools[&*self.system]
    }

    /// The job queue.
    pub fn tasks(&self) -> &PgPool {
        &self.pools[&*self.tasks]
    }

    /// How full each pool is, by name; two names for the same place share one pool.
    pub fn usage(&self) -> impl Iterator<Item = (String, Usage)> {
        self.pools.iter().map(|(name, pool)| {
            let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
            (name.clone(), Usage { open: pool.size(), idle, limit: pool.options().get_max_connections() })
        })
    }

    /// Begins a transaction that sees one repository and nothing else, whatever its queries forget.
    pub async fn begin(
        &self,
        database: &str,
        repository: RepositoryId,
    ) -> Result<Transaction<'static, Postgres>> {
        let pool = self.pools.get(database);
        let pool = pool.ok_or_else(|| Error::internal(format!("no database is named {database}")))?;
        // One round trip. The id is a UUID, so the text can't say anything else.
        let begin = format!("BEGIN; SET LOCAL okt.repository = '{}'", repository.uuid());
        pool.begin_with(AssertSqlSafe(begin)).await.map_err(from_sqlx)
    }

    /// A connection to the system database.
    pub async fn acquire_system(&self) -> Result<PoolConnection<Postgres>> {
        self.system().acquire().await.map_err(from_sqlx)
    }

    /// Which places answer right now.
    pub async fn probe(&self) -> Answers {
        let mut last = self.probes.last.lock().await;
        if let Some((at, answers)) = &*last
            && at.elapsed() < PROBE_AGE
        {
            return answers.clone();
        }
        let mut answers = Vec::new();
        for (name, pool) in &self.probes.pools {
            let asked = async { pool.acquire().await?.ping().await };
            let answered = tokio::time::timeout(PROBE_TIMEOUT, asked).await;
            answers.push((name.clone(), matches!(answered, Ok(Ok(())))));
        }
        *last = Some((Instant::now(), answers.clone()));
        answers
    }

    /// Waits for running queries and closes every connection.
    pub async fn close(&self) {
        for pool in self.pools.values().chain(self.probes.pools.values()) {
            pool.close().await;
        }
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

/// One place that one or more names point to.
struct Target {
    database: Database,
    options: PgConnectOptions,
    names: Vec<String>,
    schemas: Vec<Schema>,
}

impl Target {
    fn server(&self) -> (&str, u16) {
        (self.options.get_host(), self.options.get_port())
    }
}

/// The places to connect to, each under the first of its names.
fn targets(config: &Config) -> Result<BTreeMap<String, Target>> {
    let mut targets: BTreeMap<String, Target> = BTreeMap::new();
    for name in config.databases.keys() {
        let Some(database) = config.database(name) else {
            continue;
        };
        let mut schemas = Vec::new();
        if name == config.system_database() {
            schemas.push(Schema::System);
        }
        // A repository may live in any named database but the one that is set apart for the queue.
        if *name != config.task.database || *name == config.isolation.default_database {
            schemas.push(Schema::Repository);
        }
        if *name == config.task.database {
            schemas.push(Schema::Tasks);
        }
        let same = targets.values_mut().find(|target| target.database.url.expose() == database.url.expose());
        if let Some(target) = same {
            target.names.push(name.clone());
            target.schemas.extend(schemas);
            target.schemas.sort_unstable();
            target.schemas.dedup();
        } else {
            let options = connect_options(&database)?;
            targets.insert(name.clone(), Target { database, options, names: vec![name.clone()], schemas });
        }
    }
    Ok(targets)
}

fn pool(database: &Database, options: &PgConnectOptions, purpose: Purpose, limit: u32) -> PgPool {
    let statement_timeout = match purpose {
        Purpose::Api => database.statement_timeout,
        Purpose::Worker => database.worker_statement_timeout,
    };
    let milliseconds = |period: okt_config::Period| period.duration().as_millis().to_string();
    let options = options.clone().options([
        ("statement_timeout", milliseconds(statement_timeout)),
        ("lock_timeout", milliseconds(database.lock_timeout)),
        ("idle_in_transaction_session_timeout", milliseconds(database.idle_in_transaction_timeout)),
    ]);
    PgPoolOptions::new()
        .max_connections(limit)
        .acquire_timeout(database.acquire_timeout.duration())
        .idle_timeout(Duration::from_mins(10))
        .max_lifetime(Duration::from_mins(30))
        // A connection is tested when it comes back; testing it again as it goes out would double the round trips of
        // a busy service. Only one that lay idle may have died unseen.
        .test_before_acquire(false)
        .before_acquire(|conn, meta| {
            Box::pin(async move {
                if meta.idle_for < Duration::from_secs(1) {
                    return Ok(true);
                }
                Ok(conn.ping().await.is_ok())
            })
        })
        .after_connect(|conn, _| {
            Box::pin(async move {
                sqlx::query!(
                    "SELECT set_config('role', $1, false) FROM pg_roles
                      WHERE rolname = session_user AND (rolsuper OR rolbypassrls)",
                    SERVICE_ROLE,
                )
                .fetch_optional(conn)
                .await?;
                Ok(())
            })
        })
        .connect_lazy_with(options)
}

/// What this process may take: three quarters of what the server gives to ordinary users, because it is rarely alone.
async fn usable_connections(options: &PgConnectOptions) -> Result<u32> {
    let mut conn = options.connect().await.map_err(from_sqlx)?;
    let free = sqlx::query_scalar!(
        r#"SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true), '0')::int AS "free!""#
    )
    .fetch_one(&mut conn)
    .await
    .map_err(from_sqlx)?;
    conn.close().await.map_err(from_sqlx)?;
    Ok(u32::try_from(free).unwrap_or(0) * 3 / 4)
}

/// Waits for a server that is still starting, as it does when everything boots at once.
async fn await_server(name: &str, options: &PgConnectOptions) -> Result<()> {
    const TRIES: u32 = 60;
    let mut tries = 1;
    loop {
        match options.connect().await.map_err(from_sqlx) {
            Ok(conn) => return conn.close().await.map_err(from_sqlx),
            Err(error) if error.retryable() && tries < TRIES => {
                if tries % 10 == 1 {
                    tracing::warn!(database = name, "the database does not answer yet, trying again");
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
                tries += 1;
            }
            Err(Error::Unavailable { cause, .. } | Error::Internal(cause)) => {
                return Err(Error::internal(format!("can't open databases.{name}: {cause}")));
            }
            Err(error) => return Err(error),
        }
    }
}
