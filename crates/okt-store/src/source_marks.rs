//! Rows of `okt_repository.source_marks`: sources that were retracted or superseded, and what rests on them.
//!
//! What follows from a mark is computed by whoever reads. A row without a kind is a mark that a person has removed; lists and
//! providers leave it, and every other row of a person, as it is.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use okt_model::{
    Fact, FactId, MarkKind, MarkOrigin, MarkedSources, RepositoryId, SourceId, SourceMark, UserId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::answers;
use crate::words::word;
use okt_pg::Result;

/// What a person says of a source.
#[derive(Clone, Copy, Debug)]
pub struct NewMark<'a> {
    pub kind: MarkKind,
    pub by: Option<SourceId>,
    pub reason: Option<&'a str>,
    pub person: UserId,
}

/// A source that has one of the DOIs that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoiMatch {
    pub doi: String,
    pub id: SourceId,
    pub no: i64,
    pub title: Option<String>,
    /// How it is marked now.
    pub kind: Option<MarkKind>,
    /// A person has set that, or removed another mark.
    pub decided: bool,
}

/// Sets the mark of a source; false if it was like that already, or if one of the two sources is not there. Whoever adds or
/// deletes sources must not do so meanwhile: the caller holds their counter.
#[tracing::instrument(level = "debug", name = "db.source_marks.set", skip_all, fields(source.id = %source))]
pub async fn set(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    mark: NewMark<'_>,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_repository.source_marks AS m (repository_id, source_no, kind, by_no, reason, origin, person)
         SELECT $1, s.no, $3, b.no, $5, 'person', $6
           FROM okt_repository.sources s
           LEFT JOIN okt_repository.sources b ON b.repository_id = $1 AND b.id = $4
          WHERE s.repository_id = $1 AND s.id = $2 AND (b.no IS NOT NULL OR $4::uuid IS NULL)
         ON CONFLICT (repository_id, source_no) DO UPDATE
            SET kind = excluded.kind, by_no = excluded.by_no, reason = excluded.reason, origin = excluded.origin,
                person = excluded.person, marked_at = clock_timestamp()
          WHERE (m.kind, m.by_no, m.reason, m.origin)
                IS DISTINCT FROM (excluded.kind, excluded.by_no, excluded.reason, excluded.origin)",
        repository.uuid(),
        source.uuid(),
        mark.kind.as_str(),
        mark.by.map(SourceId::uuid),
        mark.reason,
        mark.person.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    let changed = done.rows_affected() == 1;
    if changed {
        answers::mark_quoting(conn, repository, &[source.uuid()]).await?;
    }
    Ok(changed)
}

/// Removes the mark of a source for good; false if it has none.
#[tracing::instrument(level = "debug", name = "db.source_marks.remove", skip_all, fields(source.id = %source))]
pub async fn remove(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    person: UserId,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.source_marks m
            SET kind = NULL, by_no = NULL, reason = NULL, origin = 'person', person = $3, marked_at = clock_timestamp()
           FROM okt_repository.sources s
          WHERE s.repository_id = $1 AND s.id = $2
            AND m.repository_id = $1 AND m.source_no = s.no AND m.kind IS NOT NULL",
        repository.uuid(),
        source.uuid(),
        person.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    let changed = done.rows_affected() == 1;
    if changed {
        answers::mark_quoting(conn, repository, &[source.uuid()]).await?;
    }
    Ok(changed)
}

/// Whether a source is superseded by another one, itself or through those between them.
#[tracing::instrument(level = "debug", name = "db.source_marks.is_superseded_by", skip_all, fields(source.id = %source))]
pub async fn is_superseded_by(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    by: SourceId,
) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"WITH RECURSIVE later AS (
               SELECT m.by_no
                 FROM okt_repository.sources s
                 JOIN okt_repository.source_marks m ON m.repository_id = $1 AND m.source_no = s.no
                WHERE s.repository_id = $1 AND s.id = $2
                UNION
               SELECT n.by_no FROM later l
                CROSS JOIN LATERAL (SELECT o.by_no FROM okt_repository.source_marks o
                                     WHERE o.repository_id = $1 AND o.source_no = l.by_no OFFSET 0) AS n)
           SELECT EXISTS (SELECT FROM later l
                            JOIN okt_repository.sources b ON b.repository_id = $1 AND b.no = l.by_no
                           WHERE b.id = $3) AS "found!""#,
        repository.uuid(),
        source.uuid(),
        by.uuid(),
    );
    Ok(found.fetch_one(conn).await?)
}

