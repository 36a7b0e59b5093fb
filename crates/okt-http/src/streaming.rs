//! Answers that take longer than `server.write_timeout`: downloads, and streams of server-sent events. Neither takes one
//! of the `server.max_in_flight` slots; both end soon after the caller has lost the right to read them.
//!
//! A handler returns an ordinary body, and the table puts what is here around it. The body is polled by whoever reads
//! the answer: a stream has no task of its own, and nothing is read ahead of a slow client.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::edge::Edge;
use crate::problem::{Code, Problem};
use crate::recheck::{Recheck, Rights};
use crate::shares::{Refused, Share, Shares};

/// How streams of events behave.
#[derive(Clone, Copy, Debug)]
pub struct StreamRules {
    /// How often a silent one sends a comment, so that nothing in between closes it.
    pub alive: Duration,
    /// How long a check of the caller's rights is good for when there is something to send.
    pub fresh: Duration,
    /// How often they are checked while there is nothing to send.
    pub check: Duration,
    /// How long a stream may go on while they can't be checked. Nothing is sent meanwhile.
    pub unchecked: Duration,
    /// After this it ends, and the client connects again.
    pub lifetime: Duration,
    /// How many streams one person, with all of their credentials, may have open in this process.
    pub per_caller: usize,
    /// How many all callers together may have open. A quarter is kept for callers who have none.
    pub per_process: usize,
}

impl Default for StreamRules {
    fn default() -> Self {
        Self {
            alive: Duration::from_secs(15),
            fresh: Duration::from_secs(1),
            check: Duration::from_secs(5),
            unchecked: Duration::from_mins(1),
            lifetime: Duration::from_mins(15),
            per_caller: 50,
            per_process: 10_000,
        }
    }
}

/// The streams of events of this process.
pub(crate) struct Streams {
    rules: StreamRules,
    slots: Arc<Shares>,
}

/// One of the streams that a caller may have open, until dropped.
pub(crate) struct StreamSlot {
    _share: Share,
}

impl Streams {
    pub(crate) fn new(rules: StreamRules) -> Self {
        Self { rules, slots: Shares::new(rules.per_process, rules.per_caller) }
    }

    pub(crate) fn take(&self, caller: &Arc<str>) -> Result<StreamSlot, Problem> {
        let share = self.slots.take(caller, 1).map_err(|refused| match refused {
            Refused::HasEnough(open) => {
                let detail = format!("you have {open} streams open, which is the limit; close one first");
                Problem::new(Code::RateLimited, detail).retry_after(30)
            }
            Refused::NothingLeft => Problem::new(Code::Overloaded, "the service is at its limit of streams"),
        })?;
        metrics::gauge!("okt_event_streams").increment(1);
        Ok(StreamSlot { _share: share })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        metrics::gauge!("okt_event_streams").decrement(1);
    }
}

/// An answer that breaks off when its caller loses the right to read it. One whose length is known is in memory, and
/// stays as it is.
pub(crate) fn download(edge: &Edge, response: Response, recheck: Recheck) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let rules = edge.streams().rules;
    response.map(|body| {
        let state = (body.into_data_stream(), Instant::now());
        Body::from_stream(stream::try_unfold(state, move |(mut pieces, mut checked_at)| {
            let recheck = recheck.clone();
            async move {
                while checked_at.elapsed() >= rules.check {
                    match recheck.rights().await {
                        Rights::Held => checked_at = Instant::now(),
                        Rights::Lost => return Err(axum::Error::new("the caller lost the right to read it")),
                        Rights::Unknown if checked_at.elapsed() >= rules.unchecked => {
                            return Err(axum::Error::new("the caller's rights can't be checked"));
                        }
                        Rights::Unknown => tokio::time::sleep(rules.check / 5).await,
                    }
                }
                let piece = pieces.try_next().await?;
                Ok(piece.map(|piece| (piece, (pieces, checked_at))))
            }
        }))
    })
}

