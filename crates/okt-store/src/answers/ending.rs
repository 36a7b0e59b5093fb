//! The end of an answer that nobody writes to its end.

use okt_model::{AnswerEvent, AnswerId, AnswerStatus, Cost, Coverage, RepositoryId};
use sqlx::PgConnection;

use super::{AnswerEnd, end, hold_running};
use crate::answer_events;
use okt_pg::Result;

/// Ends an answer that runs with what it has and what it has cost so far, because it was cancelled or has failed; false if it does not run.
#[tracing::instrument(level = "debug", name = "db.answers.break_off", skip_all, fields(answer.id = %id))]
pub async fn break_off(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: AnswerId,
    status: AnswerStatus,
    (cost, calls): (Cost, u32),
) -> Result<bool> {
    let Some(answer) = hold_running(conn, repository, id).await? else { return Ok(false) };
    let events = answer_events::list(conn, repository, answer.no, 0).await?;
    let events: Vec<AnswerEvent> = events.into_iter().map(|(_, event)| event).collect();
    let coverage = Coverage::of(&events);
    let last = if status == AnswerStatus::Failed {
        AnswerEvent::Error {
            code: "internal".to_owned(),
            message: "the answer could not be written to its end; ask again".to_owned(),
        }
    } else {
        AnswerEvent::Done {
            status,
            coverage,
            missing: None,
            model: answer.model.clone(),
            cached: false,
            took_ms: 0,
            why_extractive: answer.why_extractive,
        }
    };
    answer_events::append(conn, repository, answer.no, &[AnswerEvent::Cost { cost, calls }, last]).await?;
    let ended = AnswerEnd {
        status,
        mode: answer.mode,
        why_extractive: answer.why_extractive,
        cached: false,
        cost,
        calls,
        sentences: coverage.shown,
        whole: false,
    };
    end(conn, repository, answer.no, &ended).await
}
