//! Rows of the registry: keys, sources, and what is said here of files.

mod decompositions;
mod graphs;
mod withdrawals;

use chrono::{DateTime, NaiveDate, Utc};
use okt_pg::Result;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::files::Kind;
use crate::keys::Key;

pub(crate) use decompositions::{
    DecompositionRow, find_decomposition, insert_decomposition, list_decompositions, withdraw,
};
pub(crate) use graphs::{GraphRow, delete_graph, get_graph, insert_graph, list_graphs, withdraw_graph};
pub(crate) use withdrawals::{WithdrawalPlace, WithdrawalRow, list_withdrawals, withdraw_all_of};

/// How long a nonce is remembered: longer than a signature is accepted, from the earliest time that it may have to the latest.
const REMEMBERED: f64 = 660.0;
/// What PostgreSQL calls a second row of a key.
const UNIQUE: &str = "23505";

pub(crate) struct KeyRow {
    pub id: String,
    pub name: String,
    pub hash: Vec<u8>,
    pub sealed: Vec<u8>,
    pub may_write: bool,
    pub daily_pushes: Option<i32>,
}

/// A key that lets somebody in.
pub(crate) struct LiveKey {
    pub id: String,
    pub hash: Vec<u8>,
    pub sealed: Vec<u8>,
    pub may_write: bool,
    pub daily_pushes: Option<i32>,
}

#[tracing::instrument(level = "debug", name = "db.registry.insert_key", skip_all)]
pub(crate) async fn insert_key(conn: &mut PgConnection, key: &KeyRow, days: Option<i32>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_registry.keys (id, name, hash, sealed, may_write, daily_pushes, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(days => $7))",
        key.id,
        key.name,
        key.hash,
        key.sealed,
        key.may_write,
        key.daily_pushes,
        days,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.registry.list_keys", skip_all)]
pub(crate) async fn list_keys(conn: &mut PgConnection) -> Result<Vec<Key>> {
    Ok(sqlx::query_as!(
        Key,
        "SELECT id, name, may_write, daily_pushes, created_at, expires_at, revoked_at FROM okt_registry.keys ORDER BY created_at, id",
    )
    .fetch_all(conn)
    .await?)
}

/// With the time that it is, in seconds since 1970. `None` if it lets nobody in.
#[tracing::instrument(level = "debug", name = "db.registry.find_key", skip_all)]
pub(crate) async fn find_key(conn: &mut PgConnection, id: &str) -> Result<Option<(LiveKey, i64)>> {
    let row = sqlx::query!(
        r#"SELECT id, hash, sealed, may_write, daily_pushes, extract(epoch FROM clock_timestamp())::bigint AS "now!"
             FROM okt_registry.keys
            WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())"#,
        id,
    );
    Ok(row.fetch_optional(conn).await?.map(|row| {
        let key = LiveKey {
            id: row.id,
            hash: row.hash,
            sealed: row.sealed,
            may_write: row.may_write,
            daily_pushes: row.daily_pushes,
        };
        (key, row.now)
    }))
}

