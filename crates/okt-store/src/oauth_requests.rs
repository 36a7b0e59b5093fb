//! Rows of `okt_system.oauth_requests` and `okt_system.oauth_browsers`: authorizations that people are asked for.

use std::time::Duration;

use okt_model::{AuthorizationId, UserId};
use sqlx::PgConnection;

use okt_pg::Result;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub client_id: String,
    pub redirect_uri: String,
    pub scope: Vec<String>,
    pub state: Option<String>,
    pub code_challenge: String,
    pub resource: String,
}

/// A request that has not been decided on and not expired.
#[derive(Clone, Debug)]
pub struct Open {
    pub id: AuthorizationId,
    /// Who signed in to decide.
    pub user: Option<UserId>,
    pub asked: Asked,
}

#[tracing::instrument(level = "debug", name = "db.oauth_requests.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    id: AuthorizationId,
    browser: &[u8; 32],
    user: Option<UserId>,
    asked: &Asked,
    ttl: Duration,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.oauth_requests (id, browser, user_id, client_id, redirect_uri, scope, state,
                                                code_challenge, resource, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))",
        id.uuid(),
        browser,
        user.map(UserId::uuid),
        asked.client_id,
        asked.redirect_uri,
        &asked.scope,
        asked.state,
        asked.code_challenge,
        asked.resource,
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The request, if this browser made it and it is still open.
#[tracing::instrument(level = "debug", name = "db.oauth_requests.find_open", skip_all)]
pub async fn find_open(
    conn: &mut PgConnection,
    id: AuthorizationId,
    browser: &[u8; 32],
) -> Result<Option<Open>> {
    let row = sqlx::query!(
        "SELECT user_id, client_id, redirect_uri, scope, state, code_challenge, resource
           FROM okt_system.oauth_requests
          WHERE id = $1 AND browser = $2 AND decided_at IS NULL AND expires_at > clock_timestamp()",
        id.uuid(),
        browser,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Open {
        id,
        user: row.user_id.map(UserId::from),
        asked: Asked {
            client_id: row.client_id,
            redirect_uri: row.redirect_uri,
            scope: row.scope,
            state: row.state,
            code_challenge: row.code_challenge,
            resource: row.resource,
        },
    }))
}

/// Somebody signed in in the browser: the request goes on under another secret of the browser, and is theirs. The one
/// before is worth nothing any more.
#[tracing::instrument(level = "debug", name = "db.oauth_requests.sign_in", skip_all)]
pub async fn sign_in(
    conn: &mut PgConnection,
    id: AuthorizationId,
    before: &[u8; 32],
    browser: &[u8; 32],
    user: UserId,
    ttl: Duration,
) -> Result<bool> {
    let done = sqlx::query!(
        "WITH mine AS (
             UPDATE okt_system.oauth_requests SET browser = $3, user_id = $4
              WHERE id = $1 AND browser = $2 AND decided_at IS NULL AND expires_at > clock_timestamp()
          RETURNING id),
              gone AS (
             DELETE FROM okt_system.oauth_browsers WHERE hash = $2 AND EXISTS (SELECT FROM mine))
         INSERT INTO okt_system.oauth_browsers (hash, user_id, expires_at)
         SELECT $3, $4, clock_timestamp() + make_interval(secs => $5) FROM mine",
        id.uuid(),
        before,
        browser,
        user.uuid(),
        ttl.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Who signed in in this browser a few minutes ago. It stays so until the end of the transaction: what they are asked in it
/// is there for whoever forgets them next.
#[tracing::instrument(level = "debug", name = "db.oauth_browsers.find_user", skip_all)]
pub async fn find_user(conn: &mut PgConnection, browser: &[u8; 32]) -> Result<Option<UserId>> {
    let user = sqlx::query_scalar!(
        "SELECT user_id FROM okt_system.oauth_browsers WHERE hash = $1 AND expires_at > clock_timestamp() FOR SHARE",
        browser,
    )
    .fetch_optional(conn)
    .await?;
    Ok(user.map(UserId::from))
}

/// Marks the request as decided by `user` in this browser; false when somebody was quicker, or it is another's.
/// To be called in the transaction that writes what comes of it.
#[tracing::instrument(level = "debug", name = "db.oauth_requests.decide", skip_all)]
pub async fn decide(
    conn: &mut PgConnection,
    id: AuthorizationId,
    browser: &[u8; 32],
    user: UserId,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_system.oauth_requests SET decided_at = clock_timestamp()
          WHERE id = $1 AND browser = $2 AND user_id = $3
            AND decided_at IS NULL AND expires_at > clock_timestamp()",
        id.uuid(),
        browser,
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Forgets where somebody signed in to decide, and what they have been asked. There are a few minutes' worth of each.
#[tracing::instrument(level = "debug", name = "db.oauth_requests.forget_user", skip_all)]
pub async fn forget_user(conn: &mut PgConnection, user: UserId) -> Result<()> {
    sqlx::query!("DELETE FROM okt_system.oauth_browsers WHERE user_id = $1", user.uuid())
        .execute(&mut *conn)
        .await?;
    sqlx::query!("DELETE FROM okt_system.oauth_requests WHERE user_id = $1", user.uuid())
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes at most `limit` of each that are over; returns how many.
#[tracing::instrument(level = "debug", name = "db.oauth_requests.delete_expired", skip_all)]
pub async fn delete_expired(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let requests = sqlx::query!(
        "DELETE FROM okt_system.oauth_requests
          WHERE id IN (SELECT id FROM okt_system.oauth_requests WHERE expires_at < statement_timestamp()
                        LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(&mut *conn)
    .await?;
    let browsers = sqlx::query!(
        "DELETE FROM okt_system.oauth_browsers
          WHERE hash IN (SELECT hash FROM okt_system.oauth_browsers WHERE expires_at < statement_timestamp()
                          LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit,
    )
    .execute(conn)
    .await?;
    Ok(requests.rows_affected().max(browsers.rows_affected()))
}
