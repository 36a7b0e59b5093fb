//! Rows of `okt_system.host_providers`: which ways of fetching do not work for a host, as a repository has found out.

use std::time::Duration;

use okt_model::RepositoryId;
use sqlx::PgConnection;

use okt_pg::Result;

/// How a provider has done for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub provider: String,
    pub attempts: u64,
    pub failures: u64,
    pub since_last_failure: Duration,
}

/// Of those that have ever failed for the host.
#[tracing::instrument(level = "debug", name = "db.host_providers.list", skip_all)]
pub async fn list(conn: &mut PgConnection, repository: RepositoryId, host: &str) -> Result<Vec<Record>> {
    let rows = sqlx::query!(
        r#"SELECT provider, attempts, failures,
                  extract(epoch FROM clock_timestamp() - failed_at)::float8 AS "since!"
             FROM okt_system.host_providers
            WHERE repository_id = $1 AND host = $2 AND failed_at IS NOT NULL"#,
        repository.uuid(),
        host,
    )
    .fetch_all(conn)
    .await?;
    let records = rows.into_iter().map(|row| Record {
        provider: row.provider,
        attempts: u64::try_from(row.attempts).unwrap_or(0),
        failures: u64::try_from(row.failures).unwrap_or(0),
        since_last_failure: Duration::try_from_secs_f64(row.since).unwrap_or_default(),
    });
    Ok(records.collect())
}

/// Adds what happened.
#[tracing::instrument(level = "debug", name = "db.host_providers.add", skip_all)]
pub async fn add(
    conn: &mut PgConnection,
    repository: RepositoryId,
    host: &str,
    provider: &str,
    attempts: i64,
    failures: i64,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.host_providers AS h
                (repository_id, host, provider, attempts, failures, failed_at)
         VALUES ($1, $2, $3, $4, $5, CASE WHEN $5::bigint > 0 THEN clock_timestamp() END)
         ON CONFLICT (repository_id, host, provider) DO UPDATE
            SET attempts = h.attempts + excluded.attempts, failures = h.failures + excluded.failures,
                failed_at = coalesce(excluded.failed_at, h.failed_at), updated_at = clock_timestamp()",
        repository.uuid(),
        host,
        provider,
        attempts,
        failures,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets hosts that nobody has asked for long; returns how many rows.
#[tracing::instrument(level = "debug", name = "db.host_providers.delete_old", skip_all)]
pub async fn delete_old(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.host_providers
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM okt_system.host_providers
                                   WHERE updated_at < clock_timestamp() - interval '90 days' LIMIT $1))",
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
