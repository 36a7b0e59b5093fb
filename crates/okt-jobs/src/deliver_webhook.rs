//! Tells a webhook of an event: one attempt. Reads a delivery that waits, leaves it delivered, failed, or waiting for the next
//! attempt, which is a job of its own.
//!
//! A process that dies after the receiver has answered makes the attempt once more; the receiver knows it by its id. Nothing about
//! receivers is in the record of the job, which more people may read than may read the deliveries.

use std::time::Duration;

use okt_model::{
    AuditId, DeliverWebhook, Delivery, DeliveryAttempt, DeliveryState, Error, NewAuditEntry,
    WEBHOOK_ATTEMPTS, WEBHOOK_TEST, WebhookDisabled,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::When;
use okt_store::webhook_deliveries::{self, ToSend};
use okt_store::webhooks::{self, Failed};
use okt_store::{audit_outbox, repositories};
use serde_json::json;

use crate::Tools;

/// Between the attempts, more or less: half a day in all.
const WAITS: [Duration; WEBHOOK_ATTEMPTS - 1] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(15),
    Duration::from_hours(1),
    Duration::from_hours(4),
    Duration::from_hours(8),
];
/// How long nothing can be delivered before a webhook is disabled. Longer than all attempts at one delivery, so that one that can
/// never be delivered does not end the others.
const PATIENCE: Duration = Duration::from_hours(3 * 24);

pub(crate) async fn run(
    payload: DeliverWebhook,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let mut tx = ctx.checkpoint().await?;
    let found = webhook_deliveries::find(&mut tx, ctx.repository(), payload.delivery).await?;
    tx.commit().await?;
    // Otherwise the webhook was deleted meanwhile, or an earlier run of somebody else's has settled it.
    let Some(sending) = found.filter(|found| found.delivery.state == DeliveryState::Waiting) else {
        return ctx.begin().await?.commit(None).await;
    };
    let is_test = sending.delivery.event == WEBHOOK_TEST;
    if sending.is_disabled && !is_test {
        let attempt = not_sent(&sending, "the webhook is disabled");
        let mut tx = ctx.begin().await?;
        let (id, failed) = (sending.delivery.id, DeliveryState::Failed);
        webhook_deliveries::record(&mut tx, ctx.repository(), id, &attempt, failed, None).await?;
        return tx.commit(None).await;
    }
    let attempt = attempt(&ctx, &tools, &sending).await?;
    settle(&ctx, &sending, attempt, is_test).await
}

async fn attempt(ctx: &JobContext, tools: &Tools, sending: &ToSend) -> Result<DeliveryAttempt, JobError> {
    let mut conn = ctx.databases().acquire_system().await?;
    let repository =
        repositories::find(&mut conn, ctx.repository()).await?.ok_or(Error::NotFound("repository"))?;
    drop(conn);
    let opened =
        sending.secrets.iter().filter_map(|sealed| tools.webhook_secrets().open(sending.webhook, sealed));
    let signers: Vec<_> = opened.collect();
    if signers.is_empty() {
        return Ok(not_sent(
            sending,
            "its secret can't be read, since auth.jwt_secret has changed; rotate the secret of the webhook",
        ));
    }
    let Some(receivers) = tools.receivers() else {
        return Ok(not_sent(sending, "no root CA certificates are installed"));
    };
    let issuer = tools.config().oauth.issuer.as_ref().map_or("", |issuer| issuer.as_str());
    let issuer = issuer.trim_end_matches('/');
    let body = body(&sending.delivery, ctx, &format!("{issuer}/r/{}", repository.slug));
    let body = serde_json::to_vec(&body).map_err(Error::internal)?;
    let (id, timestamp) = (sending.delivery.id.to_string(), sending.now.timestamp());
    let signatures: Vec<String> = signers.iter().map(|signer| signer.sign(&id, timestamp, &body)).collect();
    let headers = [
        ("webhook-id", id),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ];
    let told = receivers.tell(&sending.url, &headers, body.into()).await;
    Ok(DeliveryAttempt {
        at: sending.now,
        ms: told.ms,
        status: told.status,
        error: told.error,
        response: told.response,
    })
}

fn not_sent(sending: &ToSend, why: &str) -> DeliveryAttempt {
    DeliveryAttempt {
        at: sending.now,
        ms: 0,
        status: None,
        error: Some(format!("not sent: {why}")),
        response: None,
    }
}

