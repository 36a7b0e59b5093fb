//! Who gets to the endpoint, and what is said to the others.

use std::time::Duration;

use http::Method;
use okt_auth::{NewAccess, Tokens};
use okt_model::TokenId;
use okt_testkit::accounts::{access_token, access_token_for, register, send};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{Browser, CALLBACK, client, exchange, parameter, request};
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::oauth_tokens::access::{SECRET, claims};

use super::{ACCEPT, MCP, agent, calling, rpc};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

async fn status(
    service: &TestService,
    method: Method,
    headers: &[(&str, &str)],
    body: impl Into<String>,
) -> Answer {
    let mut request = service.request(method, MCP).header("content-type", "application/json");
    if !headers.iter().any(|(name, _)| *name == "accept") {
        request = request.header("accept", ACCEPT);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.body(body.into())).await
}

#[tokio::test]
async fn only_keys_and_tokens_for_mcp_get_in() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (key, mcp) = (agent(&service, &ada).await, format!("{}{MCP}", service.url));
    let tokens = [
        ("a session", ada.token.clone(), 401),
        ("a key", key.clone(), 200),
        ("no token", "nonsense".to_owned(), 401),
        ("a key that was altered", key.replace("okt_", "okt_x"), 401),
        ("for the service, with mcp", access_token(&service, ada.id, "mcp read").await, 200),
        ("for the endpoint, with mcp", access_token_for(&service, ada.id, "mcp read", &mcp).await, 200),
        ("for the service, without mcp", access_token(&service, ada.id, "read").await, 401),
        ("for the endpoint, without mcp", access_token_for(&service, ada.id, "read", &mcp).await, 401),
        ("for another", access_token_for(&service, ada.id, "mcp read", "https://else.example").await, 401),
        ("with a slash", access_token_for(&service, ada.id, "mcp read", &format!("{mcp}/")).await, 401),
    ];
    for (what, token, expected) in &tokens {
        let bearer = format!("Bearer {token}");
        let answer = status(&service, Method::POST, &[("authorization", &bearer)], PING).await;
        assert_eq!(answer.status, *expected, "{what}: {answer:?}");
        if *expected == 401 {
            let challenge = answer.header("www-authenticate");
            let rest = format!(
                "scope=\"mcp read\", resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
                service.url
            );
            assert_eq!(challenge, format!("Bearer error=\"invalid_token\", {rest}"), "{what}");
        }
    }
    let nobody = status(&service, Method::POST, &[], PING).await;
    assert_eq!(nobody.status, 401);
    assert!(nobody.header("www-authenticate").starts_with("Bearer scope=\"mcp read\", "), "{nobody:?}");
    // What is for the endpoint opens nothing else.
    let token = &tokens[5].1;
    assert_eq!(service.get_as(token, "/api/v1/users/me").await.status, 401);
}

/// A client gets the next one for its refresh token, so it is told as of any other token that is not valid.
#[tokio::test]
async fn a_token_that_has_ended_is_refused_with_where_to_get_another() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mcp = format!("{}{MCP}", service.url);
    let token = access_token_for(&service, ada.id, "mcp read", &mcp).await;
    let said = claims(&token);
    let tokens = Tokens::new(SECRET, None, None);
    let (grant, now) =
        (said["grant"].as_str().unwrap().parse::<Uuid>().unwrap(), said["iat"].as_u64().unwrap());
    // A minute old, for so many seconds; clocks may be apart by 30 s.
    for (seconds, expected) in [(600, 200), (1, 401)] {
        let new = NewAccess {
            issuer: &service.url,
            user: ada.id.into(),
            audience: &mcp,
            client: said["client_id"].as_str().unwrap(),
            scope: "mcp read",
            grant: grant.into(),
            id: TokenId::mint(),
        };
        let old = tokens.sign_access(&new, now - 60, Duration::from_secs(seconds));
        let bearer = format!("Bearer {old}");
        let answer = status(&service, Method::POST, &[("authorization", &bearer)], PING).await;
        assert_eq!(answer.status, expected, "{seconds}: {answer:?}");
        if expected == 401 {
            let challenge = answer.header("www-authenticate");
            assert!(
                challenge.starts_with("Bearer error=\"invalid_token\", scope=\"mcp read\""),
                "{challenge}"
            );
            assert!(challenge.contains("resource_metadata="), "{challenge}");
        }
    }
}

