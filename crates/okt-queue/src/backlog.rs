//! How long the queue is, for whoever watches it.

use okt_pg::Result;
use okt_store::Databases;

/// How many jobs of a kind are ready to run and not taken yet, and how long the oldest of them has been.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    pub kind: String,
    pub waiting: i64,
    pub oldest_seconds: f64,
}

/// How many of a kind are counted as waiting.
const BACKLOG: i64 = 10_000;

/// What waits of these kinds. Looks at the first [`BACKLOG`] of each that would be taken, so it costs the same however long
/// the queue is.
#[tracing::instrument(level = "debug", name = "db.jobs.backlog", skip_all)]
pub async fn backlog(databases: &Databases, kinds: &[&str]) -> Result<Vec<Backlog>> {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let mut conn = databases.acquire_tasks().await?;
    let rows = sqlx::query_as!(
        Backlog,
        r#"SELECT k.kind AS "kind!", w.waiting AS "waiting!", w.oldest_seconds AS "oldest_seconds!"
             FROM unnest($1::text[]) AS k(kind)
            CROSS JOIN LATERAL (
                  SELECT count(*) AS waiting,
                         greatest(coalesce(extract(epoch FROM clock_timestamp() - min(j.scheduled_at)), 0), 0)::float8
                             AS oldest_seconds
                    FROM (SELECT scheduled_at FROM okt_tasks.jobs
                           WHERE kind = k.kind AND state = 'available' AND crashes < 2
                           ORDER BY priority, turn LIMIT $2) AS j) AS w"#,
        &kinds,
        BACKLOG,
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok(rows)
}
