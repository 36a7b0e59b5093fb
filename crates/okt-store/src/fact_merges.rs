//! Rows of `okt_repository.fact_merges`: the journal of facts that were found to say the same.
//!
//! What a source says is never rewritten: the links of a duplicate stay its own, and are read through the fact that stands for
//! it (`facts.merged_into`). So taking a merge back is exact, whatever happened since. `merged_into` always names a fact that
//! nothing stands for; which merge it came by is in the journal.

use std::time::Duration;

use okt_model::{Error, FactId, FactKind, JobId, RepositoryId, Result, SourceId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::counters;
use crate::error::from_sqlx;

/// A fact as it is compared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparable {
    pub id: FactId,
    pub no: i64,
    pub text: String,
    pub kind: FactKind,
}

/// A fact that another stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub no: i64,
    pub text: String,
    pub merged_into: i64,
}

/// One fact into another, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merge {
    pub fact: i64,
    pub into: i64,
    pub cosine: f32,
}

/// A merge that was taken back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Undone {
    pub fact: i64,
    /// What it was a part of, unless no source makes that any more.
    pub from: Option<i64>,
    pub cosine: f32,
}

/// Facts that were not compared with others yet, from after a number on: those that a source makes, or all.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_new", skip_all)]
pub async fn list_new(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: Option<SourceId>,
    after: i64,
    limit: i64,
) -> Result<Vec<Comparable>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT f.id, f.no, f.text, f.kind FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.status = 'new' AND f.no > $3
            AND ($2::uuid IS NULL
                 OR f.no IN (SELECT l.fact_no FROM okt_repository.sources s
                               JOIN okt_repository.fact_sources l
                                 ON l.repository_id = s.repository_id AND l.source_no = s.no
                              WHERE s.repository_id = $1 AND s.id = $2))
          ORDER BY f.no
          LIMIT $4",
        repository.uuid(),
        source.map(SourceId::uuid),
        after,
        limit,
    );
    rows.fetch_all(conn).await.map_err(from_sqlx)?.into_iter().map(Comparable::try_from).collect()
}

/// Those of these that can be merged, or merged into.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_comparable", skip_all)]
pub async fn list_comparable(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<Vec<Comparable>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT f.id, f.no, f.text, f.kind FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
          WHERE f.status IN ('new', 'stable')",
        repository.uuid(),
        ids,
    );
    rows.fetch_all(conn).await.map_err(from_sqlx)?.into_iter().map(Comparable::try_from).collect()
}

/// All that these facts stand for beside themselves.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_members", skip_all)]
pub async fn list_members(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<Member>> {
    let rows = sqlx::query_as!(
        Member,
        r#"SELECT no, text, merged_into AS "merged_into!" FROM okt_repository.facts
            WHERE repository_id = $1 AND merged_into = ANY ($2)
            ORDER BY no"#,
        repository.uuid(),
        facts,
    );
    rows.fetch_all(conn).await.map_err(from_sqlx)
}

/// Holds facts and those that they stand for until the end of the transaction, in the order of everybody; the numbers of those
/// that can still be merged.
#[tracing::instrument(level = "debug", name = "db.fact_merges.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<Vec<i64>> {
    let rows = sqlx::query!(
        "SELECT f.no, f.status FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND (f.no = ANY ($2) OR f.merged_into = ANY ($2))
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await.map_err(from_sqlx)?;
    let open = rows.into_iter().filter(|row| row.status == "new" || row.status == "stable");
    Ok(open.map(|row| row.no).collect())
}

/// Takes facts into others that say the same. All are held, and none is on both sides.
#[tracing::instrument(level = "debug", name = "db.fact_merges.merge", skip_all)]
pub async fn merge(
    conn: &mut PgConnection,
    repository: RepositoryId,
    merges: &[Merge],
    job: JobId,
) -> Result<()> {
    if merges.is_empty() {
        return Ok(());
    }
    let facts: Vec<i64> = merges.iter().map(|merge| merge.fact).collect();
    let into: Vec<i64> = merges.iter().map(|merge| merge.into).collect();
    let cosines: Vec<f32> = merges.iter().map(|merge| merge.cosine).collect();
    let journal = sqlx::query!(
        "INSERT INTO okt_repository.fact_merges (repository_id, fact_no, into_no, cosine, job_id)
         SELECT $1, n.fact, n.into_no, n.cosine, $5
           FROM unnest($2::bigint[], $3::bigint[], $4::real[]) AS n (fact, into_no, cosine)",
        repository.uuid(),
        &facts,
        &into,
        &cosines,
        job.uuid(),
    );
    journal.execute(&mut *conn).await.map_err(from_sqlx)?;
    // What stood for others is stood for with them.
    let stood_for = sqlx::query!(
        "UPDATE okt_repository.facts f SET status = 'duplicate', merged_into = n.into_no, embedded_in = NULL
           FROM unnest($2::bigint[], $3::bigint[]) AS n (fact, into_no)
          WHERE f.repository_id = $1 AND (f.no = n.fact OR f.merged_into = n.fact)",
        repository.uuid(),
        &facts,
        &into,
    );
    stood_for.execute(&mut *conn).await.map_err(from_sqlx)?;
    recount(conn, repository, &[facts, into].concat()).await
}

/// Those that have waited for longer than this to be compared stand for themselves.
#[tracing::instrument(level = "debug", name = "db.fact_merges.settle_old", skip_all)]
pub async fn settle_old(conn: &mut PgConnection, repository: RepositoryId, age: Duration) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.facts f SET status = 'stable'
           FROM (SELECT no FROM okt_repository.facts
                  WHERE repository_id = $1 AND status = 'new'
                    AND created_at < clock_timestamp() - $2 * interval '1 second'
                  ORDER BY content_hash
                    FOR UPDATE) AS n
          WHERE f.repository_id = $1 AND f.no = n.no",
        repository.uuid(),
        age.as_secs_f64(),
    );
    Ok(done.execute(conn).await.map_err(from_sqlx)?.rows_affected())
}

