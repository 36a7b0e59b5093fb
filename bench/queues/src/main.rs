//! Measures two rival PostgreSQL job queues, each in its fastest documented configuration, for the comparison
//! table: `cargo run --release -- URL [--jobs 20000] [--concurrency 100]`. URL is an empty database.
//!
//! To add a rival, give it a module that implements [`Rival`] and a line in `main`.

mod phases;
mod rival_apalis;
mod rival_graphile;

use anyhow::{Context, Result};
use clap::Parser;
use sqlx::{PgPool, postgres::PgPoolOptions};
use std::{ops::Range, time::Instant};
use tokio::{sync::mpsc::UnboundedSender, task::JoinHandle};

/// What a job tells when it runs: its number and when it started. A job does nothing else, so it ends then, too.
type Starts = UnboundedSender<(u32, Instant)>;

/// A job queue, as the phases see it. Jobs are numbers.
trait Rival: Sized {
    const CRATE: &'static str;
    /// The schema that it makes in the database.
    const SCHEMA: &'static str;
    /// Counts the jobs that the database does not yet know to be done.
    const UNFINISHED: &'static str;
    /// How jobs are enqueued and how the worker is configured.
    const NOTE: &'static str;

    async fn setup(pool: &PgPool, concurrency: usize, starts: Starts) -> Result<Self>;
    async fn enqueue_batch(&mut self, jobs: Range<u32>) -> Result<()>;
    async fn enqueue(&mut self, job: u32) -> Result<()>;
    fn start(&self) -> JoinHandle<Result<()>>;
    /// Asks the worker to end.
    fn stop(&self);
}

#[derive(Parser)]
#[command(about = "Measure rival PostgreSQL job queues")]
struct Args {
    /// Address of an empty database, in which the rivals create their schemas
    url: String,
    /// Jobs to enqueue and to run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Jobs that a worker may run at once
    #[arg(long, default_value_t = 100)]
    concurrency: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    // 20 connections are the default of graphile_worker; apalis has none.
    let pool = PgPoolOptions::new().max_connections(20).connect(&args.url).await;
    let pool = pool.context("can't connect: is URL the address of a PostgreSQL database?")?;
    // Without these settings, the numbers can't be compared with those of another server.
    let settings = "SELECT format('PostgreSQL %s, fsync %s, synchronous_commit %s',
        current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'))";
    let server: String = sqlx::query_scalar(settings).fetch_one(&pool).await?;
    println!("{} no-op jobs, concurrency {}, {server}", args.jobs, args.concurrency);
    println!("(`VACUUM ANALYZE` before a worker starts and before single jobs are timed)\n");
    println!("| crate | enqueue/s | drain/s | enqueue→start p50 / p95 (ms) | note |\n|---|---|---|---|---|");
    Box::pin(row::<rival_graphile::Graphile>(&pool, &args)).await;
    Box::pin(row::<rival_apalis::Apalis>(&pool, &args)).await;
    Ok(())
}

/// Prints the row of one rival. One that can't be measured says why in its row, and the next one has its turn.
async fn row<R: Rival>(pool: &PgPool, args: &Args) {
    let cells = match phases::run::<R>(pool, args.jobs, args.concurrency).await {
        Ok(cells) => format!("{cells}; {}", R::NOTE),
        Err(error) => format!("– | – | – | not measured: {error:#}"),
    };
    // From the lock file, so that the table can't name another version than the one that ran.
    let version = include_str!("../Cargo.lock")
        .split_once(&format!("name = \"{}\"\nversion = \"", R::CRATE))
        .and_then(|(_, rest)| rest.split('"').next());
    println!("| `{}` {} | {cells} |", R::CRATE, version.unwrap_or("?"));
}
