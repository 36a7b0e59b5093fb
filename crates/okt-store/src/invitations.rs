//! Rows of `okt_system.invitations`: open ones. Using one deletes it, so that of two who try at once one finds it.

use std::time::Duration;

use okt_model::{Email, Error, Invitation, InvitationId, RepositoryId, Role, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// An invitation that is to be.
pub struct NewInvitation<'a> {
    pub id: InvitationId,
    pub repository: RepositoryId,
    pub email: &'a Email,
    pub role: Role,
    pub hash: &'a [u8; 32],
    pub invited_by: UserId,
}

/// One that was just used.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub id: InvitationId,
    pub repository: RepositoryId,
    pub role: Role,
    pub invited_by: UserId,
}

/// Adds it, in place of an older one for the same address. False when the repository has `most` already.
#[tracing::instrument(level = "debug", name = "db.invitations.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    new: &NewInvitation<'_>,
    lifetime: Duration,
    most: i64,
) -> Result<Option<Invitation>> {
    let row = sqlx::query_as!(
        Row,
        "INSERT INTO okt_system.invitations (id, repository_id, email, email_key, role, hash, invited_by, expires_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8 * interval '1 second'
          WHERE (SELECT count(*) FROM (SELECT FROM okt_system.invitations WHERE repository_id = $2 LIMIT $9) i) < $9
             OR EXISTS (SELECT FROM okt_system.invitations WHERE repository_id = $2 AND email_key = $4)
         ON CONFLICT (repository_id, email_key) DO UPDATE
            SET id = excluded.id, email = excluded.email, role = excluded.role, hash = excluded.hash,
                invited_by = excluded.invited_by, created_at = clock_timestamp(), expires_at = excluded.expires_at
         RETURNING id, email, role, invited_by, created_at, expires_at",
        new.id.uuid(),
        new.repository.uuid(),
        new.email.as_str(),
        new.email.key(),
        new.role.as_str(),
        new.hash.as_slice(),
        new.invited_by.uuid(),
        lifetime.as_secs_f64(),
        most,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Invitation::try_from).transpose()
}

/// Those that can still be used, oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.invitations.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: Option<InvitationId>,
    limit: i64,
) -> Result<Vec<Invitation>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, email, role, invited_by, created_at, expires_at FROM okt_system.invitations
          WHERE repository_id = $1 AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
            AND expires_at > clock_timestamp()
          ORDER BY id LIMIT $3",
        repository.uuid(),
        after.map(InvitationId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Invitation::try_from).collect()
}

/// False when there is none.
#[tracing::instrument(level = "debug", name = "db.invitations.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: InvitationId) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.invitations WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Uses one up; `None` when there is none with this secret, it has expired, or its repository is not there any more.
#[tracing::instrument(level = "debug", name = "db.invitations.use_up", skip_all)]
pub async fn use_up(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<Used>> {
    let row = sqlx::query!(
        "DELETE FROM okt_system.invitations i
          USING okt_system.repositories r
          WHERE i.hash = $1 AND i.expires_at > clock_timestamp() AND r.id = i.repository_id AND r.state = 'active'
         RETURNING i.id, i.repository_id, i.role, i.invited_by",
        hash.as_slice(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Used {
            id: row.id.into(),
            repository: row.repository_id.into(),
            role: row.role.parse().map_err(Error::internal)?,
            invited_by: row.invited_by.into(),
        })
    })
    .transpose()
}

/// Removes those of a repository that was deleted, some of them; returns how many.
#[tracing::instrument(level = "debug", name = "db.invitations.delete_of", skip_all)]
pub async fn delete_of(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.invitations
          WHERE id IN (SELECT id FROM okt_system.invitations WHERE repository_id = $1 LIMIT $2)",
        repository.uuid(),
        limit,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

/// Removes those that nobody used in time, some of them; returns how many.
#[tracing::instrument(level = "debug", name = "db.invitations.delete_expired", skip_all)]
pub async fn delete_expired(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.invitations
          WHERE id IN (SELECT id FROM okt_system.invitations WHERE expires_at < clock_timestamp() LIMIT $1)",
        limit,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

struct Row {
    id: Uuid,
    email: String,
    role: String,
    invited_by: Uuid,
    created_at: chrono::DateTime<chrono::Utc>,
    expires_at: chrono::DateTime<chrono::Utc>,
}

impl TryFrom<Row> for Invitation {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            email: row.email,
            role: row.role.parse().map_err(Error::internal)?,
            invited_by: row.invited_by.into(),
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}
