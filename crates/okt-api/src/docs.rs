//! `/api/docs`: the page that shows the OpenAPI document, and the list of errors that both tell.

use std::fmt::Write;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderName, header};
use okt_http::{Code, Problem};
use serde_json::Value as Json;

use crate::Api;
use crate::openapi::rendered;

/// What the page may load: scripts that are served beside it, and no others. Scalar puts styles on elements, which can't be
/// named by a hash or a nonce.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'none'; \
    frame-ancestors 'none'";

/// This documentation as a page.
#[utoipa::path(get, path = "/api/docs", tag = "Documentation",
    operation_id = "getDocumentation",
    responses((status = 200, body = String, content_type = "text/html", description = "A page to read")))]
pub async fn show(State(api): State<Api>) -> Result<Response, Problem> {
    let page = rendered(&api)?.page.clone();
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    Ok((headers, Html(page)).into_response())
}

/// Every code that a problem may carry, for the OpenAPI document: a problem's `type` leads to them.
pub(crate) fn problems() -> Json {
    let problem = |code: &Code| {
        serde_json::json!({
            "advice": code.advice(),
            "code": code.as_str(),
            "status": code.status().as_u16(),
            "title": code.title(),
        })
    };
    Code::ALL.iter().map(problem).collect()
}

/// `docs/ERRORS.md`: every code that a problem may carry.
pub fn errors_page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Refusals are `application/problem+json` (RFC 9457). Programs should look at `code`: it is never renamed and \
         never reused. `detail` is for people, `request_id` finds the request in the logs. This page is generated \
         (`just bless`).\n\n\
         | code | status | title | what to do |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            code.as_str(),
            code.status().as_u16(),
            code.title(),
            code.advice()
        );
    }
    page
}
