//! Periodic clean-up: jobs that are missing from the queue, and jobs past their retention.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{JobId, RepositoryId};
use okt_pg::Result;
use okt_store::{Connection, Databases, outbox};
use uuid::Uuid;

const BATCH: i64 = 500;
/// An entry that arrived this long ago and has no job: the job was lost.
const LOST_AFTER_S: f64 = 15.0 * 60.0;

/// Position of the scan over the outbox of each database.
#[derive(Default)]
pub(crate) struct OutboxScan(BTreeMap<String, (Uuid, Uuid)>);

impl OutboxScan {
    /// Reads the next entries of every database, and has those relayed again whose job is missing from the queue, because
    /// it was restored from a backup or rows were deleted. Returns how many.
    pub(crate) async fn find_lost(&mut self, databases: &Databases) -> usize {
        let mut total = 0;
        for database in databases.shards() {
            match self.find_lost_in(databases, database).await {
                Ok(lost) => total += lost,
                // One that is away has lost nothing, and is no reason to pass over the others.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(database, error, "failed to look for lost jobs; will retry");
                }
            }
        }
        total
    }

    async fn find_lost_in(&mut self, databases: &Databases, database: &str) -> Result<usize> {
        let after = self.0.get(database).copied().unwrap_or_default();
        let mut tx = databases.begin_relay(database).await?;
        let entries = outbox::list_arrived(&mut tx, after, LOST_AFTER_S, BATCH).await?;
        tx.commit().await?;
        let Some((repository, job)) = entries.last() else {
            self.0.remove(database);
            return Ok(0);
        };
        self.0.insert(database.to_owned(), (repository.uuid(), job.uuid()));
        let ids: Vec<JobId> = entries.iter().map(|(_, job)| *job).collect();
        let mut conn = databases.acquire_tasks().await?;
        let known = known(&mut conn, &ids).await?;
        drop(conn);
        let lost: Vec<_> = entries.into_iter().filter(|(_, job)| !known.contains(job)).collect();
        if !lost.is_empty() {
            let mut tx = databases.begin_relay(database).await?;
            outbox::put_down(&mut tx, &lost).await?;
            tx.commit().await?;
        }
        Ok(lost.len())
    }
}

