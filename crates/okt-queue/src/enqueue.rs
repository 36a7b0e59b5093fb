//! Enqueues jobs. Each tenant has a cursor (`okt_tasks.lanes`), from which its jobs get fair-queue sequence numbers (`turn`).

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{Error, JobId, NewJob, RepositoryId};
use okt_pg::Result;
use okt_store::Connection;
use uuid::Uuid;

use crate::changes;
use crate::sweep::known;

/// How often a job is tried before it is given up.
pub(crate) const MAX_ATTEMPTS: i32 = 10;

/// Stands between the unique key of an internal job and its id, where its twin runs and has the key.
const AFTER_TWIN: &str = "#";

/// Queues jobs; those that are there already stay as they are. A job whose unique key is taken is recorded as
/// cancelled, so that whoever was told its id finds out which job does the work. Nobody was told of one that is internal:
/// beside a twin that waits it is dropped, and behind one that only runs it is queued. Returns those that were dropped.
#[tracing::instrument(level = "debug", name = "db.jobs.enqueue", skip_all)]
pub async fn enqueue(conn: &mut Connection, jobs: &[NewJob]) -> Result<Vec<JobId>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut dropped = Vec::new();
    for job in insert(conn, jobs).await? {
        if !job.internal {
            record_duplicate(conn, job).await?;
        } else if has_waiting_twin(conn, job).await? {
            dropped.push(job.id);
        } else {
            // The key is that of the one who runs.
            let key = job.unique_key.as_ref().map(|key| format!("{key}{AFTER_TWIN}{}", job.id));
            insert(conn, &[NewJob { unique_key: key, ..job.clone() }]).await?;
        }
    }
    Ok(dropped)
}

/// Queues those whose unique key is free; returns the others.
async fn insert<'a>(conn: &mut Connection, jobs: &'a [NewJob]) -> Result<Vec<&'a NewJob>> {
    let turns = assign_sequence(conn, jobs).await?;
    let kinds: BTreeSet<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(",");
    let changed = changes::message(jobs.iter().map(|job| (job.repository, job.id)));
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.id.uuid()).collect();
    let repositories: Vec<Option<Uuid>> =
        jobs.iter().map(|job| job.repository.map(RepositoryId::uuid)).collect();
    let databases: Vec<Option<String>> = jobs.iter().map(|job| job.database.clone()).collect();
    let kind: Vec<String> = jobs.iter().map(|job| job.kind.clone()).collect();
    let priorities: Vec<i16> = jobs.iter().map(|job| job.priority).collect();
    let payloads: Vec<String> = jobs.iter().map(|job| job.payload.clone()).collect();
    let unique_keys: Vec<Option<String>> = jobs.iter().map(|job| job.unique_key.clone()).collect();
    let subject_kinds: Vec<Option<String>> =
        jobs.iter().map(|job| job.subject.map(|subject| subject.kind.as_str().to_owned())).collect();
    let subjects: Vec<Option<Uuid>> = jobs.iter().map(|job| job.subject.map(|subject| subject.id)).collect();
    let delays: Vec<i64> = jobs.iter().map(|job| job.delay_ms).collect();
    let causes: Vec<Option<Uuid>> = jobs.iter().map(|job| job.caused_by.map(JobId::uuid)).collect();
    /// The same with one statement and with the other.
    macro_rules! queue {
        ($file:literal) => {
            sqlx::query_file!(
                $file,
                &ids,
                &repositories as &[Option<Uuid>],
                &databases as &[Option<String>],
                &kind,
                &priorities,
                &turns,
                &payloads,
                &unique_keys as &[Option<String>],
                &subject_kinds as &[Option<String>],
                &subjects as &[Option<Uuid>],
                &delays,
                MAX_ATTEMPTS,
                kinds,
                changed,
                &causes as &[Option<Uuid>],
            )
            .fetch_one(&mut *conn)
            .await
            .map(|row| row.count)
        };
    }
    // Looking for a conflict in every index makes each row half as dear again, so it is done only where one may be. Two who
    // queue the same job in the same moment are told so by an error, and the loser finds it the next time.
    let may_be_taken = jobs.iter().any(|job| job.unique_key.is_some());
    let count =
        if may_be_taken { queue!("src/sql/enqueue_unique.sql") } else { queue!("src/sql/enqueue.sql") };
    let count = match count {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            return Err(Error::Unavailable { service: "the queue", cause: error.into() }.into());
        }
        count => count?,
    };
    if usize::try_from(count).unwrap_or(0) == jobs.len() {
        return Ok(Vec::new());
    }
    let unique: Vec<&NewJob> = jobs.iter().filter(|job| job.unique_key.is_some()).collect();
    let ids: Vec<JobId> = unique.iter().map(|job| job.id).collect();
    let there: BTreeSet<JobId> = known(conn, &ids).await?.into_iter().collect();
    Ok(unique.into_iter().filter(|job| !there.contains(&job.id)).collect())
}

