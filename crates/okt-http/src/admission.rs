//! What every request goes through before its handler: slot, gate, rate limit, body, time limit.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::future::BoxFuture;
use http::header;
use http_body::Body as _;
use tower::{Layer, Service, ServiceExt};

use crate::address::ClientAddress;
use crate::body;
use crate::edge::{Edge, InFlight, WellFormed};
use crate::observe::{Meters, observe};
use crate::problem::{Code, Problem};
use crate::query::Queries;
use crate::rate::{Allowance, too_many};
use crate::recheck::Recheck;
use crate::routes::{Gate, Guard};
use crate::sending::{Budget, count};
use crate::shares::{Refused, Share, Shares};
use crate::streaming;

/// The longest that an upload may take, and that one of a bundle may, which is a hundred times as large.
pub(crate) const UPLOAD: Duration = Duration::from_mins(10);
pub(crate) const LARGE_UPLOAD: Duration = Duration::from_mins(150);
/// How long a body may take before the gate is asked again.
const RECHECK_AFTER: Duration = Duration::from_millis(250);

/// What a line of the table asks of its requests.
pub(crate) struct Policy<S> {
    pub(crate) edge: Arc<Edge>,
    pub(crate) gate: S,
    pub(crate) guard: Guard,
    pub(crate) transfer: Transfer,
    /// What its methods take; none where unknown parameters are ignored.
    pub(crate) queries: Option<Queries>,
    pub(crate) meters: Meters,
}

/// How the body of a request is read and its answer sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// The body is read first, and the answer is made within `server.write_timeout`.
    #[default]
    Plain,
    /// As [`Self::Plain`], for a body that is as long as a report.
    Long,
    /// The handler reads the body itself, piece by piece, for at most as long as this.
    Upload { longest: Duration },
    /// The answer is made while it is read, for as long as the caller may have it.
    Download,
    /// As [`Self::Download`], for events: one of the caller's streams, which ends after `idle` without an event.
    Stream { idle: Duration },
    /// Bytes that are in memory anyway, with a rate limit of their own.
    Files,
}

/// Puts [`observe`] and [`enter`] before a route. A service of its own instead of two of `from_fn`, because it is before
/// every request: those box and move each of them four times as often.
#[derive(Clone)]
pub(crate) struct Guarded<S>(pub(crate) Arc<Policy<S>>);

#[derive(Clone)]
pub(crate) struct Enter<S> {
    policy: Arc<Policy<S>>,
    route: Route,
}

impl<S: Gate> Layer<Route> for Guarded<S> {
    type Service = Enter<S>;

    fn layer(&self, route: Route) -> Enter<S> {
        Enter { policy: Arc::clone(&self.0), route }
    }
}

impl<S: Gate> Service<Request> for Enter<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (policy, route) = (Arc::clone(&self.policy), self.route.clone());
        Box::pin(async move {
            let answer = |request| enter(&policy, request, route);
            Ok(observe(&policy.edge, &policy.meters, request, answer).await)
        })
    }
}

/// The one way in. The order is the cheapest refusal first: nothing is looked up for a request that is shed, and no
/// body is read for a caller who may not pass.
async fn enter<S: Gate>(policy: &Policy<S>, mut request: Request, next: Route) -> Response {
    let edge = &policy.edge;
    request.extensions_mut().insert(Arc::clone(edge));
    if let Err(refused) = check_uri(edge, &request) {
        return refused.into_response();
    }
    if policy.guard == Guard::Probe {
        return run(edge, request, next).await;
    }
    let method = request.method().clone();
    let (admitted, allowance) = admit(policy, request).await;
    let mut response = match admitted {
        Ok((request, in_flight, budget)) => {
            // What something is done for is answered in any case, so whoever leaves answers lying asks for no more.
            let heard = if method.is_safe() { Ok(()) } else { budget.check() };
            let checked = heard.and_then(|()| match &policy.queries {
                Some(queries) => queries.check(request.method(), request.uri()),
                None => Ok(()),
            });
            let response = match checked {
                Ok(()) => answer(policy, request, in_flight, &budget, next).await,
                Err(refused) => Err(refused),
            };
            count(&budget, &method, response.unwrap_or_else(Problem::into_response))
        }
        Err(refused) => refused.into_response(),
    };
    // A route that has a limit of its own speaks of that.
    if let Some(allowance) = allowance
        && !response.headers().contains_key("ratelimit-limit")
    {
        allowance.write(response.headers_mut());
    }
    response
}

