//! Rows of `okt_repository.fact_contradictions`: facts that sound alike and do not say the same. Whether they contradict each
//! other is for people to say; that they may is kept for them to see.

use std::collections::HashSet;

use okt_model::{Contradiction, Difference, RepositoryId};
use sqlx::PgConnection;

use crate::words::word;
use okt_pg::Result;

/// Two facts by their numbers, and how they differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewContradiction {
    pub facts: (i64, i64),
    pub difference: Difference,
    pub cosine: f32,
}

/// Keeps them; what was known before stays as it is, unless somebody has looked at it now.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    found: &[NewContradiction],
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let (mut facts, mut others) = (Vec::new(), Vec::new());
    let (mut differences, mut cosines) = (Vec::new(), Vec::new());
    for NewContradiction { facts: (one, other), difference, cosine } in found {
        facts.push(*one.min(other));
        others.push(*one.max(other));
        differences.push(difference.as_str().to_owned());
        cosines.push(*cosine);
    }
    sqlx::query!(
        "INSERT INTO okt_repository.fact_contradictions AS c (repository_id, fact_no, other_no, difference, cosine)
         SELECT DISTINCT ON (n.fact, n.other) $1, n.fact, n.other, n.difference, n.cosine
           FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::real[]) AS n (fact, other, difference, cosine)
          ORDER BY n.fact, n.other
         ON CONFLICT (repository_id, fact_no, other_no) DO UPDATE SET difference = excluded.difference
          WHERE excluded.difference = 'judged'",
        repository.uuid(),
        &facts,
        &others,
        &differences,
        &cosines,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The pairs among these facts that somebody has said are not the same, the smaller number first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_judged", skip_all)]
pub async fn list_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashSet<(i64, i64)>> {
    let rows = sqlx::query!(
        "SELECT fact_no, other_no FROM okt_repository.fact_contradictions
          WHERE repository_id = $1 AND difference = 'judged' AND fact_no = ANY ($2) AND other_no = ANY ($2)",
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.fact_no, row.other_no)).collect())
}

/// The pairs among these facts, which are canonical ones, that may contradict each other, themselves or through duplicates; the
/// smaller number first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list_among", skip_all)]
pub async fn list_among(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"WITH members AS MATERIALIZED (
               SELECT f.no, f.no AS canonical FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = ANY ($2)
                UNION ALL
               SELECT f.no, f.merged_into FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.merged_into = ANY ($2))
           SELECT DISTINCT least(m.canonical, o.canonical) AS "one!", greatest(m.canonical, o.canonical) AS "other!"
             FROM members m
             JOIN okt_repository.fact_contradictions c
               ON c.repository_id = $1 AND c.fact_no = m.no AND c.difference NOT IN ('name', 'wording', 'judged')
             JOIN members o ON o.no = c.other_no
            WHERE m.canonical <> o.canonical
            ORDER BY 1, 2"#,
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.one, row.other)).collect())
}

/// The candidate contradictions of a fact, which is given with its duplicates, the nearest first.
#[tracing::instrument(level = "debug", name = "db.fact_contradictions.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    fact: i64,
    facts: &[i64],
    limit: i64,
) -> Result<Vec<Contradiction>> {
    let pairs = sqlx::query!(
        r#"SELECT other_no AS "no!", difference AS "difference!", cosine AS "cosine!"
             FROM okt_repository.fact_contradictions WHERE repository_id = $1 AND fact_no = ANY ($2)
            UNION ALL
           SELECT fact_no, difference, cosine
             FROM okt_repository.fact_contradictions WHERE repository_id = $1 AND other_no = ANY ($2)"#,
        repository.uuid(),
        facts,
    );
    let pairs = pairs.fetch_all(&mut *conn).await?;
    // Most facts have none, and what follows is the dearest statement of all that a fact is read with.
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let (mut others, mut differences, mut cosines) = (Vec::new(), Vec::new(), Vec::new());
    for pair in pairs {
        others.push(pair.no);
        differences.push(pair.difference);
        cosines.push(pair.cosine);
    }
    let rows = sqlx::query_file!(
        "src/sql/list_contradictions.sql",
        repository.uuid(),
        fact,
        &others,
        &differences,
        &cosines,
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    let found = rows.into_iter().map(|row| {
        Ok(Contradiction {
            fact: row.id.into(),
            text: row.text,
            difference: word("fact_contradictions.difference", &row.difference)?,
            cosine: row.cosine,
            retracted: false,
        })
    });
    found.collect()
}
