//! Shared registries: what is taken from one, and that nobody fails for one.

mod away;
mod bundles;
mod contributions;
mod graphs;
mod hostile;
mod imports;
mod processes;
mod service;
mod signed;
mod statements;
mod trust;
mod withdrawals;
mod withheld;

use okt_testkit::app::{TestApp, TestAppBuilder};
use okt_testkit::llm::Behaviour;
use okt_testkit::registry::StandIn;
use okt_testkit::web::Page;

const FACTS: [&str; 3] = [
    "Herring gulls nest on the cliffs of Norway.",
    "A herring gull weighs about 1.1 kg.",
    "Gulls of the species Larus argentatus drink salt water.",
];

fn builder(url: &str) -> TestAppBuilder<'_> {
    let catalogue = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    TestApp::builder().models(Behaviour::default(), catalogue).settings(&[
        ("REGISTRY_URL", url),
        ("SVC__PROVIDERS__REGISTRY__TIMEOUT", "2s"),
        ("SVC__PROVIDERS__DECOMPOSITION__CONCEPT_EXTRACTION__MODEL", "builtin-concepts-1"),
    ])
}

/// An app that works, with a page at `/gulls`, and its registry.
async fn start() -> (TestApp, StandIn) {
    let registry = StandIn::start().await;
    let url = registry.url();
    let mut app = builder(&url).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    (app, registry)
}

/// Adds the page, and waits for it.
async fn add(app: &TestApp) -> serde_json::Value {
    let source = app.add_page("/gulls").await;
    let seen = app.settled(&source).await;
    assert_eq!(seen["status"], "processed", "{seen}");
    seen
}

fn id(source: &serde_json::Value) -> String {
    source["id"].as_str().unwrap().to_owned()
}

/// Whether it was taken from the registry.
fn is_imported(source: &serde_json::Value) -> bool {
    !source["extraction"]["registry"].is_null()
}
