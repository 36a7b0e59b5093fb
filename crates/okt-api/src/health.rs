//! Liveness and readiness, for orchestrators and balancers.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use okt_app::{Check, State as Condition};
use okt_http::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

/// The process is alive.
#[derive(Serialize, ToSchema)]
pub struct Health {
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether this process should get requests, and why not.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    status: Status,
    /// Each dependency by name: `database:…`, `storage`, `vectors`, and where jobs run `parser`.
    #[schema(example = json!({"database:default": {"status": "ok"}}))]
    checks: BTreeMap<String, Dependency>,
}

/// Whether requests should be sent here.
#[derive(Serialize, ToSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReadinessStatus)]
enum Status {
    Ready,
    /// As ready, but something that not everything needs does not work; `checks` says what.
    Degraded,
    /// Going away: requests are still answered, new ones should go elsewhere.
    Draining,
    Unavailable,
}

/// The state of a dependency.
#[derive(Serialize, ToSchema)]
struct Dependency {
    status: DependencyStatus,
    /// Why the dependency does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "connection refused")]
    reason: Option<&'static str>,
}

/// Whether a dependency works.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DependencyStatus {
    Ok,
    /// Something does not work.
    Degraded,
    Down,
}

impl From<Condition> for Dependency {
    fn from(state: Condition) -> Self {
        let (status, reason) = match state {
            Condition::Ok => (DependencyStatus::Ok, None),
            Condition::Degraded(reason) => (DependencyStatus::Degraded, Some(reason)),
            Condition::Down(reason) => (DependencyStatus::Down, Some(reason)),
        };
        Self { status, reason }
    }
}

/// Report whether the process is alive.
///
/// Looks at nothing else: a database that is away is no reason to restart this process.
#[utoipa::path(get, path = "/healthz", tag = "Operations",
    operation_id = "getHealth",
    responses(
    (status = 200, body = Health, description = "Alive")
))]
pub async fn live() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Report whether this process should get requests.
///
/// The databases of the system and of the queue decide, because everything needs them. Whatever else is down or degraded is
/// listed with its reason and makes the status `degraded`, which is answered with 200: this process still serves what does
/// not need it.
#[utoipa::path(get, path = "/readyz", tag = "Operations",
    operation_id = "getReadiness",
    responses(
    (status = 200, body = Readiness, description = "Ready or degraded"),
    (status = 503, body = Readiness, description = "Draining, or a dependency that everything needs does not answer")
))]
pub async fn ready(State(api): State<Api>) -> Response {
    let checks = api.app.readiness().await;
    let status = if api.edge.is_draining() {
        Status::Draining
    } else if checks.iter().all(|check| check.state == Condition::Ok) {
        Status::Ready
    } else if checks.iter().all(Check::serves) {
        Status::Degraded
    } else {
        Status::Unavailable
    };
    let ready = matches!(status, Status::Ready | Status::Degraded);
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = checks.into_iter().map(|check| (check.name, check.state.into())).collect();
    let mut response = (code, Json(Readiness { status, checks })).into_response();
    if code != StatusCode::OK {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
