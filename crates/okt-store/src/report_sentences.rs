//! Rows of `okt_repository.report_sentences`: the sentences of reports, and whether they wait to be checked.
//!
//! A sentence that concerns facts which changed is marked: its count of waiting goes up. Whoever has checked it sets the count to 0
//! if it is what he read, so that what came meanwhile is checked after all.

use std::collections::{BTreeMap, VecDeque};

use okt_model::{ReportSentence, RepositoryId, SentenceState};
use sqlx::PgConnection;

use crate::words::word;
use okt_pg::Result;

/// A sentence as it was cut out of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSentence {
    pub start: i32,
    pub end: i32,
    pub text: String,
    pub is_claim: bool,
}

/// A claim that is to be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub no: i64,
    pub text: String,
    pub waiting: i64,
    /// If it is of the space that was asked for.
    pub vector: Option<Vec<f32>>,
    pub state: Option<SentenceState>,
}

/// Gives a report these sentences. One that it has already, by its words, keeps what was said of it; the others wait to be
/// checked.
#[tracing::instrument(level = "debug", name = "db.report_sentences.replace", skip_all)]
pub async fn replace(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    new: &[NewSentence],
) -> Result<()> {
    let rows = sqlx::query!(
        "SELECT no, text, is_claim FROM okt_repository.report_sentences WHERE repository_id = $1 AND report_no = $2 ORDER BY place",
        repository.uuid(),
        report,
    );
    let mut known: BTreeMap<(String, bool), VecDeque<i64>> = BTreeMap::new();
    for row in rows.fetch_all(&mut *conn).await? {
        known.entry((row.text, row.is_claim)).or_default().push_back(row.no);
    }
    let (mut kept, mut kept_places, mut kept_starts, mut kept_ends) = (vec![], vec![], vec![], vec![]);
    let (mut places, mut starts, mut ends, mut texts, mut claims) = (vec![], vec![], vec![], vec![], vec![]);
    for (place, sentence) in (0_i32..).zip(new) {
        let same = known.get_mut(&(sentence.text.clone(), sentence.is_claim)).and_then(VecDeque::pop_front);
        if let Some(no) = same {
            kept.push(no);
            kept_places.push(place);
            kept_starts.push(sentence.start);
            kept_ends.push(sentence.end);
        } else {
            places.push(place);
            starts.push(sentence.start);
            ends.push(sentence.end);
            texts.push(sentence.text.clone());
            claims.push(sentence.is_claim);
        }
    }
    let gone: Vec<i64> = known.into_values().flatten().collect();
    sqlx::query!(
        "WITH annotations AS (DELETE FROM okt_repository.report_annotations WHERE repository_id = $1 AND sentence_no = ANY ($2)),
              words AS (DELETE FROM okt_repository.report_words WHERE repository_id = $1 AND report_no = $3 AND sentence_no = ANY ($2))
         DELETE FROM okt_repository.report_sentences WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        &gone,
        report,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "UPDATE okt_repository.report_sentences s SET place = n.place, first_char = n.first_char, end_char = n.end_char
           FROM unnest($2::bigint[], $3::integer[], $4::integer[], $5::integer[]) AS n (no, place, first_char, end_char)
          WHERE s.repository_id = $1 AND s.no = n.no
            AND (s.place, s.first_char, s.end_char) IS DISTINCT FROM (n.place, n.first_char, n.end_char)",
        repository.uuid(),
        &kept,
        &kept_places,
        &kept_starts,
        &kept_ends,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "INSERT INTO okt_repository.report_sentences
             (repository_id, report_no, place, first_char, end_char, text, is_claim, waiting)
         SELECT $1, $2, n.place, n.first_char, n.end_char, n.text, n.is_claim, n.is_claim::integer
           FROM unnest($3::integer[], $4::integer[], $5::integer[], $6::text[], $7::boolean[])
                AS n (place, first_char, end_char, text, is_claim)",
        repository.uuid(),
        report,
        &places,
        &starts,
        &ends,
        &texts,
        &claims,
    )
    .execute(&mut *conn)
    .await?;
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    sqlx::query!(
        "UPDATE okt_repository.reports SET sentence_count = $3, claim_count = $4 WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        report,
        count(new.len()),
        count(new.iter().filter(|sentence| sentence.is_claim).count()),
    )
    .execute(&mut *conn)
    .await?;
    Ok(())
}

