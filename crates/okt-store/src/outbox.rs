//! Rows of `okt_repository.outbox`: entries of jobs, on their way to the queue and until their effect.
//!
//! An entry is written with what makes the job necessary, and deleted with what the job did. Between the two the job may
//! be queued, claimed and run as often as accidents demand: only one run finds the entry to delete.

use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_model::{Error, JobId, NewJob, Payload, RepositoryId, Subject};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Where the relays hear that there is something to carry: from the process that wrote it, right after it has committed.
pub const CHANNEL: &str = "okt_outbox";

/// An entry of a job that the queue does not have yet, as people may ask for it meanwhile.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: JobId,
    pub kind: String,
    pub priority: i16,
    pub subject: Option<Subject>,
    pub created_at: DateTime<Utc>,
    pub scheduled_at: DateTime<Utc>,
    /// Whether its time has come.
    pub due: bool,
    /// The job whose effect asked for it, where that was asked.
    pub caused_by: Option<JobId>,
}

/// When and how soon.
#[derive(Clone, Copy, Debug, Default)]
pub struct When {
    /// Smaller is sooner.
    pub priority: i16,
    /// Not before this many milliseconds from now.
    pub delay_ms: i64,
}

/// Writes an entry in the transaction that wants the job. The id is the caller's to choose, so that it can be told before
/// the queue has it.
pub async fn push<P: Payload>(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: JobId,
    payload: &P,
    when: When,
) -> Result<()> {
    push_after(conn, repository, id, payload, when, None).await
}

/// As [`push`], for a job that the effect of another one asks for.
pub async fn push_after<P: Payload>(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: JobId,
    payload: &P,
    when: When,
    cause: Option<JobId>,
) -> Result<()> {
    let job = NewJob {
        repository: Some(repository),
        priority: when.priority,
        delay_ms: when.delay_ms,
        caused_by: cause.filter(|_| !P::INTERNAL),
        ..NewJob::of_the_system(id, payload).map_err(Error::internal)?
    };
    insert(conn, repository, &job).await
}

#[tracing::instrument(level = "debug", name = "db.outbox.insert", skip_all)]
async fn insert(conn: &mut PgConnection, repository: RepositoryId, job: &NewJob) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_repository.outbox
                (repository_id, job_id, kind, payload, unique_key, subject_kind, subject_id,
                 priority, scheduled_at, caused_by, internal)
         VALUES ($1, $2, $3, $4::text::jsonb, $5, $6, $7, $8,
                 clock_timestamp() + $9::float8 * interval '1 millisecond', $10, $11)
         ON CONFLICT (repository_id, job_id) DO NOTHING",
        repository.uuid(),
        job.id.uuid(),
        job.kind,
        job.payload,
        job.unique_key,
        job.subject.map(|subject| subject.kind.as_str()),
        job.subject.map(|subject| subject.id),
        job.priority,
        to_f64(job.delay_ms),
        job.caused_by.map(JobId::uuid),
        job.internal,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes away the right to the effect; false when it was taken before. Waits for another run that is just taking it.
#[tracing::instrument(level = "debug", name = "db.outbox.take", skip_all)]
pub async fn take(conn: &mut PgConnection, repository: RepositoryId, id: JobId) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM okt_repository.outbox WHERE repository_id = $1 AND job_id = $2",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// As [`is_there`], and holds it until the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.outbox.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, id: JobId) -> Result<bool> {
    let held = sqlx::query_scalar!(
        "SELECT job_id FROM okt_repository.outbox WHERE repository_id = $1 AND job_id = $2 FOR UPDATE",
        repository.uuid(),
        id.uuid(),
    );
    Ok(held.fetch_optional(conn).await?.is_some())
}

/// Whether the right to the effect is still there.
#[tracing::instrument(level = "debug", name = "db.outbox.is_there", skip_all)]
pub async fn is_there(conn: &mut PgConnection, repository: RepositoryId, id: JobId) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.outbox WHERE repository_id = $1 AND job_id = $2) AS "there!""#,
        repository.uuid(),
        id.uuid(),
    )
    .fetch_one(conn)
    .await?)
}

/// Whether the job was asked for within this time.
#[tracing::instrument(level = "debug", name = "db.outbox.is_younger", skip_all)]
pub async fn is_younger(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: JobId,
    than: Duration,
) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.outbox
                           WHERE repository_id = $1 AND job_id = $2
                             AND created_at > clock_timestamp() - make_interval(secs => $3)) AS "younger!""#,
        repository.uuid(),
        id.uuid(),
        than.as_secs_f64(),
    )
    .fetch_one(conn)
    .await?)
}

