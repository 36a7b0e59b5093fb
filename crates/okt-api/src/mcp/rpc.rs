//! JSON-RPC: from the bytes of a request to the answer of a method.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use okt_auth::Credential;
use okt_http::{Code, Detached, Problem, current_request_id};
use okt_model::{Action, Domain, Permission};
use serde_json::{Map, Value, json};

use super::call::{Call, Outcome, Server};
use super::era::{Era, WITH_HANDSHAKE, supported};
use super::tools::progress;
use super::tools::{TOOLS, Tool};
use super::{prompts, resources};
use crate::oauth::resource_metadata;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// For how long a client may keep the list of tools, in milliseconds.
const LIST_FRESH_FOR: u32 = 300_000;
/// The same for what changes only with a release, and for the list of repositories.
const RELEASE_FRESH_FOR: u32 = 3_600_000;
const REPOSITORIES_FRESH_FOR: u32 = 60_000;
/// Older revisions have a code of their own for what is not there.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// What an agent reads of us first.
const INSTRUCTIONS: &str = include_str!("../../templates/mcp-instructions.txt");
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A request or a notification.
pub(super) struct Message {
    /// A text or a whole number; missing in a notification.
    pub(super) id: Option<Value>,
    pub(super) method: String,
    /// An object.
    pub(super) params: Value,
}

/// A refusal in the words of JSON-RPC.
pub(super) struct Fault {
    status: StatusCode,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(super) fn answer(self, id: Option<&Value>) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut body = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            body["id"] = id.clone();
        }
        (self.status, axum::Json(body)).into_response()
    }
}

impl Message {
    fn read(bytes: &[u8]) -> Result<Self, (Fault, Option<Value>)> {
        let refused = |code, message: &str, id| Err((Fault::new(StatusCode::BAD_REQUEST, code, message), id));
        let Ok(body) = serde_json::from_slice::<Value>(bytes) else {
            return refused(PARSE_ERROR, "not well-formed JSON", None);
        };
        let Value::Object(mut body) = body else {
            return refused(INVALID_REQUEST, "one message a request: a JSON object", None);
        };
        let id = match body.remove("id") {
            None => None,
            Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(id),
            Some(_) => return refused(INVALID_REQUEST, "id must be a text or a whole number", None),
        };
        if body.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return refused(INVALID_REQUEST, "jsonrpc must be \"2.0\"", id);
        }
        let Some(Value::String(method)) = body.remove("method") else {
            return refused(INVALID_REQUEST, "method is missing", id);
        };
        let params = body.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
        if !params.is_object() {
            return refused(INVALID_PARAMS, "params must be an object", id);
        }
        Ok(Self { id, method, params })
    }
}

