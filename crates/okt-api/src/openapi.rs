//! The OpenAPI 3.1 document: made from the table, so that it can't speak of a route that does not exist.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use okt_http::{Code, Problem, ProblemBody, Routes};
use okt_model::Error;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::{Api, docs};

/// The document and the page, rendered once.
pub(crate) struct Documents {
    pub(crate) json: String,
    pub(crate) page: docs::DocsPage,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "okt",
        description = "Knowledge-graph research: sources become atomic facts, traceable to the sentence.\n\n\
            Errors are problems (RFC 9457) with a stable `code`. Lists are `{data, next_cursor}` and page by an opaque \
            `cursor`. Every answer carries `X-Request-Id`. Addresses answer with and without a trailing slash.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ProblemBody))
)]
struct Document;

/// Title and shared components; the table adds the rest.
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some("Session token, OAuth access token or personal API key".to_owned());
    document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

/// Renders the documents of a complete table, for its own routes to show.
pub fn finish(api: &Api, routes: &Routes<Api>) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(routes.openapi()).map_err(Error::internal)?;
    let page = docs::DocsPage::render(routes.openapi())?;
    api.documents
        .set(Documents { json, page })
        .map_err(|_| Error::internal("the documents were rendered twice"))
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "Documentation",
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1")))]
pub async fn show(State(api): State<Api>) -> Result<Response, Problem> {
    let documents = rendered(&api)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], documents.json.clone()).into_response())
}

pub(crate) fn rendered(api: &Api) -> Result<&Documents, Problem> {
    api.documents.get().ok_or_else(|| Problem::new(Code::Unavailable, "the service is still starting"))
}
