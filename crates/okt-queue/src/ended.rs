//! Jobs that ended badly, for whoever has to tell what they worked on. Each is handled once, until it is retried.

use std::time::Duration;

use okt_model::{JobId, JobState, RepositoryId};
use okt_pg::Result;
use okt_store::Databases;
use uuid::Uuid;

use crate::jobs::state;

/// A job of a source, a report or an answer that was cancelled or given up.
#[derive(Clone, Debug)]
pub struct Ended {
    pub id: JobId,
    pub repository: RepositoryId,
    /// The named database that holds what it is about.
    pub database: String,
    pub kind: String,
    pub state: JobState,
    /// The source, the report or the answer.
    pub subject: Uuid,
    /// What went wrong last.
    pub message: Option<String>,
}

/// Those of these kinds that ended longer ago than `age` and were not handled, but for those whose subject is in one of the
/// databases `away`. Reads nothing else, however many jobs there are.
#[tracing::instrument(level = "debug", name = "db.jobs.list_unhandled", skip_all)]
pub async fn list_unhandled(
    databases: &Databases,
    kinds: &[&str],
    age: Duration,
    away: &[String],
    limit: i64,
) -> Result<Vec<Ended>> {
    let mut conn = databases.acquire_tasks().await?;
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let rows = sqlx::query_file!("src/sql/unhandled.sql", &kinds, age.as_secs_f64(), away, limit,)
        .fetch_all(&mut *conn)
        .await?;
    let ended = rows.into_iter().map(|row| {
        Ok(Ended {
            id: row.id.into(),
            repository: row.repository_id.into(),
            database: row.database,
            kind: row.kind,
            state: state(&row.state)?,
            subject: row.subject_id,
            message: row.message,
        })
    });
    ended.collect()
}

/// What these worked on has been told. One that was retried meanwhile has not ended any more.
#[tracing::instrument(level = "debug", name = "db.jobs.mark_handled", skip_all)]
pub async fn mark_handled(databases: &Databases, ids: &[JobId]) -> Result<()> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let mut conn = databases.acquire_tasks().await?;
    sqlx::query!(
        "UPDATE okt_tasks.jobs SET end_handled = true
          WHERE id = ANY ($1) AND state IN ('cancelled', 'discarded')",
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    Ok(())
}
