//! `okt mcp`: for agents that start a program instead of calling an address.
//!
//! Lines of JSON-RPC go to the MCP endpoint of a service and its answers come back as lines. Nothing is understood on the way but
//! what has to be repeated in headers.

pub(crate) mod doctor;
mod install;

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Subcommand};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use okt_providers::{GuardedClient, Request, Response, Service, Timeouts};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use url::Url;

use crate::client::given;

/// A call may wait for 50 s; the rest is for a machine that is busy.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), idle: Duration::from_mins(1), total: Duration::from_mins(2) };
/// Messages that are on their way at once.
const AT_ONCE: usize = 16;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What JSON-RPC calls a failure that has nothing to do with the request.
const INTERNAL_ERROR: i64 = -32603;

#[derive(Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// The address of the service, such as `https://okt.example.org`; `OKT_URL` if it is not given.
    #[arg(long)]
    url: Option<String>,
}

#[derive(Subcommand)]
enum McpCommand {
    /// Tell an agent of the service: write the address into the file in which it looks for servers.
    Install(install::InstallArgs),
}

pub(crate) fn main(args: &McpArgs) -> anyhow::Result<ExitCode> {
    if let Some(McpCommand::Install(args)) = &args.command {
        return install::main(args);
    }
    let endpoint = endpoint(args.url.as_deref())?;
    // Not by an option: the arguments of a process can be read by others.
    let key = given(None, "OKT_API_KEY").context("set OKT_API_KEY to an API key")?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {key}"))
        .context("OKT_API_KEY has characters that no key has")?;
    bearer.set_sensitive(true);
    let service = GuardedClient::new(&[])?.service(&endpoint);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(relay(Arc::new(Endpoint { service, bearer })))?;
    Ok(ExitCode::SUCCESS)
}

/// The address of the service, without `/mcp`.
fn endpoint(url: Option<&str>) -> anyhow::Result<Url> {
    let url = given(url, "OKT_URL").context("name the service by --url or OKT_URL")?;
    let url = url.trim_end_matches('/').trim_end_matches("/mcp").trim_end_matches("/api/v1");
    let url = Url::parse(url).with_context(|| format!("{url} is no address of a service"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        bail!("{url} is no address of a service; it looks like https://okt.example.org");
    }
    Ok(url)
}

struct Endpoint {
    service: Service,
    bearer: HeaderValue,
}

/// Until standard input ends; what was asked before is still answered.
async fn relay(endpoint: Arc<Endpoint>) -> anyhow::Result<()> {
    let (send, mut lines) = mpsc::channel(1);
    // Reading blocks, and can't be broken off.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if send.blocking_send(line).is_err() {
                break;
            }
        }
    });
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut open = JoinSet::new();
    while let Some(line) = lines.recv().await {
        let line = line.context("can't read standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        let (turn, endpoint) = (Arc::clone(&turns).acquire_owned().await?, Arc::clone(&endpoint));
        open.spawn(async move {
            let _turn = turn;
            endpoint.pass_on(&line).await
        });
        while let Some(done) = open.try_join_next() {
            done??;
        }
    }
    while let Some(done) = open.join_next().await {
        done??;
    }
    Ok(())
}

impl Endpoint {
    /// Sends one message and writes what comes back.
    async fn pass_on(&self, line: &str) -> anyhow::Result<()> {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let sent = self.service.send(self.request(line, &message)).await;
        let failed = match sent {
            Ok(response) => answer(response).await?,
            Err(error) => Some(format!("the service does not answer: {error}")),
        };
        // Whoever sent a notification expects nothing.
        let (Some(failed), Some(id)) = (failed, message.get("id").filter(|id| !id.is_null())) else {
            return Ok(());
        };
        let error = json!({"code": INTERNAL_ERROR, "message": failed});
        write(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
    }

    fn request(&self, line: &str, message: &Value) -> Request {
        let json = HeaderValue::from_static("application/json");
        let url = self.service.url(["mcp"]);
        let mut request = Request::post_as(url.to_string(), json, line.to_owned())
            .header(AUTHORIZATION, self.bearer.clone())
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
            .timeouts(TIMEOUTS);
        for (name, value) in repeated(message) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        request
    }
}

/// What the revision without a handshake wants in the headers as well.
fn repeated(message: &Value) -> Vec<(&'static str, String)> {
    let params = &message["params"];
    let (Some(version), Some(method)) = (params["_meta"][VERSION].as_str(), message["method"].as_str())
    else {
        return Vec::new();
    };
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    let plain = |text: &str| {
        let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let kept = text.trim() == text && !text.starts_with("=?base64?");
        if visible && kept { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) }
    };
    let mut headers = vec![("mcp-protocol-version", version.to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(name.map(|name| ("mcp-name", plain(name))));
    headers
}

/// Writes the messages of an answer; what went wrong where there are none.
async fn answer(response: Response) -> anyhow::Result<Option<String>> {
    let kind = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return events(response).await;
    }
    let status = response.status;
    let bytes = match response.bytes().await {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Some(format!("the answer broke off: {error}"))),
    };
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if body["jsonrpc"] == "2.0" {
        // Written anew: a line must not have line breaks.
        write(&body.to_string())?;
        return Ok(None);
    }
    if status.is_success() {
        return Ok(None);
    }
    let detail = body["detail"].as_str().unwrap_or("check that the address is that of okt");
    Ok(Some(format!("the service answered {}: {detail}", status.as_u16())))
}

async fn events(mut response: Response) -> anyhow::Result<Option<String>> {
    let (mut text, mut answered) = (Vec::new(), false);
    loop {
        let piece = match response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) => return Ok((!answered).then(|| format!("the answer broke off: {error}"))),
        };
        text.extend_from_slice(&piece);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let Some(data) = line.trim_end().strip_prefix("data: ") else { continue };
            let message: Value = serde_json::from_str(data).unwrap_or_default();
            answered |= !message["id"].is_null();
            write(data)?;
        }
    }
    Ok((!answered).then(|| "the answer broke off".to_owned()))
}

/// One line at a time: whoever writes holds the stream.
fn write(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_what_the_newest_revision_wants() {
        let message = |name: &str| json!({"method": "tools/call", "params": {"name": name, "_meta": {VERSION: "2026-07-28"}}});
        let expected =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "search")];
        assert_eq!(repeated(&message("search")), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(repeated(&message("äöü"))[2].1, "=?base64?w6TDtsO8?=");
        assert_eq!(repeated(&message(" x"))[2].1, "=?base64?IHg=?=");
        assert!(repeated(&json!({"method": "tools/list", "params": {}})).is_empty());
    }

    #[test]
    fn an_address_is_taken_as_people_write_it() {
        for text in [
            "https://okt.example",
            "https://okt.example/",
            "https://okt.example/mcp",
            "https://okt.example/mcp/",
        ] {
            assert_eq!(endpoint(Some(text)).unwrap().as_str(), "https://okt.example/", "{text}");
        }
        assert_eq!(
            endpoint(Some("http://localhost:8080/path/mcp")).unwrap().as_str(),
            "http://localhost:8080/path"
        );
        for text in ["okt.example", "file:///etc/passwd", "localhost:8080"] {
            assert!(endpoint(Some(text)).is_err(), "{text}");
        }
    }
}