/// `home` is the page of the repository.
fn body(delivery: &Delivery, ctx: &JobContext, home: &str) -> serde_json::Value {
    let mut data = delivery.data.clone();
    data["repository_id"] = json!(ctx.repository());
    data["url"] = json!(format!("{home}/{}", delivery.page).trim_end_matches('/'));
    json!({ "type": delivery.event, "timestamp": delivery.created_at, "data": data })
}

/// The effect. A test says nothing about what else happens to the webhook.
async fn settle(
    ctx: &JobContext,
    sending: &ToSend,
    attempt: DeliveryAttempt,
    is_test: bool,
) -> Result<Finished, JobError> {
    let (repository, delivery) = (ctx.repository(), &sending.delivery);
    let mut tx = ctx.begin().await?;
    let gone = attempt.status == Some(410);
    let wait = next(delivery).filter(|_| !is_test && !gone);
    let is_delivered = attempt.error.is_none();
    let mut disabled = None;
    if is_delivered && !is_test {
        webhooks::note_success(&mut tx, repository, sending.webhook).await?;
    } else if !is_test {
        let failed = Failed { gone, given_up: wait.is_none(), patience: PATIENCE };
        disabled = webhooks::note_failure(&mut tx, repository, sending.webhook, failed).await?;
    }
    let (state, wait) = match wait {
        _ if is_delivered => (DeliveryState::Delivered, None),
        Some(wait) if disabled.is_none() => (DeliveryState::Waiting, Some(wait)),
        _ => (DeliveryState::Failed, None),
    };
    let recorded =
        webhook_deliveries::record(&mut tx, repository, delivery.id, &attempt, state, wait).await?;
    if let Some(wait) = wait.filter(|_| recorded) {
        let delay_ms = i64::try_from(wait.as_millis()).map_err(Error::internal)?;
        tx.push(&DeliverWebhook { delivery: delivery.id }, When { delay_ms, ..When::default() }).await?;
    }
    if let Some(because) = disabled {
        record_disabled(&mut tx, ctx, sending, because).await?;
    }
    tx.commit(None).await
}

async fn record_disabled(
    tx: &mut okt_queue::JobCommit,
    ctx: &JobContext,
    sending: &ToSend,
    because: WebhookDisabled,
) -> Result<(), JobError> {
    let entry = NewAuditEntry {
        id: AuditId::mint(),
        actor: None,
        actor_kind: "service",
        credential: None,
        action: "webhook.disabled",
        object: &format!("{} {}", sending.webhook, because.as_str()),
        repository: Some(ctx.repository()),
        address: None,
        agent: None,
        via: None,
        request_id: &ctx.id().to_string(),
    };
    audit_outbox::insert(tx, ctx.repository(), &entry).await?;
    Ok(())
}

/// How long to wait for the attempt after this one; `None` after the last. Up to a fifth more or less, by the id of the delivery:
/// what failed together does not come back together.
fn next(delivery: &Delivery) -> Option<Duration> {
    let wait = WAITS.get(delivery.attempts.len())?;
    let bytes = delivery.id.uuid().into_bytes();
    let random = f64::from(u16::from_be_bytes([bytes[14], bytes[15]])) / f64::from(u16::MAX);
    Some(wait.mul_f64(0.8 + 0.4 * random))
}

#[cfg(test)]
mod tests {
    use okt_model::DeliveryId;

    use super::*;

    fn after(attempts: usize) -> Delivery {
        let now = chrono::DateTime::UNIX_EPOCH;
        let failed = DeliveryAttempt { at: now, ms: 1, status: None, error: None, response: None };
        Delivery {
            id: DeliveryId::mint(),
            event: "source.processed".to_owned(),
            page: String::new(),
            data: json!({}),
            state: DeliveryState::Waiting,
            attempts: vec![failed; attempts],
            next_attempt_at: None,
            created_at: now,
        }
    }

    #[test]
    fn attempts_are_further_and_further_apart_and_come_to_an_end() {
        for attempts in 0..WAITS.len() - 1 {
            assert!(next(&after(attempts)) < next(&after(attempts + 1)), "{attempts}");
        }
        assert_eq!(next(&after(WEBHOOK_ATTEMPTS - 1)), None);
        let waits: std::collections::BTreeSet<_> = (0..100).map(|_| next(&after(5))).collect();
        assert!(waits.len() > 90, "they do not come back together");
        assert!(WAITS.iter().sum::<Duration>() * 2 < PATIENCE);
    }
}
