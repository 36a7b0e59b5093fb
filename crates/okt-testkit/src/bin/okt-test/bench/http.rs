//! What the whole stack costs beyond its SQL: an authenticated GET of one row over HTTP against the same statements
//! run bare, in CPU time of everything but the client. Built and run in release: `cargo xtask bench`.
//!
//! The arms take turns (bare, HTTP, HTTP, bare) so that whatever else the machine does falls on both; bare against
//! bare says how far the figures can be trusted.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use okt_model::{SessionId, UserId};
use okt_store::{sessions, users};
use okt_testkit::client::{Answer, client};
use okt_testkit::cluster::Cluster;
use okt_testkit::process::Process;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ROUNDS: usize = 7;
const REQUESTS: usize = 12_000;
const CONNECTIONS: usize = 8;
/// What has to be reached, and what we want.
const LIMIT: f64 = 1.5;
const GOAL: f64 = 1.25;
/// How far bare may be from bare before the figures say nothing.
const TRUST: f64 = 0.05;

pub async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bare", url, session, user] => bare(url, session.parse()?, user.parse()?).await,
        ["client", address, token] => requests(address, token).await,
        [] => compare().await,
        _ => bail!("call it without arguments"),
    }
}

/// Until the machine is quiet enough to tell; after three tries it is not going to be.
async fn compare() -> anyhow::Result<()> {
    for _ in 0..3 {
        let (ratio, same) = compared().await?;
        if (same - 1.0).abs() <= TRUST {
            ensure!(ratio <= LIMIT, "{ratio:.2} is more than {LIMIT}");
            return Ok(());
        }
        println!("INCONCLUSIVE: the machine is too busy to tell");
    }
    bail!("nothing was shown: bare was too far from bare three times")
}

/// HTTP against bare, and bare against bare.
async fn compared() -> anyhow::Result<(f64, f64)> {
    let cluster = Cluster::start();
    let okt: PathBuf = std::env::current_exe()?.with_file_name("okt");
    let process = Process::serve(
        okt,
        &[
            ("SVC__DATABASES__DEFAULT__URL", &cluster.url()),
            ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
            ("SVC__LOG__LEVEL", "info"),
        ],
    );
    let account = json!({"email": "ada@example.org", "password": "correct horse"});
    let register = client().post(format!("{}/api/v1/auth/register", process.url)).json(&account);
    let registered = Answer::of(register).await.json();
    let user = registered["user"]["id"].as_str().context("an id")?.to_owned();
    let token = registered["token"].as_str().context("a token")?.to_owned();
    let mut conn = PgConnection::connect(&cluster.url()).await?;
    let session: uuid::Uuid =
        sqlx::query_scalar("SELECT id FROM okt_system.sessions").fetch_one(&mut conn).await?;

    let arm_bare = || measured(&cluster, None, &["bare", &cluster.url(), &session.to_string(), &user]);
    let address = process.url.trim_start_matches("http://").to_owned();
    let arm_http = || measured(&cluster, Some(&process), &["client", &address, &token]);
    // Warm: prepared statements, caches, code.
    arm_bare()?;
    arm_http()?;

    let (mut same, mut ratios) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (a1, b1, b2, a2) = (arm_bare()?, arm_http()?, arm_http()?, arm_bare()?);
        same.push(a2.sum() / a1.sum());
        ratios.push((b1.sum() + b2.sum()) / (a1.sum() + a2.sum()));
        println!("round {round}: bare {a1} and {a2}, http {b1} and {b2} us of CPU a request");
    }
    let (same, ratio) = (median(&mut same), median(&mut ratios));
    println!(
        "GET of one row: {ratio:.2} times the CPU of its bare SQL (limit {LIMIT}, goal {GOAL}); lowest {:.2}, highest {:.2}; bare against bare {same:.2}",
        ratios[0],
        ratios[ratios.len() - 1],
    );
    Ok((ratio, same))
}

/// Runs an arm in a process of its own; the CPU time per request of PostgreSQL, and of the service or of the bare loop
/// where there is none.
fn measured(cluster: &Cluster, service: Option<&Process>, arguments: &[&str]) -> anyhow::Result<Cpu> {
    let before = (cluster.cpu_seconds(), service.map_or(0.0, Process::cpu_seconds));
    let child = Command::new(std::env::current_exe()?)
        .args(["bench", "http"])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "an arm failed");
    let own: f64 = String::from_utf8(output.stdout)?.trim().parse().context("an arm tells its CPU time")?;
    let after = (cluster.cpu_seconds(), service.map_or(own, Process::cpu_seconds));
    let each = 1e6 / f64::from(u32::try_from(REQUESTS)?);
    Ok(Cpu { postgres: (after.0 - before.0) * each, rest: (after.1 - before.1) * each })
}

/// Microseconds a request.
struct Cpu {
    postgres: f64,
    /// The service, or the bare loop.
    rest: f64,
}

impl Cpu {
    fn sum(&self) -> f64 {
        self.postgres + self.rest
    }
}

impl std::fmt::Display for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} + {:.1}", self.postgres, self.rest)
    }
}

/// The two statements of the request, without anything around them.
async fn bare(url: &str, session: SessionId, user: UserId) -> anyhow::Result<()> {
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let url = url.to_owned();
        loops.spawn(async move {
            let mut conn = PgConnection::connect(&url).await?;
            for _ in 0..REQUESTS / CONNECTIONS {
                sessions::find_live(&mut conn, session).await?.context("a session")?;
                users::find(&mut conn, user).await?.context("a user")?;
            }
            conn.close().await?;
            anyhow::Ok(())
        });
    }
    done(loops).await
}

/// The same over HTTP, by a client that does as little as it can.
#[expect(
    clippy::disallowed_methods,
    reason = "a guarded client would be measured with it, and refuses loopback"
)]
async fn requests(address: &str, token: &str) -> anyhow::Result<()> {
    let mut loops = tokio::task::JoinSet::new();
    let request =
        format!("GET /api/v1/users/me HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    for _ in 0..CONNECTIONS {
        let (address, request) = (address.to_owned(), request.clone());
        loops.spawn(async move {
            let mut stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let mut answer = vec![0; 8192];
            for _ in 0..REQUESTS / CONNECTIONS {
                stream.write_all(request.as_bytes()).await?;
                let mut have = 0;
                while !is_whole(&answer[..have]) {
                    let read = stream.read(&mut answer[have..]).await?;
                    ensure!(read > 0, "the connection ended");
                    have += read;
                }
                ensure!(answer.starts_with(b"HTTP/1.1 200"), "not a success");
            }
            anyhow::Ok(())
        });
    }
    done(loops).await
}

/// Every answer here is one JSON object after its headers.
fn is_whole(answer: &[u8]) -> bool {
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
    head.is_some_and(|at| answer.len() > at + 4 && answer.ends_with(b"}"))
}

#[expect(clippy::print_stdout, reason = "how an arm tells its CPU time")]
async fn done(mut loops: tokio::task::JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = loops.join_next().await {
        ended??;
    }
    println!("{}", okt_testkit::cpu::seconds(std::process::id()));
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
