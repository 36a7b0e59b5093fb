//! The document of the service, and whether it is well.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use okt_config::RegistryAccess;
use okt_http::{Json, ProblemBody};
use serde::Serialize;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{OpenApi, ToSchema};

use crate::Registry;

#[derive(OpenApi)]
#[openapi(
    info(title = "okt registry", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    servers((url = "/", description = "The registry that you read this on")),
    tags((name = "Registry", description = "What installations share: packages of sources, and bundles."),
         (name = "Pages", description = "For people who want to see what there is."),
         (name = "Operations", description = "For orchestrators and monitors.")),
    components(schemas(ProblemBody))
)]
struct Document;

pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description =
        Some("A key of the registry; or sign the request (RFC 9421, hmac-sha256)".to_owned());
    document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

/// Who needs a key depends on how the registry is set up, and so does what the document says of it.
pub(crate) fn open_up(document: &mut utoipa::openapi::OpenApi, access: RegistryAccess) {
    for item in document.paths.paths.values_mut() {
        let operations = [
            (false, &mut item.get),
            (true, &mut item.put),
            (true, &mut item.post),
            (true, &mut item.delete),
            (true, &mut item.patch),
        ];
        for (writes, operation) in operations {
            let Some(operation) = operation else { continue };
            let is_open = match access {
                RegistryAccess::Open => true,
                RegistryAccess::ReadOpen => !writes,
                RegistryAccess::Closed => false,
            };
            if is_open {
                operation.security = Some(Vec::new());
            }
        }
    }
}

/// Show this document.
#[utoipa::path(get, path = "/openapi.json", tag = "Operations", operation_id = "getOpenApi",
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1")))]
pub async fn show(State(registry): State<Registry>) -> Response {
    let json = registry.document.get().cloned().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// The process is alive.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryHealth)]
pub struct Health {
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether this process should get requests, and why not.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryReadiness)]
pub struct Readiness {
    /// `ready` or `unavailable`.
    #[schema(example = "ready")]
    status: &'static str,
    /// `ok` or `down`, for `database` and `storage`.
    #[schema(example = json!({"database": "ok", "storage": "ok"}))]
    checks: BTreeMap<&'static str, &'static str>,
}

/// Report whether the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "Operations", operation_id = "getHealth",
    responses((status = 200, body = Health, description = "Alive")))]
pub async fn live() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Report whether database and files answer.
#[utoipa::path(get, path = "/readyz", tag = "Operations", operation_id = "getReadiness",
    responses((status = 200, body = Readiness, description = "Ready"),
              (status = 503, body = Readiness, description = "Going away, or something does not answer")))]
pub async fn ready(State(registry): State<Registry>) -> Response {
    let (database, storage) = tokio::join!(registry.is_database_well(), registry.is_storage_well());
    let told = |is_well| if is_well { "ok" } else { "down" };
    let checks = BTreeMap::from([("database", told(database)), ("storage", told(storage))]);
    let is_ready = database && storage && !registry.edge().is_some_and(|edge| edge.is_draining());
    let status = if is_ready { "ready" } else { "unavailable" };
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = (code, Json(Readiness { status, checks })).into_response();
    if !is_ready {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "Operations", operation_id = "getMetrics",
    responses((status = 200, body = String, content_type = "text/plain", description = "Metrics",
               example = "okt_build_info{version=\"0.1.0\"} 1")))]
pub async fn metrics(State(registry): State<Registry>) -> Response {
    let text = (registry.metrics)();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
