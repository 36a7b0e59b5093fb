//! What is shown of texts that were found, and what leads from them to others: facts, passages, sources, and the concepts that
//! they share.

use std::collections::HashMap;

use chrono::NaiveDate;
use okt_model::{ConceptId, Error, FactId, FoundBy, RepositoryId, SourceId, UnitKind};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// A fact that was found, or the one that it is a part of.
#[derive(Clone, Debug)]
pub struct FactHit {
    pub id: FactId,
    pub no: i64,
    pub text: String,
    /// The sources that make it or its duplicates, the first ones first; not all of many.
    pub sources: Vec<i64>,
}

/// A source that was found, or that something was found in.
#[derive(Clone, Debug)]
pub struct SourceHit {
    pub id: SourceId,
    pub no: i64,
    pub title: Option<String>,
    pub url: String,
    /// That its words were read in.
    pub language: Option<String>,
    pub kind: Option<String>,
    pub published_at: Option<NaiveDate>,
}

/// A concept by which a source is linked with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// As it is now.
    pub concept: ConceptId,
    pub source_no: i64,
    pub fact_no: i64,
    /// It is the title of the source.
    pub title: bool,
}

/// The facts of these numbers that may be seen, by those numbers. A duplicate leads to the fact that it is part of.
#[tracing::instrument(level = "debug", name = "db.search_hits.get_facts", skip_all)]
pub async fn get_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<HashMap<i64, FactHit>> {
    let rows = sqlx::query!(
        r#"SELECT n.no AS "asked!", f.id, f.no, f.text,
                  ARRAY(SELECT DISTINCT l.source_no
                          FROM (SELECT f.no UNION ALL
                                (SELECT m.no FROM okt_repository.facts m
                                  WHERE m.repository_id = $1 AND m.merged_into = f.no LIMIT 100)) AS m (no)
                         CROSS JOIN LATERAL (SELECT s.source_no FROM okt_repository.fact_sources s
                                              WHERE s.repository_id = $1 AND s.fact_no = m.no
                                              ORDER BY s.source_no LIMIT 20) AS l
                         ORDER BY 1 LIMIT 20) AS "sources!"
             FROM unnest($2::bigint[]) AS n (no)
             JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = n.no
             JOIN okt_repository.facts f
               ON f.repository_id = $1 AND f.no = CASE WHEN o.merged_into IS NULL THEN o.no ELSE o.merged_into END
            WHERE f.status IN ('new', 'stable')"#,
        repository.uuid(),
        numbers,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let hit = FactHit { id: row.id.into(), no: row.no, text: row.text, sources: row.sources };
        (row.asked, hit)
    });
    Ok(rows.collect())
}

/// For facts that may be seen the one that each is a part of, or itself, and the fact that represents its group of similar facts.
#[tracing::instrument(level = "debug", name = "db.search_hits.list_groups", skip_all)]
pub async fn list_groups(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<HashMap<i64, (i64, Option<i64>)>> {
    let rows = sqlx::query!(
        r#"SELECT o.no AS "asked!", f.no, f.similar_to
             FROM unnest($2::bigint[]) AS n (no)
             JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = n.no
             JOIN okt_repository.facts f
               ON f.repository_id = $1 AND f.no = CASE WHEN o.merged_into IS NULL THEN o.no ELSE o.merged_into END
            WHERE f.status IN ('new', 'stable')"#,
        repository.uuid(),
        numbers,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.asked, (row.no, row.similar_to))).collect())
}

/// The numbers of facts, and of the first source of each.
#[tracing::instrument(level = "debug", name = "db.search_hits.number_facts", skip_all)]
pub async fn number_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, (i64, i64)>> {
    let rows = sqlx::query!(
        r#"SELECT f.id, f.no, l.source_no AS "source_no!"
             FROM unnest($2::uuid[]) AS n (id)
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
            CROSS JOIN LATERAL (SELECT min(s.source_no) AS source_no
                                  FROM (SELECT f.no UNION ALL
                                        (SELECT m.no FROM okt_repository.facts m
                                          WHERE m.repository_id = $1 AND m.merged_into = f.no LIMIT 100)) AS m (no)
                                 CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                                                      WHERE o.repository_id = $1 AND o.fact_no = m.no
                                                      ORDER BY o.source_no LIMIT 1) AS s) AS l
            WHERE l.source_no IS NOT NULL AND f.status IN ('new', 'stable')"#,
        repository.uuid(),
        ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.id, (row.no, row.source_no))).collect())
}

/// Sources by their numbers.
#[tracing::instrument(level = "debug", name = "db.search_hits.get_sources", skip_all)]
pub async fn get_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<HashMap<i64, SourceHit>> {
    let rows = sqlx::query!(
        r#"SELECT s.id, s.no, s.title, s.url, u.language AS "read_in?", s.language, s.kind, s.published_at
             FROM unnest($2::bigint[]) AS n (no)
             JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = n.no
             LEFT JOIN okt_repository.search_units u ON u.repository_id = $1 AND u.kind = $3 AND u.no = n.no"#,
        repository.uuid(),
        numbers,
        UnitKind::Source.number(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| SourceHit {
        id: row.id.into(),
        no: row.no,
        title: row.title,
        url: row.url,
        language: row.read_in.or(row.language),
        kind: row.kind,
        published_at: row.published_at,
    });
    Ok(rows.map(|hit| (hit.no, hit)).collect())
}

/// The words of stretches of sentences of sources, which are given by their numbers with a name for each: the first and the last
/// sentence. At most 20,000 characters of each.
#[tracing::instrument(level = "debug", name = "db.search_hits.get_passages", skip_all)]
pub async fn get_passages(
    conn: &mut PgConnection,
    repository: RepositoryId,
    passages: &[(i64, i64, (i32, i32))],
) -> Result<HashMap<i64, String>> {
    let mut columns = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, source, (first, last)) in passages {
        columns.0.push(*name);
        columns.1.push(*source);
        columns.2.push(*first);
        columns.3.push(*last);
    }
    let rows = sqlx::query!(
        r#"SELECT n.name AS "name!",
                  substr(t.text, t.sentences[2 * n.first + 1] + 1,
                         least(t.sentences[2 * n.last + 2] - t.sentences[2 * n.first + 1], 20000)) AS "text!"
             FROM unnest($2::bigint[], $3::bigint[], $4::integer[], $5::integer[]) AS n (name, source, first, last)
             JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = n.source
             JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = s.id
            WHERE cardinality(t.sentences) >= 2 * n.last + 2"#,
        repository.uuid(),
        &columns.0,
        &columns.1,
        &columns.2,
        &columns.3,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.name, row.text)).collect())
}

