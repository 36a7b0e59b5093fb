//! Rows of `okt_repository.concept_summaries` and `summary_facts`: slices of the facts of a concept, each with a text.
//!
//! Which facts a slice covers is written before anybody is asked for its text, so a job that begins anew asks the same. A text
//! is stored only for the facts that it was made of: whoever changes these raises the slice's revision.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use okt_model::{ConceptId, ContentHash, Error, FactId, RepositoryId, SubjectKind, SummaryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::facts::hash;
use okt_pg::Result;

/// A slice without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceState {
    pub number: i32,
    pub is_open: bool,
    /// As many facts it had when they were last looked at.
    pub fact_count: i32,
}

/// What a concept is summed up by, and what it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// In the order of their numbers.
    pub slices: Vec<SliceState>,
    /// Facts, each with its slice.
    pub covered: BTreeMap<i64, i32>,
    /// The facts that the concept has by now.
    pub facts: BTreeSet<i64>,
}

/// How slices have to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceChanges {
    /// Facts that are not the concept's any more.
    pub removed: Vec<i64>,
    /// New ones, each with its slice.
    pub added: Vec<(i64, i32)>,
    /// Slices with other facts than before, new ones among them.
    pub changed: Vec<SliceState>,
    /// Slices without a fact.
    pub emptied: Vec<i32>,
    /// Slices that take in no more facts, and are the same otherwise.
    pub closed: Vec<i32>,
}

/// A slice that waits for its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenSlice {
    pub number: i32,
    pub revision: i64,
    /// In the order of their numbers.
    pub facts: Vec<SliceFact>,
}

/// A fact as it is shown to whoever writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceFact {
    pub no: i64,
    pub id: FactId,
    pub text: String,
    pub source_count: i32,
}

/// A slice some of whose facts were deleted, with those that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornSlice {
    pub number: i32,
    pub content: String,
    pub facts: Vec<FactId>,
}

/// The text of a slice.
#[derive(Clone, Copy, Debug)]
pub struct SliceText<'a> {
    pub number: i32,
    pub revision: i64,
    pub content: &'a str,
    pub dropped: i32,
    pub model: &'a str,
    pub promptset_hash: ContentHash,
    pub question: ContentHash,
}

/// A slice as it is shown.
#[derive(Clone, Debug)]
pub struct Slice {
    pub id: SummaryId,
    pub number: i32,
    pub is_open: bool,
    pub content: String,
    /// Those that are there by now and that nobody has rejected.
    pub facts: Vec<FactId>,
    /// Whether the text is about these facts and no others.
    pub is_current: bool,
    pub dropped: i32,
    pub model: Option<String>,
    pub promptset_hash: Option<ContentHash>,
    pub written_at: Option<DateTime<Utc>>,
    pub failure: Option<String>,
}

/// A written slice of one of the concepts of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSlice {
    pub concept_no: i64,
    pub concept: ConceptId,
    pub name: String,
    pub context: String,
    pub slice: SummaryId,
    pub number: i32,
    pub content: String,
    pub facts: Vec<SliceFact>,
}

/// Reads how a concept is covered. One that was merged into another has no facts of its own.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.coverage", skip_all)]
pub async fn coverage(conn: &mut PgConnection, repository: RepositoryId, concept: i64) -> Result<Coverage> {
    let slices = sqlx::query_as!(
        SliceState,
        "SELECT slice_number AS number, is_open, fact_count FROM okt_repository.concept_summaries
          WHERE repository_id = $1 AND concept_no = $2 ORDER BY slice_number",
        repository.uuid(),
        concept,
    );
    let slices = slices.fetch_all(&mut *conn).await?;
    let covered = sqlx::query!(
        "SELECT fact_no, slice_number FROM okt_repository.summary_facts WHERE repository_id = $1 AND concept_no = $2",
        repository.uuid(),
        concept,
    );
    let covered = covered.fetch_all(&mut *conn).await?;
    let covered = covered.into_iter().map(|row| (row.fact_no, row.slice_number)).collect();
    let facts = sqlx::query_scalar!(
        r#"WITH RECURSIVE members AS (
               SELECT c.no FROM okt_repository.concepts c
                WHERE c.repository_id = $1 AND c.no = $2 AND c.merged_into IS NULL
                UNION
               SELECT p.no FROM members m
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p)
           SELECT DISTINCT c.no AS "no!"
             FROM members m
             JOIN okt_repository.fact_concepts l ON l.repository_id = $1 AND l.concept_no = m.no
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
             JOIN okt_repository.facts c
               ON c.repository_id = $1 AND c.status IN ('new', 'stable')
              AND c.no = CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END"#,
        repository.uuid(),
        concept,
    );
    let facts = facts.fetch_all(conn).await?.into_iter().collect();
    Ok(Coverage { slices, covered, facts })
}

