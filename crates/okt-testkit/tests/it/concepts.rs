//! Concepts: from facts to what they are about, with and without a model.

mod extraction;
mod faults;

use std::collections::BTreeSet;

use okt_testkit::app::TestApp;
use serde_json::Value;

/// A source whose facts were read for concepts.
async fn read_for_concepts(app: &TestApp, source: &str) -> Value {
    app.until(source, |seen| !seen["extraction"]["concepts"].is_null()).await
}

/// What a fact mentions: names and contexts.
async fn mentioned(app: &TestApp, fact: &Value) -> BTreeSet<(String, String)> {
    let seen = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
    let concepts = seen["concepts"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    concepts.iter().map(|one| (text(&one["canonical_name"]), text(&one["context"]))).collect()
}
