//! Which facts have a vector, and which are to get one. The vectors themselves are elsewhere.
//!
//! `facts.embedded_in` is the number of the space in which a fact has its vector; the same number below zero when the model of
//! that space gives none for it that could be compared, so that it is not asked, and paid, again.

use okt_model::{FactId, RepositoryId, SourceId, TextOfFact};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Facts that are to get a vector in a space, from after a number on: those that a source makes, or all.
#[tracing::instrument(level = "debug", name = "db.fact_vectors.list_missing", skip_all)]
pub async fn list_missing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: Option<SourceId>,
    space: i16,
    after: i64,
    limit: i64,
) -> Result<Vec<TextOfFact>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT f.id, f.no, f.text FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.no > $4
            AND f.status IN ('new', 'stable') AND abs(f.embedded_in) IS DISTINCT FROM $3
            AND ($2::uuid IS NULL
                 OR f.no IN (SELECT l.fact_no FROM okt_repository.sources s
                               JOIN okt_repository.fact_sources l
                                 ON l.repository_id = s.repository_id AND l.source_no = s.no
                              WHERE s.repository_id = $1 AND s.id = $2))
          ORDER BY f.no
          LIMIT $5",
        repository.uuid(),
        source.map(SourceId::uuid),
        space,
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(TextOfFact::from).collect())
}

/// Facts that are said to have a vector in a space, from after a number on.
#[tracing::instrument(level = "debug", name = "db.fact_vectors.list_embedded", skip_all)]
pub async fn list_embedded(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
    after: i64,
    limit: i64,
) -> Result<Vec<TextOfFact>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT f.id, f.no, f.text FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.no > $3 AND f.status IN ('new', 'stable') AND f.embedded_in = $2
          ORDER BY f.no
          LIMIT $4",
        repository.uuid(),
        space,
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(TextOfFact::from).collect())
}

/// These have one now; `None` for none in any space. Taken in the order of their hashes, as by everybody.
#[tracing::instrument(level = "debug", name = "db.fact_vectors.mark", skip_all)]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    space: Option<i16>,
) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.facts f SET embedded_in = $3
           FROM (SELECT no FROM okt_repository.facts
                  WHERE repository_id = $1 AND no = ANY ($2) AND embedded_in IS DISTINCT FROM $3
                    AND status IN ('new', 'stable')
                  ORDER BY content_hash
                    FOR UPDATE) AS n
          WHERE f.repository_id = $1 AND f.no = n.no",
        repository.uuid(),
        facts,
        space,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// These have none in a space, and will not get one there.
pub async fn mark_without(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    space: i16,
) -> Result<u64> {
    mark(conn, repository, facts, Some(-space)).await
}

/// Those of these ids that are facts which are to be found by their vectors.
#[tracing::instrument(level = "debug", name = "db.fact_vectors.list_live", skip_all)]
pub async fn list_live(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<Vec<FactId>> {
    let rows = sqlx::query_scalar!(
        "SELECT f.id FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
          WHERE f.status IN ('new', 'stable')",
        repository.uuid(),
        ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(FactId::from).collect())
}

struct Row {
    id: Uuid,
    no: i64,
    text: String,
}

impl From<Row> for TextOfFact {
    fn from(row: Row) -> Self {
        Self { id: row.id.into(), no: row.no, text: row.text }
    }
}
