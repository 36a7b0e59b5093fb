//! Rows of `okt_repository.counters`.

use okt_model::RepositoryId;
use sqlx::PgConnection;

use crate::databases::Databases;
use okt_pg::Result;

/// Adds `delta` (which may be negative) in the transaction that changes what is counted; returns what it comes to. Until the
/// end of the transaction nobody else adds to it.
#[tracing::instrument(level = "debug", name = "db.counters.add", skip_all)]
pub async fn add(conn: &mut PgConnection, repository: RepositoryId, name: &str, delta: i64) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        "INSERT INTO okt_repository.counters AS c (repository_id, name, value)
         VALUES ($1, $2, $3)
         ON CONFLICT (repository_id, name) DO UPDATE SET value = c.value + excluded.value
         RETURNING value",
        repository.uuid(),
        name,
        delta,
    )
    .fetch_one(conn)
    .await?)
}

/// The counters of a repository by name.
#[tracing::instrument(level = "debug", name = "db.counters.list", skip_all)]
pub async fn list(conn: &mut PgConnection, repository: RepositoryId) -> Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        "SELECT name, value FROM okt_repository.counters WHERE repository_id = $1 ORDER BY name",
        repository.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.name, row.value)).collect())
}

/// The counters of several repositories that live in one database.
#[tracing::instrument(level = "debug", name = "db.counters.list_of", skip_all)]
pub async fn list_of(
    databases: &Databases,
    database: &str,
    repositories: &[RepositoryId],
) -> Result<Vec<(RepositoryId, String, i64)>> {
    let ids: Vec<uuid::Uuid> = repositories.iter().map(|id| id.uuid()).collect();
    let mut tx = databases.begin_to_count(database).await?;
    let rows = sqlx::query!(
        r#"SELECT repository_id AS "repository_id!", name AS "name!", value AS "value!"
             FROM okt_repository.counters_of($1)"#,
        &ids,
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(rows.into_iter().map(|row| (row.repository_id.into(), row.name, row.value)).collect())
}