pub(super) async fn answer(
    server: Server,
    detached: Detached,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let message = match Message::read(bytes) {
        Ok(message) => message,
        Err((fault, id)) => return Ok(fault.answer(id.as_ref())),
    };
    let Some(id) = message.id.clone() else { return Ok(StatusCode::ACCEPTED.into_response()) };
    let era = match Era::of(headers, &message) {
        Ok(era) => era,
        Err(fault) => return Ok(fault.answer(Some(&id))),
    };
    let reply = Reply { id, era };
    match (era, message.method.as_str()) {
        (Era::Handshake, "initialize") => Ok(reply.result(initialized(&message.params))),
        (Era::Handshake, "ping") => Ok(reply.result(json!({}))),
        (Era::Modern, "server/discover") => {
            let discovered = json!({
                "supportedVersions": supported(),
                "capabilities": capabilities(),
                "instructions": INSTRUCTIONS.trim_end(),
            });
            Ok(reply.kept_or_refused(Ok(discovered), LIST_FRESH_FOR))
        }
        (_, "tools/list") if message.params["cursor"].is_null() => {
            let listed = json!({"tools": TOOLS.iter().map(Tool::described).collect::<Vec<_>>()});
            Ok(reply.kept_or_refused(Ok(listed), LIST_FRESH_FOR))
        }
        (_, "tools/list") => Ok(reply.fault(INVALID_PARAMS, "the list has one page; there are no cursors")),
        (_, "resources/list") => {
            let listed = resources::list(&server, message.params["cursor"].as_str()).await;
            Ok(reply.kept_or_refused(listed, REPOSITORIES_FRESH_FOR))
        }
        (_, "resources/templates/list") => {
            let listed = json!({"resourceTemplates": resources::templates()});
            Ok(reply.kept_or_refused(Ok(listed), RELEASE_FRESH_FOR))
        }
        (_, "resources/read") => {
            let Some(uri) = message.params["uri"].as_str() else {
                return Ok(reply.fault(INVALID_PARAMS, "uri is missing"));
            };
            match resources::read(&server, uri).await.transpose() {
                Some(read) => Ok(reply.kept_or_refused(read, 0)),
                None => Ok(reply.not_found(uri)),
            }
        }
        (_, "prompts/list") => {
            Ok(reply.kept_or_refused(Ok(json!({"prompts": prompts::list()})), RELEASE_FRESH_FOR))
        }
        (_, "prompts/get") => Ok(match prompts::get(&message.params) {
            Ok(prompt) => reply.result(prompt),
            Err(wrong) => reply.fault(INVALID_PARAMS, wrong),
        }),
        (_, "completion/complete") => Ok(complete(&server, &reply, &message.params).await),
        (_, "tools/call") => call_tool(server, detached, reply, message.params).await,
        (era, method) => {
            // A proxy can tell from the status; older clients would take it for the end of their session.
            let status = if era == Era::Modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
            let fault = Fault::new(status, METHOD_NOT_FOUND, format!("no such method: {method}"));
            Ok(fault.answer(Some(&reply.id)))
        }
    }
}

/// What an answer needs to know of its request.
#[derive(Clone)]
pub(super) struct Reply {
    id: Value,
    era: Era,
}

impl Reply {
    fn result(&self, result: Value) -> Response {
        axum::Json(self.message(result)).into_response()
    }

    /// A result that a client may keep for so many milliseconds, for this caller alone; or why there is none.
    fn kept_or_refused(&self, result: Result<Value, Problem>, ttl_ms: u32) -> Response {
        match result {
            Ok(mut result) => {
                result["ttlMs"] = ttl_ms.into();
                result["cacheScope"] = "private".into();
                self.result(result)
            }
            Err(problem) => {
                problem.log();
                let code =
                    if problem.code().status().is_server_error() { INTERNAL_ERROR } else { INVALID_PARAMS };
                let data = json!({"code": problem.code().as_str(), "request_id": current_request_id()});
                Fault::new(StatusCode::OK, code, problem.detail()).with(data).answer(Some(&self.id))
            }
        }
    }

    fn not_found(&self, uri: &str) -> Response {
        let code = if self.era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        Fault::new(StatusCode::OK, code, "resource not found")
            .with(json!({ "uri": uri }))
            .answer(Some(&self.id))
    }

    fn fault(&self, code: i64, message: impl Into<String>) -> Response {
        Fault::new(StatusCode::OK, code, message).answer(Some(&self.id))
    }

    /// The JSON-RPC response.
    pub(super) fn message(&self, mut result: Value) -> Value {
        if self.era == Era::Modern {
            result["resultType"] = "complete".into();
            result["_meta"][SERVER_INFO] = server_info();
        }
        json!({"jsonrpc": "2.0", "id": self.id, "result": result})
    }
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str();
    let version = WITH_HANDSHAKE.into_iter().find(|known| Some(*known) == asked).unwrap_or(WITH_HANDSHAKE[0]);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS.trim_end(),
    })
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}})
}

fn server_info() -> Value {
    json!({"name": "okt", "title": "okt", "version": env!("CARGO_PKG_VERSION")})
}

async fn complete(server: &Server, reply: &Reply, params: &Value) -> Response {
    let (about, argument) = (&params["ref"], &params["argument"]);
    let known = match about["type"].as_str() {
        Some("ref/prompt") => about["name"].as_str().is_some_and(prompts::exists),
        Some("ref/resource") => about["uri"].is_string(),
        _ => false,
    };
    let (Some(name), Some(value), true) = (argument["name"].as_str(), argument["value"].as_str(), known)
    else {
        return reply.fault(
            INVALID_PARAMS,
            "ref must name a prompt or a template, and argument have a name and a value",
        );
    };
    match resources::complete(server, name, value).await {
        Ok(completed) => reply.result(completed),
        refused => reply.kept_or_refused(refused, 0),
    }
}