/// An entry that is still on its way.
#[tracing::instrument(level = "debug", name = "db.outbox.find", skip_all)]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: JobId) -> Result<Option<Entry>> {
    let row = sqlx::query!(
        r#"SELECT kind, priority, subject_kind, subject_id, created_at, scheduled_at,
                  scheduled_at <= clock_timestamp() AS "due!"
             FROM okt_repository.outbox WHERE repository_id = $1 AND job_id = $2 AND arrived_at IS NULL"#,
        repository.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Entry {
        id,
        kind: row.kind,
        priority: row.priority,
        subject: Subject::from_columns(row.subject_kind.as_deref(), row.subject_id),
        created_at: row.created_at,
        scheduled_at: row.scheduled_at,
        due: row.due,
        caused_by: None,
    }))
}

/// Entries still on their way of jobs that the effects of these jobs asked for. All of them descend from one job, so their ids
/// begin with the same six bytes (see `okt_queue::context`).
#[tracing::instrument(level = "debug", name = "db.outbox.list_caused", skip_all)]
pub async fn list_caused(
    conn: &mut PgConnection,
    repository: RepositoryId,
    causes: &[JobId],
) -> Result<Vec<Entry>> {
    let Some(first) = causes.first() else { return Ok(Vec::new()) };
    let causes: Vec<Uuid> = causes.iter().map(|id| id.uuid()).collect();
    let (mut low, mut high) = (first.uuid().into_bytes(), first.uuid().into_bytes());
    low[6..].fill(0);
    high[6..].fill(u8::MAX);
    let rows = sqlx::query!(
        r#"SELECT job_id, caused_by, kind, priority, subject_kind, subject_id, created_at, scheduled_at,
                  scheduled_at <= clock_timestamp() AS "due!"
             FROM okt_repository.outbox
            WHERE repository_id = $1 AND arrived_at IS NULL AND job_id BETWEEN $2 AND $3 AND caused_by = ANY ($4)
            ORDER BY job_id"#,
        repository.uuid(),
        Uuid::from_bytes(low),
        Uuid::from_bytes(high),
        &causes,
    )
    .fetch_all(conn)
    .await?;
    let entries = rows.into_iter().map(|row| Entry {
        id: row.job_id.into(),
        kind: row.kind,
        priority: row.priority,
        subject: Subject::from_columns(row.subject_kind.as_deref(), row.subject_id),
        created_at: row.created_at,
        scheduled_at: row.scheduled_at,
        due: row.due,
        caused_by: row.caused_by.map(Into::into),
    });
    Ok(entries.collect())
}

