//! Readers that stand still: whoever takes less than 1 KiB a second of what is there for them is let go.
//!
//! Over HTTP/1 that is seen at the socket. Over HTTP/2 a peer may read everything but one stream, so each stream has a watch
//! of its own, and ends alone.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// What a peer has to take in the time of a stall to be called alive.
fn least(limit: Duration) -> usize {
    usize::try_from(limit.as_millis() * 1024 / 1000).unwrap_or(usize::MAX).max(1)
}

/// How often in the time of a stall the kernel is asked whether it has room. It says so by itself only when a third of its
/// buffer is free, which takes a slow reader minutes.
const LOOKS: u32 = 4;

/// A connection whose peer has to take what is written to it.
pub(crate) struct Watched {
    stream: TcpStream,
    limit: Duration,
    /// Since it first could not write, until it has written enough.
    blocked: Option<Blocked>,
}

struct Blocked {
    since: Instant,
    look: Pin<Box<Sleep>>,
    taken: usize,
}

impl Watched {
    pub(crate) const fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, blocked: None }
    }

    /// What came of writing; `directly` writes whether or not the socket is known to have room.
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        mut wrote: Poll<io::Result<usize>>,
        directly: impl Fn(SockRef<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        if wrote.is_pending() {
            let (limit, now) = (self.limit, Instant::now());
            let blocked = self.blocked.get_or_insert_with(|| Blocked {
                since: now,
                look: Box::pin(tokio::time::sleep(limit / LOOKS)),
                taken: 0,
            });
            while blocked.look.as_mut().poll(cx).is_ready() {
                match directly(SockRef::from(&self.stream)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => {
                        wrote = Poll::Ready(result);
                        break;
                    }
                }
                if now >= blocked.since + limit {
                    metrics::counter!("okt_http_stalled_total").increment(1);
                    // What the kernel still has for them goes too.
                    let _ = self.stream.set_zero_linger();
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                blocked.look.as_mut().reset(now + limit / LOOKS);
            }
        }
        if let (Poll::Ready(Ok(bytes)), Some(blocked)) = (&wrote, &mut self.blocked) {
            blocked.taken += bytes;
            if blocked.taken >= least(self.limit) {
                self.blocked = None;
            }
        }
        wrote
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let wrote = Pin::new(&mut me.stream).poll_write(cx, bytes);
        me.wrote(cx, wrote, |socket| socket.send(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let wrote = Pin::new(&mut me.stream).poll_write_vectored(cx, slices);
        me.wrote(cx, wrote, |socket| socket.send_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when everything has been written, so nobody is blocked any more.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let flushed = ready!(Pin::new(&mut me.stream).poll_flush(cx));
        me.blocked = None;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

tokio::task_local! {
    static CURRENT: Arc<Watch>;
}

/// What one stream of HTTP/2 has been given and has not taken.
pub(crate) struct Watch {
    limit: Duration,
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    pieces: usize,
    /// Since when, while there are any; begins anew when enough of them was taken.
    since: Option<Instant>,
    taken: usize,
    /// Who waits for the last of them to be taken.
    waker: Option<Waker>,
}

impl Watch {
    fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self { limit, given: Mutex::default() })
    }

    /// That of the stream that is being answered; over HTTP/1 there is none.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    pub(crate) fn given(&self) {
        let mut state = self.state();
        if state.pieces == 0 {
            (state.since, state.taken) = (Some(Instant::now()), 0);
        }
        state.pieces += 1;
    }

    pub(crate) fn taken(&self, bytes: usize) {
        let mut state = self.state();
        state.pieces -= 1;
        state.taken += bytes;
        if state.taken >= least(self.limit) {
            (state.since, state.taken) = (Some(Instant::now()), 0);
        }
        if state.pieces == 0 {
            state.since = None;
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.state().pieces == 0
    }

    pub(crate) fn drained(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.pieces == 0 {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends when too little was taken for this long.
    async fn stalled(&self) {
        loop {
            let (since, now) = (self.state().since, Instant::now());
            let until = since.unwrap_or(now) + self.limit;
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the streams of HTTP/2, each for as long as its peer takes what it is given. A stream that is dropped is reset.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) limit: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let watch = Watch::new(self.limit);
        let stream = CURRENT.scope(Arc::clone(&watch), stream);
        tokio::spawn(async move {
            tokio::select! {
                _ = stream => {}
                () = watch.stalled() => metrics::counter!("okt_http_stalled_total").increment(1),
            }
        });
    }
}
