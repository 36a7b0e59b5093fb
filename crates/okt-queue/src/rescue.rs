//! Giving back the jobs of processes that died or fell silent.
//!
//! A process holds a lock on its number for as long as its connection lives, so a crash is noticed within seconds, while
//! one that merely works for long is left alone however many others are started. A process that was stopped keeps its
//! connection; for that there is the heartbeat. Either way a rescue may be wrong, and is harmless: the claim has grown.

use std::time::Duration;

use okt_model::{JobId, RepositoryId};
use okt_pg::Result;
use okt_store::Databases;
use sqlx::PgConnection;

use crate::changes;
use crate::outcome::{MAX_CRASHES, milliseconds};

/// How long a lock must be free: a process whose connection broke, or whose database was restarted, takes it again
/// within a second.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Gives back what nobody works on any more; returns how many jobs. `me` is not looked at.
pub(crate) async fn rescue(databases: &Databases, me: i64, silence: Duration) -> Result<u64> {
    let mut tx = databases.begin_tasks().await?;
    let dead = find_dead(&mut tx, me).await?;
    let rescued = release(&mut tx, &dead, silence).await?;
    delete_workers(&mut tx, &dead).await?;
    tx.commit().await?;
    Ok(rescued)
}

/// Marks those whose lock is free, and returns those where it has been for long enough.
#[tracing::instrument(level = "debug", name = "db.workers.find_dead", skip_all)]
async fn find_dead(conn: &mut PgConnection, me: i64) -> Result<Vec<i64>> {
    // The lock is given back with the transaction; a process that comes to life again waits for that moment.
    let rows = sqlx::query_scalar!(
        r#"WITH free AS MATERIALIZED (
               SELECT id FROM okt_tasks.workers WHERE id <> $1 AND pg_try_advisory_xact_lock(id)),
           marked AS (
               UPDATE okt_tasks.workers w SET silent_since = coalesce(w.silent_since, clock_timestamp())
                 FROM free WHERE w.id = free.id
               RETURNING w.id, w.silent_since)
           SELECT id FROM marked WHERE silent_since < clock_timestamp() - $2::bigint * interval '1 millisecond'"#,
        me,
        milliseconds(GRACE),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

#[tracing::instrument(level = "debug", name = "db.jobs.release", skip_all)]
async fn release(conn: &mut PgConnection, dead: &[i64], silence: Duration) -> Result<u64> {
    let rows = sqlx::query!(
        r#"UPDATE okt_tasks.jobs j
              SET state = CASE WHEN j.crashes + (j.started_at IS NOT NULL)::int >= $3 THEN 'discarded'
                               ELSE 'available' END,
                  crashes = j.crashes + (j.started_at IS NOT NULL)::int,
                  owner = NULL,
                  waiting_for = NULL,
                  failures = okt_tasks.with_failure(j.failures, j.attempt,
                      'the worker that ran the job died or stopped sending heartbeats'
                      || CASE WHEN j.crashes + (j.started_at IS NOT NULL)::int >= $3
                              THEN ' (discarded after ' || $3 || ' crashes)' ELSE '' END),
                  finished_at = CASE WHEN j.crashes + (j.started_at IS NOT NULL)::int >= $3
                                     THEN clock_timestamp() END,
                  finished_in = CASE WHEN j.crashes + (j.started_at IS NOT NULL)::int >= $3
                                     THEN pg_current_xact_id()::text::bigint END
            WHERE j.id = ANY (ARRAY(
                  SELECT r.id FROM okt_tasks.jobs r
                   WHERE r.owner IS NOT NULL
                     AND (r.owner = ANY($1::bigint[])
                          OR r.heartbeat_at < clock_timestamp() - $2::bigint * interval '1 millisecond'
                          OR NOT EXISTS (SELECT FROM okt_tasks.workers w WHERE w.id = r.owner))
                     FOR UPDATE SKIP LOCKED))
           RETURNING j.id, j.repository_id, j.kind"#,
        dead,
        milliseconds(silence),
        MAX_CRASHES,
    )
    .fetch_all(&mut *conn)
    .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let changed = changes::message(
        rows.iter().map(|row| (row.repository_id.map(RepositoryId::from), JobId::from(row.id))),
    );
    let mut kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    sqlx::query!(
        "SELECT pg_notify('okt_jobs_changed', $1), pg_notify('okt_jobs_waiting', $2)",
        changed,
        kinds.join(","),
    )
    .execute(conn)
    .await?;
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}

#[tracing::instrument(level = "debug", name = "db.workers.delete_workers", skip_all)]
async fn delete_workers(conn: &mut PgConnection, dead: &[i64]) -> Result<()> {
    if dead.is_empty() {
        return Ok(());
    }
    sqlx::query!("DELETE FROM okt_tasks.workers WHERE id = ANY($1)", dead).execute(conn).await?;
    Ok(())
}

/// Whether a job waits that was there at two crashes.
#[tracing::instrument(level = "debug", name = "db.jobs.any_suspect", skip_all)]
pub(crate) async fn any_suspect(conn: &mut PgConnection) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_tasks.jobs WHERE state = 'available' AND crashes >= 2) AS "any!""#
    );
    Ok(any.fetch_one(conn).await?)
}