/// Whether a sentence of a report waits to be checked.
#[tracing::instrument(level = "debug", name = "db.report_sentences.is_waiting", skip_all)]
pub async fn is_waiting(conn: &mut PgConnection, repository: RepositoryId, report: i64) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.report_sentences
                           WHERE repository_id = $1 AND report_no = $2 AND waiting > 0) AS "is!""#,
        repository.uuid(),
        report,
    );
    Ok(any.fetch_one(conn).await?)
}

/// Claims of a report that wait to be checked, in their order of age, with their vectors if these are of this space.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list_waiting", skip_all)]
pub async fn list_waiting(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    space: Option<i16>,
    after: i64,
    limit: i64,
) -> Result<Vec<Claim>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT no, text, waiting, CASE WHEN embedded_in = $3 THEN vector END AS "vector?", state
             FROM okt_repository.report_sentences
            WHERE repository_id = $1 AND report_no = $2 AND waiting > 0 AND no > $4
            ORDER BY no LIMIT $5"#,
        repository.uuid(),
        report,
        space,
        after,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Row::claim).collect()
}

/// All claims of the repository, with their vectors if these are of this space.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list_claims", skip_all)]
pub async fn list_claims(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: Option<i16>,
    after: i64,
    limit: i64,
) -> Result<Vec<Claim>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT no, text, waiting, CASE WHEN embedded_in = $2 THEN vector END AS "vector?", state
             FROM okt_repository.report_sentences
            WHERE repository_id = $1 AND is_claim AND no > $3
            ORDER BY no LIMIT $4"#,
        repository.uuid(),
        space,
        after,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Row::claim).collect()
}

/// Keeps the vectors of claims, which are of this space.
#[tracing::instrument(level = "debug", name = "db.report_sentences.keep_vectors", skip_all)]
pub async fn keep_vectors(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
    vectors: &[(i64, &[f32])],
) -> Result<()> {
    let numbers: Vec<i64> = vectors.iter().map(|(no, _)| *no).collect();
    let bytes: Vec<Vec<u8>> = vectors
        .iter()
        .map(|(_, vector)| vector.iter().flat_map(|number| number.to_le_bytes()).collect())
        .collect();
    sqlx::query!(
        "UPDATE okt_repository.report_sentences s SET vector = n.vector, embedded_in = $2
           FROM unnest($3::bigint[], $4::bytea[]) AS n (no, vector)
          WHERE s.repository_id = $1 AND s.no = n.no",
        repository.uuid(),
        space,
        &numbers,
        &bytes,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Has claims checked; returns their reports.
#[tracing::instrument(level = "debug", name = "db.report_sentences.mark", skip_all)]
pub async fn mark(conn: &mut PgConnection, repository: RepositoryId, sentences: &[i64]) -> Result<Vec<i64>> {
    // As whoever checks or writes a report does, so that nobody waits in a circle.
    let reports = sqlx::query_scalar!(
        "SELECT r.no FROM okt_repository.reports r
          WHERE r.repository_id = $1
            AND r.no IN (SELECT s.report_no FROM okt_repository.report_sentences s
                          WHERE s.repository_id = $1 AND s.no = ANY ($2))
          ORDER BY r.no FOR UPDATE",
        repository.uuid(),
        sentences,
    );
    let reports = reports.fetch_all(&mut *conn).await?;
    sqlx::query!(
        "UPDATE okt_repository.report_sentences s SET waiting = s.waiting + 1
           FROM (SELECT no FROM okt_repository.report_sentences
                  WHERE repository_id = $1 AND no = ANY ($2) AND is_claim ORDER BY no FOR UPDATE) AS n
          WHERE s.repository_id = $1 AND s.no = n.no",
        repository.uuid(),
        sentences,
    )
    .execute(conn)
    .await?;
    Ok(reports)
}

/// Has all claims of a report checked; returns how many there are.
#[tracing::instrument(level = "debug", name = "db.report_sentences.mark_all", skip_all)]
pub async fn mark_all(conn: &mut PgConnection, repository: RepositoryId, report: i64) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_repository.report_sentences SET waiting = waiting + 1
          WHERE repository_id = $1 AND report_no = $2 AND is_claim",
        repository.uuid(),
        report,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// Has all claims checked whose vectors are not of this space; returns their reports.
#[tracing::instrument(level = "debug", name = "db.report_sentences.mark_outdated", skip_all)]
pub async fn mark_outdated(
    conn: &mut PgConnection,
    repository: RepositoryId,
    space: i16,
) -> Result<Vec<i64>> {
    let reports = sqlx::query!(
        "SELECT no FROM okt_repository.reports WHERE repository_id = $1 ORDER BY no FOR UPDATE",
        repository.uuid(),
    );
    reports.fetch_all(&mut *conn).await?;
    let marked = sqlx::query_scalar!(
        "WITH marked AS (
             UPDATE okt_repository.report_sentences SET waiting = waiting + 1
              WHERE repository_id = $1 AND is_claim AND waiting = 0 AND embedded_in IS DISTINCT FROM $2
             RETURNING report_no)
         SELECT DISTINCT report_no FROM marked",
        repository.uuid(),
        space,
    );
    Ok(marked.fetch_all(conn).await?)
}

/// Whether a claim that waits for nothing has no vector of this space.
#[tracing::instrument(level = "debug", name = "db.report_sentences.is_outdated", skip_all)]
pub async fn is_outdated(conn: &mut PgConnection, repository: RepositoryId, space: i16) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.report_sentences
                           WHERE repository_id = $1 AND is_claim AND waiting = 0 AND embedded_in IS DISTINCT FROM $2) AS "is!""#,
        repository.uuid(),
        space,
    );
    Ok(any.fetch_one(conn).await?)
}