/// These were compared and stand for themselves.
#[tracing::instrument(level = "debug", name = "db.fact_merges.settle", skip_all)]
pub async fn settle(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.facts f SET status = 'stable'
           FROM (SELECT no FROM okt_repository.facts
                  WHERE repository_id = $1 AND no = ANY ($2) AND status = 'new'
                  ORDER BY content_hash
                    FOR UPDATE) AS n
          WHERE f.repository_id = $1 AND f.no = n.no",
        repository.uuid(),
        facts,
    );
    Ok(done.execute(conn).await.map_err(from_sqlx)?.rows_affected())
}

/// Takes the merge of a fact back: it stands for itself again, with those that it stood for. `None` when it is no duplicate.
#[tracing::instrument(level = "debug", name = "db.fact_merges.undo", skip_all, fields(fact.id = %id))]
pub async fn undo(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: FactId,
    by: Option<UserId>,
) -> Result<Option<Undone>> {
    let held = sqlx::query!(
        "SELECT f.no FROM okt_repository.facts f
          WHERE f.repository_id = $1
            AND f.no IN (SELECT m.no FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.id = $2
                          UNION ALL
                         SELECT m.merged_into FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.id = $2)
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        id.uuid(),
    );
    held.fetch_all(&mut *conn).await.map_err(from_sqlx)?;
    let found = sqlx::query!(
        r#"SELECT f.no, f.merged_into AS "into!", m.cosine FROM okt_repository.facts f
             JOIN okt_repository.fact_merges m
               ON m.repository_id = f.repository_id AND m.fact_no = f.no AND m.undone_at IS NULL
            WHERE f.repository_id = $1 AND f.id = $2 AND f.merged_into IS NOT NULL"#,
        repository.uuid(),
        id.uuid(),
    );
    let Some(found) = found.fetch_optional(&mut *conn).await.map_err(from_sqlx)? else { return Ok(None) };
    sqlx::query_file!("src/sql/undo_merge.sql", repository.uuid(), found.no, by.map(UserId::uuid))
        .execute(&mut *conn)
        .await
        .map_err(from_sqlx)?;
    recount(conn, repository, &[found.no, found.into]).await?;
    let gone = remove_bare(conn, repository, &[found.into]).await?;
    if gone != 0 {
        counters::add(conn, repository, "facts", -gone).await?;
    }
    Ok(Some(Undone { fact: found.no, from: (gone == 0).then_some(found.into), cosine: found.cosine }))
}

/// The facts that a fact stands for, the first ones first.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    fact: i64,
    limit: i64,
) -> Result<Vec<FactId>> {
    let rows = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.facts WHERE repository_id = $1 AND merged_into = $2 ORDER BY no LIMIT $3",
        repository.uuid(),
        fact,
        limit,
    );
    Ok(rows.fetch_all(conn).await.map_err(from_sqlx)?.into_iter().map(FactId::from).collect())
}

/// Counts the sources of facts, each with those that it stands for.
pub(crate) async fn recount(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.facts r
            SET source_count = (SELECT count(DISTINCT l.source_no)
                                  FROM okt_repository.facts m
                                  JOIN okt_repository.fact_sources l
                                    ON l.repository_id = m.repository_id AND l.fact_no = m.no
                                 WHERE m.repository_id = $1 AND (m.no = r.no OR m.merged_into = r.no))
          WHERE r.repository_id = $1 AND r.no = ANY ($2)",
        repository.uuid(),
        facts,
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// Removes those of these that no source makes, neither themselves nor through others; returns how many. They are held.
pub(crate) async fn remove_bare(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<i64> {
    let gone = sqlx::query_scalar!(
        "DELETE FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.no = ANY ($2)
            AND NOT EXISTS (SELECT FROM okt_repository.fact_sources l WHERE l.repository_id = $1 AND l.fact_no = f.no)
            AND NOT EXISTS (SELECT FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.merged_into = f.no)
         RETURNING f.no",
        repository.uuid(),
        facts,
    );
    let gone = gone.fetch_all(&mut *conn).await.map_err(from_sqlx)?;
    if !gone.is_empty() {
        sqlx::query_file!("src/sql/forget_facts.sql", repository.uuid(), &gone)
            .execute(conn)
            .await
            .map_err(from_sqlx)?;
    }
    i64::try_from(gone.len()).map_err(Error::internal)
}

struct Row {
    id: Uuid,
    no: i64,
    text: String,
    kind: String,
}

impl TryFrom<Row> for Comparable {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        let kind = FactKind::ALL.iter().find(|kind| kind.as_str() == row.kind).copied();
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            text: row.text,
            kind: kind.ok_or_else(|| Error::internal("a fact is of a kind that nobody knows"))?,
        })
    }
}