#[tracing::instrument(level = "debug", name = "db.registry.now", skip_all)]
pub(crate) async fn now(conn: &mut PgConnection) -> Result<DateTime<Utc>> {
    Ok(sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry.revoke_key", skip_all)]
pub(crate) async fn revoke_key(conn: &mut PgConnection, id: &str) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_registry.keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1",
        id,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// False if it was used before.
#[tracing::instrument(level = "debug", name = "db.registry.remember_nonce", skip_all)]
pub(crate) async fn remember_nonce(conn: &mut PgConnection, key: &str, nonce: &str) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_registry.nonces (key_id, nonce, expires_at)
         VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
         ON CONFLICT (key_id, nonce) DO NOTHING",
        key,
        nonce,
        REMEMBERED,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

#[tracing::instrument(level = "debug", name = "db.registry.forget_nonces", skip_all)]
pub(crate) async fn forget_nonces(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("DELETE FROM okt_registry.nonces WHERE expires_at < clock_timestamp()")
        .execute(conn)
        .await?;
    Ok(())
}

/// Counts a push of today; false if the key has no more.
#[tracing::instrument(level = "debug", name = "db.registry.count_push", skip_all)]
pub(crate) async fn count_push(conn: &mut PgConnection, key: &str, most: Option<i32>) -> Result<bool> {
    let counted = sqlx::query_scalar!(
        "INSERT INTO okt_registry.pushes AS p (key_id, day, count, bytes)
         SELECT $1, (clock_timestamp() AT TIME ZONE 'UTC')::date, 1, 0 WHERE $2::integer IS NULL OR $2 > 0
         ON CONFLICT (key_id, day) DO UPDATE SET count = p.count + 1
          WHERE $2::integer IS NULL OR p.count < $2
         RETURNING count",
        key,
        most,
    );
    Ok(counted.fetch_optional(conn).await?.is_some())
}

/// Counts what came with a push of today; false if it is too much.
#[tracing::instrument(level = "debug", name = "db.registry.count_bytes", skip_all)]
pub(crate) async fn count_bytes(conn: &mut PgConnection, key: &str, bytes: i64, most: i64) -> Result<bool> {
    let counted = sqlx::query!(
        "INSERT INTO okt_registry.pushes AS p (key_id, day, count, bytes)
         SELECT $1, (clock_timestamp() AT TIME ZONE 'UTC')::date, 0, $2::bigint WHERE $2::bigint <= $3
         ON CONFLICT (key_id, day) DO UPDATE SET bytes = p.bytes + excluded.bytes WHERE p.bytes + excluded.bytes <= $3",
        key,
        bytes,
        most,
    );
    Ok(counted.execute(conn).await?.rows_affected() == 1)
}

/// A source by what it is found by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub url: Option<String>,
    pub url_hash: Option<Vec<u8>>,
    pub doi: Option<String>,
    pub doi_hash: Option<Vec<u8>>,
    pub sha256: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceRow {
    pub id: Uuid,
    pub url: Option<String>,
    pub doi: Option<String>,
    pub sha256: Option<Vec<u8>>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub kind: Option<String>,
    pub language: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
}

/// By the address first, then the DOI, then the hash: each is an index of its own.
#[tracing::instrument(level = "debug", name = "db.registry.find_source", skip_all)]
pub(crate) async fn find_source(conn: &mut PgConnection, names: &Names) -> Result<Option<SourceRow>> {
    let row = sqlx::query_as!(
        SourceRow,
        "SELECT s.id, s.url, s.doi, s.sha256, s.title, s.author, s.kind, s.language, s.published_at, s.created_at
           FROM (SELECT id, 1 AS rank FROM okt_registry.sources WHERE url_hash = $1
                  UNION ALL
                 SELECT id, 2 FROM okt_registry.sources WHERE doi_hash = $2
                  UNION ALL
                 SELECT id, 3 FROM okt_registry.sources WHERE sha256 = $3) AS n
           JOIN okt_registry.sources s ON s.id = n.id
          ORDER BY n.rank LIMIT 1",
        names.url_hash,
        names.doi_hash,
        names.sha256,
    );
    Ok(row.fetch_optional(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry.get_source", skip_all)]
pub(crate) async fn get_source(conn: &mut PgConnection, id: Uuid) -> Result<Option<SourceRow>> {
    let row = sqlx::query_as!(
        SourceRow,
        "SELECT id, url, doi, sha256, title, author, kind, language, published_at, created_at
           FROM okt_registry.sources WHERE id = $1",
        id,
    );
    Ok(row.fetch_optional(conn).await?)
}

/// From after one on, in the order in which they were made known.
#[tracing::instrument(level = "debug", name = "db.registry.list_sources", skip_all)]
pub(crate) async fn list_sources(
    conn: &mut PgConnection,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<SourceRow>> {
    let rows = sqlx::query_as!(
        SourceRow,
        "SELECT id, url, doi, sha256, title, author, kind, language, published_at, created_at
           FROM okt_registry.sources WHERE id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
          ORDER BY id LIMIT $2",
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Adds it unless one of its names is known; false then.
#[tracing::instrument(level = "debug", name = "db.registry.insert_source", skip_all)]
pub(crate) async fn insert_source(
    conn: &mut PgConnection,
    names: &Names,
    source: &SourceRow,
    by: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_registry.sources
                (id, url, url_hash, doi, doi_hash, sha256, title, author, kind, language, published_at, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT DO NOTHING",
        source.id,
        names.url,
        names.url_hash,
        names.doi,
        names.doi_hash,
        names.sha256,
        source.title,
        source.author,
        source.kind,
        source.language,
        source.published_at,
        by,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Gives a source the names that it does not have yet, and no other source has. Only whoever made it known can do so: anybody else could
/// have packages of one paper handed out as another one's.
#[tracing::instrument(level = "debug", name = "db.registry.complete_source", skip_all)]
pub(crate) async fn complete_source(
    conn: &mut PgConnection,
    source: Uuid,
    names: &Names,
    by: &str,
) -> Result<()> {
    let done = sqlx::query!(
        "WITH free AS (
             SELECT CASE WHEN NOT EXISTS (SELECT FROM okt_registry.sources WHERE url_hash = $3) THEN $3::bytea END AS url_hash,
                    CASE WHEN NOT EXISTS (SELECT FROM okt_registry.sources WHERE doi_hash = $5) THEN $5::bytea END AS doi_hash,
                    CASE WHEN NOT EXISTS (SELECT FROM okt_registry.sources WHERE sha256 = $6) THEN $6::bytea END AS sha256)
         UPDATE okt_registry.sources s
            SET url = CASE WHEN s.url_hash IS NULL AND f.url_hash IS NOT NULL THEN $2::text ELSE s.url END,
                url_hash = coalesce(s.url_hash, f.url_hash),
                doi = CASE WHEN s.doi_hash IS NULL AND f.doi_hash IS NOT NULL THEN $4::text ELSE s.doi END,
                doi_hash = coalesce(s.doi_hash, f.doi_hash), sha256 = coalesce(s.sha256, f.sha256)
           FROM free f
          WHERE s.id = $1 AND s.created_by = $7 AND $7 <> 'anonymous'
            AND ((s.url_hash IS NULL AND f.url_hash IS NOT NULL) OR (s.doi_hash IS NULL AND f.doi_hash IS NOT NULL)
                 OR (s.sha256 IS NULL AND f.sha256 IS NOT NULL))",
        source,
        names.url,
        names.url_hash,
        names.doi,
        names.doi_hash,
        names.sha256,
        by,
    );
    match done.execute(conn).await.map_err(okt_pg::Error::from) {
        // Somebody else has just given the name to another source, which keeps it.
        Err(error) if error.said().is_some_and(|said| said.code() == UNIQUE) => Ok(()),
        ended => ended.map(drop),
    }
}

/// Until the end of the transaction nobody else writes or removes the file of this name. In a statement of its own, so that the next
/// one sees what was written by whom we waited for.
#[tracing::instrument(level = "debug", name = "db.registry.hold_file", skip_all)]
pub(crate) async fn hold_file(conn: &mut PgConnection, sha256: &[u8]) -> Result<()> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 0))", sha256)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether a row speaks of a file.
#[tracing::instrument(level = "debug", name = "db.registry.is_file_used", skip_all)]
pub(crate) async fn is_file_used(conn: &mut PgConnection, kind: Kind, sha256: &[u8]) -> Result<bool> {
    let used = match kind {
        Kind::Package => {
            let used = sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT FROM okt_registry.decompositions WHERE package_sha256 = $1) AS "used!""#,
                sha256,
            );
            used.fetch_one(conn).await?
        }
        Kind::Graph => {
            let used = sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT FROM okt_registry.graphs WHERE file_sha256 = $1) AS "used!""#,
                sha256,
            );
            used.fetch_one(conn).await?
        }
    };
    Ok(used)
}
