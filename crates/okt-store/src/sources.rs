//! Rows of `okt_repository.sources`. What was read out of one is in `source_texts` and `source_images`.
//!
//! A source belongs to one job at a time. What its job changes is in `progress`.

mod progress;

use chrono::{DateTime, NaiveDate, Utc};
use okt_model::{
    Blob, BlobHash, Cost, Error, IndexSource, JobId, Money, RepositoryId, Source, SourceFile, SourceFilter,
    SourceId, SourceStatus,
};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::outbox::{self, When};
use crate::words::word;
use crate::{answer_events, facts, investigations, model_answers, report_annotations, source_marks};
use okt_pg::{Result, planned_anew};

pub use progress::{Fetched, hand_over, mark, mark_failed, mark_fetched, note_attempts};
pub(crate) use progress::{announce_failed, announce_processed};

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
    pub max_cost_usd: Option<Money>,
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

/// Adds it; false when the repository has one of the same name, DOI or body.
#[tracing::instrument(level = "debug", name = "db.sources.insert", skip_all, fields(source.id = %new.id))]
pub async fn insert(conn: &mut PgConnection, repository: RepositoryId, new: &NewSource) -> Result<bool> {
    let (hash, size) = columns(new.body);
    let done = sqlx::query!(
        "INSERT INTO okt_repository.sources
                (repository_id, id, job_id, locator_hash, url, doi, status, title, author, published_at,
                 max_cost_micro_usd,                 body_sha256, body_size, content_type, file_name, doi_hash)
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
        new.max_cost_usd.map(Money::micros),
        hash,
        size,
        new.content_type,
        new.file_name,
        hashed(new.doi.as_deref()),
    )
    .execute(conn)
    .await?;
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
    .await?;
    Ok(row.map(|row| (row.id.into(), row.job_id.into())))
}

/// Which of these names, as they are compared, the repository has a source for, and which one.
#[tracing::instrument(level = "debug", name = "db.sources.list_known", skip_all)]
pub async fn list_known(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[String],
) -> Result<Vec<(String, SourceId)>> {
    let hashes: Vec<Vec<u8>> = names.iter().filter_map(|name| hashed(Some(name))).collect();
    let rows = sqlx::query!(
        r#"SELECT n.name AS "name!", coalesce(l.id, d.id) AS "id!"
             FROM unnest($2::text[], $3::bytea[]) AS n (name, hash)
             LEFT JOIN okt_repository.sources l ON l.repository_id = $1 AND l.locator_hash = n.hash
             LEFT JOIN okt_repository.sources d ON d.repository_id = $1 AND d.doi_hash = n.hash
            WHERE l.id IS NOT NULL OR d.id IS NOT NULL"#,
        repository.uuid(),
        names,
        &hashes,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.name, row.id.into())).collect())
}

/// Those of these that there are.
#[tracing::instrument(level = "debug", name = "db.sources.list_there", skip_all)]
pub async fn list_there(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[SourceId],
) -> Result<Vec<SourceId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.sources WHERE repository_id = $1 AND id = ANY ($2)",
        repository.uuid(),
        &ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(SourceId::from).collect())
}

#[tracing::instrument(level = "debug", name = "db.sources.find", skip_all, fields(source.id = %id))]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: SourceId) -> Result<Option<Source>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, url, doi, status, failure::text, job_id, kind, content_type, title, author, site_name,
                  published_at, language, license, body_sha256, body_size, file_name,
                  fetch_attempts::text AS "fetch_attempts!", max_cost_micro_usd, tokens_in, tokens_out, micro_usd, fact_count,
                  waiting_for, waiting_budget, extraction::text, created_at, fetched_at, processed_at
             FROM okt_repository.sources WHERE repository_id = $1 AND id = $2"#,
        repository.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
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
    .await?;
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
    // These have indexes of their own; the others are read in the order of the list.
    let dated = filter.published_from.is_some() || filter.published_to.is_some();
    if filter.status.is_some() || filter.among.is_some() || dated {
        planned_anew(conn).await?;
    }
    // Each order has an index to walk, so they are two statements.
    let rows = if oldest_first {
        let rows = sqlx::query_file_as!(
            Row,
            "src/sql/list_sources_oldest.sql",
            repository.uuid(),
            after.map(SourceId::uuid),
            filter.status.map(SourceStatus::as_str),
            filter.kind,
            filter.among.as_deref(),
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
            filter.among.as_deref(),
            filter.published_from,
            filter.published_to,
            limit,
        );
        rows.fetch_all(conn).await
    };
    rows?.into_iter().map(Source::try_from).collect()
}

