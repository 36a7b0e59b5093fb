//! The facts that answers cite: their words, and what became of them since.

use std::collections::{HashMap, HashSet};

use chrono::NaiveDate;
use okt_model::{
    AnswerFilters, AnswerId, Cited, EvidenceChange, EvidenceChanges, FactId, RepositoryId, SourceId,
    WebhookEvent,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::repository_locks::{self, RepositoryLock};
use crate::{source_marks, webhooks};
use okt_pg::Result;

/// The words of a source that a fact rests on.
#[derive(Clone, Debug)]
pub struct FactQuote {
    pub source: SourceId,
    pub title: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub language: Option<String>,
    pub quote: Option<String>,
    /// With the sentences before and behind.
    pub around: Option<String>,
    /// For PDFs, from 1.
    pub page: Option<i32>,
}

/// What the first source of each of these facts says, by the numbers of the facts: one that is asked for and not retracted, if there is any.
#[tracing::instrument(level = "debug", name = "db.answers.quote_facts", skip_all)]
pub async fn quote_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    filters: &AnswerFilters,
) -> Result<HashMap<i64, FactQuote>> {
    let sources: Vec<Uuid> = filters.source_ids.iter().copied().map(SourceId::uuid).collect();
    let rows = sqlx::query_file!(
        "src/sql/quote_facts.sql",
        repository.uuid(),
        facts,
        &sources,
        filters.published_from,
        filters.published_to,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let quote = FactQuote {
            source: row.source.into(),
            title: row.title,
            published_at: row.published_at,
            language: row.language,
            quote: row.quote,
            around: row.around,
            page: row.page,
        };
        (row.fact_no, quote)
    });
    Ok(rows.collect())
}

