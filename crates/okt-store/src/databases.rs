//! The named databases: how many connections this process may hold to each, and for how long.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use okt_config::Config;
use okt_model::{Error, RepositoryId};
use okt_pg::{Listener, Pool, Pooled, Result, Tx, Usage, connect};
use sqlx::{AssertSqlSafe, Connection as _, SqlSafeStr as _};
use tokio::sync::watch;

use crate::endpoints::{Endpoint, about, await_server, endpoints, schemas_of};
use crate::migrations::{self, Report, Schema};
use crate::old_processes;
use crate::opening::{self, Retries};
use crate::outbox;
use crate::probes::{Probed, Probes};
use crate::write_fence::Closed;

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
    /// Claims, heartbeats, outcomes, the relay: the queue must get its connection however many jobs want one.
    Queue,
}

impl Purpose {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Queue => "queue",
        }
    }
}

/// The pools of this process for one purpose, by the name of the database. Cheap to clone.
#[derive(Clone)]
pub struct Databases {
    purpose: Purpose,
    pools: Arc<BTreeMap<String, Slot>>,
    system: Arc<str>,
    tasks: Arc<str>,
    /// The databases that repositories may be in, one name per endpoint.
    shards: Arc<[String]>,
    /// Every name of such a database, with the first one of its endpoint.
    aliases: Arc<BTreeMap<String, String>>,
    probes: Arc<Probes>,
    /// Ends with the last clone, whatever it was made for.
    retries: Arc<Retries>,
}

/// The pool of a database, once the database has answered and is up to date.
pub(crate) type Slot = Arc<OnceLock<Pool>>;

/// What a server is, and what its database lacks.
#[derive(Debug)]
pub struct Inspected {
    /// Such as `18.1`.
    pub version: String,
    /// Of the extension that keeps vectors, where this login has it or can switch it on; `None` too where none is needed.
    pub pgvector: Option<String>,
    /// Whether vectors would be kept there.
    pub wants_pgvector: bool,
    /// Migrations to be applied.
    pub pending: usize,
    /// What its clock says, in seconds since 1970.
    pub now: f64,
}

/// How often a forwarding address is followed before somebody has to wait.
const FORWARDED: u32 = 4;

/// Any number, the same in every process: whoever holds this lock deletes vectors.
const VECTORS: i64 = 0x6f6b_745f_7665_6374;

impl Databases {
    /// Brings every named database up to date. Waits a while for one that is still starting; one that fails does not
    /// keep the others from being migrated.
    pub async fn migrate(config: &Config) -> Result<Vec<Report>> {
        let (mut reports, mut failed) = (Vec::new(), None);
        let endpoints = endpoints(config)?;
        // Before they are asked what is missing: one that is just starting would say nothing.
        for (name, endpoint) in endpoints.iter().filter(|(_, endpoint)| endpoint.is_required(config)) {
            await_server(name, endpoint).await.map_err(|error| about(name, error))?;
        }
        old_processes::refuse(config, &endpoints).await?;
        for (name, endpoint) in endpoints {
            let migrated = async {
                await_server(&name, &endpoint).await?;
                migrations::migrate(&name, &endpoint.options, &endpoint.schemas).await
            };
            match migrated.await {
                Ok(done) => reports.extend(done),
                Err(error) => drop(failed.get_or_insert(about(&name, error))),
            }
        }
        failed.map_or(Ok(reports), Err)
    }

