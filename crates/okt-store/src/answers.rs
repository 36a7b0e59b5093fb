//! Rows of `okt_repository.answers` and `okt_repository.answer_facts`: questions, how they are answered, and which facts the answers
//! cite. What an answer says is in [`answer_events`](crate::answer_events).
//!
//! Whoever adds to an answer holds its row while it runs ([`hold_running`]); one that has ended is changed by nobody but its owner.

mod ending;
mod facts;
mod spending;

use chrono::{DateTime, Utc};
use okt_model::{
    Answer, AnswerFilters, AnswerId, AnswerMode, AnswerStatus, ConversationId, Cost, Error, JobId, Money,
    RepositoryId, Subject, SubjectKind, UserId, WebhookEvent, WhyExtractive,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::model_answers::{self, signed, unsigned};
use crate::webhooks;
use crate::words::word;
use okt_pg::Result;

pub use ending::break_off;
use facts::mark;
pub use facts::{FactQuote, add_facts, list_changes, list_standing, mark_changed, quote_facts};
pub(crate) use facts::{hold_marks, mark_passages, mark_quoting};
pub use spending::{costs, count_today, list_unsettled, settle, spent_today};

/// A question that is going to be answered.
#[derive(Clone, Debug)]
pub struct NewAnswer<'a> {
    pub id: AnswerId,
    pub asked_by: UserId,
    pub conversation: Option<i64>,
    pub job: Option<JobId>,
    pub question: &'a str,
    pub searched: &'a str,
    pub filters: &'a AnswerFilters,
    pub language: Option<&'a str>,
    pub mode_asked: AnswerMode,
    pub mode: AnswerMode,
    pub why_extractive: Option<WhyExtractive>,
    pub model: Option<&'a str>,
    pub check_model: Option<&'a str>,
    pub ask_version: i16,
    pub fingerprint: [u8; 32],
    /// Hashes of an Idempotency-Key and of the request that came with it.
    pub request: Option<([u8; 32], [u8; 32])>,
    pub shared: bool,
    pub max_cost: Money,
}

/// How an answer ended.
#[derive(Clone, Debug)]
pub struct AnswerEnd {
    pub status: AnswerStatus,
    pub mode: AnswerMode,
    pub why_extractive: Option<WhyExtractive>,
    pub cached: bool,
    pub cost: Cost,
    pub calls: u32,
    pub sentences: u32,
    /// It was written and checked to its end, so it may be given again.
    pub whole: bool,
}

/// Which answers are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerFilter {
    /// Only those that everybody may see, or only one's own.
    pub shared: Option<bool>,
    /// The number of a conversation.
    pub conversation: Option<i64>,
}

/// Returns the number.
#[tracing::instrument(level = "debug", name = "db.answers.insert", skip_all, fields(answer.id = %new.id))]
pub async fn insert(conn: &mut PgConnection, repository: RepositoryId, new: &NewAnswer<'_>) -> Result<i64> {
    let filters = serde_json::to_string(new.filters).map_err(Error::internal)?;
    let no = sqlx::query_scalar!(
        r#"WITH new AS (
               INSERT INTO okt_repository.answers
                      (repository_id, id, asked_by, conversation_no, job_id, question, searched, filters, language, mode_asked, mode,
                       why_extractive, model, check_model, ask_version, fingerprint, status, shared, max_micro_usd, request_key,
                       request_hash)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14, $15, $16, 'running', $17, $18,
                       $19, $20)
               RETURNING no, id, asked_by, created_at, max_micro_usd),
           reserved AS (
               INSERT INTO okt_repository.answer_spending (repository_id, answer_id, person, day, max_micro_usd)
               SELECT $1, n.id, n.asked_by, (n.created_at AT TIME ZONE 'UTC')::date, n.max_micro_usd
                 FROM new n WHERE n.max_micro_usd > 0),
           counted AS (
               INSERT INTO okt_repository.answer_days AS d (repository_id, person, day, count)
               SELECT $1, n.asked_by, (n.created_at AT TIME ZONE 'UTC')::date, 1 FROM new n
               ON CONFLICT (repository_id, person, day) DO UPDATE SET count = d.count + 1),
           old_days AS (
               DELETE FROM okt_repository.answer_days
                WHERE repository_id = $1 AND person = $3 AND day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 7),
           -- What was spent a week ago counts nowhere any more.
           old AS (
               DELETE FROM okt_repository.answer_spending
                WHERE repository_id = $1 AND person = $3 AND day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 7)
           SELECT no AS "no!" FROM new"#,
        repository.uuid(),
        new.id.uuid(),
        new.asked_by.uuid(),
        new.conversation,
        new.job.map(JobId::uuid),
        new.question,
        new.searched,
        filters,
        new.language,
        new.mode_asked.as_str(),
        new.mode.as_str(),
        new.why_extractive.map(WhyExtractive::as_str),
        new.model,
        new.check_model,
        new.ask_version,
        &new.fingerprint[..],
        new.shared,
        new.max_cost.micros(),
        new.request.as_ref().map(|(key, _)| &key[..]),
        new.request.as_ref().map(|(_, hash)| &hash[..]),
    );
    Ok(no.fetch_one(conn).await?)
}

