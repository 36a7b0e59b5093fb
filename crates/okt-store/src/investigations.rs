//! Rows of `okt_repository.investigations` and `okt_repository.investigation_sources`. What their sources say and where these
//! stand is in `reading`.
//!
//! Whoever adds or removes a link holds the row of the source first, then those of the investigations in the order of their
//! numbers, and the link last, so that nobody waits in a circle.

mod reading;

use chrono::{DateTime, Utc};
use okt_model::{Investigation, InvestigationId, MOST_INVESTIGATION_SOURCES, RepositoryId, SourceId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

pub use reading::{
    InvestigationConceptPlace, InvestigationFactPlace, count_facts, find_progress, list_concepts, list_facts,
    list_next_sources,
};

/// What became of a source that was to be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    Added,
    /// It was linked before.
    Already,
    NoInvestigation,
    NoSource,
    /// The investigation has [`MOST_INVESTIGATION_SOURCES`].
    Full,
}

#[tracing::instrument(level = "debug", name = "db.investigations.insert", skip_all, fields(investigation.id = %id))]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
    title: &str,
    topic: Option<&str>,
) -> Result<Investigation> {
    let row = sqlx::query_as!(
        Row,
        "INSERT INTO okt_repository.investigations (repository_id, id, title, topic) VALUES ($1, $2, $3, $4)
         RETURNING id, no, title, topic, source_count, created_at, updated_at",
        repository.uuid(),
        id.uuid(),
        title,
        topic,
    );
    Ok(row.fetch_one(conn).await?.into())
}

#[tracing::instrument(level = "debug", name = "db.investigations.find", skip_all, fields(investigation.id = %id))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
) -> Result<Option<Investigation>> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, no, title, topic, source_count, created_at, updated_at
           FROM okt_repository.investigations WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    );
    Ok(row.fetch_optional(conn).await?.map(Into::into))
}

/// The newest first, from before `before`.
#[tracing::instrument(level = "debug", name = "db.investigations.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    before: Option<InvestigationId>,
    limit: i64,
) -> Result<Vec<Investigation>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, no, title, topic, source_count, created_at, updated_at
           FROM okt_repository.investigations
          WHERE repository_id = $1 AND id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
          ORDER BY id DESC
          LIMIT $3",
        repository.uuid(),
        before.map(InvestigationId::uuid),
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(Into::into).collect())
}

/// `None` leaves the title or the topic as it is; an empty topic removes it. False when there is no such investigation.
#[tracing::instrument(level = "debug", name = "db.investigations.update", skip_all, fields(investigation.id = %id))]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
    title: Option<&str>,
    topic: Option<&str>,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.investigations
            SET title = coalesce($3, title),
                topic = CASE WHEN $4::text IS NULL THEN topic ELSE nullif($4, '') END,
                updated_at = clock_timestamp()
          WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
        title,
        topic,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Removes it with its links; the sources stay. False when there is no such investigation.
#[tracing::instrument(level = "debug", name = "db.investigations.delete", skip_all, fields(investigation.id = %id))]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: InvestigationId) -> Result<bool> {
    let Some((no, _)) = hold(conn, repository, id).await? else { return Ok(false) };
    let done = sqlx::query!(
        "WITH links AS (DELETE FROM okt_repository.investigation_sources WHERE repository_id = $1 AND investigation_no = $2)
         DELETE FROM okt_repository.investigations WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

#[tracing::instrument(level = "debug", name = "db.investigations.link", skip_all, fields(investigation.id = %id, source.id = %source))]
pub async fn link(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
    source: SourceId,
) -> Result<Linked> {
    // It must not be deleted meanwhile; its job may go on changing it.
    let number = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $2 FOR KEY SHARE",
        repository.uuid(),
        source.uuid(),
    );
    let Some(source) = number.fetch_optional(&mut *conn).await? else { return Ok(Linked::NoSource) };
    let Some((no, count)) = hold(conn, repository, id).await? else { return Ok(Linked::NoInvestigation) };
    let there = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.investigation_sources
                           WHERE repository_id = $1 AND investigation_no = $2 AND source_no = $3) AS "is!""#,
        repository.uuid(),
        no,
        source,
    );
    if there.fetch_one(&mut *conn).await? {
        return Ok(Linked::Already);
    }
    if count >= MOST_INVESTIGATION_SOURCES {
        return Ok(Linked::Full);
    }
    let added = sqlx::query!(
        "WITH link AS (INSERT INTO okt_repository.investigation_sources (repository_id, investigation_no, source_no)
                       VALUES ($1, $2, $3))
         UPDATE okt_repository.investigations SET source_count = source_count + 1, updated_at = clock_timestamp()
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        source,
    );
    added.execute(conn).await?;
    Ok(Linked::Added)
}

