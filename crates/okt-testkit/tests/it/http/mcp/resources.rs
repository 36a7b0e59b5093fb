//! Resources, prompts and completion.

use http::Method;
use okt_testkit::accounts::{register, send};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use serde_json::{Value, json};

use super::{ACCEPT, Known, MCP, agent, furnished, rpc};

async fn ask(app: &TestApp, key: &str, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
    let answer = rpc(&app.service, key, &message).await;
    assert_eq!(answer.status, 200, "{method} {params}: {answer:?}");
    answer.json()
}

/// The addresses of everything there is.
fn addresses(known: &Known, repository: &str) -> Vec<String> {
    vec![
        format!("okt://r/{repository}"),
        format!("okt://r/{repository}/fact/{}", known.fact),
        format!("okt://r/{repository}/concept/{}", known.concept),
        format!("okt://r/{repository}/source/{}", known.source),
        format!("okt://r/{repository}/report/{}", known.report),
    ]
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let (app, known) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let listed = ask(&app, &key, "resources/list", &json!({})).await;
    let rows = listed["result"]["resources"].as_array().unwrap().clone();
    assert_eq!((rows.len(), &rows[0]["uri"]), (2, &json!("okt://repositories")), "{listed}");
    assert_eq!(
        (&listed["result"]["ttlMs"], &listed["result"]["cacheScope"]),
        (&json!(60_000), &json!("private"))
    );
    let slug = rows[1]["name"].as_str().unwrap().to_owned();
    let templates = ask(&app, &key, "resources/templates/list", &json!({})).await;
    let templates = templates["result"]["resourceTemplates"].as_array().unwrap().clone();
    assert_eq!(templates.len(), 5);
    assert!(
        templates.iter().all(|one| one["uriTemplate"].as_str().unwrap().starts_with("okt://r/{repository}/"))
    );

    let mut uris = addresses(&known, &slug);
    uris.push("okt://repositories".to_owned());
    for uri in &uris {
        let read = ask(&app, &key, "resources/read", &json!({ "uri": uri })).await;
        let content = &read["result"]["contents"][0];
        assert_eq!(content["uri"], *uri, "{read}");
        let text = content["text"].as_str().unwrap();
        if uri.contains("/report/") {
            assert_eq!(content["mimeType"], "text/markdown");
            assert!(text.starts_with("# Bees"), "{text}");
            continue;
        }
        // What REST says.
        let path = match uri.strip_prefix(&format!("okt://r/{slug}")) {
            None => "/api/v1/repositories".to_owned(),
            Some("") => format!("/api/v1/repositories/{slug}"),
            Some(rest) => {
                let (kind, id) = rest[1..].split_once('/').unwrap();
                let parts = if kind == "source" { "?include=" } else { "" };
                format!("/api/v1/repositories/{slug}/{kind}s/{id}{parts}")
            }
        };
        let mut expected = app.read(&path).await;
        if uri == "okt://repositories" {
            expected = expected["data"].take();
        }
        let mut read: Value = serde_json::from_str(text).unwrap();
        // A key has no roles of its own.
        for view in [&mut expected, &mut read] {
            match view {
                Value::Array(rows) => rows.iter_mut().for_each(|row| row["roles"] = Value::Null),
                view => view["roles"] = Value::Null,
            }
        }
        assert_eq!(read, expected, "{uri}");
    }
}

