//! Saying that jobs are alive, and how far they are: one statement for all of a process.

use okt_model::{JobId, RepositoryId};
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

use crate::changes;

/// A job that is still this process's.
pub(crate) struct Beat {
    pub(crate) id: JobId,
    /// Somebody asked to cancel it.
    pub(crate) cancelled: bool,
}

/// Says that these jobs, each with its claim, are alive. What is missing from the answer is somebody else's by now.
#[tracing::instrument(level = "debug", name = "db.jobs.beat", skip_all)]
pub(crate) async fn beat(conn: &mut Connection, worker: i64, running: &[(JobId, i32)]) -> Result<Vec<Beat>> {
    let (ids, tokens): (Vec<Uuid>, Vec<i32>) = running.iter().map(|(id, token)| (id.uuid(), *token)).unzip();
    let rows = sqlx::query!(
        r#"UPDATE okt_tasks.jobs j SET heartbeat_at = clock_timestamp()
             FROM unnest($1::uuid[], $2::int[]) AS r (id, claims)
            WHERE j.id = r.id AND j.claims = r.claims AND j.owner IS NOT DISTINCT FROM $3
           RETURNING j.id, j.cancel_asked_at IS NOT NULL AS "cancelled!""#,
        &ids,
        &tokens,
        worker,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| Beat { id: row.id.into(), cancelled: row.cancelled }).collect())
}

/// How far a running job is, in JSON.
pub(crate) struct Report {
    pub(crate) id: JobId,
    pub(crate) fencing_token: i32,
    pub(crate) repository: Option<RepositoryId>,
    pub(crate) progress: Option<String>,
    pub(crate) cost: Option<String>,
}

/// Writes down how far jobs are, and tells whoever watches.
#[tracing::instrument(level = "debug", name = "db.jobs.report", skip_all)]
pub(crate) async fn report(conn: &mut Connection, worker: i64, reports: &[Report]) -> Result<()> {
    let changed = changes::message(reports.iter().map(|report| (report.repository, report.id)));
    let ids: Vec<Uuid> = reports.iter().map(|report| report.id.uuid()).collect();
    let tokens: Vec<i32> = reports.iter().map(|report| report.fencing_token).collect();
    let progress: Vec<Option<String>> = reports.iter().map(|report| report.progress.clone()).collect();
    let costs: Vec<Option<String>> = reports.iter().map(|report| report.cost.clone()).collect();
    sqlx::query!(
        "WITH told AS (
             UPDATE okt_tasks.jobs j
                SET progress = coalesce(r.progress::jsonb, j.progress), cost = coalesce(r.cost::jsonb, j.cost)
               FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[]) AS r (id, claims, progress, cost)
              WHERE j.id = r.id AND j.claims = r.claims AND j.owner IS NOT DISTINCT FROM $6
                AND (r.progress IS NOT NULL OR r.cost IS NOT NULL))
         SELECT pg_notify('okt_jobs_changed', $5)",
        &ids,
        &tokens,
        &progress as &[Option<String>],
        &costs as &[Option<String>],
        changed,
        worker,
    )
    .execute(conn)
    .await?;
    Ok(())
}
