//! Concepts have vectors of what is known of them, and each is paid for once.

use std::time::Duration;

use http::Method;
use okt_model::CONCEPT_MODEL;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use crate::concepts::read_for_concepts;

const TEXT: &str = "Isaac Newton explained the tides in the Principia. The Bay of Fundy in Canada has the highest tides. \
                    Canada borders the United States. Isaac Newton was born in Woolsthorpe.";

/// How many concepts have a vector that is in the store, and how many vectors are in the store.
async fn counted(app: &TestApp) -> (i64, i64, i64) {
    let concepts = "SELECT count(*) FROM okt_repository.concepts WHERE merged_into IS NULL";
    let with = "SELECT count(*) FROM okt_repository.concepts c
                  JOIN okt_vectors.points p ON p.id = c.vector_id AND p.repository_id = c.repository_id
                 WHERE c.merged_into IS NULL AND p.space LIKE 'okt\\_concepts\\_%'";
    let vectors = "SELECT count(*) FROM okt_vectors.points WHERE space LIKE 'okt\\_concepts\\_%'";
    (app.count(concepts).await, app.count(with).await, app.count(vectors).await)
}

async fn until_all_have_one(app: &TestApp) -> i64 {
    eventually(Duration::from_mins(1), "every concept has its vector", async || {
        let busy = "SELECT count(*) FROM okt_tasks.jobs
                     WHERE kind IN ('extract_concepts', 'embed_concepts') AND finished_at IS NULL";
        let (busy, (concepts, with, vectors)) = (app.count(busy).await, counted(app).await);
        let all = concepts > 0 && concepts == with && with == vectors && busy == 0;
        if all { Ok(concepts) } else { Err(format!("{concepts} {with} {vectors}, {busy} jobs")) }
    })
    .await
}

async fn calls(app: &TestApp) -> Value {
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "concept_embedding").expect("it is in the books");
    row["calls"].clone()
}

#[tokio::test]
async fn a_concept_that_is_described_otherwise_gets_another_vector_and_is_paid_for_then_only() {
    let behaviour = Behaviour { dimensions: 64, ..Behaviour::default() };
    let mut app = TestApp::builder()
        .models(behaviour, "input_cost_per_1m = 1.0")
        .settings(&[
            ("SVC__PROVIDERS__EMBEDDING__MODEL", MODEL),
            ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
            ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", ""),
        ])
        .concepts(CONCEPT_MODEL)
        .start()
        .await;
    app.work().await;
    let id = app.add_text("tides.txt", TEXT).await;
    read_for_concepts(&app, &id).await;
    let concepts = until_all_have_one(&app).await;
    let paid = calls(&app).await;

    // Nothing is new.
    let again = app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    assert_eq!(again.status, 202);
    app.ended(again.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(until_all_have_one(&app).await, concepts);
    assert_eq!(calls(&app).await, paid);

    // One has another name.
    let list = app.read("/concepts?q=newton&show_small=true").await;
    let newton = list["data"][0]["contexts"][0]["id"].as_str().or(list["data"][0]["id"].as_str());
    let newton = newton.expect("there is one").to_owned();
    let before = app.count("SELECT count(DISTINCT vector_id) FROM okt_repository.concepts").await;
    let named = app.put(&format!("/concepts/{newton}"), &json!({"canonical_name": "Newton"})).await;
    assert_eq!(named.status, 200, "{named:?}");
    until_all_have_one(&app).await;
    eventually(Duration::from_mins(1), "it is described by its new name", async || {
        let now = calls(&app).await;
        if now.as_u64() == paid.as_u64().map(|paid| paid + 1) { Ok(()) } else { Err(format!("{now}")) }
    })
    .await;
    until_all_have_one(&app).await;
    assert_eq!(app.count("SELECT count(DISTINCT vector_id) FROM okt_repository.concepts").await, before);
}

/// What is lost is found to be lost, and made again.
#[tokio::test]
async fn vectors_of_nobody_go_and_those_that_are_lost_come_back() {
    let mut app = TestApp::builder().vectors().concepts(CONCEPT_MODEL).start().await;
    app.work().await;
    let id = app.add_text("tides.txt", TEXT).await;
    read_for_concepts(&app, &id).await;
    let concepts = until_all_have_one(&app).await;
    app.sql(
        "UPDATE okt_vectors.points SET id = gen_random_uuid()
          WHERE id = (SELECT min(id::text)::uuid FROM okt_vectors.points WHERE space LIKE 'okt\\_concepts\\_%')",
    )
    .await;
    let (_, with, vectors) = counted(&app).await;
    assert_eq!((with, vectors), (concepts - 1, concepts), "one is lost, and one is nobody's");
    // A source that goes has vectors cleaned up.
    let other = app.add_text("other.txt", "Mount Everest is the highest mountain of Asia.").await;
    read_for_concepts(&app, &other).await;
    assert_eq!(app.delete(&format!("/sources/{other}")).await.status, 204);
    eventually(Duration::from_mins(1), "the clean-up runs", async || {
        app.sql("UPDATE okt_tasks.jobs SET scheduled_at = now() WHERE kind = 'cleanup_facts' AND state = 'scheduled'")
            .await;
        let ended = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'cleanup_facts' AND state = 'completed'";
        if app.count(ended).await > 0 { Ok(()) } else { Err("not yet") }
    })
    .await;
    until_all_have_one(&app).await;
}
