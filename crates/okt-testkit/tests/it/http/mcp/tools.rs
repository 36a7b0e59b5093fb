//! Every tool once, against a service with something in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::{ACCEPT, MCP, agent, call, calling, events, furnished, refused, rpc, told};

/// What of a value is not as the schema says.
fn wrong(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    if let Some(branches) = schema["oneOf"].as_array() {
        let fits = branches.iter().any(|branch| wrong(branch, value, path).is_empty());
        return if fits { Vec::new() } else { vec![format!("{path}: none of {branches:?}")] };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.is_empty() || types.contains(&kind) || (kind == "integer" && types.contains(&"number"));
    let mut found = if fits { Vec::new() } else { vec![format!("{path}: {kind} for {types:?}")] };
    match value {
        Value::Object(object) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !object.contains_key(name) {
                    found.push(format!("{path}.{name} is missing"));
                }
            }
            for (name, value) in object {
                match schema["properties"].get(name) {
                    Some(schema) => found.extend(wrong(schema, value, &format!("{path}.{name}"))),
                    None if schema["properties"].is_object() && name != "truncated" => {
                        found.push(format!("{path}.{name} is not in the schema"));
                    }
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            found.extend(items.iter().flat_map(|item| wrong(&schema["items"], item, &format!("{path}[]"))));
        }
        _ => {}
    }
    found
}

#[tokio::test]
async fn every_tool_does_what_it_says() {
    let (app, known) = furnished().await;
    let service = &app.service;
    let key = agent(service, &app.owner).await;
    let list = rpc(service, &key, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await.json();
    let tools = list["result"]["tools"].as_array().unwrap();
    let mut outputs: BTreeMap<&str, &Value> =
        tools.iter().map(|tool| (tool["name"].as_str().unwrap(), &tool["outputSchema"])).collect();
    let mut said: BTreeMap<&str, Value> = BTreeMap::new();
    app.web.page("/mites", Page::article("On mites"));
    for (tool, arguments) in [
        ("list_repositories", json!({})),
        ("search", json!({"query": "bees"})),
        ("fetch", json!({"id": format!("fact:{}", known.fact)})),
        ("search_facts", json!({"query": "How do bees find their hive?"})),
        ("get_fact", json!({"fact_id": known.fact})),
        ("find_evidence", json!({"claim": super::NOT_SO})),
        ("check_text", json!({"text": format!("{} {}", super::SUN, super::NOT_SO)})),
        ("find_contradictions", json!({})),
        ("search_concepts", json!({"limit": 50})),
        (
            "get_concept",
            json!({"concept_id": known.concept, "include": ["summaries", "sources", "relations"]}),
        ),
        ("related_concepts", json!({"concept_id": known.concept, "show_insignificant": true})),
        ("list_sources", json!({"query": "bees"})),
        ("get_source", json!({"source_id": known.source, "include": ["text", "facts"]})),
        ("estimate_cost", json!({"source_ids": [known.source]})),
        ("add_source", json!({"url": app.web.url("/mites"), "investigation_id": known.investigation})),
        ("get_progress", json!({"source_id": known.source})),
        ("ask", json!({"question": "How do bees find their hive?"})),
        ("list_reports", json!({})),
        ("get_report", json!({"report_id": known.report, "only": "contradicted"})),
        ("create_report", json!({"title": "Another", "markdown": super::SUN})),
        ("update_report", json!({"report_id": known.report, "title": "Still on bees"})),
        ("create_investigation", json!({"title": "Mites", "topic": "What do mites do?"})),
        ("get_investigation", json!({"investigation_id": known.investigation})),
        ("add_to_investigation", json!({"investigation_id": known.investigation, "source_id": known.source})),
    ] {
        let result = told(service, &key, tool, &arguments).await;
        let schema = outputs.remove(tool).unwrap();
        assert_eq!(wrong(schema, &result, tool), Vec::<String>::new(), "{result:#}");
        assert!(result.to_string().chars().count() <= 60_000, "{tool}");
        said.insert(tool, result);
    }
    // Nobody is there to look for sources; the tool says so.
    let error = refused(service, &key, "discover_sources", &json!({"query": "bees"})).await;
    assert!(
        ["unavailable", "not_configured", "conflict"].contains(&error["code"].as_str().unwrap()),
        "{error}"
    );
    outputs.remove("discover_sources").unwrap();
    assert!(outputs.is_empty(), "{outputs:?}");

    assert_eq!(said["search_facts"]["facts"][0]["text"], super::SUN, "{:#}", said["search_facts"]);
    let url = format!("{}/r/{}/facts/{}", service.url, slug(&said), known.fact);
    assert_eq!(said["get_fact"]["url"], url);
    assert_eq!(said["get_fact"]["sources"][0]["quotes"][0]["quote"], super::SUN);
    assert_eq!(said["find_evidence"]["state"], "contradicted");
    assert_eq!(said["find_evidence"]["contradicts"][0]["text"], super::NORWAY);
    assert_eq!(said["check_text"]["counts"]["supported"], 1);
    assert_eq!(said["check_text"]["counts"]["contradicted"], 1);
    assert!(said["get_source"]["text"].as_str().unwrap().contains(super::SUN));
    assert_eq!(said["get_source"]["facts"].as_array().unwrap().len(), 2);
    assert_eq!(said["get_progress"]["state"], "done");
    let contradicted = said["get_report"]["sentences"].as_array().unwrap();
    assert_eq!((contradicted.len(), &contradicted[0]["text"]), (1, &json!(super::NOT_SO)));
    assert_eq!(contradicted[0]["facts"][0]["posture"], "contradicts");
    assert_eq!(said["update_report"]["title"], "Still on bees");
    assert!(said["get_investigation"]["processed"].as_i64() >= Some(1), "{:#}", said["get_investigation"]);
    assert_eq!(said["add_to_investigation"]["sources"][0]["linked"], false);
    let name = said["get_concept"]["name"].clone();
    let by_name = told(service, &key, "get_concept", &json!({ "name": name })).await;
    assert_eq!(by_name["name"], name);
}

fn slug(said: &BTreeMap<&str, Value>) -> String {
    said["list_repositories"]["repositories"][0]["slug"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn lists_are_paged_and_long_ones_are_cut() {
    let (mut app, known) = furnished().await;
    app.rest();
    let key = agent(&app.service, &app.owner).await;
    app.sql(&format!(
        "INSERT INTO okt_repository.facts (repository_id, id, text, content_hash, kind, status, model, source_count)
         SELECT '{}', gen_random_uuid(), 'Fact ' || n || ' ' || repeat('word ', 790), sha256(n::text::bytea), 'text', 'stable',
                'm', 1
         FROM generate_series(1, 60) AS n",
        app.repository
    ))
    .await;
    let (mut cursor, mut seen, mut pages) = (Value::Null, Vec::new(), 0);
    loop {
        let page = told(&app.service, &key, "search_facts", &json!({"limit": 50, "cursor": cursor})).await;
        assert!(page.to_string().chars().count() <= 60_000);
        if pages == 0 {
            assert_eq!(page["truncated"], true);
        }
        seen.extend(
            page["facts"].as_array().unwrap().iter().map(|fact| fact["id"].as_str().unwrap().to_owned()),
        );
        cursor = page["next_cursor"].clone();
        pages += 1;
        if cursor.is_null() {
            break;
        }
    }
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), all), (62, 62), "{pages} pages");
    // What is shown beside one thing, too.
    app.sql(&format!(
        "INSERT INTO okt_repository.fact_contradictions (repository_id, fact_no, other_no, difference, cosine)
         SELECT f.repository_id, least(f.no, o.no), greatest(f.no, o.no), 'number', 0.9
           FROM okt_repository.facts f JOIN okt_repository.facts o ON o.repository_id = f.repository_id AND o.model = 'm'
          WHERE f.id = '{}'",
        known.fact
    ))
    .await;
    // Six characters each as they are sent.
    app.sql(&format!(
        "INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
         SELECT repository_id, no, 'alias ' || n, repeat(chr(1), 490) || n, 'model'
           FROM okt_repository.concepts, generate_series(1, 50) AS n WHERE id = '{}'",
        known.concept
    ))
    .await;
    for (tool, arguments) in [
        ("get_fact", json!({ "fact_id": known.fact })),
        ("get_concept", json!({ "concept_id": known.concept })),
    ] {
        let found = told(&app.service, &key, tool, &arguments).await;
        assert!(found.to_string().chars().count() <= 60_000, "{tool}");
        assert_eq!(found["truncated"], true, "{tool}");
    }

    let first = told(&app.service, &key, "search_facts", &json!({"limit": 3})).await;
    for (arguments, field) in [
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 51}), "limit"),
        (json!({"status": "odd"}), "status"),
        (json!({"query": "x", "sort": "newest"}), "sort"),
        (json!({"context": "Species"}), "context"),
        (json!({"concept_id": "x"}), "concept_id"),
        (json!({"nonsense": 1}), "nonsense"),
    ] {
        let error = refused(&app.service, &key, "search_facts", &arguments).await;
        assert_eq!(error["errors"][0]["field"], field, "{arguments}: {error}");
    }
    // A cursor belongs to its list.
    let elsewhere = json!({"cursor": first["next_cursor"], "status": "new"});
    assert_eq!(refused(&app.service, &key, "search_facts", &elsewhere).await["code"], "bad_cursor");
}

