//! Rows of `okt_repository.answer_events`: what happened to answers, in order. Whoever appends holds the answer
//! ([`answers::hold_running`](crate::answers::hold_running)).

use std::collections::BTreeSet;

use okt_model::{AnswerEvent, Error, Evidence, RepositoryId, SourceId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::answers;
use okt_pg::Result;

/// Adds events behind those that are there; returns the place of the last.
#[tracing::instrument(level = "debug", name = "db.answer_events.append", skip_all)]
pub async fn append(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    events: &[AnswerEvent],
) -> Result<i32> {
    let sources: BTreeSet<Uuid> = events.iter().flat_map(sources_of).collect();
    let sources: Vec<Uuid> = sources.into_iter().collect();
    // Whoever deletes one of them is waited for: what comes after that nobody would take out again.
    let there = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.sources WHERE repository_id = $1 AND id = ANY ($2) ORDER BY id FOR KEY SHARE",
        repository.uuid(),
        &sources,
    );
    let there = if sources.is_empty() { Vec::new() } else { there.fetch_all(&mut *conn).await? };
    let events = events.iter().map(|event| without_gone(event.clone(), &there));
    let events: Vec<String> = events
        .map(|event| serde_json::to_string(&event))
        .collect::<Result<_, _>>()
        .map_err(Error::internal)?;
    let last = sqlx::query_scalar!(
        r#"WITH before AS (SELECT coalesce(max(place), 0) AS place FROM okt_repository.answer_events
                            WHERE repository_id = $1 AND answer_no = $2),
                new AS (INSERT INTO okt_repository.answer_events (repository_id, answer_no, place, event)
                        SELECT $1, $2, b.place + n.at::integer, n.event::jsonb
                          FROM before b CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS n (event, at)
                        RETURNING place),
                quoted AS (INSERT INTO okt_repository.answer_sources (repository_id, answer_no, source_id)
                           SELECT $1, $2, s.id FROM unnest($4::uuid[]) AS s (id) ON CONFLICT DO NOTHING)
           SELECT coalesce((SELECT max(place) FROM new), (SELECT place FROM before)) AS "last!""#,
        repository.uuid(),
        answer,
        &events,
        &there,
    );
    Ok(last.fetch_one(conn).await?)
}

/// Without the words of sources that are not there.
fn without_gone(mut event: AnswerEvent, there: &[Uuid]) -> AnswerEvent {
    let blank = |one: &mut Evidence| {
        if one.source.take_if(|source| !there.contains(&source.id.uuid())).is_some() {
            (one.quote, one.around) = (None, None);
            // Whether other sources make the fact as well nobody looks: it is a matter of a moment.
            one.text.clear();
        }
    };
    match &mut event {
        AnswerEvent::Evidence { facts, .. } => facts.iter_mut().for_each(blank),
        AnswerEvent::Disagreeing { facts, .. } => {
            facts.iter_mut().map(|one| &mut one.evidence).for_each(blank);
        }
        _ => {}
    }
    event
}

/// The sources whose words are in an event.
fn sources_of(event: &AnswerEvent) -> Vec<Uuid> {
    let id = |one: &Evidence| one.source.as_ref().map(|source| source.id.uuid());
    match event {
        AnswerEvent::Evidence { facts, .. } => facts.iter().filter_map(id).collect(),
        AnswerEvent::Disagreeing { facts, .. } => facts.iter().filter_map(|one| id(&one.evidence)).collect(),
        _ => Vec::new(),
    }
}

/// Takes the words of a source, which is deleted in this transaction, out of the evidence of all answers. A fact that other sources make as
/// well keeps its text; what sentences say stays.
#[tracing::instrument(level = "debug", name = "db.answer_events.forget_source", skip_all, fields(source.id = %source))]
pub async fn forget_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<()> {
    // As whoever deletes answers: those that have ended, then what they quote. Who writes one that runs may wait for this source.
    answers::hold_marks(conn, repository).await?;
    let ended = sqlx::query_scalar!(
        "SELECT a.no FROM okt_repository.answers a
          WHERE a.repository_id = $1 AND a.status <> 'running'
            AND a.no IN (SELECT q.answer_no FROM okt_repository.answer_sources q
                          WHERE q.repository_id = $1 AND q.source_id = $2)
          ORDER BY a.no FOR NO KEY UPDATE OF a",
        repository.uuid(),
        source.uuid(),
    );
    ended.fetch_all(&mut *conn).await?;
    let held = sqlx::query_scalar!(
        "SELECT answer_no FROM okt_repository.answer_sources
          WHERE repository_id = $1 AND source_id = $2 ORDER BY answer_no FOR UPDATE",
        repository.uuid(),
        source.uuid(),
    );
    held.fetch_all(&mut *conn).await?;
    let quoting = sqlx::query_scalar!(
        r#"WITH quoting AS (DELETE FROM okt_repository.answer_sources
                             WHERE repository_id = $1 AND source_id = $2 RETURNING answer_no),
                -- What models wrote of its words; a question that is asked again is answered without them.
                written AS (DELETE FROM okt_repository.model_answers m USING quoting q, okt_repository.answers a
                             WHERE a.repository_id = $1 AND a.no = q.answer_no
                               AND m.repository_id = $1 AND m.subject_kind = 'question' AND m.subject_id = a.id)
           UPDATE okt_repository.answer_events e
              SET event = jsonb_set(e.event, '{facts}', (
                      SELECT coalesce(jsonb_agg(
                                 CASE WHEN f.one #>> '{source,id}' IS DISTINCT FROM $2::uuid::text THEN f.one
                                      ELSE f.one || '{"quote": null, "around": null, "source": null}'::jsonb
                                           || CASE WHEN EXISTS (SELECT FROM okt_repository.facts k
                                                                 WHERE k.repository_id = $1 AND k.id = (f.one ->> 'fact')::uuid)
                                                   THEN '{}'::jsonb ELSE '{"text": ""}'::jsonb END
                                 END ORDER BY f.at), '[]')
                        FROM jsonb_array_elements(e.event -> 'facts') WITH ORDINALITY AS f (one, at)))
             FROM quoting q
            WHERE e.repository_id = $1 AND e.answer_no = q.answer_no AND e.event ->> 'event' IN ('evidence', 'disagreeing')
           RETURNING e.answer_no AS "no!""#,
        repository.uuid(),
        source.uuid(),
    );
    let quoting: BTreeSet<i64> = quoting.fetch_all(&mut *conn).await?.into_iter().collect();
    let quoting: Vec<i64> = quoting.into_iter().collect();
    answers::mark_passages(conn, repository, &quoting).await
}

/// The place of the last event of an answer; 0 if there is none.
#[tracing::instrument(level = "debug", name = "db.answer_events.last_place", skip_all)]
pub async fn last_place(conn: &mut PgConnection, repository: RepositoryId, answer: i64) -> Result<i32> {
    let last = sqlx::query_scalar!(
        r#"SELECT coalesce(max(place), 0) AS "last!" FROM okt_repository.answer_events
            WHERE repository_id = $1 AND answer_no = $2"#,
        repository.uuid(),
        answer,
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
