//! Investigations: sources that belong to one question, what they say, how far they are and what they cost.

mod candidates;
mod contents;
mod links;
mod progress;
mod records;

use okt_model::{FactStatus, SourceId};
use okt_testkit::app::TestApp;
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use serde_json::{Value, json};

/// Begins an investigation; returns its id.
async fn begin(app: &TestApp, title: &str) -> String {
    let made = app.post("/investigations", &json!({"title": title})).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["id"].as_str().unwrap().to_owned()
}

/// A source that says this.
async fn say(app: &TestApp, texts: &[&str]) -> SourceId {
    let databases = app.service.api.app.databases();
    let source = insert_source(databases, app.repository).await;
    let facts: Vec<_> = texts.iter().map(|text| new_fact(text)).collect();
    replace_facts(databases, app.repository, source, &facts, FactStatus::Stable).await;
    source
}

/// Adds a source of the repository; says whether it is new there.
async fn add(app: &TestApp, investigation: &str, source: SourceId) -> bool {
    let body = json!({"source_id": source});
    let added = app.post(&format!("/investigations/{investigation}/sources"), &body).await;
    assert_eq!(added.status, 200, "{added:?}");
    let added = added.json();
    assert_eq!(added["data"][0]["source_id"], json!(source), "{added}");
    added["data"][0]["linked"].as_bool().unwrap()
}

/// One field of all rows of a list, read in pages of this size.
async fn column(app: &TestApp, list: &str, limit: usize, field: &str) -> Vec<String> {
    let separator = if list.contains('?') { '&' } else { '?' };
    let first = format!("{list}{separator}limit={limit}");
    let (mut seen, mut path) = (Vec::new(), first.clone());
    loop {
        let page = app.read(&path).await;
        let rows = page["data"].as_array().unwrap();
        assert!(rows.len() <= limit, "{page:#}");
        seen.extend(rows.iter().map(|row| row[field].as_str().unwrap().to_owned()));
        match &page["next_cursor"] {
            Value::String(cursor) => path = format!("{first}&cursor={cursor}"),
            _ => return seen,
        }
    }
}

async fn investigation(app: &TestApp, id: &str) -> Value {
    app.read(&format!("/investigations/{id}")).await
}