/// The sources that have one of these DOIs.
#[tracing::instrument(level = "debug", name = "db.source_marks.match_dois", skip_all)]
pub async fn match_dois(
    conn: &mut PgConnection,
    repository: RepositoryId,
    dois: &[String],
) -> Result<Vec<DoiMatch>> {
    let rows = sqlx::query!(
        r#"SELECT n.doi AS "doi!", s.id AS "id!", s.no AS "no!", s.title, m.kind AS "kind?", m.origin AS "origin?"
             FROM unnest($2::text[]) AS n (doi)
            CROSS JOIN LATERAL (SELECT o.id, o.no, o.title FROM okt_repository.sources o
                                 -- As the index has it.
                                 WHERE o.repository_id = $1 AND o.doi = n.doi AND length(o.doi) <= 500 OFFSET 0) AS s
             LEFT JOIN okt_repository.source_marks m ON m.repository_id = $1 AND m.source_no = s.no
            ORDER BY s.no"#,
        repository.uuid(),
        dois,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(DoiMatch {
            doi: row.doi,
            id: row.id.into(),
            no: row.no,
            title: row.title,
            kind: row.kind.as_deref().map(|kind| word("source_marks.kind", kind)).transpose()?,
            decided: row.origin.as_deref() == Some(MarkOrigin::Person.as_str()),
        })
    });
    rows.collect()
}

/// Marks sources as retracted, which are given by their numbers with the reason of each; those that were marked. What a person
/// has said, and what is marked so already, stays.
#[tracing::instrument(level = "debug", name = "db.source_marks.insert_retracted", skip_all)]
pub async fn insert_retracted(
    conn: &mut PgConnection,
    repository: RepositoryId,
    found: &[(i64, Option<String>)],
    origin: MarkOrigin,
    person: Option<UserId>,
) -> Result<Vec<i64>> {
    let (numbers, reasons): (Vec<i64>, Vec<Option<String>>) = found.iter().cloned().unzip();
    let rows = sqlx::query_scalar!(
        "WITH there AS (
             SELECT s.no FROM okt_repository.sources s
              WHERE s.repository_id = $1 AND s.no = ANY ($2)
              ORDER BY s.no
                FOR KEY SHARE)
         INSERT INTO okt_repository.source_marks AS m (repository_id, source_no, kind, reason, origin, person)
         SELECT $1, n.no, 'retracted', n.reason, $4, $5
           FROM unnest($2::bigint[], $3::text[]) AS n (no, reason)
           JOIN there ON there.no = n.no
          ORDER BY n.no
         ON CONFLICT (repository_id, source_no) DO UPDATE
            SET kind = excluded.kind, by_no = NULL, reason = excluded.reason, origin = excluded.origin,
                person = excluded.person, marked_at = clock_timestamp()
          WHERE m.origin <> 'person' AND m.kind <> 'retracted'
         RETURNING source_no",
        repository.uuid(),
        &numbers,
        &reasons as &[Option<String>],
        origin.as_str(),
        person.map(UserId::uuid),
    );
    let marked = rows.fetch_all(&mut *conn).await?;
    if marked.is_empty() {
        return Ok(marked);
    }
    let ids = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.sources WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        &marked,
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    answers::mark_quoting(conn, repository, &ids).await?;
    Ok(marked)
}

/// Marks the sources that have one of these DOIs as retracted, because a provider lists them so; returns how many. What a person has said,
/// and what is marked so already, stays.
#[tracing::instrument(level = "debug", name = "db.source_marks.mark_listed", skip_all)]
pub async fn mark_listed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    dois: &[String],
) -> Result<usize> {
    let found = match_dois(conn, repository, dois).await?;
    let open = found.iter().filter(|one| !one.decided && one.kind != Some(MarkKind::Retracted));
    let numbers: BTreeSet<i64> = open.map(|one| one.no).collect();
    if numbers.is_empty() {
        return Ok(0);
    }
    let rows: Vec<(i64, Option<String>)> = numbers.into_iter().map(|no| (no, None)).collect();
    Ok(insert_retracted(conn, repository, &rows, MarkOrigin::Provider, None).await?.len())
}

/// The marks of these sources.
#[tracing::instrument(level = "debug", name = "db.source_marks.get", skip_all)]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[SourceId],
) -> Result<HashMap<SourceId, SourceMark>> {
    let ids: Vec<Uuid> = sources.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT s.id, m.kind AS "kind!", b.id AS "by?", m.reason, m.origin, m.person, m.marked_at
             FROM okt_repository.sources s
             JOIN okt_repository.source_marks m ON m.repository_id = $1 AND m.source_no = s.no
             LEFT JOIN okt_repository.sources b ON b.repository_id = $1 AND b.no = m.by_no
            WHERE s.repository_id = $1 AND s.id = ANY ($2) AND m.kind IS NOT NULL"#,
        repository.uuid(),
        &ids,
    );
    rows.fetch_all(conn).await?.into_iter().map(Row::mark).collect()
}

