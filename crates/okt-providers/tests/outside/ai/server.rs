//! A server whose answers are a script, and which keeps its connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::server::any_port;

/// What becomes of a request.
pub enum Act {
    Say(Vec<u8>),
    /// After so long.
    SayAfter(Duration, Vec<u8>),
    /// And then the connection ends.
    Break(Vec<u8>),
    Hang,
}

pub struct Scripted {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

pub struct Asked {
    pub head: String,
    pub body: Value,
}

type Script = dyn Fn(usize, &Value) -> Act + Send + Sync;

struct Shared {
    script: Box<Script>,
    asked: Mutex<Vec<Asked>>,
    accepted: AtomicUsize,
    out: AtomicUsize,
    most_out: AtomicUsize,
}

impl Scripted {
    /// `script` gets the number of the request, from 0, and its body.
    pub async fn start(script: impl Fn(usize, &Value) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(any_port([127, 0, 0, 1])).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            asked: Mutex::default(),
            accepted: AtomicUsize::default(),
            out: AtomicUsize::default(),
            most_out: AtomicUsize::default(),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                serving.accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, Arc::clone(&serving)));
            }
        });
        Self { address, shared }
    }

    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap())
    }

    pub fn requests(&self) -> usize {
        self.shared.asked.lock().unwrap().len()
    }

    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    pub fn most_out(&self) -> usize {
        self.shared.most_out.load(Ordering::SeqCst)
    }
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    while let Some(asked) = read(&mut socket).await {
        let out = shared.out.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_out.fetch_max(out, Ordering::SeqCst);
        let act = {
            let mut all = shared.asked.lock().unwrap();
            let act = (shared.script)(all.len(), &asked.body);
            all.push(asked);
            act
        };
        let (answer, goes_on) = match act {
            Act::Say(answer) => (answer, true),
            Act::SayAfter(wait, answer) => {
                tokio::time::sleep(wait).await;
                (answer, true)
            }
            Act::Break(answer) => (answer, false),
            Act::Hang => {
                let _ = socket.read_u8().await;
                (Vec::new(), false)
            }
        };
        // Before the answer: whoever has it may ask the next already.
        shared.out.fetch_sub(1, Ordering::SeqCst);
        if socket.write_all(&answer).await.is_err() || !goes_on {
            return;
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().unwrap()];
    socket.read_exact(&mut body).await.ok()?;
    Some(Asked { head, body: serde_json::from_slice(&body).unwrap() })
}

/// An answer with a status, further lines of the head, and a body.
pub fn answer(status: u16, head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{head}content-length: {length}\r\n\r\n{body}").into()
}