#[tokio::test]
async fn a_request_must_be_meant_for_this_service() {
    let service = TestService::product(&[
        ("SVC__MCP__ALLOWED_HOSTS", "okt.internal:8443"),
        ("SVC__MCP__ALLOWED_ORIGINS", "https://app.example.org"),
    ])
    .await;
    let ada = register(&service, "ada").await;
    let bearer = format!("Bearer {}", agent(&service, &ada).await);
    let port = service.url.rsplit(':').next().unwrap().to_owned();
    let (localhost, own) = (format!("localhost:{port}"), service.url.clone());
    for (header, value, expected) in [
        ("host", "evil.example", 403),
        ("host", "localhost.evil.example", 403),
        ("host", "okt.internal", 403),
        ("host", "okt.internal:8443", 200),
        ("host", localhost.as_str(), 200),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "https://localhost.evil.example", 403),
        ("origin", "https://app.example.org", 200),
        ("origin", "http://app.example.org", 403),
        ("origin", "https://app.example.org:8443", 403),
        ("origin", own.as_str(), 200),
        ("origin", "http://localhost:6274", 200),
    ] {
        let headers = [("authorization", bearer.as_str()), (header, value)];
        let answer = status(&service, Method::POST, &headers, PING).await;
        assert_eq!(answer.status, expected, "{header}: {value}: {answer:?}");
        if expected == 403 {
            let setting = if header == "host" { "mcp.allowed_hosts" } else { "mcp.allowed_origins" };
            assert!(answer.json()["detail"].as_str().unwrap().contains(setting), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn other_methods_and_bodies_are_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let bearer = format!("Bearer {}", agent(&service, &ada).await);
    let known = [("authorization", bearer.as_str())];
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        assert_eq!(status(&service, method.clone(), &known, "").await.status, 405, "{method}");
    }
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(status(&service, Method::POST, &known, long).await.status, 413);
    for (body, code) in [
        (format!("[{PING}]"), -32600),
        ("{".to_owned(), -32700),
        ("7".to_owned(), -32600),
        ("{}".to_owned(), -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#.to_owned(), -32602),
    ] {
        let answer = status(&service, Method::POST, &known, body.clone()).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!(code)), "{body}");
    }
    for (accept, expected) in [
        ("application/json", 406),
        ("text/event-stream", 406),
        ("*/*", 200),
        ("application/json;q=1,text/*", 200),
    ] {
        let headers = [("authorization", bearer.as_str()), ("accept", accept)];
        assert_eq!(status(&service, Method::POST, &headers, PING).await.status, expected, "{accept}");
    }
    let notified = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = status(&service, Method::POST, &known, notified).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
}

#[tokio::test]
async fn older_revisions_shake_hands_and_nothing_is_remembered() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let key = agent(&service, &ada).await;
    for (asked, agreed) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params});
        let answer = rpc(&service, &key, &message).await;
        assert_eq!(answer.header("mcp-session-id"), "");
        let body = answer.json();
        let result = &body["result"];
        assert_eq!((&body["id"], &result["protocolVersion"]), (&json!("a"), &json!(agreed)), "{body}");
        assert_eq!(result["serverInfo"]["name"], "okt");
        assert!(result["instructions"].as_str().unwrap().chars().count() <= 700);
        assert!(result["capabilities"]["tools"].is_object());
    }
    let unknown = rpc(&service, &key, &json!({"jsonrpc": "2.0", "id": 1, "method": "no/such"})).await;
    assert_eq!((unknown.status.as_u16(), &unknown.json()["error"]["code"]), (200, &json!(-32601)));
    let no_tool = rpc(&service, &key, &calling("no_such_tool", &json!({}))).await;
    assert_eq!(no_tool.json()["error"]["code"], -32602, "{no_tool:?}");
    for params in [json!({}), json!({"name": 7}), json!({"name": "search", "arguments": []})] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        assert_eq!(rpc(&service, &key, &message).await.json()["error"]["code"], -32602, "{message}");
    }
}

/// A message of the revision without a handshake.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({VERSION: "2026-07-28", CAPABILITIES: {}});
    json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params})
}

