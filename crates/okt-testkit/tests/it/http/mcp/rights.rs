//! Who may call which tool: whoever may call the REST route that does the same.

use std::collections::BTreeSet;

use http::Method;
use okt_model::RepositoryId;
use okt_testkit::accounts::{access_token, api_key, count, give, register, repository, send, session};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use super::{PERMISSIONS, calling, rpc, told};

/// A tool with arguments, and the route that does the same.
struct Pair {
    tool: &'static str,
    arguments: Value,
    method: Method,
    path: String,
    body: Option<Value>,
}

#[expect(clippy::too_many_lines, reason = "a pair for each tool")]
fn pairs(repository: &str) -> Vec<Pair> {
    let id = RepositoryId::mint().to_string();
    let below = |rest: &str| format!("/api/v1/repositories/{repository}{rest}");
    let get = |tool, arguments: Value, rest: String| {
        let (method, path) = (Method::GET, below(&rest));
        Pair { tool, arguments, method, path, body: None }
    };
    let post = |tool, arguments: Value, rest: &str, body: Value| {
        let (method, path) = (Method::POST, below(rest));
        Pair { tool, arguments, method, path, body: Some(body) }
    };
    let fetch = |kind: &str| json!({"id": format!("{kind}:{id}@{repository}")});
    let r = repository;
    let mut pairs = vec![
        get("search", json!({"query": format!("bees repo:{r}")}), "/search?q=bees".to_owned()),
        get("fetch", fetch("fact"), format!("/facts/{id}")),
        get("fetch", fetch("concept"), format!("/concepts/{id}")),
        get("fetch", fetch("source"), format!("/sources/{id}")),
        get("fetch", fetch("report"), format!("/reports/{id}")),
        get("search_facts", json!({"repository": r}), "/facts".to_owned()),
        get(
            "search_facts",
            json!({"repository": r, "query": "bees"}),
            "/search?q=bees&types=facts".to_owned(),
        ),
        get("get_fact", json!({"repository": r, "fact_id": id}), format!("/facts/{id}")),
        get("find_contradictions", json!({"repository": r}), "/contradictions".to_owned()),
        get("search_concepts", json!({"repository": r}), "/concepts".to_owned()),
        get("get_concept", json!({"repository": r, "concept_id": id}), format!("/concepts/{id}")),
        get(
            "related_concepts",
            json!({"repository": r, "concept_id": id}),
            format!("/concepts/{id}/relations"),
        ),
        get("list_sources", json!({"repository": r}), "/sources".to_owned()),
        get("get_source", json!({"repository": r, "source_id": id}), format!("/sources/{id}")),
        get("get_progress", json!({"repository": r, "job_id": id}), format!("/jobs/{id}")),
        get("list_reports", json!({"repository": r}), "/reports".to_owned()),
        get("get_report", json!({"repository": r, "report_id": id}), format!("/reports/{id}")),
        get(
            "get_investigation",
            json!({"repository": r, "investigation_id": id}),
            format!("/investigations/{id}"),
        ),
        post(
            "find_evidence",
            json!({"repository": r, "claim": "Bees dance."}),
            "/evidence",
            json!({"claim": "Bees dance."}),
        ),
        post(
            "ask",
            json!({"repository": r, "question": "Do bees dance?", "mode": "extractive"}),
            "/ask",
            json!({"question": "Do bees dance?", "mode": "extractive"}),
        ),
        post(
            "check_text",
            json!({"repository": r, "text": "Bees dance."}),
            "/check",
            json!({"text": "Bees dance."}),
        ),
        post(
            "discover_sources",
            json!({"repository": r, "query": "bees"}),
            "/sources/search",
            json!({"query": "bees"}),
        ),
        post(
            "estimate_cost",
            json!({"repository": r, "source_ids": []}),
            "/sources/estimate",
            json!({"source_ids": []}),
        ),
        post(
            "add_source",
            json!({"repository": r, "doi": "10.1000/182"}),
            "/sources",
            json!({"doi": "10.1000/182"}),
        ),
        post(
            "create_report",
            json!({"repository": r, "title": "Bees", "markdown": "Bees dance."}),
            "/reports",
            json!({"title": "Bees", "body_markdown": "Bees dance."}),
        ),
        post(
            "create_investigation",
            json!({"repository": r, "title": "Bees"}),
            "/investigations",
            json!({"title": "Bees"}),
        ),
        post(
            "add_to_investigation",
            json!({"repository": r, "investigation_id": id, "source_id": id}),
            &format!("/investigations/{id}/sources"),
            json!({"source_id": id}),
        ),
    ];
    pairs.push(Pair {
        tool: "update_report",
        arguments: json!({"repository": r, "report_id": id, "title": "Wasps"}),
        method: Method::PUT,
        path: below(&format!("/reports/{id}")),
        body: Some(json!({"title": "Wasps"})),
    });
    pairs.push(Pair {
        tool: "list_repositories",
        arguments: json!({}),
        method: Method::GET,
        path: "/api/v1/repositories".to_owned(),
        body: None,
    });
    pairs
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Through,
    Forbidden,
    /// Told that there is no such repository.
    Nowhere,
}

