//! Rows of `okt_repository.sources`. What was read out of one is in `source_texts` and `source_images`.
//!
//! A source belongs to one job at a time: whoever changes it on behalf of a job names the job, and one that was replaced
//! by another has nothing more to say.

use chrono::{DateTime, NaiveDate, Utc};
use okt_model::{
    Blob, BlobHash, Cost, Error, FetchAttempt, JobId, RepositoryId, Result, Source, SourceFailure,
    SourceFile, SourceFilter, SourceId, SourceStatus,
};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::from_sqlx;
use crate::{facts, model_answers};

/// A source that is to be.
#[derive(Clone, Debug)]
pub struct NewSource {
    pub id: SourceId,
    pub job: JobId,
    /// What it is compared by; `None` for what somebody brought along themselves.
    pub locator: Option<String>,
    pub url: String,
    pub doi: Option<String>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub max_cost_usd: Option<f64>,
    /// The original, where it is here already.
    pub body: Option<Blob>,
    pub content_type: Option<String>,
    pub file_name: Option<String>,
}

impl NewSource {
    /// With nothing known of it but its address.
    pub fn new(id: SourceId, job: JobId, url: String) -> Self {
        Self {
            id,
            job,
            locator: None,
            url,
            doi: None,
            title: None,
            author: None,
            published_at: None,
            max_cost_usd: None,
            body: None,
            content_type: None,
            file_name: None,
        }
    }
}

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

/// Adds it; false when the repository has one of the same name, DOI or body.
#[tracing::instrument(level = "debug", name = "db.sources.insert", skip_all, fields(source.id = %new.id))]
pub async fn insert(conn: &mut PgConnection, repository: RepositoryId, new: &NewSource) -> Result<bool> {
    let (hash, size) = columns(new.body);
    let done = sqlx::query!(
        "INSERT INTO okt_repository.sources
                (repository_id, id, job_id, locator_hash, url, doi, status, title, author, published_at, max_cost_usd,
                 body_sha256, body_size, content_type, file_name, doi_hash)
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT DO NOTHING",
        repository.uuid(),
        new.id.uuid(),
        new.job.uuid(),
        hashed(new.locator.as_deref()),
        new.url,
        new.doi,
        new.title,
        new.author,
        new.published_at,
        new.max_cost_usd,
        hash,
        size,
        new.content_type,
        new.file_name,
        hashed(new.doi.as_deref()),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// The one that stands in the way of a new one, with its job.
#[tracing::instrument(level = "debug", name = "db.sources.find_same", skip_all)]
pub async fn find_same(
    conn: &mut PgConnection,
    repository: RepositoryId,
    new: &NewSource,
) -> Result<Option<(SourceId, JobId)>> {
    let uploaded = new.body.filter(|_| new.locator.is_none()).map(|body| body.hash.0.to_vec());
    let row = sqlx::query!(
        "SELECT id, job_id FROM okt_repository.sources
          WHERE repository_id = $1
            AND (locator_hash = $2 OR doi_hash = $3 OR (locator_hash IS NULL AND body_sha256 = $4))
          ORDER BY id LIMIT 1",
        repository.uuid(),
        hashed(new.locator.as_deref()),
        hashed(new.doi.as_deref()),
        uploaded,
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(row.map(|row| (row.id.into(), row.job_id.into())))
}

/// Which of these names, as they are compared, the repository has a source for.
#[tracing::instrument(level = "debug", name = "db.sources.list_known", skip_all)]
pub async fn list_known(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[String],
) -> Result<Vec<String>> {
    let hashes: Vec<Vec<u8>> = names.iter().filter_map(|name| hashed(Some(name))).collect();
    sqlx::query_scalar!(
        r#"SELECT n.name AS "name!" FROM unnest($2::text[], $3::bytea[]) AS n (name, hash)
            WHERE EXISTS (SELECT FROM okt_repository.sources s
                           WHERE s.repository_id = $1 AND (s.locator_hash = n.hash OR s.doi_hash = n.hash))"#,
        repository.uuid(),
        names,
        &hashes,
    )
    .fetch_all(conn)
    .await
    .map_err(from_sqlx)
}

#[tracing::instrument(level = "debug", name = "db.sources.find", skip_all, fields(source.id = %id))]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: SourceId) -> Result<Option<Source>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, url, doi, status, failure::text, job_id, kind, content_type, title, author, site_name,
                  published_at, language, license, body_sha256, body_size, file_name,
                  fetch_attempts::text AS "fetch_attempts!", max_cost_usd, tokens_in, tokens_out, usd, fact_count,
                  waiting_for, extraction::text, created_at, fetched_at, processed_at
             FROM okt_repository.sources WHERE repository_id = $1 AND id = $2"#,
        repository.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    row.map(Source::try_from).transpose()
}

/// Keeps it as it is until the end of the transaction, and says where it stands and whose it is.
#[tracing::instrument(level = "debug", name = "db.sources.hold", skip_all, fields(source.id = %id))]
pub async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
) -> Result<Option<(SourceStatus, JobId)>> {
    let row = sqlx::query!(
        "SELECT status, job_id FROM okt_repository.sources WHERE repository_id = $1 AND id = $2 FOR UPDATE",
        repository.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    row.map(|row| Ok((status(&row.status)?, row.job_id.into()))).transpose()
}

/// From `after` on: the newest first, or the oldest.
#[tracing::instrument(level = "debug", name = "db.sources.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    filter: &SourceFilter,
    oldest_first: bool,
    after: Option<SourceId>,
    limit: i64,
) -> Result<Vec<Source>> {
    // Each order has an index to walk, so they are two statements.
    let rows = if oldest_first {
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_sources_oldest.sql",
            repository.uuid(),
            after.map(SourceId::uuid),
            filter.status.map(SourceStatus::as_str),
            filter.kind,
            filter.q.as_deref().map(str::to_lowercase),
            filter.published_from,
            filter.published_to,
            limit,
        );
        rows.fetch_all(conn).await
    } else {
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_sources_newest.sql",
            repository.uuid(),
            after.map(SourceId::uuid),
            filter.status.map(SourceStatus::as_str),
            filter.kind,
            filter.q.as_deref().map(str::to_lowercase),
            filter.published_from,
            filter.published_to,
            limit,
        );
        rows.fetch_all(conn).await
    };
    rows.map_err(from_sqlx)?.into_iter().map(Source::try_from).collect()
}

