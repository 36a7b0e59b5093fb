//! `graphile_worker`, with local queues and batched completions, which its own benchmark uses, too.

use crate::{Rival, Starts};
use anyhow::Result;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::time::{Duration, Instant};
use std::{ops::Range, sync::Arc};
use tokio::task::JoinHandle;

#[derive(Clone, Serialize, Deserialize)]
struct Noop {
    job: u32,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let starts = context.get_ext::<Starts>().ok_or("setup gave no place for starts")?;
        starts.send((self.job, Instant::now())).map_err(|_| "the bench is over")
    }
}

pub struct Graphile(Arc<Worker>);

impl Rival for Graphile {
    const CRATE: &'static str = "graphile_worker";
    const SCHEMA: &'static str = "graphile_worker";
    // It deletes what is done.
    const UNFINISHED: &'static str = "SELECT count(*) FROM graphile_worker._private_jobs";
    const NOTE: &'static str = "`add_jobs` of 1,000, one call after the other; 2 local queues of 1,000, \
        completions batched for 5 ms, notifications and a poll each second";

    async fn setup(pool: &PgPool, concurrency: usize, starts: Starts) -> Result<Self> {
        let worker = WorkerOptions::default()
            .pg_pool(pool.clone())
            .schema(Self::SCHEMA)
            .concurrency(concurrency)
            // On two cores, of 1 to 4 queues of 500 to 5,000 jobs, these drained fastest.
            .local_queue(LocalQueueConfig::default().with_size(1_000).with_queue_count(2))
            .complete_job_batch_delay(Duration::from_millis(5))
            .add_extension(starts)
            .define_job::<Noop>();
        Ok(Self(Arc::new(worker.init().await?)))
    }

    async fn enqueue_batch(&mut self, jobs: Range<u32>) -> Result<()> {
        let spec = JobSpec::default();
        let jobs: Vec<_> = jobs.map(|job| (Noop { job }, &spec)).collect();
        self.0.create_utils().add_jobs(&jobs).await?;
        Ok(())
    }

    async fn enqueue(&mut self, job: u32) -> Result<()> {
        self.0.create_utils().add_job(Noop { job }, JobSpec::default()).await?;
        Ok(())
    }

    fn start(&self) -> JoinHandle<Result<()>> {
        let worker = Arc::clone(&self.0);
        tokio::spawn(async move { Ok(worker.run().await?) })
    }

    fn stop(&self) {
        self.0.request_shutdown();
    }
}
