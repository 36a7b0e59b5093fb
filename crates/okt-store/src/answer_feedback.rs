//! Rows of `okt_repository.answer_feedback`: what people say of answers.

use okt_model::{Feedback, RepositoryId, UserId};
use sqlx::PgConnection;

use crate::words::word;
use okt_pg::Result;

/// In place of what the person has said of it before.
#[tracing::instrument(level = "debug", name = "db.answer_feedback.put", skip_all)]
pub async fn put(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    person: UserId,
    feedback: &Feedback,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_repository.answer_feedback (repository_id, answer_no, person, sentence, verdict, note)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (repository_id, answer_no, person, sentence)
            DO UPDATE SET verdict = excluded.verdict, note = excluded.note, created_at = clock_timestamp()",
        repository.uuid(),
        answer,
        person.uuid(),
        feedback.sentence.unwrap_or(-1),
        feedback.verdict.as_str(),
        feedback.note,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a person has said of an answer.
#[tracing::instrument(level = "debug", name = "db.answer_feedback.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    person: UserId,
) -> Result<Vec<Feedback>> {
    let rows = sqlx::query!(
        "SELECT sentence, verdict, note FROM okt_repository.answer_feedback
          WHERE repository_id = $1 AND answer_no = $2 AND person = $3 ORDER BY sentence",
        repository.uuid(),
        answer,
        person.uuid(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(Feedback {
            sentence: Some(row.sentence).filter(|at| *at >= 0),
            verdict: word("answer_feedback.verdict", &row.verdict)?,
            note: row.note,
        })
    })
    .collect()
}
