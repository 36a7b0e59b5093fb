//! Opening the named databases: pools for those that answer, further tries for those that do not.
//!
//! Only the databases of the system and of the queue hold up a start. A database that only holds repositories is opened when
//! it answers, now or in an hour; until then whoever asks for one of its repositories is refused at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use okt_config::{Config, Database};
use okt_model::Error;
use okt_pg::{Identity, Limits, Pool, Result};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::databases::{Databases, Purpose, SERVICE_ROLE, Slot};
use crate::endpoints::{Endpoint, await_server, endpoints};
use crate::migrations::{self, Report, Schema};
use crate::{old_processes, probes};

/// How many connections the queue may hold to a database, beside those that it listens on.
const QUEUE_CONNECTIONS: u32 = 4;
/// How long to wait before a database that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long a try may take. Building an index takes its time, but a connection may have died without a sound.
const TRY: Duration = Duration::from_hours(1);
/// How long a start waits for the first try on databases that are not required.
const FIRST_TRY: Duration = Duration::from_secs(10);

/// Opens the pools for each purpose; with `migrate` each database is brought up to date first.
pub(crate) async fn open(
    config: &Config,
    purposes: &[Purpose],
    migrate: bool,
) -> Result<(Vec<Report>, Vec<Databases>)> {
    let endpoints = endpoints(config)?;
    for (name, endpoint) in endpoints.iter().filter(|(_, endpoint)| endpoint.is_required(config)) {
        await_server(name, endpoint).await?;
    }
    if migrate {
        old_processes::refuse(config, &endpoints).await?;
    }
    let retries = Arc::new(Retries::default());
    let empty = || -> BTreeMap<String, (Slot, Slot)> {
        endpoints.keys().map(|name| (name.clone(), Default::default())).collect()
    };
    let slots: Vec<_> = purposes.iter().map(|purpose| (*purpose, empty())).collect();
    let make =
        |(purpose, slots): &_| Databases::new(config, *purpose, &endpoints, slots, Arc::clone(&retries));
    let databases = slots.iter().map(make).collect();

    let neighbours =
        |endpoint: &Endpoint| endpoints.values().filter(|other| other.server() == endpoint.server()).count();
    let neighbours: Vec<usize> = endpoints.values().map(neighbours).collect();
    let openings = endpoints.into_iter().zip(neighbours).map(|((name, endpoint), neighbours)| {
        let slots = slots.iter().map(|(purpose, slots)| (*purpose, slots[&name].clone())).collect();
        Opening { name, endpoint, neighbours, migrate, slots }
    });
    let (required, others): (Vec<_>, Vec<_>) = openings.partition(|one| one.endpoint.is_required(config));
    let mut reports = Vec::new();
    for opening in required {
        let prepared =
            opening.prepare().await.map_err(|error| opening.endpoint.about(&opening.name, error))?;
        reports.extend(opening.finish(prepared, &retries.known)?);
    }
    // All at once, so that several that swallow packets take no longer than one.
    let tries: Vec<_> = others.into_iter().map(|opening| retries.start(opening)).collect();
    let patience = Instant::now() + FIRST_TRY;
    for mut first_try in tries {
        let heard = if let Ok(heard) = tokio::time::timeout_at(patience, &mut first_try).await {
            heard.ok()
        } else {
            // Whoever comes later finds nobody who listens, and says it in the log.
            first_try.close();
            first_try.try_recv().ok()
        };
        reports.extend(heard.transpose()?.unwrap_or_default());
    }
    Ok((reports, databases))
}

/// The tries to open what is not required.
#[derive(Default)]
pub(crate) struct Retries {
    tasks: Mutex<JoinSet<()>>,
    known: Arc<Known>,
}

/// What is known of those that are open.
#[derive(Default)]
struct Known {
    /// Their names, by what tells them from each other.
    names: Mutex<BTreeMap<Identity, String>>,
    /// How many did not open at the first try.
    opened_late: watch::Sender<usize>,
}

impl Retries {
    pub(crate) fn opened_late(&self) -> watch::Receiver<usize> {
        self.known.opened_late.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Tries until it succeeds. What comes back is heard after the first try: what was migrated, or that the
    /// configuration is at fault; nothing when further tries follow.
    fn start(&self, opening: Opening) -> oneshot::Receiver<Result<Vec<Report>>> {
        let known = Arc::clone(&self.known);
        let (first, heard) = oneshot::channel();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            let mut trouble = match opening.prepare().await.map(|prepared| opening.finish(prepared, &known)) {
                Ok(finished) => match first.send(finished) {
                    Ok(()) => return,
                    // The start did not wait for it.
                    Err(Ok(_)) => return known.opened_late.send_modify(|opened| *opened += 1),
                    Err(Err(error)) => opening.tell(&error),
                },
                Err(error) => {
                    let trouble = opening.tell(&error);
                    drop(first);
                    trouble
                }
            };
            loop {
                tokio::time::sleep(RETRY).await;
                match opening.prepare().await.and_then(|prepared| opening.finish(prepared, &known)) {
                    Ok(_) => break,
                    // Once per cause.
                    Err(error) if cause(&error) != trouble => trouble = opening.tell(&error),
                    Err(_) => {}
                }
            }
            tracing::info!(
                database = opening.name,
                "the database was opened; its repositories are available"
            );
            known.opened_late.send_modify(|opened| *opened += 1);
        });
        heard
    }
}

/// A database that is to be opened.
struct Opening {
    name: String,
    endpoint: Endpoint,
    /// How many endpoints are on its server, itself included.
    neighbours: usize,
    migrate: bool,
    /// The pool and the probe of each purpose.
    slots: Vec<(Purpose, (Slot, Slot))>,
}

