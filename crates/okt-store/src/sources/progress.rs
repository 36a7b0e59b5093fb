//! What the job of a source changes: its status, what was fetched, failures and attempts.
//!
//! Each function names the job, and changes nothing if the source belongs to another job by now.

use chrono::NaiveDate;
use okt_model::{
    Blob, Error, FetchAttempt, JobId, RepositoryId, SourceFailure, SourceId, SourceStatus, WebhookEvent,
};
use sqlx::PgConnection;

use super::columns;
use crate::webhooks;
use okt_pg::Result;

/// What was found out about a source by fetching and reading it.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    pub kind: String,
    pub content_type: String,
    pub title: Option<String>,
    pub author: Option<String>,
    pub site_name: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub language: Option<String>,
    pub license: Option<String>,
    pub doi: Option<String>,
    pub body: Option<Blob>,
    pub attempts: Vec<FetchAttempt>,
}

/// Changes the status of a source; false if it can't follow the present one, or if the source belongs to another job.
#[tracing::instrument(level = "debug", name = "db.sources.mark", skip_all, fields(source.id = %id, status = next.as_str()))]
pub async fn mark(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    next: SourceStatus,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.sources
            SET status = $4, failure = NULL, waiting_for = NULL, waiting_budget = NULL,
                processed_at = CASE WHEN $4 = 'processed' THEN clock_timestamp() ELSE processed_at END
          WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($5)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        next.as_str(),
        &SourceStatus::before(next),
    )
    .execute(&mut *conn)
    .await?;
    let is_marked = done.rows_affected() == 1;
    if is_marked && next == SourceStatus::Processed {
        announce_processed(conn, repository, id).await?;
    }
    Ok(is_marked)
}

/// Tells whoever wants to hear of it that the facts of a source are there.
pub(crate) async fn announce_processed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
) -> Result<()> {
    let data = serde_json::json!({ "source_id": id });
    webhooks::announce(conn, repository, WebhookEvent::SourceProcessed, &page(id), &data).await
}

/// As [`announce_processed`], of a source that has failed. Why, only by its code: words may be those of a document.
pub(crate) async fn announce_failed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    failure: &SourceFailure,
) -> Result<()> {
    let data = serde_json::json!({
        "source_id": id, "stage": failure.stage, "code": failure.code, "retryable": failure.retryable,
    });
    webhooks::announce(conn, repository, WebhookEvent::SourceFailed, &page(id), &data).await
}

fn page(id: SourceId) -> String {
    format!("sources/{id}")
}

/// Gives a source to another job, with the status that the job begins with; false if that can't follow the present one.
#[tracing::instrument(level = "debug", name = "db.sources.hand_over", skip_all, fields(source.id = %id, status = next.as_str()))]
pub async fn hand_over(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    next: SourceStatus,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.sources SET status = $4, failure = NULL, waiting_for = NULL, waiting_budget = NULL, job_id = $3
          WHERE repository_id = $1 AND id = $2 AND status = ANY ($5)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        next.as_str(),
        &SourceStatus::before(next),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Records what was fetched. What the user who added the source said of it stays.
#[tracing::instrument(level = "debug", name = "db.sources.mark_fetched", skip_all, fields(source.id = %id))]
pub async fn mark_fetched(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    fetched: &Fetched,
) -> Result<bool> {
    let (hash, size) = columns(fetched.body);
    let attempts = serde_json::to_string(&fetched.attempts).map_err(Error::internal)?;
    let done = sqlx::query_file!(
        "src/sql/mark_source_fetched.sql",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        fetched.kind,
        fetched.content_type,
        fetched.title,
        fetched.author,
        fetched.site_name,
        fetched.published_at,
        fetched.language,
        fetched.license,
        fetched.doi,
        hash,
        size,
        attempts,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Records that the job failed. Empty attempts leave those that were recorded before.
#[tracing::instrument(level = "debug", name = "db.sources.mark_failed", skip_all, fields(source.id = %id))]
pub async fn mark_failed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    failure: &SourceFailure,
    attempts: &[FetchAttempt],
) -> Result<bool> {
    let why = serde_json::to_string(failure).map_err(Error::internal)?;
    let attempts = serde_json::to_string(attempts).map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.sources
            SET status = 'failed', failure = $4::text::jsonb, waiting_for = NULL, waiting_budget = NULL,
                fetch_attempts = CASE WHEN $5 = '[]' THEN fetch_attempts ELSE $5::text::jsonb END
          WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($6)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        why,
        attempts,
        &SourceStatus::before(SourceStatus::Failed),
    )
    .execute(&mut *conn)
    .await?;
    let is_marked = done.rows_affected() == 1;
    if is_marked {
        announce_failed(conn, repository, id, failure).await?;
    }
    Ok(is_marked)
}

/// Records the attempts so far, while the job continues.
#[tracing::instrument(level = "debug", name = "db.sources.note_attempts", skip_all, fields(source.id = %id))]
pub async fn note_attempts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    attempts: &[FetchAttempt],
) -> Result<bool> {
    let attempts = serde_json::to_string(attempts).map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.sources SET fetch_attempts = $4::text::jsonb
          WHERE repository_id = $1 AND id = $2 AND job_id = $3",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        attempts,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