/// Whether one with the same key waits, of itself or behind one that runs.
#[tracing::instrument(level = "debug", name = "db.jobs.has_waiting_twin", skip_all)]
async fn has_waiting_twin(conn: &mut Connection, job: &NewJob) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_tasks.jobs
                           WHERE kind = $1 AND coalesce(repository_id, '00000000-0000-0000-0000-000000000000') = $2
                             AND (unique_key = $3 OR starts_with(unique_key, $3 || $4))
                             AND state IN ('scheduled', 'available', 'retryable')) AS "found!""#,
        job.kind,
        job.repository.map_or(Uuid::nil(), RepositoryId::uuid),
        job.unique_key,
        AFTER_TWIN,
    );
    Ok(found.fetch_one(conn).await?)
}

/// Gives each job a sequence number: one more than the last of its tenant, and not less than the one that is served now.
/// Numbers that are given to a job that exists already are lost, which does no harm.
#[tracing::instrument(level = "debug", name = "db.jobs.assign_sequence", skip_all)]
async fn assign_sequence(conn: &mut Connection, jobs: &[NewJob]) -> Result<Vec<i64>> {
    let tenant = |job: &NewJob| {
        (job.kind.clone(), job.priority, job.repository.map_or(Uuid::nil(), RepositoryId::uuid))
    };
    let mut cursors: BTreeMap<(String, i16, Uuid), i64> = BTreeMap::new();
    for job in jobs {
        *cursors.entry(tenant(job)).or_default() += 1;
    }
    let kinds: Vec<String> = cursors.keys().map(|(kind, ..)| kind.clone()).collect();
    let priorities: Vec<i16> = cursors.keys().map(|(_, priority, _)| *priority).collect();
    let repositories: Vec<Uuid> = cursors.keys().map(|(.., repository)| *repository).collect();
    let added: Vec<i64> = cursors.values().copied().collect();
    let given = sqlx::query_file!("src/sql/tenant_cursors.sql", &kinds, &priorities, &repositories, &added)
        .fetch_all(&mut *conn)
        .await?;
    let mut before: BTreeMap<(String, i16, Uuid), i64> =
        given.into_iter().map(|row| ((row.kind, row.priority, row.repository_id), row.before)).collect();
    let turn = |job| {
        let last = before.entry(tenant(job)).or_default();
        *last += 1;
        *last
    };
    Ok(jobs.iter().map(turn).collect())
}

/// Does nothing for a job that was queued after all.
#[tracing::instrument(level = "debug", name = "db.jobs.record_duplicate", skip_all)]
async fn record_duplicate(conn: &mut Connection, job: &NewJob) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_tasks.jobs
                (id, repository_id, database, kind, state, priority, turn, payload, unique_key,
                 subject_kind, subject_id, max_attempts, output, finished_at, finished_in)
         SELECT $1, $2, $3, $4, 'cancelled', $5, 0, $6::text::jsonb, $7, $8, $9, $10,
                jsonb_build_object('duplicate_of', twin.id), clock_timestamp(), pg_current_xact_id()::text::bigint
           FROM (SELECT 1) AS one
           LEFT JOIN okt_tasks.jobs twin
                  ON twin.kind = $4 AND twin.unique_key = $7 AND twin.repository_id IS NOT DISTINCT FROM $2
                 AND twin.state IN ('scheduled', 'available', 'running', 'retryable')
         ON CONFLICT (id) DO NOTHING",
        job.id.uuid(),
        job.repository.map(RepositoryId::uuid),
        job.database,
        job.kind,
        job.priority,
        job.payload,
        job.unique_key,
        job.subject.map(|subject| subject.kind.as_str()),
        job.subject.map(|subject| subject.id),
        MAX_ATTEMPTS,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A job that the queue can't take in as it is, so that whoever was told its id finds out.
#[tracing::instrument(level = "debug", name = "db.jobs.record_refused", skip_all)]
pub(crate) async fn record_refused(conn: &mut Connection, job: &NewJob) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_tasks.jobs
                (id, repository_id, database, kind, state, priority, turn, payload, max_attempts, failures,
                 finished_at, finished_in)
         VALUES ($1, $2, $3, $4, 'discarded', $5, 0, '{}', $6,
                 okt_tasks.with_failure(NULL, 0, 'the job could not be enqueued; see the service log under its id'),
                 clock_timestamp(), pg_current_xact_id()::text::bigint)
         ON CONFLICT (id) DO NOTHING",
        job.id.uuid(),
        job.repository.map(RepositoryId::uuid),
        job.database,
        job.kind,
        job.priority,
        MAX_ATTEMPTS,
    )
    .execute(conn)
    .await?;
    Ok(())
}
