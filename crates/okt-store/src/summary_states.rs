//! Rows of `okt_repository.summary_states`: which concepts are summed up, whose facts have changed since, and who is writing.
//!
//! Whoever counts the facts of concepts ([`crate::concept_relations`]) raises a number; a job writes down up to which number it
//! has seen the facts. So a change is never missed, however the two meet. A concept has one writer: a job holds it until it is
//! done, and only a lock that is older than any job may last is taken over.

use std::time::Duration;

use okt_model::{Error, JobId, RepositoryId};
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::concept_relations;
use okt_pg::Result;

/// Concepts that are taken in at once.
const TAKEN_IN: i64 = 5_000;

/// A concept that a job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldConcept {
    pub no: i64,
    /// How often its facts had changed when it was taken.
    pub changed: i64,
}

/// Takes in concepts that have at least so many facts by now; returns how many. Nobody counts facts meanwhile: a change would
/// find no row to raise.
#[tracing::instrument(level = "debug", name = "db.summary_states.take_in", skip_all)]
pub async fn take_in(conn: &mut PgConnection, repository: RepositoryId, min_facts: i64) -> Result<u64> {
    concept_relations::hold(conn, repository).await?;
    let taken = sqlx::query!(
        "INSERT INTO okt_repository.summary_states (repository_id, concept_no)
         SELECT $1, c.no FROM okt_repository.concepts c
          WHERE c.repository_id = $1 AND c.merged_into IS NULL AND c.fact_count >= $2
            AND NOT EXISTS (SELECT FROM okt_repository.summary_states s
                             WHERE s.repository_id = $1 AND s.concept_no = c.no)
          ORDER BY c.fact_count DESC, c.no
          LIMIT $3
         ON CONFLICT (repository_id, concept_no) DO NOTHING",
        repository.uuid(),
        min_facts,
        TAKEN_IN,
    );
    Ok(taken.execute(conn).await?.rows_affected())
}

/// Whether there is anything to write about that nobody holds: concepts that changed, or that would be taken in.
#[tracing::instrument(level = "debug", name = "db.summary_states.is_any_waiting", skip_all)]
pub async fn is_any_waiting(
    conn: &mut PgConnection,
    repository: RepositoryId,
    min_facts: i64,
    staleness: Duration,
) -> Result<bool> {
    let waiting = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.summary_states
                           WHERE repository_id = $1 AND changed > seen
                             AND (locked_by IS NULL OR locked_at < clock_timestamp() - $3::interval))
               OR EXISTS (SELECT FROM okt_repository.concepts c
                           WHERE c.repository_id = $1 AND c.merged_into IS NULL AND c.fact_count >= $2
                             AND NOT EXISTS (SELECT FROM okt_repository.summary_states s
                                              WHERE s.repository_id = $1 AND s.concept_no = c.no)) AS "waiting!""#,
        repository.uuid(),
        min_facts,
        interval(staleness)?,
    );
    Ok(waiting.fetch_one(conn).await?)
}

/// Whether facts were deleted of a concept that changed and that nobody holds.
#[tracing::instrument(level = "debug", name = "db.summary_states.is_any_torn", skip_all)]
pub async fn is_any_torn(
    conn: &mut PgConnection,
    repository: RepositoryId,
    staleness: Duration,
) -> Result<bool> {
    let torn = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.summary_states t
                            JOIN okt_repository.concept_summaries s ON s.repository_id = $1 AND s.concept_no = t.concept_no
                           WHERE t.repository_id = $1 AND t.changed > t.seen
                             AND (t.locked_by IS NULL OR t.locked_at < clock_timestamp() - $2::interval)
                             AND s.fact_count > (SELECT count(*) FROM okt_repository.summary_facts f
                                                  WHERE f.repository_id = $1 AND f.concept_no = s.concept_no
                                                    AND f.slice_number = s.slice_number)) AS "torn!""#,
        repository.uuid(),
        interval(staleness)?,
    );
    Ok(torn.fetch_one(conn).await?)
}