/// Names and titles that facts of these sources speak of, each once for each source; not what is only a phrase there, which leads
/// anywhere.
#[tracing::instrument(level = "debug", name = "db.search_hits.list_links", skip_all)]
pub async fn list_links(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
) -> Result<Vec<Link>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE linked AS MATERIALIZED (
               SELECT s.source_no, l.concept_no, min(l.fact_no) AS fact_no, bool_or(l.found_by = $3) AS title
                 FROM unnest($2::bigint[]) AS n (no)
                CROSS JOIN LATERAL (SELECT o.source_no, o.fact_no FROM okt_repository.fact_sources o
                                     WHERE o.repository_id = $1 AND o.source_no = n.no
                                     ORDER BY o.fact_no LIMIT 1000) AS s
                 JOIN okt_repository.facts f
                   ON f.repository_id = $1 AND f.no = s.fact_no AND f.status IN ('new', 'stable', 'duplicate')
                CROSS JOIN LATERAL (SELECT o.concept_no, o.fact_no, o.found_by FROM okt_repository.fact_concepts o
                                     WHERE o.repository_id = $1 AND o.fact_no = s.fact_no AND o.found_by <> $4
                                     ORDER BY o.concept_no LIMIT 100) AS l
                GROUP BY s.source_no, l.concept_no),
           led AS (
               SELECT l.source_no, l.fact_no, l.title, c.id, c.merged_into
                 FROM linked l
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = l.concept_no
                UNION
               SELECT l.source_no, l.fact_no, l.title, c.id, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT source_no AS "source_no!", fact_no AS "fact_no!", title AS "title!", id AS "id!"
             FROM led WHERE merged_into IS NULL ORDER BY 1, 4"#,
        repository.uuid(),
        sources,
        FoundBy::Title.number(),
        FoundBy::Phrase.number(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| Link {
        concept: row.id.into(),
        source_no: row.source_no,
        fact_no: row.fact_no,
        title: row.title,
    });
    Ok(rows.collect())
}

/// The sources that speak of these concepts by name or title. A concept that more facts than so many speak of leads anywhere, and is left
/// out.
#[tracing::instrument(level = "debug", name = "db.search_hits.list_linked", skip_all)]
pub async fn list_linked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[ConceptId],
    each: i64,
) -> Result<Vec<Link>> {
    let ids: Vec<Uuid> = concepts.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        r#"WITH RECURSIVE members AS (
               SELECT c.id AS root, c.no FROM okt_repository.concepts c
                WHERE c.repository_id = $1 AND c.id = ANY ($2)
                UNION
               SELECT m.root, c.no FROM members m
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
           SELECT m.root AS "root!", s.source_no AS "source_no!", min(l.fact_no) AS "fact_no!",
                  bool_or(l.found_by = $4) AS "title!"
             FROM members m
             JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.id = m.root AND c.fact_count <= $3
            CROSS JOIN LATERAL (SELECT o.fact_no, o.found_by FROM okt_repository.fact_concepts o
                                 WHERE o.repository_id = $1 AND o.concept_no = m.no AND o.found_by <> $5
                                 ORDER BY o.fact_no LIMIT $3) AS l
             JOIN okt_repository.facts f
               ON f.repository_id = $1 AND f.no = l.fact_no AND f.status IN ('new', 'stable', 'duplicate')
            CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                                 WHERE o.repository_id = $1 AND o.fact_no = l.fact_no
                                 ORDER BY o.source_no LIMIT 100) AS s
            GROUP BY m.root, s.source_no ORDER BY 1, 2"#,
        repository.uuid(),
        &ids,
        each,
        FoundBy::Title.number(),
        FoundBy::Phrase.number(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| Link {
        concept: row.root.into(),
        source_no: row.source_no,
        fact_no: row.fact_no,
        title: row.title,
    });
    Ok(rows.collect())
}

/// The names of concepts.
#[tracing::instrument(level = "debug", name = "db.search_hits.name_concepts", skip_all)]
pub async fn name_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[ConceptId],
) -> Result<Vec<(ConceptId, String)>> {
    let ids: Vec<Uuid> = concepts.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        "SELECT id, canonical_name FROM okt_repository.concepts WHERE repository_id = $1 AND id = ANY ($2)",
        repository.uuid(),
        &ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.id.into(), row.canonical_name)).collect())
}

/// The ids of facts by their numbers.
#[tracing::instrument(level = "debug", name = "db.search_hits.identify_facts", skip_all)]
pub async fn identify_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &[i64],
) -> Result<HashMap<Uuid, i64>> {
    let rows = sqlx::query!(
        "SELECT id, no FROM okt_repository.facts WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        numbers,
    );
    let rows = rows.fetch_all(conn).await.map_err(Error::internal)?;
    Ok(rows.into_iter().map(|row| (row.id, row.no)).collect())
}
