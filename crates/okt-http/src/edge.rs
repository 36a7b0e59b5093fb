//! What every request meets before its handler: room, gate, rate, body, time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::future::BoxFuture;
use http::header;
use http_body::Body as _;
use okt_config::{Config, Mode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Layer, Service, ServiceExt};
use tracing::Instrument;

use crate::address::ClientAddress;
use crate::body;
use crate::cursor::CursorKey;
use crate::observe::{Meters, RequestId, observe};
use crate::problem::{Code, Problem};
use crate::rate::{Allowance, Exhausted, Limit, too_many};
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
    /// Work that outlives its connection; the drain waits for it.
    pub(crate) detached: TaskTracker,
    working: Arc<Semaphore>,
    /// Apart from `working`, so that bodies which drip in slowly take no room from requests that have none.
    reading: Arc<Semaphore>,
    /// Apart from both: who sends a file may take minutes.
    streaming: Arc<Semaphore>,
    /// How many files each caller is sending.
    streams: Mutex<HashMap<Principal, usize>>,
    by_address: Limit<IpAddr>,
    by_principal: Limit<Principal>,
    /// Addresses that used up their allowance by sending credentials that are none.
    guessing: Exhausted<IpAddr>,
    /// In development a whole test suite comes from 127.0.0.1; limits per address would only get in its way.
    loopback_is_unlimited: bool,
    draining: AtomicBool,
    closing: CancellationToken,
}

/// The longest that somebody may take to send a file.
const STREAM: Duration = Duration::from_mins(10);
/// Files that one caller may send at once.
const STREAMS_OF_ONE: usize = 8;
/// How long a body may take before the gate is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// A place among the requests that are worked on; given back when the last clone is dropped.
#[derive(Clone)]
struct Room {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Edge {
    /// `secret` is the service's signing secret; the key for cursors is derived from it.
    pub fn new(config: &Config, secret: &[u8]) -> Arc<Self> {
        let issuer = config.oauth.issuer.as_ref();
        Arc::new(Self {
            server: config.server.clone(),
            cursor_key: CursorKey::derive(secret),
            strict_transport: issuer.is_some_and(|url| url.scheme() == "https"),
            detached: TaskTracker::new(),
            working: Arc::new(Semaphore::new(config.server.max_in_flight)),
            reading: Arc::new(Semaphore::new(config.server.max_in_flight)),
            streaming: Arc::new(Semaphore::new((config.server.max_in_flight / 4).max(8))),
            streams: Mutex::default(),
            by_address: Limit::per_minute(config.rate_limits.anonymous_per_minute),
            by_principal: Limit::per_minute(config.rate_limits.api_per_minute),
            guessing: Exhausted::default(),
            loopback_is_unlimited: config.mode == Mode::Development && issuer.is_none(),
            draining: AtomicBool::new(false),
            closing: CancellationToken::new(),
        })
    }

    /// From now on `/readyz` refuses and connections are asked to close, while requests are still served.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// From now on no connection is taken: an answer that has no end by itself has to find one.
    pub fn start_closing(&self) {
        self.closing.cancel();
    }

    /// Ends when [`Self::start_closing`] was called.
    pub async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Keeps the rate limits' memory in proportion to the active callers.
    pub fn forget_idle(&self) {
        self.by_address.forget_idle();
        self.by_principal.forget_idle();
        self.guessing.forget_over();
    }

    /// What work for this request needs to go on without its connection.
    pub fn ticket(request: &Request) -> Ticket {
        let extensions = request.extensions();
        let tracker = extensions.get::<Arc<Self>>().map(|edge| edge.detached.clone());
        Ticket {
            room: extensions.get().cloned(),
            id: extensions.get().cloned(),
            tracker: tracker.unwrap_or_default(),
        }
    }

    /// Takes one token of this address from `limit`, or refuses; for routes with a limit of their own.
    pub fn check_address(&self, limit: &Limit<IpAddr>, address: ClientAddress) -> Result<(), Problem> {
        if self.loopback_is_unlimited && address.0.is_loopback() {
            return Ok(());
        }
        limit.check(&subscriber(address.0))
    }