/// The answer that a person has asked for with this key in the last day, and the hash of the request. An older key is free again.
#[tracing::instrument(level = "debug", name = "db.answers.find_requested", skip_all)]
pub async fn find_requested(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    key: [u8; 32],
) -> Result<Option<(AnswerId, Vec<u8>)>> {
    sqlx::query!(
        "UPDATE okt_repository.answers SET request_key = NULL
          WHERE repository_id = $1 AND asked_by = $2 AND request_key = $3
            AND created_at < clock_timestamp() - interval '24 hours'",
        repository.uuid(),
        person.uuid(),
        &key[..],
    )
    .execute(&mut *conn)
    .await?;
    let found = sqlx::query!(
        "SELECT id, request_hash FROM okt_repository.answers
          WHERE repository_id = $1 AND asked_by = $2 AND request_key = $3",
        repository.uuid(),
        person.uuid(),
        &key[..],
    );
    let found = found.fetch_optional(conn).await?;
    Ok(found.map(|row| (row.id.into(), row.request_hash.unwrap_or_default())))
}

/// One that a person may see: their own, or one that is shared. Of a shared one, the conversation it was asked in, and what was added to
/// the question from there, is nobody else's business.
#[tracing::instrument(level = "debug", name = "db.answers.find", skip_all, fields(answer.id = %id))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: AnswerId,
    person: UserId,
) -> Result<Option<Answer>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT a.id, a.no, a.asked_by, c.id AS "conversation?", a.job_id, a.question,
                  CASE WHEN a.asked_by = $3 THEN a.searched ELSE a.question END AS "searched!", a.filters::text AS "filters!",
                  a.language, a.mode_asked, a.mode, a.why_extractive, a.model, a.check_model, a.ask_version, a.status, a.shared,
                  a.cached, a.max_micro_usd, a.micro_usd, a.tokens_in, a.tokens_out, a.calls, a.sentence_count,
                  a.evidence_changed_at, a.created_at, a.finished_at
             FROM okt_repository.answers a
             LEFT JOIN okt_repository.conversations c
                    ON c.repository_id = $1 AND c.no = a.conversation_no AND a.asked_by = $3
            WHERE a.repository_id = $1 AND a.id = $2 AND (a.asked_by = $3 OR a.shared)"#,
        repository.uuid(),
        id.uuid(),
        person.uuid(),
    );
    row.fetch_optional(conn).await?.map(Answer::try_from).transpose()
}

/// One that runs, whoever asked; nobody else adds to it or ends it until the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.answers.hold_running", skip_all, fields(answer.id = %id))]
pub async fn hold_running(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: AnswerId,
) -> Result<Option<Answer>> {
    let held = sqlx::query_scalar!(
        "SELECT asked_by FROM okt_repository.answers
          WHERE repository_id = $1 AND id = $2 AND status = 'running' FOR UPDATE",
        repository.uuid(),
        id.uuid(),
    );
    let Some(person) = held.fetch_optional(&mut *conn).await? else { return Ok(None) };
    find(conn, repository, id, person.into()).await
}

