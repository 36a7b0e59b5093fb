//! The Model Context Protocol: what agents call tools by.
//!
//! One address, no sessions and no memory between requests, so any process answers any request. A tool is a function over
//! the use cases that the REST handlers call, with the same proofs; see `tools.rs` for how to add one.

mod call;
mod era;
mod hosts;
mod prompts;
mod resources;
mod rpc;
mod schema;
mod tools;

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use okt_app::Origin;
use okt_http::{Budget, Edge, Problem};
use okt_model::Error;

use self::call::Server;
use self::rpc::Fault;
use crate::Api;
use crate::extract::{CurrentCaller, Issuer, origin};

/// Longer than any tool waits.
pub(crate) const IDLE: Duration = Duration::from_mins(1);

/// Call a tool (Model Context Protocol).
///
/// Takes one JSON-RPC message of the revisions 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28 and keeps no session. Needs an
/// API key, or a client's token with the scope `mcp`; a person's session is rejected. `Accept` has to list
/// `application/json` and `text/event-stream`. What is wrong with a message is said in an error of JSON-RPC.
#[utoipa::path(post, path = "/mcp", tag = "MCP", operation_id = "callMcp",
    request_body(content = Object, description = "A JSON-RPC message",
                 example = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    responses((status = 200, body = Object, description = "The JSON-RPC response; as `text/event-stream` if the call waits",
               example = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}})),
              (status = 202, description = "A notification was taken"),
              (status = 400, body = Object, description = "An error of JSON-RPC",
               example = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "method is missing"}})),
              (status = 404, body = Object, description = "An error of JSON-RPC: there is no such method",
               example = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method: ping"}})),
              (status = 406, body = Object, description = "An error of JSON-RPC: Accept does not list both types",
               example = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "Accept must list …"}}))))]
pub async fn call(
    State(api): State<Api>,
    caller: CurrentCaller,
    budget: Budget,
    request: Request,
) -> Result<Response, Problem> {
    let detached = Edge::detach(&request);
    let (parts, body) = request.into_parts();
    hosts::check(&api, &parts)?;
    if !accepts(&parts.headers) {
        let message = "Accept must list application/json and text/event-stream";
        return Ok(Fault::new(StatusCode::NOT_ACCEPTABLE, rpc::INVALID_REQUEST, message).answer(None));
    }
    let bytes = body.collect().await.map_err(Error::internal)?.to_bytes();
    let base = Issuer::of(&api, &parts).map_or_else(String::new, |issuer| issuer.0);
    let origin = Origin { via: Some("mcp"), ..origin(&parts) };
    let server = Server { api, caller: caller.0, budget, origin, base };
    rpc::answer(server, detached, &parts.headers, &bytes).await
}

/// A call that waits is answered by events, any other one at once.
fn accepts(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let kinds: Vec<_> = lines
        .flat_map(|line| line.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .collect();
    let takes = |kind: &str, group: &str| kinds.iter().any(|taken| [kind, group, "*/*"].contains(taken));
    takes("application/json", "application/*") && takes("text/event-stream", "text/*")
}
