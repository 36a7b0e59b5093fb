//! The accept loop and the graceful end of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::address::ServerAddress;
use crate::edge::Edge;
use crate::routes::Served;
use crate::stall::{Streams, Watched};

/// What the kernel keeps of what is written to a connection, and how much of it a stream of HTTP/2 may have. A larger one
/// hides for longer whether the peer reads: a third of it has to be free before more is taken.
const SEND_BUFFER: usize = 256 * 1024;
const STREAM_BUFFER: usize = 64 * 1024;

/// Serves until `stop` is cancelled, then drains: readiness refuses at once, requests are still taken for
/// `server.drain_delay` so that balancers notice, then the listener closes, streams of events end and what runs may
/// finish within `server.drain_timeout`. What has not ends with the runtime.
pub async fn serve(listener: TcpListener, service: Served, edge: Arc<Edge>, stop: CancellationToken) {
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(edge.server.max_connections));
    let http = builder(&edge.server);
    // Those that are accepted take it over.
    if let Err(error) = SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER) {
        tracing::warn!(%error, "can't set the size of a send buffer");
    }
    let drained = async {
        stop.cancelled().await;
        edge.start_draining();
        tracing::info!("draining");
        tokio::time::sleep(edge.server.drain_delay.duration()).await;
    };
    tokio::pin!(drained);

    loop {
        // At the cap nobody is accepted; the kernel's backlog holds newcomers, and memory stays flat.
        let accepted = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (accept(&listener).await, permit)
        };
        let ((stream, peer), permit) = tokio::select! {
            () = &mut drained => break,
            accepted = accepted => accepted,
        };
        let service = service.0.clone();
        let spoke = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&spoke);
        let server = stream.local_addr().ok().map(ServerAddress);
        let answer = service_fn(move |request: hyper::Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            if let Some(server) = server {
                request.extensions_mut().insert(server);
            }
            service.clone().oneshot(request)
        });
        let stream = TokioIo::new(Watched::new(stream, edge.server.write_stall_timeout.duration()));
        let connection = graceful.watch(http.serve_connection(stream, answer).into_owned());
        let silence = edge.server.header_timeout.duration();
        tokio::spawn(async move {
            let _permit = permit;
            // The library's own limit begins with the first line; until then a connection that says nothing would
            // hold its place for ever.
            let silent = async {
                tokio::time::sleep(silence).await;
                if spoke.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "connection ended early");
                    }
                }
                () = silent => tracing::debug!("connection without a request was closed"),
            }
        });
    }

    drop(listener);
    // Not before: whoever is sent away now comes back to somebody else.
    edge.start_closing();
    let limit = edge.server.drain_timeout.duration();
    let finished = async {
        graceful.shutdown().await;
        edge.detached.close();
        edge.detached.wait().await;
    };
    if tokio::time::timeout(limit, finished).await.is_err() {
        tracing::warn!(
            limit_s = limit.as_secs(),
            "requests still running at the end of the drain were cut off"
        );
    }
}

fn builder(server: &okt_config::Server) -> Builder<Streams> {
    let mut builder = Builder::new(Streams { limit: server.write_stall_timeout.duration() });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(server.header_timeout.duration())
        .max_buf_size(server.limits.header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_send_buf_size(STREAM_BUFFER)
        .max_header_list_size(u32::try_from(server.limits.header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(20));
    builder
}

/// Accepts one connection; an error such as "too many open files" passes, so it waits instead of giving up.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "can't turn off delayed sending");
                }
                return (stream, peer);
            }
            Err(error) if is_about_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn is_about_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
