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
use crate::outcome::JobOutcome;
use crate::relay::relay;
use crate::rescue::GRACE;
use crate::schedule::Periodic;
use crate::slots::Slots;
use crate::supervisor::{Running, StopReason};
use crate::worker_registration;

/// How often the queue is polled without a notification.
pub(crate) const POLL: Duration = Duration::from_secs(1);
pub(crate) const RECONNECT: Duration = Duration::from_millis(300);
/// How long jobs that were told to stop may take at the end.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How many outcomes are recorded at once.
pub(crate) const OUTCOME_BATCH: usize = 500;

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
    /// A job without a heartbeat for longer than this is released to other workers.
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
    /// Stops claiming, relaying and scheduling, which end first.
    stop: CancellationToken,
    intake: JoinSet<()>,
    /// Heartbeats, progress and LISTEN, which go on until the last job has ended.
    background: JoinSet<()>,
    outcome_task: JoinHandle<()>,
    jobs: Option<Runtime>,
}

pub(crate) struct Shared {
    pub(crate) id: i64,
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    /// Pools for the queue's own statements.
    pub(crate) queue_databases: Databases,
    /// Pools for the statements of jobs.
    pub(crate) job_databases: Databases,
    pub(crate) slots: Slots,
    /// Whether a suspect waits (a job that was running at two crashes), and whether one runs.
    pub(crate) suspects: AtomicBool,
    pub(crate) suspect_runs: AtomicBool,
    /// Whether the queue may list jobs for this worker that it does not run.
    pub(crate) orphans: AtomicBool,
    /// Jobs that have ended here and whose outcome is not recorded yet.
    unrecorded: Mutex<HashSet<JobId>>,
    pub(crate) stuck: AtomicUsize,
    pub(crate) threads: usize,
    runtime: tokio::runtime::Handle,
    pub(crate) supervisors: TaskTracker,
    running: Mutex<HashMap<JobId, Running>>,
    outcomes: Mutex<Option<mpsc::Sender<JobOutcome>>>,
    pub(crate) wake: Notify,
    pub(crate) beat: Notify,
    /// Whether this worker is registered and holds its advisory lock.
    pub(crate) alive: AtomicBool,
}

impl Worker {
    /// `queue_databases` are the pools for the queue's own statements, `job_databases` those that jobs use.
    pub fn start(
        settings: Settings,
        queue_databases: Databases,
        job_databases: Databases,
        kinds: Kinds,
        periodic: Vec<Periodic>,
    ) -> Result<Self> {
        // A runtime of their own: a job that computes without a pause must not hold up the heartbeats, without which
        // others take all jobs of this process for dead, nor the answers to requests.
        let threads = std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4));
        let jobs = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("okt-jobs")
            .enable_all()
            .build()
            .map_err(Error::internal)?;
        let (sender, receiver) = mpsc::channel(2 * OUTCOME_BATCH);
        let shared = Arc::new(Shared {
            id: number(),
            slots: Slots::new(&settings.slots),
            settings,
            kinds,
            queue_databases,
            job_databases,
            suspects: AtomicBool::new(false),
            suspect_runs: AtomicBool::new(false),
            orphans: AtomicBool::new(false),
            unrecorded: Mutex::default(),
            stuck: AtomicUsize::new(0),
            threads,
            runtime: jobs.handle().clone(),
            supervisors: TaskTracker::new(),
            running: Mutex::default(),
            outcomes: Mutex::new(Some(sender)),
            wake: Notify::new(),
            beat: Notify::new(),
            alive: AtomicBool::new(false),
        });
        let stop = CancellationToken::new();
        let (mut intake, mut background) = (JoinSet::new(), JoinSet::new());
        for database in shared.queue_databases.shards().to_vec() {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            intake.spawn(async move { relay(&shared.queue_databases, &database, &stop).await });
        }
        intake.spawn(Arc::clone(&shared).claim_loop(stop.clone()));
        intake.spawn(Arc::clone(&shared).maintenance_loop(periodic, stop.clone()));
        background.spawn(Arc::clone(&shared).listen_loop());
        background.spawn(Arc::clone(&shared).heartbeat_loop());
        background.spawn(Arc::clone(&shared).progress_loop());
        let outcome_task = tokio::spawn(Arc::clone(&shared).outcome_loop(receiver));
        Ok(Self { shared, stop, intake, background, outcome_task, jobs: Some(jobs) })
    }

    /// Claims nothing more, lets running jobs end for a while, and gives back those that have not: no attempt is lost.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let intake = async { while self.intake.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, intake).await.is_err() {
            self.intake.abort_all();
        }
        self.shared.supervisors.close();
        if tokio::time::timeout(self.shared.settings.drain, self.shared.supervisors.wait()).await.is_err() {
            let left = self.shared.running().len();
            let timeout_s = self.shared.settings.drain.as_secs_f64();
            tracing::warn!(jobs = left, timeout_s, "drain timed out; releasing the jobs that still run");
            self.shared.running().values_mut().for_each(|running| running.stop(StopReason::Release));
            drop(tokio::time::timeout(STOP_TIMEOUT, self.shared.supervisors.wait()).await);
        }
        // Without a sender the outcome_task ends when it has told everything.
        drop(self.shared.outcomes().take());
        drop(tokio::time::timeout(STOP_TIMEOUT, &mut self.outcome_task).await);
        let gone = async {
            let mut conn = self.shared.queue_databases.acquire_tasks().await?;
            // Whatever is still ours was not allowed to end: it loses no attempt by that.
            worker_registration::release(&mut conn, self.shared.id, &[]).await?;
            worker_registration::delete(&mut conn, self.shared.id).await?;
            Ok::<_, Error>(())
        };
        if let Err(error) = gone.await {
            let error = &error as &dyn std::error::Error;
            let reaped_in_s = GRACE.as_secs();
            tracing::warn!(
                worker.id = self.shared.id,
                error,
                reaped_in_s,
                "failed to deregister worker; peers will reap it"
            );
        }
        self.background.shutdown().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.cancel();
        self.outcome_task.abort();
        if let Some(jobs) = self.jobs.take() {
            jobs.shutdown_background();
        }
    }
}

impl Shared {
    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<JobId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unrecorded(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless this worker has claimed it again since.
    pub(crate) fn remove_running(&self, id: JobId, fencing_token: i32) {
        let mut running = self.running();
        if running.get(&id).is_some_and(|running| running.fencing_token == fencing_token) {
            running.remove(&id);
        }
    }

    fn outcomes(&self) -> MutexGuard<'_, Option<mpsc::Sender<JobOutcome>>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the work of a job on the threads of jobs.
    pub(crate) fn spawn(
        &self,
        work: impl Future<Output = Result<Finished, JobError>> + Send + 'static,
    ) -> JoinHandle<Result<Finished, JobError>> {
        self.runtime.spawn(work)
    }

    pub(crate) async fn send_outcome(&self, outcome: JobOutcome) {
        let sender = self.outcomes().clone();
        if let Some(sender) = sender {
            // The outcome_task is gone only when the whole worker is, and then others find the job.
            drop(sender.send(outcome).await);
        }
    }
}

/// Logs when trouble begins and when it ends, and not in between.
pub(crate) fn log_transition(
    trouble: &mut bool,
    error: Option<&Error>,
    begins: &'static str,
    ends: &'static str,
) {
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
