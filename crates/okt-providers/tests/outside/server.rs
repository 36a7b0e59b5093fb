//! A little HTTP server that remembers who came.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use okt_providers::{FetchError, GuardedClient, Request, Rule, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Loopback addresses that tests put on the list of allowed ones; 127.0.0.1 never is.
pub const ALLOWED: [u8; 4] = [127, 77, 0, 1];
pub const ALSO_ALLOWED: [u8; 4] = [127, 77, 0, 2];

pub struct Server {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    peers: watch::Receiver<Vec<SocketAddr>>,
}

impl Server {
    /// Answers each request with what `answer` makes of its head, and closes.
    pub async fn start(
        at: impl Into<SocketAddr>,
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::serve(at, move |head, mut socket| {
            let answer = Arc::clone(&answer);
            async move {
                let _ = socket.write_all(&answer(&head)).await;
            }
        })
        .await
    }

    /// Hands each request to `serve`, which writes what it likes.
    pub async fn serve<F, S>(at: impl Into<SocketAddr>, serve: F) -> Self
    where
        F: Fn(String, TcpStream) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(at.into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (came, peers) = watch::channel(Vec::new());
        let (seen, serve) = (Arc::clone(&heads), Arc::new(serve));
        tokio::spawn(async move {
            loop {
                let (mut socket, peer) = listener.accept().await.unwrap();
                came.send_modify(|peers| peers.push(peer));
                let (seen, serve) = (Arc::clone(&seen), Arc::clone(&serve));
                tokio::spawn(async move {
                    let Some(head) = read_head(&mut socket).await else { return };
                    seen.lock().unwrap().push(head.clone());
                    serve(head, socket).await;
                });
            }
        });
        Self { address, heads, peers }
    }

    /// Connections so far. One of ours goes last: when it is seen, everyone before it was.
    #[expect(clippy::disallowed_methods, reason = "a test's own connection to its own listener")]
    pub async fn connections(&self) -> usize {
        let last = TcpStream::connect(self.address).await.unwrap();
        let own = last.local_addr().unwrap();
        let mut peers = self.peers.clone();
        let seen =
            tokio::time::timeout(Duration::from_secs(10), peers.wait_for(|peers| peers.contains(&own)));
        let seen = seen.await.unwrap().unwrap();
        seen.iter().position(|peer| *peer == own).unwrap()
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn read_head(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// A port that is free on both; someone else's connection may hold it on one.
pub fn common_port(first: [u8; 4], second: [u8; 4]) -> u16 {
    loop {
        let held = std::net::TcpListener::bind(any_port(first)).unwrap();
        let port = held.local_addr().unwrap().port();
        if std::net::TcpListener::bind((IpAddr::from(second), port)).is_ok() {
            return port;
        }
    }
}

pub fn any_port(ip: [u8; 4]) -> SocketAddr {
    SocketAddr::new(IpAddr::from(ip), 0)
}

pub fn ok(body: &str) -> Vec<u8> {
    packed("identity", body.as_bytes())
}

pub fn packed(encoding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub fn moved(status: u16, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into()
}

/// A client that looks no name up anywhere.
pub fn client(allowed: &[SocketAddr]) -> GuardedClient {
    GuardedClient::with_look_up(allowed, |_| async { Err(std::io::ErrorKind::NotFound.into()) }).unwrap()
}

/// A test that fails should not take a minute.
pub const QUICK: Timeouts = Timeouts {
    connect: Duration::from_secs(2),
    idle: Duration::from_secs(5),
    total: Duration::from_secs(10),
};

pub fn get(url: &str) -> Request {
    Request::get(url).timeouts(QUICK)
}

pub async fn text(client: &GuardedClient, request: Request) -> Result<String, FetchError> {
    Ok(String::from_utf8(client.send(request).await?.bytes().await?).unwrap())
}

pub async fn refusal(client: &GuardedClient, request: Request) -> Rule {
    match client.send(request).await.map(|response| response.status) {
        Err(FetchError::Refused { rule, .. }) => rule,
        other => panic!("not refused: {other:?}"),
    }
}
