//! Taking jobs to run.

use okt_model::{JobId, RepositoryId, Result};
use okt_store::{Connection, from_sqlx};

/// A job that this process may run, until somebody claims it again.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) id: JobId,
    pub(crate) repository: Option<RepositoryId>,
    pub(crate) database: Option<String>,
    pub(crate) kind: String,
    pub(crate) payload: String,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) crashes: i32,
    /// Proof of this claim: whoever holds an older number has lost the job.
    pub(crate) claims: i32,
    /// Somebody asked to cancel it before it began.
    pub(crate) cancelled: bool,
}

/// How often a job may have crashed before it is run as the only one of its like.
pub(crate) const SUSPECT: i32 = 2;

/// Claims up to so many jobs of each kind, and one suspect if asked to.
#[tracing::instrument(level = "debug", name = "db.jobs.claim", skip_all)]
pub(crate) async fn claim(
    conn: &mut Connection,
    worker: i64,
    wanted: &[(String, i64)],
    suspect: bool,
) -> Result<Vec<Claimed>> {
    let (kinds, slots): (Vec<String>, Vec<i64>) = wanted.iter().cloned().unzip();
    let rows = sqlx::query_file!("src/sql/claim.sql", worker, &kinds, &slots, suspect)
        .fetch_all(conn)
        .await
        .map_err(from_sqlx)?;
    Ok(rows
        .into_iter()
        .map(|row| Claimed {
            id: row.id.into(),
            repository: row.repository_id.map(Into::into),
            database: row.database,
            kind: row.kind,
            payload: row.payload,
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            crashes: row.crashes,
            claims: row.claims,
            cancelled: row.cancelled,
        })
        .collect())
}
