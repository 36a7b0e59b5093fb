//! Rows of `okt_tasks.workers`: registration of the processes that run jobs.

use okt_model::JobId;
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

/// Says that this process is there. Whoever was taken for dead meanwhile is there again.
#[tracing::instrument(level = "debug", name = "db.workers.register", skip_all)]
pub(crate) async fn register(conn: &mut Connection, id: i64, name: &str, kinds: &[String]) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_tasks.workers (id, name, kinds) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET silent_since = NULL",
        id,
        name,
        kinds,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives back what the queue holds in the name of this process, but for these: what was claimed by a statement whose answer
/// got lost, or could not be ended in time. It is nobody's crash, and no attempt. Returns whether there
/// were any.
#[tracing::instrument(level = "debug", name = "db.jobs.release_own", skip_all)]
pub(crate) async fn release(conn: &mut Connection, id: i64, keep: &[JobId]) -> Result<bool> {
    let keep: Vec<Uuid> = keep.iter().map(|id| id.uuid()).collect();
    let done = sqlx::query!(
        "WITH given AS (
             UPDATE okt_tasks.jobs SET state = 'available', attempt = attempt - 1, owner = NULL
              WHERE owner = $1 AND id <> ALL ($2)
             RETURNING kind)
         SELECT pg_notify('okt_jobs_waiting', string_agg(DISTINCT kind, ',')) FROM given HAVING count(*) > 0",
        id,
        &keep,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Says that it is gone.
#[tracing::instrument(level = "debug", name = "db.workers.delete", skip_all)]
pub(crate) async fn delete(conn: &mut Connection, id: i64) -> Result<()> {
    sqlx::query!("DELETE FROM okt_tasks.workers WHERE id = $1", id).execute(conn).await?;
    Ok(())
}
