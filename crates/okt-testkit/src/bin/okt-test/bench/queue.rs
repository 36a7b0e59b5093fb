//! What the queue costs beyond a bare loop of `FOR UPDATE SKIP LOCKED`: queueing by the thousand, claiming and completing
//! by the hundred, with little and with a million jobs waiting, and how soon a job starts. Built and run in release:
//! `cargo xtask bench`.
//!
//! The arms take turns (bare, ours, ours, bare), each on empty tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use okt_config::Config;
use okt_model::{JobId, NewJob, Payload, RepositoryId};
use okt_queue::{Kinds, SystemContext, Worker};
use okt_store::outbox::{self, When};
use okt_store::{Databases, Purpose};
use okt_testkit::cluster::Cluster;
use okt_testkit::db::{self, config};
use okt_testkit::jobs::{waiting, worker};
use okt_testkit::soak::percentile;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

const JOBS: usize = 20_000;
const BATCH: usize = 1_000;
const CLAIM: u32 = 100;
const TENANTS: usize = 1_000;
/// What has to be reached.
const ENQUEUE: f64 = 0.7;
const DRAIN: f64 = 0.7;
const FLAT: f64 = 0.9;
const START_MS: f64 = 20.0;

#[derive(Serialize, Deserialize)]
struct Noop {}

impl Payload for Noop {
    const KIND: &'static str = "noop";
}

const BARE: &str = "CREATE TABLE bare (id uuid PRIMARY KEY, kind text NOT NULL, payload jsonb NOT NULL,
        state text NOT NULL DEFAULT 'available', attempt int NOT NULL DEFAULT 0,
        run_at timestamptz NOT NULL DEFAULT clock_timestamp(), finished_at timestamptz);
    CREATE INDEX ON bare (kind, run_at) WHERE state = 'available'";

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let rounds = arguments.first().map_or(Ok(5), |text| text.parse())?;
    let backlog = arguments.get(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let cluster = Cluster::start();
    let config = config(&[("SVC__DATABASES__DEFAULT__URL", &cluster.url())]);
    Databases::migrate(&config).await?;
    let mut conn = PgConnection::connect(&cluster.url()).await?;
    db::run(&mut conn, BARE).await;
    let bench = Bench { config, tenants: (0..TENANTS).map(|_| RepositoryId::mint()).collect(), cluster };

    let (mut enqueue, mut drain, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let arms = [
            bench.bare(&mut conn).await?,
            bench.ours(&mut conn).await?,
            bench.ours(&mut conn).await?,
            bench.bare(&mut conn).await?,
        ];
        for (bare, ours) in [(&arms[0], &arms[1]), (&arms[3], &arms[2])] {
            enqueue.push(ours.enqueue / bare.enqueue);
            drain.push(ours.drain / bare.drain);
            cpu.push(bare.cpu / ours.cpu);
        }
        println!("round {round}: {arms:.2?}");
    }
    let (enqueued, drained) = (percentile(&mut enqueue, 0.5), percentile(&mut drain, 0.5));
    println!("queueing by {BATCH}: {enqueued:.2} of bare (limit {ENQUEUE})");
    println!(
        "claiming and completing by {CLAIM}: {drained:.2} of bare (limit {DRAIN}); PostgreSQL's CPU {:.2}",
        percentile(&mut cpu, 0.5)
    );
    let (small, large) = bench.flat(&mut conn, backlog).await?;
    let flat = large / small;
    println!(
        "with {backlog} waiting over {TENANTS} tenants: {large:.0} a second against {small:.0}, {flat:.2} (limit {FLAT})"
    );
    let (queue_ms, entry_ms) = bench.starts(&mut conn).await?;
    println!(
        "from queued to started: p50 {queue_ms:.1} ms; from the committed outbox entry: p50 {entry_ms:.1} ms (limit {START_MS} ms)"
    );
    ensure!(
        enqueued >= ENQUEUE && drained >= DRAIN && flat >= FLAT && entry_ms <= START_MS,
        "a figure is worse than its limit"
    );
    Ok(())
}

struct Bench {
    cluster: Cluster,
    config: Config,
    tenants: Vec<RepositoryId>,
}

/// Jobs a second, and seconds of PostgreSQL's CPU for claiming and completing.
#[derive(Debug)]
struct Arm {
    enqueue: f64,
    drain: f64,
    cpu: f64,
}

impl Bench {
    /// Two statements in a loop.
    async fn bare(&self, conn: &mut PgConnection) -> anyhow::Result<Arm> {
        self.clear(conn).await;
        let started = Instant::now();
        for _ in 0..JOBS / BATCH {
            let ids: Vec<Uuid> = (0..BATCH).map(|_| JobId::mint().uuid()).collect();
            sqlx::query(
                "INSERT INTO bare (id, kind, payload) SELECT i, 'noop', '{}' FROM unnest($1::uuid[]) AS i",
            )
            .bind(ids)
            .execute(&mut *conn)
            .await?;
        }
        let enqueue = rate(JOBS, started);
        let (started, before) = (Instant::now(), self.cluster.cpu_seconds());
        let mut done = 0;
        while done < JOBS {
            let ids: Vec<Uuid> = sqlx::query_scalar(
                "UPDATE bare SET state = 'running', attempt = attempt + 1 WHERE id = ANY (ARRAY(
                     SELECT id FROM bare WHERE kind = 'noop' AND state = 'available'
                      ORDER BY run_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id",
            )
            .bind(i64::from(CLAIM))
            .fetch_all(&mut *conn)
            .await?;
            done += ids.len();
            sqlx::query(
                "UPDATE bare SET state = 'completed', finished_at = clock_timestamp() WHERE id = ANY ($1)",
            )
            .bind(ids)
            .execute(&mut *conn)
            .await?;
        }
        Ok(Arm { enqueue, drain: rate(JOBS, started), cpu: self.cluster.cpu_seconds() - before })
    }

