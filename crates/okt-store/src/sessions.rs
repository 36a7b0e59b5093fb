//! Rows of `okt_system.sessions` and `okt_system.refresh_tokens`. A session is the family of its refresh tokens, be it
//! of a person or of a client that a person let in.

use std::time::Duration;

use okt_model::{Session, SessionId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// Whose session it is, and how current what is remembered of their roles must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    pub user: UserId,
    pub roles_version: Uuid,
    /// Whether the use was noted so long ago that it is time to do it again.
    pub unnoted: bool,
}

/// Where a session began; nothing of it is known for clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device<'a> {
    pub address: Option<&'a str>,
    pub agent: Option<&'a str>,
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
pub async fn insert(
    conn: &mut PgConnection,
    id: SessionId,
    user: UserId,
    ttl: Duration,
    device: Device<'_>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.sessions (id, user_id, expires_at, address, user_agent)
         VALUES ($1, $2, clock_timestamp() + least(make_interval(secs => $3), interval '90 days'), $4, $5)",
        id.uuid(),
        user.uuid(),
        ttl.as_secs_f64(),
        device.address,
        device.agent,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The session, unless it is over or its account is disabled.
#[tracing::instrument(level = "debug", name = "db.sessions.find_live", skip_all)]
pub async fn find_live(conn: &mut PgConnection, id: SessionId) -> Result<Option<Live>> {
    Ok(sqlx::query_as!(
        Live,
        r#"SELECT s.user_id AS "user", u.roles_version,
                  coalesce(s.last_used_at, s.created_at) < clock_timestamp() - interval '5 minutes' AS "unnoted!"
             FROM okt_system.sessions s JOIN okt_system.users u ON u.id = s.user_id
            WHERE s.id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
              AND u.disabled_at IS NULL"#,
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?)
}

/// Notes that a session is in use. A statement of its own, so that those who only look write nothing.
#[tracing::instrument(level = "debug", name = "db.sessions.note_use", skip_all)]
pub async fn note_use(conn: &mut PgConnection, id: SessionId) -> Result<()> {
    sqlx::query!("UPDATE okt_system.sessions SET last_used_at = clock_timestamp() WHERE id = $1", id.uuid())
        .execute(conn)
        .await?;
    Ok(())
}

/// The sessions of a person that go on, without those of clients; oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.sessions.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    user: UserId,
    after: Option<SessionId>,
    limit: i64,
) -> Result<Vec<Session>> {
    Ok(sqlx::query_as!(
        Session,
        r#"SELECT s.id, s.created_at, coalesce(s.last_used_at, s.created_at) AS "last_used_at!", s.expires_at,
                  s.address, s.user_agent AS agent
             FROM okt_system.sessions s
            WHERE s.user_id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
              AND NOT EXISTS (SELECT FROM okt_system.oauth_grants g WHERE g.id = s.id)
              AND ($2::uuid IS NULL OR s.id > $2)
            ORDER BY s.id
            LIMIT $3"#,
        user.uuid(),
        after.map(SessionId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await?)
}

/// Ends a session of this person; false when they have none like that, or it was over.
#[tracing::instrument(level = "debug", name = "db.sessions.revoke_of", skip_all)]
pub async fn revoke_of(conn: &mut PgConnection, user: UserId, id: SessionId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.sessions s SET revoked_at = clock_timestamp()
          WHERE s.id = $2 AND s.user_id = $1 AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
            AND NOT EXISTS (SELECT FROM okt_system.oauth_grants g WHERE g.id = s.id)",
        user.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends every session of a user but one, those of clients among them.
#[tracing::instrument(level = "debug", name = "db.sessions.revoke_all", skip_all)]
pub async fn revoke_all(conn: &mut PgConnection, user: UserId, kept: Option<SessionId>) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_system.sessions SET revoked_at = clock_timestamp()
          WHERE user_id = $1 AND revoked_at IS NULL AND id IS DISTINCT FROM $2",
        user.uuid(),
        kept.map(SessionId::uuid),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Ends a session; false when it was over already.
#[tracing::instrument(level = "debug", name = "db.sessions.revoke", skip_all)]
pub async fn revoke(conn: &mut PgConnection, id: SessionId) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.sessions SET revoked_at = clock_timestamp() WHERE id = $1 AND revoked_at IS NULL",
        id.uuid(),
    )
    .execute(conn)
    .await?;
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
    .await?;
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
    .await?;
    // A statement of its own: only one that begins after the lock was had sees what the one before us did.
    let row = sqlx::query!(
        r#"SELECT s.id AS session, s.user_id AS "user", next.used_at IS NOT NULL AS "successor_used!",
                  next.hash IS NOT NULL AS "has_successor!", t.superseded_at IS NOT NULL AS "superseded!",
                  (s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
                      AND t.expires_at > clock_timestamp() AND u.disabled_at IS NULL) AS "alive!",
                  extract(epoch FROM clock_timestamp() - t.used_at)::float8 AS used_seconds
             FROM okt_system.refresh_tokens t
             JOIN okt_system.sessions s ON s.id = t.session_id
             JOIN okt_system.users u ON u.id = s.user_id
             LEFT JOIN okt_system.refresh_tokens next ON next.hash = t.successor
            WHERE t.hash = $1"#,
        hash,
    )
    .fetch_optional(conn)
    .await?;
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
    .await?;
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
    .await?;
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
    .await?;
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
    .await?;
    Ok(done.rows_affected())
}
