//! Rows of `okt_repository.webhooks`.
//!
//! Whoever changes a webhook and its deliveries takes the webhook first, so that nobody waits in a circle.

use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_model::{DeliveryId, RepositoryId, UserId, Webhook, WebhookDisabled, WebhookEvent, WebhookId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::webhook_deliveries;
use crate::words::word;
use okt_pg::Result;

/// A webhook that is to be.
pub struct NewWebhook<'a> {
    pub id: WebhookId,
    pub url: &'a str,
    pub description: &'a str,
    pub events: &'a [WebhookEvent],
    /// Encrypted.
    pub secret: &'a [u8],
    pub created_by: UserId,
}

/// What is left out stays as it is.
#[derive(Default)]
pub struct WebhookUpdate<'a> {
    pub url: Option<&'a str>,
    pub description: Option<&'a str>,
    pub events: Option<&'a [WebhookEvent]>,
    pub enabled: Option<bool>,
}

/// What came of an attempt that failed, beside the failure.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The receiver said that it will never be there again.
    pub gone: bool,
    /// It was the last attempt at this delivery.
    pub given_up: bool,
    /// How long every attempt must have failed for the webhook to be disabled when a delivery is given up.
    pub patience: Duration,
}

/// Tells the webhooks that have chosen the event, in the transaction that makes it true. `page` is that of the web UI, below that
/// of the repository; `data` has ids and numbers, and nothing that anybody wrote.
#[tracing::instrument(level = "debug", name = "db.webhooks.announce", skip_all, fields(event = event.as_str()))]
pub async fn announce(
    conn: &mut PgConnection,
    repository: RepositoryId,
    event: WebhookEvent,
    page: &str,
    data: &serde_json::Value,
) -> Result<()> {
    // None of them is deleted before this is committed.
    let chosen = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.webhooks
          WHERE repository_id = $1 AND disabled_at IS NULL AND $2 = ANY (events)
          ORDER BY id
            FOR KEY SHARE",
        repository.uuid(),
        event.as_str(),
    );
    for webhook in chosen.fetch_all(&mut *conn).await? {
        let id = DeliveryId::mint();
        webhook_deliveries::insert(conn, repository, webhook.into(), id, event.as_str(), page, data).await?;
    }
    Ok(())
}

/// `None` when the repository has `most` already.
#[tracing::instrument(level = "debug", name = "db.webhooks.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    new: &NewWebhook<'_>,
    most: i64,
) -> Result<Option<Webhook>> {
    let events = words(new.events);
    let row = sqlx::query_as!(
        Row,
        "INSERT INTO okt_repository.webhooks (repository_id, id, url, description, events, secret, created_by)
         SELECT $1, $2, $3, $4, $5, $6, $7
          WHERE (SELECT count(*) FROM okt_repository.webhooks WHERE repository_id = $1) < $8
         RETURNING id, url, description, events, disabled_at, disabled_because, failing_since, previous_until,
                   created_by, created_at, updated_at",
        repository.uuid(),
        new.id.uuid(),
        new.url,
        new.description,
        &events,
        new.secret,
        new.created_by.uuid(),
        most,
    );
    row.fetch_optional(conn).await?.map(Webhook::try_from).transpose()
}

/// Oldest first, from behind `after`.
#[tracing::instrument(level = "debug", name = "db.webhooks.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    after: Option<WebhookId>,
    limit: i64,
) -> Result<Vec<Webhook>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, url, description, events, disabled_at, disabled_because, failing_since,
                CASE WHEN previous_until > clock_timestamp() THEN previous_until END AS previous_until,
                created_by, created_at, updated_at
           FROM okt_repository.webhooks
          WHERE repository_id = $1 AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
          ORDER BY id LIMIT $3",
        repository.uuid(),
        after.map(WebhookId::uuid),
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Webhook::try_from).collect()
}

#[tracing::instrument(level = "debug", name = "db.webhooks.exists", skip_all, fields(webhook.id = %id))]
pub async fn exists(conn: &mut PgConnection, repository: RepositoryId, id: WebhookId) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.webhooks WHERE repository_id = $1 AND id = $2) AS "is!""#,
        repository.uuid(),
        id.uuid(),
    );
    Ok(found.fetch_one(conn).await?)
}