/// Those of these sources, by their numbers, that were retracted.
#[tracing::instrument(level = "debug", name = "db.source_marks.list_retracted_sources", skip_all)]
pub async fn list_retracted_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[i64],
) -> Result<HashSet<i64>> {
    let rows = sqlx::query_scalar!(
        "SELECT source_no FROM okt_repository.source_marks
          WHERE repository_id = $1 AND source_no = ANY ($2) AND kind = 'retracted'",
        repository.uuid(),
        sources,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().collect())
}

/// Those of these facts, by their numbers, that rest on retracted sources alone.
#[tracing::instrument(level = "debug", name = "db.source_marks.list_retracted_facts", skip_all)]
pub async fn list_retracted_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashSet<i64>> {
    let marked = list_marked_facts(conn, repository, facts).await?.into_iter();
    Ok(marked.filter(|(_, kind)| *kind == MarkKind::Retracted).map(|(fact, _)| fact).collect())
}

/// How those of these facts, by their numbers, are marked all of whose sources are marked alike.
#[tracing::instrument(level = "debug", name = "db.source_marks.list_marked_facts", skip_all)]
pub async fn list_marked_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashMap<i64, MarkKind>> {
    if facts.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query_file!("src/sql/list_marked_facts.sql", repository.uuid(), facts);
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((row.no, word("source_marks.kind", &row.kind)?))).collect()
}

/// As [`list_retracted_facts`], by their ids.
#[tracing::instrument(level = "debug", name = "db.source_marks.list_retracted", skip_all)]
pub async fn list_retracted(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[FactId],
) -> Result<HashSet<FactId>> {
    if facts.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<Uuid> = facts.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        "SELECT f.no, f.id FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.id = ANY ($2)
            AND (SELECT k.source_no FROM okt_repository.source_marks k
                  WHERE k.repository_id = $1 AND k.kind IS NOT NULL ORDER BY k.source_no LIMIT 1) IS NOT NULL",
        repository.uuid(),
        &ids,
    );
    let named: HashMap<i64, FactId> =
        rows.fetch_all(&mut *conn).await?.into_iter().map(|row| (row.no, row.id.into())).collect();
    let numbers: Vec<i64> = named.keys().copied().collect();
    let retracted = list_retracted_facts(conn, repository, &numbers).await?;
    Ok(retracted.iter().filter_map(|no| named.get(no).copied()).collect())
}

/// Says of facts how many of their sources are marked.
#[tracing::instrument(level = "debug", name = "db.source_marks.describe", skip_all)]
pub async fn describe(conn: &mut PgConnection, repository: RepositoryId, facts: &mut [Fact]) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> = facts.iter().map(|fact| fact.no).collect();
    let rows = sqlx::query_file!("src/sql/count_marked_sources.sql", repository.uuid(), &numbers);
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let (sources, retracted, superseded) = (row.sources, row.retracted, row.superseded);
        (row.no, MarkedSources { sources, retracted, superseded })
    });
    let marked: HashMap<i64, MarkedSources> = rows.collect();
    for fact in facts {
        fact.marked = marked.get(&fact.no).copied().unwrap_or_default();
    }
    Ok(())
}

/// A source is about to be deleted: its mark goes, and what it supersedes no longer names it.
pub(crate) async fn forget_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
) -> Result<()> {
    sqlx::query!(
        "WITH own AS (DELETE FROM okt_repository.source_marks WHERE repository_id = $1 AND source_no = $2)
         UPDATE okt_repository.source_marks SET by_no = NULL WHERE repository_id = $1 AND by_no = $2",
        repository.uuid(),
        source,
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Row {
    id: Uuid,
    kind: String,
    by: Option<Uuid>,
    reason: Option<String>,
    origin: String,
    person: Option<Uuid>,
    marked_at: DateTime<Utc>,
}

impl Row {
    fn mark(self) -> Result<(SourceId, SourceMark)> {
        let mark = SourceMark {
            kind: word("source_marks.kind", &self.kind)?,
            by: self.by.map(Into::into),
            reason: self.reason,
            origin: word("source_marks.origin", &self.origin)?,
            person: self.person.map(Into::into),
            marked_at: self.marked_at,
        };
        Ok((self.id.into(), mark))
    }
}