/// Whether a claim waits in a report of which nobody said that it could not be checked, or only that there was no model.
#[tracing::instrument(level = "debug", name = "db.report_sentences.is_any_left", skip_all)]
pub async fn is_any_left(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.reports r
                           WHERE r.repository_id = $1 AND coalesce(r.failure->>'code', 'not_configured') = 'not_configured'
                             AND EXISTS (SELECT FROM okt_repository.report_sentences s
                                          WHERE s.repository_id = $1 AND s.report_no = r.no AND s.waiting > 0)) AS "is!""#,
        repository.uuid(),
    );
    Ok(any.fetch_one(conn).await?)
}

/// Sentences of a report that are not found by their words yet, with their texts.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list_unindexed", skip_all)]
pub async fn list_unindexed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    limit: i64,
) -> Result<Vec<(i64, String)>> {
    let rows = sqlx::query!(
        "SELECT no, text FROM okt_repository.report_sentences
          WHERE repository_id = $1 AND report_no = $2 AND NOT is_indexed ORDER BY no LIMIT $3",
        repository.uuid(),
        report,
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.text)).collect())
}

/// These are found by their words now.
#[tracing::instrument(level = "debug", name = "db.report_sentences.mark_indexed", skip_all)]
pub async fn mark_indexed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sentences: &[i64],
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.report_sentences SET is_indexed = true WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        sentences,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The sentences of a report are to be read in another language: their words are forgotten.
#[tracing::instrument(level = "debug", name = "db.report_sentences.unindex", skip_all)]
pub async fn unindex(conn: &mut PgConnection, repository: RepositoryId, report: i64) -> Result<()> {
    sqlx::query!(
        "WITH words AS (DELETE FROM okt_repository.report_words
                         WHERE repository_id = $1 AND report_no = $2 AND sentence_no <> 0)
         UPDATE okt_repository.report_sentences SET is_indexed = false WHERE repository_id = $1 AND report_no = $2",
        repository.uuid(),
        report,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The claims that were compared with one of these facts.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list_compared", skip_all)]
pub async fn list_compared(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        "SELECT DISTINCT sentence_no FROM okt_repository.report_annotations WHERE repository_id = $1 AND fact_no = ANY ($2)",
        repository.uuid(),
        facts,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The reports that have claims which wait, but for those whose job a person has cancelled.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list_waiting_reports", skip_all)]
pub async fn list_waiting_reports(conn: &mut PgConnection, repository: RepositoryId) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        r#"SELECT r.no AS "no!" FROM okt_repository.reports r
            WHERE r.repository_id = $1 AND r.failure->>'code' IS DISTINCT FROM 'cancelled'
              AND EXISTS (SELECT FROM okt_repository.report_sentences s
                           WHERE s.repository_id = $1 AND s.report_no = r.no AND s.waiting > 0)"#,
        repository.uuid(),
    );
    Ok(rows.fetch_all(conn).await?)
}