#[tokio::test]
async fn the_newest_revision_says_in_each_request_what_it_is() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let bearer = format!("Bearer {}", agent(&service, &ada).await);
    let send = async |headers: &[(&str, &str)], message: &Value| {
        let headers = [&[("authorization", bearer.as_str())][..], headers].concat();
        status(&service, Method::POST, &headers, message.to_string()).await
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    let discovered =
        send(&[version, ("mcp-method", "server/discover")], &modern("server/discover", json!({}))).await;
    let body = discovered.json();
    assert_eq!(body["result"]["supportedVersions"][0], "2026-07-28", "{body}");
    assert_eq!(body["result"]["resultType"], "complete");
    assert_eq!(body["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "okt");
    assert_eq!(body["result"]["cacheScope"], "private");

    let list = modern("tools/list", json!({}));
    let get = modern("tools/call", json!({"name": "list_repositories", "arguments": {}}));
    let (listing, calling) = (("mcp-method", "tools/list"), ("mcp-method", "tools/call"));
    let encoded = ("mcp-name", "=?base64?bGlzdF9yZXBvc2l0b3JpZXM=?=");
    for (headers, message, status, code) in [
        (vec![version, listing], &list, 200, None),
        (vec![listing], &list, 400, Some(-32020)),
        (vec![version], &list, 400, Some(-32020)),
        (vec![("mcp-protocol-version", "2025-11-25"), listing], &list, 400, Some(-32020)),
        (vec![version, ("mcp-method", "TOOLS/LIST")], &list, 400, Some(-32020)),
        (vec![version, calling], &get, 400, Some(-32020)),
        (vec![version, calling, ("mcp-name", "search")], &get, 400, Some(-32020)),
        (vec![version, calling, ("mcp-name", "list_repositories")], &get, 200, None),
        (vec![version, calling, encoded], &get, 200, None),
        (vec![version, ("mcp-method", "initialize")], &modern("initialize", json!({})), 404, Some(-32601)),
        (vec![version, ("mcp-method", "ping")], &modern("ping", json!({})), 404, Some(-32601)),
    ] {
        let answer = send(&headers, message).await;
        let error = answer.json()["error"]["code"].as_i64();
        assert_eq!((answer.status.as_u16(), error), (status, code), "{headers:?} {message}: {answer:?}");
        assert_eq!(answer.json()["id"], 3);
    }
    // Without what a request has to say.
    let mut nothing = list.clone();
    nothing["params"] = json!({});
    let mut no_capabilities = list.clone();
    no_capabilities["params"]["_meta"].as_object_mut().unwrap().remove(CAPABILITIES);
    for message in [nothing, no_capabilities] {
        let answer = send(&[version, listing], &message).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (400, &json!(-32602)),
            "{answer:?}"
        );
    }
    // A revision that nobody knows.
    let mut unknown = list.clone();
    unknown["params"]["_meta"][VERSION] = json!("1900-01-01");
    let answer = send(&[("mcp-protocol-version", "1900-01-01"), listing], &unknown).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["code"]), (400, &json!(-32022)), "{answer:?}");
    assert_eq!(error["data"]["requested"], "1900-01-01");
    assert_eq!(error["data"]["supported"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_client_that_names_no_scope_gets_what_the_endpoint_needs() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let id = client(&service).await;
    let resource = format!("{}{MCP}", service.url);
    for (scope, expected) in [
        (None, "read mcp"),
        (Some("openid profile email offline_access"), "read mcp"),
        (Some("openid mcp read source:write offline_access"), "read mcp source:write"),
    ] {
        let mut asked = request(&id, scope.unwrap_or_default());
        asked.retain(|(name, _)| scope.is_some() || *name != "scope");
        asked.push(("resource", resource.clone()));
        let mut browser = Browser::default();
        let page = browser.ask(&service, &asked).await;
        let page = browser.sign_in(&service, &page, &ada.email).await;
        let answer = browser.decide(&service, &page, "allow").await;
        let tokens = exchange(&service, &id, &parameter(&answer, "code").unwrap()).await.json();
        assert_eq!(tokens["scope"], expected, "{tokens}");
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let answer = rpc(&service, tokens["access_token"].as_str().unwrap(), &message).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // A client that registered with what the endpoint names may ask for more when a tool needs it.
    let document =
        json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "scope": "mcp read"});
    let registered = service.request(Method::POST, "/api/v1/oauth/register").json(&document);
    let registered = Answer::of(registered).await.json();
    let mut asked = request(registered["client_id"].as_str().unwrap(), "mcp read source:write");
    asked.push(("resource", resource.clone()));
    assert_eq!(Browser::default().ask(&service, &asked).await.status, 200);
    // Another word is still none.
    let answer = Browser::default().ask(&service, &request(&id, "openid fly")).await;
    assert!(answer.status == 400 && answer.text.contains("(invalid_scope)"), "{answer:?}");
}

/// As a client does it: what it is refused for says what to ask for, and the person lets it.
#[tokio::test]
async fn a_client_that_lacks_a_scope_comes_back_with_what_it_was_told_to_ask_for() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let made = json!({"name": "Bees", "slug": "bees"});
    assert_eq!(send(&service, &ada.token, Method::POST, "/api/v1/repositories", &made).await.status, 201);
    let id = client(&service).await;
    let resource = format!("{}{MCP}", service.url);
    let let_in = async |scope: &str| {
        let mut asked = request(&id, scope);
        asked.push(("resource", resource.clone()));
        let mut browser = Browser::default();
        let page = browser.ask(&service, &asked).await;
        let page = browser.sign_in(&service, &page, &ada.email).await;
        let answer = browser.decide(&service, &page, "allow").await;
        let tokens = exchange(&service, &id, &parameter(&answer, "code").unwrap()).await.json();
        tokens["access_token"].as_str().unwrap().to_owned()
    };
    let add = calling("add_source", &json!({"repository": "bees", "doi": "10.1000/182"}));
    let refused = rpc(&service, &let_in("mcp read").await, &add).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let challenge = refused.header("www-authenticate");
    let scope = challenge.split("scope=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let added = rpc(&service, &let_in(scope).await, &add).await.json();
    assert_eq!(added["result"]["structuredContent"]["existing"], false, "{added}");
}
