//! Answers on their way out: the bytes that wait in memory for whoever asked for them are counted, in all and for each.
//!
//! An answer is handed to the connection in small pieces, and each piece keeps the count until it has been written. So
//! whoever reads slowly holds no more than their share, and what they hold is known.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use http_body::{Body as _, Frame, SizeHint};

use crate::problem::{Code, Problem};
use crate::shares::{Refused, Share, Shares};
use crate::stall::Watch;
use crate::streaming::is_event_stream;

/// Answers up to this size are not counted: the connection's own buffers are larger.
const SMALL: usize = 16 * 1024;
/// What is handed to a connection at once.
const PIECE: usize = 16 * 1024;
/// What an answer holds whose pieces are made while it is read: one of them, and what a stream of HTTP/2 may have.
const STREAMED: usize = 192 * 1024;
/// Of what there is, what one caller may hold; and of the whole, what all callers without a credential hold together.
const PART: usize = 8;
/// How many times the time of a stall a counted answer may take.
const PATIENCE: u32 = 20;

/// The bytes of all answers of this process that are on their way.
pub(crate) struct Sending {
    people: Arc<Shares>,
    /// Apart, because anybody may have many addresses.
    strangers: Arc<Shares>,
    patience: Duration,
}

/// Bytes that are counted for one answer, until dropped.
pub struct Reserved(Share);

/// What the answer to this request is counted against. A handler that is about to load much asks first.
#[derive(Clone)]
pub struct Budget {
    shares: Arc<Shares>,
    payer: Arc<str>,
    patience: Duration,
}

impl Sending {
    /// `stall` is how long a reader may stand still.
    pub(crate) fn new(most: usize, stall: Duration) -> Self {
        let strangers = most / PART;
        let shares = |most: usize| Shares::new(most, most / PART);
        Self { people: shares(most - strangers), strangers: shares(strangers), patience: stall * PATIENCE }
    }

    pub(crate) fn to_person(&self, person: Arc<str>) -> Budget {
        Budget { shares: Arc::clone(&self.people), payer: person, patience: self.patience }
    }

    pub(crate) fn to_stranger(&self, address: IpAddr) -> Budget {
        let payer = address.to_string().into();
        Budget { shares: Arc::clone(&self.strangers), payer, patience: self.patience }
    }
}

impl Budget {
    /// Counts these bytes, or refuses. Who has nothing on its way may have one answer of any size.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Problem> {
        match self.shares.take(&self.payer, bytes) {
            Ok(share) => Ok(Reserved::new(share)),
            Err(Refused::HasEnough(theirs)) => Err(has_enough(theirs)),
            Err(Refused::NothingLeft) => {
                let detail = "the service is at its limit of answers on their way";
                Err(Problem::new(Code::Overloaded, detail).retry_after(5))
            }
        }
    }

    /// Refuses whoever has more on its way than its share. What something was done for is sent whether or not there is
    /// room for it, so this is asked before.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.shares.excess(&self.payer).map_or(Ok(()), |theirs| Err(has_enough(theirs)))
    }

    /// Who it is counted for.
    pub(crate) const fn payer(&self) -> &Arc<str> {
        &self.payer
    }
}

fn has_enough(theirs: usize) -> Problem {
    let detail = format!("{theirs} bytes of earlier answers are still on their way to you; read them first");
    Problem::new(Code::RateLimited, detail).retry_after(5)
}

impl Reserved {
    fn new(share: Share) -> Self {
        gauge().increment(figure(share.amount()));
        Self(share)
    }

    /// The answer that was reserved for. What was kept for making it is given back.
    pub fn answer(mut self, response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        let bytes = self.0.amount();
        let spare = bytes.saturating_sub(length(&response).unwrap_or(bytes));
        gauge().decrement(figure(spare));
        self.0.give_back(spare);
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        gauge().decrement(figure(self.0.amount()));
    }
}

fn gauge() -> metrics::Gauge {
    metrics::gauge!("okt_http_sending_bytes")
}

#[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
const fn figure(bytes: usize) -> f64 {
    bytes as f64
}

impl<S: Send + Sync> FromRequestParts<S> for Budget {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let budget = parts.extensions.get::<Self>().cloned();
        budget.ok_or_else(|| okt_model::Error::internal("the request has no budget for its answer").into())
    }
}

/// Sees to it that an answer is counted until it is sent. A large one for which there is no room is not sent, unless
/// something was done for it.
pub(crate) fn count(budget: &Budget, method: &Method, mut response: Response) -> Response {
    let length = length(&response);
    let bytes = length.unwrap_or_else(|| streamed(response.headers()));
    let reserved = match response.extensions_mut().remove::<Arc<Reserved>>() {
        Some(reserved) => reserved,
        None if bytes <= SMALL => return response,
        None if method.is_safe() => match budget.reserve(bytes) {
            Ok(reserved) => Arc::new(reserved),
            Err(refused) => return refused.into_response(),
        },
        None => Arc::new(Reserved::new(budget.shares.force(&budget.payer, bytes))),
    };
    // One that is made while it is read holds the same however long that takes.
    let until = length.map(|_| Instant::now() + budget.patience);
    response.extensions_mut().insert(Counted { reserved, until });
    response
}

