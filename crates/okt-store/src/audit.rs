//! Rows of `okt_system.audit`: who did what, kept for `audit.retention_days`. Rows are added and, when they are old,
//! deleted; never changed.

use chrono::{DateTime, TimeDelta, Utc};
use okt_model::{AuditEntry, AuditFilter, NewAuditEntry, RepositoryId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use okt_pg::{Result, planned_anew};

/// In the transaction of the change that it records.
#[tracing::instrument(level = "debug", name = "db.audit.insert", skip_all)]
pub async fn insert(conn: &mut PgConnection, entry: &NewAuditEntry<'_>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.audit
                (id, actor_id, actor_kind, credential_id, action, object, repository_id, address, user_agent, via, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        entry.id.uuid(),
        entry.actor.map(UserId::uuid),
        entry.actor_kind,
        entry.credential,
        entry.action,
        entry.object,
        entry.repository.map(RepositoryId::uuid),
        entry.address,
        entry.agent,
        entry.via,
        entry.request_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How far the clocks of two processes may be apart: ids are minted by theirs, times by the database's.
const SKEW: TimeDelta = TimeDelta::minutes(5);

/// The smallest id of a moment, so that a time bounds the walk over the primary key.
fn around(at: DateTime<Utc>) -> Uuid {
    let milliseconds = u128::try_from(at.timestamp_millis().max(0)).unwrap_or(0);
    Uuid::from_u128(milliseconds << 80)
}

/// Newest first, from before `before`; everybody's, or what belongs to a repository. Belongs into a transaction of its own.
#[tracing::instrument(level = "debug", name = "db.audit.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: Option<RepositoryId>,
    filter: &AuditFilter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<AuditEntry>> {
    planned_anew(conn).await?;
    let rows = sqlx::query!(
        r#"SELECT id, at, actor_id, actor_kind, credential_id, action, object, repository_id, address, user_agent, via, request_id
             FROM okt_system.audit
            WHERE ($1::uuid IS NULL OR id < $1)
              AND ($8::uuid IS NULL OR id >= $8)
              AND ($9::uuid IS NULL OR id < $9)
              AND ($2::timestamptz IS NULL OR at >= $2)
              AND ($3::timestamptz IS NULL OR at < $3)
              AND ($4::uuid IS NULL OR actor_id = $4)
              AND ($5::text IS NULL OR action = $5)
              AND ($6::text IS NULL OR object = $6)
              AND ($10::uuid IS NULL OR repository_id = $10)
            ORDER BY id DESC
            LIMIT $7"#,
        before,
        filter.from as Option<DateTime<Utc>>,
        filter.to as Option<DateTime<Utc>>,
        filter.actor.map(UserId::uuid),
        filter.action,
        filter.object,
        limit,
        filter.from.map(|from| around(from - SKEW)),
        filter.to.map(|to| around(to + SKEW)),
        repository.map(RepositoryId::uuid),
    )
    .fetch_all(conn)
    .await?;
    let entry = rows.into_iter().map(|row| AuditEntry {
        id: row.id,
        at: row.at,
        actor: row.actor_id.map(UserId::from),
        actor_kind: row.actor_kind,
        credential: row.credential_id,
        action: row.action,
        object: row.object,
        repository: row.repository_id.map(RepositoryId::from),
        address: row.address,
        agent: row.user_agent,
        via: row.via,
        request_id: row.request_id,
    });
    Ok(entry.collect())
}

/// Deletes at most `limit` rows that are older than `days`; returns how many.
#[tracing::instrument(level = "debug", name = "db.audit.delete_old", skip_all)]
pub async fn delete_old(conn: &mut PgConnection, days: i32, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM okt_system.audit
          WHERE id IN (SELECT id FROM okt_system.audit
                        WHERE at < clock_timestamp() - make_interval(days => $1)
                        ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        days,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
