//! Rows of `okt_repository.model_answers`: what models have answered, by what they were asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_model::{
    CallId, CallOutcome, ContentHash, Error, JobId, ModelCall, Money, Operation, RepositoryId, Subject,
    SubjectKind,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::words::word;
use okt_pg::Result;

/// What is asked to write an answer.
const WRITING: [Operation; 3] =
    [Operation::EvidenceScoring, Operation::AnswerWriting, Operation::AnswerRepair];

/// An answer, with the call that it cost.
#[derive(Clone, Debug)]
pub struct ModelAnswer {
    pub key: ContentHash,
    pub answer: String,
    pub call: ModelCall,
}

/// Keeps them, each in place of what was answered to the same question before. Not for a source, nor what was written of an
/// answer, that was removed meanwhile.
#[tracing::instrument(level = "debug", name = "db.model_answers.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    answers: &[&ModelAnswer],
) -> Result<()> {
    let (mut keys, mut calls, mut jobs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kinds, mut subjects, mut sources) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut asked = BTreeSet::new();
    let (mut models, mut operations, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut tokens_in, mut tokens_out, mut usd) = (Vec::new(), Vec::new(), Vec::new());
    let (mut latencies, mut retries, mut characters) = (Vec::new(), Vec::new(), Vec::new());
    // One for a question: the last.
    let answers: BTreeMap<ContentHash, &ModelAnswer> =
        answers.iter().map(|answer| (answer.key, *answer)).collect();
    for ModelAnswer { key, answer, call } in answers.into_values() {
        keys.push(key.0.to_vec());
        let subject = call.subject.ok_or_else(|| Error::internal("an answer without a subject"))?;
        sources.extend(subject.id_of(SubjectKind::Source));
        // Others ask questions that are kept nowhere.
        if WRITING.contains(&call.operation) {
            asked.extend(subject.id_of(SubjectKind::Question));
        }
        kinds.push(subject.kind.as_str().to_owned());
        subjects.push(subject.id);
        calls.push(call.id.uuid());
        jobs.push(call.job.map(JobId::uuid));
        models.push(call.model.clone());
        operations.push(call.operation.as_str().to_owned());
        texts.push(answer.clone());
        tokens_in.push(signed(call.tokens_in));
        tokens_out.push(signed(call.tokens_out));
        usd.push(call.usd.micros());
        latencies.push(signed(call.latency_ms));
        retries.push(i32::try_from(call.retries).unwrap_or(i32::MAX));
        characters.push(signed(call.characters));
    }
    // Each once, and everybody in the same order.
    let sources: Vec<Uuid> = sources.into_iter().collect();
    let asked: Vec<Uuid> = asked.into_iter().collect();
    sqlx::query!(
        // One by one: asked for all at once, PostgreSQL reads every source of the repository as long as it has not counted
        // them. And by a select of their own, which hides how many they are: else it makes a new plan for every batch of
        // few, which takes it longer than to keep them.
        "WITH there AS (SELECT s.id FROM unnest((SELECT $16::uuid[])) AS w (id)
                         CROSS JOIN LATERAL (SELECT o.id FROM okt_repository.sources o
                                              WHERE o.repository_id = $1 AND o.id = w.id FOR KEY SHARE) s),
              asked AS (SELECT s.id FROM unnest((SELECT $17::uuid[])) AS w (id)
                         CROSS JOIN LATERAL (SELECT o.id FROM okt_repository.answers o
                                              WHERE o.repository_id = $1 AND o.id = w.id FOR KEY SHARE) s)
         INSERT INTO okt_repository.model_answers AS a
                (repository_id, key, subject_kind, subject_id, call_id, job_id, model, operation, answer, tokens_in, tokens_out,
                 micro_usd, latency_ms, retries, characters)
         SELECT $1, n.* FROM unnest($2::bytea[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::text[],
                                    $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
                                    $14::integer[], $15::bigint[]) AS n (key, kind, subject)
          WHERE (n.kind <> 'source' OR n.subject IN (SELECT id FROM there))
            AND (n.subject <> ALL ($17::uuid[]) OR n.subject IN (SELECT id FROM asked))
          ORDER BY n.key
         ON CONFLICT (repository_id, key) DO UPDATE
            SET subject_kind = excluded.subject_kind, subject_id = excluded.subject_id, call_id = excluded.call_id, job_id = excluded.job_id,
                answer = excluded.answer, tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out,
                micro_usd = excluded.micro_usd, latency_ms = excluded.latency_ms, retries = excluded.retries,
                characters = excluded.characters, created_at = excluded.created_at",
        repository.uuid(),
        &keys,
        &kinds,
        &subjects,
        &calls,
        &jobs as &[Option<Uuid>],
        &models,
        &operations,
        &texts,
        &tokens_in,
        &tokens_out,
        &usd,
        &latencies,
        &retries,
        &characters,
        &sources,
        &asked,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Those of these questions that were answered.
#[tracing::instrument(level = "debug", name = "db.model_answers.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    keys: &[ContentHash],
) -> Result<HashMap<ContentHash, ModelAnswer>> {
    let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.0.to_vec()).collect();
    let rows = sqlx::query!(
        "SELECT a.key, a.subject_kind, a.subject_id, a.call_id, a.job_id, a.model, a.operation, a.answer, a.tokens_in, a.tokens_out, a.micro_usd,
                a.latency_ms, a.retries, a.characters
           FROM okt_repository.model_answers a WHERE a.repository_id = $1 AND a.key = ANY ($2)",
        repository.uuid(),
        &keys,
    )
    .fetch_all(conn)
    .await?;
    let mut found = HashMap::new();
    for row in rows {
        let key = ContentHash::try_from(row.key.as_slice()).map_err(Error::internal)?;
        let call = ModelCall {
            id: CallId::from(row.call_id),
            repository,
            subject: Subject::from_columns(Some(&row.subject_kind), Some(row.subject_id)),
            job: row.job_id.map(JobId::from),
            operation: word("model_answers.operation", &row.operation)?,
            model: row.model,
            outcome: CallOutcome::Ok,
            tokens_in: unsigned(row.tokens_in),
            tokens_out: unsigned(row.tokens_out),
            usd: Money::from_micros(row.micro_usd),
            latency_ms: unsigned(row.latency_ms),
            retries: u32::try_from(row.retries).unwrap_or(0),
            characters: unsigned(row.characters),
        };
        found.insert(key, ModelAnswer { key, answer: row.answer, call });
    }
    Ok(found)
}

