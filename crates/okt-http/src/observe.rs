//! Request id, span, metrics and security headers: what is the same for every request and every answer.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tracing::Instrument;
use uuid::Uuid;

use crate::edge::Edge;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of this request in logs, problems and the `X-Request-Id` header.
#[derive(Clone, Debug)]
pub struct RequestId(Arc<str>);

tokio::task_local! {
    static CURRENT: RequestId;
}

impl RequestId {
    /// A client's own id is kept when it is short and plain; anything else could forge log lines.
    fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok()).filter(|text| {
            (1..=128).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        });
        #[expect(clippy::disallowed_methods, reason = "a request is not an entity; its id is minted here")]
        Self(given.map_or_else(|| Uuid::now_v7().to_string().into(), Arc::from))
    }

    /// Runs `future` as a part of this request, also when it goes on in a task of its own.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }
}

/// The id of the request that is being answered; empty outside of one.
pub fn current_request_id() -> String {
    CURRENT.try_with(|id| id.0.to_string()).unwrap_or_default()
}

pub(crate) async fn observe(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let method = known_method(request.method());
    // The template, not the path: a label per id would grow without end.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched".into(), |path| Arc::<str>::from(path.as_str()));
    let span = tracing::info_span!("request", request.id = %id.0, method, route = &*route, status = tracing::field::Empty);
    request.extensions_mut().insert(id.clone());

    // The path without its query, where clients put things that are nobody else's business.
    span.in_scope(|| tracing::trace!(path = request.uri().path(), "asked"));
    let started = Instant::now();
    let mut response = id.clone().scope(next.run(request)).instrument(span.clone()).await;
    let elapsed = started.elapsed();

    let status = response.status().as_u16();
    span.record("status", status);
    span.in_scope(|| {
        tracing::debug!(
            status,
            duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    });
    metrics::counter!("okt_http_requests_total", "method" => method, "route" => route.to_string(), "status" => status.to_string())
        .increment(1);
    metrics::histogram!("okt_http_request_duration_seconds", "method" => method, "route" => route.to_string())
        .record(elapsed);

    write_headers(&edge, &id, response.headers_mut());
    response
}

/// Sets what a handler did not set itself; a handler may be stricter or, for a page, name its own policy.
fn write_headers(edge: &Edge, id: &RequestId, headers: &mut HeaderMap) {
    const DEFAULTS: [(HeaderName, &str); 6] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in DEFAULTS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if edge.strict_transport {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=63072000"));
    }
    if edge.is_draining() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        headers.insert(X_REQUEST_ID, value);
    }
}

/// Any token is a legal method; only the registered ones may become a label.
fn known_method(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
