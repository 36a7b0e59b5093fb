//! The functions on webhooks and their deliveries, for `isolation.rs`.

use std::time::Duration;

use okt_model::{DeliveryAttempt, DeliveryId, DeliveryState, RepositoryId, UserId, WebhookEvent, WebhookId};
use okt_store::webhooks::{self, Failed, NewWebhook, WebhookUpdate};
use okt_store::{Connection, webhook_deliveries};
use serde_json::json;

use crate::repositories::isolation::Call;

/// A webhook with a delivery that has waited for longer than deliveries are kept.
#[derive(Clone, Copy)]
pub(crate) struct Planted {
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
}

const fn new(id: WebhookId, created_by: UserId) -> NewWebhook<'static> {
    NewWebhook {
        id,
        url: "https://hooks.example.org/theirs",
        description: "Theirs",
        events: &[WebhookEvent::SourceFailed],
        secret: b"sealed",
        created_by,
    }
}

pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId) -> Planted {
    let (webhook, delivery) = (WebhookId::mint(), DeliveryId::mint());
    webhooks::insert(conn, repository, &new(webhook, UserId::mint()), 1_000).await.unwrap().unwrap();
    let data = json!({"webhook_id": webhook});
    let event = "webhook.test";
    assert!(webhook_deliveries::insert(conn, repository, webhook, delivery, event, "", &data).await.unwrap());
    // Nobody is to send it.
    for statement in [
        "DELETE FROM okt_repository.outbox WHERE repository_id = $1 AND kind = 'deliver_webhook'",
        "UPDATE okt_repository.webhook_deliveries SET created_at = now() - interval '40 days' WHERE repository_id = $1",
    ] {
        sqlx::query(statement).bind(repository.uuid()).execute(&mut *conn).await.unwrap();
    }
    Planted { webhook, delivery }
}

/// Writes what is one's own and finds nothing.
pub(crate) const WRITES: [&str; 3] = ["webhooks::announce", "webhooks::insert", "webhooks::note_success"];

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("webhooks::announce", |conn, repository, _| {
        Box::pin(async move {
            webhooks::announce(conn, repository, WebhookEvent::SourceFailed, "", &json!({})).await?;
            Ok(false)
        })
    }),
    ("webhooks::insert", |conn, repository, _| {
        Box::pin(async move {
            webhooks::insert(conn, repository, &new(WebhookId::mint(), UserId::mint()), 1_000).await?;
            Ok(false)
        })
    }),
    ("webhooks::list", |conn, repository, theirs| {
        Box::pin(async move {
            let found = webhooks::list(conn, repository, None, 1_000).await?;
            Ok(found.iter().any(|one| one.id == theirs.webhook.webhook))
        })
    }),
    ("webhooks::exists", |conn, repository, theirs| {
        Box::pin(async move { webhooks::exists(conn, repository, theirs.webhook.webhook).await })
    }),
    ("webhooks::update", |conn, repository, theirs| {
        Box::pin(async move {
            let update = WebhookUpdate { description: Some("mine"), ..WebhookUpdate::default() };
            Ok(webhooks::update(conn, repository, theirs.webhook.webhook, &update).await?.is_some())
        })
    }),
    ("webhooks::rotate", |conn, repository, theirs| {
        Box::pin(async move {
            let (id, overlap) = (theirs.webhook.webhook, Duration::from_mins(1));
            Ok(webhooks::rotate(conn, repository, id, b"mine", overlap).await?.is_some())
        })
    }),
    ("webhooks::delete", |conn, repository, theirs| {
        Box::pin(async move { webhooks::delete(conn, repository, theirs.webhook.webhook).await })
    }),
    ("webhooks::note_success", |conn, repository, theirs| {
        Box::pin(async move {
            webhooks::note_success(conn, repository, theirs.webhook.webhook).await?;
            Ok(false)
        })
    }),
    ("webhooks::note_failure", |conn, repository, theirs| {
        Box::pin(async move {
            let failed = Failed { gone: true, given_up: true, patience: Duration::ZERO };
            Ok(webhooks::note_failure(conn, repository, theirs.webhook.webhook, failed).await?.is_some())
        })
    }),
    ("webhook_deliveries::insert", |conn, repository, theirs| {
        Box::pin(async move {
            let (webhook, id) = (theirs.webhook.webhook, DeliveryId::mint());
            webhook_deliveries::insert(conn, repository, webhook, id, "webhook.test", "", &json!({})).await
        })
    }),
    ("webhook_deliveries::list", |conn, repository, theirs| {
        Box::pin(async move {
            let webhook = theirs.webhook.webhook;
            Ok(!webhook_deliveries::list(conn, repository, webhook, None, None, 10).await?.is_empty())
        })
    }),
    ("webhook_deliveries::find", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(webhook_deliveries::find(conn, repository, theirs.webhook.delivery).await?.is_some())
        })
    }),
    ("webhook_deliveries::record", |conn, repository, theirs| {
        Box::pin(async move {
            let at = chrono::DateTime::UNIX_EPOCH;
            let attempt = DeliveryAttempt { at, ms: 1, status: Some(200), error: None, response: None };
            let (id, state) = (theirs.webhook.delivery, DeliveryState::Delivered);
            webhook_deliveries::record(conn, repository, id, &attempt, state, None).await
        })
    }),
    ("webhook_deliveries::is_untidy", |conn, repository, _| {
        Box::pin(async move { webhook_deliveries::is_untidy(conn, repository).await })
    }),
    ("webhook_deliveries::tidy", |conn, repository, _| {
        Box::pin(async move { Ok(webhook_deliveries::tidy(conn, repository, 10).await? > 0) })
    }),
];