/// Forgets what was asked about a subject. With the transaction that removes it: nobody would come for them later.
#[tracing::instrument(level = "debug", name = "db.model_answers.forget", skip_all, fields(subject.id = %subject.id))]
pub async fn forget(conn: &mut PgConnection, repository: RepositoryId, subject: Subject) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.model_answers WHERE repository_id = $1 AND subject_id = $2 AND subject_kind = $3",
        repository.uuid(),
        subject.id,
        subject.kind.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether there are answers to questions that nobody keeps, older than so many days.
#[tracing::instrument(level = "debug", name = "db.model_answers.is_any_old", skip_all)]
pub async fn is_any_old(conn: &mut PgConnection, repository: RepositoryId, days: i32) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.model_answers
                           WHERE repository_id = $1 AND subject_kind = 'question'
                             AND created_at < clock_timestamp() - make_interval(days => $2)) AS "is!""#,
        repository.uuid(),
        days,
    );
    Ok(any.fetch_one(conn).await?)
}

/// Deletes them; returns how many.
#[tracing::instrument(level = "debug", name = "db.model_answers.delete_old", skip_all)]
pub async fn delete_old(conn: &mut PgConnection, repository: RepositoryId, days: i32) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_repository.model_answers
          WHERE repository_id = $1 AND subject_kind = 'question'
            AND created_at < clock_timestamp() - make_interval(days => $2)",
        repository.uuid(),
        days,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
