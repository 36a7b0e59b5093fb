//! Concepts that may be one thing: who has names like another, and `okt_repository.concept_verdicts`, what was said of pairs.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::RepositoryId;
use sqlx::PgConnection;

use okt_pg::Result;

/// Concepts that were not yet compared with others, by their numbers, the oldest first; with a space only those that have a
/// vector in it, or will have none.
#[tracing::instrument(level = "debug", name = "db.concept_twins.list_unrefined", skip_all)]
pub async fn list_unrefined(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: Option<i16>,
    limit: i64,
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1 AND NOT refined AND merged_into IS NULL
            AND ($3::smallint IS NULL OR abs(embedded_in) = $3)
          ORDER BY no LIMIT $2",
        repository.uuid(),
        limit,
        space,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// These were compared.
#[tracing::instrument(level = "debug", name = "db.concept_twins.mark_refined", skip_all)]
pub async fn mark_refined(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concepts c SET refined = true
           FROM (SELECT no FROM okt_repository.concepts WHERE repository_id = $1 AND no = ANY ($2) AND NOT refined
                  ORDER BY no FOR NO KEY UPDATE) AS n
          WHERE c.repository_id = $1 AND c.no = n.no",
        repository.uuid(),
        concepts,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// For names of concepts, as names are compared: the other concepts that have them as their name or as an alias, themselves or
/// through those that were merged into them. Pairs of numbers.
#[tracing::instrument(level = "debug", name = "db.concept_twins.list_namesakes", skip_all)]
pub async fn list_namesakes(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[(i64, String)],
) -> Result<BTreeSet<(i64, i64)>> {
    let (concepts, keys): (Vec<i64>, Vec<String>) = names.iter().cloned().unzip();
    let rows = sqlx::query!(
        r#"WITH RECURSIVE led AS (
               SELECT n.no AS one, c.no, c.merged_into
                 FROM unnest($2::bigint[], $3::text[]) AS n (no, key)
                CROSS JOIN LATERAL (SELECT o.no, o.merged_into FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.name_key = n.key AND o.merged_into IS NULL
                                     ORDER BY o.no LIMIT 20) AS c
                UNION
               SELECT n.no, c.no, c.merged_into
                 FROM unnest($2::bigint[], $3::text[]) AS n (no, key)
                CROSS JOIN LATERAL (SELECT a.concept_no FROM okt_repository.concept_aliases a
                                     WHERE a.repository_id = $1 AND a.alias_key = n.key
                                     ORDER BY a.concept_no LIMIT 20) AS a
                 JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = a.concept_no
                UNION
               SELECT l.one, c.no, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT one AS "one!", no AS "other!" FROM led WHERE merged_into IS NULL AND no <> one"#,
        repository.uuid(),
        &concepts,
        &keys,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.one, row.other)).collect())
}

/// Those of these pairs, the smaller number first, of which this judge has said something, with whether that both differ.
#[tracing::instrument(level = "debug", name = "db.concept_twins.list_judged", skip_all)]
pub async fn list_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    pairs: &[(i64, i64)],
    judge: i64,
) -> Result<BTreeMap<(i64, i64), bool>> {
    let (one, other): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    let rows = sqlx::query!(
        r#"SELECT v.one_no, v.other_no, v.verdict = 'different' AS "different!" FROM unnest($2::bigint[], $3::bigint[]) AS n (one, other)
           JOIN okt_repository.concept_verdicts v
             ON v.repository_id = $1 AND v.one_no = n.one AND v.other_no = n.other AND v.judge = $4"#,
        repository.uuid(),
        &one,
        &other,
        judge,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| ((row.one_no, row.other_no), row.different)).collect())
}

/// What a judge said of pairs, the smaller number first; in place of what was said before.
#[tracing::instrument(level = "debug", name = "db.concept_twins.insert_verdicts", skip_all)]
pub async fn insert_verdicts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    verdicts: &[((i64, i64), &'static str)],
    judge: i64,
) -> Result<u64> {
    let mut rows = (Vec::new(), Vec::new(), Vec::new());
    for ((one, other), verdict) in verdicts {
        rows.0.push(*one);
        rows.1.push(*other);
        rows.2.push((*verdict).to_owned());
    }
    let done = sqlx::query!(
        "INSERT INTO okt_repository.concept_verdicts (repository_id, one_no, other_no, verdict, judge)
         SELECT $1, n.one, n.other, n.verdict, $5
           FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS n (one, other, verdict)
           JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = n.one
           JOIN okt_repository.concepts d ON d.repository_id = $1 AND d.no = n.other
          ORDER BY n.one, n.other
         ON CONFLICT (repository_id, one_no, other_no)
         DO UPDATE SET verdict = excluded.verdict, judge = excluded.judge, judged_at = excluded.judged_at",
        repository.uuid(),
        &rows.0,
        &rows.1,
        &rows.2,
        judge,
    );
    Ok(done.execute(conn).await?.rows_affected())
}
