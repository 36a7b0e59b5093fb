//! Rows of `okt_repository.report_annotations`: what was said of a sentence of a report and a fact.
//!
//! A fact counts while it stands by itself: one that was merged, rejected or deleted counts for nothing, nor does one whose sources
//! were all retracted. That is looked at by whoever reads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use okt_model::{
    Annotation, FactStatus, MarkKind, Posture, Report, ReportCounts, ReportSentence, RepositoryId, SourceId,
    UserId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use crate::{report_sentences, source_marks};
use okt_pg::Result;

/// Who judged, where that was a person.
pub const PERSON: &str = "person";
/// In place of who judged, where a person took their word back: no model is called that, so the pair is judged anew.
const TAKEN_BACK: &str = "taken_back";

/// What was said of a sentence and a fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// `None`: they have nothing to do with each other.
    pub posture: Option<Posture>,
    pub confidence: f32,
    /// A model, or `person`.
    pub judged_by: String,
}

/// A judgement to keep.
#[derive(Clone, Debug)]
pub struct NewAnnotation {
    pub sentence: i64,
    pub fact: i64,
    pub score: f32,
    pub judged: Judged,
    /// Whether it is shown and counted; otherwise it is only known.
    pub is_near: bool,
}

/// What was said of pairs of these sentences and facts. What a person said of a fact that is a duplicate by now holds for the fact
/// that stands for it.
#[tracing::instrument(level = "debug", name = "db.report_annotations.list_judged", skip_all)]
pub async fn list_judged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sentences: &[i64],
) -> Result<HashMap<(i64, i64), Judged>> {
    let rows = sqlx::query!(
        r#"SELECT a.sentence_no, a.fact_no, f.merged_into AS "merged_into?", a.posture, a.confidence, a.judged_by
             FROM okt_repository.report_annotations a
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no
             LEFT JOIN okt_repository.facts t ON t.repository_id = $1 AND t.no = a.through_no
            -- Not what held through a merge that was undone.
            WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2) AND (t.no IS NULL OR t.merged_into = a.fact_no)"#,
        repository.uuid(),
        sentences,
    );
    let mut judged = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let said = Judged {
            posture: row.posture.map(|posture| word("report_annotations.posture", &posture)).transpose()?,
            confidence: row.confidence,
            judged_by: row.judged_by,
        };
        if let Some(canonical) = row.merged_into.filter(|_| said.judged_by == PERSON) {
            judged.insert((row.sentence_no, canonical), said.clone());
        }
        judged.entry((row.sentence_no, row.fact_no)).or_insert(said);
    }
    Ok(judged)
}

/// Until the end of the transaction no source of what was said of these sentences is deleted. In a statement of its own, so that the next
/// one sees what went with a source that we waited for.
#[tracing::instrument(level = "debug", name = "db.report_annotations.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, sentences: &[i64]) -> Result<()> {
    let held = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.report_annotations
          WHERE repository_id = $1 AND sentence_no = ANY ($2) ORDER BY no FOR UPDATE",
        repository.uuid(),
        sentences,
    );
    held.fetch_all(conn).await?;
    Ok(())
}

/// A fact that counted for a sentence when that was checked the last time, and how the fact is now; `None` if it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub sentence: i64,
    pub fact: i64,
    pub posture: Posture,
    pub status: Option<FactStatus>,
    /// What the last source of it that was deleted was called.
    pub source_title: Option<String>,
}

/// The facts that support or contradict these sentences, as far as is known.
#[tracing::instrument(level = "debug", name = "db.report_annotations.list_counted", skip_all)]
pub async fn list_counted(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sentences: &[i64],
) -> Result<Vec<Counted>> {
    let rows = sqlx::query!(
        r#"SELECT a.sentence_no, a.fact_no, a.posture AS "posture!", f.status AS "status?", a.source_title
             FROM okt_repository.report_annotations a
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no
            WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2) AND a.is_near
              AND a.posture IN ('supports', 'contradicts')"#,
        repository.uuid(),
        sentences,
    );
    let counted = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Counted {
            sentence: row.sentence_no,
            fact: row.fact_no,
            posture: word("report_annotations.posture", &row.posture)?,
            status: row.status.map(|status| word("facts.status", &status)).transpose()?,
            source_title: row.source_title,
        })
    });
    counted.collect()
}