    fn take_by_address(&self, address: IpAddr) -> Result<Option<Allowance>, Allowance> {
        if self.loopback_is_unlimited && address.is_loopback() {
            return Ok(None);
        }
        self.by_address.take(&address)
    }
}

/// Lets work outlive its connection without leaving the house: it keeps the request's room and id, and the drain
/// waits for it.
pub struct Ticket {
    room: Option<Room>,
    id: Option<RequestId>,
    tracker: TaskTracker,
}

impl Ticket {
    pub fn go_on<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let Self { room, id, tracker } = self;
        let work = async move {
            let _room = room;
            match id {
                Some(id) => id.scope(work).await,
                None => work.await,
            }
        };
        tracker.spawn(work.in_current_span())
    }
}

/// What a route line carries into [`enter`].
pub(crate) struct Door<S> {
    pub(crate) edge: Arc<Edge>,
    pub(crate) gate: S,
    pub(crate) guard: Guard,
    /// Whether the handler reads the body itself, piece by piece.
    pub(crate) streams: bool,
    pub(crate) meters: Meters,
}

/// Puts [`observe`] and [`enter`] before a route. A service of its own instead of two of `from_fn`, because it is before
/// every request: those box and move each of them four times as often.
#[derive(Clone)]
pub(crate) struct Guarded<S>(pub(crate) Arc<Door<S>>);

#[derive(Clone)]
pub(crate) struct Enter<S> {
    door: Arc<Door<S>>,
    route: Route,
}

impl<S: Gate> Layer<Route> for Guarded<S> {
    type Service = Enter<S>;

    fn layer(&self, route: Route) -> Enter<S> {
        Enter { door: Arc::clone(&self.0), route }
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
        let (door, route) = (Arc::clone(&self.door), self.route.clone());
        Box::pin(async move {
            let answer = |request| enter(&door, request, route);
            Ok(observe(&door.edge, &door.meters, request, answer).await)
        })
    }
}

