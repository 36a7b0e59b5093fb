//! Rows of `okt_repository.webhook_deliveries`: events for webhooks, and what came of telling them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_model::{
    DeliverWebhook, Delivery, DeliveryAttempt, DeliveryId, DeliveryState, Error, JobId, Payload as _,
    RepositoryId, WebhookId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::outbox::{self, When};
use crate::words::word;
use okt_pg::Result;

/// A delivery with what is needed for an attempt.
pub struct ToSend {
    pub delivery: Delivery,
    pub webhook: WebhookId,
    pub url: String,
    pub is_disabled: bool,
    /// Encrypted; the present one first, and the one before while it is valid.
    pub secrets: Vec<Vec<u8>>,
    pub now: DateTime<Utc>,
}

/// Writes a delivery with the job of its first attempt. False when there is no such webhook.
#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.insert", skip_all, fields(webhook.id = %webhook))]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    webhook: WebhookId,
    id: DeliveryId,
    event: &str,
    page: &str,
    data: &serde_json::Value,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_repository.webhook_deliveries (repository_id, id, webhook_id, event, page, data)
         SELECT $1, $2, w.id, $4, $5, $6
           FROM okt_repository.webhooks w WHERE w.repository_id = $1 AND w.id = $3
            FOR KEY SHARE",
        repository.uuid(),
        id.uuid(),
        webhook.uuid(),
        event,
        page,
        data,
    );
    if done.execute(&mut *conn).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let payload = DeliverWebhook { delivery: id };
    outbox::push(conn, repository, JobId::mint(), &payload, When::default()).await?;
    Ok(true)
}

/// Those of a webhook, all or in one state, the newest first, from before `before`.
#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.list", skip_all, fields(webhook.id = %webhook))]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    webhook: WebhookId,
    state: Option<DeliveryState>,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<Delivery>> {
    // Two statements, so that each has an index.
    let rows = match state {
        Some(state) => {
            sqlx::query_as!(
                Row,
                "SELECT id, event, page, data, state, attempts, next_attempt_at, created_at
                   FROM okt_repository.webhook_deliveries
                  WHERE repository_id = $1 AND webhook_id = $2 AND state = $4
                    AND id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                  ORDER BY id DESC LIMIT $5",
                repository.uuid(),
                webhook.uuid(),
                before.map(DeliveryId::uuid),
                state.as_str(),
                limit,
            )
            .fetch_all(conn)
            .await?
        }
        None => {
            sqlx::query_as!(
                Row,
                "SELECT id, event, page, data, state, attempts, next_attempt_at, created_at
                   FROM okt_repository.webhook_deliveries
                  WHERE repository_id = $1 AND webhook_id = $2
                    AND id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                  ORDER BY id DESC LIMIT $4",
                repository.uuid(),
                webhook.uuid(),
                before.map(DeliveryId::uuid),
                limit,
            )
            .fetch_all(conn)
            .await?
        }
    };
    rows.into_iter().map(Delivery::try_from).collect()
}

