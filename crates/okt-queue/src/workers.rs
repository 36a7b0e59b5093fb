//! Rows of `okt_tasks.workers`: the processes that run jobs.

use okt_model::Result;
use okt_store::{Connection, from_sqlx};

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
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// Says that it is gone.
#[tracing::instrument(level = "debug", name = "db.workers.delete", skip_all)]
pub(crate) async fn delete(conn: &mut Connection, id: i64) -> Result<()> {
    sqlx::query!("DELETE FROM okt_tasks.workers WHERE id = $1", id).execute(conn).await.map_err(from_sqlx)?;
    Ok(())
}
