//! Webhooks: other services that a repository tells what has happened in it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{DeliveryId, Payload, UserId, WebhookId};

words! {
    /// What a webhook can be told. To add a kind: a line here, and a call of `okt_store::webhooks::announce` in the transaction
    /// that makes it true.
    WebhookEvent {
        /// Its facts are there.
        SourceProcessed = "source.processed",
        SourceFailed = "source.failed",
        /// Claims of a report came to stand otherwise.
        ReportHealthChanged = "report.health_changed",
        /// A bundle is there to be fetched.
        GraphExported = "graph.exported",
        /// An answer came to its end, whatever that is.
        AnswerDone = "answer.done",
        /// Facts or passages that an answer cites are not what they were.
        AnswerEvidenceChanged = "answer.evidence_changed",
    }
}

/// The event of a delivery that a person has asked for. No webhook chooses it.
pub const WEBHOOK_TEST: &str = "webhook.test";

/// Attempts at one delivery.
pub const WEBHOOK_ATTEMPTS: usize = 8;

words! {
    /// Why a webhook is told nothing.
    WebhookDisabled {
        /// The receiver said that it is gone.
        Gone = "gone",
        /// Nothing could be delivered for days.
        Failing = "failing",
        Person = "person",
    }
}

words! {
    /// What became of a delivery.
    DeliveryState {
        Waiting = "waiting",
        Delivered = "delivered",
        Failed = "failed",
    }
}

/// A webhook, without its secrets.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    pub description: String,
    pub events: Vec<WebhookEvent>,
    pub disabled: Option<(DateTime<Utc>, WebhookDisabled)>,
    /// Since when every attempt has failed.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the secret before the present one signs as well.
    pub previous_until: Option<DateTime<Utc>>,
    pub created_by: UserId,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// An event on its way to a webhook, or there.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    /// A [`WebhookEvent`] or [`WEBHOOK_TEST`].
    pub event: String,
    /// The page of the web UI, below that of the repository.
    pub page: String,
    /// Ids and numbers; nothing that anybody wrote.
    pub data: serde_json::Value,
    pub state: DeliveryState,
    /// Oldest first.
    pub attempts: Vec<DeliveryAttempt>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// One request to a receiver, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    pub at: DateTime<Utc>,
    pub ms: u64,
    /// Missing if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Missing if it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How an answer that refused it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

/// Makes one attempt at a delivery. A receiver that does not answer is no failure of the job: the next attempt is another job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverWebhook {
    pub delivery: DeliveryId,
}

impl Payload for DeliverWebhook {
    const KIND: &'static str = "deliver_webhook";
    /// Whoever waits for a source does not wait for those who are told of it.
    const INTERNAL: bool = true;
}