/// Concepts that changed and that a job holds from now on, with those that it held before; only those of which facts were
/// deleted, if that is wanted. What another one holds is left to it, unless it has held it for longer than `staleness`.
#[tracing::instrument(level = "debug", name = "db.summary_states.claim", skip_all)]
pub async fn claim(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    staleness: Duration,
    (limit, torn): (i64, bool),
) -> Result<Vec<HeldConcept>> {
    let ours = sqlx::query!(
        "UPDATE okt_repository.summary_states s SET locked_at = clock_timestamp()
           FROM (SELECT concept_no FROM okt_repository.summary_states
                  WHERE repository_id = $1 AND locked_by = $2 AND changed > seen
                  ORDER BY concept_no FOR NO KEY UPDATE) AS n
          WHERE s.repository_id = $1 AND s.concept_no = n.concept_no
         RETURNING s.concept_no AS no, s.changed",
        repository.uuid(),
        job.uuid(),
    );
    let mut held: Vec<HeldConcept> = ours
        .fetch_all(&mut *conn)
        .await?
        .into_iter()
        .map(|row| HeldConcept { no: row.no, changed: row.changed })
        .collect();
    let left = limit - i64::try_from(held.len()).map_err(Error::internal)?;
    if left > 0 {
        let more = sqlx::query!(
            "UPDATE okt_repository.summary_states s SET locked_by = $2, locked_at = clock_timestamp()
               FROM (SELECT t.concept_no FROM okt_repository.summary_states t
                      WHERE t.repository_id = $1 AND t.changed > t.seen AND t.locked_by IS DISTINCT FROM $2
                        AND (t.locked_by IS NULL OR t.locked_at < clock_timestamp() - $3::interval)
                        AND (NOT $5 OR EXISTS (
                             SELECT FROM okt_repository.concept_summaries o
                              WHERE o.repository_id = $1 AND o.concept_no = t.concept_no
                                AND o.fact_count > (SELECT count(*) FROM okt_repository.summary_facts f
                                                     WHERE f.repository_id = $1 AND f.concept_no = o.concept_no
                                                       AND f.slice_number = o.slice_number)))
                      ORDER BY t.concept_no LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED) AS n
              WHERE s.repository_id = $1 AND s.concept_no = n.concept_no
             RETURNING s.concept_no AS no, s.changed",
            repository.uuid(),
            job.uuid(),
            interval(staleness)?,
            left,
            torn,
        );
        let more = more.fetch_all(conn).await?;
        held.extend(more.into_iter().map(|row| HeldConcept { no: row.no, changed: row.changed }));
    }
    held.sort_unstable_by_key(|held| held.no);
    Ok(held)
}

/// Whether a job is writing about a concept of this name.
#[tracing::instrument(level = "debug", name = "db.summary_states.is_name_held", skip_all)]
pub async fn is_name_held(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name_key: &str,
    staleness: Duration,
) -> Result<bool> {
    let held = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts c
                            JOIN okt_repository.summary_states s
                              ON s.repository_id = $1 AND s.concept_no = c.no AND s.changed > s.seen
                             AND s.locked_at >= clock_timestamp() - $3::interval
                           WHERE c.repository_id = $1 AND c.name_key = $2 AND c.merged_into IS NULL) AS "held!""#,
        repository.uuid(),
        name_key,
        interval(staleness)?,
    );
    Ok(held.fetch_one(conn).await?)
}

/// Holds the row of a concept until the end of the transaction, and its lock for as long as any lock is believed; false if the
/// job does not hold the concept any more.
#[tracing::instrument(level = "debug", name = "db.summary_states.hold", skip_all)]
pub async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    concept: i64,
) -> Result<bool> {
    let held = sqlx::query!(
        "UPDATE okt_repository.summary_states SET locked_at = clock_timestamp()
          WHERE repository_id = $1 AND concept_no = $2 AND locked_by = $3",
        repository.uuid(),
        concept,
        job.uuid(),
    );
    Ok(held.execute(conn).await?.rows_affected() == 1)
}

