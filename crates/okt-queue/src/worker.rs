//! The process that runs jobs: what it claims, what it says of itself, and how it ends.
//!
//! Jobs run on threads of their own. One that never comes to an `await` takes one of those, and nothing else: claims,
//! heartbeats and the answers to requests go on.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

use crate::backoff::about;
use crate::claim::{SUSPECT, claim};
use crate::context::{Finished, JobError};
use crate::heartbeat::{Report, beat, report};
use crate::kinds::Kinds;
use crate::minder::{Order, Running, mind};
use crate::relay::relay;
use crate::rescue::rescue;
use crate::schedule::{Periodic, promote, tick};
use crate::settle::{Settled, settle, settle_each};
use crate::slots::Slots;
use crate::sweep::{Walk, forget};
use crate::workers;

/// How often the queue is looked at without having heard anything.
const POLL: Duration = Duration::from_secs(1);
const RECONNECT: Duration = Duration::from_millis(300);
/// How often what jobs say of themselves is written down.
const REPORT: Duration = Duration::from_millis(250);
/// How often a part of everything is looked through.
const SWEEP: Duration = Duration::from_secs(10);
/// How long a silent connection is trusted.
const SILENCE: Duration = Duration::from_secs(20);
/// How long jobs that were told to stop may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(3);
const SETTLED: usize = 500;

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
    id: i64,
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    /// For looking after jobs.
    keeper: Databases,
    /// For what jobs do.
    pub(crate) worker: Databases,
    pub(crate) slots: Slots,
    pub(crate) suspects: AtomicUsize,
    pub(crate) stuck: AtomicUsize,
    threads: usize,
    runtime: tokio::runtime::Handle,
    minders: TaskTracker,
    running: Mutex<HashMap<JobId, Running>>,
    settled: Mutex<Option<mpsc::Sender<Settled>>>,
    wake: Notify,
    beat: Notify,
    /// Whether others can see that this process lives.
    alive: AtomicBool,
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
            suspects: AtomicUsize::new(0),
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
        while self.takers.join_next().await.is_some() {}
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

    /// Whether this process should take on more.
    fn may_claim(&self) -> bool {
        self.alive.load(Ordering::Relaxed) && self.stuck.load(Ordering::Relaxed) + 1 < self.threads
    }

    async fn keep_claiming(self: Arc<Self>, stop: CancellationToken) {
        let mut trouble = false;
        loop {
            let more = if self.may_claim() { self.claim().await } else { Ok(false) };
            let pause = match &more {
                Ok(true) => continue,
                Ok(false) => POLL,
                Err(_) => RECONNECT,
            };
            changed(
                &mut trouble,
                more.err().as_ref(),
                "jobs can't be claimed, will try again",
                "jobs are claimed again",
            );
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = self.slots.freed() => {}
                () = tokio::time::sleep(about(pause)) => {}
            }
            if stop.is_cancelled() {
                return;
            }
        }
    }

    /// Claims what there is room for; true when more could be had at once.
    async fn claim(self: &Arc<Self>) -> Result<bool> {
        let free = self.slots.free();
        if free.is_empty() {
            return Ok(false);
        }
        let suspect = self.suspects.load(Ordering::Relaxed) == 0;
        let mut conn = self.keeper.acquire_tasks().await?;
        let claimed = claim(&mut conn, self.id, &free, suspect).await?;
        conn.done();
        let mut counts = BTreeMap::new();
        for job in &claimed {
            *counts.entry(job.kind.as_str()).or_insert(0) += 1;
        }
        let more = self.slots.take(&free, &counts);
        for job in claimed {
            if job.crashes >= SUSPECT {
                self.suspects.fetch_add(1, Ordering::Relaxed);
            }
            self.minders.spawn(mind(Arc::clone(self), job));
        }
        Ok(more)
    }

    /// Hears of waiting jobs and of those to cancel, and holds the lock by which others know that this process lives.
    async fn keep_listening(self: Arc<Self>) {
        let kinds: Vec<String> = self.settings.slots.keys().cloned().collect();
        loop {
            let heard: Result<()> = async {
                let mut listener =
                    self.keeper.listen_to_tasks(&["okt_jobs_waiting", "okt_jobs_cancel"]).await?;
                listener.lock(self.id).await?;
                let mut conn = self.keeper.acquire_tasks().await?;
                workers::register(&mut conn, self.id, &self.settings.name, &kinds).await?;
                conn.done();
                self.alive.store(true, Ordering::Relaxed);
                // Something may have been said meanwhile, and somebody may have taken our jobs.
                self.wake.notify_one();
                self.beat.notify_one();
                loop {
                    tokio::select! {
                        heard = listener.hear() => {
                            let (channel, message) = heard?;
                            self.heed(&channel, &message);
                        }
                        () = tokio::time::sleep(SILENCE) => listener.ping().await?,
                    }
                }
            }
            .await;
            self.alive.store(false, Ordering::Relaxed);
            if let Err(error) = heard {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the connection to listen on is gone"
                );
            }
            tokio::time::sleep(about(RECONNECT)).await;
        }
    }

    fn heed(&self, channel: &str, message: &str) {
        if channel == "okt_jobs_cancel" {
            if let Ok(id) = message.parse::<JobId>()
                && let Some(running) = self.running().get_mut(&id)
            {
                running.tell(Order::Cancel);
            }
            return;
        }
        let mut any = false;
        for kind in message.split(',') {
            any |= self.slots.offer(kind);
        }
        if any {
            self.wake.notify_one();
        }
    }

    async fn keep_beating(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.beat.notified() => {}
                () = tokio::time::sleep(about(self.settings.heartbeat_interval)) => {}
            }
            if let Err(error) = self.beat().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "can't say that jobs are alive");
                tokio::time::sleep(about(RECONNECT)).await;
                self.beat.notify_one();
            }
        }
    }

    async fn beat(&self) -> Result<()> {
        let running: Vec<(JobId, i32)> =
            self.running().iter().map(|(id, running)| (*id, running.claims)).collect();
        metrics::gauge!("okt_jobs_running").set(u32::try_from(running.len()).unwrap_or(u32::MAX));
        metrics::gauge!("okt_jobs_stuck")
            .set(u32::try_from(self.stuck.load(Ordering::Relaxed)).unwrap_or(u32::MAX));
        if running.is_empty() {
            return Ok(());
        }
        let mut conn = self.keeper.acquire_tasks().await?;
        let beats = beat(&mut conn, &running).await?;
        conn.done();
        let ours: HashMap<JobId, bool> = beats.into_iter().map(|beat| (beat.id, beat.cancelled)).collect();
        let mut all = self.running();
        for (id, claims) in running {
            let Some(running) = all.get_mut(&id).filter(|running| running.claims == claims) else { continue };
            match ours.get(&id) {
                Some(false) => {}
                Some(true) => running.tell(Order::Cancel),
                None => running.tell(Order::Lost),
            }
        }
        Ok(())
    }

    async fn keep_reporting(self: Arc<Self>) {
        loop {
            tokio::time::sleep(REPORT).await;
            let reports = self.reports();
            if reports.is_empty() {
                continue;
            }
            let told = async {
                let mut conn = self.keeper.acquire_tasks().await?;
                report(&mut conn, &reports).await?;
                conn.done();
                Ok::<_, Error>(())
            };
            if let Err(error) = told.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "can't say how far jobs are");
            }
        }
    }

    /// Of jobs that said something, or that nobody has heard of yet.
    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for (id, running) in &mut *self.running() {
            let (claims, repository) = (running.claims, running.repository);
            let before = reports.len();
            running.said.anything(|progress, cost| {
                reports.push(Report { id: *id, claims, repository, progress, cost });
            });
            if reports.len() == before && !running.announced {
                let (progress, cost) = (None, okt_model::Cost::default());
                reports.push(Report { id: *id, claims, repository, progress, cost });
            }
            running.announced = true;
        }
        reports
    }

    async fn keep_settling(self: Arc<Self>, mut receiver: mpsc::Receiver<Settled>) {
        let mut batch = Vec::with_capacity(SETTLED);
        while receiver.recv_many(&mut batch, SETTLED).await > 0 {
            let mut trouble = false;
            loop {
                let told = self.tell(&batch).await;
                let again = told.as_ref().is_err_and(Error::retryable);
                changed(
                    &mut trouble,
                    told.as_ref().err(),
                    "what became of jobs can't be told",
                    "what became of jobs was told",
                );
                if !again {
                    break;
                }
                tokio::time::sleep(about(RECONNECT)).await;
            }
            batch.clear();
        }
    }

    async fn tell(&self, batch: &[Settled]) -> Result<()> {
        let mut conn = self.keeper.acquire_tasks().await?;
        let settled = match settle(&mut conn, batch).await {
            Err(error) if !error.retryable() => settle_each(&mut conn, batch).await,
            settled => settled,
        }?;
        conn.done();
        metrics::counter!("okt_jobs_settled_total").increment(settled.len() as u64);
        let refused = batch.len() - settled.len();
        if refused > 0 {
            metrics::counter!("okt_jobs_refused_total").increment(refused as u64);
            tracing::warn!(
                jobs = refused,
                "jobs had been taken over by somebody else; what became of them here was refused"
            );
        }
        Ok(())
    }

    /// Promotes, ticks and rescues every second, and sweeps now and then.
    async fn keep_order(self: Arc<Self>, periodic: Vec<Periodic>, stop: CancellationToken) {
        let (mut trouble, mut walk) = (false, Walk::default());
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rescuing = self.settings.rescue_on_startup;
        loop {
            let done = self.order(&periodic, rescuing).await;
            changed(
                &mut trouble,
                done.err().as_ref(),
                "the queue can't be looked after, will try again",
                "the queue is looked after again",
            );
            rescuing = true;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(about(POLL)) => {}
                _ = sweeps.tick() => self.sweep(&mut walk).await,
            }
        }
    }

    async fn order(&self, periodic: &[Periodic], rescuing: bool) -> Result<()> {
        let mut conn = self.keeper.acquire_tasks().await?;
        promote(&mut conn).await?;
        tick(&mut conn, periodic).await?;
        conn.done();
        if rescuing {
            let count = rescue(&self.keeper, self.id, self.settings.heartbeat_timeout).await?;
            if count > 0 {
                metrics::counter!("okt_jobs_rescued_total").increment(count);
                tracing::warn!(jobs = count, "jobs whose process died or fell silent were given back");
            }
        }
        Ok(())
    }

    async fn sweep(&self, walk: &mut Walk) {
        match walk.find_lost(&self.keeper).await {
            Ok(0) => {}
            Ok(jobs) => tracing::warn!(jobs, "the queue had lost jobs; their notes are carried to it again"),
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "can't look for lost jobs");
            }
        }
        if let Err(error) = forget(&self.keeper).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "can't forget old jobs, will try again");
        }
    }
}

/// Logs trouble when it begins and when it ends, and not in between.
fn changed(trouble: &mut bool, error: Option<&Error>, begins: &'static str, ends: &'static str) {
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