/// `None` when there is no such webhook. One that is enabled again has failed nothing.
#[tracing::instrument(level = "debug", name = "db.webhooks.update", skip_all, fields(webhook.id = %id))]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: WebhookId,
    update: &WebhookUpdate<'_>,
) -> Result<Option<Webhook>> {
    let events = update.events.map(words);
    let row = sqlx::query_as!(
        Row,
        "UPDATE okt_repository.webhooks
            SET url = coalesce($3, url), description = coalesce($4, description), events = coalesce($5, events),
                disabled_at = CASE WHEN $6 THEN NULL WHEN NOT $6 THEN coalesce(disabled_at, clock_timestamp())
                                   ELSE disabled_at END,
                disabled_because = CASE WHEN $6 THEN NULL WHEN NOT $6 THEN coalesce(disabled_because, $7)
                                        ELSE disabled_because END,
                failing_since = CASE WHEN $6 AND disabled_at IS NOT NULL THEN NULL ELSE failing_since END,
                updated_at = clock_timestamp()
          WHERE repository_id = $1 AND id = $2
         RETURNING id, url, description, events, disabled_at, disabled_because, failing_since,
                   CASE WHEN previous_until > clock_timestamp() THEN previous_until END AS previous_until,
                   created_by, created_at, updated_at",
        repository.uuid(),
        id.uuid(),
        update.url,
        update.description,
        events.as_deref(),
        update.enabled,
        WebhookDisabled::Person.as_str(),
    );
    row.fetch_optional(conn).await?.map(Webhook::try_from).transpose()
}

/// Gives it another secret, which is encrypted; the one before signs as well for a while. Until when, or `None` when there is no
/// such webhook.
#[tracing::instrument(level = "debug", name = "db.webhooks.rotate", skip_all, fields(webhook.id = %id))]
pub async fn rotate(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: WebhookId,
    secret: &[u8],
    overlap: Duration,
) -> Result<Option<DateTime<Utc>>> {
    let until = sqlx::query_scalar!(
        r#"UPDATE okt_repository.webhooks
              SET previous_secret = secret, secret = $3, previous_until = clock_timestamp() + $4 * interval '1 second',
                  updated_at = clock_timestamp()
            WHERE repository_id = $1 AND id = $2
           RETURNING previous_until AS "until!""#,
        repository.uuid(),
        id.uuid(),
        secret,
        overlap.as_secs_f64(),
    );
    Ok(until.fetch_optional(conn).await?)
}

/// Removes it with its deliveries; false when there is none.
#[tracing::instrument(level = "debug", name = "db.webhooks.delete", skip_all, fields(webhook.id = %id))]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, id: WebhookId) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM okt_repository.webhooks WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        id.uuid(),
    );
    if done.execute(&mut *conn).await?.rows_affected() == 0 {
        return Ok(false);
    }
    // After the webhook, whose row somebody may have held who was just telling it something.
    sqlx::query!(
        "DELETE FROM okt_repository.webhook_deliveries WHERE repository_id = $1 AND webhook_id = $2",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// Something was delivered.
#[tracing::instrument(level = "debug", name = "db.webhooks.note_success", skip_all, fields(webhook.id = %id))]
pub async fn note_success(conn: &mut PgConnection, repository: RepositoryId, id: WebhookId) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.webhooks SET failing_since = NULL
          WHERE repository_id = $1 AND id = $2 AND failing_since IS NOT NULL",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An attempt has failed; why the webhook is disabled, if it is for that.
#[tracing::instrument(level = "debug", name = "db.webhooks.note_failure", skip_all, fields(webhook.id = %id))]
pub async fn note_failure(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: WebhookId,
    failed: Failed,
) -> Result<Option<WebhookDisabled>> {
    let row = sqlx::query_scalar!(
        r#"WITH noted AS (
               SELECT id, CASE WHEN $3 THEN 'gone'
                               WHEN $4 AND failing_since < clock_timestamp() - $5 * interval '1 second' THEN 'failing'
                          END AS because
                 FROM okt_repository.webhooks
                WHERE repository_id = $1 AND id = $2 AND disabled_at IS NULL
                  FOR NO KEY UPDATE)
           UPDATE okt_repository.webhooks w
              SET failing_since = coalesce(w.failing_since, clock_timestamp()), disabled_because = n.because,
                  disabled_at = CASE WHEN n.because IS NOT NULL THEN clock_timestamp() END
             FROM noted n
            WHERE w.repository_id = $1 AND w.id = n.id
           RETURNING w.disabled_because"#,
        repository.uuid(),
        id.uuid(),
        failed.gone,
        failed.given_up,
        failed.patience.as_secs_f64(),
    );
    let because = row.fetch_optional(conn).await?.flatten();
    because.map(|because| word("webhooks.disabled_because", &because)).transpose()
}

fn words(events: &[WebhookEvent]) -> Vec<String> {
    events.iter().map(|event| event.as_str().to_owned()).collect()
}

struct Row {
    id: Uuid,
    url: String,
    description: String,
    events: Vec<String>,
    disabled_at: Option<DateTime<Utc>>,
    disabled_because: Option<String>,
    failing_since: Option<DateTime<Utc>>,
    previous_until: Option<DateTime<Utc>>,
    created_by: Uuid,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<Row> for Webhook {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        let because = row.disabled_because.map(|because| word("webhooks.disabled_because", &because));
        Ok(Self {
            id: row.id.into(),
            url: row.url,
            description: row.description,
            events: row.events.iter().map(|event| word("webhooks.events", event)).collect::<Result<_>>()?,
            disabled: row.disabled_at.zip(because.transpose()?),
            failing_since: row.failing_since,
            previous_until: row.previous_until,
            created_by: row.created_by.into(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
