//! Webhooks: other services that are told what has happened in a repository.

use chrono::{DateTime, Utc};
use okt_app::{MOST_WEBHOOKS, WebhookChange, WebhookRequest};
use okt_model::{
    Delivery, DeliveryAttempt, DeliveryState, Result, WEBHOOK_ATTEMPTS, Webhook, WebhookDisabled,
    WebhookEvent,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{self, schema};

const _: () =
    assert!(MOST_WEBHOOKS == 20 && WEBHOOK_ATTEMPTS == 8, "the documentation of the fields below says so");

/// A webhook to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where events are posted. In production it has to begin with `https://`, unless the operator excepts the address.
    #[schema(example = "https://hooks.example.org/okt", max_length = 2048)]
    pub url: String,
    #[schema(value_type = Vec<schema::WebhookEvent>, min_items = 1)]
    pub events: Vec<String>,
    /// For those who see the list.
    #[serde(default)]
    #[schema(example = "Rebuilds the site", max_length = 200)]
    pub description: String,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookUpdate {
    #[schema(example = "https://hooks.example.org/okt", max_length = 2048)]
    pub url: Option<String>,
    #[schema(value_type = Option<Vec<schema::WebhookEvent>>, min_items = 1)]
    pub events: Option<Vec<String>>,
    #[schema(example = "Rebuilds the site", max_length = 200)]
    pub description: Option<String>,
    /// `true` enables a disabled webhook again; what happened meanwhile is not sent.
    #[schema(example = true)]
    pub enabled: Option<bool>,
}

/// Another service that is told what has happened.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookView {
    pub id: Uuid,
    #[schema(example = "https://hooks.example.org/okt")]
    pub url: String,
    #[schema(example = "Rebuilds the site")]
    pub description: String,
    #[schema(value_type = Vec<schema::WebhookEvent>)]
    pub events: Vec<&'static str>,
    #[schema(example = true)]
    pub enabled: bool,
    /// Why it is not enabled.
    #[schema(required)]
    pub disabled: Option<WebhookDisabledView>,
    /// Since when every attempt has failed; null if the last one did not.
    #[schema(required)]
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the secret before the last rotation signs as well.
    #[schema(required)]
    pub previous_secret_expires_at: Option<DateTime<Utc>>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    /// When a person changed it last.
    pub updated_at: DateTime<Utc>,
}

/// Why a webhook is told nothing.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDisabled)]
pub struct WebhookDisabledView {
    pub at: DateTime<Utc>,
    #[schema(value_type = schema::WebhookDisabledCode)]
    pub code: &'static str,
    /// In words, and what to do about it.
    #[schema(
        example = "nothing could be delivered for three days; mend the receiver, then enable the webhook"
    )]
    pub message: &'static str,
}

/// A webhook with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct CreatedWebhook {
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// What the receiver verifies signatures with.
    #[schema(example = "whsec_…")]
    pub secret: String,
}

/// The new secret of a webhook, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct RotatedWebhookSecret {
    #[schema(example = "whsec_…")]
    pub secret: String,
    /// Until then the secret before signs as well.
    pub previous_secret_expires_at: DateTime<Utc>,
}

/// A test event that was sent on its way.
#[derive(Serialize, ToSchema)]
pub struct WebhookTest {
    /// Its row among the deliveries says what came of it.
    pub delivery_id: Uuid,
}

/// Which deliveries.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryQuery {
    /// Only those in this state.
    #[param(value_type = Option<schema::DeliveryState>)]
    pub state: Option<String>,
}

impl DeliveryQuery {
    pub fn state(&self) -> Result<Option<DeliveryState>> {
        vocabulary::read_if_given("state", self.state.as_deref())
    }
}

/// An event for a webhook, and what came of telling it.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    /// The `webhook-id` of every attempt.
    pub id: Uuid,
    /// One of the events of webhooks, or `webhook.test`.
    #[schema(example = "source.processed")]
    pub event: String,
    /// Ids and numbers of what it is about.
    #[schema(value_type = Object, example = json!({"source_id": "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37"}))]
    pub data: serde_json::Value,
    #[schema(value_type = schema::DeliveryState)]
    pub state: &'static str,
    pub created_at: DateTime<Utc>,
    /// Null if there will be none.
    #[schema(required)]
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Oldest first, at most 8.
    pub attempts: Vec<DeliveryAttemptView>,
}

/// One request to a receiver.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
pub struct DeliveryAttemptView {
    pub at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    #[schema(example = 87)]
    pub ms: u64,
    /// Null if there was no answer.
    #[schema(required, example = 500)]
    pub status: Option<u16>,
    /// Null if the receiver took it.
    #[schema(required, example = "the receiver answered 500")]
    pub error: Option<String>,
    /// The first 300 characters of an answer that is no success.
    #[schema(required, example = "Internal Server Error")]
    pub response: Option<String>,
}

impl NewWebhook {
    pub fn parsed(&self) -> Result<WebhookRequest<'_>> {
        let events = events(&self.events)?;
        Ok(WebhookRequest { url: &self.url, description: &self.description, events })
    }
}

impl WebhookUpdate {
    pub fn parsed(&self) -> Result<WebhookChange<'_>> {
        Ok(WebhookChange {
            url: self.url.as_deref(),
            description: self.description.as_deref(),
            events: self.events.as_deref().map(events).transpose()?,
            enabled: self.enabled,
        })
    }
}

fn events(words: &[String]) -> Result<Vec<WebhookEvent>> {
    words.iter().map(|word| vocabulary::read("events", word)).collect()
}

const fn message(disabled: WebhookDisabled) -> &'static str {
    match disabled {
        WebhookDisabled::Gone => "the receiver answered 410 Gone; if it is there again, enable the webhook",
        WebhookDisabled::Failing => {
            "nothing could be delivered for three days; mend the receiver, then enable the webhook"
        }
        WebhookDisabled::Person => "a person disabled it",
    }
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.uuid(),
            url: webhook.url,
            description: webhook.description,
            events: webhook.events.iter().map(|event| event.as_str()).collect(),
            enabled: webhook.disabled.is_none(),
            disabled: webhook.disabled.map(|(at, why)| WebhookDisabledView {
                at,
                code: why.as_str(),
                message: message(why),
            }),
            failing_since: webhook.failing_since,
            previous_secret_expires_at: webhook.previous_until,
            created_by: webhook.created_by.uuid(),
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.uuid(),
            event: delivery.event,
            data: delivery.data,
            state: delivery.state.as_str(),
            created_at: delivery.created_at,
            next_attempt_at: delivery.next_attempt_at,
            attempts: delivery.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<DeliveryAttempt> for DeliveryAttemptView {
    fn from(attempt: DeliveryAttempt) -> Self {
        let DeliveryAttempt { at, ms, status, error, response } = attempt;
        Self { at, ms, status, error, response }
    }
}
