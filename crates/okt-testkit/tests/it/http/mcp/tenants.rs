//! No tool leads from one repository into another.

use http::Method;
use okt_testkit::accounts::{register, send};
use serde_json::{Value, json};

use super::{agent, call, furnished, told};

#[tokio::test]
async fn nothing_of_one_repository_opens_in_another() {
    let (app, known) = furnished().await;
    let bob = register(&app.service, "bob").await;
    let made = json!({"name": "Bob's", "slug": "bobs"});
    assert_eq!(send(&app.service, &bob.token, Method::POST, "/api/v1/repositories", &made).await.status, 201);
    let key = agent(&app.service, &bob).await;
    let theirs = app.repository.to_string();
    let slug = app.read(&format!("/api/v1/repositories/{theirs}")).await["slug"].as_str().unwrap().to_owned();

    let mut arguments: Vec<(&str, Value)> = vec![
        ("get_fact", json!({"fact_id": known.fact})),
        ("search_facts", json!({"source_id": known.source})),
        ("search_facts", json!({"concept_id": known.concept})),
        ("search_facts", json!({"query": "bees"})),
        ("find_evidence", json!({"claim": super::SUN})),
        ("check_text", json!({"text": super::SUN})),
        ("find_contradictions", json!({})),
        ("search_concepts", json!({})),
        (
            "get_concept",
            json!({"concept_id": known.concept, "include": ["summaries", "sources", "relations"]}),
        ),
        ("related_concepts", json!({"concept_id": known.concept})),
        ("get_source", json!({"source_id": known.source, "include": ["text", "facts"]})),
        ("list_sources", json!({"query": "bees"})),
        ("estimate_cost", json!({"source_ids": [known.source]})),
        ("get_progress", json!({"job_id": known.job})),
        ("get_progress", json!({"source_id": known.source})),
        ("get_progress", json!({"report_id": known.report})),
        ("list_reports", json!({})),
        ("list_reports", json!({"parent_id": known.report})),
        ("get_report", json!({"report_id": known.report})),
        ("update_report", json!({"report_id": known.report, "title": "Mine"})),
        ("create_report", json!({"title": "t", "markdown": "Bees.", "parent_id": known.report})),
        ("get_investigation", json!({"investigation_id": known.investigation})),
        ("add_to_investigation", json!({"investigation_id": known.investigation, "source_id": known.source})),
        ("add_source", json!({"doi": "10.1000/182", "investigation_id": known.investigation})),
        ("list_repositories", json!({})),
        ("search", json!({"query": "bees hive sun"})),
        ("search", json!({"query": format!("bees repo:{slug}")})),
    ];
    let ids = [
        ("fact", &known.fact),
        ("concept", &known.concept),
        ("source", &known.source),
        ("report", &known.report),
    ];
    for (kind, id) in ids {
        for at in ["", "@bobs", &format!("@{slug}"), &format!("@{theirs}")] {
            arguments.push(("fetch", json!({"id": format!("{kind}:{id}{at}")})));
        }
    }
    for (tool, arguments) in &arguments {
        let mut tried = vec![arguments.clone()];
        if !["search", "fetch", "list_repositories"].contains(tool) {
            for named in [&theirs, &slug] {
                let mut there = arguments.clone();
                there["repository"] = json!(named);
                tried.push(there);
            }
        }
        for arguments in tried {
            let result = call(&app.service, &key, tool, &arguments).await.to_string();
            for word in ["position of the sun", "Varroa mites", "On bees", "bees.txt", "How bees"] {
                // What was asked is repeated, and says nothing.
                let asked = arguments.to_string().contains(word);
                assert!(asked || !result.contains(word), "{tool} {arguments}: {result}");
            }
            if arguments["repository"].is_string() {
                assert!(result.contains("repository not found"), "{tool} {arguments}: {result}");
            }
        }
    }
    // The owner does find it.
    let key = agent(&app.service, &app.owner).await;
    let found = told(&app.service, &key, "search", &json!({"query": "bees hive sun"})).await;
    assert!(found.to_string().contains("position of the sun"), "{found}");
}