    /// What [`Self::migrate`] would do.
    pub async fn pending(config: &Config) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for (name, endpoint) in endpoints(config)? {
            let found = migrations::pending(&name, &endpoint.options, &endpoint.schemas).await;
            reports.extend(found.map_err(|error| about(&name, error))?);
        }
        Ok(reports)
    }

    /// Whether the databases that everything needs can be connected to, and else at once all that is in the way: for
    /// commands that somebody waits for, and not for a service that may start before its database.
    pub async fn reach(config: &Config) -> Result<()> {
        let endpoints = endpoints(config)?;
        let needed = endpoints.iter().filter(|(_, endpoint)| endpoint.is_required(config));
        let reached = needed.map(|(name, endpoint)| endpoint.reach(name));
        let mut troubles = Vec::new();
        for reached in futures_util::future::join_all(reached).await {
            match reached {
                Ok(conn) => conn.close().await?,
                Err(error) => troubles.push(error.to_string()),
            }
        }
        if troubles.is_empty() { Ok(()) } else { Err(Error::Operator(troubles.join("\n")).into()) }
    }

    /// What is found at every named database, without changing anything.
    pub async fn inspect(config: &Config) -> Result<Vec<(String, Result<Inspected>)>> {
        let endpoints = endpoints(config)?;
        let inspected = endpoints.iter().map(async |(name, endpoint)| {
            let found = async {
                let mut conn = endpoint.reach(name).await?;
                let found = migrations::inspect(&mut conn, &endpoint.schemas).await;
                found.map_err(|error| endpoint.about(name, error))
            };
            (name.clone(), found.await)
        });
        Ok(futures_util::future::join_all(inspected).await)
    }

    /// Opens the pools for each purpose, sharing out what the servers allow. Only the databases of the system and of the
    /// queue must answer; the others are opened in the background as soon as they do.
    pub async fn open(config: &Config, purposes: &[Purpose]) -> Result<Vec<Self>> {
        Ok(opening::open(config, purposes, false).await?.1)
    }

    /// As [`Self::open`], and brings each database up to date first.
    pub async fn migrate_and_open(config: &Config, purposes: &[Purpose]) -> Result<(Vec<Report>, Vec<Self>)> {
        opening::open(config, purposes, true).await
    }

    /// With the pools and the probes that are there already or will be, by the first name of their endpoint.
    pub(crate) fn new(
        config: &Config,
        purpose: Purpose,
        endpoints: &BTreeMap<String, Endpoint>,
        slots: &BTreeMap<String, (Slot, Slot)>,
        retries: Arc<Retries>,
    ) -> Self {
        let (mut pools, mut probes) = (BTreeMap::new(), BTreeMap::new());
        for (name, endpoint) in endpoints {
            let (pool, probe) = &slots[name];
            probes.insert(name.clone(), (Arc::clone(probe), endpoint.is_required(config)));
            pools.extend(endpoint.names.iter().map(|alias| (alias.clone(), Arc::clone(pool))));
        }
        let holds = |endpoint: &&Endpoint| endpoint.schemas.contains(&Schema::Repository);
        let shards =
            endpoints.values().filter(holds).filter_map(|endpoint| endpoint.names.first().cloned()).collect();
        // A name that is set apart for the queue is none for repositories, also where both share an endpoint.
        let may_hold = |name: &&String| schemas_of(config, name).contains(&Schema::Repository);
        let aliases = endpoints.values().flat_map(|endpoint| {
            let first = endpoint.names.first().cloned().unwrap_or_default();
            endpoint.names.iter().filter(may_hold).map(move |name| (name.clone(), first.clone()))
        });
        let aliases = Arc::new(aliases.collect());
        let (system, tasks) = (config.system_database().into(), config.task.database.as_str().into());
        let (pools, probes) = (Arc::new(pools), Arc::new(Probes::new(probes)));
        Self { purpose, pools, system, tasks, shards, aliases, probes, retries }
    }

    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Changes whenever a database is opened that could not be opened at the start.
    pub fn opened_late(&self) -> watch::Receiver<usize> {
        self.retries.opened_late()
    }

    /// Users, roles, settings.
    fn system(&self) -> Result<&Pool> {
        self.named(&self.system)
    }

    fn open_pools(&self) -> impl Iterator<Item = (&String, &Pool)> {
        self.pools.iter().filter_map(|(name, slot)| Some((name, slot.get()?)))
    }

    /// How full each pool is, by name; names for the same endpoint share one pool.
    pub fn usage(&self) -> impl Iterator<Item = (String, Usage)> {
        self.open_pools().map(|(name, pool)| (name.clone(), pool.usage()))
    }

    /// Refuses at once where the database has not answered yet.
    fn named(&self, database: &str) -> Result<&Pool> {
        let slot = self.pools.get(database);
        let slot = slot.ok_or_else(|| Error::internal(format!("no database is named {database}")))?;
        Ok(slot.get().ok_or_else(|| Error::Unavailable {
            service: "the database",
            cause: format!("databases.{database} has not been opened since this process started").into(),
        })?)
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
            match pool.begin_and_notify(AssertSqlSafe(begin.clone()).into_sql_str(), outbox::CHANNEL).await {
                Err(error) => match Closed::of(&error) {
                    Some(Closed::Moved(to)) => database = to,
                    Some(Closed::Moving) => return Err(Error::Moving.into()),
                    Some(Closed::Deleted) => return Err(Error::NotFound("repository").into()),
                    None => return Err(error.into()),
                },
                Ok(tx) => return Ok(tx),
            }
        }
        // It moves as fast as we follow.
        Err(Error::Moving.into())
    }

    /// Begins a transaction that sees one repository and nothing else, and changes nothing. A repository that is being
    /// moved can be read all the time.
    pub async fn begin_to_read(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!("BEGIN READ ONLY; SET LOCAL okt.repository = '{}'", repository.uuid());
        Ok(self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await?)
    }

    /// As [`Self::begin_to_read`], and all of it sees one state.
    pub async fn begin_to_export(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!(
            "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ; SET LOCAL okt.repository = '{}'",
            repository.uuid()
        );
        Ok(self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await?)
    }

    /// As [`Self::begin_to_read`], for a transaction that sees everything as it is when it begins, however long it takes. It
    /// may make temporary tables.
    pub(crate) async fn begin_snapshot(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL okt.repository = '{}'; SET LOCAL statement_timeout = 0; \
             SET LOCAL DateStyle = 'ISO'",
            repository.uuid()
        );
        Ok(self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await?)
    }

    /// Begins a transaction that reads of several repositories, one after the other.
    pub(crate) async fn begin_to_count(&self, database: &str) -> Result<Tx> {
        Ok(self.named(database)?.begin("BEGIN READ ONLY".into_sql_str()).await?)
    }

    /// Begins a transaction on a repository without its write fence: for whoever opens and closes the fence, and for whoever
    /// moves or removes the rows of a repository that nobody may write to.
    pub async fn begin_unfenced(&self, database: &str, repository: RepositoryId) -> Result<Tx> {
        let begin = format!("BEGIN; SET LOCAL okt.repository = '{}'", repository.uuid());
        Ok(self.named(database)?.begin(AssertSqlSafe(begin).into_sql_str()).await?)
    }

    /// A connection outside of the pool that works as the login itself: for building an index of one repository, which is
    /// not for the role of the service to do.
    pub async fn connect_as_owner(&self, database: &str) -> Result<Connection> {
        connect(self.named(database)?.options(), None).await
    }

    /// The shard that a name points to, by its one name; `None` where no repository may be.
    pub fn shard(&self, database: &str) -> Option<&str> {
        let endpoint = self.aliases.get(database)?;
        self.shards.iter().map(String::as_str).find(|shard| *shard == endpoint)
    }

    /// Begins a transaction on the system database.
    pub async fn begin_system(&self) -> Result<Tx> {
        Ok(self.system()?.begin("BEGIN".into_sql_str()).await?)
    }

    /// A connection to the system database.
    pub async fn acquire_system(&self) -> Result<Pooled> {
        Ok(self.system()?.acquire().await?)
    }

    /// A connection to the queue.
    pub async fn acquire_tasks(&self) -> Result<Pooled> {
        Ok(self.named(&self.tasks)?.acquire().await?)
    }

    /// Begins a transaction on the queue.
    pub async fn begin_tasks(&self) -> Result<Tx> {
        Ok(self.named(&self.tasks)?.begin("BEGIN".into_sql_str()).await?)
    }

    /// The databases that repositories may be in.
    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    /// Begins a transaction that relays the outbox entries of all repositories of a database to the queue.
    pub async fn begin_relay(&self, database: &str) -> Result<Tx> {
        let begin = "BEGIN; SET LOCAL okt.relay = 'on'".into_sql_str();
        Ok(self.named(database)?.begin(begin).await?)
    }

    /// Listens to the queue on a connection of its own, which can also hold a lock for as long as it lives.
    pub async fn listen_to_tasks(&self, channels: &[&str]) -> Result<Listener> {
        Listener::open(self.named(&self.tasks)?.options(), channels).await
    }

    /// Nobody else moves a repository or cleans up after it for as long as this connection lives; `None` when somebody
    /// does so right now.
    pub async fn take_alone(&self, repository: RepositoryId) -> Result<Option<Listener>> {
        // The end of an id is its random part.
        let (_, tail) = repository.uuid().as_u64_pair();
        self.take(tail.cast_signed()).await
    }

    /// Nobody else deletes the vectors of all repositories for as long as this connection lives; `None` when somebody does
    /// so right now.
    pub async fn take_vectors(&self) -> Result<Option<Listener>> {
        self.take(VECTORS).await
    }

    async fn take(&self, lock: i64) -> Result<Option<Listener>> {
        let mut held = Listener::open(self.system()?.options(), &[]).await?;
        Ok(if held.try_lock(lock).await? { Some(held) } else { None })
    }

    /// Listens for new outbox entries of a shard.
    pub async fn listen_to_outbox(&self, database: &str) -> Result<Listener> {
        Listener::open(self.named(database)?.options(), &[outbox::CHANNEL]).await
    }

    /// Which endpoints answer right now; an answer may be a moment old.
    pub async fn probe(&self) -> Vec<Probed> {
        self.probes.ask().await
    }

    /// Closes connections that nobody has needed for a while.
    pub async fn close_idle(&self) {
        for (_, pool) in self.open_pools() {
            pool.close_idle().await;
        }
    }

    /// Closes every connection; one that is in use when it comes back.
    pub async fn close(&self) {
        self.retries.stop();
        for (_, pool) in self.open_pools() {
            pool.close().await;
        }
        self.probes.close().await;
    }
}
