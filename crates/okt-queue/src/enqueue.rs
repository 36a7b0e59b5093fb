//! Putting jobs into the queue, in the order in which repositories take turns.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{Error, NewJob, RepositoryId, Result};
use okt_store::{Connection, from_sqlx};
use uuid::Uuid;

use crate::changes;

/// How often a job is tried before it is given up.
pub(crate) const MAX_ATTEMPTS: i32 = 10;

/// Queues jobs; those that are there already stay as they are. A job whose unique key is taken is recorded as
/// cancelled, so that whoever was told its id finds out which job does the work.
#[tracing::instrument(level = "debug", name = "db.jobs.enqueue", skip_all)]
pub async fn enqueue(conn: &mut Connection, jobs: &[NewJob]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let turns = turns(conn, jobs).await?;
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
    let sources: Vec<Option<Uuid>> = jobs.iter().map(|job| job.subject.source).collect();
    let investigations: Vec<Option<Uuid>> = jobs.iter().map(|job| job.subject.investigation).collect();
    let reports: Vec<Option<Uuid>> = jobs.iter().map(|job| job.subject.report).collect();
    let delays: Vec<i64> = jobs.iter().map(|job| job.delay_ms).collect();
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
                &sources as &[Option<Uuid>],
                &investigations as &[Option<Uuid>],
                &reports as &[Option<Uuid>],
                &delays,
                MAX_ATTEMPTS,
                kinds,
                changed,
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
            return Err(Error::Unavailable { service: "the queue", cause: error.into() });
        }
        count => count.map_err(from_sqlx)?,
    };
    if usize::try_from(count).unwrap_or(0) < jobs.len() {
        for job in jobs.iter().filter(|job| job.unique_key.is_some()) {
            record_duplicate(conn, job).await?;
        }
    }
    Ok(())
}

/// Gives each job its turn: one further than the last of its repository, and not behind the one that is served now. Turns
/// that are given to a job that is there already are lost, which does no harm.
#[tracing::instrument(level = "debug", name = "db.lanes.give_turns", skip_all)]
async fn turns(conn: &mut Connection, jobs: &[NewJob]) -> Result<Vec<i64>> {
    let lane = |job: &NewJob| {
        (job.kind.clone(), job.priority, job.repository.map_or(Uuid::nil(), RepositoryId::uuid))
    };
    let mut lanes: BTreeMap<(String, i16, Uuid), i64> = BTreeMap::new();
    for job in jobs {
        *lanes.entry(lane(job)).or_default() += 1;
    }
    let kinds: Vec<String> = lanes.keys().map(|(kind, ..)| kind.clone()).collect();
    let priorities: Vec<i16> = lanes.keys().map(|(_, priority, _)| *priority).collect();
    let repositories: Vec<Uuid> = lanes.keys().map(|(.., repository)| *repository).collect();
    let added: Vec<i64> = lanes.values().copied().collect();
    let given = sqlx::query_file!("src/sql/lanes.sql", &kinds, &priorities, &repositories, &added)
        .fetch_all(&mut *conn)
        .await
        .map_err(from_sqlx)?;
    let mut before: BTreeMap<(String, i16, Uuid), i64> =
        given.into_iter().map(|row| ((row.kind, row.priority, row.repository_id), row.before)).collect();
    let turn = |job| {
        let last = before.entry(lane(job)).or_default();
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
                (id, repository_id, database, kind, state, priority, turn, payload, unique_key, source_id,
                 investigation_id, report_id, max_attempts, output, finished_at, finished_in)
         SELECT $1, $2, $3, $4, 'cancelled', $5, 0, $6::text::jsonb, $7, $8, $9, $10, $11,
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
        job.subject.source,
        job.subject.investigation,
        job.subject.report,
        MAX_ATTEMPTS,
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
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
                 okt_tasks.with_failure(NULL, 0, 'it could not be queued; the service''s log has more under its id'),
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
    .await
    .map_err(from_sqlx)?;
    Ok(())
}
