//! Rows of `okt_system.revoked_origins` and `registry_withdrawals`: what the installation knows of those who give things to registries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use okt_pg::Result;

/// Keys whose packages and bundles nobody here takes any more.
#[tracing::instrument(level = "debug", name = "db.registry_trust.list_revoked", skip_all)]
pub async fn list_revoked(conn: &mut PgConnection) -> Result<Vec<String>> {
    let rows = sqlx::query_scalar!("SELECT key_id FROM okt_system.revoked_origins ORDER BY key_id");
    Ok(rows.fetch_all(conn).await?)
}

/// Those of which something may be left here.
#[tracing::instrument(level = "debug", name = "db.registry_trust.list_uncleared", skip_all)]
pub async fn list_uncleared(conn: &mut PgConnection) -> Result<Vec<String>> {
    let rows = sqlx::query_scalar!(
        "SELECT key_id FROM okt_system.revoked_origins WHERE cleared_at IS NULL ORDER BY key_id",
    );
    Ok(rows.fetch_all(conn).await?)
}

/// All repositories were looked at since `begun`. No import takes a day: of keys that were revoked earlier, nothing comes in any more.
#[tracing::instrument(level = "debug", name = "db.registry_trust.mark_cleared", skip_all)]
pub async fn mark_cleared(conn: &mut PgConnection, keys: &[String], begun: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.revoked_origins SET cleared_at = clock_timestamp()
          WHERE key_id = ANY($1) AND cleared_at IS NULL AND revoked_at <= $2::timestamptz - interval '1 day'",
        keys,
        begun,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// From now on nobody here takes anything of this key.
#[tracing::instrument(level = "debug", name = "db.registry_trust.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, key: &str) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.revoked_origins (key_id) VALUES ($1) ON CONFLICT DO NOTHING",
        key,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// How far the withdrawals of a registry were read.
#[derive(Clone, Debug)]
pub struct ReadPlace {
    pub until: DateTime<Utc>,
    /// Of a list that was not read to its end: since when it is.
    pub since: Option<DateTime<Utc>>,
    /// Where it goes on.
    pub cursor: Option<String>,
}

#[tracing::instrument(level = "debug", name = "db.registry_trust.find_place", skip_all)]
pub async fn find_place(conn: &mut PgConnection, registry: &str) -> Result<Option<ReadPlace>> {
    let row = sqlx::query_as!(
        ReadPlace,
        "SELECT read_until AS until, since, cursor FROM okt_system.registry_withdrawals WHERE registry = $1",
        registry,
    );
    Ok(row.fetch_optional(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry_trust.mark_read", skip_all)]
pub async fn mark_read(conn: &mut PgConnection, registry: &str, place: &ReadPlace) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.registry_withdrawals AS w (registry, read_until, since, cursor) VALUES ($1, $2, $3, $4)
         ON CONFLICT (registry) DO UPDATE
            SET read_until = greatest(w.read_until, excluded.read_until), since = excluded.since, cursor = excluded.cursor",
        registry,
        place.until,
        place.since,
        place.cursor,
    )
    .execute(conn)
    .await?;
    Ok(())
}