/// Keeps what was said of pairs. To the `settled` sentences no other facts are near any more than these, and those of which a person
/// has said something: that is never replaced, and holds for the fact that a duplicate became a part of as long as it is one.
#[tracing::instrument(level = "debug", name = "db.report_annotations.replace", skip_all)]
pub async fn replace(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    settled: &[i64],
    new: &[NewAnnotation],
) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.report_annotations a
          WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2)
            AND NOT EXISTS (SELECT FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = a.fact_no)",
        repository.uuid(),
        settled,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "DELETE FROM okt_repository.report_annotations a USING okt_repository.facts t
          WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2) AND t.repository_id = $1 AND t.no = a.through_no
            AND t.merged_into IS DISTINCT FROM a.fact_no",
        repository.uuid(),
        settled,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "UPDATE okt_repository.report_annotations SET is_near = false
          WHERE repository_id = $1 AND sentence_no = ANY ($2) AND is_near AND judged_by <> 'person'",
        repository.uuid(),
        settled,
    )
    .execute(&mut *conn)
    .await?;
    // A fact that does not stand by itself counts for nothing, and is not what changes the sentence the next time.
    sqlx::query!(
        "UPDATE okt_repository.report_annotations a SET is_near = NOT a.is_near
           FROM okt_repository.facts f
          WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2) AND a.judged_by = 'person'
            AND f.repository_id = $1 AND f.no = a.fact_no AND a.is_near <> (f.status IN ('new', 'stable'))",
        repository.uuid(),
        settled,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "INSERT INTO okt_repository.report_annotations AS a
             (repository_id, report_no, sentence_no, fact_no, score, posture, confidence, judged_by, person, judged_at, is_near,
              through_no)
         SELECT DISTINCT ON (p.sentence_no, f.merged_into)
                $1, p.report_no, p.sentence_no, f.merged_into, p.score, p.posture, p.confidence, p.judged_by, p.person,
                p.judged_at, true, p.fact_no
           FROM okt_repository.report_annotations p
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = p.fact_no
          WHERE p.repository_id = $1 AND p.sentence_no = ANY ($2) AND p.judged_by = 'person' AND f.merged_into IS NOT NULL
          ORDER BY p.sentence_no, f.merged_into, p.judged_at DESC
         ON CONFLICT (repository_id, sentence_no, fact_no) DO UPDATE
            SET posture = excluded.posture, confidence = excluded.confidence, judged_by = excluded.judged_by,
                person = excluded.person, judged_at = excluded.judged_at, is_near = true,
                through_no = excluded.through_no
          WHERE a.judged_by <> 'person'",
        repository.uuid(),
        settled,
    )
    .execute(&mut *conn)
    .await?;
    let (mut of, mut facts, mut scores) = (vec![], vec![], vec![]);
    let (mut postures, mut confidences, mut by, mut near) = (vec![], vec![], vec![], vec![]);
    for one in new.iter().filter(|one| one.judged.judged_by != PERSON) {
        of.push(one.sentence);
        facts.push(one.fact);
        scores.push(one.score);
        postures.push(one.judged.posture.map(|posture| posture.as_str().to_owned()));
        confidences.push(one.judged.confidence);
        by.push(one.judged.judged_by.clone());
        near.push(one.is_near);
    }
    sqlx::query!(
        "INSERT INTO okt_repository.report_annotations AS a
             (repository_id, report_no, sentence_no, fact_no, score, posture, confidence, judged_by, is_near)
         SELECT $1, $2, s.no, n.fact, n.score, n.posture, n.confidence, n.judged_by, n.is_near
           FROM unnest($3::bigint[], $4::bigint[], $5::real[], $6::text[], $7::real[], $8::text[], $9::boolean[])
                AS n (sentence, fact, score, posture, confidence, judged_by, is_near)
           JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.no = n.sentence
         ON CONFLICT (repository_id, sentence_no, fact_no) DO UPDATE
            SET score = excluded.score, posture = excluded.posture, confidence = excluded.confidence,
                judged_at = CASE WHEN a.judged_by = excluded.judged_by THEN a.judged_at ELSE clock_timestamp() END,
                judged_by = excluded.judged_by, is_near = a.is_near OR excluded.is_near
          WHERE a.judged_by <> 'person'",
        repository.uuid(),
        report,
        &of,
        &facts,
        &scores,
        &postures as &[Option<String>],
        &confidences,
        &by,
        &near,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How the sentences of a report stand that facts support or contradict; the others are unsupported.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub supported: BTreeSet<i64>,
    pub contradicted: BTreeSet<i64>,
}

