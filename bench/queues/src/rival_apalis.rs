//! `apalis-postgres`, woken by notifications as in its README.

use crate::{Rival, Starts};
use anyhow::{Context, Result};
use apalis::layers::WorkerBuilderExt;
use apalis::prelude::{BackendExt, BoxDynError, Data, TaskSink, WorkerBuilder, WorkerContext};
use apalis_postgres::{Config, PostgresStorage};
use sqlx::PgPool;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

async fn noop(job: u32, starts: Data<Starts>) -> Result<(), BoxDynError> {
    Ok(starts.send((job, Instant::now()))?)
}

pub struct Apalis {
    storage: PostgresStorage<u32>,
    concurrency: usize,
    starts: Starts,
    context: WorkerContext,
}

impl Rival for Apalis {
    const CRATE: &'static str = "apalis-postgres";
    const SCHEMA: &'static str = "apalis";
    // It keeps what is done.
    const UNFINISHED: &'static str = "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'";
    const NOTE: &'static str = "`push_bulk` of 1,000, one call after the other; fetches of 1,000, `lock_tasks` \
        off, pubsub and a poll each second";

    async fn setup(pool: &PgPool, concurrency: usize, starts: Starts) -> Result<Self> {
        PostgresStorage::setup(pool).await.context("migrations, which need the extension hstore")?;
        // A fetch reserves its jobs already, so the second mark of `lock_tasks` is no more than a status. Without
        // `persist_results` it would be faster still, but the end of a job would not be recorded at all.
        let config = Config::default().queue("noop").batch_size(1_000).lock_tasks(false);
        let storage = PostgresStorage::new(pool).with_config(config);
        Ok(Self { storage, concurrency, starts, context: WorkerContext::new("bench") })
    }

    async fn enqueue_batch(&mut self, jobs: Range<u32>) -> Result<()> {
        Ok(self.storage.push_bulk(jobs.collect()).await?)
    }

    async fn enqueue(&mut self, job: u32) -> Result<()> {
        Ok(self.storage.push(job).await?)
    }

    fn start(&self) -> JoinHandle<Result<()>> {
        // Without `parallelize(tokio::spawn)`, which doubles the CPU of a no-op job and drains no faster. The poll
        // is needed: now and then a worker with pubsub alone sleeps through a notification.
        let worker = WorkerBuilder::new(&self.context)
            .backend(self.storage.clone().with_pubsub().poll_with_interval(Duration::from_secs(1)))
            .concurrency(self.concurrency)
            .data(self.starts.clone())
            .build(noop);
        tokio::spawn(async move { Ok(worker.run().await?) })
    }

    fn stop(&self) {
        // Fails only if the worker has ended, which is all that is wanted.
        let _ = self.context.stop();
    }
}
