//! A receiver of webhooks on loopback that does what a test tells it to, and remembers what it was told.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::wait::eventually;

/// What it answers to everything that is posted to a path.
#[derive(Clone, Debug)]
pub enum Answering {
    /// A status, with these words.
    Status(u16, String),
    Redirect(String),
    /// A status of success, and a body without an end.
    Endless(u16),
    /// Nothing, for as long as the sender waits.
    Silent,
}

/// A message that was posted.
#[derive(Clone, Debug)]
pub struct Message {
    /// By their names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answering>>,
    messages: Mutex<HashMap<String, Vec<Message>>>,
}

impl Message {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }

    /// Whether it is signed with the secret, after the text of Standard Webhooks and with nobody's library.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = BASE64.decode(secret.strip_prefix("whsec_").expect("a secret of a webhook"));
        let key = key.expect("Base64");
        let mut signed =
            format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp")).into_bytes();
        signed.extend_from_slice(&self.body);
        let expected = format!("v1,{}", BASE64.encode(hmac_sha256(&key, &signed)));
        self.header("webhook-signature").split(' ').any(|one| one == expected)
    }
}

/// RFC 2104.
fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let serving = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, serving }
    }

    /// What the settings need for it to be told anything.
    pub fn allowed(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on; 204 until then.
    pub fn answer(&self, path: &str, answering: Answering) {
        self.shared.answers.lock().expect("no panic").insert(path.to_owned(), answering);
    }

    /// All that was posted to a path.
    pub fn messages(&self, path: &str) -> Vec<Message> {
        self.shared.messages.lock().expect("no panic").get(path).cloned().unwrap_or_default()
    }

    /// Waits until so much was posted to a path.
    pub async fn await_messages(&self, path: &str, count: usize) -> Vec<Message> {
        eventually(Duration::from_mins(2), "the receiver is told", async || {
            let messages = self.messages(path);
            if messages.len() >= count { Ok(messages) } else { Err(format!("{messages:?}")) }
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, Arc::clone(&shared)));
    }
}

async fn answer(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) if head.len() < 65_536 => head.push(byte),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<String, String> =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let message = Message { headers, body };
    shared.messages.lock().expect("no panic").entry(path.clone()).or_default().push(message);
    let answering = shared.answers.lock().expect("no panic").get(&path).cloned();
    let mut text = String::new();
    match answering.unwrap_or(Answering::Status(204, String::new())) {
        Answering::Status(status, words) => {
            let _ = write!(text, "HTTP/1.1 {status} X\r\nconnection: close\r\n");
            let _ = write!(text, "content-length: {}\r\n\r\n{words}", words.len());
        }
        Answering::Redirect(to) => {
            let _ = write!(text, "HTTP/1.1 302 X\r\nconnection: close\r\nlocation: {to}\r\n");
            text.push_str("content-length: 0\r\n\r\n");
        }
        Answering::Endless(status) => {
            let _ = write!(text, "HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n");
            let mut sent = stream.write_all(text.as_bytes()).await;
            let piece = vec![b'x'; 65_536];
            while sent.is_ok() {
                sent = stream.write_all(&piece).await;
            }
            return;
        }
        Answering::Silent => {
            // Until the other side has had enough.
            let _ = stream.read_u8().await;
            return;
        }
    }
    let _ = stream.write_all(text.as_bytes()).await;
}