/// Of all sentences of a report, or of these.
#[tracing::instrument(level = "debug", name = "db.report_annotations.find_standing", skip_all)]
pub async fn find_standing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    sentences: Option<&[i64]>,
) -> Result<Standing> {
    let rows = sqlx::query!(
        r#"SELECT a.sentence_no, a.fact_no, a.posture AS "posture!"
             FROM okt_repository.report_annotations a
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no
            WHERE a.repository_id = $1 AND a.report_no = $2 AND ($3::bigint[] IS NULL OR a.sentence_no = ANY ($3))
              AND a.is_near AND a.posture IN ('supports', 'contradicts') AND f.status IN ('new', 'stable')"#,
        repository.uuid(),
        report,
        sentences,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let facts: BTreeSet<i64> = rows.iter().map(|row| row.fact_no).collect();
    let facts: Vec<i64> = facts.into_iter().collect();
    let retracted = source_marks::list_retracted_facts(conn, repository, &facts).await?;
    let mut standing = Standing::default();
    for row in rows.into_iter().filter(|row| !retracted.contains(&row.fact_no)) {
        match word("report_annotations.posture", &row.posture)? {
            Posture::Supports => standing.supported.insert(row.sentence_no),
            Posture::Contradicts => standing.contradicted.insert(row.sentence_no),
            Posture::Related => false,
        };
    }
    Ok(standing)
}

/// How many sentences of a report stand how.
#[tracing::instrument(level = "debug", name = "db.report_annotations.count", skip_all)]
pub async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: &Report,
) -> Result<ReportCounts> {
    let standing = find_standing(conn, repository, report.no, None).await?;
    let checked = report_sentences::count_checked(conn, repository, report.no).await?;
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let contradicted = count(standing.contradicted.len());
    let supported = count(standing.supported.difference(&standing.contradicted).count());
    Ok(ReportCounts {
        supported,
        contradicted,
        unsupported: (checked.checked - supported - contradicted).max(0),
        waiting: checked.waiting,
        not_a_claim: i64::from(report.sentence_count - report.claim_count),
    })
}

/// What was said of these sentences and of facts that are there, for each the nearest first. What has nothing to do with a sentence
/// is left out, unless a person says so.
#[tracing::instrument(level = "debug", name = "db.report_annotations.list_of", skip_all)]
pub async fn list_of(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sentences: Vec<ReportSentence>,
) -> Result<Vec<Annotation>> {
    let numbers: Vec<i64> = sentences.iter().map(|sentence| sentence.no).collect();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT a.no, a.sentence_no, a.fact_no, f.id AS fact, f.text, a.score, a.posture, a.confidence,
                  a.judged_by, a.person, a.judged_at
             FROM okt_repository.report_annotations a
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no
            WHERE a.repository_id = $1 AND a.sentence_no = ANY ($2) AND a.is_near
              AND (a.posture IS NOT NULL OR a.judged_by = 'person') AND f.status IN ('new', 'stable')
            ORDER BY a.score DESC, a.fact_no"#,
        repository.uuid(),
        &numbers,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let facts: BTreeSet<i64> = rows.iter().map(|row| row.fact_no).collect();
    let facts: Vec<i64> = facts.into_iter().collect();
    let marked = source_marks::list_marked_facts(conn, repository, &facts).await?;
    let mut of: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for row in rows {
        of.entry(row.sentence_no).or_default().push(row);
    }
    let mut annotations = Vec::new();
    for sentence in sentences {
        for row in of.remove(&sentence.no).unwrap_or_default() {
            let mark = marked.get(&row.fact_no).copied();
            annotations.push(row.annotation(&sentence, mark)?);
        }
    }
    Ok(annotations)
}

/// The sentence of an annotation of a report.
#[tracing::instrument(level = "debug", name = "db.report_annotations.find_sentence", skip_all)]
pub async fn find_sentence(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    no: i64,
) -> Result<Option<i64>> {
    let found = sqlx::query_scalar!(
        "SELECT sentence_no FROM okt_repository.report_annotations WHERE repository_id = $1 AND no = $2 AND report_no = $3",
        repository.uuid(),
        no,
        report,
    );
    Ok(found.fetch_optional(conn).await?)
}

