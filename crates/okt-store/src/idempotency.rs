//! Rows of `okt_system.idempotency_keys`.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::Result;

/// How long an answer is kept.
pub const KEPT: Duration = Duration::from_hours(24);

/// What a key stands for right now.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim {
    /// The caller runs the request and must [`finish`] or [`release`] the claim.
    Ours(Uuid),
    /// The same request runs elsewhere.
    InFlight,
    /// The same request was begun, and whoever ran it is gone: nobody knows what became of it.
    Lost,
    /// The key was used for another request.
    Mismatch,
    /// The same request was answered.
    Answered(Answer),
}

/// The answer that is given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Of the claim it was kept under.
    pub claim: Uuid,
    pub status: u16,
    pub content_type: Option<String>,
    pub location: Option<String>,
    /// Sealed: an answer may hold what is shown only once, such as a key.
    pub sealed_body: Vec<u8>,
}

/// Claims the key for the request with this fingerprint. A claim is never handed to a second request within
/// [`KEPT`]: what one key stands for is done at most once. One that is unfinished after `lease` counts as lost.
#[tracing::instrument(level = "debug", name = "db.idempotency_keys.claim", skip_all)]
pub async fn claim(
    conn: &mut PgConnection,
    principal: &str,
    key: &str,
    fingerprint: &[u8; 32],
    lease: Duration,
) -> Result<Claim> {
    let claimed = sqlx::query_scalar!(
        "INSERT INTO okt_system.idempotency_keys AS k (principal, key, fingerprint, claim, claimed_at)
         VALUES ($1, $2, $3, gen_random_uuid(), clock_timestamp())
         ON CONFLICT (principal, key) DO UPDATE
            SET fingerprint = excluded.fingerprint, claim = excluded.claim, claimed_at = excluded.claimed_at,
                status = NULL, content_type = NULL, location = NULL, sealed_body = NULL
          WHERE k.claimed_at < clock_timestamp() - make_interval(secs => $4)
         RETURNING claim",
        principal,
        key,
        fingerprint,
        KEPT.as_secs_f64(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    if let Some(claim) = claimed {
        return Ok(Claim::Ours(claim));
    }

    let row = sqlx::query!(
        r#"SELECT claim, fingerprint, status, content_type, location, sealed_body,
                  claimed_at < clock_timestamp() - make_interval(secs => $3) AS "stale!"
             FROM okt_system.idempotency_keys
            WHERE principal = $1 AND key = $2"#,
        principal,
        key,
        lease.as_secs_f64(),
    )
    .fetch_optional(conn)
    .await?;
    // A row that vanished in between was released: nothing was done, and asking again is right.
    let Some(row) = row else { return Ok(Claim::InFlight) };
    if row.fingerprint != fingerprint {
        return Ok(Claim::Mismatch);
    }
    let Some(status) = row.status else {
        return Ok(if row.stale { Claim::Lost } else { Claim::InFlight });
    };
    Ok(Claim::Answered(Answer {
        claim: row.claim,
        status: u16::try_from(status).unwrap_or(200),
        content_type: row.content_type,
        location: row.location,
        sealed_body: row.sealed_body.unwrap_or_default(),
    }))
}

/// Keeps the answer of a claim.
#[tracing::instrument(level = "debug", name = "db.idempotency_keys.finish", skip_all)]
pub async fn finish(conn: &mut PgConnection, principal: &str, key: &str, answer: &Answer) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.idempotency_keys
            SET status = $4, content_type = $5, location = $6, sealed_body = $7
          WHERE principal = $1 AND key = $2 AND claim = $3",
        principal,
        key,
        answer.claim,
        i16::try_from(answer.status).unwrap_or(i16::MAX),
        answer.content_type,
        answer.location,
        answer.sealed_body,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives the key back when nothing was done, so that the request may be tried again at once.
#[tracing::instrument(level = "debug", name = "db.idempotency_keys.release", skip_all)]
pub async fn release(conn: &mut PgConnection, claim: Uuid, principal: &str, key: &str) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_system.idempotency_keys
          WHERE principal = $1 AND key = $2 AND claim = $3 AND status IS NULL",
        principal,
        key,
        claim,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes at most `limit` answers that are older than [`KEPT`]; returns how many.
#[tracing::instrument(level = "debug", name = "db.idempotency_keys.delete_expired", skip_all)]
pub async fn delete_expired(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.idempotency_keys
          WHERE (principal, key) IN (
                SELECT principal, key FROM okt_system.idempotency_keys
                 WHERE claimed_at < clock_timestamp() - make_interval(secs => $1)
                 ORDER BY claimed_at
                 LIMIT $2
                   FOR UPDATE SKIP LOCKED)",
        KEPT.as_secs_f64(),
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