/// Slot, gate and rate limit. The allowance is told to the caller whatever comes of the request.
async fn admit<S: Gate>(
    policy: &Policy<S>,
    mut request: Request,
) -> (Result<(Request, InFlight, Budget), Problem>, Option<Allowance>) {
    let edge = &policy.edge;
    let in_flight = match edge.take_in_flight() {
        Ok(in_flight) => in_flight,
        Err(refused) => return (Err(refused), None),
    };
    let address = ClientAddress::of(request.headers(), request.extensions(), &edge.server.trusted_proxies);
    request.extensions_mut().insert(address);
    let address = address.subscriber();

    let (mut parts, body) = request.into_parts();
    let admitted = policy.gate.admit(policy.guard, &mut parts).await;
    let taken = match &admitted {
        Ok(Some(principal)) => edge.take_by_principal(principal),
        Ok(None) if policy.transfer == Transfer::Files => edge.take_file_by_address(address),
        Ok(None) => edge.take_by_address(address),
        Err(problem) if problem.code() == Code::Unauthenticated => {
            if parts.headers.contains_key(header::AUTHORIZATION) {
                metrics::counter!("okt_http_credentials_refused_total").increment(1);
            }
            // Nobody guesses what has 238 bits or a signature, and whoever shares the address with a program that goes
            // on with an old token has done nothing: it is counted and not held against anybody.
            if parts.extensions.get::<WellFormed>().is_some() {
                Ok(None)
            } else {
                edge.take_by_address(address)
            }
        }
        Err(_) => Ok(None),
    };
    match (taken, admitted) {
        (Err(exhausted), _) => (Err(too_many(exhausted)), Some(exhausted)),
        (Ok(allowance), Err(problem)) => (Err(problem), allowance),
        (Ok(allowance), Ok(principal)) => {
            let budget = match &principal {
                Some(principal) => edge.sending.to_person(Arc::clone(&principal.person)),
                None => edge.sending.to_stranger(address),
            };
            parts.extensions.insert(budget.clone());
            if let Some(principal) = principal {
                parts.extensions.insert(principal);
            }
            (Ok((Request::from_parts(parts, body), in_flight, budget)), allowance)
        }
    }
}

/// Runs the handler, with the body and the answer transferred as its route declares.
async fn answer<S: Gate>(
    policy: &Policy<S>,
    request: Request,
    in_flight: InFlight,
    budget: &Budget,
    next: Route,
) -> Result<Response, Problem> {
    let edge = &policy.edge;
    match policy.transfer {
        Transfer::Plain | Transfer::Long => {
            // Held until the handler has ended: what it makes of a long text takes several times as much memory.
            let _slot = if policy.transfer == Transfer::Long && is_long(edge, &request) {
                Some(take_slot(&edge.long_bodies, budget.payer(), "long texts")?)
            } else {
                None
            };
            let request = read_body(policy, request, in_flight, budget).await?;
            Ok(run(edge, request, next).await)
        }
        Transfer::Upload { longest } => upload(policy, request, in_flight, (budget, longest), next).await,
        Transfer::Download => {
            let request = read_body(policy, request, in_flight, budget).await?;
            let recheck = Recheck::new(&policy.gate, policy.guard, &request);
            Ok(streaming::download(edge, run(edge, request, next).await, recheck))
        }
        Transfer::Stream { idle } => {
            let request = read_body(policy, request, in_flight, budget).await?;
            // Before the handler runs: an answer that can't be sent may have cost something.
            let slot = edge.streams().take(budget.payer())?;
            let recheck = Recheck::new(&policy.gate, policy.guard, &request);
            Ok(streaming::events(edge, run(edge, request, next).await, recheck, slot, idle))
        }
        Transfer::Files => {
            let _in_flight = in_flight;
            Ok(run(edge, request, next).await)
        }
    }
}

