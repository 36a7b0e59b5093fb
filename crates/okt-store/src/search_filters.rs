//! What filters of a search ask of texts: their sources and concepts, and the facts of a source or of a concept. All of it is
//! bounded by how many are asked for.

use std::collections::BTreeSet;

use okt_model::{ConceptId, RepositoryId, SourceId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concepts;
use okt_pg::Result;

/// Facts and those that they are part of; `None` if there are more than were asked for.
pub type Few = Option<BTreeSet<i64>>;

/// The numbers of these concepts as they are now, and of all that were merged into them.
#[tracing::instrument(level = "debug", name = "db.search_filters.list_members", skip_all)]
pub async fn list_members(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[ConceptId],
) -> Result<BTreeSet<i64>> {
    let ids: Vec<Uuid> = ids.iter().copied().map(ConceptId::uuid).collect();
    let roots = concepts::roots(conn, repository, &ids).await?;
    let roots: Vec<i64> = roots.into_values().collect();
    let members = concepts::members(conn, repository, &roots).await?;
    Ok(members.into_iter().map(|(member, _)| member).collect())
}

/// The numbers of sources.
#[tracing::instrument(level = "debug", name = "db.search_filters.number_sources", skip_all)]
pub async fn number_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[SourceId],
) -> Result<BTreeSet<i64>> {
    let ids: Vec<Uuid> = ids.iter().copied().map(SourceId::uuid).collect();
    let rows = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = ANY ($2)",
        repository.uuid(),
        &ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().collect())
}

/// The facts that speak of any of these concepts, if they are no more than so many.
#[tracing::instrument(level = "debug", name = "db.search_filters.list_of_concepts", skip_all)]
pub async fn list_of_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
    most: i64,
) -> Result<Few> {
    let rows = sqlx::query!(
        "SELECT f.no, f.merged_into
           FROM (SELECT DISTINCT c.fact_no
                   FROM unnest($2::bigint[]) AS n (no)
                  CROSS JOIN LATERAL (SELECT o.fact_no FROM okt_repository.fact_concepts o
                                       WHERE o.repository_id = $1 AND o.concept_no = n.no LIMIT $3::bigint + 1) AS c
                  LIMIT $3::bigint + 1) AS l
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no",
        repository.uuid(),
        concepts,
        most,
    );
    let rows = rows.fetch_all(conn).await?;
    let few = i64::try_from(rows.len()).is_ok_and(|count| count <= most);
    Ok(few.then(|| rows.into_iter().flat_map(|row| [Some(row.no), row.merged_into]).flatten().collect()))
}

/// The facts that any of these sources makes, if they are no more than so many.
#[tracing::instrument(level = "debug", name = "db.search_filters.list_of_sources", skip_all)]
pub async fn list_of_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
    most: i64,
) -> Result<Few> {
    let rows = sqlx::query!(
        "SELECT f.no, f.merged_into
           FROM (SELECT DISTINCT c.fact_no
                   FROM unnest($2::bigint[]) AS n (no)
                  CROSS JOIN LATERAL (SELECT o.fact_no FROM okt_repository.fact_sources o
                                       WHERE o.repository_id = $1 AND o.source_no = n.no LIMIT $3::bigint + 1) AS c
                  LIMIT $3::bigint + 1) AS l
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no",
        repository.uuid(),
        sources,
        most,
    );
    let rows = rows.fetch_all(conn).await?;
    let few = i64::try_from(rows.len()).is_ok_and(|count| count <= most);
    Ok(few.then(|| rows.into_iter().flat_map(|row| [Some(row.no), row.merged_into]).flatten().collect()))
}

/// For each of these facts the sources that make it, or the fact that it is a part of, or another part of that; not all of many.
#[tracing::instrument(level = "debug", name = "db.search_filters.list_sources", skip_all)]
pub async fn list_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"SELECT n.no AS "fact!", l.source_no
             FROM unnest($2::bigint[]) AS n (no)
             JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = n.no
            CROSS JOIN LATERAL (SELECT DISTINCT s.source_no
                                  FROM (SELECT o.no UNION ALL SELECT o.merged_into UNION ALL
                                        (SELECT m.no FROM okt_repository.facts m
                                          WHERE m.repository_id = $1
                                            AND m.merged_into = CASE WHEN o.merged_into IS NULL THEN o.no ELSE o.merged_into END
                                          LIMIT 100)) AS m (no)
                                 CROSS JOIN LATERAL (SELECT a.source_no FROM okt_repository.fact_sources a
                                                      WHERE a.repository_id = $1 AND a.fact_no = m.no
                                                      ORDER BY a.source_no LIMIT 20) AS s
                                 ORDER BY 1 LIMIT 20) AS l"#,
        repository.uuid(),
        facts,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.fact, row.source_no)).collect())
}

/// For each of these facts the concepts, as they are now, that it or the fact that it is a part of speaks of; not all of many.
#[tracing::instrument(level = "debug", name = "db.search_filters.list_concepts", skip_all)]
pub async fn list_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE linked AS MATERIALIZED (
               SELECT DISTINCT n.no AS fact, l.concept_no
                 FROM unnest($2::bigint[]) AS n (no)
                 JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = n.no
                CROSS JOIN LATERAL (SELECT o.no UNION ALL SELECT o.merged_into) AS m (no)
                CROSS JOIN LATERAL (SELECT c.concept_no FROM okt_repository.fact_concepts c
                                     WHERE c.repository_id = $1 AND c.fact_no = m.no
                                     ORDER BY c.concept_no LIMIT 50) AS l),
           led AS (
               SELECT c.no AS first, c.no, c.merged_into
                 FROM (SELECT DISTINCT concept_no FROM linked) AS l
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = l.concept_no
                UNION
               SELECT l.first, c.no, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT DISTINCT k.fact AS "fact!", l.no AS "concept!"
             FROM linked k JOIN led l ON l.first = k.concept_no AND l.merged_into IS NULL"#,
        repository.uuid(),
        facts,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.fact, row.concept)).collect())
}
