//! A job and its descendants: the jobs that its commit enqueued, those that theirs enqueued, and so on.

use std::collections::BTreeSet;

use okt_model::{Job, JobId, RepositoryId};
use okt_pg::Result;
use okt_store::{Connection, Databases, outbox};
use uuid::Uuid;

use crate::jobs::{self, TenantFilter, from_outbox};

/// More are not followed.
const MOST: i64 = 200;

/// A job with all its descendants, as the queue has them; empty when it has none of this id.
pub async fn job_tree(databases: &Databases, repository: RepositoryId, id: JobId) -> Result<Vec<Job>> {
    let ids = ids(databases, repository, id).await?;
    let mut tree = jobs::get(databases, TenantFilter::Repository(repository), &ids).await?;
    // Those that asked before those that were asked for.
    tree.sort_by_key(|job| ids.iter().position(|id| *id == job.id));
    Ok(tree)
}

#[tracing::instrument(level = "debug", name = "db.jobs.tree", skip_all)]
async fn ids(databases: &Databases, repository: RepositoryId, id: JobId) -> Result<Vec<JobId>> {
    let mut conn = databases.acquire_tasks().await?;
    let (mut low, mut high) = (id.uuid().into_bytes(), id.uuid().into_bytes());
    low[6..].fill(0);
    high[6..].fill(u8::MAX);
    let rows = sqlx::query_scalar!(
        r#"WITH RECURSIVE
           -- All descendants begin with the same six bytes.
           near AS MATERIALIZED (
               SELECT id, caused_by FROM okt_tasks.jobs WHERE id BETWEEN $3 AND $4 AND repository_id = $2),
           family AS (
               SELECT n.id, 0 AS depth FROM near n WHERE n.id = $1
               UNION ALL
               SELECT n.id, f.depth + 1 FROM family f JOIN near n ON n.caused_by = f.id)
           SELECT id AS "id!" FROM family ORDER BY depth, id LIMIT $5"#,
        id.uuid(),
        repository.uuid(),
        Uuid::from_bytes(low),
        Uuid::from_bytes(high),
        MOST,
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Successors of these jobs that have not reached the queue yet, each with the job that enqueued it.
pub async fn unqueued_successors(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    causes: &[JobId],
) -> Result<Vec<(JobId, Job)>> {
    let mut tx = databases.begin_to_read(database, repository).await?;
    let entries = outbox::list_caused(&mut tx, repository, causes).await?;
    tx.commit().await?;
    let successors =
        entries.into_iter().filter_map(|entry| Some((entry.caused_by?, from_outbox(repository, entry))));
    Ok(successors.collect())
}

/// The sources of the jobs of a kind that have not ended, in the outbox or in the queue; `None` for a job without one.
pub async fn active_sources(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    kind: &str,
) -> Result<BTreeSet<Option<Uuid>>> {
    // In this order: what arrives between the two is found by the second.
    let mut tx = databases.begin_to_read(database, repository).await?;
    let mut sources: BTreeSet<Option<Uuid>> =
        outbox::list_unsent(&mut tx, repository, kind).await?.into_iter().collect();
    tx.commit().await?;
    let mut conn = databases.acquire_tasks().await?;
    sources.extend(list_active_sources(&mut conn, repository, kind).await?);
    Ok(sources)
}

#[tracing::instrument(level = "debug", name = "db.jobs.list_active_sources", skip_all)]
async fn list_active_sources(
    conn: &mut Connection,
    repository: RepositoryId,
    kind: &str,
) -> Result<Vec<Option<Uuid>>> {
    let rows = sqlx::query_scalar!(
        "SELECT DISTINCT subject_id FROM okt_tasks.jobs
          WHERE repository_id = $1 AND kind = $2 AND state IN ('scheduled', 'available', 'running', 'retryable')",
        repository.uuid(),
        kind,
    );
    Ok(rows.fetch_all(conn).await?)
}