/// Holds facts that are about to come into a slice or to leave one, in the order in which everybody does; returns those that are
/// still there.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.hold_facts", skip_all)]
pub async fn hold_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<BTreeSet<i64>> {
    let there = sqlx::query_scalar!(
        "SELECT f.no FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = ANY ($2)
          ORDER BY f.content_hash
            FOR KEY SHARE OF f",
        repository.uuid(),
        facts,
    );
    Ok(there.fetch_all(conn).await?.into_iter().collect())
}

/// The slices of a concept that cover fewer facts than when they were last looked at: some were deleted since.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.list_torn", skip_all)]
pub async fn list_torn(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
) -> Result<Vec<TornSlice>> {
    let rows = sqlx::query!(
        r#"SELECT s.slice_number, s.content, n.facts AS "facts!: Vec<Uuid>"
             FROM okt_repository.concept_summaries s
            CROSS JOIN LATERAL (SELECT ARRAY(SELECT f.id FROM okt_repository.summary_facts l
                                               JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                                              WHERE l.repository_id = $1 AND l.concept_no = $2
                                                AND l.slice_number = s.slice_number) AS facts) AS n
            WHERE s.repository_id = $1 AND s.concept_no = $2 AND s.fact_count > cardinality(n.facts)
            ORDER BY s.slice_number"#,
        repository.uuid(),
        concept,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| TornSlice {
            number: row.slice_number,
            content: row.content,
            facts: row.facts.into_iter().map(FactId::from).collect(),
        })
        .collect())
}

/// Stores what is left of the text of a slice.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.mend", skip_all)]
pub async fn mend(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    (number, content): (i32, &str),
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concept_summaries SET content = $4
          WHERE repository_id = $1 AND concept_no = $2 AND slice_number = $3",
        repository.uuid(),
        concept,
        number,
        content,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Forgets all that models have answered about a concept and those that were merged into it; returns how much. A fact that is
/// deleted may be told in any of it, also in answers that no text was made of.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.forget_answers", skip_all)]
pub async fn forget_answers(conn: &mut PgConnection, repository: RepositoryId, concept: i64) -> Result<u64> {
    let gone = sqlx::query!(
        "WITH RECURSIVE members AS (
             SELECT c.no, c.id FROM okt_repository.concepts c WHERE c.repository_id = $1 AND c.no = $2
              UNION
             SELECT p.no, p.id FROM members m
              CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                   WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p)
         DELETE FROM okt_repository.model_answers a USING members m
          WHERE a.repository_id = $1 AND a.subject_id = m.id AND a.subject_kind = $3",
        repository.uuid(),
        concept,
        SubjectKind::Concept.as_str(),
    );
    Ok(gone.execute(conn).await?.rows_affected())
}

