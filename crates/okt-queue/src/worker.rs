//! The process that runs jobs: what it claims, what it says of itself, and how it ends.
//!
//! Jobs run on threads of their own. One that never comes to an `await` takes one of those, and nothing else: claims,
//! heartbeats and the answers to requests go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, JobId, Result};
use okt_store::Databases;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::{Finished, JobError};
use crate::kinds::Kinds;
use crate::minder::{Order, Running};
use crate::relay::relay;
use crate::schedule::Periodic;
use crate::settle::Settled;
use crate::slots::Slots;
use crate::workers;

/// How often the queue is looked at without having heard anything.
pub(crate) const POLL: Duration = Duration::from_secs(1);
pub(crate) const RECONNECT: Duration = Duration::from_millis(300);
/// How long jobs that were told to stop may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How many outcomes are told at once.
pub(crate) const SETTLED: usize = 500;

/// What a worker may do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Shown to operators.
    pub name: String,
    /// How many jobs of each kind may run at once here.
    pub slots: BTreeMap<String, u32>,
    /// How long a job of each kind may run; without limit where none is named.
    pub timeouts: BTreeMap<String, Duration>,
    pub heartbeat_interval: Duration,
    /// A job silent for longer than this is given to somebody else.
    pub heartbeat_timeout: Duration,
    pub rescue_on_startup: bool,
    /// How long running jobs may take to end when the worker is stopped.
    pub drain: Duration,
}

impl Settings {
    /// As configured, for the kinds that this process knows.
    pub fn of(config: &Config, kinds: &Kinds) -> Self {
        let task = &config.task;
        let slots = kinds.names().map(|kind| (kind.to_owned(), task.queues.get(kind).copied().unwrap_or(0)));
        let slots: BTreeMap<_, _> = slots.filter(|(_, limit)| *limit > 0).collect();
        let timeouts = slots.keys().filter_map(|kind| Some((kind.clone(), task.timeout(kind)?.duration())));
        Self {
            name: format!("pid {}", std::process::id()),
            timeouts: timeouts.collect(),
            slots,
            heartbeat_interval: task.heartbeat_interval.duration(),
            heartbeat_timeout: task.heartbeat_timeout.duration(),
            rescue_on_startup: task.rescue_on_startup,
            drain: config.server.drain_timeout.duration(),
        }
    }
}

/// Runs jobs until stopped. When it is dropped instead, it ends as a crash would.
pub struct Worker {
    shared: Arc<Shared>,
    /// Claiming, relaying, scheduling: what ends first.
    stop: CancellationToken,
    takers: JoinSet<()>,
    /// Settling, beating, listening: what goes on until the last job has ended.
    keepers: JoinSet<()>,
    settler: JoinHandle<()>,
    jobs: Option<Runtime>,
}

pub(crate) struct Shared {
    pub(crate) id: i64,
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    /// For looking after jobs.
    pub(crate) keeper: Databases,
    /// For what jobs do.
    pub(crate) worker: Databases,
    pub(crate) slots: Slots,
    /// Whether a job waits that may have been the reason of two crashes, and whether one runs.
    pub(crate) suspects: AtomicBool,
    pub(crate) suspect_runs: AtomicBool,
    /// Whether the queue may hold jobs in our name that we do not know of.
    pub(crate) orphans: AtomicBool,
    /// Jobs that have ended here and whose end has not been told yet.
    untold: Mutex<HashSet<JobId>>,
    pub(crate) stuck: AtomicUsize,
    pub(crate) threads: usize,
    runtime: tokio::runtime::Handle,
    pub(crate) minders: TaskTracker,
    running: Mutex<HashMap<JobId, Running>>,
    settled: Mutex<Option<mpsc::Sender<Settled>>>,
    pub(crate) wake: Notify,
    pub(crate) beat: Notify,
    /// Whether others can see that this process lives.
    pub(crate) alive: AtomicBool,
}