/// A claim was checked: how it stands now, unless it waits for more than it was checked against.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    pub no: i64,
    pub waiting: i64,
    pub state: SentenceState,
}

/// Keeps how checked claims stand.
#[tracing::instrument(level = "debug", name = "db.report_sentences.settle", skip_all)]
pub async fn settle(conn: &mut PgConnection, repository: RepositoryId, checked: &[Checked]) -> Result<()> {
    let numbers: Vec<i64> = checked.iter().map(|one| one.no).collect();
    let waiting: Vec<i64> = checked.iter().map(|one| one.waiting).collect();
    let states: Vec<String> = checked.iter().map(|one| one.state.as_str().to_owned()).collect();
    sqlx::query!(
        r#"UPDATE okt_repository.report_sentences s
              SET state = n.state, checked_at = clock_timestamp(),
                  waiting = CASE WHEN s.waiting = n.waiting THEN 0 ELSE s.waiting END
             FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS n (no, waiting, state)
            WHERE s.repository_id = $1 AND s.no = n.no"#,
        repository.uuid(),
        &numbers,
        &waiting,
        &states,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The sentences of a report from a place on, in their order. How they stand is what was found when they were checked.
#[tracing::instrument(level = "debug", name = "db.report_sentences.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    from: i32,
    limit: i64,
) -> Result<Vec<ReportSentence>> {
    let rows = sqlx::query!(
        "SELECT no, place, first_char, end_char, text, is_claim, waiting, state FROM okt_repository.report_sentences
          WHERE repository_id = $1 AND report_no = $2 AND place >= $3
          ORDER BY place LIMIT $4",
        repository.uuid(),
        report,
        from,
        limit,
    );
    let sentences = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(ReportSentence {
            no: row.no,
            place: row.place,
            start: row.first_char,
            end: row.end_char,
            text: row.text,
            is_claim: row.is_claim,
            is_waiting: row.waiting > 0,
            state: row.state.map(|state| word("report_sentences.state", &state)).transpose()?,
        })
    });
    sentences.collect()
}

/// How many claims of a report were checked, and how many wait.
#[derive(Clone, Copy, Debug)]
pub struct CheckedCount {
    pub checked: i64,
    pub waiting: i64,
}

#[tracing::instrument(level = "debug", name = "db.report_sentences.count_checked", skip_all)]
pub async fn count_checked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
) -> Result<CheckedCount> {
    let row = sqlx::query_as!(
        CheckedCount,
        r#"SELECT count(*) FILTER (WHERE state IS NOT NULL) AS "checked!", count(*) FILTER (WHERE waiting > 0) AS "waiting!"
             FROM okt_repository.report_sentences WHERE repository_id = $1 AND report_no = $2 AND is_claim"#,
        repository.uuid(),
        report,
    );
    Ok(row.fetch_one(conn).await?)
}

/// A sentence by its number.
#[tracing::instrument(level = "debug", name = "db.report_sentences.get", skip_all)]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
) -> Result<Option<ReportSentence>> {
    let row = sqlx::query!(
        "SELECT no, place, first_char, end_char, text, is_claim, waiting, state FROM okt_repository.report_sentences
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(ReportSentence {
        no: row.no,
        place: row.place,
        start: row.first_char,
        end: row.end_char,
        text: row.text,
        is_claim: row.is_claim,
        is_waiting: row.waiting > 0,
        state: row.state.map(|state| word("report_sentences.state", &state)).transpose()?,
    }))
}

/// How a sentence stands since a person has judged.
#[tracing::instrument(level = "debug", name = "db.report_sentences.set_state", skip_all)]
pub async fn set_state(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    state: SentenceState,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.report_sentences SET state = $3 WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        state.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Row {
    no: i64,
    text: String,
    waiting: i64,
    vector: Option<Vec<u8>>,
    state: Option<String>,
}

impl Row {
    fn claim(self) -> Result<Claim> {
        let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok(Claim {
            no: self.no,
            text: self.text,
            waiting: self.waiting,
            vector: self.vector.map(|bytes| bytes.chunks_exact(4).map(number).collect()),
            state: self.state.map(|state| word("report_sentences.state", &state)).transpose()?,
        })
    }
}
