//! Rows of `okt_system.user_usage` and `uploads`: how much everybody has. Triggers keep the numbers.

use okt_model::{RepositoryId, SourceId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::model_answers::{signed, unsigned};
use okt_pg::Result;

/// How much somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserUsage {
    pub repositories: u64,
    /// Of files that they uploaded.
    pub bytes: u64,
}

/// Until the end of the transaction nobody else adds to what this person has.
#[tracing::instrument(level = "debug", name = "db.user_usage.lock", skip_all, fields(user.id = %user))]
pub async fn lock(conn: &mut PgConnection, user: UserId) -> Result<UserUsage> {
    let row = sqlx::query!(
        "INSERT INTO okt_system.user_usage (user_id) VALUES ($1)
         ON CONFLICT (user_id) DO UPDATE SET user_id = excluded.user_id
         RETURNING repositories, bytes",
        user.uuid(),
    );
    let row = row.fetch_one(conn).await?;
    Ok(UserUsage { repositories: unsigned(row.repositories), bytes: unsigned(row.bytes) })
}

#[tracing::instrument(level = "debug", name = "db.uploads.insert", skip_all, fields(source.id = %source))]
pub async fn insert_upload(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    user: UserId,
    bytes: u64,
) -> Result<()> {
    let insert = sqlx::query!(
        "INSERT INTO okt_system.uploads (source_id, repository_id, user_id, bytes) VALUES ($1, $2, $3, $4)",
        source.uuid(),
        repository.uuid(),
        user.uuid(),
        signed(bytes),
    );
    insert.execute(conn).await?;
    Ok(())
}

/// Gives back what these took, where they took any.
#[tracing::instrument(level = "debug", name = "db.uploads.delete", skip_all)]
pub async fn delete_uploads(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[SourceId],
) -> Result<()> {
    let ids: Vec<Uuid> = sources.iter().map(|id| id.uuid()).collect();
    let delete = sqlx::query!(
        "DELETE FROM okt_system.uploads WHERE source_id = ANY ($1) AND repository_id = $2",
        &ids,
        repository.uuid(),
    );
    delete.execute(conn).await?;
    Ok(())
}

/// Gives back what sources of a repository that was deleted took, some of it; returns how many sources.
#[tracing::instrument(level = "debug", name = "db.uploads.delete_of", skip_all)]
pub async fn delete_uploads_of(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<u64> {
    let delete = sqlx::query!(
        "DELETE FROM okt_system.uploads
          WHERE source_id IN (SELECT source_id FROM okt_system.uploads WHERE repository_id = $1 LIMIT $2)",
        repository.uuid(),
        limit,
    );
    Ok(delete.execute(conn).await?.rows_affected())
}
