//! Jobs whose time has come: those that were put off, and those that come back at every tick.

use std::time::Duration;

use okt_model::{JobId, NewJob, Payload};
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

use crate::enqueue::enqueue;

const BATCH: i64 = 1000;

/// A job of the installation that is due once in every period. Every process asks for it; the id, made of kind and tick
/// by the database's clock, lets only the first one have its way. No process leads, so none can hold up the others.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// But for its id, which each tick has its own of.
    job: NewJob,
    every: Duration,
}

impl Periodic {
    /// At most a day apart: for as long are finished jobs remembered.
    pub fn new<P: Payload>(payload: &P, every: Duration) -> serde_json::Result<Self> {
        let every = every.clamp(Duration::from_secs(1), Duration::from_hours(24));
        Ok(Self { job: NewJob::of_the_system(JobId::mint(), payload)?, every })
    }
}

/// Queues what this tick has not seen yet.
#[tracing::instrument(level = "debug", name = "db.jobs.tick", skip_all)]
pub(crate) async fn tick(conn: &mut Connection, periodic: &[Periodic]) -> Result<()> {
    if periodic.is_empty() {
        return Ok(());
    }
    let kinds: Vec<String> = periodic.iter().map(|periodic| periodic.job.kind.clone()).collect();
    let seconds: Vec<f64> = periodic.iter().map(|periodic| periodic.every.as_secs_f64()).collect();
    let keys: Vec<Option<String>> = periodic.iter().map(|periodic| periodic.job.unique_key.clone()).collect();
    let due = sqlx::query!(
        r#"WITH ticks AS (
               SELECT p.kind, p.unique_key,
                      md5(p.kind || ':' || floor(extract(epoch FROM clock_timestamp()) / p.every))::uuid AS id
                 FROM unnest($1::text[], $2::float8[], $3::text[]) AS p (kind, every, unique_key))
           SELECT kind AS "kind!", id AS "id!: Uuid" FROM ticks t
            WHERE NOT EXISTS (SELECT FROM okt_tasks.jobs j WHERE j.id = t.id)
              -- One that still waits or runs does this tick's work, too.
              AND NOT EXISTS (SELECT FROM okt_tasks.jobs j
                               WHERE j.kind = t.kind AND j.unique_key = t.unique_key
                                 AND coalesce(j.repository_id, '00000000-0000-0000-0000-000000000000')
                                     = '00000000-0000-0000-0000-000000000000'
                                 AND j.state IN ('scheduled', 'available', 'running', 'retryable'))"#,
        &kinds,
        &seconds,
        &keys as &[Option<String>],
    )
    .fetch_all(&mut *conn)
    .await?;
    let jobs = due.into_iter().filter_map(|due| {
        let periodic = periodic.iter().find(|periodic| periodic.job.kind == due.kind)?;
        Some(NewJob { id: due.id.into(), ..periodic.job.clone() })
    });
    enqueue(conn, &jobs.collect::<Vec<_>>()).await?;
    Ok(())
}

/// Makes available what was put off until now.
#[tracing::instrument(level = "debug", name = "db.jobs.promote", skip_all)]
pub(crate) async fn promote(conn: &mut Connection) -> Result<()> {
    sqlx::query!(
        r#"WITH due AS MATERIALIZED (
               SELECT id FROM okt_tasks.jobs
                WHERE state IN ('scheduled', 'retryable') AND scheduled_at <= statement_timestamp()
                ORDER BY scheduled_at
                LIMIT $1
                  FOR UPDATE SKIP LOCKED),
           promoted AS (
               UPDATE okt_tasks.jobs j SET state = 'available', waiting_for = NULL
                WHERE j.id = ANY (ARRAY(SELECT id FROM due))
               RETURNING j.id, j.repository_id, j.kind),
           -- Each repository by itself, and by name only where the names fit.
           told AS MATERIALIZED (
               SELECT pg_notify('okt_jobs_changed', repository_id || ':'
                          || CASE WHEN count(*) > 150 THEN '*' ELSE string_agg(id::text, ',') END)
                 FROM promoted WHERE repository_id IS NOT NULL GROUP BY repository_id)
           SELECT count(*) AS "count!", (SELECT count(*) FROM told) AS repositories,
                  -- Nothing to tell is nothing to commit alone for.
                  CASE WHEN count(*) > 0 THEN pg_notify('okt_jobs_waiting', string_agg(DISTINCT kind, ','))::text END AS told
             FROM promoted"#,
        BATCH,
    )
    .fetch_one(conn)
    .await?;
    Ok(())
}
