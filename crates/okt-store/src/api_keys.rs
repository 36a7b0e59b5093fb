//! Rows of `okt_system.api_keys`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_model::{ApiKey, ApiKeyId, RepositoryId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// A key that may be used right now.
#[derive(Clone, Debug)]
pub struct LiveKey {
    pub id: ApiKeyId,
    pub user: UserId,
    pub permissions: Vec<String>,
    pub repository: Option<RepositoryId>,
    pub roles_version: Uuid,
}

/// What a key is made of.
pub struct NewKey<'a> {
    pub id: ApiKeyId,
    pub user: UserId,
    pub name: &'a str,
    pub prefix: &'a str,
    pub hash: &'a [u8; 32],
    pub permissions: &'a [String],
    pub repository: Option<RepositoryId>,
    pub expires_in: Option<Duration>,
}

/// Inserts the key unless the user has `cap` that are neither revoked nor expired; `None` then. The user's row is
/// locked, so that two at once can't both take the last place.
#[tracing::instrument(level = "debug", name = "db.api_keys.insert", skip_all)]
pub async fn insert(conn: &mut PgConnection, key: &NewKey<'_>, cap: i64) -> Result<Option<ApiKey>> {
    sqlx::query!("SELECT id FROM okt_system.users WHERE id = $1 FOR NO KEY UPDATE", key.user.uuid())
        .fetch_optional(&mut *conn)
        .await?;
    let row = sqlx::query_as!(
        Row,
        r#"INSERT INTO okt_system.api_keys (id, user_id, name, prefix, hash, permissions, repository_id, expires_at)
           SELECT $1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8)
            WHERE (SELECT count(*) FROM okt_system.api_keys
                    WHERE user_id = $2 AND revoked_at IS NULL
                      AND (expires_at IS NULL OR expires_at > clock_timestamp())) < $9
        RETURNING id, name, prefix, permissions, repository_id, created_at,
                  expires_at, last_used_at, revoked_at"#,
        key.id.uuid(),
        key.user.uuid(),
        key.name,
        key.prefix,
        key.hash,
        key.permissions,
        key.repository.map(RepositoryId::uuid),
        key.expires_in.map(|time| time.as_secs_f64()),
        cap,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(ApiKey::from))
}

/// The key with this hash, unless it is over or its account is disabled. Notes that it was used, at most once a minute.
#[tracing::instrument(level = "debug", name = "db.api_keys.find_live", skip_all)]
pub async fn find_live(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<LiveKey>> {
    let row = sqlx::query!(
        r#"WITH found AS (
               SELECT k.id, k.user_id, k.permissions, k.repository_id, k.last_used_at, u.roles_version
                 FROM okt_system.api_keys k JOIN okt_system.users u ON u.id = k.user_id
                WHERE k.hash = $1 AND k.revoked_at IS NULL
                  AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()) AND u.disabled_at IS NULL),
           noted AS (
               UPDATE okt_system.api_keys k SET last_used_at = clock_timestamp()
                 FROM found f
                WHERE k.id = f.id
                  AND (k.last_used_at IS NULL OR k.last_used_at < clock_timestamp() - interval '1 minute'))
           SELECT id, user_id AS "user", permissions, repository_id AS repository, roles_version
             FROM found"#,
        hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| LiveKey {
        id: row.id.into(),
        user: row.user.into(),
        permissions: row.permissions,
        repository: row.repository.map(RepositoryId::from),
        roles_version: row.roles_version,
    }))
}

/// Gives keys that would end later than so long from now, or never, that end; returns how many.
#[tracing::instrument(level = "debug", name = "db.api_keys.bound", skip_all)]
pub async fn bound(conn: &mut PgConnection, longest: Duration) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_system.api_keys SET expires_at = clock_timestamp() + $1::float8 * interval '1 second'
          WHERE revoked_at IS NULL
            AND coalesce(expires_at, 'infinity') > clock_timestamp() + ($1::float8 + 60) * interval '1 second'",
        longest.as_secs_f64(),
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// All keys of a user, oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.api_keys.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    user: UserId,
    after: Option<ApiKeyId>,
    limit: i64,
) -> Result<Vec<ApiKey>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, name, prefix, permissions, repository_id, created_at,
                  expires_at, last_used_at, revoked_at
             FROM okt_system.api_keys
            WHERE user_id = $1 AND ($2::uuid IS NULL OR id > $2)
            ORDER BY id
            LIMIT $3"#,
        user.uuid(),
        after.map(ApiKeyId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(ApiKey::from).collect())
}

/// False when the user has no such key that is still alive.
#[tracing::instrument(level = "debug", name = "db.api_keys.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, user: UserId, id: ApiKeyId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.api_keys SET revoked_at = clock_timestamp()
          WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL",
        user.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes at most `limit` keys that have been over for 90 days; returns how many.
#[tracing::instrument(level = "debug", name = "db.api_keys.delete_old", skip_all)]
pub async fn delete_old(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.api_keys
          WHERE id IN (SELECT id FROM okt_system.api_keys
                        WHERE least(revoked_at, expires_at) < statement_timestamp() - interval '90 days'
                        LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

struct Row {
    id: Uuid,
    name: String,
    prefix: String,
    permissions: Vec<String>,
    repository_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

impl From<Row> for ApiKey {
    fn from(row: Row) -> Self {
        Self {
            id: row.id.into(),
            name: row.name,
            prefix: row.prefix,
            permissions: row.permissions,
            repository_id: row.repository_id.map(RepositoryId::from),
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        }
    }
}

/// Revokes some of the keys that are bound to a repository; returns how many.
#[tracing::instrument(level = "debug", name = "db.api_keys.revoke_some", skip_all)]
pub async fn revoke_some(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_system.api_keys SET revoked_at = clock_timestamp()
          WHERE id IN (SELECT id FROM okt_system.api_keys
                        WHERE repository_id = $1 AND revoked_at IS NULL LIMIT $2)",
        repository.uuid(),
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
