//! The named databases: how many connections this process may hold to each, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use okt_config::{Config, Database, Period};
use okt_model::{Error, RepositoryId, Result};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqlSafeStr as _};

use crate::doors::Closed;
use crate::error::from_sqlx;
use crate::listener::Listener;
use crate::migrate::{self, Report, Schema};
use crate::outbox;
use crate::places::{Place, about, await_server, connect, places, schemas_of};
use crate::pool::{Pool, Pooled, Tx, Usage};
use crate::probes::{Probed, Probes};

/// What the functions of this crate work on.
pub type Connection = sqlx::PgConnection;

/// The role the service works as where its login could pass row-level security.
pub(crate) const SERVICE_ROLE: &str = "okt_service";

/// Whom a set of pools serves. People wait for the one; the other may hold a connection for longer. Kept apart, so
/// that a flood of background work never leaves a person without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Api,
    /// What jobs do.
    Worker,
    /// Looking after jobs: it must get its connection however many of them want one.
    Keeper,
}

impl Purpose {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Keeper => "keeper",
        }
    }
}

/// The pools of this process for one purpose, by the name of the database. Cheap to clone.
#[derive(Clone)]
pub struct Databases {
    purpose: Purpose,
    pools: Arc<BTreeMap<String, Pool>>,
    system: Arc<str>,
    tasks: Arc<str>,
    /// Where repositories may live, one name per place.
    homes: Arc<[String]>,
    /// Every name under which repositories may live, with the first one of its place.
    aliases: Arc<BTreeMap<String, String>>,
    probes: Arc<Probes>,
}

/// How often a forwarding address is followed before somebody has to wait.
const FORWARDED: u32 = 4;

/// How many connections a keeper may hold to a place, beside those that it listens on.
const KEEPER_CONNECTIONS: u32 = 4;