/// The sources of jobs of a kind whose entries are still on their way.
#[tracing::instrument(level = "debug", name = "db.outbox.list_unsent", skip_all)]
pub async fn list_unsent(
    conn: &mut PgConnection,
    repository: RepositoryId,
    kind: &str,
) -> Result<Vec<Option<Uuid>>> {
    let rows = sqlx::query_scalar!(
        "SELECT DISTINCT subject_id FROM okt_repository.outbox
          WHERE repository_id = $1 AND arrived_at IS NULL AND kind = $2",
        repository.uuid(),
        kind,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The subjects of the jobs of a kind whose effect has not happened, on their way or in the queue. Also of those that ended without it.
#[tracing::instrument(level = "debug", name = "db.outbox.list_open", skip_all)]
pub async fn list_open(
    conn: &mut PgConnection,
    repository: RepositoryId,
    kind: &str,
) -> Result<Vec<Option<Uuid>>> {
    let rows = sqlx::query_scalar!(
        "SELECT DISTINCT subject_id FROM okt_repository.outbox WHERE repository_id = $1 AND kind = $2",
        repository.uuid(),
        kind,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Takes up entries to carry them to the queue: a few of each of the next repositories after this one, so that nobody's crowd
/// holds up another's entry. Needs the relay's transaction. Whoever took some up and was not heard of for ten seconds has
/// dropped them.
#[tracing::instrument(level = "debug", name = "db.outbox.take_up", skip_all)]
pub async fn take_up(
    conn: &mut PgConnection,
    database: &str,
    after: RepositoryId,
    each: i64,
) -> Result<Vec<NewJob>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE next AS (
               (SELECT repository_id FROM okt_repository.outbox
                 WHERE arrived_at IS NULL AND repository_id > $1
                 ORDER BY repository_id LIMIT 1)
               UNION ALL
               SELECT (SELECT o.repository_id FROM okt_repository.outbox o
                        WHERE o.arrived_at IS NULL AND o.repository_id > n.repository_id
                        ORDER BY o.repository_id LIMIT 1)
                 FROM next n WHERE n.repository_id IS NOT NULL),
           -- What is closed here is carried from where it lives, or not at all.
           tenants AS MATERIALIZED (
               SELECT n.repository_id FROM next n
                WHERE n.repository_id IS NOT NULL
                  AND NOT EXISTS (SELECT FROM okt_repository.closed c WHERE c.repository_id = n.repository_id)
                LIMIT 20),
           found AS MATERIALIZED (
               SELECT c.repository_id, c.job_id
                 FROM tenants t
                CROSS JOIN LATERAL (
                      SELECT o.repository_id, o.job_id FROM okt_repository.outbox o
                       WHERE o.repository_id = t.repository_id AND o.arrived_at IS NULL
                         AND (o.carried_at IS NULL OR o.carried_at < clock_timestamp() - interval '10 seconds')
                       ORDER BY o.job_id
                       LIMIT $2
                         FOR UPDATE SKIP LOCKED) c)
           UPDATE okt_repository.outbox o SET carried_at = clock_timestamp()
             FROM found f
            WHERE o.repository_id = f.repository_id AND o.job_id = f.job_id
           RETURNING o.repository_id, o.job_id, o.kind, o.payload::text AS "payload!", o.unique_key, o.subject_kind,
                     o.subject_id, o.priority, o.caused_by, o.internal,
                     greatest(0, ceil(extract(epoch FROM o.scheduled_at - clock_timestamp()) * 1000))::bigint
                         AS "delay_ms!""#,
        after.uuid(),
        each,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| NewJob {
            id: row.job_id.into(),
            repository: Some(row.repository_id.into()),
            database: Some(database.to_owned()),
            kind: row.kind,
            payload: row.payload,
            subject: Subject::from_columns(row.subject_kind.as_deref(), row.subject_id),
            unique_key: row.unique_key,
            priority: row.priority,
            delay_ms: row.delay_ms,
            caused_by: row.caused_by.map(Into::into),
            internal: row.internal,
        })
        .collect())
}

/// The queue has these; needs the relay's transaction.
pub async fn mark_arrived(conn: &mut PgConnection, entries: &[(RepositoryId, JobId)]) -> Result<()> {
    mark(conn, entries, true).await
}

/// The queue does not have these, or not any more: they are to be carried again. Needs the relay's transaction.
pub async fn put_down(conn: &mut PgConnection, entries: &[(RepositoryId, JobId)]) -> Result<()> {
    mark(conn, entries, false).await
}

/// One whose effect is just happening is passed over: it is gone in a moment, and carrying it once more would do no harm.
#[tracing::instrument(level = "debug", name = "db.outbox.mark", skip_all)]
async fn mark(conn: &mut PgConnection, entries: &[(RepositoryId, JobId)], arrived: bool) -> Result<()> {
    let (repositories, jobs) = columns(entries);
    sqlx::query!(
        "WITH free AS MATERIALIZED (
             SELECT o.repository_id, o.job_id
               FROM unnest($1::uuid[], $2::uuid[]) AS n (repository_id, job_id)
               JOIN okt_repository.outbox o ON o.repository_id = n.repository_id AND o.job_id = n.job_id
                FOR UPDATE OF o SKIP LOCKED)
         UPDATE okt_repository.outbox o
            SET arrived_at = CASE WHEN $3 THEN clock_timestamp() END,
                carried_at = CASE WHEN $3 THEN o.carried_at END
           FROM free n
          WHERE o.repository_id = n.repository_id AND o.job_id = n.job_id",
        &repositories,
        &jobs,
        arrived,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Nobody will do these any more; needs the relay's transaction.
#[tracing::instrument(level = "debug", name = "db.outbox.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, entries: &[(RepositoryId, JobId)]) -> Result<()> {
    let (repositories, jobs) = columns(entries);
    sqlx::query!(
        "DELETE FROM okt_repository.outbox o
          USING unnest($1::uuid[], $2::uuid[]) AS n (repository_id, job_id)
          WHERE o.repository_id = n.repository_id AND o.job_id = n.job_id",
        &repositories,
        &jobs,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Entries that arrived more than `age_s` seconds ago and whose effect has not happened, after a position in the walk over
/// all of them. Needs the relay's transaction.
#[tracing::instrument(level = "debug", name = "db.outbox.list_arrived", skip_all)]
pub async fn list_arrived(
    conn: &mut PgConnection,
    after: (Uuid, Uuid),
    age_s: f64,
    limit: i64,
) -> Result<Vec<(RepositoryId, JobId)>> {
    let rows = sqlx::query!(
        "SELECT repository_id, job_id FROM okt_repository.outbox o
          WHERE (repository_id, job_id) > ($1, $2)
            AND NOT EXISTS (SELECT FROM okt_repository.closed c WHERE c.repository_id = o.repository_id)
            AND arrived_at < clock_timestamp() - $3::float8 * interval '1 second'
          ORDER BY repository_id, job_id
          LIMIT $4",
        after.0,
        after.1,
        age_s,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.repository_id.into(), row.job_id.into())).collect())
}

fn columns(entries: &[(RepositoryId, JobId)]) -> (Vec<Uuid>, Vec<Uuid>) {
    entries.iter().map(|(repository, job)| (repository.uuid(), job.uuid())).unzip()
}

/// A delay in milliseconds is far below what a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "2^53 milliseconds are 285,000 years")]
const fn to_f64(milliseconds: i64) -> f64 {
    milliseconds as f64
}
