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

/// From now on nobody here takes anything of this key.
#[tracing::instrument(level = "debug", name = "db.registry_trust.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, key: &str) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_system.revoked_origins (key_id) VALUES ($1) ON CONFLICT DO NOTHING",
        key,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Up to when the withdrawals of a registry were read.
#[tracing::instrument(level = "debug", name = "db.registry_trust.read_until", skip_all)]
pub async fn read_until(conn: &mut PgConnection, registry: &str) -> Result<Option<DateTime<Utc>>> {
    let row = sqlx::query_scalar!(
        "SELECT read_until FROM okt_system.registry_withdrawals WHERE registry = $1",
        registry,
    );
    Ok(row.fetch_optional(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry_trust.mark_read", skip_all)]
pub async fn mark_read(conn: &mut PgConnection, registry: &str, until: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.registry_withdrawals AS w (registry, read_until) VALUES ($1, $2)
         ON CONFLICT (registry) DO UPDATE SET read_until = greatest(w.read_until, excluded.read_until)",
        registry,
        until,
    )
    .execute(conn)
    .await?;
    Ok(())
}
