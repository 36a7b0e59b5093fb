use okt_http::LineKind;
use okt_testkit::served::TestService;
use okt_testkit::{golden, notes};
use serde_json::Value;

#[tokio::test]
async fn the_openapi_document_is_as_committed_and_as_served() {
    let service = TestService::product(&[]).await;
    let served = service.get("/api/v1/openapi.json").await;
    assert_eq!(served.header("content-type"), "application/json");
    assert_eq!(served.json()["openapi"], "3.1.0");
    let document = served.json();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let mut ids: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids of operations are unique");
    golden::check("crates/okt-api/openapi.json", &format!("{}\n", served.text));
}

#[test]
fn the_list_of_errors_is_as_committed() {
    golden::check("docs/ERRORS.md", &okt_api::errors_page());
}

#[test]
fn the_list_of_commands_is_as_committed() {
    golden::check("docs/CLI.md", &okt_cli::commands_page());
}

/// Every line of the table is in the document with its guard, and nothing else is.
#[tokio::test]
async fn the_document_and_the_table_say_the_same() {
    let service = TestService::notes(&[]).await;
    let routes = notes::routes(&service.api);
    let document = serde_json::to_value(routes.openapi()).unwrap();
    let mut documented = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            documented.push(format!(
                "{} {path} {}",
                method.to_uppercase(),
                operation["x-guard"].as_str().unwrap()
            ));
        }
    }
    let described = routes.lines().iter().filter_map(|line| Some((line.method.as_ref()?, line)));
    let described = described.filter(|(_, line)| line.kind == LineKind::Handler);
    let mut lines: Vec<_> =
        described.map(|(method, line)| format!("{method} {} {}", line.path, line.guard)).collect();
    documented.sort();
    lines.sort();
    assert_eq!(documented, lines);

    let create = &document["paths"]["/notes"]["post"];
    let statuses: Vec<_> = create["responses"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        statuses,
        ["201", "400", "401", "408", "409", "413", "414", "415", "422", "429", "500", "503"]
    );
    assert_eq!(create["security"], serde_json::json!([{"bearer": []}]));
    assert_eq!(create["parameters"][0]["name"], "Idempotency-Key");
    assert_eq!(document["paths"]["/notes/{id}"]["get"]["security"], Value::Array(vec![]));
}

/// Scripts that are served beside it and no others, and nothing that would have to be fetched from elsewhere.
#[tokio::test]
async fn the_page_needs_no_other_host() {
    let service = TestService::product(&[]).await;
    let page = service.get("/api/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    for fetched in ["http://", "https://", "src=\"//", "<iframe", "<script>"] {
        assert!(!page.text.contains(fetched), "{fetched}");
    }
    let policy = page.header("content-security-policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
    assert!(!policy.contains("eval") && !policy.contains("http"), "{policy}");
    // Served at its own address alone, under its own policy.
    assert_ne!(service.get("/docs.html").await.status, 200);
}

#[tokio::test]
async fn the_document_explains_every_problem() {
    let service = TestService::product(&[]).await;
    let document = service.get("/api/v1/openapi.json").await.json();
    let problem = service.get("/nowhere").await.json();
    let (_, anchor) = problem["type"].as_str().unwrap().split_once('#').unwrap();
    let problems = document["x-problems"].as_array().unwrap();
    let found = problems.iter().find(|one| anchor == format!("problem-{}", one["code"].as_str().unwrap()));
    let found = found.unwrap_or_else(|| panic!("{anchor}"));
    assert_eq!((&found["status"], &found["title"]), (&problem["status"], &problem["title"]));
    assert!(!found["advice"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn presets_are_listed_with_the_default_marked() {
    let service = TestService::product(&[]).await;
    let page = service.get("/api/v1/repositories/presets").await.json();
    let presets = page["data"].as_array().unwrap();
    let ids: Vec<_> = presets.iter().map(|preset| preset["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["enterprise", "general", "scientific"]);
    let general = presets.iter().find(|preset| preset["default"] == true).unwrap();
    assert_eq!(general["id"], "general");
    assert_eq!(general["contexts"], "all");
    let enterprise = &presets[0];
    assert_eq!(enterprise["contexts"], serde_json::json!([]));
    assert_eq!(enterprise["custom_contexts"].as_array().unwrap().len(), 3);
}
