//! A small web on loopback whose pages do what a test tells them to.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What a page answers.
#[derive(Clone, Debug)]
pub struct Page {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// So many bytes of the body, and then nothing more.
    stops_after: Option<usize>,
    /// Before the answer begins.
    waits: Duration,
    /// How often the body is sent.
    times: usize,
}

impl Page {
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status: 200, headers, body: body.into(), stops_after: None, waits: Duration::ZERO, times: 1 }
    }

    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    /// An article with this title that is long enough to be one.
    pub fn article(title: &str) -> Self {
        let sentences = [
            "Honey bees find their way home by the light of the sky.",
            "They remember the shape of the horizon, and the smell of the fields that they have crossed.",
            "A forager that has found food tells the others by a dance on the comb.",
            "The angle of the dance to the vertical is the angle of the flight to the sun.",
            "Its length says how far the others have to fly, at about one second for a kilometre.",
        ];
        let paragraphs = format!("<p>{}</p>", sentences.join(" ")).repeat(4);
        Self::html(format!(
            "<!doctype html><html lang=en><head><title>{title}</title></head>\
             <body><nav><a href=/>Home</a></nav><main><article><h1>{title}</h1>{paragraphs}</article></main>\
             <footer>Imprint</footer></body></html>"
        ))
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes its time.
    #[must_use]
    pub const fn waits(mut self, time: Duration) -> Self {
        self.waits = time;
        self
    }

    /// Sends the body so often, one after the other, without saying how long all of it is.
    #[must_use]
    pub const fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Sends this much of the body and then hangs.
    #[must_use]
    pub const fn stops_after(mut self, bytes: usize) -> Self {
        self.stops_after = Some(bytes);
        self
    }
}

pub struct Web {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    pages: Mutex<HashMap<String, Page>>,
    asked: Mutex<Vec<String>>,
    /// Bodies that were sent, with their paths.
    sent: Mutex<Vec<(String, Vec<u8>)>>,
    /// What came before the last of them.
    head: Mutex<String>,
    news: Notify,
}

impl Web {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let serving = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, serving }
    }

    /// What the settings need for its pages to be fetched.
    pub fn allowed(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on the path answers with the page.
    pub fn page(&self, path: &str, page: Page) {
        self.shared.pages.lock().expect("no panic").insert(path.to_owned(), page);
    }

    /// What was asked for so far, without `/robots.txt`.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.shared.asked.lock().expect("no panic");
        asked.iter().filter(|path| *path != "/robots.txt").cloned().collect()
    }

    /// Bodies that were sent so far, with their paths.
    pub fn sent(&self) -> Vec<(String, Vec<u8>)> {
        self.shared.sent.lock().expect("no panic").clone()
    }

    /// A header that came with the last body, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<String> {
        let head = self.shared.head.lock().expect("no panic").clone();
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }

    /// Waits until a path has been asked for this often.
    pub async fn await_asked(&self, path: &str, times: usize) {
        loop {
            let news = self.shared.news.notified();
            if self.asked().iter().filter(|asked| *asked == path).count() >= times {
                return;
            }
            tokio::time::timeout(std::time::Duration::from_mins(1), news)
                .await
                .expect("somebody asks in time");
        }
    }
}

impl Drop for Web {
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
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    if let Some(length) = length.filter(|length: &usize| *length < 64 << 20) {
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        shared.sent.lock().expect("no panic").push((path.clone(), body));
        shared.head.lock().expect("no panic").clone_from(&head);
    }
    shared.asked.lock().expect("no panic").push(path.clone());
    shared.news.notify_waiters();
    let page = shared.pages.lock().expect("no panic").get(&path).cloned();
    let page = page.unwrap_or_else(|| Page::html("nothing here").status(404));
    let mut text = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", page.status);
    if page.times == 1 && !page.headers.iter().any(|(name, _)| name == "content-length") {
        let _ = write!(text, "content-length: {}\r\n", page.body.len());
    }
    for (name, value) in &page.headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text += "\r\n";
    tokio::time::sleep(page.waits).await;
    let sent = page.stops_after.unwrap_or(page.body.len()).min(page.body.len());
    if stream.write_all(text.as_bytes()).await.is_err() || stream.write_all(&page.body[..sent]).await.is_err()
    {
        return;
    }
    for _ in 1..page.times {
        if stream.write_all(&page.body).await.is_err() {
            return;
        }
    }
    if page.stops_after.is_some() {
        // Until the other side has had enough.
        let _ = stream.read_u8().await;
    }
}