/// Hands an answer out in pieces, to be watched and counted until they are sent. For every answer, also for those that
/// nobody counts: over HTTP/2 a peer can leave the smallest of them lying.
pub(crate) fn hand_out(mut response: Response) -> Response {
    let (watch, counted) = (Watch::current(), response.extensions_mut().remove::<Counted>());
    if watch.is_none() && counted.is_none() {
        return response;
    }
    let (reserved, until) = counted.map_or((None, None), |it| (Some(it.reserved), it.until));
    let kept = Kept { _reserved: reserved, watch };
    response.map(|body| Body::new(Outgoing { body, rest: Bytes::new(), until, kept }))
}

fn length(response: &Response) -> Option<usize> {
    response.body().size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

/// What an answer holds that is made while it is read. Events come in small pieces, and their streams have places of their
/// own.
fn streamed(headers: &HeaderMap) -> usize {
    if is_event_stream(headers) {
        return 0;
    }
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    announced.unwrap_or(STREAMED).min(STREAMED)
}

/// How an answer is counted, on its way from [`count`] to [`hand_out`].
#[derive(Clone)]
struct Counted {
    reserved: Arc<Reserved>,
    /// When it must have been read; none for one that is made while it is read.
    until: Option<Instant>,
}

/// A body that is handed out in pieces.
struct Outgoing {
    body: Body,
    rest: Bytes,
    until: Option<Instant>,
    kept: Kept,
}

/// What every piece of an answer keeps until it is written.
#[derive(Clone)]
struct Kept {
    _reserved: Option<Arc<Reserved>>,
    watch: Option<Arc<Watch>>,
}

struct Piece {
    bytes: Bytes,
    kept: Kept,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(watch) = &self.kept.watch {
            watch.taken(self.bytes.len());
        }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let me = self.get_mut();
        // Who reads is asked for more within the time of a stall, so this is seen soon enough.
        if me.until.is_some_and(|until| Instant::now() >= until) {
            metrics::counter!("okt_http_stalled_total").increment(1);
            return Poll::Ready(Some(Err(axum::Error::new("the answer was not read in time"))));
        }
        while me.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut me.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                // Not over before the last piece is out: who ends a stream earlier has nothing left to watch.
                None => {
                    return me
                        .kept
                        .watch
                        .as_ref()
                        .map_or(Poll::Ready(()), |watch| watch.drained(cx))
                        .map(|()| None);
                }
            };
            match frame.into_data() {
                Ok(data) => me.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let bytes = me.rest.split_to(me.rest.len().min(PIECE));
        if let Some(watch) = &me.kept.watch {
            watch.given();
        }
        let piece = Bytes::from_owner(Piece { bytes, kept: me.kept.clone() });
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let drained = self.kept.watch.as_ref().is_none_or(|watch| watch.is_drained());
        self.rest.is_empty() && self.body.is_end_stream() && drained
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.len() as u64, self.body.size_hint());
        match hint.exact() {
            Some(length) => hint.set_exact(length + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const STALL: Duration = Duration::from_secs(15);

    fn held(budget: &Budget) -> Option<usize> {
        // Another one would be too much, so what they have is told.
        match budget.shares.take(&budget.payer, usize::MAX) {
            Err(Refused::HasEnough(theirs)) => Some(theirs),
            _ => None,
        }
    }

    #[tokio::test]
    async fn what_was_handed_out_counts_until_the_last_piece_is_gone() {
        let ada = Sending::new(8_000_000, STALL).to_person("ada".into());
        let whole: Vec<u8> = (0..100_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let response = hand_out(count(&ada, &Method::GET, whole.clone().into_response()));
        assert_eq!(response.body().size_hint().exact(), Some(100_000));
        let mut body = response.into_body();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        drop(body);
        assert_eq!(pieces.len(), 100_000_usize.div_ceil(PIECE));
        assert_eq!(pieces.concat(), whole);
        pieces.drain(1..);
        assert_eq!(held(&ada), Some(100_000), "the first piece keeps all of it in memory");
        pieces.clear();
        assert_eq!(held(&ada), None);
    }

    #[test]
    fn what_was_done_is_told_also_without_room() {
        let ada = Sending::new(80_000, STALL).to_person("ada".into());
        let _held = ada.reserve(20_000).unwrap();
        let large = || vec![0_u8; 20_000].into_response();
        assert_eq!(count(&ada, &Method::GET, large()).status(), 429);
        assert_eq!(count(&ada, &Method::POST, large()).status(), 200);
        assert_eq!(count(&ada, &Method::GET, vec![0_u8; SMALL].into_response()).status(), 200);
        assert!(ada.reserve(9).is_err());
    }

    #[test]
    fn strangers_take_nothing_from_people() {
        let sending = Sending::new(800, STALL);
        let mut held = Vec::new();
        for n in 0..20 {
            let stranger = sending.to_stranger([192, 0, 2, n].into());
            while let Ok(reserved) = stranger.reserve(5) {
                held.push(reserved);
            }
        }
        assert_eq!(held.len(), 20, "100 bytes are for all of them");
        assert!(sending.to_person("ada".into()).reserve(700).is_ok());
    }

    #[test]
    fn what_is_made_while_it_is_read_holds_one_piece_of_it() {
        let headers = |lines: &[(header::HeaderName, &str)]| {
            lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        assert_eq!(streamed(&headers(&[])), STREAMED);
        assert_eq!(streamed(&headers(&[(header::CONTENT_LENGTH, "50000000")])), STREAMED);
        assert_eq!(streamed(&headers(&[(header::CONTENT_LENGTH, "1000")])), 1000);
        assert_eq!(streamed(&headers(&[(header::CONTENT_TYPE, "text/event-stream")])), 0);
    }
}