/// The fact of an annotation, by its number.
#[tracing::instrument(level = "debug", name = "db.report_annotations.find_fact", skip_all)]
pub async fn find_fact(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<Option<i64>> {
    let found = sqlx::query_scalar!(
        "SELECT fact_no FROM okt_repository.report_annotations WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    Ok(found.fetch_optional(conn).await?)
}

/// What was said last of an annotation.
#[tracing::instrument(level = "debug", name = "db.report_annotations.find_posture", skip_all)]
pub async fn find_posture(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
) -> Result<Option<Option<Posture>>> {
    let found = sqlx::query_scalar!(
        "SELECT posture FROM okt_repository.report_annotations WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    let Some(found) = found.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(found.map(|posture| word("report_annotations.posture", &posture)).transpose()?))
}

/// A person says how a fact stands to a sentence, which may be not at all; that stays.
#[tracing::instrument(level = "debug", name = "db.report_annotations.judge", skip_all)]
pub async fn judge(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    posture: Option<Posture>,
    person: UserId,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.report_annotations
            SET posture = $3, confidence = 1, judged_by = 'person', person = $4, judged_at = clock_timestamp(), through_no = NULL
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        posture.map(Posture::as_str),
        person.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a person said of a pair is taken back, also where it holds through a duplicate; until it is judged anew, the two are related.
/// False if no person said anything.
#[tracing::instrument(level = "debug", name = "db.report_annotations.take_back", skip_all)]
pub async fn take_back(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.report_annotations a
            SET posture = 'related', confidence = 0, judged_by = $3, person = NULL, judged_at = clock_timestamp(), through_no = NULL
           FROM (SELECT sentence_no, fact_no, through_no FROM okt_repository.report_annotations
                  WHERE repository_id = $1 AND no = $2) AS n
          WHERE a.repository_id = $1 AND a.sentence_no = n.sentence_no AND a.fact_no IN (n.fact_no, n.through_no)
            AND a.judged_by = 'person'",
        repository.uuid(),
        no,
        TAKEN_BACK,
    );
    Ok(done.execute(conn).await?.rows_affected() > 0)
}

/// A source is about to be deleted: what rests on it remembers what it was called.
#[tracing::instrument(level = "debug", name = "db.report_annotations.forget_source", skip_all, fields(source.id = %source))]
pub async fn forget_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.report_annotations a SET source_title = n.title
           FROM (SELECT o.no, left(coalesce(s.title, s.url), 500) AS title
                   FROM okt_repository.sources s
                   JOIN okt_repository.fact_sources l ON l.repository_id = $1 AND l.source_no = s.no
                   LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                   JOIN okt_repository.report_annotations o
                     ON o.repository_id = $1 AND o.fact_no = coalesce(f.merged_into, l.fact_no)
                  WHERE s.repository_id = $1 AND s.id = $2
                  -- All in the same order, so that nobody waits in a circle.
                  ORDER BY o.no
                    FOR UPDATE OF o) AS n
          WHERE a.repository_id = $1 AND a.no = n.no",
        repository.uuid(),
        source.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Row {
    no: i64,
    sentence_no: i64,
    fact_no: i64,
    fact: Uuid,
    text: String,
    score: f32,
    posture: Option<String>,
    confidence: f32,
    judged_by: String,
    person: Option<Uuid>,
    judged_at: DateTime<Utc>,
}

impl Row {
    fn annotation(self, sentence: &ReportSentence, mark: Option<MarkKind>) -> Result<Annotation> {
        Ok(Annotation {
            no: self.no,
            sentence: sentence.clone(),
            fact: self.fact.into(),
            fact_no: self.fact_no,
            fact_text: self.text,
            score: self.score,
            posture: self.posture.map(|posture| word("report_annotations.posture", &posture)).transpose()?,
            confidence: self.confidence,
            judged_by: self.judged_by,
            person: self.person.map(Into::into),
            judged_at: self.judged_at,
            retracted: mark == Some(MarkKind::Retracted),
            superseded: mark == Some(MarkKind::Superseded),
        })
    }
}
