//! Jobs as callers see them: read, cancel, retry.

use std::time::Duration;

use okt_model::{
    Cost, Error, Job, JobFilter, JobId, JobState, NewJob, Payload, RepositoryId, Subject, Waiting,
};
use okt_pg::Result;
use okt_store::outbox::{self, Entry};
use okt_store::{Databases, Pooled, Tx};
use uuid::Uuid;

use crate::changes;
use crate::enqueue::{MAX_ATTEMPTS, enqueue};
use crate::rescue;

/// Which jobs a function works on: all, or those of one repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantFilter {
    All,
    Repository(RepositoryId),
}

impl TenantFilter {
    const fn repository(self) -> Option<RepositoryId> {
        match self {
            Self::All => None,
            Self::Repository(id) => Some(id),
        }
    }
}

/// How many jobs of a kind are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub kind: String,
    pub state: JobState,
    pub count: i64,
}

/// A moment in the order in which jobs end: the number of the transaction that ended one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub i64);

/// A PostgreSQL snapshot: the transactions that had ended by then. Exact also while old ones still run, which a single
/// number could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(String);

impl Snapshot {
    /// Everything before a position, and nothing from it on.
    pub fn before(position: Position) -> Self {
        Self(format!("{0}:{0}:", position.0))
    }

    /// Every older transaction is visible in the snapshot.
    pub fn horizon(&self) -> Position {
        let number = self.0.split(':').next().and_then(|text| text.parse().ok());
        Position(number.unwrap_or(0))
    }
}

pub async fn find(databases: &Databases, tenant: TenantFilter, id: JobId) -> Result<Option<Job>> {
    let mut found = get(databases, tenant, &[id]).await?;
    Ok(found.pop())
}

/// Those of these that there are.
pub async fn get(databases: &Databases, tenant: TenantFilter, ids: &[JobId]) -> Result<Vec<Job>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    select(databases, tenant, Some(&ids), &JobFilter::default(), None, limit).await
}

/// Newest first, from before `before`.
pub async fn list(
    databases: &Databases,
    tenant: TenantFilter,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: i64,
) -> Result<Vec<Job>> {
    select(databases, tenant, None, filter, before, limit).await
}

#[tracing::instrument(level = "debug", name = "db.jobs.select", skip_all)]
async fn select(
    databases: &Databases,
    tenant: TenantFilter,
    ids: Option<&[Uuid]>,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: i64,
) -> Result<Vec<Job>> {
    let mut tx = planned_anew(databases).await?;
    let rows = sqlx::query_file!(
        "src/sql/jobs.sql",
        tenant.repository().map(RepositoryId::uuid),
        ids,
        before.map(JobId::uuid),
        filter.state.map(JobState::as_str),
        filter.kind,
        filter.subject.map(|subject| subject.kind.as_str()),
        filter.subject.map(|subject| subject.id),
        limit,
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    rows.into_iter()
        .map(|row| {
            Ok(Job {
                id: row.id.into(),
                repository: row.repository_id.map(Into::into),
                kind: row.kind,
                state: state(&row.state)?,
                priority: row.priority,
                subject: Subject::from_columns(row.subject_kind.as_deref(), row.subject_id),
                attempt: row.attempt,
                max_attempts: row.max_attempts,
                crashes: row.crashes,
                progress: json(row.progress.as_deref())?,
                cost: json(row.cost.as_deref())?.unwrap_or(Cost::default()),
                failures: json(row.failures.as_deref())?.unwrap_or_default(),
                waiting_for: row.waiting_for.as_deref().map(waiting).transpose()?,
                created_at: row.created_at,
                scheduled_at: row.scheduled_at,
                started_at: row.started_at,
                heartbeat_at: row.heartbeat_at,
                finished_at: row.finished_at,
                output: json(row.output.as_deref())?,
                successors: row.successors.into_iter().map(Into::into).collect(),
            })
        })
        .collect()
}

/// How many rows are counted before a count is only a lower bound.
pub const COUNTED: i64 = 100_000;

/// How many jobs there are by kind and state; all of a repository's, or everybody's that have not ended well. Counts at
/// most [`COUNTED`] rows, the newest, and says whether that was all.
#[tracing::instrument(level = "debug", name = "db.jobs.count", skip_all)]
pub async fn count(databases: &Databases, tenant: TenantFilter) -> Result<(Vec<Count>, bool)> {
    let mut tx = planned_anew(databases).await?;
    let rows = sqlx::query!(
        r#"SELECT kind, state, count(*) AS "count!"
             FROM (SELECT kind, state FROM okt_tasks.jobs
                    WHERE repository_id = $1 ORDER BY id DESC LIMIT $2) AS theirs
            GROUP BY kind, state
           UNION ALL
           SELECT kind, state, count(*)
             FROM (SELECT kind, state FROM okt_tasks.jobs
                    WHERE $1::uuid IS NULL
                      AND state IN ('scheduled', 'available', 'running', 'retryable', 'cancelled', 'discarded')
                    LIMIT $2) AS everybodys
            GROUP BY kind, state
            ORDER BY 1, 2"#,
        tenant.repository().map(RepositoryId::uuid),
        COUNTED,
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    let rows = rows.into_iter().map(|row| {
        let (kind, state) = (row.kind.unwrap_or_default(), state(&row.state.unwrap_or_default())?);
        Ok(Count { kind, state, count: row.count })
    });
    let counts = rows.collect::<Result<Vec<_>>>()?;
    let total: i64 = counts.iter().map(|count| count.count).sum();
    Ok((counts, total < COUNTED))
}

/// How many processes that live run each kind.
#[tracing::instrument(level = "debug", name = "db.workers.count", skip_all)]
pub async fn workers(databases: &Databases) -> Result<Vec<(String, i64)>> {
    let mut conn = databases.acquire_tasks().await?;
    let rows = sqlx::query!(
        r#"SELECT k.kind AS "kind!", count(*) AS "count!"
             FROM okt_tasks.workers w, unnest(w.kinds) AS k (kind)
            WHERE w.silent_since IS NULL
            GROUP BY k.kind ORDER BY k.kind"#
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.count)).collect())
}