/// Whether a body is, or may be, longer than those of other routes.
fn is_long(edge: &Edge, request: &Request) -> bool {
    let most = u64::try_from(edge.server.limits.json_bytes).unwrap_or(u64::MAX);
    request.body().size_hint().upper().is_none_or(|bytes| bytes > most)
}

/// Reads a body before the work begins. Reading has slots of its own.
async fn read_body<S: Gate>(
    policy: &Policy<S>,
    mut request: Request,
    in_flight: InFlight,
    budget: &Budget,
) -> Result<Request, Problem> {
    let edge = &policy.edge;
    if request.body().is_end_stream() {
        request.extensions_mut().insert(in_flight);
        return Ok(request);
    }
    drop(in_flight);
    let reading = take_slot(&edge.reading, budget.payer(), "bodies")?;
    let (mut parts, body) = request.into_parts();
    let started = Instant::now();
    let limits = &edge.server.limits;
    let limit = if policy.transfer == Transfer::Long { limits.report_bytes } else { limits.json_bytes };
    let bytes = body::read(edge, &parts.headers, body, limit).await?;
    drop(reading);
    // Whoever takes their time with the body may have lost their rights meanwhile.
    if started.elapsed() > RECHECK_AFTER {
        policy.gate.admit(policy.guard, &mut parts).await?;
    }
    parts.extensions.insert(edge.take_in_flight()?);
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// Lets the handler read the body, however large it is and however long that takes, in one of the slots of uploads. The
/// extractor bounds both, and asks the gate again at the end; see `upload.rs`.
async fn upload<S: Gate>(
    policy: &Policy<S>,
    mut request: Request,
    in_flight: InFlight,
    (budget, longest): (&Budget, Duration),
    next: Route,
) -> Result<Response, Problem> {
    drop(in_flight);
    let _slot = take_slot(&policy.edge.uploads, budget.payer(), "files")?;
    let recheck = Recheck::new(&policy.gate, policy.guard, &request);
    request.extensions_mut().insert(recheck);
    match tokio::time::timeout(longest, next.oneshot(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(never)) => match never {},
        Err(_) => Err(Problem::timed_out(longest)),
    }
}

async fn run(edge: &Edge, request: Request, next: Route) -> Response {
    let in_flight = request.extensions().get::<InFlight>().cloned();
    let limit = edge.server.write_timeout.duration();
    let response = tokio::time::timeout(limit, next.oneshot(request)).await;
    drop(in_flight);
    match response {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Problem::timed_out(limit).into_response(),
    }
}

/// A slot for sending something, until dropped.
fn take_slot(slots: &Arc<Shares>, sender: &Arc<str>, what: &str) -> Result<Share, Problem> {
    slots.take(sender, 1).map_err(|refused| match refused {
        Refused::HasEnough(theirs) => {
            let detail = format!("you are sending {theirs} {what} already; wait for one to end");
            Problem::new(Code::RateLimited, detail).retry_after(5)
        }
        Refused::NothingLeft => Problem::new(
            Code::Overloaded,
            format!("the service is at its limit of {what} that are being sent"),
        ),
    })
}

fn check_uri(edge: &Edge, request: &Request) -> Result<(), Problem> {
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

#[cfg(test)]
mod tests {
    use okt_config::Config;

    use super::*;

    #[test]
    fn the_largest_bundle_has_time_at_half_a_megabyte_a_second() {
        assert!(LARGE_UPLOAD.as_secs() >= Config::default().server.limits.bundle_bytes / 500_000);
    }
}