/// Those that a person may see, the newest first, from before one on.
#[tracing::instrument(level = "debug", name = "db.answers.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    filter: AnswerFilter,
    before: Option<AnswerId>,
    limit: i64,
) -> Result<Vec<Answer>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT a.id, a.no, a.asked_by, c.id AS "conversation?", a.job_id, a.question,
                  CASE WHEN a.asked_by = $2 THEN a.searched ELSE a.question END AS "searched!", a.filters::text AS "filters!",
                  a.language, a.mode_asked, a.mode, a.why_extractive, a.model, a.check_model, a.ask_version, a.status, a.shared,
                  a.cached, a.max_micro_usd, a.micro_usd, a.tokens_in, a.tokens_out, a.calls, a.sentence_count,
                  a.evidence_changed_at, a.created_at, a.finished_at
             FROM ((SELECT o.id FROM okt_repository.answers o
                     WHERE o.repository_id = $1 AND o.asked_by = $2 AND $3::boolean IS NOT TRUE
                       AND ($4::bigint IS NULL OR o.conversation_no = $4)
                       AND o.id < coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                     ORDER BY o.id DESC LIMIT $6)
                    UNION
                   (SELECT o.id FROM okt_repository.answers o
                     WHERE o.repository_id = $1 AND o.shared AND $3::boolean IS NOT FALSE
                       AND ($4::bigint IS NULL OR o.conversation_no = $4)
                       AND o.id < coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                     ORDER BY o.id DESC LIMIT $6)) AS n
             JOIN okt_repository.answers a ON a.repository_id = $1 AND a.id = n.id
             LEFT JOIN okt_repository.conversations c
                    ON c.repository_id = $1 AND c.no = a.conversation_no AND a.asked_by = $2
            ORDER BY a.id DESC LIMIT $6"#,
        repository.uuid(),
        person.uuid(),
        filter.shared,
        filter.conversation,
        before.map(AnswerId::uuid),
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Answer::try_from).collect()
}

/// How many answers of a person run, and how many of the repository.
#[tracing::instrument(level = "debug", name = "db.answers.count_running", skip_all)]
pub async fn count_running(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
) -> Result<(i64, i64)> {
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE asked_by = $2) AS "own!", count(*) AS "all!"
             FROM okt_repository.answers WHERE repository_id = $1 AND status = 'running'"#,
        repository.uuid(),
        person.uuid(),
    );
    let row = row.fetch_one(conn).await?;
    Ok((row.own, row.all))
}

/// The oldest of those that run, whoever asked.
#[tracing::instrument(level = "debug", name = "db.answers.list_running", skip_all)]
pub async fn list_running(
    conn: &mut PgConnection,
    repository: RepositoryId,
    limit: i64,
) -> Result<Vec<Answer>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT a.id, a.no, a.asked_by, NULL::uuid AS "conversation?", a.job_id, a.question, a.searched,
                  a.filters::text AS "filters!", a.language, a.mode_asked, a.mode, a.why_extractive, a.model, a.check_model,
                  a.ask_version, a.status, a.shared, a.cached, a.max_micro_usd, a.micro_usd, a.tokens_in, a.tokens_out, a.calls,
                  a.sentence_count, a.evidence_changed_at, a.created_at, a.finished_at
             FROM okt_repository.answers a
            WHERE a.repository_id = $1 AND a.status = 'running' ORDER BY a.no LIMIT $2"#,
        repository.uuid(),
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Answer::try_from).collect()
}

/// The last answer to the same question of the same person from the same evidence, if it came to an end.
#[tracing::instrument(level = "debug", name = "db.answers.find_same", skip_all)]
pub async fn find_same(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    fingerprint: [u8; 32],
) -> Result<Option<Answer>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT a.id, a.no, a.asked_by, NULL::uuid AS "conversation?", a.job_id, a.question, a.searched,
                  a.filters::text AS "filters!", a.language, a.mode_asked, a.mode, a.why_extractive, a.model, a.check_model,
                  a.ask_version, a.status, a.shared, a.cached, a.max_micro_usd, a.micro_usd, a.tokens_in, a.tokens_out, a.calls,
                  a.sentence_count, a.evidence_changed_at, a.created_at, a.finished_at
             FROM okt_repository.answers a
            WHERE a.repository_id = $1 AND a.asked_by = $2 AND a.fingerprint = $3
              AND a.status IN ('answered', 'partly', 'abstained', 'extractive') AND a.is_whole
            ORDER BY a.no DESC LIMIT 1"#,
        repository.uuid(),
        person.uuid(),
        &fingerprint[..],
    );
    row.fetch_optional(conn).await?.map(Answer::try_from).transpose()
}

