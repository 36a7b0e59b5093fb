//! Rows of `okt_repository.fact_merges`: the journal of facts that were found to say the same.
//!
//! What a source says is never rewritten: a duplicate keeps its own links, and they are read through its canonical fact
//! (`facts.merged_into`). So undoing a merge is exact, whatever happened since. `merged_into` always names a canonical fact,
//! never another duplicate; the steps that led there are in the journal.

use std::collections::HashMap;
use std::time::Duration;

use okt_model::{Error, FactId, FactKind, FactStatus, JobId, MergedBy, RepositoryId, SourceId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use crate::{concept_relations, counters, fact_groups};
use okt_pg::Result;

/// A fact as it is compared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparable {
    pub id: FactId,
    pub no: i64,
    pub text: String,
    pub kind: FactKind,
    pub status: FactStatus,
    /// Of the first source that makes it and has one.
    pub language: Option<String>,
    /// The fact that represents its group of similar facts.
    pub similar_to: Option<i64>,
}

/// A fact that belongs to another: a duplicate to its canonical fact, or a member of a similar group to its representative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub no: i64,
    pub text: String,
    /// The number of the other.
    pub of: i64,
}

/// A merge of the journal that was not undone, as the two facts were then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledMerge {
    pub fact: Comparable,
    pub into: Comparable,
    /// `None` for those of releases that did not record it.
    pub by: Option<MergedBy>,
}

/// Merges of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    pub merges: Vec<JournaledMerge>,
    /// How many more name a fact that is not there.
    pub incomplete: u64,
}

/// One fact into another, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merge {
    pub fact: i64,
    pub into: i64,
    pub cosine: f32,
    pub by: MergedBy,
}

/// A merge that was undone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Undone {
    pub fact: i64,
    /// The canonical fact that it was merged into, unless no source makes that any more.
    pub from: Option<i64>,
    pub cosine: f32,
}

