//! The document of the service, and whether it is well.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use okt_http::{Code, Problem, ProblemBody};
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

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

/// Show this document.
#[utoipa::path(get, path = "/openapi.json", tag = "Operations", operation_id = "getOpenApi",
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1")))]
pub async fn show(State(registry): State<Registry>) -> Response {
    let json = registry.document.get().cloned().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// Whether the process lives.
#[utoipa::path(get, path = "/livez", tag = "Operations", operation_id = "live",
    responses((status = 204, description = "It does")))]
pub async fn live() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Whether database and files answer.
#[utoipa::path(get, path = "/readyz", tag = "Operations", operation_id = "ready",
    responses((status = 204, description = "They do"), (status = 503, description = "unavailable")))]
pub async fn ready(State(registry): State<Registry>) -> Result<StatusCode, Problem> {
    registry.acquire().await.map_err(|_| Problem::new(Code::Unavailable, "the database does not answer"))?;
    registry
        .files
        .check()
        .await
        .map_err(|_| Problem::new(Code::Unavailable, "the file storage does not answer"))?;
    Ok(StatusCode::NO_CONTENT)
}