#[tokio::test]
async fn whoever_waits_hears_how_it_goes_and_then_the_result() {
    let (app, _) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    app.web.page("/dance", Page::article("On the dance"));
    let mut message = calling("add_source", &json!({"url": app.web.url("/dance"), "wait_s": 50}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let said = events(&rpc(&app.service, &key, &message).await);
    let (result, progress) = said.split_last().unwrap();
    let added = &result["result"]["structuredContent"];
    assert_eq!(
        (&added["progress"]["state"], &added["existing"]),
        (&json!("done"), &json!(false)),
        "{said:#?}"
    );
    let mut last = 0;
    for told in progress {
        assert_eq!(
            (&told["method"], &told["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p"))
        );
        let now = told["params"]["progress"].as_u64().unwrap();
        assert!(now > last, "{said:#?}");
        last = now;
    }
    assert!(last > 0, "{said:#?}");

    // Without a token only the result; and no longer than it takes.
    let begun = Instant::now();
    let again = json!({"url": app.web.url("/dance"), "wait_s": 50});
    let said = events(&rpc(&app.service, &key, &calling("add_source", &again)).await);
    assert_eq!(
        (said.len(), &said[0]["result"]["structuredContent"]["existing"]),
        (1, &json!(true)),
        "{said:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    let progress = json!({"source_id": added["source_id"], "wait_s": 50});
    assert_eq!(told(&app.service, &key, "get_progress", &progress).await["state"], "done");
    for wait in [51, 1000] {
        let error =
            refused(&app.service, &key, "get_progress", &json!({"job_id": added["job_id"], "wait_s": wait}))
                .await;
        assert_eq!(error["errors"][0]["field"], "wait_s", "{error}");
    }
}

#[tokio::test]
async fn a_call_with_a_key_makes_one_thing() {
    let (app, _) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let with = |title: &str| {
        let mut message = calling("create_investigation", &json!({"title": title}));
        message["params"]["_meta"] = json!({"okt/idempotency_key": "k1"});
        message
    };
    let first = rpc(&app.service, &key, &with("Once")).await.json();
    let second = rpc(&app.service, &key, &with("Once")).await.json();
    assert_eq!(first["result"], second["result"]);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.investigations WHERE title = 'Once'").await, 1);
    let other = rpc(&app.service, &key, &with("Twice")).await.json();
    assert!(
        other["result"]["content"][0]["text"].as_str().unwrap().contains("idempotency_mismatch"),
        "{other}"
    );
    // Without a key there are two.
    for _ in 0..2 {
        call(&app.service, &key, "create_investigation", &json!({"title": "Each time"})).await;
    }
    assert_eq!(
        app.count("SELECT count(*) FROM okt_repository.investigations WHERE title = 'Each time'").await,
        2
    );
}

#[tokio::test]
async fn a_repository_is_named_where_there_is_more_than_one() {
    let (app, known) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let another = json!({"name": "Wasps", "slug": "wasps"});
    assert_eq!(app.post("/api/v1/repositories", &another).await.status, 201);
    let error = refused(&app.service, &key, "get_fact", &json!({"fact_id": known.fact})).await;
    assert_eq!(error["errors"][0]["field"], "repository", "{error}");
    assert!(error["errors"][0]["message"].as_str().unwrap().contains("wasps"), "{error}");
    let there = json!({"fact_id": known.fact, "repository": "wasps"});
    assert_eq!(refused(&app.service, &key, "get_fact", &there).await["code"], "not_found");
    let here = json!({"fact_id": known.fact, "repository": app.repository.to_string()});
    told(&app.service, &key, "get_fact", &here).await;
}

#[tokio::test]
async fn what_a_browser_page_sends_is_an_answer_like_any_other() {
    let (app, _) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = app.service.request(Method::POST, MCP).bearer_auth(&key).header("accept", ACCEPT);
    let answer = Answer::of(request.header("origin", &app.service.url).json(&message)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
    for tool in &tools {
        let hints = tool["annotations"].as_object().unwrap();
        let bools = hints.values().filter(|hint| hint.is_boolean()).count();
        assert_eq!((bools, &hints["destructiveHint"]), (4, &json!(false)), "{tool}");
    }
    let bytes = serde_json::to_string(&tools).unwrap().len();
    assert!(bytes <= 40_000, "{bytes}");
}