/// Changes which facts the slices of a concept cover. The caller holds the concept and the facts.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.change", skip_all)]
pub async fn change(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    changes: &SliceChanges,
) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.summary_facts
          WHERE repository_id = $1 AND concept_no = $2 AND fact_no = ANY ($3)",
        repository.uuid(),
        concept,
        &changes.removed,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "DELETE FROM okt_repository.concept_summaries
          WHERE repository_id = $1 AND concept_no = $2 AND slice_number = ANY ($3)",
        repository.uuid(),
        concept,
        &changes.emptied,
    )
    .execute(&mut *conn)
    .await?;
    let (facts, slices): (Vec<i64>, Vec<i32>) = changes.added.iter().copied().unzip();
    sqlx::query!(
        "INSERT INTO okt_repository.summary_facts (repository_id, concept_no, fact_no, slice_number)
         SELECT $1, $2, n.fact, n.slice FROM unnest($3::bigint[], $4::integer[]) AS n (fact, slice)",
        repository.uuid(),
        concept,
        &facts,
        &slices,
    )
    .execute(&mut *conn)
    .await?;
    let (mut numbers, mut ids, mut opens, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for slice in &changes.changed {
        numbers.push(slice.number);
        ids.push(SummaryId::mint().uuid());
        opens.push(slice.is_open);
        counts.push(slice.fact_count);
    }
    sqlx::query!(
        "INSERT INTO okt_repository.concept_summaries AS s (repository_id, concept_no, slice_number, id, is_open, fact_count)
         SELECT $1, $2, n.* FROM unnest($3::integer[], $4::uuid[], $5::boolean[], $6::integer[]) AS n
         ON CONFLICT (repository_id, concept_no, slice_number)
         DO UPDATE SET is_open = excluded.is_open, fact_count = excluded.fact_count, revision = s.revision + 1,
                       failure = NULL",
        repository.uuid(),
        concept,
        &numbers,
        &ids,
        &opens,
        &counts,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "UPDATE okt_repository.concept_summaries SET is_open = false
          WHERE repository_id = $1 AND concept_no = $2 AND slice_number = ANY ($3)",
        repository.uuid(),
        concept,
        &changes.closed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The first slices of a concept whose text is missing or about other facts. Those that were given up are left out, until their
/// facts change or somebody has them tried again.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.list_unwritten", skip_all)]
pub async fn list_unwritten(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    limit: i64,
) -> Result<Vec<UnwrittenSlice>> {
    let rows = sqlx::query!(
        "SELECT s.slice_number, s.revision, f.no, f.id, f.text, f.source_count
           FROM (SELECT o.slice_number, o.revision FROM okt_repository.concept_summaries o
                  WHERE o.repository_id = $1 AND o.concept_no = $2 AND o.written < o.revision AND o.failure IS NULL
                  ORDER BY o.slice_number LIMIT $3) AS s
           JOIN okt_repository.summary_facts l
             ON l.repository_id = $1 AND l.concept_no = $2 AND l.slice_number = s.slice_number
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
          WHERE f.status <> 'rejected'
          ORDER BY s.slice_number, f.no",
        repository.uuid(),
        concept,
        limit,
    );
    let mut found: Vec<UnwrittenSlice> = Vec::new();
    for row in rows.fetch_all(conn).await? {
        let fact =
            SliceFact { no: row.no, id: row.id.into(), text: row.text, source_count: row.source_count };
        match found.last_mut() {
            Some(slice) if slice.number == row.slice_number => slice.facts.push(fact),
            _ => found.push(UnwrittenSlice {
                number: row.slice_number,
                revision: row.revision,
                facts: vec![fact],
            }),
        }
    }
    Ok(found)
}

/// Stores the text of a slice; false if its facts have changed since they were read.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.write", skip_all)]
pub async fn write(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    text: SliceText<'_>,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concept_summaries
            SET content = $5, dropped = $6, model = $7, promptset_hash = $8, question = $9, written = revision,
                written_at = clock_timestamp(), failure = NULL
          WHERE repository_id = $1 AND concept_no = $2 AND slice_number = $3 AND revision = $4 AND written < revision",
        repository.uuid(),
        concept,
        text.number,
        text.revision,
        text.content,
        text.dropped,
        text.model,
        text.promptset_hash.0.as_slice(),
        text.question.0.as_slice(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Writes down why a slice has no text about its facts. What it said before stays.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.fail", skip_all)]
pub async fn fail(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    (number, revision): (i32, i64),
    why: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concept_summaries SET failure = $5
          WHERE repository_id = $1 AND concept_no = $2 AND slice_number = $3 AND revision = $4 AND written < revision",
        repository.uuid(),
        concept,
        number,
        revision,
        why,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// The slices of a concept, which is given by its number, from after one on.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    after: i32,
    limit: i64,
) -> Result<Vec<Slice>> {
    let rows = sqlx::query!(
        r#"SELECT s.id, s.slice_number, s.is_open, s.content, s.fact_count, s.written = s.revision AS "written!",
                  s.dropped, s.model, s.promptset_hash, s.written_at, s.failure,
                  ARRAY(SELECT f.id FROM okt_repository.summary_facts l
                          JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                         WHERE l.repository_id = $1 AND l.concept_no = $2 AND l.slice_number = s.slice_number
                           AND f.status <> 'rejected'
                         ORDER BY f.no) AS "facts!: Vec<Uuid>"
             FROM okt_repository.concept_summaries s
            WHERE s.repository_id = $1 AND s.concept_no = $2 AND s.slice_number > $3
            ORDER BY s.slice_number LIMIT $4"#,
        repository.uuid(),
        concept,
        after,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let whole = usize::try_from(row.fact_count).is_ok_and(|count| count == row.facts.len());
        Ok(Slice {
            id: row.id.into(),
            number: row.slice_number,
            is_open: row.is_open,
            content: row.content,
            facts: row.facts.into_iter().map(FactId::from).collect(),
            is_current: row.written && whole,
            dropped: row.dropped,
            model: row.model,
            promptset_hash: row.promptset_hash.as_deref().map(hash).transpose()?,
            written_at: row.written_at,
            failure: row.failure,
        })
    });
    rows.collect()
}

/// The written slices of all concepts of a name, which is given as names are compared, with the facts that they cover: at most
/// so many, those whose facts have the most sources. A text that is about to be written again is the one of before.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.list_named", skip_all)]
pub async fn list_named(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    limit: i64,
) -> Result<Vec<NamedSlice>> {
    let rows = sqlx::query!(
        r#"WITH strongest AS MATERIALIZED (
               SELECT c.no, c.id AS concept, c.canonical_name, c.context_no, s.id, s.slice_number, s.content
                 FROM okt_repository.concepts c
                 JOIN okt_repository.concept_summaries s
                   ON s.repository_id = $1 AND s.concept_no = c.no AND s.written > 0 AND s.content <> ''
                CROSS JOIN LATERAL (
                      SELECT sum(f.source_count) AS sources FROM okt_repository.summary_facts l
                        JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                       WHERE l.repository_id = $1 AND l.concept_no = c.no AND l.slice_number = s.slice_number
                         AND f.status <> 'rejected') AS n
                WHERE c.repository_id = $1 AND c.name_key = $2 AND c.merged_into IS NULL
                ORDER BY n.sources DESC NULLS LAST, c.no, s.slice_number LIMIT $3)
           SELECT s.no AS concept_no, s.concept, s.canonical_name, x.label, s.id, s.slice_number, s.content,
                  f.no, f.id AS fact, f.text, f.source_count
             FROM strongest s
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = s.context_no
             JOIN okt_repository.summary_facts l
               ON l.repository_id = $1 AND l.concept_no = s.no AND l.slice_number = s.slice_number
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
            WHERE f.status <> 'rejected'
            ORDER BY s.no, s.slice_number, f.no"#,
        repository.uuid(),
        name,
        limit,
    );
    let mut found: Vec<NamedSlice> = Vec::new();
    for row in rows.fetch_all(conn).await? {
        let slice = SummaryId::from(row.id);
        if found.last().is_none_or(|last| last.slice != slice) {
            found.push(NamedSlice {
                concept_no: row.concept_no,
                concept: row.concept.into(),
                name: row.canonical_name,
                context: row.label,
                slice,
                number: row.slice_number,
                content: row.content,
                facts: Vec::new(),
            });
        }
        let fact =
            SliceFact { no: row.no, id: row.fact.into(), text: row.text, source_count: row.source_count };
        found.last_mut().ok_or_else(|| Error::internal("a fact without a slice"))?.facts.push(fact);
    }
    Ok(found)
}

/// Whether any concept of a name, which is given as names are compared, has facts in slices; or written ones, if only these are
/// asked for.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.is_named_covered", skip_all)]
pub async fn is_named_covered(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    written: bool,
) -> Result<bool> {
    let covered = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts c
                            JOIN okt_repository.concept_summaries s
                              ON s.repository_id = $1 AND s.concept_no = c.no AND (s.written > 0 OR NOT $3)
                            JOIN okt_repository.summary_facts l
                              ON l.repository_id = $1 AND l.concept_no = c.no AND l.slice_number = s.slice_number
                            JOIN okt_repository.facts f
                              ON f.repository_id = $1 AND f.no = l.fact_no AND f.status <> 'rejected'
                           WHERE c.repository_id = $1 AND c.name_key = $2 AND c.merged_into IS NULL) AS "covered!""#,
        repository.uuid(),
        name,
        written,
    );
    Ok(covered.fetch_one(conn).await?)
}

/// The first concept that has the name of this one, which is given by its number and perhaps has become a part of another: by it
/// the definition of the name is asked for.
#[tracing::instrument(level = "debug", name = "db.concept_summaries.find_first_named", skip_all)]
pub async fn find_first_named(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
) -> Result<Option<ConceptId>> {
    let id = sqlx::query_scalar!(
        "SELECT o.id FROM okt_repository.concepts c
           JOIN okt_repository.concepts o ON o.repository_id = $1 AND o.name_key = c.name_key AND o.merged_into IS NULL
          WHERE c.repository_id = $1 AND c.no = $2
          ORDER BY o.no LIMIT 1",
        repository.uuid(),
        concept,
    );
    Ok(id.fetch_optional(conn).await?.map(Into::into))
}