    async fn ours(&self, conn: &mut PgConnection) -> anyhow::Result<Arm> {
        self.clear(conn).await;
        let keeper = Databases::open(&self.config, &[Purpose::Queue]).await?.remove(0);
        let started = Instant::now();
        for (tenant, batch) in self.jobs(JOBS).chunks_mut(BATCH).enumerate() {
            // Whoever asks for a thousand jobs asks for one repository.
            for job in batch.iter_mut() {
                job.repository = Some(self.tenants[tenant]);
            }
            let mut conn = keeper.acquire_tasks().await?;
            okt_queue::enqueue(&mut conn, batch).await?;
        }
        let enqueue = rate(JOBS, started);
        let before = self.cluster.cpu_seconds();
        let drain = self.drain(JOBS).await?;
        keeper.close().await;
        Ok(Arm { enqueue, drain, cpu: self.cluster.cpu_seconds() - before })
    }

    /// Jobs a second with little and with much waiting.
    async fn flat(&self, conn: &mut PgConnection, backlog: usize) -> anyhow::Result<(f64, f64)> {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        self.clear(conn).await;
        // Every tenant has its share of every turn.
        let fill = format!(
            "INSERT INTO okt_tasks.jobs (id, repository_id, kind, state, priority, turn, payload, max_attempts)
             SELECT gen_random_uuid(), md5((g % {TENANTS})::text)::uuid, 'noop', 'available', 0, g / {TENANTS}, '{{}}', 10
               FROM generate_series(1, {backlog}) AS g; VACUUM ANALYZE okt_tasks.jobs"
        );
        for statement in fill.split("; ") {
            db::run(conn, statement).await;
        }
        for _ in 0..3 {
            large.push(self.drain(JOBS).await?);
        }
        for _ in 0..3 {
            small.push(self.ours(conn).await?.drain);
        }
        Ok((percentile(&mut small, 0.5), percentile(&mut large, 0.5)))
    }

    /// Jobs a second of a worker until it has done so many.
    async fn drain(&self, jobs: usize) -> anyhow::Result<f64> {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&done);
        let worker = self.worker(move |_: Noop, ctx: SystemContext| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok(ctx.finish(None)) }
        });
        let worker = worker.await;
        // From the first claim, because starting a process is another matter.
        while done.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        let (started, first) = (Instant::now(), done.load(Ordering::Relaxed));
        while done.load(Ordering::Relaxed) < jobs {
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        let drained = rate(done.load(Ordering::Relaxed) - first, started);
        worker.stop().await;
        Ok(drained)
    }

    /// Milliseconds until an idle worker starts a job that was queued, and one whose outbox entry was committed.
    async fn starts(&self, conn: &mut PgConnection) -> anyhow::Result<(f64, f64)> {
        self.clear(conn).await;
        let databases = Databases::open(&self.config, &[Purpose::Api]).await?.remove(0);
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let worker = self.worker(move |_: Noop, ctx: SystemContext| {
            let _ = told.send(Instant::now());
            async move { Ok(ctx.finish(None)) }
        });
        let worker = worker.await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (mut queued, mut noted) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let asked = Instant::now();
            let mut tasks = databases.acquire_tasks().await?;
            okt_queue::enqueue(&mut tasks, &self.jobs(1)).await?;
            drop(tasks);
            queued.push(
                heard.recv().await.map_or(f64::MAX, |at| at.duration_since(asked).as_secs_f64() * 1000.0),
            );
            let repository = self.tenants[0];
            let mut tx = databases.begin("default", repository).await?;
            outbox::push(&mut tx, repository, JobId::mint(), &Noop {}, When::default()).await?;
            let asked = Instant::now();
            tx.commit().await?;
            noted.push(
                heard.recv().await.map_or(f64::MAX, |at| at.duration_since(asked).as_secs_f64() * 1000.0),
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        worker.stop().await;
        databases.close().await;
        Ok((percentile(&mut queued, 0.5), percentile(&mut noted, 0.5)))
    }

    async fn worker<F, R>(&self, noop: F) -> Worker
    where
        F: Fn(Noop, SystemContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<okt_queue::Finished, okt_queue::JobError>> + Send + 'static,
    {
        let kinds = Kinds::default().system(noop);
        worker(&self.config, kinds, vec![], |settings| {
            settings.slots = BTreeMap::from([(Noop::KIND.to_owned(), CLAIM)]);
        })
        .await
    }

    fn jobs(&self, many: usize) -> Vec<NewJob> {
        let job = |n: usize| waiting(self.tenants[n % self.tenants.len()], &Noop {});
        (0..many).map(job).collect()
    }

    async fn clear(&self, conn: &mut PgConnection) {
        db::run(conn, "TRUNCATE bare, okt_tasks.jobs, okt_tasks.lanes, okt_tasks.workers").await;
    }
}

fn rate(jobs: usize, started: Instant) -> f64 {
    f64::from(u32::try_from(jobs).unwrap_or(u32::MAX)) / started.elapsed().as_secs_f64()
}
