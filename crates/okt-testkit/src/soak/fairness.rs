//! One tenant has everything waiting; another one asks for a single job.

use std::time::{Duration, Instant};

use okt_config::Config;
use okt_model::{NewJob, RepositoryId};
use okt_store::{Databases, Purpose};

use super::kinds::{Step, TABLES};
use super::percentile;
use super::workers::start;
use crate::db::{TestDatabase, run as run_sql};
use crate::jobs::waiting;

#[derive(Debug)]
pub struct Outcome {
    /// Milliseconds from the request to the start, with nobody else there.
    pub idle_p95: f64,
    /// The same beside a tenant with `waiting` jobs.
    pub beside_p95: f64,
    pub waiting: usize,
}

/// Makes the tables that the jobs write to.
pub async fn prepare(database: &TestDatabase) {
    run_sql(&mut database.connect().await, TABLES).await;
}

pub async fn run(config: &Config, crowd: usize, samples: usize) -> Outcome {
    let databases = Databases::open(config, &[Purpose::Api]).await.expect("the databases open").remove(0);
    let worker = start(config, 4, false, None, None).await.expect("a worker");
    let (big, small) = (RepositoryId::mint(), RepositoryId::mint());
    let mut idle = waits(&databases, small, samples).await;
    let jobs: Vec<NewJob> = (0..crowd).map(|n| job(big, i64::try_from(n).expect("a few"), 100)).collect();
    for part in jobs.chunks(1000) {
        let mut conn = databases.acquire_tasks().await.expect("a connection");
        okt_queue::enqueue(&mut conn, part).await.expect("jobs are queued");
    }
    let mut beside = waits(&databases, small, samples).await;
    let mut conn = databases.acquire_tasks().await.expect("a connection");
    let left: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM okt_tasks.jobs WHERE repository_id = $1 AND state = 'available'",
    )
    .bind(big.uuid())
    .fetch_one(&mut *conn)
    .await
    .expect("a number");
    assert!(left > 0, "the crowd was there to the end");
    drop(worker);
    Outcome {
        idle_p95: percentile(&mut idle, 0.95),
        beside_p95: percentile(&mut beside, 0.95),
        waiting: crowd,
    }
}

/// One job at a time: milliseconds until each ran.
async fn waits(databases: &Databases, repository: RepositoryId, samples: usize) -> Vec<f64> {
    let mut waits = Vec::new();
    for n in 0..samples {
        let job = job(repository, -i64::try_from(n).expect("a few") - 1, 1);
        let mut conn = databases.acquire_tasks().await.expect("a connection");
        okt_queue::enqueue(&mut conn, std::slice::from_ref(&job)).await.expect("it is queued");
        let deadline = Instant::now() + Duration::from_mins(1);
        // By the database's clock, so that looking takes nothing from what is measured.
        let wait = loop {
            let query =
                "SELECT (extract(epoch FROM started_at - created_at) * 1000)::float8 FROM okt_tasks.jobs
                          WHERE id = $1 AND state = 'completed'";
            let wait: Option<f64> = sqlx::query_scalar(query)
                .bind(job.id.uuid())
                .fetch_optional(&mut *conn)
                .await
                .expect("a row");
            if let Some(wait) = wait {
                break wait;
            }
            assert!(Instant::now() < deadline, "it never ran");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        drop(conn);
        waits.push(wait);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    waits
}

/// Straight into the queue, and without an outbox entry: what is measured is the wait, not the effect.
fn job(repository: RepositoryId, n: i64, work_ms: u64) -> NewJob {
    waiting(repository, &Step { n, step: 1, steps: 1, work_ms })
}
