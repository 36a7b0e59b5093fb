//! Which concepts have a vector, and of what it is made. The vectors themselves are elsewhere, in a place beside those of facts.

use std::collections::BTreeSet;

use okt_model::{ConceptId, RepositoryId, SourceId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concepts::roots;
use okt_pg::Result;

/// A concept as it is told from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedConcept {
    pub no: i64,
    pub id: ConceptId,
    pub name: String,
    pub context: String,
    pub aliases: Vec<String>,
    /// A few that were linked early, the most cited first.
    pub facts: Vec<String>,
    pub fact_count: i64,
    /// A person gave it its name or its context.
    pub renamed: bool,
    pub vector: Option<Uuid>,
    /// The space of its vector; below zero where the model gave none that can be used.
    pub embedded_in: Option<i16>,
}

/// The concepts that the facts of a source speak of, by their numbers.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.list_of_source", skip_all, fields(source.id = %source))]
pub async fn list_of_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        r#"WITH RECURSIVE led AS (
               SELECT c.no, c.merged_into
                 FROM (SELECT DISTINCT l.concept_no
                         FROM okt_repository.sources s
                         JOIN okt_repository.fact_sources f
                           ON f.repository_id = s.repository_id AND f.source_no = s.no
                         JOIN okt_repository.fact_concepts l
                           ON l.repository_id = f.repository_id AND l.fact_no = f.fact_no
                        WHERE s.repository_id = $1 AND s.id = $2) AS l
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = l.concept_no
                UNION
               SELECT c.no, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT no AS "no!" FROM led WHERE merged_into IS NULL ORDER BY 1"#,
        repository.uuid(),
        source.uuid(),
    );
    Ok(rows.fetch_all(conn).await?)
}

/// These concepts, or those that they became part of, by their numbers.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.list_of", skip_all)]
pub async fn list_of(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[ConceptId],
) -> Result<Vec<i64>> {
    let ids: Vec<Uuid> = concepts.iter().map(|id| id.uuid()).collect();
    let numbers: BTreeSet<i64> = roots(conn, repository, &ids).await?.into_values().collect();
    Ok(numbers.into_iter().collect())
}

/// All concepts that are not part of another one, by their numbers, from after one on.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1 AND no > $2 AND merged_into IS NULL ORDER BY no LIMIT $3",
        repository.uuid(),
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Whether a concept was never given a vector in a space.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.is_any_missing", skip_all)]
pub async fn is_any_missing(conn: &mut PgConnection, repository: RepositoryId, space: i16) -> Result<bool> {
    let missing = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts
                           WHERE repository_id = $1 AND merged_into IS NULL
                             AND abs(embedded_in) IS DISTINCT FROM $2::smallint) AS "missing!""#,
        repository.uuid(),
        space,
    );
    Ok(missing.fetch_one(conn).await?)
}

/// Concepts with what tells them from others, in the order of their numbers; not those that became part of another one.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.describe", skip_all)]
pub async fn describe(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
) -> Result<Vec<DescribedConcept>> {
    let rows = sqlx::query_file!("src/sql/describe_concepts.sql", repository.uuid(), concepts);
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| DescribedConcept {
        no: row.no,
        id: row.id.into(),
        name: row.canonical_name,
        context: row.label,
        aliases: row.aliases,
        facts: row.facts,
        fact_count: row.fact_count,
        renamed: row.renamed,
        vector: row.vector_id,
        embedded_in: row.embedded_in,
    });
    Ok(rows.collect())
}

/// Writes down which vectors concepts are going to have, before they are made; returns those that nobody else is about to make.
/// With `again`, also what somebody began and perhaps left.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.claim", skip_all)]
pub async fn claim(
    conn: &mut PgConnection,
    repository: RepositoryId,
    vectors: &[(i64, Uuid)],
    again: bool,
) -> Result<Vec<i64>> {
    let (concepts, ids): (Vec<i64>, Vec<Uuid>) = vectors.iter().copied().unzip();
    let claimed = sqlx::query_scalar!(
        "UPDATE okt_repository.concepts c SET vector_id = n.vector_id, embedded_in = NULL
           FROM (SELECT v.vector_id, o.no
                   FROM unnest($2::bigint[], $3::uuid[]) AS v (no, vector_id)
                   JOIN okt_repository.concepts o ON o.repository_id = $1 AND o.no = v.no
                  ORDER BY o.no
                    FOR NO KEY UPDATE OF o) AS n
          WHERE c.repository_id = $1 AND c.no = n.no
            AND (c.vector_id IS DISTINCT FROM n.vector_id OR c.embedded_in IS NOT NULL OR $4)
         RETURNING c.no",
        repository.uuid(),
        &concepts,
        &ids,
        again,
    );
    Ok(claimed.fetch_all(conn).await?)
}

/// These have these vectors in a space now, or none that can be used where it is below zero.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.mark", skip_all)]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    vectors: &[(i64, Uuid)],
    space: i16,
) -> Result<u64> {
    let (concepts, ids): (Vec<i64>, Vec<Uuid>) = vectors.iter().copied().unzip();
    let done = sqlx::query!(
        "UPDATE okt_repository.concepts c SET vector_id = n.vector_id, embedded_in = $4
           FROM (SELECT v.vector_id, o.no
                   FROM unnest($2::bigint[], $3::uuid[]) AS v (no, vector_id)
                   JOIN okt_repository.concepts o ON o.repository_id = $1 AND o.no = v.no
                  ORDER BY o.no
                    FOR NO KEY UPDATE OF o) AS n
          WHERE c.repository_id = $1 AND c.no = n.no",
        repository.uuid(),
        &concepts,
        &ids,
        space,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// The concepts of these vectors, merged or not, have none after all.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.unmark", skip_all)]
pub async fn unmark(conn: &mut PgConnection, repository: RepositoryId, vectors: &[Uuid]) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concepts c SET vector_id = NULL, embedded_in = NULL
           FROM (SELECT no FROM okt_repository.concepts WHERE repository_id = $1 AND vector_id = ANY ($2)
                  ORDER BY no FOR NO KEY UPDATE) AS n
          WHERE c.repository_id = $1 AND c.no = n.no",
        repository.uuid(),
        vectors,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// Concepts that are said to have a vector in a space, from after a number on, with their vectors.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.list_marked", skip_all)]
pub async fn list_marked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Uuid)>> {
    let rows = sqlx::query!(
        r#"SELECT no, vector_id AS "vector_id!" FROM okt_repository.concepts
            WHERE repository_id = $1 AND no > $3 AND merged_into IS NULL AND embedded_in = $2 AND vector_id IS NOT NULL
            ORDER BY no LIMIT $4"#,
        repository.uuid(),
        space,
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.vector_id)).collect())
}

/// The concepts that these vectors are of, with their vectors; none for a vector that is nobody's any more.
#[tracing::instrument(level = "debug", name = "db.concept_vectors.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    vectors: &[Uuid],
) -> Result<Vec<(Uuid, i64)>> {
    let rows = sqlx::query!(
        r#"SELECT vector_id AS "vector_id!", no FROM okt_repository.concepts
            WHERE repository_id = $1 AND vector_id = ANY ($2) AND merged_into IS NULL"#,
        repository.uuid(),
        vectors,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.vector_id, row.no)).collect())
}
