//! Rows of `okt_system.promptsets`: instructions for models that somebody wrote.

use chrono::{DateTime, Utc};
use okt_model::{ContentHash, Error, RepositoryId, StoredPromptset, UserId};
use sqlx::PgConnection;

use okt_pg::Result;

/// Keeps it; false when it was there before, and then under the name that it has.
#[tracing::instrument(level = "debug", name = "db.promptsets.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    hash: ContentHash,
    registry_hash: ContentHash,
    name: &str,
    phases: &str,
    author: UserId,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.promptsets (hash, registry_hash, name, phases, created_by)
         VALUES ($1, $2, $3, $4::text::jsonb, $5)
         ON CONFLICT (hash) DO NOTHING",
        &hash.0,
        &registry_hash.0,
        name,
        phases,
        author.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

#[tracing::instrument(level = "debug", name = "db.promptsets.find", skip_all)]
pub async fn find(conn: &mut PgConnection, hash: ContentHash) -> Result<Option<StoredPromptset>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT hash, registry_hash, name, phases::text AS "phases!", created_at
             FROM okt_system.promptsets WHERE hash = $1"#,
        &hash.0,
    );
    row.fetch_optional(conn).await?.map(StoredPromptset::try_from).transpose()
}

/// The one that a repository uses; `None` for the built-in one.
#[tracing::instrument(level = "debug", name = "db.promptsets.find_used", skip_all)]
pub async fn find_used(conn: &mut PgConnection, repository: RepositoryId) -> Result<Option<StoredPromptset>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT p.hash, p.registry_hash, p.name, p.phases::text AS "phases!", p.created_at
             FROM okt_system.repository_settings s
             JOIN okt_system.promptsets p ON p.hash = s.promptset_hash
            WHERE s.repository_id = $1"#,
        repository.uuid(),
    );
    row.fetch_optional(conn).await?.map(StoredPromptset::try_from).transpose()
}

/// In the order of their hashes, which is none, but always the same.
#[tracing::instrument(level = "debug", name = "db.promptsets.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    after: Option<ContentHash>,
    limit: i64,
) -> Result<Vec<StoredPromptset>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT hash, registry_hash, name, phases::text AS "phases!", created_at
             FROM okt_system.promptsets WHERE hash > coalesce($1, ''::bytea) ORDER BY hash LIMIT $2"#,
        after.map(|hash| hash.0.to_vec()),
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(StoredPromptset::try_from).collect()
}

struct Row {
    hash: Vec<u8>,
    registry_hash: Vec<u8>,
    name: String,
    phases: String,
    created_at: DateTime<Utc>,
}

impl TryFrom<Row> for StoredPromptset {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        let hash = |bytes: Vec<u8>| ContentHash::try_from(bytes.as_slice()).map_err(Error::internal);
        Ok(Self {
            hash: hash(row.hash)?,
            registry_hash: hash(row.registry_hash)?,
            name: row.name,
            phases: row.phases,
            created_at: row.created_at,
        })
    }
}
