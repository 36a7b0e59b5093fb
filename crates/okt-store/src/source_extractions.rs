//! What came of looking for facts in a source, on its row of `okt_repository.sources`.

use okt_model::{
    BudgetOf, ConceptExtraction, Cost, Error, Extraction, JobId, RepositoryId, SourceFailure, SourceId,
    SourceStatus, Waiting,
};
use sqlx::PgConnection;

use crate::model_answers::signed;
use crate::sources;
use okt_pg::Result;

/// The job has looked for facts: what came of it, why it failed if it did, and all that was paid if anything was. False when
/// the source is another job's.
#[tracing::instrument(level = "debug", name = "db.source_extractions.settle", skip_all, fields(source.id = %id))]
pub async fn settle(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    extraction: &Extraction,
    failure: Option<&SourceFailure>,
    cost: Option<Cost>,
) -> Result<bool> {
    let next = if failure.is_some() { SourceStatus::Failed } else { SourceStatus::Processed };
    let extraction = serde_json::to_string(extraction).map_err(Error::internal)?;
    let why = failure.map(serde_json::to_string).transpose().map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.sources
            SET status = $4, failure = $5::text::jsonb, extraction = $6::text::jsonb, waiting_for = NULL,
                waiting_budget = NULL, tokens_in = coalesce($8, tokens_in), tokens_out = coalesce($9, tokens_out),
                micro_usd = coalesce($10, micro_usd),
                processed_at = CASE WHEN $4 = 'processed' THEN clock_timestamp() ELSE processed_at END
          WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($7)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        next.as_str(),
        why,
        extraction,
        &SourceStatus::before(next),
        cost.map(|cost| signed(cost.tokens_in)),
        cost.map(|cost| signed(cost.tokens_out)),
        cost.map(|cost| cost.usd.micros()),
    );
    let is_settled = done.execute(&mut *conn).await?.rows_affected() == 1;
    match failure {
        _ if !is_settled => {}
        Some(failure) => sources::announce_failed(conn, repository, id, failure).await?,
        None => sources::announce_processed(conn, repository, id).await?,
    }
    Ok(is_settled)
}

/// What it has cost, and why the job can't go on if it can't: for a budget, whose.
#[tracing::instrument(level = "debug", name = "db.source_extractions.note", skip_all, fields(source.id = %id))]
pub async fn note(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    cost: Cost,
    waiting: Option<(Waiting, Option<BudgetOf>)>,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.sources SET tokens_in = $4, tokens_out = $5, micro_usd = $6, waiting_for = $7,
                waiting_budget = $8
          WHERE repository_id = $1 AND id = $2 AND job_id = $3",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        signed(cost.tokens_in),
        signed(cost.tokens_out),
        cost.usd.micros(),
        waiting.map(|(why, _)| why.as_str()),
        waiting.and_then(|(_, budget)| budget).map(BudgetOf::as_str),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// What came of looking for concepts in the facts of a source, and all that was paid for it. False when the source is gone.
#[tracing::instrument(level = "debug", name = "db.source_extractions.note_concepts", skip_all, fields(source.id = %id))]
pub async fn note_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    concepts: &ConceptExtraction,
    cost: Cost,
) -> Result<bool> {
    let concepts = serde_json::to_string(concepts).map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.sources
            SET extraction = jsonb_set(extraction, '{concepts}', $3::text::jsonb), tokens_in = $4, tokens_out = $5,
                micro_usd = $6
          WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
        concepts,
        signed(cost.tokens_in),
        signed(cost.tokens_out),
        cost.usd.micros(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}