impl Databases {
    /// Brings every named database up to date. Waits a while for one that is still starting.
    pub async fn migrate(config: &Config) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for (name, place) in places(config)? {
            await_server(&name, &place.options).await?;
            let done = migrate::migrate(&name, &place.options, &place.schemas).await;
            reports.extend(done.map_err(|error| about(&name, error))?);
        }
        Ok(reports)
    }

    /// What [`Self::migrate`] would do.
    pub async fn pending(config: &Config) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for (name, place) in places(config)? {
            let found = migrate::pending(&name, &place.options, &place.schemas).await;
            reports.extend(found.map_err(|error| about(&name, error))?);
        }
        Ok(reports)
    }

    /// Opens the pools for each purpose, sharing out what the servers allow.
    pub async fn open(config: &Config, purposes: &[Purpose]) -> Result<Vec<Self>> {
        let places = places(config)?;
        let (mut limits, mut homes) = (BTreeMap::new(), BTreeMap::new());
        for (name, place) in &places {
            await_server(name, &place.options).await?;
            if place.schemas.contains(&Schema::Repository)
                && let Some(twin) = homes.insert(identity(place).await?, name.clone())
            {
                // Moving a repository from the one to the other would remove what it has just copied.
                return Err(Error::Operator(format!(
                    "databases.{twin} and databases.{name} are the same database; leave the url of one of them empty, \
                     and it is another name for default"
                )));
            }
            let neighbours = places.values().filter(|other| other.server() == place.server()).count();
            let share = share(name, place, neighbours, purposes).await?;
            limits.insert(name.clone(), place.database.max_conns.min(share));
        }
        let all = purposes.iter().map(|purpose| Self::of(config, *purpose, &places, &limits));
        let all: Vec<Self> = all.collect();
        // A pool connects when it is first used; what is wrong with it should be heard now.
        for databases in &all {
            for (name, pool) in &*databases.pools {
                pool.acquire().await.map_err(|error| about(name, from_sqlx(error)))?.done();
            }
        }
        Ok(all)
    }

    fn of(
        config: &Config,
        purpose: Purpose,
        places: &BTreeMap<String, Place>,
        limits: &BTreeMap<String, u32>,
    ) -> Self {
        let (mut pools, mut probes) = (BTreeMap::new(), BTreeMap::new());
        for (name, place) in places {
            let required = [config.system_database(), &config.task.database]
                .iter()
                .any(|r| place.names.iter().any(|n| n == r));
            probes.insert(name.clone(), (pool(&place.database, &place.options, purpose, 1), required));
            let limit = if purpose == Purpose::Keeper { KEEPER_CONNECTIONS } else { limits[name] };
            let pool = pool(&place.database, &place.options, purpose, limit);
            pools.extend(place.names.iter().map(|alias| (alias.clone(), pool.clone())));
        }
        let holds = |place: &&Place| place.schemas.contains(&Schema::Repository);
        let homes = places.values().filter(holds).filter_map(|place| place.names.first().cloned()).collect();
        // A name that is set apart for the queue is none for repositories, also where both share a place.
        let may_hold = |name: &&String| schemas_of(config, name).contains(&Schema::Repository);
        let aliases = places.values().flat_map(|place| {
            let first = place.names.first().cloned().unwrap_or_default();
            place.names.iter().filter(may_hold).map(move |name| (name.clone(), first.clone()))
        });
        let aliases = Arc::new(aliases.collect());
        let (system, tasks) = (config.system_database().into(), config.task.database.as_str().into());
        let (pools, probes) = (Arc::new(pools), Arc::new(Probes::new(probes)));
        Self { purpose, pools, system, tasks, homes, aliases, probes }
    }

    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Users, roles, settings.
    fn system(&self) -> &Pool {
        &self.pools[&*self.system]
    }

    /// How full each pool is, by name; names for the same place share one pool.
    pub fn usage(&self) -> impl Iterator<Item = (String, Usage)> {
        self.pools.iter().map(|(name, pool)| (name.clone(), pool.usage()))
    }

    fn named(&self, database: &str) -> Result<&Pool> {
        let pool = self.pools.get(database);
        pool.ok_or_else(|| Error::internal(format!("no database is named {database}")))
    }

    /// Begins a transaction that sees one repository and nothing else, whatever its queries forget, and that may change
    /// it. Where the repository has moved away, it begins where the repository lives now.
    pub async fn begin(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        // One round trip. The id is a UUID, so the text can't say anything else.
        let begin = format!(
            "BEGIN; SET LOCAL okt.repository = '{}'; SELECT okt_repository.enter()",
            repository.uuid()
        );
        let mut database = database.to_owned();
        for _ in 0..FORWARDED {
            let pool = self.named(&database)?;
            match pool.begin(AssertSqlSafe(begin.clone()).into_sql_str()).await {
                Err(error) => match Closed::of(&error) {
                    Some(Closed::Moved(to)) => database = to,
                    Some(Closed::Moving) => return Err(Error::Moving),
                    Some(Closed::Deleted) => return Err(Error::NotFound("repository")),
                    None => return Err(from_sqlx(error)),
                },
                Ok(tx) => return Ok(tx),
            }
        }
        // It moves as fast as we follow.
        Err(Error::Moving)
    }

    /// Begins a transaction that sees one repository and nothing else, and changes nothing. A repository that is being
    /// moved can be read all the time.
    pub async fn begin_to_read(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!("BEGIN READ ONLY; SET LOCAL okt.repository = '{}'", repository.uuid());
        self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await.map_err(from_sqlx)
    }

    /// Begins a transaction that reads of several repositories, one after the other.
    pub(crate) async fn begin_to_count(&self, database: &str) -> Result<Tx> {
        self.named(database)?.begin("BEGIN READ ONLY".into_sql_str()).await.map_err(from_sqlx)
    }

    /// Begins a transaction on a repository whose door may be closed: for whoever opens and closes it, and for whoever
    /// moves or removes what lies behind it.
    pub async fn begin_behind(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!("BEGIN; SET LOCAL okt.repository = '{}'", repository.uuid());
        self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await.map_err(from_sqlx)
    }

    /// A connection outside of the pool that works as the login itself: for building an index of one repository, which is
    /// not for the role of the service to do.
    pub async fn connect_as_owner(&self, database: &str) -> Result<Connection> {
        connect(self.named(database)?.options()).await
    }

    /// The one name of the place that a name points to, if repositories may live there.
    pub fn home(&self, database: &str) -> Option<&str> {
        let place = self.aliases.get(database)?;
        self.homes.iter().map(String::as_str).find(|home| *home == place)
    }

    /// Begins a transaction on the system database.
    pub async fn begin_system(&self) -> Result<Tx> {
        self.system().begin("BEGIN".into_sql_str()).await.map_err(from_sqlx)
    }

    /// A connection to the system database.
    pub async fn acquire_system(&self) -> Result<Pooled> {
        self.system().acquire().await.map_err(from_sqlx)
    }

    /// A connection to the queue.
    pub async fn acquire_tasks(&self) -> Result<Pooled> {
        self.named(&self.tasks)?.acquire().await.map_err(from_sqlx)
    }

    /// Begins a transaction on the queue.
    pub async fn begin_tasks(&self) -> Result<Tx> {
        self.named(&self.tasks)?.begin("BEGIN".into_sql_str()).await.map_err(from_sqlx)
    }

    /// The databases that may hold repositories.
    pub fn homes(&self) -> &[String] {
        &self.homes
    }

    /// Begins a transaction that carries the notes of all repositories of a database to the queue.
    pub async fn begin_relay(&self, database: &str) -> Result<Tx> {
        let begin = "BEGIN; SET LOCAL okt.relay = 'on'".into_sql_str();
        self.named(database)?.begin(begin).await.map_err(from_sqlx)
    }

    /// Listens to the queue on a connection of its own, which can also hold a lock for as long as it lives.
    pub async fn listen_to_tasks(&self, channels: &[&str]) -> Result<Listener> {
        Listener::open(self.named(&self.tasks)?.options(), channels).await
    }

    /// Nobody else moves a repository or cleans up after it for as long as this connection lives; `None` when somebody
    /// does so right now.
    pub async fn take_alone(&self, repository: RepositoryId) -> Result<Option<Listener>> {
        let mut held = Listener::open(self.system().options(), &[]).await?;
        // The end of an id is its random part.
        let (_, tail) = repository.uuid().as_u64_pair();
        Ok(if held.try_lock(tail.cast_signed()).await? { Some(held) } else { None })
    }

    /// Listens to the notes of a database that may hold repositories.
    pub async fn listen_to_notes(&self, database: &str) -> Result<Listener> {
        Listener::open(self.named(database)?.options(), &[outbox::CHANNEL]).await
    }

    /// Which places answer right now; an answer may be a moment old.
    pub async fn probe(&self) -> Vec<Probed> {
        self.probes.ask().await
    }

    /// Closes connections that nobody has needed for a while.
    pub async fn close_idle(&self) {
        for pool in self.pools.values() {
            pool.close_idle().await;
        }
    }

    /// Closes every connection; one that is in use when it comes back.
    pub async fn close(&self) {
        for pool in self.pools.values() {
            pool.close().await;
        }
        self.probes.close().await;
    }
}

