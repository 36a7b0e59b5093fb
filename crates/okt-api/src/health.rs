//! Liveness and readiness, for orchestrators and balancers.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use okt_http::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

#[derive(Serialize, ToSchema)]
pub struct Health {
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether this process should get requests, and why not.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    status: Status,
    /// Each dependency by name.
    checks: BTreeMap<String, Answer>,
}

#[derive(Serialize, ToSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ready,
    /// Going away: requests are still answered, new ones should go elsewhere.
    Draining,
    Unavailable,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Up,
    Down,
}

/// Is the process alive?
///
/// Looks at nothing else: a database that is away is no reason to restart this process.
#[utoipa::path(get, path = "/healthz", tag = "Operations", responses(
    (status = 200, body = Health, description = "Alive")
))]
pub async fn live() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Should this process get requests?
///
/// The databases of the system and of the queue decide. A tenant's own database that is away is listed as down.
#[utoipa::path(get, path = "/readyz", tag = "Operations", responses(
    (status = 200, body = Readiness, description = "Ready"),
    (status = 503, body = Readiness, description = "Draining, or a dependency that everything needs does not answer")
))]
pub async fn ready(State(api): State<Api>) -> Response {
    let checks = api.app.readiness().await;
    let status = if api.edge.is_draining() {
        Status::Draining
    } else if checks.iter().all(|check| check.up || !check.required) {
        Status::Ready
    } else {
        Status::Unavailable
    };
    let code = if status == Status::Ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = checks.into_iter().map(|c| (c.name, if c.up { Answer::Up } else { Answer::Down })).collect();
    let mut response = (code, Json(Readiness { status, checks })).into_response();
    if code != StatusCode::OK {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