/// Cancels a job: at once if it waits; if it runs, its process is told. `None` when there is none that could be.
#[tracing::instrument(level = "debug", name = "db.jobs.cancel", skip_all)]
pub async fn cancel(databases: &Databases, tenant: TenantFilter, id: JobId) -> Result<Option<JobState>> {
    let mut tx = databases.begin_tasks().await?;
    let row = sqlx::query!(
        "UPDATE okt_tasks.jobs
            SET cancel_asked_at = coalesce(cancel_asked_at, clock_timestamp()),
                waiting_for = NULL,
                state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
                finished_at = CASE WHEN state = 'running' THEN NULL ELSE clock_timestamp() END,
                finished_in = CASE WHEN state = 'running' THEN NULL ELSE pg_current_xact_id()::text::bigint END
          WHERE id = $1 AND ($2::uuid IS NULL OR repository_id = $2)
            AND state IN ('scheduled', 'available', 'running', 'retryable')
         RETURNING state, repository_id",
        id.uuid(),
        tenant.repository().map(RepositoryId::uuid),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    sqlx::query!(
        "SELECT pg_notify('okt_jobs_cancel', $1), pg_notify('okt_jobs_changed', $2)",
        id.to_string(),
        changes::message(std::iter::once((row.repository_id.map(Into::into), id))),
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    state(&row.state).map(Some)
}

/// Queues a job again that was given up or cancelled, or does not wait any longer for the one that would be tried again.
/// `None` when there is none that could be.
#[tracing::instrument(level = "debug", name = "db.jobs.retry", skip_all)]
pub async fn retry(databases: &Databases, tenant: TenantFilter, id: JobId) -> Result<Option<()>> {
    let mut tx = databases.begin_tasks().await?;
    let row = sqlx::query!(
        "UPDATE okt_tasks.jobs
            SET state = 'available', attempt = 0, crashes = 0, cancel_asked_at = NULL, waiting_for = NULL,
                scheduled_at = clock_timestamp(), finished_at = NULL, finished_in = NULL, output = NULL,
                end_handled = false
          WHERE id = $1 AND ($2::uuid IS NULL OR repository_id = $2)
            AND state IN ('retryable', 'cancelled', 'discarded')
            -- Older ones are about to be forgotten, and their outbox entries before them.
            AND (finished_at IS NULL OR finished_at > statement_timestamp() - interval '7 days' + interval '1 hour')
         RETURNING kind, repository_id",
        id.uuid(),
        tenant.repository().map(RepositoryId::uuid),
    )
    .fetch_optional(&mut *tx)
    .await;
    let row = match row {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            return Err(
                Error::Conflict("an equivalent job (same kind and unique key) is already queued").into()
            );
        }
        row => row?,
    };
    let Some(row) = row else { return Ok(None) };
    sqlx::query!(
        "SELECT pg_notify('okt_jobs_waiting', $1), pg_notify('okt_jobs_changed', $2)",
        row.kind,
        changes::message(std::iter::once((row.repository_id.map(Into::into), id))),
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Some(()))
}

/// What the jobs of a repository waited for may be there now: they look again.
#[tracing::instrument(level = "debug", name = "db.jobs.wake", skip_all)]
pub async fn wake(databases: &Databases, repository: RepositoryId, why: Waiting) -> Result<u64> {
    let mut tx = databases.begin_tasks().await?;
    let rows = sqlx::query!(
        "UPDATE okt_tasks.jobs SET state = 'available', waiting_for = NULL, scheduled_at = clock_timestamp()
          WHERE repository_id = $1 AND state = 'scheduled' AND waiting_for = $2
         RETURNING id, kind",
        repository.uuid(),
        why.as_str(),
    );
    let rows = rows.fetch_all(&mut *tx).await?;
    let kinds: std::collections::BTreeSet<&str> = rows.iter().map(|row| &*row.kind).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(",");
    if !rows.is_empty() {
        let told = sqlx::query!(
            "SELECT pg_notify('okt_jobs_waiting', $1), pg_notify('okt_jobs_changed', $2)",
            kinds,
            changes::message(rows.iter().map(|row| (Some(repository), row.id.into()))),
        );
        told.execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}

/// A job whose outbox entry has not reached the queue yet.
pub async fn find_in_outbox(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    id: JobId,
) -> Result<Option<Job>> {
    let mut tx = databases.begin_to_read(database, repository).await?;
    let entry = outbox::find(&mut tx, repository, id).await?;
    tx.commit().await?;
    Ok(entry.map(|entry| from_outbox(repository, entry)))
}

pub(crate) fn from_outbox(repository: RepositoryId, entry: Entry) -> Job {
    Job {
        id: entry.id,
        repository: Some(repository),
        kind: entry.kind,
        state: if entry.due { JobState::Available } else { JobState::Scheduled },
        priority: entry.priority,
        subject: entry.subject,
        attempt: 0,
        max_attempts: MAX_ATTEMPTS,
        crashes: 0,
        progress: None,
        cost: Cost::default(),
        failures: Vec::new(),
        waiting_for: Some(Waiting::Relay),
        created_at: entry.created_at,
        scheduled_at: entry.scheduled_at,
        started_at: None,
        heartbeat_at: None,
        finished_at: None,
        output: None,
        successors: Vec::new(),
    }
}

/// Queues a job of the installation. Nothing vouches for it but the queue: whoever needs it asks again until it is done.
pub async fn push<P: Payload>(databases: &Databases, payload: &P, delay: Duration) -> Result<()> {
    let job = NewJob::of_the_system(JobId::mint(), payload).map_err(Error::internal)?;
    let job = NewJob { delay_ms: i64::try_from(delay.as_millis()).unwrap_or(i64::MAX), ..job };
    let mut tx = databases.begin_tasks().await?;
    enqueue(&mut tx, &[job]).await?;
    tx.commit().await
}

/// Cancels what waits of a repository, a few at a time, and tells what runs; returns how many.
#[tracing::instrument(level = "debug", name = "db.jobs.cancel_all", skip_all)]
pub async fn cancel_all(databases: &Databases, repository: RepositoryId) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut conn = databases.acquire_tasks().await?;
        let ids = sqlx::query_scalar!(
            "SELECT id FROM okt_tasks.jobs
              WHERE repository_id = $1 AND cancel_asked_at IS NULL
                AND state IN ('scheduled', 'available', 'running', 'retryable')
              LIMIT 100",
            repository.uuid(),
        )
        .fetch_all(&mut *conn)
        .await?;
        drop(conn);
        if ids.is_empty() {
            return Ok(total);
        }
        for id in ids {
            total += u64::from(
                cancel(databases, TenantFilter::Repository(repository), id.into()).await?.is_some(),
            );
        }
    }
}

