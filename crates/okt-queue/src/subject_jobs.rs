//! The jobs of many subjects at once: those of the sources of an investigation.

use okt_model::{Job, JobFilter, JobId, JobState, RepositoryId};
use okt_pg::Result;
use okt_store::Databases;
use uuid::Uuid;

use crate::jobs::{self, TenantFilter};

/// How many rows are counted.
const COUNTED: i64 = 100_000;

/// How many jobs have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveJobs {
    pub running: i64,
    pub waiting: i64,
}

/// The jobs of a repository about any of these subjects, newest first, from before `before`. The subject of the filter does not
/// count.
#[tracing::instrument(level = "debug", name = "db.jobs.list_about", skip_all)]
pub async fn list_about(
    databases: &Databases,
    repository: RepositoryId,
    subjects: &[Uuid],
    filter: &JobFilter,
    before: Option<JobId>,
    limit: i64,
) -> Result<Vec<Job>> {
    let mut conn = databases.acquire_tasks().await?;
    // By the index of each subject, which has a few: the jobs of the repository may be very many.
    let ids = sqlx::query_scalar!(
        r#"SELECT j.id AS "id!"
             FROM unnest($2::uuid[]) AS s (id)
            CROSS JOIN LATERAL (SELECT o.id FROM okt_tasks.jobs o
                                 WHERE o.repository_id = $1 AND o.subject_id = s.id
                                   AND ($3::uuid IS NULL OR o.id < $3)
                                   AND ($4::text IS NULL OR o.state = $4)
                                   AND ($5::text IS NULL OR o.kind = $5)
                                 ORDER BY o.id DESC
                                 LIMIT $6) AS j
            ORDER BY j.id DESC
            LIMIT $6"#,
        repository.uuid(),
        subjects,
        before.map(JobId::uuid),
        filter.state.map(JobState::as_str),
        filter.kind,
        limit,
    );
    let ids: Vec<JobId> = ids.fetch_all(&mut *conn).await?.into_iter().map(Into::into).collect();
    drop(conn);
    jobs::get(databases, TenantFilter::Repository(repository), &ids).await
}

/// How many jobs of a repository about any of these subjects have not ended.
#[tracing::instrument(level = "debug", name = "db.jobs.count_active_about", skip_all)]
pub async fn count_active_about(
    databases: &Databases,
    repository: RepositoryId,
    subjects: &[Uuid],
) -> Result<ActiveJobs> {
    let mut conn = databases.acquire_tasks().await?;
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE j.state = 'running') AS "running!",
                  count(*) FILTER (WHERE j.state IN ('scheduled', 'available', 'retryable')) AS "waiting!"
             FROM (SELECT o.state
                     FROM unnest($2::uuid[]) AS s (id)
                    CROSS JOIN LATERAL (SELECT t.state FROM okt_tasks.jobs t
                                         WHERE t.repository_id = $1 AND t.subject_id = s.id OFFSET 0) AS o
                    LIMIT $3) AS j"#,
        repository.uuid(),
        subjects,
        COUNTED,
    );
    let row = row.fetch_one(&mut *conn).await?;
    Ok(ActiveJobs { running: row.running, waiting: row.waiting })
}
