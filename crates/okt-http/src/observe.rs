//! Request id, span, metrics and security headers: what is the same for every request and every answer.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use metrics::{Counter, Histogram};
use tracing::Instrument;
use uuid::Uuid;

use crate::edge::Edge;
use crate::problem::{Code, Problem};
use crate::sending::hand_out;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a request is called in logs, problems and the `X-Request-Id` header.
#[derive(Clone, Debug)]
pub struct RequestId(Arc<Named>);

#[derive(Debug)]
struct Named {
    id: String,
    method: &'static str,
    /// The template, not the path: a label per id would grow without end.
    route: Option<MatchedPath>,
}

tokio::task_local! {
    static CURRENT: RequestId;
}

impl RequestId {
    fn of(request: &Request) -> Self {
        let id = given(request.headers()).map_or_else(mint, str::to_owned);
        let route = request.extensions().get::<MatchedPath>().cloned();
        Self(Arc::new(Named { id, method: known_method(request.method()), route }))
    }

    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn method(&self) -> &'static str {
        self.0.method
    }

    /// As it stands in the table.
    pub fn route(&self) -> &str {
        self.0.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }

    /// Runs `future` as a part of this request, also when it goes on in a task of its own.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }
}

/// A client's own id is kept when it is short and plain; anything else could forge log lines.
fn given(headers: &HeaderMap) -> Option<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let text = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    ((1..=128).contains(&text.len()) && text.bytes().all(plain)).then_some(text)
}

/// A UUIDv7 of the time, this process and a count: it has to be unique, not secret, and is made for every request.
fn mint() -> String {
    static PROCESS: LazyLock<[u8; 16]> = LazyLock::new(|| {
        #[expect(clippy::disallowed_methods, reason = "a request is not an entity; its id is minted here")]
        Uuid::now_v7().into_bytes()
    });
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut tail = [0; 10];
    tail[..6].copy_from_slice(&PROCESS[10..]);
    tail[6..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let (seconds, nanos) = uuid::Timestamp::now(uuid::NoContext).to_unix();
    let millis = seconds * 1000 + u64::from(nanos / 1_000_000);
    uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid().to_string()
}

/// The request that is being answered; none outside of one.
pub fn current_request() -> Option<RequestId> {
    CURRENT.try_with(Clone::clone).ok()
}

/// The id of the request that is being answered; empty outside of one.
pub fn current_request_id() -> String {
    CURRENT.try_with(|request| request.id().to_owned()).unwrap_or_default()
}

/// The meters of one route, looked up once: their names are made of several texts.
#[derive(Default)]
pub(crate) struct Meters(RwLock<Vec<Meter>>);

struct Meter {
    method: &'static str,
    status: StatusCode,
    /// The same for all but those who answer for no route.
    route: String,
    total: Counter,
    duration: Histogram,
}

impl Meters {
    fn count(&self, request: &RequestId, status: StatusCode, elapsed: Duration) {
        let (method, route) = (request.method(), request.route());
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meter = known
            .iter()
            .find(|meter| meter.method == method && meter.status == status && meter.route == route);
        if let Some(meter) = meter {
            meter.total.increment(1);
            meter.duration.record(elapsed);
            return;
        }
        drop(known);
        let (route, code) = (route.to_owned(), status.as_str().to_owned());
        let total = metrics::counter!("okt_http_requests_total",
            "method" => method, "route" => route.clone(), "status" => code);
        let duration = metrics::histogram!("okt_http_request_duration_seconds",
            "method" => method, "route" => route.clone());
        total.increment(1);
        duration.record(elapsed);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.push(Meter { method, status, route, total, duration });
    }
}

/// Around everything that answers a request.
pub(crate) async fn observe<F: Future<Output = Response>>(
    edge: &Edge,
    meters: &Meters,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let id = RequestId::of(&request);
    // For traces and for fine logs. Every line of the log names the request without it, see [`current_request`].
    let span = tracing::debug_span!(
        "request",
        request.id = id.id(),
        method = id.method(),
        route = id.route(),
        status = tracing::field::Empty
    );
    request.extensions_mut().insert(id.clone());

    // Not the path itself: clients put things there that are nobody else's business.
    span.in_scope(|| tracing::trace!(path_bytes = request.uri().path().len(), "asked"));
    let started = Instant::now();
    // What a panic leaves half done belongs to the request and goes with it.
    let answer = AssertUnwindSafe(async { answer(request).await }).catch_unwind();
    let answered = id.clone().scope(answer).instrument(span.clone()).await;
    // What happened was logged by the panic hook; the payload is for it alone.
    let mut response = answered.unwrap_or_else(|_| {
        let problem = || Problem::new(Code::Internal, "internal error").into_response();
        CURRENT.sync_scope(id.clone(), problem)
    });
    let (status, elapsed) = (response.status(), started.elapsed());
    if !span.is_disabled() {
        span.record("status", status.as_u16());
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        span.in_scope(|| tracing::debug!(status = status.as_u16(), duration_ms, "answered"));
    }
    meters.count(&id, status, elapsed);
    write_headers(edge, &id, response.headers_mut());
    hand_out(response)
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
    if let Ok(value) = HeaderValue::from_str(id.id()) {
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