/// The job brings it on to where it may go from here; false when it may not, or is another job's.
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
            SET status = $4, failure = NULL, waiting_for = NULL,
                processed_at = CASE WHEN $4 = 'processed' THEN clock_timestamp() ELSE processed_at END
          WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($5)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        next.as_str(),
        &SourceStatus::before(next),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// Gives it to another job, and puts it where that one begins; false when it can't go there from where it stands.
#[tracing::instrument(level = "debug", name = "db.sources.hand_over", skip_all, fields(source.id = %id, status = next.as_str()))]
pub async fn hand_over(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    next: SourceStatus,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.sources SET status = $4, failure = NULL, waiting_for = NULL, job_id = $3
          WHERE repository_id = $1 AND id = $2 AND status = ANY ($5)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        next.as_str(),
        &SourceStatus::before(next),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// It has been fetched and read. What its adder has said of it stays.
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
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// The job has given it up. What was tried is told; none leaves what was told before.
#[tracing::instrument(level = "debug", name = "db.sources.mark_failed", skip_all, fields(source.id = %id))]
pub async fn mark_failed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: SourceId,
    job: JobId,
    failure: &SourceFailure,
    attempts: &[FetchAttempt],
) -> Result<bool> {
    let failure = serde_json::to_string(failure).map_err(Error::internal)?;
    let attempts = serde_json::to_string(attempts).map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.sources
            SET status = 'failed', failure = $4::text::jsonb, waiting_for = NULL,
                fetch_attempts = CASE WHEN $5 = '[]' THEN fetch_attempts ELSE $5::text::jsonb END
          WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($6)",
        repository.uuid(),
        id.uuid(),
        job.uuid(),
        failure,
        attempts,
        &SourceStatus::before(SourceStatus::Failed),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// What was tried so far, while the job goes on trying.
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
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// Removes it with what was read out of it, and the facts that only it makes; false when there is none.
#[tracing::instrument(level = "debug", name = "db.sources.delete", skip_all, fields(source.id = %id))]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: SourceId) -> Result<bool> {
    model_answers::forget_source(conn, repository, id).await?;
    match facts::forget_source(conn, repository, id).await {
        Err(Error::NotFound(_)) => return Ok(false),
        forgotten => forgotten?,
    }
    let done = sqlx::query!(
        "WITH images AS (DELETE FROM okt_repository.source_images WHERE repository_id = $1 AND source_id = $2),
              texts AS (DELETE FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2)
         DELETE FROM okt_repository.sources WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// Which of these files of a repository a row speaks of.
#[tracing::instrument(level = "debug", name = "db.sources.list_wanted", skip_all)]
pub async fn list_wanted(
    conn: &mut PgConnection,
    repository: RepositoryId,
    files: &[SourceFile],
) -> Result<Vec<SourceFile>> {
    let sources: Vec<Uuid> = files.iter().map(|file| file.source.uuid()).collect();
    let hashes: Vec<Vec<u8>> = files.iter().map(|file| file.hash.0.to_vec()).collect();
    let rows = sqlx::query!(
        r#"SELECT f.source_id AS "source!", f.hash AS "hash!"
             FROM unnest($2::uuid[], $3::bytea[]) AS f (source_id, hash)
            WHERE EXISTS (SELECT FROM okt_repository.sources s
                           WHERE s.repository_id = $1 AND s.id = f.source_id AND s.body_sha256 = f.hash)
               OR EXISTS (SELECT FROM okt_repository.source_images i
                           WHERE i.repository_id = $1 AND i.source_id = f.source_id AND i.sha256 = f.hash)"#,
        repository.uuid(),
        &sources,
        &hashes,
    )
    .fetch_all(conn)
    .await
    .map_err(from_sqlx)?;
    rows.into_iter()
        .map(|row| Ok(SourceFile { repository, source: row.source.into(), hash: hash(&row.hash)? }))
        .collect()
}

struct Row {
    id: Uuid,
    url: String,
    doi: Option<String>,
    status: String,
    failure: Option<String>,
    job_id: Uuid,
    kind: Option<String>,
    content_type: Option<String>,
    title: Option<String>,
    author: Option<String>,
    site_name: Option<String>,
    published_at: Option<NaiveDate>,
    language: Option<String>,
    license: Option<String>,
    body_sha256: Option<Vec<u8>>,
    body_size: Option<i64>,
    file_name: Option<String>,
    fetch_attempts: String,
    max_cost_usd: Option<f64>,
    tokens_in: i64,
    tokens_out: i64,
    usd: f64,
    fact_count: i64,
    waiting_for: Option<String>,
    extraction: Option<String>,
    created_at: DateTime<Utc>,
    fetched_at: Option<DateTime<Utc>>,
    processed_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for Source {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            url: row.url,
            doi: row.doi,
            status: status(&row.status)?,
            failure: row.failure.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?,
            kind: row.kind,
            content_type: row.content_type,
            title: row.title,
            author: row.author,
            site_name: row.site_name,
            published_at: row.published_at,
            language: row.language,
            license: row.license,
            body: blob(row.body_sha256.as_deref(), row.body_size)?,
            file_name: row.file_name,
            fetch_attempts: serde_json::from_str(&row.fetch_attempts).map_err(Error::internal)?,
            max_cost_usd: row.max_cost_usd,
            cost: Cost {
                tokens_in: u64::try_from(row.tokens_in).unwrap_or(0),
                tokens_out: u64::try_from(row.tokens_out).unwrap_or(0),
                usd: row.usd,
            },
            fact_count: row.fact_count,
            waiting_for: row.waiting_for,
            extraction: row
                .extraction
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(Error::internal)?,
            job: row.job_id.into(),
            created_at: row.created_at,
            fetched_at: row.fetched_at,
            processed_at: row.processed_at,
        })
    }
}

fn status(text: &str) -> Result<SourceStatus> {
    let found = SourceStatus::ALL.iter().find(|status| status.as_str() == text).copied();
    found.ok_or_else(|| Error::internal(format!("{text} is no status of a source")))
}

fn hashed(text: Option<&str>) -> Option<Vec<u8>> {
    text.map(|text| Sha256::digest(text).to_vec())
}

fn hash(bytes: &[u8]) -> Result<BlobHash> {
    BlobHash::try_from(bytes).map_err(Error::internal)
}

pub(crate) fn blob(bytes: Option<&[u8]>, size: Option<i64>) -> Result<Option<Blob>> {
    let (Some(bytes), Some(size)) = (bytes, size) else { return Ok(None) };
    Ok(Some(Blob { hash: hash(bytes)?, size: u64::try_from(size).map_err(Error::internal)? }))
}

/// The columns that a file is written to.
pub(crate) fn columns(blob: Option<Blob>) -> (Option<Vec<u8>>, Option<i64>) {
    blob.map(|blob| (blob.hash.0.to_vec(), i64::try_from(blob.size).unwrap_or(i64::MAX))).unzip()
}