#[tokio::test]
async fn what_is_hidden_answers_as_what_is_not_there() {
    let (app, known) = furnished().await;
    let bob = register(&app.service, "bob").await;
    let made = json!({"name": "Bob's", "slug": "bobs"});
    assert_eq!(send(&app.service, &bob.token, Method::POST, "/api/v1/repositories", &made).await.status, 201);
    let key = agent(&app.service, &bob).await;
    let slug = app.read(&format!("/api/v1/repositories/{}", app.repository)).await["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut uris = addresses(&known, &slug);
    uris.extend(addresses(&known, &app.repository.to_string()));
    uris.extend(addresses(&known, "bobs").into_iter().skip(1));
    uris.extend(
        [
            "okt://",
            "okt://r",
            "okt://r/no-such",
            "okt://r/bobs/fact/x",
            "https://example.org",
            "okt://r/bobs/source/x/page/0",
        ]
        .map(str::to_owned),
    );
    for uri in &uris {
        let read = ask(&app, &key, "resources/read", &json!({ "uri": uri })).await;
        let error = &read["error"];
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!(uri)), "{read}");
        assert_eq!(error["message"], "resource not found");
    }
    let listed = ask(&app, &key, "resources/list", &json!({})).await.to_string();
    assert!(listed.contains("bobs") && !listed.contains(&slug), "{listed}");
    let reference = json!({"type": "ref/resource", "uri": "okt://r/{repository}/fact/{id}"});
    for (begun, expected) in [("", json!(["bobs"])), (&*slug, json!([]))] {
        let params = json!({"ref": reference, "argument": {"name": "repository", "value": begun}});
        let completed = ask(&app, &key, "completion/complete", &params).await;
        assert_eq!(completed["result"]["completion"]["values"], expected, "{begun}: {completed}");
    }
    // The newest revision has another code for it.
    let uri = format!("okt://r/{slug}");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri, "_meta": meta}});
    let request = app.service.request(Method::POST, MCP).bearer_auth(&key).header("accept", ACCEPT);
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "resources/read");
    let answer = Answer::of(request.header("mcp-name", &uri).json(&message)).await.json();
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["uri"]),
        (&json!(-32602), &json!(uri)),
        "{answer}"
    );
}

#[tokio::test]
async fn prompts_say_how_to_work_and_slugs_are_completed() {
    let (app, _) = furnished().await;
    let key = agent(&app.service, &app.owner).await;
    let listed = ask(&app, &key, "prompts/list", &json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap().clone();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["audit_report", "research", "weigh_claim"]);
    let tools = ask(&app, &key, "tools/list", &json!({})).await.to_string();
    for prompt in &prompts {
        let subject = prompt["arguments"][0]["name"].as_str().unwrap();
        let arguments = json!({subject: "What do \"bees\" do?", "repository": "bees"});
        let got =
            ask(&app, &key, "prompts/get", &json!({"name": prompt["name"], "arguments": arguments})).await;
        let messages = got["result"]["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2, "{got}");
        let (way, task) = (
            messages[0]["content"]["text"].as_str().unwrap(),
            messages[1]["content"]["text"].as_str().unwrap(),
        );
        assert!(task.contains("What do \"bees\" do?") && task.ends_with("Repository: bees"), "{task}");
        // Every tool that it names is one.
        for word in way.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| word.contains('_'))
        {
            let known = tools.contains(&format!("\"name\":\"{word}\"")) || tools.contains(word);
            assert!(known, "{word}");
        }
    }
    for (params, what) in [
        (json!({"name": "none"}), "no such prompt"),
        (json!({"name": "research"}), "question"),
        (json!({"name": "research", "arguments": {"question": " "}}), "question"),
        (json!({"name": "research", "arguments": {"question": "x", "more": "y"}}), "more"),
    ] {
        let error = ask(&app, &key, "prompts/get", &params).await["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(what), "{error}");
    }
    let slug = app.read(&format!("/api/v1/repositories/{}", app.repository)).await["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    let prompt = json!({"type": "ref/prompt", "name": "research"});
    for (reference, name, value, expected) in [
        (prompt.clone(), "repository", &slug[..1], vec![slug.clone()]),
        (prompt.clone(), "repository", "zzz", vec![]),
        (prompt.clone(), "question", "", vec![]),
        (
            json!({"type": "ref/resource", "uri": "okt://r/{repository}/fact/{id}"}),
            "repository",
            "",
            vec![slug.clone()],
        ),
        (json!({"type": "ref/resource", "uri": "okt://r/{repository}/fact/{id}"}), "id", "", vec![]),
    ] {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        let completed = ask(&app, &key, "completion/complete", &params).await;
        assert_eq!(completed["result"]["completion"]["values"], json!(expected), "{params}: {completed}");
    }
    let unknown =
        json!({"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "x", "value": ""}});
    assert_eq!(ask(&app, &key, "completion/complete", &unknown).await["error"]["code"], -32602);
    let initialized = ask(&app, &key, "initialize", &json!({})).await;
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(initialized["result"]["capabilities"][capability].is_object(), "{initialized}");
    }
}