/// Selects facts as [`Comparable`]; of a repository, `$1`, those that meet a condition. A macro, because a recorded query is a
/// literal.
macro_rules! comparable {
    ($condition:tt, $($value:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            "SELECT f.id, f.no, f.text, f.kind, f.status, f.similar_to,
                    (SELECT s.language FROM okt_repository.fact_sources l
                        JOIN okt_repository.sources s ON s.repository_id = l.repository_id AND s.no = l.source_no
                       WHERE l.repository_id = $1 AND l.fact_no = f.no AND s.language IS NOT NULL
                       ORDER BY l.source_no LIMIT 1) AS language
               FROM okt_repository.facts f
              WHERE f.repository_id = $1 AND "
                + $condition,
            $($value),+
        )
    };
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
    let rows = comparable!(
        "f.status = 'new' AND f.no > $3
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
    rows.fetch_all(conn).await?.into_iter().map(Comparable::try_from).collect()
}

/// Those of these that can be merged, or merged into, and the representatives of their groups.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_comparable", skip_all)]
pub async fn list_comparable(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<Vec<Comparable>> {
    let rows = comparable!(
        "f.status IN ('new', 'stable')
            AND f.no IN (SELECT unnest(ARRAY[o.no, o.similar_to]) FROM unnest($2::uuid[]) AS n (id)
                           JOIN okt_repository.facts o ON o.repository_id = $1 AND o.id = n.id)",
        repository.uuid(),
        ids,
    );
    rows.fetch_all(conn).await?.into_iter().map(Comparable::try_from).collect()
}

/// The duplicates of these facts, and the members of the similar groups that they represent.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_members", skip_all)]
pub async fn list_members(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<(Vec<Member>, Vec<Member>)> {
    let rows = sqlx::query!(
        "SELECT no, text, merged_into, similar_to FROM okt_repository.facts
          WHERE repository_id = $1 AND (merged_into = ANY ($2) OR similar_to = ANY ($2))
          ORDER BY no",
        repository.uuid(),
        facts,
    );
    let (mut duplicates, mut similar) = (Vec::new(), Vec::new());
    for row in rows.fetch_all(conn).await? {
        match (row.merged_into, row.similar_to) {
            (Some(of), _) => duplicates.push(Member { no: row.no, text: row.text, of }),
            (None, Some(of)) => similar.push(Member { no: row.no, text: row.text, of }),
            (None, None) => {}
        }
    }
    Ok((duplicates, similar))
}

/// A fact whose row is locked, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub no: i64,
    /// Whether it can be merged, or merged into.
    pub open: bool,
    pub merged_into: Option<i64>,
    pub similar_to: Option<i64>,
}

/// Locks facts, their duplicates and the members of the similar groups that they represent until the end of the transaction,
/// and returns their state.
///
/// Rows are locked in the order of their hashes, as in every other transaction, so that two can't wait for each other. The
/// state is read by a second statement: while the first one waited for a lock, another transaction may have added duplicates or
/// members, and a statement does not see what was committed after it began. No more can be added afterwards, because adding
/// one takes the lock of the canonical fact or of the representative.
#[tracing::instrument(level = "debug", name = "db.fact_merges.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<Vec<Held>> {
    sqlx::query!(
        "SELECT FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND (f.no = ANY ($2) OR f.merged_into = ANY ($2) OR f.similar_to = ANY ($2))
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        facts,
    )
    .execute(&mut *conn)
    .await?;
    let rows = sqlx::query!(
        "SELECT f.no, f.status, f.merged_into, f.similar_to FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND (f.no = ANY ($2) OR f.merged_into = ANY ($2) OR f.similar_to = ANY ($2))",
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    let held = rows.into_iter().map(|row| Held {
        no: row.no,
        open: row.status == "new" || row.status == "stable",
        merged_into: row.merged_into,
        similar_to: row.similar_to,
    });
    Ok(held.collect())
}

/// Merges facts into others that say the same. All are locked, and none is on both sides.
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
    let by: Vec<String> = merges.iter().map(|merge| merge.by.as_str().to_owned()).collect();
    let journal = sqlx::query!(
        "INSERT INTO okt_repository.fact_merges (repository_id, fact_no, into_no, cosine, job_id, merged_by)
         SELECT $1, n.fact, n.into_no, n.cosine, $5, n.merged_by
           FROM unnest($2::bigint[], $3::bigint[], $4::real[], $6::text[]) AS n (fact, into_no, cosine, merged_by)",
        repository.uuid(),
        &facts,
        &into,
        &cosines,
        job.uuid(),
        &by,
    );
    journal.execute(&mut *conn).await?;
    // The duplicates of a merged fact get its canonical fact.
    let duplicates = sqlx::query!(
        "UPDATE okt_repository.facts f SET status = 'duplicate', merged_into = n.into_no, embedded_in = NULL
           FROM unnest($2::bigint[], $3::bigint[]) AS n (fact, into_no)
          WHERE f.repository_id = $1 AND (f.no = n.fact OR f.merged_into = n.fact)",
        repository.uuid(),
        &facts,
        &into,
    );
    duplicates.execute(&mut *conn).await?;
    fact_groups::leave(conn, repository, &facts).await?;
    concept_relations::mark_if_linked(conn, repository, &facts).await?;
    recount(conn, repository, &[facts, into].concat()).await
}

/// Makes facts `stable` that have waited for longer than this to be compared; returns them.
#[tracing::instrument(level = "debug", name = "db.fact_merges.settle_old", skip_all)]
pub async fn settle_old(
    conn: &mut PgConnection,
    repository: RepositoryId,
    age: Duration,
) -> Result<Vec<i64>> {
    let done = sqlx::query_scalar!(
        "UPDATE okt_repository.facts f SET status = 'stable'
           FROM (SELECT no FROM okt_repository.facts
                  WHERE repository_id = $1 AND status = 'new'
                    AND created_at < clock_timestamp() - $2 * interval '1 second'
                  ORDER BY content_hash
                    FOR UPDATE) AS n
          WHERE f.repository_id = $1 AND f.no = n.no
         RETURNING f.no",
        repository.uuid(),
        age.as_secs_f64(),
    );
    Ok(done.fetch_all(conn).await?)
}

/// Makes facts `stable` that were compared and not merged.
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
    Ok(done.execute(conn).await?.rows_affected())
}

/// Undoes the merge of a fact: it is canonical again, for the duplicates that it had before. `None` if it is not a duplicate.
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
    held.fetch_all(&mut *conn).await?;
    let found = sqlx::query!(
        r#"SELECT f.no, f.merged_into AS "into!", m.cosine FROM okt_repository.facts f
             JOIN okt_repository.fact_merges m
               ON m.repository_id = f.repository_id AND m.fact_no = f.no AND m.undone_at IS NULL
            WHERE f.repository_id = $1 AND f.id = $2 AND f.merged_into IS NOT NULL"#,
        repository.uuid(),
        id.uuid(),
    );
    let Some(found) = found.fetch_optional(&mut *conn).await? else { return Ok(None) };
    sqlx::query_file!("src/sql/undo_merge.sql", repository.uuid(), found.no, by.map(UserId::uuid))
        .execute(&mut *conn)
        .await?;
    concept_relations::mark(conn, repository, &[found.no, found.into]).await?;
    recount(conn, repository, &[found.no, found.into]).await?;
    let gone = remove_bare(conn, repository, &[found.into]).await?;
    if gone != 0 {
        counters::add(conn, repository, "facts", -gone).await?;
    }
    Ok(Some(Undone { fact: found.no, from: (gone == 0).then_some(found.into), cosine: found.cosine }))
}

