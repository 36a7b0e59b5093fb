//! What every request meets before its handler: room, rate, gate, time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use okt_config::{Config, Mode};
use tokio::sync::Semaphore;

use crate::address::ClientAddress;
use crate::cursor::CursorKey;
use crate::problem::{Code, Problem};
use crate::rate::{Allowance, PerMinute};
use crate::routes::{Gate, Guard};

/// Who a request is counted against: `user:…`, `key:…`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

/// The limits and keys of this process, shared by all of its routes.
pub struct Edge {
    pub(crate) server: okt_config::Server,
    pub(crate) cursor_key: CursorKey,
    /// Told to clients whose links are https, so that they never fall back to plain http.
    pub(crate) strict_transport: bool,
    in_flight: Semaphore,
    by_address: PerMinute<IpAddr>,
    by_principal: PerMinute<Principal>,
    /// In development a whole test suite comes from 127.0.0.1; limits per address would only get in its way.
    loopback_is_unlimited: bool,
    draining: AtomicBool,
}

impl Edge {
    /// `secret` is the service's signing secret; the key for cursors is derived from it.
    pub fn new(config: &Config, secret: &[u8]) -> Arc<Self> {
        let issuer = config.oauth.issuer.as_ref();
        Arc::new(Self {
            server: config.server.clone(),
            cursor_key: CursorKey::derive(secret),
            strict_transport: issuer.is_some_and(|url| url.scheme() == "https"),
            in_flight: Semaphore::new(config.server.max_in_flight),
            by_address: PerMinute::new(config.rate_limits.anonymous_per_minute),
            by_principal: PerMinute::new(config.rate_limits.api_per_minute),
            loopback_is_unlimited: config.mode == Mode::Development && issuer.is_none(),
            draining: AtomicBool::new(false),
        })
    }

    /// From now on `/readyz` refuses and connections are asked to close, while requests are still served.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Keeps the rate limits' memory in proportion to the active callers. Runs until dropped.
    pub async fn keep_tidy(&self) {
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        loop {
            minute.tick().await;
            self.by_address.forget_idle();
            self.by_principal.forget_idle();
        }
    }

    fn take_by_address(&self, address: ClientAddress) -> Result<Option<Allowance>, Allowance> {
        if self.loopback_is_unlimited && address.0.is_loopback() {
            return Ok(None);
        }
        self.by_address.take(&address.0)
    }
}

/// What a route line carries into [`enter`].
#[derive(Clone)]
pub(crate) struct Door<S> {
    pub(crate) edge: Arc<Edge>,
    pub(crate) gate: S,
    pub(crate) guard: Guard,
}

/// The one way in. The order is the cheapest refusal first: nothing is looked up for a request that is shed.
pub(crate) async fn enter<S: Gate>(
    State(door): State<Door<S>>,
    mut request: Request,
    next: Next,
) -> Response {
    let edge = &door.edge;
    request.extensions_mut().insert(Arc::clone(edge));
    if let Err(refused) = check_address(edge, &request) {
        return refused.into_response();
    }
    if door.guard == Guard::Probe {
        return run(edge, request, next).await;
    }

    let Ok(_room) = edge.in_flight.try_acquire() else {
        metrics::counter!("okt_http_shed_total").increment(1);
        return Problem::new(Code::Overloaded, "the service is at its limit of concurrent requests")
            .into_response();
    };

    let address = ClientAddress::of(request.headers(), request.extensions(), &edge.server.trusted_proxies);
    request.extensions_mut().insert(address);
    let (mut parts, body) = request.into_parts();
    let admitted = door.gate.admit(door.guard, &mut parts).await;
    // A refused credential counts against the address, so that guessing is as slow as anonymous use.
    let taken = match &admitted {
        Ok(Some(principal)) => edge.by_principal.take(principal),
        Ok(None) => edge.take_by_address(address),
        Err(problem) if problem.code() == Code::Unauthenticated => edge.take_by_address(address),
        Err(_) => Ok(None),
    };
    let allowance = match taken {
        Ok(allowance) => allowance,
        Err(exhausted) => {
            let mut response = Problem::new(Code::RateLimited, "this caller sends too many requests")
                .retry_after(exhausted.wait)
                .into_response();
            exhausted.write(response.headers_mut());
            return response;
        }
    };
    let mut response = match admitted {
        Ok(principal) => {
            if let Some(principal) = principal {
                parts.extensions.insert(principal);
            }
            run(edge, Request::from_parts(parts, body), next).await
        }
        Err(problem) => problem.into_response(),
    };
    if let Some(allowance) = allowance {
        allowance.write(response.headers_mut());
    }
    response
}

async fn run(edge: &Edge, request: Request, next: Next) -> Response {
    let limit = edge.server.write_timeout.duration();
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::timed_out(limit).into_response(),
    }
}

fn check_address(edge: &Edge, request: &Request) -> Result<(), Problem> {
    let address = request.uri().path_and_query().map_or("", |text| text.as_str());
    let limit = edge.server.limits.url_bytes;
    if address.len() > limit {
        return Err(Problem::new(Code::UriTooLong, format!("the limit is {limit} bytes")));
    }
    // PostgreSQL can't hold it, and nobody means it.
    if address.contains("%00") {
        return Err(Problem::new(Code::Malformed, "the address contains a NUL character"));
    }
    Ok(())
}
