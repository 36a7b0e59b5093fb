//! Webhooks: other services that are told what has happened in a repository.

use axum::extract::State;
use http::{HeaderName, StatusCode, header};
use okt_auth::permissions::{
    WebhookDelete, WebhookExecute, WebhookRead, WebhookUpdate as Update, WebhookWrite,
};
use okt_http::{Json, Page, PageRequest, Path, Problem, Query};
use okt_model::{DeliveryId, WebhookId};
use okt_wire::webhooks::{
    CreatedWebhook, DeliveryQuery, DeliveryView, NewWebhook, RotatedWebhookSecret, WebhookTest,
    WebhookUpdate, WebhookView,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::extract::{Repository, RequestOrigin};

#[derive(Deserialize)]
pub struct WebhookPath {
    #[serde(rename = "webhookID")]
    webhook: Uuid,
}

/// The webhooks of a repository.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/webhooks", tag = "Webhooks",
    operation_id = "listWebhooks", params(PageRequest),
    responses((status = 200, body = Page<WebhookView>, description = "Oldest first")))]
pub async fn list(
    State(api): State<Api>,
    repository: Repository<WebhookRead>,
    page: PageRequest,
) -> Result<Page<WebhookView>, Problem> {
    let after: Option<Uuid> = page.after()?;
    let found = api.app.list_webhooks(&repository.0, after.map(WebhookId::from), page.rows()).await?;
    page.page(found.into_iter().map(WebhookView::from).collect(), |webhook| webhook.id)
}

/// Have another service told what happens.
///
/// The secret is shown this once; rotate it to get another.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/webhooks", tag = "Webhooks",
    operation_id = "createWebhook", request_body = NewWebhook,
    responses((status = 201, body = CreatedWebhook, description = "The webhook; its secret is shown this once"),
              (status = 409, description = "conflict")))]
pub async fn create(
    State(api): State<Api>,
    repository: Repository<WebhookWrite>,
    origin: RequestOrigin,
    Json(body): Json<NewWebhook>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<CreatedWebhook>), Problem> {
    let (webhook, secret) = api.app.create_webhook(&origin.into(), &repository.0, &body.parsed()?).await?;
    let location = format!("/api/v1/repositories/{}/webhooks/{}", repository.0.repository(), webhook.id);
    let body = CreatedWebhook { webhook: webhook.into(), secret: secret.expose().to_owned() };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

/// Change a webhook, disable it or enable it again.
#[utoipa::path(put, path = "/api/v1/repositories/{repoID}/webhooks/{webhookID}", tag = "Webhooks",
    operation_id = "updateWebhook", request_body = WebhookUpdate,
    responses((status = 200, body = WebhookView, description = "As it is now")))]
pub async fn update(
    State(api): State<Api>,
    repository: Repository<Update>,
    origin: RequestOrigin,
    Path(path): Path<WebhookPath>,
    Json(body): Json<WebhookUpdate>,
) -> Result<Json<WebhookView>, Problem> {
    let (id, change) = (path.webhook.into(), body.parsed()?);
    Ok(Json(api.app.update_webhook(&origin.into(), &repository.0, id, &change).await?.into()))
}

/// Delete a webhook with the record of its deliveries.
#[utoipa::path(delete, path = "/api/v1/repositories/{repoID}/webhooks/{webhookID}", tag = "Webhooks",
    operation_id = "deleteWebhook",
    responses((status = 204, description = "Deleted; what was on its way is not sent")))]
pub async fn delete(
    State(api): State<Api>,
    repository: Repository<WebhookDelete>,
    origin: RequestOrigin,
    Path(path): Path<WebhookPath>,
) -> Result<StatusCode, Problem> {
    api.app.delete_webhook(&origin.into(), &repository.0, path.webhook.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Give a webhook another secret.
///
/// For 24 hours every message is signed with both, so that the receiver can change over at any time.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/webhooks/{webhookID}/rotate", tag = "Webhooks",
    operation_id = "rotateWebhookSecret",
    responses((status = 200, body = RotatedWebhookSecret, description = "The secret is shown this once")))]
pub async fn rotate(
    State(api): State<Api>,
    repository: Repository<Update>,
    origin: RequestOrigin,
    Path(path): Path<WebhookPath>,
) -> Result<Json<RotatedWebhookSecret>, Problem> {
    let id = path.webhook.into();
    let (secret, until) = api.app.rotate_webhook_secret(&origin.into(), &repository.0, id).await?;
    Ok(Json(RotatedWebhookSecret { secret: secret.expose().to_owned(), previous_secret_expires_at: until }))
}

/// Send a test event.
///
/// It is sent once, also if the webhook is disabled, and whatever comes of it changes nothing about the webhook.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/webhooks/{webhookID}/test", tag = "Webhooks",
    operation_id = "testWebhook",
    responses((status = 202, body = WebhookTest, description = "On its way")))]
pub async fn test(
    State(api): State<Api>,
    repository: Repository<WebhookExecute>,
    Path(path): Path<WebhookPath>,
) -> Result<(StatusCode, Json<WebhookTest>), Problem> {
    let delivery = api.app.test_webhook(&repository.0, path.webhook.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(WebhookTest { delivery_id: delivery.uuid() })))
}

/// What a webhook was told, and what came of it.
///
/// What was delivered is kept for 7 days, what was not for 30.
#[utoipa::path(get, path = "/api/v1/repositories/{repoID}/webhooks/{webhookID}/deliveries", tag = "Webhooks",
    operation_id = "listWebhookDeliveries", params(DeliveryQuery, PageRequest),
    responses((status = 200, body = Page<DeliveryView>, description = "Newest first")))]
pub async fn deliveries(
    State(api): State<Api>,
    repository: Repository<WebhookRead>,
    Path(path): Path<WebhookPath>,
    Query(query): Query<DeliveryQuery>,
    page: PageRequest,
) -> Result<Page<DeliveryView>, Problem> {
    let before: Option<Uuid> = page.after()?;
    let (before, state) = (before.map(DeliveryId::from), query.state()?);
    let id = path.webhook.into();
    let found = api.app.list_webhook_deliveries(&repository.0, id, state, before, page.rows()).await?;
    page.page(found.into_iter().map(DeliveryView::from).collect(), |delivery| delivery.id)
}
