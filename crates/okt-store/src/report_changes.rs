//! Rows of `okt_repository.report_changes`: how sentences of reports came to stand otherwise.

use chrono::{DateTime, Utc};
use okt_model::{ChangeCause, Posture, ReportChange, RepositoryId, SentenceState, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use okt_pg::Result;

/// A sentence that came to stand otherwise, or of which a person has judged.
#[derive(Clone, Debug)]
pub struct NewChange {
    pub sentence: i64,
    pub before: Option<SentenceState>,
    pub after: SentenceState,
    pub cause: ChangeCause,
    /// The number of the fact that made the difference, where it is known.
    pub fact: Option<i64>,
    /// What the source of it was called, where that is gone.
    pub source_title: Option<String>,
    pub person: Option<Judgement>,
}

/// What a person says of a fact and a sentence, and what was said of them before; `None` in either place: they have nothing to do with
/// each other.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    pub person: UserId,
    pub before: Option<Posture>,
    /// `None`: what a person said is taken back.
    pub after: Option<Option<Posture>>,
}

/// A fact that has nothing to do with a sentence, as a posture.
const IRRELEVANT: &str = "irrelevant";

#[tracing::instrument(level = "debug", name = "db.report_changes.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    changes: &[NewChange],
) -> Result<()> {
    let sentences: Vec<i64> = changes.iter().map(|change| change.sentence).collect();
    let before: Vec<Option<String>> =
        changes.iter().map(|change| change.before.map(|state| state.as_str().to_owned())).collect();
    let after: Vec<String> = changes.iter().map(|change| change.after.as_str().to_owned()).collect();
    let causes: Vec<String> = changes.iter().map(|change| change.cause.as_str().to_owned()).collect();
    let facts: Vec<Option<i64>> = changes.iter().map(|change| change.fact).collect();
    let titles: Vec<Option<String>> = changes.iter().map(|change| change.source_title.clone()).collect();
    let said = |posture: Option<Posture>| posture.map_or(IRRELEVANT, Posture::as_str).to_owned();
    let (mut people, mut postures_before, mut postures_after) = (vec![], vec![], vec![]);
    for change in changes {
        people.push(change.person.map(|judged| judged.person.uuid()));
        postures_before.push(change.person.map(|judged| said(judged.before)));
        postures_after.push(change.person.and_then(|judged| judged.after).map(said));
    }
    // With a fact goes its first source. Of a mark that changed, the fact and the source are those of the latest one.
    sqlx::query!(
        "INSERT INTO okt_repository.report_changes
             (repository_id, report_no, sentence_no, before, after, cause, fact_no, source_no, source_title, person,
              posture_before, posture_after)
         SELECT $1, $2, s.no, n.before, n.after, n.cause, coalesce(m.fact_no, n.fact), c.source_no,
                coalesce((SELECT left(coalesce(o.title, o.url), 500) FROM okt_repository.sources o
                           WHERE o.repository_id = $1 AND o.no = c.source_no), n.source_title),
                n.person, n.posture_before, n.posture_after
           FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::uuid[], $9::text[], $10::text[], $11::text[])
                AS n (sentence, before, after, cause, fact, person, source_title, posture_before, posture_after)
           JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.no = n.sentence
           LEFT JOIN LATERAL (
                SELECT a.fact_no, k.source_no
                  FROM okt_repository.report_annotations a
                 CROSS JOIN LATERAL (SELECT a.fact_no AS no UNION ALL
                                     SELECT d.no FROM okt_repository.facts d
                                      WHERE d.repository_id = $1 AND d.merged_into = a.fact_no) AS f
                  JOIN okt_repository.fact_sources l ON l.repository_id = $1 AND l.fact_no = f.no
                  JOIN okt_repository.source_marks k ON k.repository_id = $1 AND k.source_no = l.source_no
                 WHERE n.cause = 'source_marked' AND a.repository_id = $1 AND a.sentence_no = s.no AND a.is_near
                   AND a.posture IN ('supports', 'contradicts')
                 ORDER BY k.marked_at DESC, k.source_no LIMIT 1) AS m ON true
          CROSS JOIN LATERAL (
                SELECT coalesce(m.source_no, (SELECT l.source_no FROM okt_repository.fact_sources l
                                               WHERE l.repository_id = $1 AND l.fact_no = n.fact
                                               ORDER BY l.source_no LIMIT 1)) AS source_no) AS c",
        repository.uuid(),
        report,
        &sentences,
        &before as &[Option<String>],
        &after,
        &causes,
        &facts as &[Option<i64>],
        &people as &[Option<Uuid>],
        &titles as &[Option<String>],
        &postures_before as &[Option<String>],
        &postures_after as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest first, from before `before`.
#[tracing::instrument(level = "debug", name = "db.report_changes.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<ReportChange>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT c.no, c.sentence_no, s.place AS "place?", s.text AS "text?", c.before, c.after, c.cause,
                  f.id AS "fact?", o.id AS "source?", coalesce(o.title, o.url, c.source_title) AS source_title, c.person,
                  c.posture_before, c.posture_after, c.changed_at
             FROM okt_repository.report_changes c
             LEFT JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.no = c.sentence_no
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = c.fact_no
             LEFT JOIN okt_repository.sources o ON o.repository_id = $1 AND o.no = c.source_no
            WHERE c.repository_id = $1 AND c.report_no = $2 AND c.no < $3
            ORDER BY c.no DESC
            LIMIT $4"#,
        repository.uuid(),
        report,
        before.unwrap_or(i64::MAX),
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(ReportChange::try_from).collect()
}

struct Row {
    no: i64,
    sentence_no: i64,
    place: Option<i32>,
    text: Option<String>,
    before: Option<String>,
    after: String,
    cause: String,
    fact: Option<Uuid>,
    source: Option<Uuid>,
    source_title: Option<String>,
    person: Option<Uuid>,
    posture_before: Option<String>,
    posture_after: Option<String>,
    changed_at: DateTime<Utc>,
}

impl TryFrom<Row> for ReportChange {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            no: row.no,
            sentence: row.sentence_no,
            now: row.place.zip(row.text),
            before: row.before.map(|state| word("report_changes.before", &state)).transpose()?,
            after: word("report_changes.after", &row.after)?,
            cause: word("report_changes.cause", &row.cause)?,
            fact: row.fact.map(Into::into),
            source: row.source.map(Into::into),
            source_title: row.source_title,
            person: row.person.map(Into::into),
            posture_before: row.posture_before,
            posture_after: row.posture_after,
            changed_at: row.changed_at,
        })
    }
}
