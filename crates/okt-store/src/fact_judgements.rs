//! Rows of `okt_repository.fact_judgements` and `unchecked_facts`: pairs of facts that may contradict each other, and what was said of
//! them; and the facts that are to be compared with those near them.
//!
//! A pair is noted before it is judged, and judged once. One whose fact was merged, rejected or deleted meanwhile is not judged.

use std::collections::HashSet;

use okt_model::{FactId, Posture, RepositoryId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// A fact near another one, which is given by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearFact {
    pub fact: i64,
    pub other: FactId,
    pub cosine: f32,
}

/// A pair that waits to be judged. The older fact is the first.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingPair {
    pub no: i64,
    pub facts: (i64, i64),
    pub texts: (String, String),
    pub cosine: f32,
    /// That of the first source of the older fact.
    pub language: Option<String>,
}

/// What was said of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedPair {
    pub facts: (i64, i64),
    pub cosine: f32,
    /// `None`: they have nothing to do with each other.
    pub posture: Option<Posture>,
    pub confidence: f32,
    pub judged_by: String,
}

/// Notes facts that speak of other concepts now.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.note", skip_all)]
pub async fn note(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO okt_repository.unchecked_facts (repository_id, fact_no)
         SELECT $1, n FROM unnest($2::bigint[]) AS n ORDER BY n",
        repository.uuid(),
        facts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether facts are to be compared, or pairs to be judged.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.is_any", skip_all)]
pub async fn is_any(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.unchecked_facts WHERE repository_id = $1)
               OR EXISTS (SELECT FROM okt_repository.fact_judgements WHERE repository_id = $1 AND judged_by IS NULL) AS "is!""#,
        repository.uuid(),
    );
    Ok(any.fetch_one(conn).await?)
}

/// Facts by their numbers, and the entries that spoke of them.
pub type Unchecked = (Vec<(i64, FactId)>, Vec<i64>);

/// Those of the facts of the oldest entries that stand by themselves and speak of a concept, each once; and the entries.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.list_unchecked", skip_all)]
pub async fn list_unchecked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    limit: i64,
) -> Result<Unchecked> {
    let rows = sqlx::query!(
        r#"SELECT u.no AS "entry!", f.no AS "no?", f.id AS "id?"
             FROM (SELECT no, fact_no FROM okt_repository.unchecked_facts WHERE repository_id = $1 ORDER BY no LIMIT $2) AS u
             LEFT JOIN (okt_repository.facts f
                        JOIN okt_repository.relation_facts r ON r.repository_id = $1 AND r.fact_no = f.no)
               ON f.repository_id = $1 AND f.no = u.fact_no AND f.status IN ('new', 'stable')
            ORDER BY u.no"#,
        repository.uuid(),
        limit,
    );
    let (mut facts, mut seen, mut entries) = (Vec::new(), HashSet::new(), Vec::new());
    for row in rows.fetch_all(conn).await? {
        entries.push(row.entry);
        if let (Some(no), Some(id)) = (row.no, row.id)
            && seen.insert(no)
        {
            facts.push((no, Uuid::into(id)));
        }
    }
    Ok((facts, entries))
}

