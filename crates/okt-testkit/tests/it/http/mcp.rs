//! The endpoint for agents, over the wire.

mod chat;
mod gate;
mod kills;
mod program;
mod resources;
mod rights;
mod tenants;
mod tools;

use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{Person, api_key};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

pub(crate) const MCP: &str = "/mcp";
const ACCEPT: &str = "application/json, text/event-stream";

/// What agents do.
const PERMISSIONS: [&str; 13] = [
    "repository:read",
    "fact:read",
    "concept:read",
    "source:read",
    "source:write",
    "job:read",
    "report:read",
    "report:write",
    "report:update",
    "investigation:read",
    "investigation:write",
    "investigation:update",
    "source:update",
];

/// Sends a message.
pub(crate) async fn rpc(service: &TestService, token: &str, message: &Value) -> Answer {
    let request = service.request(Method::POST, MCP).bearer_auth(token).header("accept", ACCEPT);
    // A call may wait for 50 s.
    Answer::of(request.timeout(Duration::from_secs(90)).json(message)).await
}

pub(crate) fn calling(tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// The result of a tool, whether or not it could do it.
pub(crate) async fn call(service: &TestService, token: &str, tool: &str, arguments: &Value) -> Value {
    let answer = rpc(service, token, &calling(tool, arguments)).await;
    assert_eq!(answer.status, 200, "{tool} {arguments}: {answer:?}");
    let body = answer.json();
    assert_eq!(body["id"], 7, "{tool}: {body}");
    assert!(body["error"].is_null(), "{tool} {arguments}: {body}");
    body["result"].clone()
}

/// What a tool that has to succeed says.
pub(crate) async fn told(service: &TestService, token: &str, tool: &str, arguments: &Value) -> Value {
    let result = call(service, token, tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"], "{tool}");
    result["structuredContent"].clone()
}

/// What a tool that can't do it says: code and detail.
pub(crate) async fn refused(service: &TestService, token: &str, tool: &str, arguments: &Value) -> Value {
    let result = call(service, token, tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
    assert!(result["structuredContent"].is_null(), "{result}");
    let error: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert!(!error["request_id"].as_str().unwrap().is_empty(), "{error}");
    error
}

/// A key for all that agents do.
pub(crate) async fn agent(service: &TestService, person: &Person) -> String {
    api_key(service, person, &PERMISSIONS).await.1
}

/// The events of an answer that waited.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), "text/event-stream", "{answer:?}");
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(crate) const SUN: &str = "Honey bees find the way back to their hive by the position of the sun.";
pub(crate) const NORWAY: &str = "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006.";
pub(crate) const NOT_SO: &str = "Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.";

/// What there is in a repository that agents ask about.
pub(crate) struct Known {
    pub(crate) source: String,
    pub(crate) fact: String,
    pub(crate) concept: String,
    pub(crate) report: String,
    pub(crate) investigation: String,
    pub(crate) job: String,
}

/// A service whose repository has a source, facts, concepts, a report that was checked and an investigation.
pub(crate) async fn furnished() -> (TestApp, Known) {
    let settings =
        [("SVC__CONCEPTS__MIN_CONCEPT_FACT_COUNT", "1"), ("SVC__CONCEPTS__MIN_SHARED_FACT_COUNT", "1")];
    let mut app =
        TestApp::builder().vectors().concepts(okt_model::CONCEPT_MODEL).settings(&settings).start().await;
    app.work().await;
    let source = app.add_text("bees.txt", &format!("{SUN} {NORWAY}")).await;
    app.settled(&source).await;
    let path = format!("/investigations/{}/sources", {
        let made = app.post("/investigations", &json!({"title": "How bees find their way"})).await;
        made.json()["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(app.post(&path, &json!({"source_id": source})).await.status, 200);
    let investigation = path.split('/').nth(2).unwrap().to_owned();
    let body = format!(
        "# Bees\n\n{SUN} {NOT_SO}\n\nThe price of copper on the markets of Zurich is unknown here.\n"
    );
    let report = app.post("/reports", &json!({"title": "On bees", "body_markdown": body})).await.json();
    let report = report["id"].as_str().unwrap().to_owned();
    let concept =
        eventually(Duration::from_mins(2), "there are concepts, and the report is checked", async || {
            let concepts = app.read("/concepts").await;
            let health = app.read(&format!("/reports/{report}/health")).await;
            let ready = health["status"] == "annotated" && health["counts"]["contradicted"] == 1;
            match concepts["data"][0]["id"].as_str() {
                Some(id) if ready => Ok(id.to_owned()),
                _ => Err(format!("{concepts} {health}")),
            }
        })
        .await;
    let facts = app.facts(&source).await;
    let fact = facts.iter().find(|fact| fact["text"] == SUN).unwrap()["id"].as_str().unwrap().to_owned();
    let job = app.read("/jobs").await["data"][0]["id"].as_str().unwrap().to_owned();
    (app, Known { source, fact, concept, report, investigation, job })
}
