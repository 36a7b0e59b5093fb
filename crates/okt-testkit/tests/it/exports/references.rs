//! The sources of an investigation as references.

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use serde_json::json;

use super::say;

async fn begin(app: &TestApp) -> String {
    let made = app.post("/investigations", &json!({"title": "Bees"})).await;
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn export(app: &TestApp, investigation: &str, format: &str) -> Answer {
    app.get(&format!("/investigations/{investigation}/export?format={format}")).await
}

#[tokio::test]
async fn every_source_is_there_once_in_every_format() {
    let app = TestApp::start().await;
    let id = begin(&app).await;
    // More than two pages, and one source that is not in it.
    let mut keys = Vec::new();
    for n in 0..120 {
        let source = say(&app, app.repository, &format!("Bees & {{honey}} {n}"), &[]).await;
        let body = json!({"source_id": source});
        let added = app.post(&format!("/investigations/{id}/sources"), &body).await;
        assert_eq!(added.status, 200, "{added:?}");
        keys.push(format!("okt-{}", source.uuid().simple()));
    }
    say(&app, app.repository, "Wasps", &[]).await;
    keys.reverse();
    let first = |text: &str, before: &str, after: char| -> Vec<String> {
        let parts = text.split(before).skip(1);
        parts.map(|rest| rest.split(after).next().unwrap().trim().to_owned()).collect()
    };

    let bibtex = export(&app, &id, "bibtex").await;
    assert_eq!(bibtex.header("content-type"), "application/x-bibtex; charset=utf-8");
    assert!(bibtex.header("content-disposition").starts_with(&format!("attachment; filename=\"{id}.bib\"")));
    assert_eq!(
        bibtex.header("content-security-policy"),
        "sandbox; default-src 'none'; frame-ancestors 'none'"
    );
    assert_eq!(first(&bibtex.text, "@misc{", ','), keys);
    assert!(bibtex.text.contains("title = {{Bees \\& \\textbraceleft{}honey\\textbraceright{} 7}}"));
    assert!(bibtex.text.contains("author = {Moss, Ada and Ode, Ben}") && !bibtex.text.contains("Wasps"));

    let ris = export(&app, &id, "ris").await;
    assert_eq!(ris.header("content-type"), "application/x-research-info-systems; charset=utf-8");
    assert_eq!(first(&ris.text, "ID  - ", '\r'), keys);
    assert_eq!(ris.text.matches("ER  - ").count(), 120);

    let csl = export(&app, &id, "csl").await;
    assert_eq!(csl.header("content-type"), "application/vnd.citationstyles.csl+json");
    let items = csl.json();
    let ids: Vec<&str> = items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, keys);
    assert_eq!(items[0]["title"], "Bees & {honey} 119");
    assert_eq!(items[0]["author"][1], json!({"family": "Ode", "given": "Ben"}));
    assert_eq!(items[0]["issued"], json!({"date-parts": [[2020, 3, 14]]}));
}

#[tokio::test]
async fn a_retracted_source_says_so() {
    let app = TestApp::start().await;
    let id = begin(&app).await;
    let source = say(&app, app.repository, "Bees", &[]).await;
    app.post(&format!("/investigations/{id}/sources"), &json!({"source_id": source})).await;
    assert!(!export(&app, &id, "bibtex").await.text.contains("note"));
    let mark = json!({"kind": "retracted", "reason": "half of it\nwas made up"});
    let marked = app.put(&format!("/sources/{source}/mark"), &mark).await;
    assert_eq!(marked.status, 200, "{marked:?}");
    for (format, expected) in [
        ("bibtex", "note = {Retracted: half of it was made up}"),
        ("ris", "N1  - Retracted: half of it was made up\r\n"),
        ("csl", "\"note\":\"Retracted: half of it was made up\""),
    ] {
        let text = export(&app, &id, format).await.text;
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[tokio::test]
async fn what_can_not_be_exported_is_refused() {
    let app = TestApp::start().await;
    let id = begin(&app).await;
    for (format, expected) in [("bibtex", ""), ("ris", ""), ("csl", "[]\n")] {
        let empty = export(&app, &id, format).await;
        assert_eq!((empty.status.as_u16(), &*empty.text), (200, expected), "{format}");
    }
    let nothing = export(&app, "0197a3c0-0000-7000-8000-00000000000a", "csl").await;
    assert_eq!((nothing.status.as_u16(), nothing.problem()), (404, "not_found".to_owned()));
    for query in ["?format=docx", "?format=csl&format=ris", "?format=csl&all=true"] {
        let refused = app.get(&format!("/investigations/{id}/export{query}")).await;
        assert_eq!(refused.status, 422, "{query}: {refused:?}");
    }
    // A viewer may have what a viewer can read anyway, but not the repository as a whole.
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let seen = app.get_as(&viewer, &format!("/investigations/{id}/export?format=csl")).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    let refused = app.get_as(&viewer, "/export?format=csv").await;
    assert_eq!(refused.status, 403, "{refused:?}");
    give(&app.service, viewer.id, &app.repository.to_string(), "editor").await;
    let seen = app.send(&viewer, Method::GET, "/export?format=csv", &json!(null)).await;
    assert_eq!(seen.status, 200, "{seen:?}");
}