/// Ends one that runs; false when it has ended. With it, in the same transaction, goes its last event. Every end comes by here, so webhooks
/// are told of it.
#[tracing::instrument(level = "debug", name = "db.answers.end", skip_all)]
pub async fn end(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answer: i64,
    end: &AnswerEnd,
) -> Result<bool> {
    // By who holds its row, and no source. One without a job begins in this transaction, which may hold sources whose deletion waits for it
    // and holds the marks: it does not wait. A mark of the same moment it may not be told of; whoever reads it sees what changed.
    let written = sqlx::query_scalar!(
        r#"SELECT job_id IS NOT NULL AS "written!" FROM okt_repository.answers WHERE repository_id = $1 AND no = $2"#,
        repository.uuid(),
        answer,
    );
    if written.fetch_optional(&mut *conn).await? == Some(true) {
        hold_marks(conn, repository).await?;
    }
    // What was on the wire when it was stopped is not told of yet.
    let settled = !matches!(end.status, AnswerStatus::Cancelled | AnswerStatus::Failed);
    let ended = sqlx::query_scalar!(
        r#"WITH ended AS (
               UPDATE okt_repository.answers
                  SET status = $3, mode = $4, why_extractive = $5, cached = $6, micro_usd = $7, tokens_in = $8, tokens_out = $9,
                      calls = $10, sentence_count = $11, is_whole = $12, finished_at = clock_timestamp()
                WHERE repository_id = $1 AND no = $2 AND status = 'running'
               RETURNING id),
           spent AS (
               UPDATE okt_repository.answer_spending s
                  SET ended_at = clock_timestamp(), micro_usd = CASE WHEN $13 THEN $7::bigint END
                 FROM ended e WHERE s.repository_id = $1 AND s.answer_id = e.id)
           SELECT id AS "id!" FROM ended"#,
        repository.uuid(),
        answer,
        end.status.as_str(),
        end.mode.as_str(),
        end.why_extractive.map(WhyExtractive::as_str),
        end.cached,
        end.cost.usd.micros(),
        signed(end.cost.tokens_in),
        signed(end.cost.tokens_out),
        i32::try_from(end.calls).unwrap_or(i32::MAX),
        i32::try_from(end.sentences).unwrap_or(i32::MAX),
        end.whole,
        settled,
    );
    let Some(id) = ended.fetch_optional(&mut *conn).await?.map(AnswerId::from) else { return Ok(false) };
    let data =
        serde_json::json!({ "answer_id": id, "status": end.status.as_str(), "sentences": end.sentences });
    webhooks::announce(conn, repository, WebhookEvent::AnswerDone, &format!("answers/{id}"), &data).await?;
    // What changed while it was written was noted before it cited anything.
    mark(conn, repository, &[answer]).await?;
    Ok(true)
}

/// Shows it to everybody who may read facts, or to its owner alone; false when it is not theirs.
#[tracing::instrument(level = "debug", name = "db.answers.share", skip_all, fields(answer.id = %id))]
pub async fn share(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: AnswerId,
    person: UserId,
    shared: bool,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.answers SET shared = $4 WHERE repository_id = $1 AND id = $2 AND asked_by = $3",
        repository.uuid(),
        id.uuid(),
        person.uuid(),
        shared,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Whether an answer is there, which stays until the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.answers.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, answer: i64) -> Result<bool> {
    let held = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.answers WHERE repository_id = $1 AND no = $2 FOR KEY SHARE",
        repository.uuid(),
        answer,
    );
    Ok(held.fetch_optional(conn).await?.is_some())
}

