//! Webhooks: other services that a repository tells what has happened in it.
//!
//! Whoever may change one sees where it sends, so its address is never part of the audit, nor of anything that others may read.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_auth::permissions::{
    WebhookDelete, WebhookExecute, WebhookRead, WebhookUpdate as Update, WebhookWrite,
};
use okt_auth::{RepoAccess, RepoScope};
use okt_config::Secret;
use okt_model::{
    Delivery, DeliveryId, DeliveryState, Error, Result, WEBHOOK_TEST, Webhook, WebhookEvent, WebhookId,
    checked_name,
};
use okt_providers::FetchError;
use okt_providers::webhooks::Receivers;
use okt_store::webhook_deliveries;
use okt_store::webhooks::{self, NewWebhook, WebhookUpdate};
use url::Url;

use crate::{App, Origin};

/// Webhooks of one repository.
pub const MOST_WEBHOOKS: i64 = 20;
const MISSING: Error = Error::NotFound("webhook");
const LONGEST_URL: usize = 2_048;
const LONGEST_DESCRIPTION: usize = 200;
/// How long the secret before the present one signs as well.
const OVERLAP: Duration = Duration::from_hours(24);

/// A webhook that somebody wants.
pub struct WebhookRequest<'a> {
    pub url: &'a str,
    pub description: &'a str,
    pub events: Vec<WebhookEvent>,
}

/// What is left out stays as it is.
#[derive(Default)]
pub struct WebhookChange<'a> {
    pub url: Option<&'a str>,
    pub description: Option<&'a str>,
    pub events: Option<Vec<WebhookEvent>>,
    pub enabled: Option<bool>,
}