/// Which of these the queue knows, whatever became of them.
#[tracing::instrument(level = "debug", name = "db.jobs.known", skip_all)]
pub(crate) async fn known(conn: &mut Connection, ids: &[JobId]) -> Result<Vec<JobId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_scalar!(
        "SELECT j.id FROM unnest($1::uuid[]) AS n (id) JOIN okt_tasks.jobs j ON j.id = n.id",
        &ids
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Deletes jobs past their retention: a day for completed ones, a week for the others, with their outbox entries, or they
/// would count as lost. The jobs of a database that does not answer are kept for now. Returns how many.
pub(crate) async fn delete_old_jobs(databases: &Databases) -> Result<usize> {
    let (mut deleted, mut away) = (0, BTreeSet::new());
    loop {
        let known_away = away.len();
        deleted += delete_batch(databases, &mut away).await?;
        // What they keep has taken the place of others.
        if away.len() == known_away {
            break;
        }
    }
    let mut conn = databases.acquire_tasks().await?;
    delete_old_cursors(&mut conn).await?;
    Ok(deleted)
}

/// One batch without what belongs to databases that are away; those that turn out to be are added.
async fn delete_batch(databases: &Databases, away: &mut BTreeSet<String>) -> Result<usize> {
    let without: Vec<String> = away.iter().cloned().collect();
    let mut conn = databases.acquire_tasks().await?;
    let old = list_old(&mut conn, &without).await?;
    drop(conn);
    let mut entries: BTreeMap<&str, Vec<(RepositoryId, JobId)>> = BTreeMap::new();
    for job in &old {
        if let (Some(repository), Some(database)) = (job.repository, &job.database) {
            entries.entry(database).or_default().push((repository, job.id));
        }
    }
    for (database, entries) in entries {
        // One that is not named any more took its outbox entries with it.
        if databases.shards().iter().any(|named| named == database)
            && let Err(error) = delete_entries(databases, database, &entries).await
        {
            tracing::debug!(
                database,
                error = &error as &dyn std::error::Error,
                "failed to delete old outbox entries; will retry"
            );
            away.insert(database.to_owned());
        }
    }
    let is_kept = |job: &Old| job.database.as_ref().is_some_and(|database| away.contains(database));
    let ids: Vec<Uuid> = old.iter().filter(|job| !is_kept(job)).map(|job| job.id.uuid()).collect();
    let mut conn = databases.acquire_tasks().await?;
    delete(&mut conn, &ids).await?;
    Ok(ids.len())
}

async fn delete_entries(
    databases: &Databases,
    database: &str,
    entries: &[(RepositoryId, JobId)],
) -> Result<()> {
    let mut tx = databases.begin_relay(database).await?;
    outbox::delete(&mut tx, entries).await?;
    tx.commit().await
}

struct Old {
    id: JobId,
    repository: Option<RepositoryId>,
    /// The database of its outbox entry, if it has one.
    database: Option<String>,
}

#[tracing::instrument(level = "debug", name = "db.jobs.list_old", skip_all)]
async fn list_old(conn: &mut Connection, away: &[String]) -> Result<Vec<Old>> {
    let rows = sqlx::query!(
        "SELECT id, repository_id, CASE WHEN state = 'completed' THEN NULL ELSE database END AS database
           FROM okt_tasks.jobs
          WHERE finished_at < statement_timestamp() - interval '1 day'
            AND (state = 'completed'
                 OR (finished_at < statement_timestamp() - interval '7 days'
                     AND (database IS NULL OR database <> ALL ($1))))
          ORDER BY finished_at
          LIMIT $2",
        away,
        BATCH * 4,
    )
    .fetch_all(conn)
    .await?;
    let old = rows.into_iter().map(|row| Old {
        id: row.id.into(),
        repository: row.repository_id.map(Into::into),
        database: row.database,
    });
    Ok(old.collect())
}

#[tracing::instrument(level = "debug", name = "db.jobs.delete", skip_all)]
async fn delete(conn: &mut Connection, ids: &[Uuid]) -> Result<()> {
    // None that is this old can be tried again, so none of them runs without its outbox entry.
    sqlx::query!(
        "DELETE FROM okt_tasks.jobs j USING unnest($1::uuid[]) AS o (id)
          WHERE j.id = o.id AND j.finished_at IS NOT NULL",
        ids
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes tenant cursors (`okt_tasks.lanes`) behind the sequence number that is served now. The foremost one stays.
#[tracing::instrument(level = "debug", name = "db.lanes.delete_old_cursors", skip_all)]
async fn delete_old_cursors(conn: &mut Connection) -> Result<()> {
    sqlx::query!(
        "WITH front AS (
             SELECT k.kind, k.priority, coalesce(
                        (SELECT j.turn FROM okt_tasks.jobs j
                          WHERE j.kind = k.kind AND j.priority = k.priority AND j.state = 'available'
                            AND j.crashes < 2
                          ORDER BY j.turn LIMIT 1),
                        k.turn) AS turn
               FROM (SELECT kind, priority, max(turn) AS turn FROM okt_tasks.lanes GROUP BY kind, priority) k),
         old AS (
             SELECT l.kind, l.priority, l.repository_id
               FROM okt_tasks.lanes l
               JOIN front f ON f.kind = l.kind AND f.priority = l.priority AND l.turn < f.turn
              LIMIT $1
                FOR UPDATE OF l SKIP LOCKED)
         DELETE FROM okt_tasks.lanes l USING old o
          WHERE l.kind = o.kind AND l.priority = o.priority AND l.repository_id = o.repository_id",
        BATCH * 4,
    )
    .execute(conn)
    .await?;
    Ok(())
}