/// Removes answers of a person: one, or all of a conversation, which is given by its number. Returns their ids, and the jobs of those
/// that ran.
#[tracing::instrument(level = "debug", name = "db.answers.delete", skip_all)]
pub async fn delete(
    conn: &mut PgConnection,
    repository: RepositoryId,
    person: UserId,
    id: Option<AnswerId>,
    conversation: Option<i64>,
) -> Result<Vec<(AnswerId, Option<JobId>)>> {
    // Somebody who just adds to them is waited for, and what they add is seen below. Those that run come first: who adds to one may wait for
    // a source, and who deletes that for an answer that has ended.
    let held = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.answers
          WHERE repository_id = $1 AND asked_by = $2 AND (id = $3 OR conversation_no = $4)
          ORDER BY status <> 'running', no FOR UPDATE",
        repository.uuid(),
        person.uuid(),
        id.map(AnswerId::uuid),
        conversation,
    );
    let held = held.fetch_all(&mut *conn).await?;
    // As whoever deletes a source that they quote.
    let quoting = sqlx::query_scalar!(
        "SELECT answer_no FROM okt_repository.answer_sources
          WHERE repository_id = $1 AND answer_no = ANY ($2) ORDER BY answer_no, source_id FOR UPDATE",
        repository.uuid(),
        &held,
    );
    quoting.fetch_all(&mut *conn).await?;
    let rows = sqlx::query!(
        r#"WITH gone AS (DELETE FROM okt_repository.answers
                          WHERE repository_id = $1 AND asked_by = $2 AND (id = $3 OR conversation_no = $4)
                         RETURNING id, no, job_id, status),
                events AS (DELETE FROM okt_repository.answer_events
                            WHERE repository_id = $1 AND answer_no IN (SELECT no FROM gone)),
                sources AS (DELETE FROM okt_repository.answer_sources
                             WHERE repository_id = $1 AND answer_no IN (SELECT no FROM gone)),
                facts AS (DELETE FROM okt_repository.answer_facts
                           WHERE repository_id = $1 AND answer_no IN (SELECT no FROM gone)),
                said AS (DELETE FROM okt_repository.answer_feedback
                          WHERE repository_id = $1 AND answer_no IN (SELECT no FROM gone)),
                spent AS (UPDATE okt_repository.answer_spending SET ended_at = clock_timestamp()
                           WHERE repository_id = $1 AND answer_id IN (SELECT id FROM gone) AND ended_at IS NULL)
           SELECT id AS "id!", CASE WHEN status = 'running' THEN job_id END AS job FROM gone"#,
        repository.uuid(),
        person.uuid(),
        id.map(AnswerId::uuid),
        conversation,
    );
    let rows = rows.fetch_all(&mut *conn).await?.into_iter();
    let gone: Vec<(AnswerId, Option<JobId>)> =
        rows.map(|row| (row.id.into(), row.job.map(JobId::from))).collect();
    // What models wrote for them goes with them.
    for (id, _) in &gone {
        model_answers::forget(conn, repository, Subject::new(SubjectKind::Question, id.uuid())).await?;
    }
    Ok(gone)
}

struct Row {
    id: Uuid,
    no: i64,
    asked_by: Uuid,
    conversation: Option<Uuid>,
    job_id: Option<Uuid>,
    question: String,
    searched: String,
    filters: String,
    language: Option<String>,
    mode_asked: String,
    mode: String,
    why_extractive: Option<String>,
    model: Option<String>,
    check_model: Option<String>,
    ask_version: i16,
    status: String,
    shared: bool,
    cached: bool,
    max_micro_usd: i64,
    micro_usd: i64,
    tokens_in: i64,
    tokens_out: i64,
    calls: i32,
    sentence_count: i32,
    evidence_changed_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for Answer {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        let why = row.why_extractive.as_deref().map(|why| word("answers.why_extractive", why)).transpose()?;
        Ok(Self {
            id: row.id.into(),
            no: row.no,
            asked_by: row.asked_by.into(),
            conversation: row.conversation.map(ConversationId::from),
            job: row.job_id.map(JobId::from),
            question: row.question,
            searched: row.searched,
            filters: serde_json::from_str(&row.filters).map_err(Error::internal)?,
            language: row.language,
            mode_asked: word("answers.mode_asked", &row.mode_asked)?,
            mode: word("answers.mode", &row.mode)?,
            why_extractive: why,
            model: row.model,
            check_model: row.check_model,
            ask_version: row.ask_version,
            status: word("answers.status", &row.status)?,
            shared: row.shared,
            cached: row.cached,
            max_cost: Money::from_micros(row.max_micro_usd),
            cost: Cost {
                tokens_in: unsigned(row.tokens_in),
                tokens_out: unsigned(row.tokens_out),
                usd: Money::from_micros(row.micro_usd),
            },
            calls: row.calls,
            sentence_count: row.sentence_count,
            evidence_changed_at: row.evidence_changed_at,
            created_at: row.created_at,
            finished_at: row.finished_at,
        })
    }
}