impl App {
    /// Makes a webhook; the secret is told here and never again.
    pub async fn create_webhook(
        &self,
        origin: &Origin,
        scope: &RepoScope<WebhookWrite>,
        request: &WebhookRequest<'_>,
    ) -> Result<(Webhook, Secret)> {
        let url = self.checked_url(request.url).await?;
        let description = checked_description(request.description)?;
        let events = checked_events(&request.events)?;
        let id = WebhookId::mint();
        let (secret, sealed) = self.webhook_secrets().mint(id)?;
        let new = NewWebhook {
            id,
            url: &url,
            description: &description,
            events: &events,
            secret: &sealed,
            created_by: scope.caller().user(),
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let webhook = webhooks::insert(&mut tx, scope.repository(), &new, MOST_WEBHOOKS).await?;
        let webhook = webhook
            .ok_or(Error::Conflict("the repository has 20 webhooks, which is the most; delete one first"))?;
        self.commit_recorded(tx, origin, scope, "webhook.created", &id.to_string()).await?;
        Ok((webhook, secret))
    }

    /// Oldest first, from behind `after`.
    pub async fn list_webhooks(
        &self,
        scope: &RepoScope<WebhookRead>,
        after: Option<WebhookId>,
        limit: i64,
    ) -> Result<Vec<Webhook>> {
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let found = webhooks::list(&mut tx, scope.repository(), after, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub async fn update_webhook(
        &self,
        origin: &Origin,
        scope: &RepoScope<Update>,
        id: WebhookId,
        change: &WebhookChange<'_>,
    ) -> Result<Webhook> {
        let url = match change.url {
            Some(url) => Some(self.checked_url(url).await?),
            None => None,
        };
        let description = change.description.map(checked_description).transpose()?;
        let events = change.events.as_deref().map(checked_events).transpose()?;
        let update = WebhookUpdate {
            url: url.as_deref(),
            description: description.as_deref(),
            events: events.as_deref(),
            enabled: change.enabled,
        };
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let webhook = webhooks::update(&mut tx, scope.repository(), id, &update).await?.ok_or(MISSING)?;
        let action = match change.enabled {
            Some(true) => "webhook.enabled",
            Some(false) => "webhook.disabled",
            None => "webhook.updated",
        };
        self.commit_recorded(tx, origin, scope, action, &id.to_string()).await?;
        Ok(webhook)
    }

    pub async fn delete_webhook(
        &self,
        origin: &Origin,
        scope: &RepoScope<WebhookDelete>,
        id: WebhookId,
    ) -> Result<()> {
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        if !webhooks::delete(&mut tx, scope.repository(), id).await? {
            return Err(MISSING);
        }
        self.commit_recorded(tx, origin, scope, "webhook.deleted", &id.to_string()).await
    }

    /// Gives it another secret, which is told here and never again. Until the time that is returned, the one before signs as well.
    pub async fn rotate_webhook_secret(
        &self,
        origin: &Origin,
        scope: &RepoScope<Update>,
        id: WebhookId,
    ) -> Result<(Secret, DateTime<Utc>)> {
        let (secret, sealed) = self.webhook_secrets().mint(id)?;
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let until =
            webhooks::rotate(&mut tx, scope.repository(), id, &sealed, OVERLAP).await?.ok_or(MISSING)?;
        self.commit_recorded(tx, origin, scope, "webhook.secret_rotated", &id.to_string()).await?;
        Ok((secret, until))
    }

    /// Sends an event that means nothing, once; also to a webhook that is disabled, so that it can be tried before it is enabled.
    pub async fn test_webhook(&self, scope: &RepoScope<WebhookExecute>, id: WebhookId) -> Result<DeliveryId> {
        let mut tx = self.databases().begin(scope.database(), scope.repository()).await?;
        let (delivery, data) = (DeliveryId::mint(), serde_json::json!({ "webhook_id": id }));
        let (repository, page) = (scope.repository(), "");
        if !webhook_deliveries::insert(&mut tx, repository, id, delivery, WEBHOOK_TEST, page, &data).await? {
            return Err(MISSING);
        }
        tx.commit().await?;
        Ok(delivery)
    }

    /// The newest first, from before `before`.
    pub async fn list_webhook_deliveries(
        &self,
        scope: &RepoScope<WebhookRead>,
        id: WebhookId,
        state: Option<DeliveryState>,
        before: Option<DeliveryId>,
        limit: i64,
    ) -> Result<Vec<Delivery>> {
        let access: &RepoAccess = scope;
        let mut tx = self.databases().begin_to_read(access.database(), access.repository()).await?;
        if !webhooks::exists(&mut tx, access.repository(), id).await? {
            return Err(MISSING);
        }
        let found = webhook_deliveries::list(&mut tx, access.repository(), id, state, before, limit).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// The address, as it is going to be used. It is looked at again whenever something is sent there.
    async fn checked_url(&self, text: &str) -> Result<String> {
        let wrong = |why: String| Error::invalid("url", why);
        let url = Url::parse(text.trim())
            .map_err(|_| wrong("must be an absolute URL, such as https://example.org/hook".to_owned()))?;
        if url.as_str().len() > LONGEST_URL {
            return Err(wrong(format!("must have at most {LONGEST_URL} characters")));
        }
        let client = self
            .web()
            .ok_or(Error::NotConfigured("nothing can be sent: no root CA certificates are installed"))?;
        match Receivers::new(self.config(), client).check(&url).await {
            Ok(()) => Ok(url.into()),
            Err(FetchError::Refused { rule, .. }) => Err(wrong(format!("can't be used: {rule}"))),
            Err(other) => Err(wrong(other.to_string())),
        }
    }
}

fn checked_description(text: &str) -> Result<String> {
    checked_name("description", text, 0, LONGEST_DESCRIPTION)
}

/// Each once, in the order of the document.
fn checked_events(events: &[WebhookEvent]) -> Result<Vec<WebhookEvent>> {
    if events.is_empty() {
        return Err(Error::invalid("events", "must name at least one event"));
    }
    Ok(events.iter().copied().collect::<BTreeSet<_>>().into_iter().collect())
}
