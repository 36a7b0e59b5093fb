//! `okt doctor mcp`: goes the way of a client that was given nothing but an address, and names the step that fails.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use okt_providers::{GuardedClient, Request, Timeouts};
use serde_json::{Value, json};
use url::{Host, Url};

use super::endpoint;
use crate::client::given;

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(20),
    total: Duration::from_secs(30),
};

#[derive(Args)]
pub(crate) struct DoctorMcpArgs {
    /// The address under which clients reach the service, such as `https://okt.example.org`.
    #[arg(long, value_name = "URL")]
    public_url: String,
}

struct Said {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

pub(crate) fn main(args: &DoctorMcpArgs) -> anyhow::Result<ExitCode> {
    let service = endpoint(Some(&args.public_url))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = std::io::stdout();
    let mut tell = |line: &str| writeln!(out, "{line}");
    match runtime.block_on(walk(&service, &mut tell)) {
        Ok(()) => {
            tell("clients can connect")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            tell(&format!("FAILED  {error:#}"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Goes the way, tells of each step, and ends at the one that fails.
pub(crate) async fn walk(
    service: &Url,
    tell: &mut impl FnMut(&str) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let base = service.as_str().trim_end_matches('/').to_owned();
    let mcp = format!("{base}/mcp");
    for why in hidden(service) {
        tell(&format!("note    {why}"))?;
    }
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});

    let refused = post(&mcp, &listing, None).await.context("reach the endpoint")?;
    ensure!(
        refused.status == StatusCode::UNAUTHORIZED,
        "ask without a credential: {mcp} answered {} instead of 401; check that a proxy passes /mcp on to okt{}",
        refused.status.as_u16(),
        detail(&refused.body)
    );
    let challenge = refused.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.unwrap_or_default();
    let told = challenge.split("resource_metadata=\"").nth(1).and_then(|rest| rest.split('"').next());
    let metadata = told.with_context(|| {
        format!("ask without a credential: WWW-Authenticate is {challenge:?}; set oauth.issuer to {base}")
    })?;
    // Nobody else is asked: it would be somebody who has nothing to do with this service.
    ensure!(
        Url::parse(metadata).is_ok_and(|url| url.origin() == service.origin()),
        "ask without a credential: it leads to {metadata}; set oauth.issuer to {base}"
    );
    tell("ok      without a credential it says where to get one")?;

    let resource = get(metadata).await.context("read about the resource")?;
    ensure!(
        resource.status == StatusCode::OK && resource.body["resource"] == mcp,
        "read about the resource: {metadata} speaks of {} and not of {mcp}; set oauth.issuer to {base}",
        resource.body["resource"]
    );
    tell("ok      the resource is the address that clients are given")?;

    let issuer = resource.body["authorization_servers"][0].as_str().unwrap_or_default().to_owned();
    ensure!(issuer == base, "find the authorization server: it is {issuer:?}; set oauth.issuer to {base}");
    let at = well_known(&issuer)?;
    let server = get(&at).await.context("read about the authorization server")?;
    ensure!(
        server.status == StatusCode::OK && server.body["issuer"] == issuer,
        "read about the authorization server: {at} answered {} for the issuer {}; a proxy has to pass /.well-known/ on",
        server.status.as_u16(),
        server.body["issuer"]
    );
    ensure!(
        server.body["code_challenge_methods_supported"] == json!(["S256"]),
        "read about the authorization server: it does not offer PKCE"
    );
    tell("ok      the authorization server is where it says")?;

    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        let address = server.body[name].as_str().unwrap_or_default();
        // Without parameters it is refused, by us.
        let said = match name {
            "authorization_endpoint" => get(address).await,
            _ => post(address, &json!({}), None).await,
        };
        let said = said.with_context(|| format!("reach the {name}"))?;
        let ours = [StatusCode::BAD_REQUEST, StatusCode::UNSUPPORTED_MEDIA_TYPE, StatusCode::UNAUTHORIZED];
        ensure!(ours.contains(&said.status), "reach the {name}: {address} answered {}", said.status.as_u16());
    }
    tell("ok      people can be asked, and tokens be had")?;

    let Some(key) = given(None, "OKT_API_KEY") else {
        return Ok(tell("note    set OKT_API_KEY to try a tool as well")?);
    };
    let listed = post(&mcp, &listing, Some(&key)).await.context("list the tools")?;
    let tools = listed.body["result"]["tools"].as_array().map_or(0, Vec::len);
    ensure!(tools > 0, "list the tools: it answered {}{}", listed.status.as_u16(), detail(&listed.body));
    let params = json!({"name": "list_repositories", "arguments": {"limit": 1}});
    let calling = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let called = post(&mcp, &calling, Some(&key)).await.context("call a tool")?;
    ensure!(
        called.body["result"]["isError"] == false,
        "call a tool: it answered {}{}",
        called.status.as_u16(),
        detail(&called.body)
    );
    Ok(tell(&format!("ok      with the key there are {tools} tools, and they answer"))?)
}

/// Why clients on the web can't reach it.
fn hidden(service: &Url) -> Vec<&'static str> {
    let mut why = Vec::new();
    if service.scheme() != "https" {
        why.push("clients on the web, such as Claude and ChatGPT, want https");
    }
    let private = match service.host() {
        Some(Host::Domain(name)) => name == "localhost" || !name.contains('.'),
        Some(Host::Ipv4(address)) => address.is_private() || address.is_loopback() || address.is_link_local(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unique_local(),
        None => true,
    };
    if private {
        why.push("the address is not public: only clients in its network reach it");
    }
    why
}

/// Where an issuer says what it is (RFC 8414).
fn well_known(issuer: &str) -> anyhow::Result<String> {
    let url = Url::parse(issuer).with_context(|| format!("{issuer:?} is no issuer; set oauth.issuer"))?;
    let path = url.path().trim_end_matches('/');
    Ok(format!("{}/.well-known/oauth-authorization-server{path}", url.origin().ascii_serialization()))
}

fn detail(body: &Value) -> String {
    let said = [&body["detail"], &body["error"]["message"], &body["result"]["content"][0]["text"]];
    said.into_iter().find_map(Value::as_str).map(|text| format!(": {text}")).unwrap_or_default()
}

async fn get(url: &str) -> anyhow::Result<Said> {
    send(url, Request::get(url)).await
}

async fn post(url: &str, body: &Value, key: Option<&str>) -> anyhow::Result<Said> {
    let mut request = Request::post_json(url, body)?;
    request = request.header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if let Some(key) = key {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {key}")).context("OKT_API_KEY is no key")?;
        bearer.set_sensitive(true);
        request = request.header(AUTHORIZATION, bearer);
    }
    send(url, request).await
}

/// The operator names the address, so it may be a private one; every address is asked by itself alone.
async fn send(url: &str, request: Request) -> anyhow::Result<Said> {
    let parsed = Url::parse(url).with_context(|| format!("{url:?} is no address"))?;
    let service = GuardedClient::new(&[])?.service(&parsed);
    let response = service.send(request.timeouts(TIMEOUTS).max_bytes(1 << 20)).await?;
    let (status, headers) = (response.status, response.headers.clone());
    if status.is_redirection() {
        bail!("{url} redirects; give clients the address that it redirects to");
    }
    let body = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
    Ok(Said { status, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_from_the_web_is_told() {
        let notes = |text: &str| hidden(&text.parse().unwrap()).len();
        assert_eq!(notes("https://okt.example.org"), 0);
        assert_eq!(notes("http://okt.example.org"), 1);
        for private in ["http://localhost:8080", "http://10.1.2.3", "http://okt", "http://[::1]:8080"] {
            assert_eq!(notes(private), 2, "{private}");
        }
    }

    #[test]
    fn an_issuer_with_a_path_is_described_below_the_root() {
        assert_eq!(
            well_known("https://example.org/okt").unwrap(),
            "https://example.org/.well-known/oauth-authorization-server/okt"
        );
        assert!(well_known("").is_err());
    }
}
