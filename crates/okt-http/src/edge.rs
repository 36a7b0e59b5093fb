//! The limits and keys of a process, shared by all of its routes. `admission.rs` applies them to each request.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use okt_config::{Config, Mode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::address::ClientAddress;
use crate::cursor::CursorKey;
use crate::observe::RequestId;
use crate::problem::{Code, Problem};
use crate::rate::{Allowance, Limit};
use crate::sending::Sending;
use crate::shares::Shares;
use crate::streaming::{StreamRules, Streams};

/// Who a request is counted against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Whoever it is done for, whatever they came with.
    pub person: Arc<str>,
    /// What they came with: `user:…` for a session, `key:…`, `grant:…`.
    pub credential: Arc<str>,
}

/// Left in the extensions of a request by the gate: what it came with has the form of a credential, whether or not it is a
/// valid one.
#[derive(Clone, Copy, Debug)]
pub struct WellFormed;

/// The limits and keys of this process, shared by all of its routes.
pub struct Edge {
    pub(crate) server: okt_config::Server,
    pub(crate) cursor_key: CursorKey,
    /// Told to clients whose links are https, so that they never fall back to plain http.
    pub(crate) strict_transport: bool,
    /// Work that outlives its connection; the drain waits for it.
    pub(crate) detached: TaskTracker,
    in_flight: Arc<Semaphore>,
    /// Apart from `in_flight`, so that bodies which drip in slowly take no slots from requests that have none.
    pub(crate) reading: Arc<Shares>,
    /// Few, because each of them takes tens of megabytes while it is read.
    pub(crate) long_bodies: Arc<Shares>,
    /// Apart from both: who sends a file may take minutes.
    pub(crate) uploads: Arc<Shares>,
    /// Apart from all of them: streams of events stay open for minutes.
    streams: OnceLock<Streams>,
    pub(crate) sending: Sending,
    by_address: Limit<IpAddr>,
    /// Apart from `by_address`: a page asks for dozens of static files at once, and they cost next to nothing.
    files_by_address: Limit<IpAddr>,
    by_credential: Limit<Arc<str>>,
    /// Beside the credentials' own, so that one person can't have many times as much by having many of them; and more than
    /// one of them may use up, so that a program gone wild does not lock its owner out.
    by_person: Limit<Arc<str>>,
    /// In development a whole test suite comes from 127.0.0.1; limits per address would only get in its way.
    loopback_is_unlimited: bool,
    draining: AtomicBool,
    closing: CancellationToken,
}

/// Bodies that are longer than `server.limits.json_bytes`, in all and of one person.
const LONG_BODIES: usize = 8;
const LONG_BODIES_OF_ONE: usize = 2;
/// Files that one person may send at once, with all of their credentials.
const FILES_OF_ONE: usize = 8;
/// How many static files an address may ask for, as a multiple of its anonymous requests.
const FILES_PER_REQUEST: u32 = 25;

/// One of the `server.max_in_flight` slots; given back when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct InFlight {
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
            in_flight: Arc::new(Semaphore::new(config.server.max_in_flight)),
            reading: Shares::new(config.server.max_in_flight, (config.server.max_in_flight / 8).max(8)),
            long_bodies: Shares::new(LONG_BODIES, LONG_BODIES_OF_ONE),
            uploads: Shares::new((config.server.max_in_flight / 4).max(8), FILES_OF_ONE),
            streams: OnceLock::new(),
            sending: Sending::new(
                config.server.limits.answer_bytes,
                config.server.write_stall_timeout.duration(),
            ),
            by_address: Limit::per_minute(config.rate_limits.anonymous_per_minute),
            files_by_address: Limit::per_minute(
                config.rate_limits.anonymous_per_minute.saturating_mul(FILES_PER_REQUEST),
            ),
            by_credential: Limit::per_minute(config.rate_limits.api_per_minute),
            by_person: Limit::per_minute(config.rate_limits.api_per_minute.saturating_mul(2)),
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

    /// Sets how streams of events behave. Has no effect once the first one was asked for.
    pub fn set_stream_rules(&self, rules: StreamRules) {
        let _ = self.streams.set(Streams::new(rules));
    }

    pub(crate) fn streams(&self) -> &Streams {
        self.streams.get_or_init(|| Streams::new(StreamRules::default()))
    }

    /// Keeps the rate limits' memory in proportion to the active callers.
    pub fn forget_idle(&self) {
        self.by_address.forget_idle();
        self.files_by_address.forget_idle();
        self.by_credential.forget_idle();
        self.by_person.forget_idle();
    }

    /// What work for this request needs to go on without its connection.
    pub fn detach(request: &Request) -> Detached {
        let extensions = request.extensions();
        let tracker = extensions.get::<Arc<Self>>().map(|edge| edge.detached.clone());
        Detached {
            in_flight: extensions.get().cloned(),
            id: extensions.get().cloned(),
            tracker: tracker.unwrap_or_default(),
        }
    }

    /// Takes one token of this address from `limit`, or refuses; for routes with a limit of their own.
    pub fn check_address(&self, limit: &Limit<IpAddr>, address: ClientAddress) -> Result<(), Problem> {
        if self.loopback_is_unlimited && address.0.is_loopback() {
            return Ok(());
        }
        limit.check(&address.subscriber())
    }

    pub(crate) fn take_by_address(&self, address: IpAddr) -> Result<Option<Allowance>, Allowance> {
        self.take_of(&self.by_address, address)
    }

    /// As [`Self::take_by_address`], for a static file.
    pub(crate) fn take_file_by_address(&self, address: IpAddr) -> Result<Option<Allowance>, Allowance> {
        self.take_of(&self.files_by_address, address)
    }

    fn take_of(&self, limit: &Limit<IpAddr>, address: IpAddr) -> Result<Option<Allowance>, Allowance> {
        if self.loopback_is_unlimited && address.is_loopback() {
            return Ok(None);
        }
        limit.take(&address)
    }

    pub(crate) fn take_in_flight(&self) -> Result<InFlight, Problem> {
        let permit = Arc::clone(&self.in_flight).try_acquire_owned().map_err(|_| {
            metrics::counter!("okt_http_shed_total").increment(1);
            Problem::new(Code::Overloaded, "the service is at its limit of concurrent requests")
        })?;
        Ok(InFlight { _permit: Arc::new(permit) })
    }

    pub(crate) fn take_by_principal(&self, principal: &Principal) -> Result<Option<Allowance>, Allowance> {
        let credential = self.by_credential.take(&principal.credential)?;
        let person = self.by_person.take(&principal.person)?;
        Ok(credential.zip(person).map(|(credential, person)| credential.tighter(person)))
    }
}

/// Lets work outlive its connection: it keeps the request's slot and id, and the drain waits for it.
pub struct Detached {
    in_flight: Option<InFlight>,
    id: Option<RequestId>,
    tracker: TaskTracker,
}

impl Detached {
    pub fn spawn<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let Self { in_flight, id, tracker } = self;
        let work = async move {
            let _in_flight = in_flight;
            match id {
                Some(id) => id.scope(work).await,
                None => work.await,
            }
        };
        tracker.spawn(work.in_current_span())
    }
}