async fn call_tool(
    server: Server,
    detached: Detached,
    reply: Reply,
    mut params: Value,
) -> Result<Response, Problem> {
    let Some(tool) = params["name"].as_str().and_then(|name| TOOLS.iter().find(|tool| tool.name == name))
    else {
        return Ok(reply.fault(INVALID_PARAMS, format!("no such tool: {}", params["name"])));
    };
    let arguments = match params["arguments"].take() {
        Value::Null => Value::Object(Map::new()),
        arguments @ Value::Object(_) => arguments,
        _ => return Ok(reply.fault(INVALID_PARAMS, "arguments must be an object")),
    };
    step_up(&server, tool, &arguments).await?;
    let meta = &params["_meta"];
    // Before the whole request is over its time, so that the agent is told by its own protocol.
    let longest = server.api.app.config().server.write_timeout.duration().mul_f32(0.8);
    let call = Arc::new(Call::new(server, tool, arguments));
    let ran = call.run(meta["okt/idempotency_key"].as_str(), detached);
    let ran = tokio::time::timeout(longest, ran).await;
    Ok(match ran.unwrap_or_else(|_| Err(Problem::timed_out(longest))) {
        Ok(Outcome::Done(value)) => reply.result(told(&value)),
        Ok(Outcome::Wait(watch)) => progress::stream(call, watch, reply, &meta["progressToken"]),
        Err(problem) => reply.result(refused(&problem)),
    })
}

/// A client that was not given what a tool needs is told how to ask for it, before anything is done. Keys, and clients of people
/// who may not do it themselves, would gain nothing by asking: the tool refuses them.
async fn step_up(server: &Server, tool: &Tool, arguments: &Value) -> Result<(), Problem> {
    let needed = (tool.needs)(arguments);
    let missing: Vec<Permission> =
        needed.iter().copied().filter(|permission| !server.caller.was_given(*permission)).collect();
    let (Credential::Grant(_), Some(first)) = (server.caller.credential(), missing.first()) else {
        return Ok(());
    };
    let place = match arguments["repository"].as_str() {
        // One that is not there is nobody's.
        Some(named) => {
            let Some(located) = server.api.app.auth().locate(named).await? else { return Ok(()) };
            Some(Domain::Repository(located.id))
        }
        None => None,
    };
    if !missing.iter().all(|permission| server.caller.owner_may(place, *permission)) {
        return Ok(());
    }
    let missing = first;
    server.api.deny(&server.caller, &server.origin, &missing.to_string(), None).await?;
    let mut scope = "mcp read".to_owned();
    for permission in needed.iter().filter(|permission| permission.action != Action::Read) {
        scope.push(' ');
        scope.push_str(&permission.to_string());
    }
    let metadata = resource_metadata(&format!("{}/mcp", server.base));
    let problem = Problem::new(Code::Forbidden, format!("{} needs the permission {missing}", tool.name));
    Err(problem.challenge(format!(
        "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\", \
         error_description=\"{} needs {missing}\"",
        tool.name
    )))
}

/// The result of a tool.
pub(super) fn told(value: &Value) -> Value {
    let text = value.to_string();
    json!({"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": false})
}

/// The result of a tool that could not do it: for the agent to read, so that it can do better.
pub(super) fn refused(problem: &Problem) -> Value {
    problem.log();
    let mut error = json!({
        "code": problem.code().as_str(),
        "detail": problem.detail(),
        "request_id": current_request_id(),
    });
    if let Some(seconds) = problem.retry_after_s() {
        error["retry_after_s"] = seconds.into();
    }
    if !problem.errors().is_empty() {
        let errors =
            problem.errors().iter().map(|error| json!({"field": error.field, "message": error.message}));
        error["errors"] = errors.collect();
    }
    json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true})
}