/// A database that answered and is up to date.
struct Prepared {
    reports: Vec<Report>,
    identity: Option<Identity>,
    pools: Vec<(Pool, Pool)>,
}

impl Opening {
    async fn prepare(&self) -> Result<Prepared> {
        match tokio::time::timeout(TRY, self.try_to_prepare()).await {
            Ok(prepared) => prepared,
            Err(elapsed) => {
                Err(Error::Unavailable { service: "the database", cause: Box::new(elapsed) }.into())
            }
        }
    }

    async fn try_to_prepare(&self) -> Result<Prepared> {
        let Endpoint { database, options, schemas, .. } = &self.endpoint;
        let reports =
            if self.migrate { migrations::migrate(&self.name, options, schemas).await? } else { Vec::new() };
        let holds = schemas.contains(&Schema::Repository);
        let identity = if holds { Some(okt_pg::identity(options).await?) } else { None };
        let purposes: Vec<Purpose> = self.slots.iter().map(|(purpose, _)| *purpose).collect();
        let share = share(&self.name, &self.endpoint, self.neighbours, &purposes).await?;
        let mut pools = Vec::new();
        for purpose in purposes {
            let queue = purpose == Purpose::Queue;
            let limit = if queue { QUEUE_CONNECTIONS } else { database.max_conns.min(share) };
            let made = pool(database, options, purpose, limit, database.acquire_timeout.duration());
            // A pool connects when it is first used; what is wrong with it should be heard now.
            drop(made.acquire().await?);
            // How long a request waits for a busy pool says nothing about how long a database may take to answer.
            pools.push((made, pool(database, options, purpose, 1, probes::TIMEOUT)));
        }
        Ok(Prepared { reports, identity, pools })
    }

    /// Refused where another name leads to the same database.
    fn finish(&self, prepared: Prepared, known: &Known) -> Result<Vec<Report>> {
        let name = &self.name;
        if let Some(identity) = prepared.identity {
            let mut names = known.names.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(twin) = names.insert(identity, name.clone()).filter(|twin| twin != name) {
                names.insert(identity, twin.clone());
                // Moving a repository from the one to the other would remove what it has just copied.
                return Err(Error::Operator(format!(
                    "databases.{twin} and databases.{name} are the same database; leave the url of one of them empty, \
                     and it is another name for default"
                ))
                .into());
            }
        }
        for ((_, (slot, probe)), (pool, ping)) in self.slots.iter().zip(prepared.pools) {
            // Each is opened once.
            let _ = (slot.set(pool), probe.set(ping));
        }
        Ok(prepared.reports)
    }

    /// Logs why it can't be opened, and returns it.
    fn tell(&self, error: &okt_pg::Error) -> String {
        let cause = cause(error);
        let (host, port) = self.endpoint.server();
        tracing::warn!(
            database = self.name,
            host,
            port,
            cause,
            "the database can't be opened; its repositories are unavailable until it can"
        );
        cause
    }
}

/// The error with what led to it.
fn cause(error: &okt_pg::Error) -> String {
    match &error.0 {
        Error::Unavailable { cause, .. } | Error::Internal(cause) => cause.to_string(),
        error => error.to_string(),
    }
}

fn pool(
    database: &Database,
    options: &PgConnectOptions,
    purpose: Purpose,
    limit: u32,
    patience: Duration,
) -> Pool {
    let statement = match purpose {
        Purpose::Api => database.statement_timeout,
        Purpose::Worker | Purpose::Queue => database.worker_statement_timeout,
    };
    let limits = Limits {
        statement: statement.duration(),
        lock: database.lock_timeout.duration(),
        idle_in_transaction: database.idle_in_transaction_timeout.duration(),
    };
    let options = okt_pg::session(options, &limits);
    // A queue is empty now and holds a million rows in an hour, and a plan that was made for the one is ruin for the
    // other. What it looks for always lies at one end of an index or has an id: with nothing else to choose from, one
    // plan is right for ever, and need not be made anew for every statement.
    let options = match purpose {
        Purpose::Queue => options.options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_sort", "off"),
        ]),
        // What people wait for is short, and planning it anew for every request took several times as long as running it,
        // above all over tables in parts. A list whose filters may be missing is planned anew by itself (`planned_anew`).
        Purpose::Api => options.options([("plan_cache_mode", "force_generic_plan")]),
        Purpose::Worker => options,
    };
    Pool::new(options, Some(SERVICE_ROLE), limit, patience)
}

/// How many connections a pool of this process on this server may hold, where it has as many `neighbours` for each of
/// the purposes: three quarters of what the server gives to ordinary users, because we are rarely alone, less what the
/// queues need, less one per pool for its probe.
async fn share(name: &str, endpoint: &Endpoint, neighbours: usize, purposes: &[Purpose]) -> Result<u32> {
    let free = okt_pg::ordinary_connections(&endpoint.options).await?;
    let neighbours = u32::try_from(neighbours).unwrap_or(u32::MAX);
    let queues = purposes.iter().filter(|purpose| **purpose == Purpose::Queue).count();
    let others = u32::try_from(purposes.len() - queues).unwrap_or(u32::MAX);
    // Its pool, its probe, and two to listen on.
    let kept = u32::try_from(queues).unwrap_or(u32::MAX) * neighbours * (QUEUE_CONNECTIONS + 3);
    let pools = neighbours * others.max(1);
    let usable = (free * 3 / 4).saturating_sub(kept);
    let share = (usable / pools).saturating_sub(1);
    if share < 2 {
        return Err(Error::Operator(format!(
            "databases.{name}: the server allows {free} connections, too few for {pools} pools; \
             raise its max_connections or name fewer databases on it"
        ))
        .into());
    }
    let max_conns = endpoint.database.max_conns;
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
