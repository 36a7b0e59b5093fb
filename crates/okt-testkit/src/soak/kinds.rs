//! Jobs that write rows, and jobs that misbehave.

use std::time::{Duration, Instant};

use okt_model::{Error, Payload};
use okt_queue::{Finished, JobContext, JobError, Kinds, SystemContext};
use okt_store::Connection;
use okt_store::outbox::When;
use serde::{Deserialize, Serialize};

/// Where they write.
pub const TABLES: &str = "
    CREATE SCHEMA okt_soak;
    CREATE TABLE okt_soak.effects (n bigint NOT NULL, step integer NOT NULL, at timestamptz DEFAULT clock_timestamp());
    CREATE INDEX ON okt_soak.effects (n, step);
    CREATE TABLE okt_soak.runs (job_id uuid NOT NULL, kind text NOT NULL, pid bigint NOT NULL,
                                at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE okt_soak.ticks (job_id uuid PRIMARY KEY);
    DO $$ BEGIN
        GRANT USAGE ON SCHEMA okt_soak TO okt_service;
        GRANT ALL ON ALL TABLES IN SCHEMA okt_soak TO okt_service;
    EXCEPTION WHEN undefined_object THEN NULL; END $$";

/// Works for a while, writes one row, and asks for the next step.
#[derive(Clone, Serialize, Deserialize)]
pub struct Step {
    pub n: i64,
    pub step: i32,
    pub steps: i32,
    pub work_ms: u64,
}

impl Payload for Step {
    const KIND: &'static str = "soak_step";
}

/// Fails in one of many ways.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Poison {
    pub how: Harm,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Harm {
    Panic,
    /// Takes the whole process with it.
    Abort,
    Refuse,
    /// Never comes to an `await`, for this many seconds.
    Spin(u64),
}

impl Payload for Poison {
    const KIND: &'static str = "soak_poison";
}

/// Does nothing.
#[derive(Clone, Serialize, Deserialize)]
pub struct Noop {}

impl Payload for Noop {
    const KIND: &'static str = "soak_noop";
}

/// Comes back at every tick.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tick {}

impl Payload for Tick {
    const KIND: &'static str = "soak_tick";
}

/// All of them. `naive` writes the row and deletes the outbox entry in two transactions, as one would without thinking.
pub fn kinds(naive: bool) -> Kinds {
    Kinds::default()
        .repository(move |payload: Step, ctx| step(payload, ctx, naive))
        .repository(poison)
        .repository(|_: Noop, ctx: JobContext| async move { ctx.begin().await?.commit(None).await })
        .system(|_: Tick, ctx| tick(ctx))
}

async fn step(payload: Step, ctx: JobContext, naive: bool) -> Result<Finished, JobError> {
    run(ctx.databases(), ctx.id(), Step::KIND).await?;
    tokio::time::sleep(Duration::from_millis(payload.work_ms)).await;
    if naive {
        let mut tx = ctx.read().await?;
        write(&mut tx, &payload).await?;
        tx.commit().await?;
    }
    let mut tx = ctx.begin().await?;
    if !naive {
        write(&mut tx, &payload).await?;
    }
    if payload.step < payload.steps {
        tx.push(&Step { step: payload.step + 1, ..payload }, When::default()).await?;
    }
    tx.commit(None).await
}

async fn write(conn: &mut Connection, payload: &Step) -> okt_pg::Result<()> {
    let row = sqlx::query("INSERT INTO okt_soak.effects (n, step) VALUES ($1, $2)");
    row.bind(payload.n).bind(payload.step).execute(conn).await?;
    Ok(())
}

async fn poison(payload: Poison, ctx: JobContext) -> Result<Finished, JobError> {
    run(ctx.databases(), ctx.id(), Poison::KIND).await?;
    match payload.how {
        Harm::Panic => panic!("asked to"),
        Harm::Abort => std::process::abort(),
        Harm::Refuse => Err(Error::Conflict("asked to fail for good").into()),
        Harm::Spin(seconds) => {
            let until = Instant::now() + Duration::from_secs(seconds);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            ctx.begin().await?.commit(None).await
        }
    }
}

async fn tick(ctx: SystemContext) -> Result<Finished, JobError> {
    run(ctx.databases(), ctx.id(), Tick::KIND).await?;
    let row = sqlx::query("INSERT INTO okt_soak.ticks (job_id) VALUES ($1) ON CONFLICT DO NOTHING");
    let mut conn = ctx.databases().acquire_system().await?;
    row.bind(ctx.id().uuid()).execute(&mut *conn).await.map_err(okt_pg::Error::from)?;
    Ok(ctx.finish(None))
}

/// Leaves a trace of every run, also of one that does not end.
async fn run(databases: &okt_store::Databases, id: okt_model::JobId, kind: &str) -> okt_pg::Result<()> {
    let mut conn = databases.acquire_system().await?;
    let row = sqlx::query("INSERT INTO okt_soak.runs (job_id, kind, pid) VALUES ($1, $2, $3)");
    let row = row.bind(id.uuid()).bind(kind).bind(i64::from(std::process::id()));
    row.execute(&mut *conn).await?;
    Ok(())
}
