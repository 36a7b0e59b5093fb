//! The three phases, the same for every rival: enqueue, drain, latency. Each ends by itself.

use crate::Rival;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use sqlx::PgPool;
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

const LIMIT: Duration = Duration::from_mins(2);
const BATCH: u32 = 1_000;
const SINGLES: u32 = 200;
const APART: Duration = Duration::from_millis(20);

type Started = UnboundedReceiver<(u32, Instant)>;

/// Returns the cells of a row, up to the beginning of the note.
pub async fn run<R: Rival>(pool: &PgPool, jobs: u32, concurrency: usize) -> Result<String> {
    let taken = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    let taken: bool = sqlx::query_scalar(taken).bind(R::SCHEMA).fetch_one(pool).await?;
    ensure!(!taken, "the database has a schema {} already: give an empty one", R::SCHEMA);
    let (starts, mut started) = unbounded_channel();
    let mut rival = limited("setup", R::setup(pool, concurrency, starts)).await?;
    let enqueue = limited("enqueue", enqueue(&mut rival, jobs)).await?;
    vacuum(pool).await?;

    let begin = Instant::now();
    let mut worker = rival.start();
    let cells = tokio::select! {
        ended = &mut worker => bail!("the worker ended: {ended:?}"),
        cells = async {
            let (drain, note) = limited("drain", drain::<R>(pool, &mut started, jobs, begin)).await?;
            vacuum(pool).await?;
            let latency = limited("latency", latency(&mut rival, &mut started, jobs)).await?;
            Ok(format!("{enqueue:.0} | {drain:.0} | {latency}; {note}"))
        } => cells,
    };
    rival.stop();
    if timeout(LIMIT, &mut worker).await.is_err() {
        // It would take from the next rival.
        worker.abort();
    }
    cells
}

async fn limited<T>(phase: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(LIMIT, work).await.with_context(|| format!("{phase} took more than {LIMIT:?}"))?.context(phase)
}

async fn enqueue<R: Rival>(rival: &mut R, jobs: u32) -> Result<f64> {
    let begin = Instant::now();
    for first in (0..jobs).step_by(BATCH as usize) {
        rival.enqueue_batch(first..jobs.min(first + BATCH)).await?;
    }
    Ok(f64::from(jobs) / begin.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "so few microseconds fit")]
async fn drain<R: Rival>(
    pool: &PgPool,
    started: &mut Started,
    jobs: u32,
    begin: Instant,
) -> Result<(f64, String)> {
    let before = getrusage(UsageWho::RUSAGE_SELF)?;
    let (ran, repeated) = collect(started, 0..jobs).await?;
    let after = getrusage(UsageWho::RUSAGE_SELF)?;
    let end = ran.values().max().copied().unwrap_or(begin);
    while sqlx::query_scalar::<_, i64>(R::UNFINISHED).fetch_one(pool).await? > 0 {
        sleep(Duration::from_millis(5)).await;
    }
    let recorded = end.elapsed().as_millis();
    let cpu = after.user_time() + after.system_time() - before.user_time() - before.system_time();
    let cpu = cpu.num_microseconds() as f64 / f64::from(jobs);
    let note = format!(
        "last end recorded {recorded} ms later, {repeated} repeated; {cpu:.0} µs CPU per job, the server's aside"
    );
    Ok((f64::from(jobs) / (end - begin).as_secs_f64(), note))
}

async fn latency<R: Rival>(rival: &mut R, started: &mut Started, first: u32) -> Result<String> {
    // The worker goes idle, as it is when a job comes by itself.
    sleep(Duration::from_secs(1)).await;
    let mut ticks = interval(APART);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let singles = first..first + SINGLES;
    let mut enqueued = Vec::new();
    for job in singles.clone() {
        ticks.tick().await;
        // Before the call, so that the enqueuing itself is in the wait.
        enqueued.push((job, Instant::now()));
        rival.enqueue(job).await?;
    }
    let (ran, _) = collect(started, singles).await?;
    let mut waits: Vec<f64> =
        enqueued.iter().map(|(job, at)| (ran[job] - *at).as_secs_f64() * 1_000.0).collect();
    waits.sort_by(f64::total_cmp);
    let share = |percent| waits[waits.len() * percent / 100];
    Ok(format!("{:.1} / {:.1} | slowest start {:.0} ms", share(50), share(95), waits[waits.len() - 1]))
}

/// Waits until every one of these jobs has run. Also says how many runs were repetitions.
async fn collect(started: &mut Started, jobs: Range<u32>) -> Result<(HashMap<u32, Instant>, usize)> {
    let (mut ran, mut repeated) = (HashMap::new(), 0);
    while ran.len() < jobs.len() {
        let (job, at) = started.recv().await.context("the worker is gone")?;
        if !jobs.contains(&job) || ran.contains_key(&job) {
            repeated += 1;
        } else {
            ran.insert(job, at);
        }
    }
    Ok((ran, repeated))
}

/// A fresh table that fills in a second has no statistics yet, and what the planner then makes of it is chance.
async fn vacuum(pool: &PgPool) -> Result<()> {
    sqlx::query("VACUUM ANALYZE").execute(pool).await?;
    Ok(())
}