/// The facts that an answer cites, and those that it shows because they say otherwise. A fact that is cited stays so.
#[tracing::instrument(level = "debug", name = "db.answers.add_facts", skip_all)]
pub async fn add_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    facts: &[(i64, FactId)],
    is_cited: bool,
) -> Result<()> {
    let facts: HashMap<i64, FactId> = facts.iter().copied().collect();
    let (numbers, ids): (Vec<i64>, Vec<Uuid>) = facts.into_iter().map(|(no, id)| (no, id.uuid())).unzip();
    sqlx::query!(
        "INSERT INTO okt_repository.answer_facts AS f (repository_id, answer_no, fact_no, fact_id, is_cited)
         SELECT $1, $2, n.no, n.id, $5 FROM unnest($3::bigint[], $4::uuid[]) AS n (no, id) ORDER BY n.no
         ON CONFLICT (repository_id, answer_no, fact_no) DO UPDATE SET is_cited = f.is_cited OR excluded.is_cited",
        repository.uuid(),
        answer,
        &numbers,
        &ids,
        is_cited,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What became of the facts and passages that answers cite, since they were asked.
#[tracing::instrument(level = "debug", name = "db.answers.list_changes", skip_all)]
pub async fn list_changes(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answers: &[i64],
) -> Result<EvidenceChanges> {
    let rows = sqlx::query!(
        r#"SELECT a.answer_no, a.fact_id, c.no AS "now?", coalesce(c.status = 'rejected', false) AS "rejected!",
                  EXISTS (SELECT FROM (SELECT a.fact_no AS no UNION
                                       -- What it was merged into since, and what else was.
                                       SELECT m.no FROM okt_repository.facts m
                                        WHERE m.repository_id = $1 AND (m.no = c.no OR m.merged_into = c.no)) AS own
                           CROSS JOIN LATERAL (SELECT p.other_no AS no, p.found_at, p.difference, p.judged_by
                                                 FROM okt_repository.fact_contradictions p
                                                WHERE p.repository_id = $1 AND p.fact_no = own.no
                                                UNION ALL
                                               SELECT p.fact_no, p.found_at, p.difference, p.judged_by
                                                 FROM okt_repository.fact_contradictions p
                                                WHERE p.repository_id = $1 AND p.other_no = own.no) AS x
                            JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = x.no AND o.status <> 'rejected'
                           WHERE coalesce(o.merged_into, o.no) <> c.no
                             AND x.found_at > w.created_at AND x.difference <> 'judged'
                             AND (x.difference NOT IN ('name', 'wording') OR x.judged_by IS NOT NULL)
                             AND NOT EXISTS (SELECT FROM okt_repository.answer_facts k
                                              WHERE k.repository_id = $1 AND k.answer_no = a.answer_no
                                                AND k.fact_no = coalesce(o.merged_into, o.no) AND NOT k.is_cited)
                             AND okt_repository.contradiction_state($1, least(c.no, coalesce(o.merged_into, o.no)),
                                                                    greatest(c.no, coalesce(o.merged_into, o.no)))
                                 IS DISTINCT FROM 'not_a_contradiction') AS "contradicted!"
             FROM okt_repository.answer_facts a
             JOIN okt_repository.answers w ON w.repository_id = $1 AND w.no = a.answer_no
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no
             LEFT JOIN okt_repository.facts c ON c.repository_id = $1 AND c.no = coalesce(f.merged_into, f.no)
            WHERE a.repository_id = $1 AND a.answer_no = ANY ($2) AND a.is_cited
            ORDER BY a.answer_no, a.fact_no"#,
        repository.uuid(),
        answers,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let numbers: Vec<i64> = rows.iter().filter_map(|row| row.now).collect();
    let retracted = source_marks::list_retracted_facts(conn, repository, &numbers).await?;
    let mut changes = EvidenceChanges::new();
    for row in rows {
        let change = match row.now {
            None => EvidenceChange::Removed,
            Some(_) if row.rejected => EvidenceChange::Rejected,
            Some(no) if retracted.contains(&no) => EvidenceChange::Retracted,
            Some(_) if row.contradicted => EvidenceChange::Contradicted,
            Some(_) => continue,
        };
        changes.entry(row.answer_no).or_default().push((Cited::Fact(row.fact_id.into()), change));
    }
    for (answer, key, change) in list_changed_passages(conn, repository, answers).await? {
        changes.entry(answer).or_default().push((Cited::Passage(key), change));
    }
    Ok(changes)
}

/// The passages that answers cite and whose sources were retracted or deleted: the answers, and the keys. No row says which they are; they
/// are the keys of a sentence that stand for no fact.
async fn list_changed_passages(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answers: &[i64],
) -> Result<Vec<(i64, String, EvidenceChange)>> {
    let rows = sqlx::query!(
        r#"SELECT DISTINCT s.answer_no AS "answer_no!", f.one ->> 'key' AS "key!", o.no IS NULL AS "removed!"
             FROM okt_repository.answer_events s
             JOIN okt_repository.answer_events e
               ON e.repository_id = $1 AND e.answer_no = s.answer_no AND e.event ->> 'event' = 'evidence'
            CROSS JOIN LATERAL jsonb_array_elements(e.event -> 'facts') AS f (one)
             -- Its source is taken out of the evidence when it is deleted.
             LEFT JOIN okt_repository.sources o
                    ON o.repository_id = $1 AND o.id = (f.one #>> '{source,id}')::uuid
             LEFT JOIN okt_repository.source_marks m
                    ON m.repository_id = $1 AND m.source_no = o.no AND m.kind = 'retracted'
            WHERE s.repository_id = $1 AND s.answer_no = ANY ($2) AND s.event ->> 'event' = 'sentence'
              AND jsonb_array_length(s.event -> 'keys') > jsonb_array_length(s.event -> 'facts')
              AND f.one ->> 'kind' = 'passage' AND s.event -> 'keys' ? (f.one ->> 'key')
              AND (o.no IS NULL OR m.source_no IS NOT NULL)
            ORDER BY 1, 2"#,
        repository.uuid(),
        answers,
    );
    let changed = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let change = if row.removed { EvidenceChange::Removed } else { EvidenceChange::Retracted };
        (row.answer_no, row.key, change)
    });
    Ok(changed.collect())
}

/// Those of these facts that still stand, by their numbers: they are there, and neither they nor what they were merged into is rejected
/// or rests on retracted sources alone.
#[tracing::instrument(level = "debug", name = "db.answers.list_standing", skip_all)]
pub async fn list_standing(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashSet<i64>> {
    let rows = sqlx::query!(
        r#"SELECT f.no, c.no AS now
             FROM okt_repository.facts f
             JOIN okt_repository.facts c ON c.repository_id = $1 AND c.no = coalesce(f.merged_into, f.no)
            WHERE f.repository_id = $1 AND f.no = ANY ($2) AND c.status <> 'rejected'"#,
        repository.uuid(),
        facts,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let now: Vec<i64> = rows.iter().map(|row| row.now).collect();
    let retracted = source_marks::list_retracted_facts(conn, repository, &now).await?;
    Ok(rows.into_iter().filter(|row| !retracted.contains(&row.now)).map(|row| row.no).collect())
}

/// Answers are marked in turns, and no written one ends meanwhile: what is noted while an answer ends, one of the two sees. Whoever holds
/// this waits for no answer that runs, as those who write them wait for it, and may hold sources.
pub(crate) async fn hold_marks(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::hold(conn, repository, RepositoryLock::AnswerMarks).await
}

/// Marks the answers that cite one of these facts, if what they cite is not what it was, and unmarks those where it is again. Returns
/// those that are marked anew; webhooks are told of each.
#[tracing::instrument(level = "debug", name = "db.answers.mark_changed", skip_all)]
pub async fn mark_changed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<Vec<AnswerId>> {
    hold_marks(conn, repository).await?;
    let citing = sqlx::query_scalar!(
        r#"SELECT n.no AS "no!" FROM (SELECT a.answer_no AS no FROM okt_repository.answer_facts a
                                     WHERE a.repository_id = $1 AND a.fact_no = ANY ($2) AND a.is_cited
                                     UNION
                                    SELECT a.answer_no FROM okt_repository.facts f
                                      JOIN okt_repository.answer_facts a
                                        ON a.repository_id = $1 AND a.fact_no = f.no AND a.is_cited
                                     WHERE f.repository_id = $1 AND f.merged_into = ANY ($2)) AS n
            ORDER BY n.no"#,
        repository.uuid(),
        facts,
    );
    let citing = citing.fetch_all(&mut *conn).await?;
    mark(conn, repository, &citing).await
}

/// As [`mark_changed`], of the answers that quote one of these sources: what is a passage changes with its source, and no fact does.
pub(crate) async fn mark_quoting(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[Uuid],
) -> Result<()> {
    hold_marks(conn, repository).await?;
    let quoting = sqlx::query_scalar!(
        r#"SELECT DISTINCT answer_no AS "no!" FROM okt_repository.answer_sources
            WHERE repository_id = $1 AND source_id = ANY ($2) ORDER BY 1"#,
        repository.uuid(),
        sources,
    );
    let quoting = quoting.fetch_all(&mut *conn).await?;
    mark_passages(conn, repository, &quoting).await
}

/// As [`mark_changed`], of those of these answers that cite a passage, by who has held the marks. There may be any number of others, which only had one to choose from.
pub(crate) async fn mark_passages(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answers: &[i64],
) -> Result<()> {
    let citing = sqlx::query_scalar!(
        r#"SELECT n.no AS "no!" FROM unnest($2::bigint[]) AS n (no)
            WHERE EXISTS (SELECT FROM okt_repository.answer_events s
                           WHERE s.repository_id = $1 AND s.answer_no = n.no AND s.event ->> 'event' = 'sentence'
                             AND jsonb_array_length(s.event -> 'keys') > jsonb_array_length(s.event -> 'facts'))
            ORDER BY n.no"#,
        repository.uuid(),
        answers,
    );
    let citing = citing.fetch_all(&mut *conn).await?;
    mark(conn, repository, &citing).await?;
    Ok(())
}

/// As [`mark_changed`], of these answers, by who has held the marks. One that runs is marked when it ends: whoever writes it holds its row, and may wait for a source.
pub(super) async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answers: &[i64],
) -> Result<Vec<AnswerId>> {
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    let changes = list_changes(conn, repository, answers).await?;
    let other: Vec<i64> = changes.into_keys().collect();
    // In the order in which they are deleted.
    let held = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.answers
          WHERE repository_id = $1 AND no = ANY ($2) AND status <> 'running' ORDER BY no FOR NO KEY UPDATE",
        repository.uuid(),
        answers,
    );
    held.fetch_all(&mut *conn).await?;
    let marked = sqlx::query_scalar!(
        "UPDATE okt_repository.answers
            SET evidence_changed_at = CASE WHEN no = ANY ($3) THEN clock_timestamp() END
          WHERE repository_id = $1 AND no = ANY ($2) AND (no = ANY ($3)) = (evidence_changed_at IS NULL)
            AND status <> 'running'
         RETURNING CASE WHEN no = ANY ($3) THEN id END",
        repository.uuid(),
        answers,
        &other,
    );
    let marked = marked.fetch_all(&mut *conn).await?.into_iter();
    let marked: Vec<AnswerId> = marked.flatten().map(AnswerId::from).collect();
    for id in &marked {
        let (event, page) = (WebhookEvent::AnswerEvidenceChanged, format!("answers/{id}"));
        webhooks::announce(conn, repository, event, &page, &serde_json::json!({ "answer_id": id })).await?;
    }
    Ok(marked)
}