#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.find", skip_all, fields(delivery.id = %id))]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: DeliveryId,
) -> Result<Option<ToSend>> {
    let row = sqlx::query!(
        r#"SELECT d.id, d.event, d.page, d.data, d.state, d.attempts, d.next_attempt_at, d.created_at,
                  w.id AS webhook, w.url, w.disabled_at IS NOT NULL AS "is_disabled!", w.secret,
                  CASE WHEN w.previous_until > clock_timestamp() THEN w.previous_secret END AS previous_secret,
                  clock_timestamp() AS "now!"
             FROM okt_repository.webhook_deliveries d
             JOIN okt_repository.webhooks w ON w.repository_id = $1 AND w.id = d.webhook_id
            WHERE d.repository_id = $1 AND d.id = $2"#,
        repository.uuid(),
        id.uuid(),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let delivery = Row {
        id: row.id,
        event: row.event,
        page: row.page,
        data: row.data,
        state: row.state,
        attempts: row.attempts,
        next_attempt_at: row.next_attempt_at,
        created_at: row.created_at,
    };
    Ok(Some(ToSend {
        delivery: delivery.try_into()?,
        webhook: row.webhook.into(),
        url: row.url,
        is_disabled: row.is_disabled,
        secrets: [row.secret].into_iter().chain(row.previous_secret).collect(),
        now: row.now,
    }))
}

/// Records an attempt; with a time to wait, another one follows. False when nothing waits for one.
#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.record", skip_all, fields(delivery.id = %id))]
pub async fn record(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: DeliveryId,
    attempt: &DeliveryAttempt,
    state: DeliveryState,
    again_after: Option<Duration>,
) -> Result<bool> {
    let attempt = serde_json::to_value(attempt).map_err(Error::internal)?;
    let done = sqlx::query!(
        "UPDATE okt_repository.webhook_deliveries
            SET attempts = attempts || $3::jsonb, state = $4,
                next_attempt_at = clock_timestamp() + $5::float8 * interval '1 second'
          WHERE repository_id = $1 AND id = $2 AND state = 'waiting'",
        repository.uuid(),
        id.uuid(),
        attempt,
        state.as_str(),
        again_after.map(|wait| wait.as_secs_f64()),
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Whether [`tidy`] has something to do.
#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.is_untidy", skip_all)]
pub async fn is_untidy(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.webhook_deliveries
                           WHERE repository_id = $1
                             AND (created_at < clock_timestamp() - interval '30 days'
                                  OR (state = 'delivered' AND created_at < clock_timestamp() - interval '7 days')
                                  OR next_attempt_at < clock_timestamp() - interval '1 day'))
                OR EXISTS (SELECT FROM okt_repository.webhooks
                            WHERE repository_id = $1 AND previous_until < clock_timestamp()) AS "is!""#,
        repository.uuid(),
    );
    Ok(found.fetch_one(conn).await?)
}

/// Removes those that are kept no longer: what was delivered after 7 days, the rest after 30, and so many at most. Those that
/// nobody will attempt any more, because the job was cancelled or given up, have failed. Secrets whose day is over are forgotten.
#[tracing::instrument(level = "debug", name = "db.webhook_deliveries.tidy", skip_all)]
pub async fn tidy(conn: &mut PgConnection, repository: RepositoryId, limit: i64) -> Result<u64> {
    sqlx::query!(
        "UPDATE okt_repository.webhooks SET previous_secret = NULL, previous_until = NULL
          WHERE repository_id = $1 AND previous_until < clock_timestamp()",
        repository.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "UPDATE okt_repository.webhook_deliveries d
            SET state = 'failed', next_attempt_at = NULL,
                attempts = d.attempts || jsonb_build_object('at', clock_timestamp(), 'ms', 0, 'error',
                                                            'not sent: its job was cancelled or given up')
          WHERE d.repository_id = $1 AND d.next_attempt_at < clock_timestamp() - interval '1 day'
            AND NOT EXISTS (SELECT FROM okt_repository.outbox o
                             WHERE o.repository_id = $1 AND o.kind = $2 AND o.payload ->> 'delivery' = d.id::text)",
        repository.uuid(),
        DeliverWebhook::KIND,
    )
    .execute(&mut *conn)
    .await?;
    let done = sqlx::query!(
        "DELETE FROM okt_repository.webhook_deliveries
          WHERE repository_id = $1
            AND id IN (SELECT id FROM okt_repository.webhook_deliveries
                        WHERE repository_id = $1
                          AND (created_at < clock_timestamp() - interval '30 days'
                               OR (state = 'delivered' AND created_at < clock_timestamp() - interval '7 days'))
                        ORDER BY id LIMIT $2)",
        repository.uuid(),
        limit,
    );
    Ok(done.execute(conn).await?.rows_affected())
}

struct Row {
    id: Uuid,
    event: String,
    page: String,
    data: serde_json::Value,
    state: String,
    attempts: serde_json::Value,
    next_attempt_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl TryFrom<Row> for Delivery {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.into(),
            event: row.event,
            page: row.page,
            data: row.data,
            state: word("webhook_deliveries.state", &row.state)?,
            attempts: serde_json::from_value(row.attempts).map_err(Error::internal)?,
            next_attempt_at: row.next_attempt_at,
            created_at: row.created_at,
        })
    }
}