/// Takes a source out of an investigation; false when it is not in it.
#[tracing::instrument(level = "debug", name = "db.investigations.unlink", skip_all, fields(investigation.id = %id, source.id = %source))]
pub async fn unlink(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
    source: SourceId,
) -> Result<bool> {
    let Some((no, _)) = hold(conn, repository, id).await? else { return Ok(false) };
    let done = sqlx::query!(
        "WITH gone AS (
             DELETE FROM okt_repository.investigation_sources
              WHERE repository_id = $1 AND investigation_no = $2
                AND source_no = (SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $3)
             RETURNING investigation_no)
         UPDATE okt_repository.investigations i SET source_count = source_count - 1, updated_at = clock_timestamp()
           FROM gone WHERE i.repository_id = $1 AND i.no = gone.investigation_no",
        repository.uuid(),
        no,
        source.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Takes a source, which is given by its number and held, out of all investigations; returns of how many.
#[tracing::instrument(level = "debug", name = "db.investigations.forget_source", skip_all)]
pub async fn forget_source(conn: &mut PgConnection, repository: RepositoryId, source: i64) -> Result<u64> {
    let held = sqlx::query!(
        "SELECT i.no FROM okt_repository.investigations i
          WHERE i.repository_id = $1
            AND i.no IN (SELECT l.investigation_no FROM okt_repository.investigation_sources l
                          WHERE l.repository_id = $1 AND l.source_no = $2)
          ORDER BY i.no
            FOR UPDATE",
        repository.uuid(),
        source,
    );
    held.fetch_all(&mut *conn).await?;
    let done = sqlx::query!(
        "WITH gone AS (
             DELETE FROM okt_repository.investigation_sources WHERE repository_id = $1 AND source_no = $2
             RETURNING investigation_no)
         UPDATE okt_repository.investigations i SET source_count = source_count - 1, updated_at = clock_timestamp()
           FROM gone WHERE i.repository_id = $1 AND i.no = gone.investigation_no",
        repository.uuid(),
        source,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// The sources of an investigation, by number and id; at most [`MOST_INVESTIGATION_SOURCES`].
#[tracing::instrument(level = "debug", name = "db.investigations.list_sources", skip_all, fields(investigation.id = %id))]
pub async fn list_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
) -> Result<Vec<(i64, SourceId)>> {
    let rows = sqlx::query!(
        r#"SELECT s.no AS "no!", s.id AS "id!"
             FROM okt_repository.investigations i
             JOIN okt_repository.investigation_sources l ON l.repository_id = $1 AND l.investigation_no = i.no
            CROSS JOIN LATERAL (SELECT o.no, o.id FROM okt_repository.sources o
                                 WHERE o.repository_id = $1 AND o.no = l.source_no OFFSET 0) AS s
            WHERE i.repository_id = $1 AND i.id = $2"#,
        repository.uuid(),
        id.uuid(),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.id.into())).collect())
}

/// Its number and how many sources it has; until the end of the transaction nobody else changes it.
async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: InvestigationId,
) -> Result<Option<(i64, i64)>> {
    let row = sqlx::query!(
        "SELECT no, source_count FROM okt_repository.investigations WHERE repository_id = $1 AND id = $2 FOR UPDATE",
        repository.uuid(),
        id.uuid(),
    );
    Ok(row.fetch_optional(conn).await?.map(|row| (row.no, row.source_count)))
}

struct Row {
    id: Uuid,
    no: i64,
    title: String,
    topic: Option<String>,
    source_count: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Row> for Investigation {
    fn from(row: Row) -> Self {
        Self {
            id: row.id.into(),
            no: row.no,
            title: row.title,
            topic: row.topic,
            source_count: row.source_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