/// Has pairs judged: each of these facts with those near it that share a concept with it, no more than `most` of the nearest. What one of
/// these judges has said before is not asked again. Returns how many wait for it.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.plan", skip_all)]
pub async fn plan(
    conn: &mut PgConnection,
    repository: RepositoryId,
    near: &[NearFact],
    most: i64,
    judges: &[String],
) -> Result<u64> {
    if near.is_empty() {
        return Ok(0);
    }
    let (mut facts, mut others, mut cosines) = (Vec::new(), Vec::new(), Vec::new());
    for one in near {
        facts.push(one.fact);
        others.push(one.other.uuid());
        cosines.push(one.cosine);
    }
    let done = sqlx::query_file!(
        "src/sql/plan_judgements.sql",
        repository.uuid(),
        &facts,
        &others,
        &cosines,
        most,
        judges,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// These entries were seen to.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.forget_unchecked", skip_all)]
pub async fn forget_unchecked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    entries: &[i64],
) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.unchecked_facts WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        entries,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Pairs that wait, from after a place on.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.list_waiting", skip_all)]
pub async fn list_waiting(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: i64,
    limit: i64,
) -> Result<Vec<WaitingPair>> {
    let rows = sqlx::query!(
        r#"SELECT j.no, j.fact_no, j.other_no, j.cosine, f.text, o.text AS other_text,
                  (SELECT s.language FROM okt_repository.fact_sources l
                     JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
                    WHERE l.repository_id = $1 AND l.fact_no = f.no ORDER BY l.source_no LIMIT 1) AS language
             FROM okt_repository.fact_judgements j
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = j.fact_no AND f.status IN ('new', 'stable')
             JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = j.other_no AND o.status IN ('new', 'stable')
            WHERE j.repository_id = $1 AND j.judged_by IS NULL AND j.no > $2
            ORDER BY j.no
            LIMIT $3"#,
        repository.uuid(),
        after,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| WaitingPair {
        no: row.no,
        facts: (row.fact_no, row.other_no),
        texts: (row.text, row.other_text),
        cosine: row.cosine,
        language: row.language,
    });
    Ok(rows.collect())
}

/// Those of these facts that stand by themselves, which they do until the end of the transaction. Taken in the order of their hashes, as
/// by everybody.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<HashSet<i64>> {
    let held = sqlx::query_scalar!(
        "SELECT f.no FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.no = ANY ($2) AND f.status IN ('new', 'stable')
          ORDER BY f.content_hash
            FOR SHARE OF f",
        repository.uuid(),
        facts,
    );
    Ok(held.fetch_all(conn).await?.into_iter().collect())
}

/// Keeps what was said of pairs that wait; returns those that still did.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.settle", skip_all)]
pub async fn settle(
    conn: &mut PgConnection,
    repository: RepositoryId,
    judged: &[JudgedPair],
) -> Result<HashSet<(i64, i64)>> {
    let (mut facts, mut others, mut postures) = (Vec::new(), Vec::new(), Vec::new());
    let (mut confidences, mut by) = (Vec::new(), Vec::new());
    for one in judged {
        facts.push(one.facts.0);
        others.push(one.facts.1);
        postures.push(one.posture.map(|posture| posture.as_str().to_owned()));
        confidences.push(one.confidence);
        by.push(one.judged_by.clone());
    }
    let kept = sqlx::query!(
        "UPDATE okt_repository.fact_judgements j
            SET posture = n.posture, confidence = n.confidence, judged_by = n.judge
           FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::real[], $6::text[])
                AS n (fact, other, posture, confidence, judge)
          WHERE j.repository_id = $1 AND j.fact_no = n.fact AND j.other_no = n.other AND j.judged_by IS NULL
         RETURNING j.fact_no, j.other_no",
        repository.uuid(),
        &facts,
        &others,
        &postures as &[Option<String>],
        &confidences,
        &by,
    );
    Ok(kept.fetch_all(conn).await?.into_iter().map(|row| (row.fact_no, row.other_no)).collect())
}

/// Forgets pairs that wait and of which a fact does not stand by itself any more; returns how many there were.
#[tracing::instrument(level = "debug", name = "db.fact_judgements.forget_gone", skip_all)]
pub async fn forget_gone(conn: &mut PgConnection, repository: RepositoryId) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_repository.fact_judgements j
          WHERE j.repository_id = $1 AND j.judged_by IS NULL
            AND 2 > (SELECT count(*) FROM okt_repository.facts f
                      WHERE f.repository_id = $1 AND f.no IN (j.fact_no, j.other_no) AND f.status IN ('new', 'stable'))",
        repository.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected())
}