fn pool(database: &Database, options: &PgConnectOptions, purpose: Purpose, limit: u32) -> Pool {
    let statement_timeout = match purpose {
        Purpose::Api => database.statement_timeout,
        Purpose::Worker | Purpose::Keeper => database.worker_statement_timeout,
    };
    let milliseconds = |period: Period| period.duration().as_millis().to_string();
    let options = options.clone().options([
        ("statement_timeout", milliseconds(statement_timeout)),
        ("lock_timeout", milliseconds(database.lock_timeout)),
        ("idle_in_transaction_session_timeout", milliseconds(database.idle_in_transaction_timeout)),
        // A statement whose caller left, and whose connection was given up, ends soon after.
        ("client_connection_check_interval", "2s".to_owned()),
        // The server notices within half a minute that a machine is gone, and lets go of what it held.
        ("tcp_keepalives_idle", "10".to_owned()),
        ("tcp_keepalives_interval", "5".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
        // It pays where a statement takes seconds; ours take milliseconds, and compiling one takes fifty.
        ("jit", "off".to_owned()),
    ]);
    // A queue is empty now and holds a million rows in an hour, and a plan that was made for the one is ruin for the
    // other. What it looks for always lies at one end of an index or has an id: with nothing else to choose from, one
    // plan is right for ever, and need not be made anew for every statement.
    let options = match purpose {
        Purpose::Keeper => options.options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_sort", "off"),
        ]),
        Purpose::Api | Purpose::Worker => options,
    };
    Pool::new(options, SERVICE_ROLE, limit, database.acquire_timeout.duration())
}

/// What tells a database from all others, whatever the address that leads to it.
async fn identity(place: &Place) -> Result<(i64, i64)> {
    let mut conn = connect(&place.options).await?;
    let row = sqlx::query!(
        r#"SELECT (SELECT system_identifier FROM pg_control_system()) AS "server!", d.oid::bigint AS "database!"
             FROM pg_database d WHERE d.datname = current_database()"#
    )
    .fetch_one(&mut conn)
    .await
    .map_err(from_sqlx)?;
    conn.close().await.map_err(from_sqlx)?;
    Ok((row.server, row.database))
}

/// How many connections a pool of this process on this server may hold, where it has as many `neighbours` for each of
/// the purposes: three quarters of what the server gives to ordinary users, because we are rarely alone, less what the
/// keepers need, less one per pool for its probe.
async fn share(name: &str, place: &Place, neighbours: usize, purposes: &[Purpose]) -> Result<u32> {
    let mut conn = connect(&place.options).await?;
    let free = sqlx::query_scalar!(
        r#"SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true), '0')::int AS "free!""#
    )
    .fetch_one(&mut conn)
    .await
    .map_err(from_sqlx)?;
    conn.close().await.map_err(from_sqlx)?;

    let neighbours = u32::try_from(neighbours).unwrap_or(u32::MAX);
    let keepers = purposes.iter().filter(|purpose| **purpose == Purpose::Keeper).count();
    let others = u32::try_from(purposes.len() - keepers).unwrap_or(u32::MAX);
    // Its pool, its probe, and two to listen on.
    let kept = u32::try_from(keepers).unwrap_or(u32::MAX) * neighbours * (KEEPER_CONNECTIONS + 3);
    let pools = neighbours * others.max(1);
    let usable = (u32::try_from(free).unwrap_or(0) * 3 / 4).saturating_sub(kept);
    let share = (usable / pools).saturating_sub(1);
    if share < 2 {
        return Err(Error::Operator(format!(
            "databases.{name}: the server allows {free} connections, too few for {pools} pools; \
             raise its max_connections or name fewer databases on it"
        )));
    }
    let max_conns = place.database.max_conns;
    if share < max_conns {
        tracing::info!(
            database = name,
            max_conns,
            limit = share,
            "pool made smaller to fit the server's max_connections"
        );
    }
    Ok(share)
}