/// Makes a fact `new`, so that it is compared with others again.
#[tracing::instrument(level = "debug", name = "db.fact_merges.renew", skip_all)]
pub async fn renew(conn: &mut PgConnection, repository: RepositoryId, fact: i64) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.facts SET status = 'new' WHERE repository_id = $1 AND no = $2 AND status = 'stable'",
        repository.uuid(),
        fact,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Facts that have duplicates, by their numbers, from after one on.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_with_duplicates", skip_all)]
pub async fn list_with_duplicates(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        r#"SELECT DISTINCT merged_into AS "no!" FROM okt_repository.facts
            WHERE repository_id = $1 AND merged_into > $2
            ORDER BY 1
            LIMIT $3"#,
        repository.uuid(),
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The merges into these canonical facts that are in force, in the order in which they were made.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_journal", skip_all)]
pub async fn list_journal(
    conn: &mut PgConnection,
    repository: RepositoryId,
    canonical: &[i64],
) -> Result<Journal> {
    let facts = comparable!("(f.no = ANY ($2) OR f.merged_into = ANY ($2))", repository.uuid(), canonical,);
    let facts = facts.fetch_all(&mut *conn).await?.into_iter();
    let facts: HashMap<i64, Comparable> =
        facts.map(|row| Ok((row.no, Comparable::try_from(row)?))).collect::<Result<_>>()?;
    let rows = sqlx::query!(
        "SELECT m.fact_no, m.into_no, m.merged_by FROM okt_repository.facts f
           JOIN okt_repository.fact_merges m
             ON m.repository_id = f.repository_id AND m.fact_no = f.no AND m.undone_at IS NULL
          WHERE f.repository_id = $1 AND f.merged_into = ANY ($2)
          ORDER BY m.no",
        repository.uuid(),
        canonical,
    );
    let mut journal = Journal::default();
    for row in rows.fetch_all(conn).await? {
        let (Some(fact), Some(into)) = (facts.get(&row.fact_no), facts.get(&row.into_no)) else {
            journal.incomplete += 1;
            continue;
        };
        let by = row.merged_by.map(|by| word("fact_merges.merged_by", &by)).transpose()?;
        journal.merges.push(JournaledMerge { fact: fact.clone(), into: into.clone(), by });
    }
    Ok(journal)
}

/// The duplicates of a canonical fact, with their numbers, the oldest first.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    fact: i64,
    limit: i64,
) -> Result<Vec<(i64, FactId)>> {
    let rows = sqlx::query!(
        "SELECT no, id FROM okt_repository.facts WHERE repository_id = $1 AND merged_into = $2 ORDER BY no LIMIT $3",
        repository.uuid(),
        fact,
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.no, row.id.into())).collect())
}

/// The canonical facts of these duplicates, by the numbers of the duplicates.
#[tracing::instrument(level = "debug", name = "db.fact_merges.list_canonical", skip_all)]
pub async fn list_canonical(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashMap<i64, FactId>> {
    let rows = sqlx::query!(
        "SELECT f.no, r.id FROM okt_repository.facts f
           JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = f.merged_into
          WHERE f.repository_id = $1 AND f.no = ANY ($2)",
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.no, row.id.into())).collect())
}

/// Counts the sources of facts, each with its duplicates.
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
    .await?;
    Ok(())
}

/// Removes those of these that no source makes, neither themselves nor through duplicates; returns how many. They are locked.
/// The lists of their words are left to the job that reads the source that has made them last.
pub(crate) async fn remove_bare(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<i64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.no = ANY ($2)
            AND NOT EXISTS (SELECT FROM okt_repository.fact_sources l WHERE l.repository_id = $1 AND l.fact_no = f.no)
            AND NOT EXISTS (SELECT FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.merged_into = f.no)
         RETURNING f.no, f.merged_into",
        repository.uuid(),
        facts,
    );
    let gone = gone.fetch_all(&mut *conn).await?;
    let canonical: Vec<i64> = gone.iter().filter_map(|row| row.merged_into).collect();
    let gone: Vec<i64> = gone.into_iter().map(|row| row.no).collect();
    if !gone.is_empty() {
        // What a duplicate spoke of was counted for its canonical fact, which can't be told from it any more.
        concept_relations::mark(conn, repository, &canonical).await?;
        concept_relations::mark_if_linked(conn, repository, &gone).await?;
        sqlx::query_file!("src/sql/forget_facts.sql", repository.uuid(), &gone).execute(&mut *conn).await?;
        fact_groups::leave(conn, repository, &gone).await?;
    }
    Ok(i64::try_from(gone.len()).map_err(Error::internal)?)
}

struct Row {
    id: Uuid,
    no: i64,
    text: String,
    kind: String,
    status: String,
    similar_to: Option<i64>,
    language: Option<String>,
}

impl TryFrom<Row> for Comparable {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            text: row.text,
            kind: word("facts.kind", &row.kind)?,
            status: word("facts.status", &row.status)?,
            language: row.language,
            similar_to: row.similar_to,
        })
    }
}