impl Worker {
    /// `keeper` are the pools for looking after jobs, `worker` those that jobs use.
    pub fn start(
        settings: Settings,
        keeper: Databases,
        worker: Databases,
        kinds: Kinds,
        periodic: Vec<Periodic>,
    ) -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4));
        let jobs = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("okt-jobs")
            .enable_all()
            .build()
            .map_err(Error::internal)?;
        let (sender, receiver) = mpsc::channel(2 * SETTLED);
        let shared = Arc::new(Shared {
            id: number(),
            slots: Slots::new(&settings.slots),
            settings,
            kinds,
            keeper,
            worker,
            suspects: AtomicBool::new(false),
            suspect_runs: AtomicBool::new(false),
            orphans: AtomicBool::new(false),
            untold: Mutex::default(),
            stuck: AtomicUsize::new(0),
            threads,
            runtime: jobs.handle().clone(),
            minders: TaskTracker::new(),
            running: Mutex::default(),
            settled: Mutex::new(Some(sender)),
            wake: Notify::new(),
            beat: Notify::new(),
            alive: AtomicBool::new(false),
        });
        let stop = CancellationToken::new();
        let (mut takers, mut keepers) = (JoinSet::new(), JoinSet::new());
        for home in shared.keeper.homes().to_vec() {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            takers.spawn(async move { relay(&shared.keeper, &home, &stop).await });
        }
        takers.spawn(Arc::clone(&shared).keep_claiming(stop.clone()));
        takers.spawn(Arc::clone(&shared).keep_order(periodic, stop.clone()));
        keepers.spawn(Arc::clone(&shared).keep_listening());
        keepers.spawn(Arc::clone(&shared).keep_beating());
        keepers.spawn(Arc::clone(&shared).keep_reporting());
        let settler = tokio::spawn(Arc::clone(&shared).keep_settling(receiver));
        Ok(Self { shared, stop, takers, keepers, settler, jobs: Some(jobs) })
    }

    /// Claims nothing more, lets running jobs end for a while, and gives back those that have not: no attempt is lost.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let takers = async { while self.takers.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WORDS, takers).await.is_err() {
            self.takers.abort_all();
        }
        self.shared.minders.close();
        if tokio::time::timeout(self.shared.settings.drain, self.shared.minders.wait()).await.is_err() {
            let left = self.shared.running().len();
            tracing::warn!(jobs = left, "jobs still running at the end of the drain are given back");
            self.shared.running().values_mut().for_each(|running| running.tell(Order::Release));
            drop(tokio::time::timeout(LAST_WORDS, self.shared.minders.wait()).await);
        }
        // Without a sender the settler ends when it has told everything.
        drop(self.shared.settled().take());
        drop(tokio::time::timeout(LAST_WORDS, &mut self.settler).await);
        let gone = async {
            let mut conn = self.shared.keeper.acquire_tasks().await?;
            // Whatever is still ours was not allowed to end: it loses no attempt by that.
            workers::give_back(&mut conn, self.shared.id, &[]).await?;
            workers::delete(&mut conn, self.shared.id).await?;
            conn.done();
            Ok::<_, Error>(())
        };
        if let Err(error) = gone.await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "can't say goodbye; others will notice");
        }
        self.keepers.shutdown().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.cancel();
        self.settler.abort();
        if let Some(jobs) = self.jobs.take() {
            jobs.shutdown_background();
        }
    }
}

impl Shared {
    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<JobId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn untold(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless somebody here has claimed it again meanwhile.
    pub(crate) fn forget_running(&self, id: JobId, claims: i32) {
        let mut running = self.running();
        if running.get(&id).is_some_and(|running| running.claims == claims) {
            running.remove(&id);
        }
    }

    fn settled(&self) -> MutexGuard<'_, Option<mpsc::Sender<Settled>>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the work of a job on the threads of jobs.
    pub(crate) fn spawn(
        &self,
        work: impl Future<Output = Result<Finished, JobError>> + Send + 'static,
    ) -> JoinHandle<Result<Finished, JobError>> {
        self.runtime.spawn(work)
    }

    pub(crate) async fn settle(&self, settled: Settled) {
        let sender = self.settled().clone();
        if let Some(sender) = sender {
            // The settler is gone only when the whole worker is, and then others find the job.
            drop(sender.send(settled).await);
        }
    }
}

/// Logs trouble when it begins and when it ends, and not in between.
pub(crate) fn changed(trouble: &mut bool, error: Option<&Error>, begins: &'static str, ends: &'static str) {
    match error {
        Some(error) if !*trouble => {
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, "{begins}");
        }
        None if *trouble => tracing::info!("{ends}"),
        _ => {}
    }
    *trouble = error.is_some();
}

/// A number that no other process has: the random part of an id.
fn number() -> i64 {
    let (_, random) = JobId::mint().uuid().as_u64_pair();
    (random >> 2).cast_signed()
}
