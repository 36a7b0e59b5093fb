//! Statements that claim jobs for a worker.

use okt_model::{Cost, JobId, RepositoryId};
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

/// A job that this process may run, until somebody claims it again.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedJob {
    pub(crate) id: JobId,
    pub(crate) repository: Option<RepositoryId>,
    pub(crate) database: Option<String>,
    pub(crate) kind: String,
    pub(crate) payload: String,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) crashes: i32,
    /// Fencing token: the number of claims of the job so far. A worker with an older token has lost the job.
    pub(crate) fencing_token: i32,
    /// What earlier runs have spent.
    pub(crate) cost: Cost,
    /// Somebody asked to cancel it before it began.
    pub(crate) cancelled: bool,
}

/// Claims up to so many jobs of each kind.
#[tracing::instrument(level = "debug", name = "db.jobs.claim", skip_all)]
pub(crate) async fn claim(
    conn: &mut Connection,
    worker: i64,
    wanted: &[(String, i64)],
) -> Result<Vec<ClaimedJob>> {
    let (kinds, slots): (Vec<String>, Vec<i64>) = wanted.iter().cloned().unzip();
    let rows = sqlx::query_file_as!(Row, "src/sql/claim.sql", worker, &kinds, &slots);
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(ClaimedJob::from).collect())
}

/// Claims one job of each kind, of a repository that does not run any of that kind here.
#[tracing::instrument(level = "debug", name = "db.jobs.claim_express", skip_all)]
pub(crate) async fn claim_express(
    conn: &mut Connection,
    worker: i64,
    kinds: &[String],
    busy: &[(String, Option<RepositoryId>)],
) -> Result<Vec<ClaimedJob>> {
    let (busy_kinds, repositories): (Vec<String>, Vec<Option<Uuid>>) =
        busy.iter().map(|(kind, repository)| (kind.clone(), repository.map(RepositoryId::uuid))).unzip();
    let rows = sqlx::query_file_as!(
        Row,
        "src/sql/claim_express.sql",
        worker,
        kinds,
        &busy_kinds,
        &repositories as &[Option<Uuid>]
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(ClaimedJob::from).collect())
}

/// Claims a job that was there at two crashes and may have been the reason.
#[tracing::instrument(level = "debug", name = "db.jobs.claim_suspect", skip_all)]
pub(crate) async fn claim_suspect(
    conn: &mut Connection,
    worker: i64,
    kinds: &[String],
) -> Result<Option<ClaimedJob>> {
    let row = sqlx::query_file_as!(Row, "src/sql/claim_suspect.sql", worker, kinds);
    Ok(row.fetch_optional(conn).await?.map(ClaimedJob::from))
}

/// Says that a suspect begins only now; false when it is somebody else's by now.
#[tracing::instrument(level = "debug", name = "db.jobs.begin_suspect", skip_all)]
pub(crate) async fn begin_suspect(conn: &mut Connection, job: &ClaimedJob) -> Result<bool> {
    let begun = sqlx::query!(
        "UPDATE okt_tasks.jobs SET started_at = clock_timestamp()
          WHERE id = $1 AND claims = $2 AND state = 'running'",
        job.id.uuid(),
        job.fencing_token,
    );
    Ok(begun.execute(conn).await?.rows_affected() == 1)
}

/// Whether another job of the same kind and subject runs that was started before this one.
#[tracing::instrument(level = "debug", name = "db.jobs.has_earlier_twin", skip_all, fields(job.id = %job))]
pub(crate) async fn has_earlier_twin(conn: &mut Connection, job: JobId) -> Result<bool> {
    let twin = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_tasks.jobs j
                            JOIN okt_tasks.jobs t
                              ON t.repository_id = j.repository_id AND t.kind = j.kind AND t.state = 'running'
                                 AND t.owner IS NOT NULL AND t.subject_id IS NOT DISTINCT FROM j.subject_id
                                 AND t.subject_kind IS NOT DISTINCT FROM j.subject_kind
                                 AND (t.started_at, t.id) < (j.started_at, j.id)
                           WHERE j.id = $1) AS "there!""#,
        job.uuid(),
    );
    Ok(twin.fetch_one(conn).await?)
}

struct Row {
    id: Uuid,
    repository_id: Option<Uuid>,
    database: Option<String>,
    kind: String,
    payload: String,
    attempt: i32,
    max_attempts: i32,
    crashes: i32,
    claims: i32,
    cost: Option<String>,
    cancelled: bool,
}

impl From<Row> for ClaimedJob {
    fn from(row: Row) -> Self {
        Self {
            id: row.id.into(),
            repository: row.repository_id.map(Into::into),
            database: row.database,
            kind: row.kind,
            payload: row.payload,
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            crashes: row.crashes,
            fencing_token: row.claims,
            cost: row.cost.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            cancelled: row.cancelled,
        }
    }
}
