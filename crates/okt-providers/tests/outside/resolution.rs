//! The chain: for every way in which a site can misbehave, who gets the page in the end, and what is told about it.

mod browser;
mod fetch;
mod manners;
mod open_access;
mod solver;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use okt_config::Config;
use okt_model::{Error, Result};
use okt_providers::GuardedClient;
use okt_providers::resolution::{
    Attempt, End, Page, PageQuality, Provider, Resolution, Resolver, Taker, Validators, Wanted,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{ALLOWED, Server, any_port, ok};

/// Longer than what the taker of these tests calls too little.
const ARTICLE: &str = "<title>Bees</title><p>Bees dance to tell each other where the flowers are.</p>";
const CHALLENGE: &str =
    "<title>Just a moment...</title><script>window._cf_chl_opt={}</script><p>Checking your browser</p>";

/// Delays so short that nobody waits for them.
fn config() -> Config {
    let mut config = Config::default();
    let resolution = &mut config.providers.resolution;
    resolution.per_host_delay = Duration::ZERO.into();
    resolution.fetch.timeout = Duration::from_secs(5).into();
    for retry in [&mut resolution.fetch.retry, &mut resolution.challenge_solver.retry] {
        retry.base_delay = Duration::from_millis(2).into();
        retry.max_delay = Duration::from_secs(2).into();
    }
    config
}

fn with_solver(solver: &Server) -> Config {
    let mut config = config();
    config.providers.resolution.challenge_solver.url = Some(solver.url("/").parse().unwrap());
    config
}

fn with_open_access(mut config: Config, service: &Server) -> Config {
    config.providers.resolution.open_access.base_url = service.url("/v2").parse().unwrap();
    config.providers.resolution.open_access.email = "okt@example.org".into();
    config
}

fn resolver(config: &Config, allowed: &[SocketAddr]) -> Resolver {
    let client = GuardedClient::with_look_up(allowed, |host| async move {
        match host.as_str() {
            "inside.test" => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
            "named.test" => Ok(vec![IpAddr::from(ALLOWED)]),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    });
    Resolver::new(config, client.unwrap()).unwrap()
}

fn wanted(url: &str) -> Wanted {
    Wanted {
        url: url.parse().unwrap(),
        doi: None,
        providers: Provider::ALL.into(),
        skipped: [].into(),
        validators: Validators::default(),
    }
}

fn with_doi(url: &str) -> Wanted {
    Wanted { doi: Some("10.1000/bees".into()), ..wanted(url) }
}

/// Reads what it gets; 40 bytes are enough.
#[derive(Default)]
struct Reader {
    pages: Vec<String>,
    last: Option<(Provider, String, Option<String>, Validators)>,
}

impl Taker for Reader {
    async fn take(&mut self, page: &mut Page) -> Result<PageQuality> {
        let mut text = Vec::new();
        while let Some(piece) = page.chunk().await? {
            text.extend_from_slice(&piece);
        }
        let enough = text.len() >= 40;
        self.pages.push(String::from_utf8(text).unwrap());
        let (url, kind) = (page.final_url.to_string(), page.content_type.clone());
        self.last = Some((page.provider, url, kind, page.validators.clone()));
        Ok(if enough { PageQuality::Enough } else { PageQuality::TooLittle })
    }
}

/// An attempt in a line, without its time.
fn told(attempt: &Attempt) -> String {
    let Value::String(outcome) = json!(attempt.outcome) else { panic!() };
    let path = attempt.url.splitn(4, '/').nth(3).unwrap_or_default();
    let status = attempt.status.map_or("-".into(), |status| status.to_string());
    format!("{} /{path} {status} {outcome}", attempt.provider.as_str())
}

fn story(resolution: &Resolution) -> Vec<String> {
    resolution.attempts.iter().map(told).collect()
}

fn code(resolution: &Resolution) -> &str {
    match &resolution.end {
        End::Failed { code, .. } => code,
        end => panic!("{end:?}"),
    }
}

/// A site that has no robots.txt and answers the nth request for a page with the nth of `answers`, and from then on with the
/// last.
async fn site(answers: Vec<Vec<u8>>) -> Server {
    let asked = std::sync::Mutex::new(0);
    Server::start(any_port(ALLOWED), move |head| {
        if head.starts_with("GET /robots.txt ") {
            return status(404, "");
        }
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        answers[(*asked - 1).min(answers.len() - 1)].clone()
    })
    .await
}

/// Pages asked for, robots.txt left out.
fn pages(server: &Server) -> usize {
    server.heads().iter().filter(|head| !head.starts_with("GET /robots.txt ")).count()
}

fn status(code: u16, lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} Whatever\r\n{lines}content-length: 0\r\nconnection: close\r\n\r\n").into()
}

fn page(code: u16, lines: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {code} Whatever\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into()
}

async fn posted(head: &str, socket: &mut TcpStream) -> Value {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    socket.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A solver that answers with what `solve` makes of the order.
async fn solver(solve: impl Fn(Value) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let solve = std::sync::Arc::new(solve);
    Server::serve(any_port([127, 0, 0, 1]), move |head, mut socket| {
        let solve = std::sync::Arc::clone(&solve);
        async move {
            assert!(head.starts_with("POST /v1 "), "{head}");
            let order = posted(&head, &mut socket).await;
            let _ = socket.write_all(&solve(order)).await;
        }
    })
    .await
}

/// What a solver says when it got through.
fn solution(url: &Value, status: u16, html: &str) -> Vec<u8> {
    ok(&json!({
        "status": "ok", "message": "Challenge solved!", "version": "3",
        "solution": { "url": url, "status": status, "headers": {}, "response": html, "cookies": [], "userAgent": "x" },
    })
    .to_string())
}

async fn willing_solver() -> Server {
    solver(|order| solution(&order["url"], 200, ARTICLE)).await
}

/// A service that knows these copies of every work.
async fn open_access_of(copies: &[String]) -> Server {
    let locations: Vec<Value> = copies.iter().map(|url| json!({ "url_for_pdf": url })).collect();
    let answer = json!({ "best_oa_location": locations.first(), "oa_locations": locations }).to_string();
    Server::start(any_port([127, 0, 0, 1]), move |_| ok(&answer)).await
}

struct Broken;

impl Taker for Broken {
    async fn take(&mut self, _: &mut Page) -> Result<PageQuality> {
        Err(Error::Operator("the disk is full".into()))
    }
}
