//! What has to be looked after now and then: jobs that got lost, and what is kept no longer.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{JobId, RepositoryId, Result};
use okt_store::{Connection, Databases, from_sqlx, outbox};
use uuid::Uuid;

const BATCH: i64 = 500;
/// A note that arrived this long ago and has no job was lost with it.
const LOST_AFTER_S: f64 = 15.0 * 60.0;

/// Where the walk over all notes of each database has got to.
#[derive(Default)]
pub(crate) struct Walk(BTreeMap<String, (Uuid, Uuid)>);

impl Walk {
    /// Looks at the next notes of every database, and has those carried again whose job the queue does not know: it was
    /// restored from a copy, or somebody deleted rows. Returns how many.
    pub(crate) async fn find_lost(&mut self, databases: &Databases) -> usize {
        let mut total = 0;
        for home in databases.homes() {
            match self.find_lost_in(databases, home).await {
                Ok(lost) => total += lost,
                // One that is away has lost nothing, and is no reason to pass over the others.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(database = home, error, "can't look for lost jobs");
                }
            }
        }
        total
    }

    async fn find_lost_in(&mut self, databases: &Databases, home: &str) -> Result<usize> {
        let after = self.0.get(home).copied().unwrap_or_default();
        let mut tx = databases.begin_relay(home).await?;
        let notes = outbox::list_arrived(&mut tx, after, LOST_AFTER_S, BATCH).await?;
        tx.commit().await?;
        let Some((repository, job)) = notes.last() else {
            self.0.remove(home);
            return Ok(0);
        };
        self.0.insert(home.to_owned(), (repository.uuid(), job.uuid()));
        let ids: Vec<JobId> = notes.iter().map(|(_, job)| *job).collect();
        let mut conn = databases.acquire_tasks().await?;
        let known = known(&mut conn, &ids).await?;
        conn.done();
        let lost: Vec<_> = notes.into_iter().filter(|(_, job)| !known.contains(job)).collect();
        if !lost.is_empty() {
            let mut tx = databases.begin_relay(home).await?;
            outbox::put_down(&mut tx, &lost).await?;
            tx.commit().await?;
        }
        Ok(lost.len())
    }
}

/// Which of these the queue knows, whatever became of them.
#[tracing::instrument(level = "debug", name = "db.jobs.known", skip_all)]
async fn known(conn: &mut Connection, ids: &[JobId]) -> Result<Vec<JobId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_scalar!(
        "SELECT j.id FROM unnest($1::uuid[]) AS n (id) JOIN okt_tasks.jobs j ON j.id = n.id",
        &ids
    )
    .fetch_all(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Forgets jobs that ended long ago: a day for those that ended well, a week for the others. With the latter goes their
/// note, or they would be taken for lost. Returns how many.
pub(crate) async fn forget(databases: &Databases) -> Result<usize> {
    let mut conn = databases.acquire_tasks().await?;
    let old = list_old(&mut conn).await?;
    conn.done();
    let mut notes: BTreeMap<&str, Vec<(RepositoryId, JobId)>> = BTreeMap::new();
    for job in &old {
        if let (Some(repository), Some(database)) = (job.repository, &job.database) {
            notes.entry(database).or_default().push((repository, job.id));
        }
    }
    let mut kept = BTreeSet::new();
    for (database, notes) in notes {
        // One that is not named any more took its notes with it. One that is away keeps its jobs for now, and nobody else's.
        if databases.homes().iter().any(|home| home == database)
            && let Err(error) = delete_notes(databases, database, &notes).await
        {
            tracing::debug!(database, error = &error as &dyn std::error::Error, "can't forget old notes");
            kept.extend(notes.into_iter().map(|(_, job)| job));
        }
    }
    let old: Vec<_> = old.iter().filter(|job| !kept.contains(&job.id)).collect();
    let ids: Vec<Uuid> = old.iter().map(|job| job.id.uuid()).collect();
    let mut conn = databases.acquire_tasks().await?;
    delete(&mut conn, &ids).await?;
    delete_lanes(&mut conn).await?;
    conn.done();
    Ok(old.len())
}

async fn delete_notes(databases: &Databases, home: &str, notes: &[(RepositoryId, JobId)]) -> Result<()> {
    let mut tx = databases.begin_relay(home).await?;
    outbox::delete(&mut tx, notes).await?;
    tx.commit().await
}

struct Old {
    id: JobId,
    repository: Option<RepositoryId>,
    database: Option<String>,
}

#[tracing::instrument(level = "debug", name = "db.jobs.list_old", skip_all)]
async fn list_old(conn: &mut Connection) -> Result<Vec<Old>> {
    let rows = sqlx::query!(
        "SELECT id, repository_id, CASE WHEN state = 'completed' THEN NULL ELSE database END AS database
           FROM okt_tasks.jobs
          WHERE finished_at < statement_timestamp() - interval '1 day'
            AND (state = 'completed' OR finished_at < statement_timestamp() - interval '7 days')
          ORDER BY finished_at
          LIMIT $1",
        BATCH * 4,
    )
    .fetch_all(conn)
    .await
    .map_err(from_sqlx)?;
    let old = rows.into_iter().map(|row| Old {
        id: row.id.into(),
        repository: row.repository_id.map(Into::into),
        database: row.database,
    });
    Ok(old.collect())
}

#[tracing::instrument(level = "debug", name = "db.jobs.delete", skip_all)]
async fn delete(conn: &mut Connection, ids: &[Uuid]) -> Result<()> {
    // None that is this old can be tried again, so none of them lost its note and lives.
    sqlx::query!(
        "DELETE FROM okt_tasks.jobs j USING unnest($1::uuid[]) AS o (id)
          WHERE j.id = o.id AND j.finished_at IS NOT NULL",
        ids
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// A lane that lies behind the turn that is served now says nothing any more. The foremost one stays.
#[tracing::instrument(level = "debug", name = "db.lanes.delete_old", skip_all)]
async fn delete_lanes(conn: &mut Connection) -> Result<()> {
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
    .await
    .map_err(from_sqlx)?;
    Ok(())
}