/// The one way in. The order is the cheapest refusal first: nothing is looked up for a request that is shed, and no
/// body is read for a caller who may not pass.
async fn enter<S: Gate>(door: &Door<S>, mut request: Request, next: Route) -> Response {
    let edge = &door.edge;
    request.extensions_mut().insert(Arc::clone(edge));
    if let Err(refused) = check_uri(edge, &request) {
        return refused.into_response();
    }
    if door.guard == Guard::Probe {
        return run(edge, request, next).await;
    }
    let (admitted, allowance) = admit(door, request).await;
    let mut response = match admitted {
        Ok((request, room)) if door.streams => stream(edge, request, room, next).await,
        Ok((request, room)) => match read_body(door, request, room).await {
            Ok((mut request, room)) => {
                request.extensions_mut().insert(room);
                run(edge, request, next).await
            }
            Err(refused) => refused.into_response(),
        },
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

/// Room, gate and rate. The allowance is told to the caller whatever comes of the request.
async fn admit<S: Gate>(
    door: &Door<S>,
    mut request: Request,
) -> (Result<(Request, Room), Problem>, Option<Allowance>) {
    let edge = &door.edge;
    let room = match take_room(&edge.working) {
        Ok(room) => room,
        Err(refused) => return (Err(refused), None),
    };
    let address = ClientAddress::of(request.headers(), request.extensions(), &edge.server.trusted_proxies);
    request.extensions_mut().insert(address);
    let address = subscriber(address.0);
    // Before anything is looked up, or a guess from an exhausted address would still tell right from wrong.
    if request.headers().contains_key(header::AUTHORIZATION)
        && let Some(allowance) = edge.guessing.wait(&address)
    {
        return (Err(too_many(allowance)), Some(allowance));
    }

    let (mut parts, body) = request.into_parts();
    let admitted = door.gate.admit(door.guard, &mut parts).await;
    let taken = match &admitted {
        Ok(Some(principal)) => edge.by_principal.take(principal),
        Ok(None) => edge.take_by_address(address),
        Err(problem) if problem.code() == Code::Unauthenticated => {
            edge.take_by_address(address).inspect_err(|exhausted| edge.guessing.add(address, *exhausted))
        }
        Err(_) => Ok(None),
    };
    match (taken, admitted) {
        (Err(exhausted), _) => (Err(too_many(exhausted)), Some(exhausted)),
        (Ok(allowance), Err(problem)) => (Err(problem), allowance),
        (Ok(allowance), Ok(principal)) => {
            if let Some(principal) = principal {
                parts.extensions.insert(principal);
            }
            (Ok((Request::from_parts(parts, body), room)), allowance)
        }
    }
}

/// Reads a body before the work begins. Reading takes a place of its own, not among the requests that are worked on.
async fn read_body<S: Gate>(
    door: &Door<S>,
    request: Request,
    room: Room,
) -> Result<(Request, Room), Problem> {
    let edge = &door.edge;
    if request.body().is_end_stream() {
        return Ok((request, room));
    }
    drop(room);
    let reading = take_room(&edge.reading)?;
    let (mut parts, body) = request.into_parts();
    let started = Instant::now();
    let bytes = body::read(edge, &parts.headers, body).await?;
    drop(reading);
    // Whoever takes their time with the body may have lost their rights meanwhile.
    if started.elapsed() > ASK_AGAIN {
        door.gate.admit(door.guard, &mut parts).await?;
    }
    Ok((Request::from_parts(parts, Body::from(bytes)), take_room(&edge.working)?))
}

/// Lets the handler read the body, however large it is and however long that takes, in a place among those who read. The
/// extractor bounds both, see `upload.rs`.
async fn stream(edge: &Edge, request: Request, room: Room, next: Route) -> Response {
    drop(room);
    let places = take_room(&edge.streaming).and_then(|room| Ok((room, Stream::begin(edge, &request)?)));
    match places {
        Ok(_places) => match tokio::time::timeout(STREAM, next.oneshot(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => Problem::timed_out(STREAM).into_response(),
        },
        Err(refused) => refused.into_response(),
    }
}

/// One of the few files that a caller may send at once.
struct Stream<'a> {
    edge: &'a Edge,
    caller: Option<Principal>,
}

impl<'a> Stream<'a> {
    fn begin(edge: &'a Edge, request: &Request) -> Result<Self, Problem> {
        let caller = request.extensions().get::<Principal>().cloned();
        if let Some(caller) = &caller {
            let mut streams = edge.streams.lock().unwrap_or_else(PoisonError::into_inner);
            let theirs = streams.entry(caller.clone()).or_insert(0);
            if *theirs >= STREAMS_OF_ONE {
                let detail = format!("this caller is sending {theirs} files already; wait for one to end");
                return Err(Problem::new(Code::RateLimited, detail).retry_after(5));
            }
            *theirs += 1;
        }
        Ok(Self { edge, caller })
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let mut streams = self.edge.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = &self.caller
            && let Some(theirs) = streams.get_mut(caller)
        {
            *theirs -= 1;
            if *theirs == 0 {
                streams.remove(caller);
            }
        }
    }
}

async fn run(edge: &Edge, request: Request, next: Route) -> Response {
    let room = request.extensions().get::<Room>().cloned();
    let limit = edge.server.write_timeout.duration();
    let response = tokio::time::timeout(limit, next.oneshot(request)).await;
    drop(room);
    match response {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Problem::timed_out(limit).into_response(),
    }
}

fn take_room(semaphore: &Arc<Semaphore>) -> Result<Room, Problem> {
    let permit = Arc::clone(semaphore).try_acquire_owned().map_err(|_| {
        metrics::counter!("okt_http_shed_total").increment(1);
        Problem::new(Code::Overloaded, "the service is at its limit of concurrent requests")
    })?;
    Ok(Room { _permit: Arc::new(permit) })
}

/// What one subscriber has: an IPv4 address, or an IPv6 network of which every address is theirs.
fn subscriber(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
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
    use super::*;

    #[test]
    fn a_subscriber_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ] {
            assert_eq!(subscriber(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }
}
