//! `okt mcp`, `okt mcp install` and `okt doctor mcp`, as agents and operators call them.

use std::process::Stdio;

use okt_testkit::accounts::{api_key, register};
use okt_testkit::jobs::program;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{agent, calling, furnished};

/// What comes out of `okt mcp` for these lines, sorted by id.
async fn relayed(url: &str, key: &str, lines: &[String]) -> Vec<Value> {
    let mut command = Command::new(program());
    command.args(["mcp", "--url", url]).env_clear().env("OKT_API_KEY", key);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    drop(input);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{text}");
    let mut said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    said.sort_by_key(|message| message["id"].as_i64());
    said
}

#[tokio::test]
async fn lines_go_to_the_service_and_its_answers_come_back() {
    let (app, known) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let message = |id: i64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let waits = json!({"source_id": known.source, "wait_s": 5});
    let lines = [
        message(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        message(2, "tools/list", json!({})),
        String::new(),
        message(3, "tools/call", json!({"name": "get_fact", "arguments": {"fact_id": known.fact}})),
        message(
            4,
            "tools/call",
            json!({"name": "fetch", "arguments": {"id": format!("fact:{}", known.fact)}, "_meta": meta}),
        ),
        message(5, "resources/read", json!({"uri": "okt://repositories", "_meta": meta})),
        message(6, "tools/call", json!({"name": "get_progress", "arguments": waits})),
        message(7, "no/such", json!({})),
    ];
    let said = relayed(&app.service.url, &key, &lines).await;
    assert_eq!(said.len(), 7, "{said:#?}");
    assert_eq!(said[0]["result"]["serverInfo"]["name"], "okt");
    assert!(said[1]["result"]["tools"].as_array().unwrap().len() >= 24);
    assert_eq!(said[2]["result"]["structuredContent"]["text"], super::SUN);
    assert_eq!(said[3]["result"]["resultType"], "complete", "{}", said[3]);
    assert!(said[4]["result"]["contents"].is_array(), "{}", said[4]);
    assert_eq!(said[5]["result"]["structuredContent"]["state"], "done");
    assert_eq!(said[6]["error"]["code"], -32601);

    // What the service refuses is told to whoever waits for an answer.
    let refused = relayed(&app.service.url, "okt_wrong", &[lines[1].clone(), lines[2].clone()]).await;
    assert_eq!(
        (refused.len(), &refused[0]["id"], &refused[0]["error"]["code"]),
        (1, &json!(2), &json!(-32603))
    );
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("401"), "{refused:?}");
    let nobody = relayed("http://127.0.0.1:9", &key, &[calling("search", &json!({})).to_string()]).await;
    assert!(nobody[0]["error"]["message"].as_str().unwrap().contains("does not answer"), "{nobody:?}");
    let broken = relayed(&app.service.url, &key, &["{".to_owned()]).await;
    assert_eq!(broken[0]["error"]["code"], -32700, "{broken:?}");
}

#[tokio::test]
async fn an_agent_is_told_of_the_service() {
    let home = tempfile::tempdir().unwrap();
    let install = async |arguments: &[&str], key: Option<&str>| {
        let mut command = Command::new(program());
        command.args(["mcp", "install"]).args(arguments).env_clear().env("HOME", home.path());
        command.env("OKT_URL", "https://okt.example.org/");
        if let Some(key) = key {
            command.env("OKT_API_KEY", key);
        }
        let done = command.output().await.unwrap();
        let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
        (done.status.success(), said)
    };
    let file = home.path().join(".cursor/mcp.json");
    let (done, said) = install(&["cursor", "--print"], Some("okt_secret")).await;
    assert!(done && said.contains("https://okt.example.org/mcp") && !said.contains("okt_secret"), "{said}");
    assert!(!file.exists());
    let (done, said) = install(&["cursor"], None).await;
    assert!(done && said.contains("sign in"), "{said}");
    let (done, said) = install(&["cursor", "--name", "with-key"], Some("okt_secret")).await;
    assert!(done && !said.contains("okt_secret"), "{said}");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["okt"], json!({"url": "https://okt.example.org/mcp"}));
    assert_eq!(written["mcpServers"]["with-key"]["headers"]["Authorization"], "Bearer okt_secret");
    std::fs::write(&file, "{ // mine\n}").unwrap();
    let (done, said) = install(&["cursor"], None).await;
    assert!(!done && said.contains("--print"), "{said}");
    let (done, said) = install(&["claude"], None).await;
    assert!(!done && said.contains("OKT_API_KEY"), "{said}");
}

#[tokio::test]
async fn the_doctor_goes_the_way_of_a_client() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, key) = api_key(&service, &ada, &["repository:read", "fact:read"]).await;
    let ask = async |url: &str, key: Option<&str>| {
        let mut command = Command::new(program());
        command.args(["doctor", "mcp", "--public-url", url]).env_clear();
        if let Some(key) = key {
            command.env("OKT_API_KEY", key);
        }
        let done = command.output().await.unwrap();
        (done.status.success(), String::from_utf8(done.stdout).unwrap())
    };
    let (well, said) = ask(&service.url, Some(&key)).await;
    assert!(well && said.contains("25 tools") && said.ends_with("clients can connect\n"), "{said}");
    let (well, said) = ask(&service.url, None).await;
    assert!(well && said.contains("set OKT_API_KEY"), "{said}");
    let (well, said) = ask(&service.url, Some("okt_wrong")).await;
    assert!(!well && said.contains("FAILED  list the tools: it answered 401"), "{said}");
    let (well, said) = ask("http://127.0.0.1:9", None).await;
    assert!(!well && said.contains("FAILED  reach the endpoint"), "{said}");
    // The address that the operator gives to clients is not the one that the service goes by.
    let other = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example.org")]).await;
    let (well, said) = ask(&other.url, None).await;
    assert!(!well && said.contains("oauth.issuer"), "{said}");
}
