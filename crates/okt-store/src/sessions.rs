//! Rows of `okt_system.sessions` and `okt_system.refresh_tokens`. A session is the family of its refresh tokens, be it
//! of a person or of a client that a person let in.

use std::time::Duration;

use okt_model::{Result, SessionId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::from_sqlx;

/// Whose session it is, and how current what is remembered of their roles must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    pub user: UserId,
    pub roles_version: Uuid,
}

/// A refresh token and its family, as they are once the family is locked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Presented {
    pub session: SessionId,
    pub user: UserId,
    /// Neither revoked nor expired.
    pub alive: bool,
    /// How long ago it was used, if it was.
    pub used: Option<Duration>,
    /// Whether another token was put in its place because nobody seemed to have this one.
    pub superseded: bool,
    /// Whether the token that took its place has been used, if there is one.
    pub successor_used: Option<bool>,
}

#[tracing::instrument(level = "debug", name = "db.sessions.insert", skip_all)]
pub async fn insert(conn: &mut PgConnection, id: SessionId, user: UserId, ttl: Duration) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.sessions (id, user_id, expires_at)
         VALUES ($1, $2, clock_timestamp() + least(make_interval(secs => $3), interval '90 days'))",
        id.uuid(),
        user.uuid(),
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// The session, unless it is over.
#[tracing::instrument(level = "debug", name = "db.sessions.find_live", skip_all)]
pub async fn find_live(conn: &mut PgConnection, id: SessionId) -> Result<Option<Live>> {
    sqlx::query_as!(
        Live,
        r#"SELECT s.user_id AS "user", u.roles_version
             FROM okt_system.sessions s JOIN okt_system.users u ON u.id = s.user_id
            WHERE s.id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)
}

/// Ends a session; false when it was over already.
#[tracing::instrument(level = "debug", name = "db.sessions.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, id: SessionId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.sessions SET revoked_at = clock_timestamp() WHERE id = $1 AND revoked_at IS NULL",
        id.uuid(),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected() == 1)
}

/// The first refresh token of a session.
#[tracing::instrument(level = "debug", name = "db.refresh_tokens.insert", skip_all)]
pub async fn insert_refresh_token(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    session: SessionId,
    ttl: Duration,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.refresh_tokens (hash, session_id, expires_at)
         VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))",
        hash,
        session.uuid(),
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// Locks the family of a refresh token until the end of the transaction and tells how things stand. Whoever
/// presents a token of the same family waits, so that what follows is done by one after the other.
#[tracing::instrument(level = "debug", name = "db.refresh_tokens.present", skip_all)]
pub async fn present_refresh_token(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<Presented>> {
    sqlx::query!(
        "SELECT id FROM okt_system.sessions
          WHERE id = (SELECT session_id FROM okt_system.refresh_tokens WHERE hash = $1)
            FOR UPDATE",
        hash,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(from_sqlx)?;
    // A statement of its own: only one that begins after the lock was had sees what the one before us did.
    let row = sqlx::query!(
        r#"SELECT s.id AS session, s.user_id AS "user", next.used_at IS NOT NULL AS "successor_used!",
                  next.hash IS NOT NULL AS "has_successor!", t.superseded_at IS NOT NULL AS "superseded!",
                  (s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
                      AND t.expires_at > clock_timestamp()) AS "alive!",
                  extract(epoch FROM clock_timestamp() - t.used_at)::float8 AS used_seconds
             FROM okt_system.refresh_tokens t
             JOIN okt_system.sessions s ON s.id = t.session_id
             LEFT JOIN okt_system.refresh_tokens next ON next.hash = t.successor
            WHERE t.hash = $1"#,
        hash,
    )
    .fetch_optional(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(row.map(|row| Presented {
        session: row.session.into(),
        user: row.user.into(),
        alive: row.alive,
        superseded: row.superseded,
        used: row.used_seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))),
        successor_used: row.has_successor.then_some(row.successor_used),
    }))
}

/// Puts `successor` in the place of `hash`; what was there before must not come back. The session lives as long as it does, but
/// not for more than 90 days: then a person has to sign in again.
#[tracing::instrument(level = "debug", name = "db.refresh_tokens.rotate", skip_all)]
pub async fn rotate_refresh_token(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    successor: &[u8; 32],
    session: SessionId,
    ttl: Duration,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.refresh_tokens SET superseded_at = clock_timestamp()
          WHERE hash = (SELECT successor FROM okt_system.refresh_tokens WHERE hash = $1)",
        hash,
    )
    .execute(&mut *conn)
    .await
    .map_err(from_sqlx)?;
    sqlx::query!(
        "WITH used AS (
             UPDATE okt_system.refresh_tokens
                SET used_at = coalesce(used_at, clock_timestamp()), successor = $2
              WHERE hash = $1),
              extended AS (
             UPDATE okt_system.sessions
                SET expires_at = least(clock_timestamp() + make_interval(secs => $4), created_at + interval '90 days')
              WHERE id = $3)
         INSERT INTO okt_system.refresh_tokens (hash, session_id, expires_at)
         VALUES ($2, $3, clock_timestamp() + make_interval(secs => $4))",
        hash,
        successor,
        session.uuid(),
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(())
}

/// Deletes at most `limit` refresh tokens that have run out, of sessions that go on; returns how many. Until then one
/// that was used is kept, because whoever shows it again stole it.
#[tracing::instrument(level = "debug", name = "db.refresh_tokens.delete_expired", skip_all)]
pub async fn delete_expired_refresh_tokens(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.refresh_tokens
          WHERE hash IN (SELECT hash FROM okt_system.refresh_tokens WHERE expires_at < statement_timestamp()
                          LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected())
}

/// Deletes at most `limit` sessions that are over, with their tokens; returns how many.
#[tracing::instrument(level = "debug", name = "db.sessions.delete_expired", skip_all)]
pub async fn delete_expired(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.sessions
          WHERE id IN (SELECT id FROM okt_system.sessions
                        WHERE least(expires_at, revoked_at) < statement_timestamp() - interval '1 day'
                        LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(conn)
    .await
    .map_err(from_sqlx)?;
    Ok(done.rows_affected())
}