/// An answer of events that takes one of the caller's slots until it ends: when its body does, when nothing came for
/// `idle`, when the caller loses the right to read it, after its lifetime, and when the process is stopped. Any other
/// answer of the same route is sent as a download, and gives the slot back at once.
pub(crate) fn events(
    edge: &Arc<Edge>,
    mut response: Response,
    recheck: Recheck,
    slot: StreamSlot,
    idle: Duration,
) -> Response {
    if !is_event_stream(response.headers()) {
        return download(edge, response, recheck);
    }
    // Some proxies would wait for more before they send on what they have.
    let name = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(name, HeaderValue::from_static("no"));
    response.map(|body| {
        let (now, rules) = (Instant::now(), edge.streams().rules);
        let events = Events {
            edge: Arc::clone(edge),
            body,
            recheck,
            rules,
            idle,
            alive_at: now + rules.alive,
            check_at: now + rules.check,
            idle_at: now + idle,
            ends_at: now + rules.lifetime,
            checked_at: now,
            unsent: None,
            at_boundary: true,
            _slot: slot,
        };
        Body::from_stream(stream::unfold(Box::new(events), |mut events| async move {
            let sent = events.next().await?;
            Some((sent, events))
        }))
    })
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.and_then(|kind| kind.split(';').next()).is_some_and(|kind| kind.trim() == "text/event-stream")
}

/// One stream of events.
struct Events {
    edge: Arc<Edge>,
    body: Body,
    recheck: Recheck,
    rules: StreamRules,
    idle: Duration,
    alive_at: Instant,
    check_at: Instant,
    idle_at: Instant,
    ends_at: Instant,
    /// When the caller was last known to have the right.
    checked_at: Instant,
    /// What is there to be sent once that is known.
    unsent: Option<Bytes>,
    /// Whether what was sent ends with a whole event: a comment inside of one would break it.
    at_boundary: bool,
    _slot: StreamSlot,
}

/// What happened while a stream waited.
enum Woken {
    Came(Bytes),
    Failed(axum::Error),
    Alive,
    Check,
    End,
}

impl Events {
    /// The next bytes to send; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            // Nothing is sent to a caller who may have lost the right to read it.
            if self.unsent.is_some() {
                let fresh = self.checked_at.elapsed() < self.rules.fresh;
                match if fresh { Rights::Held } else { self.check().await } {
                    Rights::Held => {
                        let bytes = self.unsent.take()?;
                        self.at_boundary = bytes.ends_with(b"\n\n");
                        self.alive_at = Instant::now() + self.rules.alive;
                        return Some(Ok(bytes));
                    }
                    Rights::Lost => return None,
                    Rights::Unknown => {}
                }
            }
            match self.wait().await {
                Woken::End => return None,
                Woken::Failed(error) => return Some(Err(error)),
                Woken::Came(bytes) => self.unsent = Some(bytes),
                Woken::Check => {
                    let lost = match self.check().await {
                        Rights::Held => false,
                        Rights::Lost => true,
                        Rights::Unknown => self.checked_at.elapsed() >= self.rules.unchecked,
                    };
                    if lost {
                        return None;
                    }
                }
                Woken::Alive => {
                    self.alive_at = Instant::now() + self.rules.alive;
                    if self.at_boundary {
                        return Some(Ok(Bytes::from_static(b": alive\n\n")));
                    }
                }
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        loop {
            // One timer for whatever is next: each takes memory in every stream that waits.
            let due = self.ends_at.min(self.idle_at).min(self.check_at).min(self.alive_at);
            let frame = tokio::select! {
                // What ends it comes first, however much there is to send.
                biased;
                () = self.edge.closing() => return Woken::End,
                () = tokio::time::sleep_until(due) => return match due {
                    _ if due == self.ends_at || due == self.idle_at => Woken::End,
                    _ if due == self.check_at => Woken::Check,
                    _ => Woken::Alive,
                },
                frame = self.body.frame(), if self.unsent.is_none() => frame,
            };
            match frame {
                None => return Woken::End,
                Some(Err(error)) => return Woken::Failed(error),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.into_data().ok().filter(|bytes| !bytes.is_empty()) {
                        self.idle_at = Instant::now() + self.idle;
                        return Woken::Came(bytes);
                    }
                }
            }
        }
    }

    /// Checks the rights, and says when to do so next.
    async fn check(&mut self) -> Rights {
        // What asks the database is boxed: a stream that waits has no use for the memory.
        let rights = Box::pin(self.recheck.rights()).await;
        let now = Instant::now();
        match rights {
            Rights::Held => {
                self.checked_at = now;
                self.check_at = now + self.rules.check;
            }
            Rights::Lost => {}
            Rights::Unknown => self.check_at = now + self.rules.check / 5,
        }
        rights
    }
}
