//! Rows of `okt_repository.report_words`: the words by which reports are found. The words of a title are those of sentence 0.

use std::collections::HashMap;

use okt_model::{ReportId, RepositoryId};
use sqlx::PgConnection;

use okt_pg::Result;

/// A sentence that has a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Having {
    pub word: String,
    pub report: i64,
    pub sentence: i64,
}

/// A report that was found, and the sentence by which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportHit {
    pub id: ReportId,
    pub title: String,
    /// Missing if it was found by its title.
    pub sentence: Option<String>,
    pub language: Option<String>,
}

/// Adds the words of sentences of a report.
#[tracing::instrument(level = "debug", name = "db.report_words.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    of: &[(i64, &[String])],
) -> Result<()> {
    let rows = of.iter().flat_map(|(no, words)| words.iter().map(move |word| (*no, word.clone())));
    let (numbers, words): (Vec<i64>, Vec<String>) = rows.unzip();
    sqlx::query!(
        "INSERT INTO okt_repository.report_words (repository_id, word, report_no, sentence_no)
         SELECT $1, n.word, $2, n.no FROM unnest($3::bigint[], $4::text[]) AS n (no, word)
         ON CONFLICT DO NOTHING",
        repository.uuid(),
        report,
        &numbers,
        &words,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Replaces the words of the title of a report.
#[tracing::instrument(level = "debug", name = "db.report_words.replace_title", skip_all)]
pub async fn replace_title(
    conn: &mut PgConnection,
    repository: RepositoryId,
    report: i64,
    words: &[String],
) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.report_words WHERE repository_id = $1 AND report_no = $2 AND sentence_no = 0",
        repository.uuid(),
        report,
    )
    .execute(&mut *conn)
    .await?;
    insert(conn, repository, report, &[(0, words)]).await
}

/// Sentences that have these words, at most so many of each word, those of the newest reports.
#[tracing::instrument(level = "debug", name = "db.report_words.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    words: &[String],
    most: i64,
) -> Result<Vec<Having>> {
    let rows = sqlx::query_as!(
        Having,
        r#"SELECT n.word AS "word!", w.report_no AS report, w.sentence_no AS sentence
             FROM unnest($2::text[]) AS n (word)
            CROSS JOIN LATERAL (SELECT o.report_no, o.sentence_no FROM okt_repository.report_words o
                                 WHERE o.repository_id = $1 AND o.word = n.word
                                 ORDER BY o.report_no DESC, o.sentence_no DESC LIMIT $3) AS w"#,
        repository.uuid(),
        words,
        most,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Reports and their sentences, by the numbers of both.
#[tracing::instrument(level = "debug", name = "db.report_words.get", skip_all)]
pub async fn get(
    conn: &mut PgConnection,
    repository: RepositoryId,
    found: &[(i64, i64)],
) -> Result<HashMap<i64, ReportHit>> {
    let (reports, sentences): (Vec<i64>, Vec<i64>) = found.iter().copied().unzip();
    let rows = sqlx::query!(
        r#"SELECT r.no, r.id, r.title, r.language, s.text AS "text?"
             FROM unnest($2::bigint[], $3::bigint[]) AS n (report, sentence)
             JOIN okt_repository.reports r ON r.repository_id = $1 AND r.no = n.report
             LEFT JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.no = n.sentence"#,
        repository.uuid(),
        &reports,
        &sentences,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        (
            row.no,
            ReportHit { id: row.id.into(), title: row.title, sentence: row.text, language: row.language },
        )
    });
    Ok(rows.collect())
}
