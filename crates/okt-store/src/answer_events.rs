//! Rows of `okt_repository.answer_events`: what happened to answers, in order. Whoever appends holds the answer
//! ([`answers::hold_running`](crate::answers::hold_running)).

use okt_model::{AnswerEvent, Error, RepositoryId};
use sqlx::PgConnection;

use okt_pg::Result;

/// Adds events behind those that are there; returns the place of the last.
#[tracing::instrument(level = "debug", name = "db.answer_events.append", skip_all)]
pub async fn append(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    events: &[AnswerEvent],
) -> Result<i32> {
    let events: Vec<String> =
        events.iter().map(serde_json::to_string).collect::<Result<_, _>>().map_err(Error::internal)?;
    let last = sqlx::query_scalar!(
        r#"WITH before AS (SELECT coalesce(max(place), 0) AS place FROM okt_repository.answer_events
                            WHERE repository_id = $1 AND answer_no = $2),
                new AS (INSERT INTO okt_repository.answer_events (repository_id, answer_no, place, event)
                        SELECT $1, $2, b.place + n.at::integer, n.event::jsonb
                          FROM before b CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS n (event, at)
                        RETURNING place)
           SELECT coalesce((SELECT max(place) FROM new), (SELECT place FROM before)) AS "last!""#,
        repository.uuid(),
        answer,
        &events,
    );
    Ok(last.fetch_one(conn).await?)
}

/// The events of an answer from after a place on, with their places.
#[tracing::instrument(level = "debug", name = "db.answer_events.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    after: i32,
) -> Result<Vec<(i32, AnswerEvent)>> {
    let rows = sqlx::query!(
        r#"SELECT place, event::text AS "event!" FROM okt_repository.answer_events
            WHERE repository_id = $1 AND answer_no = $2 AND place > $3 ORDER BY place"#,
        repository.uuid(),
        answer,
        after,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((row.place, serde_json::from_str(&row.event).map_err(Error::internal)?))).collect()
}