/// A job has written all that was to be written about a concept, and lets go of it.
#[tracing::instrument(level = "debug", name = "db.summary_states.finish", skip_all)]
pub async fn finish(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    concept: HeldConcept,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.summary_states
            SET seen = greatest(seen, $4), locked_by = NULL, locked_at = NULL
          WHERE repository_id = $1 AND concept_no = $2 AND locked_by = $3",
        repository.uuid(),
        concept.no,
        job.uuid(),
        concept.changed,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// A job lets go of a concept that it has not written about: whoever comes next does.
#[tracing::instrument(level = "debug", name = "db.summary_states.release", skip_all)]
pub async fn release(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    concept: i64,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.summary_states SET locked_by = NULL, locked_at = NULL
          WHERE repository_id = $1 AND concept_no = $2 AND locked_by = $3",
        repository.uuid(),
        concept,
        job.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// A job gives up slices of a concept, whose answers could not be used. Nobody else tries before their facts change; the job does,
/// if it ends by this ([`leave`]) and somebody has it run again ([`resume`]).
#[tracing::instrument(level = "debug", name = "db.summary_states.give_up", skip_all)]
pub async fn give_up(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    concept: HeldConcept,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.summary_states SET seen = greatest(seen, $4), locked_at = 'epoch'
          WHERE repository_id = $1 AND concept_no = $2 AND locked_by = $3",
        repository.uuid(),
        concept.no,
        job.uuid(),
        concept.changed,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// A job is about to end; returns how many concepts it has given up, in this run or an earlier one.
#[tracing::instrument(level = "debug", name = "db.summary_states.leave", skip_all)]
pub async fn leave(conn: &mut PgConnection, repository: RepositoryId, job: JobId) -> Result<u64> {
    let left = sqlx::query!(
        "UPDATE okt_repository.summary_states SET locked_at = '-infinity'
          WHERE repository_id = $1 AND locked_by = $2 AND locked_at = 'epoch' AND changed = seen",
        repository.uuid(),
        job.uuid(),
    );
    Ok(left.execute(conn).await?.rows_affected())
}

/// Somebody has a job run again that had ended: what it gave up waits to be written, as if its facts had changed. Returns how many
/// concepts.
#[tracing::instrument(level = "debug", name = "db.summary_states.resume", skip_all)]
pub async fn resume(conn: &mut PgConnection, repository: RepositoryId, job: JobId) -> Result<u64> {
    let resumed = sqlx::query!(
        "WITH resumed AS (
             UPDATE okt_repository.summary_states SET changed = changed + 1, locked_by = NULL, locked_at = NULL
              WHERE repository_id = $1 AND locked_by = $2 AND locked_at = '-infinity'
             RETURNING concept_no),
         slices AS (
             UPDATE okt_repository.concept_summaries s SET failure = NULL
               FROM resumed r
              WHERE s.repository_id = $1 AND s.concept_no = r.concept_no AND s.failure IS NOT NULL)
         SELECT FROM resumed",
        repository.uuid(),
        job.uuid(),
    );
    Ok(u64::try_from(resumed.fetch_all(conn).await?.len()).map_err(Error::internal)?)
}

/// All that was given up waits to be written again, as if its facts had changed; returns how many slices.
#[tracing::instrument(level = "debug", name = "db.summary_states.resume_all", skip_all)]
pub async fn resume_all(conn: &mut PgConnection, repository: RepositoryId) -> Result<u64> {
    let failed = sqlx::query_scalar!(
        "SELECT DISTINCT concept_no FROM okt_repository.concept_summaries WHERE repository_id = $1 AND failure IS NOT NULL",
        repository.uuid(),
    );
    let concepts = failed.fetch_all(&mut *conn).await?;
    // Concepts before slices, as those do who write.
    mark(conn, repository, Some(&concepts)).await?;
    let slices = sqlx::query!(
        "UPDATE okt_repository.concept_summaries SET failure = NULL
          WHERE repository_id = $1 AND concept_no = ANY ($2) AND failure IS NOT NULL",
        repository.uuid(),
        &concepts,
    );
    Ok(slices.execute(conn).await?.rows_affected())
}

/// Forgets a concept of which nothing is left to be summed up; it is taken in again when it has facts enough.
#[tracing::instrument(level = "debug", name = "db.summary_states.forget", skip_all)]
pub async fn forget(
    conn: &mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    concept: i64,
) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM okt_repository.summary_states WHERE repository_id = $1 AND concept_no = $2 AND locked_by = $3",
        repository.uuid(),
        concept,
        job.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// All concepts are to be looked at anew, as if their facts had changed.
#[tracing::instrument(level = "debug", name = "db.summary_states.mark_all", skip_all)]
pub async fn mark_all(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    mark(conn, repository, None).await
}

/// The facts of these concepts, or of all of them, have changed.
pub(crate) async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: Option<&[i64]>,
) -> Result<()> {
    if concepts.is_some_and(<[i64]>::is_empty) {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE okt_repository.summary_states s SET changed = s.changed + 1
           FROM (SELECT concept_no FROM okt_repository.summary_states
                  WHERE repository_id = $1 AND ($2::bigint[] IS NULL OR concept_no = ANY ($2))
                  ORDER BY concept_no FOR NO KEY UPDATE) AS n
          WHERE s.repository_id = $1 AND s.concept_no = n.concept_no",
        repository.uuid(),
        concepts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn interval(period: Duration) -> Result<PgInterval> {
    PgInterval::try_from(period).map_err(|error| Error::internal(error).into())
}