/// The numbers of the source of this name, by which names are compared, and of those of the last so many without a text that have
/// this in their title or address.
#[tracing::instrument(level = "debug", name = "db.sources.list_named", skip_all)]
pub async fn list_named(
    conn: &mut PgConnection,
    repository: RepositoryId,
    locator: Option<&str>,
    part: &str,
    looked_at: i64,
) -> Result<Vec<i64>> {
    let numbers = sqlx::query_scalar!(
        r#"SELECT no AS "no!" FROM okt_repository.sources WHERE repository_id = $1 AND (locator_hash = $2 OR doi_hash = $2)
            UNION
           SELECT s.no
             FROM unnest(ARRAY['pending', 'fetching', 'failed']) AS n (status)
            CROSS JOIN LATERAL (SELECT o.no, o.title, o.url FROM okt_repository.sources o
                                 WHERE o.repository_id = $1 AND o.status = n.status
                                 ORDER BY o.id DESC LIMIT $4) AS s
            WHERE strpos(lower(coalesce(s.title, '')), $3) > 0 OR strpos(lower(s.url), $3) > 0"#,
        repository.uuid(),
        hashed(locator),
        part.to_lowercase(),
        looked_at,
    );
    Ok(numbers.fetch_all(conn).await?)
}

/// Removes it with what was read out of it, and the facts that only it makes; false when there is none.
#[tracing::instrument(level = "debug", name = "db.sources.delete", skip_all, fields(source.id = %id))]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: SourceId) -> Result<bool> {
    model_answers::forget(conn, repository, id.into()).await?;
    report_annotations::forget_source(conn, repository, id).await?;
    match facts::forget_source(conn, repository, id).await {
        Err(okt_pg::Error(Error::NotFound(_))) => return Ok(false),
        forgotten => forgotten?,
    }
    let no = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    );
    if let Some(no) = no.fetch_optional(&mut *conn).await? {
        source_marks::forget_source(conn, repository, no).await?;
        // Lists of a large source are long: rewritten later. What is gone is not shown meanwhile.
        let payload = IndexSource { source: id, gone: Some(no), imported: false };
        outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
        investigations::forget_source(conn, repository, no).await?;
    }
    answer_events::forget_source(conn, repository, id).await?;
    let done = sqlx::query!(
        "WITH images AS (DELETE FROM okt_repository.source_images WHERE repository_id = $1 AND source_id = $2),
              texts AS (DELETE FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2)
         DELETE FROM okt_repository.sources WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
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
    .await?;
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
    max_cost_micro_usd: Option<i64>,
    tokens_in: i64,
    tokens_out: i64,
    micro_usd: i64,
    fact_count: i64,
    waiting_for: Option<String>,
    waiting_budget: Option<String>,
    extraction: Option<String>,
    created_at: DateTime<Utc>,
    fetched_at: Option<DateTime<Utc>>,
    processed_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for Source {
    type Error = okt_pg::Error;

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
            max_cost_usd: row.max_cost_micro_usd.map(Money::from_micros),
            cost: Cost {
                tokens_in: u64::try_from(row.tokens_in).unwrap_or(0),
                tokens_out: u64::try_from(row.tokens_out).unwrap_or(0),
                usd: Money::from_micros(row.micro_usd),
            },
            fact_count: row.fact_count,
            waiting_for: row.waiting_for,
            waiting_budget: row.waiting_budget,
            extraction: row
                .extraction
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(Error::internal)?,
            mark: None,
            job: row.job_id.into(),
            created_at: row.created_at,
            fetched_at: row.fetched_at,
            processed_at: row.processed_at,
        })
    }
}

fn status(text: &str) -> Result<SourceStatus> {
    word("sources.status", text)
}

fn hashed(text: Option<&str>) -> Option<Vec<u8>> {
    text.map(|text| Sha256::digest(text).to_vec())
}

fn hash(bytes: &[u8]) -> Result<BlobHash> {
    Ok(BlobHash::try_from(bytes).map_err(Error::internal)?)
}

pub(crate) fn blob(bytes: Option<&[u8]>, size: Option<i64>) -> Result<Option<Blob>> {
    let (Some(bytes), Some(size)) = (bytes, size) else { return Ok(None) };
    Ok(Some(Blob { hash: hash(bytes)?, size: u64::try_from(size).map_err(Error::internal)? }))
}

/// The columns that a file is written to.
pub(crate) fn columns(blob: Option<Blob>) -> (Option<Vec<u8>>, Option<i64>) {
    blob.map(|blob| (blob.hash.0.to_vec(), i64::try_from(blob.size).unwrap_or(i64::MAX))).unzip()
}