/// Records that a repository has moved to another database. A few jobs at a time, and without waiting for a locked row: a
/// job that is left out follows the write fence of the old database, and is found by the next round.
#[tracing::instrument(level = "debug", name = "db.jobs.set_database", skip_all)]
pub async fn set_database(databases: &Databases, repository: RepositoryId, database: &str) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut conn = databases.acquire_tasks().await?;
        let done = sqlx::query!(
            "UPDATE okt_tasks.jobs SET database = $2
              WHERE id = ANY (ARRAY(SELECT id FROM okt_tasks.jobs
                                     WHERE repository_id = $1 AND database <> $2
                                     LIMIT 1000 FOR UPDATE SKIP LOCKED))",
            repository.uuid(),
            database,
        )
        .execute(&mut *conn)
        .await?;
        total += done.rows_affected();
        if done.rows_affected() == 0 {
            return Ok(total);
        }
    }
}

/// Gives back what dead processes hold, as every worker does every second, and what was silent for longer than `silence`;
/// returns how many jobs. A process counts as dead when its lock has been free for five seconds.
pub async fn rescue(databases: &Databases, silence: Duration) -> Result<u64> {
    // No process has this number.
    rescue::rescue(databases, 0, silence).await
}

/// The current snapshot.
#[tracing::instrument(level = "debug", name = "db.jobs.snapshot", skip_all)]
pub async fn snapshot(conn: &mut Pooled) -> Result<Snapshot> {
    let text = sqlx::query_scalar!(r#"SELECT pg_current_snapshot()::text AS "now!""#);
    Ok(text.fetch_one(&mut **conn).await.map(Snapshot)?)
}

/// The jobs of a repository whose end is not visible in `before`, in the order of their ends, after the last one of the
/// previous page.
#[tracing::instrument(level = "debug", name = "db.jobs.ended_since", skip_all)]
pub async fn ended_since(
    conn: &mut Pooled,
    repository: RepositoryId,
    before: &Snapshot,
    after: Option<(Position, JobId)>,
    limit: i64,
) -> Result<Vec<(Position, JobId)>> {
    let (position, id) = after.map_or((before.horizon().0, Uuid::nil()), |(at, id)| (at.0, id.uuid()));
    let rows = sqlx::query!(
        r#"SELECT id, finished_in AS "finished_in!" FROM okt_tasks.jobs
            WHERE repository_id = $1 AND finished_in >= $2 AND (finished_in, id) > ($2, $3)
              AND NOT pg_visible_in_snapshot(finished_in::text::xid8, $4::text::pg_snapshot)
            ORDER BY finished_in, id
            LIMIT $5"#,
        repository.uuid(),
        position,
        id,
        before.0,
        limit,
    )
    .fetch_all(&mut **conn)
    .await?;
    Ok(rows.into_iter().map(|row| (Position(row.finished_in), row.id.into())).collect())
}

/// The jobs of a repository that have not ended, newest first.
#[tracing::instrument(level = "debug", name = "db.jobs.list_active", skip_all)]
pub async fn list_active(conn: &mut Pooled, repository: RepositoryId, limit: i64) -> Result<Vec<JobId>> {
    let rows = sqlx::query_scalar!(
        r#"(SELECT id AS "id!" FROM okt_tasks.jobs WHERE repository_id = $1 AND owner IS NOT NULL LIMIT $2)
           UNION
           (SELECT id FROM okt_tasks.jobs
             WHERE repository_id = $1 AND state IN ('scheduled', 'available', 'retryable')
             ORDER BY id DESC LIMIT $2)"#,
        repository.uuid(),
        limit,
    )
    .fetch_all(&mut **conn)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// A transaction in which one plan for every combination of filters is not made to fit none of them.
async fn planned_anew(databases: &Databases) -> Result<Tx> {
    let mut tx = databases.begin_tasks().await?;
    okt_store::planned_anew(&mut tx).await?;
    Ok(tx)
}

pub(crate) fn state(text: &str) -> Result<JobState> {
    text.parse().map_err(|_| Error::internal(format!("unknown state {text:?} in jobs")).into())
}

fn waiting(text: &str) -> Result<Waiting> {
    text.parse().map_err(|_| Error::internal(format!("unknown waiting_for {text:?} in jobs")).into())
}

fn json<T: serde::de::DeserializeOwned>(text: Option<&str>) -> Result<Option<T>> {
    Ok(text.map(serde_json::from_str).transpose().map_err(Error::internal)?)
}