fn came(code: Option<&str>, detail: Option<&str>) -> Came {
    match (code, detail) {
        (Some("forbidden"), _) => Came::Forbidden,
        (Some("not_found"), Some("repository not found")) => Came::Nowhere,
        _ => Came::Through,
    }
}

fn by_route(answer: &Answer) -> Came {
    assert_ne!(answer.status, 401, "{answer:?}");
    let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    came(body["code"].as_str(), body["detail"].as_str())
}

fn by_tool(answer: &Answer) -> Came {
    assert_ne!(answer.status, 401, "{answer:?}");
    let body = answer.json();
    assert!(body["error"].is_null(), "{body}");
    let told = body["result"]["content"][0]["text"].as_str().filter(|_| body["result"]["isError"] == true);
    let error: Value = told.map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default();
    assert_ne!(error["code"], "internal", "{error}");
    came(error["code"].as_str(), error["detail"].as_str())
}

async fn ask(service: &TestService, token: &str, pair: &Pair) -> Answer {
    match &pair.body {
        Some(body) => send(service, token, pair.method.clone(), &pair.path, body).await,
        None => service.get_as(token, &pair.path).await,
    }
}

#[tokio::test]
async fn a_tool_lets_those_in_whom_its_route_lets_in() {
    let service = TestService::product(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let repository = repository(&service).await.to_string();
    let sysadmin = register(&service, "sysadmin").await;
    let mut tokens = vec![
        ("the sysadmin's key", api_key(&service, &sysadmin, &PERMISSIONS).await.1),
        ("the sysadmin's client", access_token(&service, sysadmin.id, "mcp read source:write").await),
        ("a key for almost nothing", api_key(&service, &sysadmin, &["repository:read"]).await.1),
    ];
    for role in ["stranger", "viewer", "curator", "editor", "repoadmin"] {
        let mut person = register(&service, role).await;
        if role != "stranger" {
            give(&service, person.id, &repository, role).await;
        }
        person.token = session(&service, person.id).await;
        tokens.push((role, api_key(&service, &person, &PERMISSIONS).await.1));
        tokens.push((role, access_token(&service, person.id, "mcp read").await));
    }
    let pairs = pairs(&repository);
    let mut seen = BTreeSet::new();
    for (who, token) in &tokens {
        for pair in &pairs {
            let expected = by_route(&ask(&service, token, pair).await);
            let answer = rpc(&service, token, &calling(pair.tool, &pair.arguments)).await;
            let case = format!("{who}: {} {}: {answer:?}", pair.tool, pair.arguments);
            if answer.status == 403 {
                // A client is told to ask for more before anybody looks where.
                assert_ne!(expected, Came::Through, "{case}");
            } else {
                assert_eq!(by_tool(&answer), expected, "{case}");
            }
            seen.insert(format!("{expected:?}"));
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    // Every tool is here.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let list = rpc(&service, &tokens[0].1, &message).await.json();
    let names: BTreeSet<_> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, pairs.iter().map(|pair| pair.tool).collect());
}

#[tokio::test]
async fn a_client_is_told_what_to_ask_for_before_anything_is_done() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let made = json!({"name": "Bees", "slug": "bees"});
    assert_eq!(send(&service, &ada.token, Method::POST, "/api/v1/repositories", &made).await.status, 201);
    let add = json!({"repository": "bees", "doi": "10.1000/182"});
    let token = access_token(&service, ada.id, "mcp read").await;
    let sources = async || {
        let listed = service.get_as(&ada.token, "/api/v1/repositories/bees/sources").await.json();
        listed["data"].as_array().map(Vec::len)
    };
    for (tool, arguments, scope) in [
        ("add_source", add.clone(), "mcp read source:write"),
        (
            "add_to_investigation",
            json!({"repository": "bees", "investigation_id": ada.id, "candidates": ["10.1000/182"]}),
            "mcp read investigation:update source:write",
        ),
        ("create_report", json!({}), "mcp read report:write"),
    ] {
        let answer = rpc(&service, &token, &calling(tool, &arguments)).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (403, "forbidden"));
        let challenge = answer.header("www-authenticate");
        let expected =
            format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"");
        assert!(challenge.starts_with(&expected), "{challenge}");
        assert!(challenge.contains("/.well-known/oauth-protected-resource/mcp\""), "{challenge}");
    }
    assert_eq!(sources().await, Some(0));
    let denied = "SELECT count(*) FROM okt_system.audit WHERE action = 'request.denied'";
    assert!(count(&service, denied).await >= 3);
    let audit = service.get_as(&ada.token, "/api/v1/admin/audit?limit=100").await.json();
    for entry in audit["data"].as_array().unwrap() {
        let through = if entry["action"] == "request.denied" { json!("mcp") } else { Value::Null };
        assert_eq!(entry["via"], through, "{entry}");
    }
    // With the union of both it is done.
    let token = access_token(&service, ada.id, "mcp read source:write").await;
    let added = told(&service, &token, "add_source", &add).await;
    assert_eq!((&added["existing"], sources().await), (&json!(false), Some(1)), "{added}");
    // Whoever could not do it with any scope is refused by the tool.
    let bob = register(&service, "bob").await;
    let id = service.get_as(&ada.token, "/api/v1/repositories/bees").await.json();
    give(&service, bob.id, id["id"].as_str().unwrap(), "viewer").await;
    for scope in ["mcp read source:write", "mcp read"] {
        let token = access_token(&service, bob.id, scope).await;
        let error = super::refused(&service, &token, "add_source", &add).await;
        assert_eq!(error["code"], "forbidden", "{scope}: {error}");
    }
    // Who may do it in a repository of their own is asked where none is named, and where theirs is.
    let own = json!({"name": "Wasps", "slug": "wasps"});
    assert_eq!(send(&service, &bob.token, Method::POST, "/api/v1/repositories", &own).await.status, 201);
    let token = access_token(&service, bob.id, "mcp read").await;
    for (arguments, status) in [
        (json!({"doi": "10.1000/182"}), 403),
        (json!({"repository": "wasps", "doi": "10.1000/182"}), 403),
        (json!({"repository": "bees", "doi": "10.1000/182"}), 200),
        (json!({"repository": "nowhere", "doi": "10.1000/182"}), 200),
    ] {
        let answer = rpc(&service, &token, &calling("add_source", &arguments)).await;
        assert_eq!(answer.status, status, "{arguments}: {answer:?}");
    }
}
