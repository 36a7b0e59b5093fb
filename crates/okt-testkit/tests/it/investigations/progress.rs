//! How far the sources of an investigation are, and what they have cost.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_testkit::app::TestApp;
use okt_testkit::llm::Behaviour;
use okt_testkit::multipart::form;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{begin, column, investigation};

const PRICE: &str = "input_cost_per_1m = 50.0\noutput_cost_per_1m = 50.0";

async fn add_text(app: &TestApp, investigation: &str, text: &str) -> String {
    let form = form(&[("investigation_id", investigation)], "a.txt", "text/plain", text.as_bytes());
    let added = app.upload_form(form).await;
    assert_eq!(added.status, 202, "{added:?}");
    added.json()["source_id"].as_str().unwrap().to_owned()
}

/// Waits until no job of an investigation is left.
async fn ended(app: &TestApp, id: &str) -> Value {
    eventually(Duration::from_mins(2), "all jobs of the investigation end", async || {
        let seen = investigation(app, id).await;
        let over = seen["progress"]["done"] == seen["progress"]["total"]
            && seen["progress"]["jobs"] == json!({"running": 0, "waiting": 0});
        if over { Ok(seen) } else { Err(seen) }
    })
    .await
}

#[tokio::test]
async fn progress_and_cost_are_those_of_its_sources() {
    let mut app = TestApp::builder().models(Behaviour::default(), PRICE).start().await;
    let (bees, all) = (begin(&app, "Bees").await, begin(&app, "All").await);
    let one = add_text(&app, &bees, "Honey bees find their way home by the light of the sky.").await;
    let two = add_text(&app, &bees, "A forager that has found food tells the others by a dance.").await;
    let url = json!({"url": app.web.url("/missing"), "investigation_id": bees});
    let failing = app.post("/sources", &url).await.json()["source_id"].as_str().unwrap().to_owned();
    let other = add_text(&app, &all, "Wasps make paper of wood, and their nests are made of it.").await;
    let linked = app.post(&format!("/investigations/{all}/sources"), &json!({"source_id": one})).await;
    assert_eq!(linked.status, 200, "{linked:?}");

    // Before anybody works: the jobs wait in the outbox.
    let seen = investigation(&app, &bees).await;
    assert_eq!((&seen["progress"]["done"], &seen["progress"]["total"]), (&json!(0), &json!(3)), "{seen:#}");
    assert_eq!(seen["progress"]["sources"]["pending"], 3);
    assert_eq!(seen["progress"]["jobs"], json!({"running": 0, "waiting": 3}));

    app.work().await;
    for id in [&one, &two, &failing, &other] {
        app.settled(id).await;
    }
    let seen = ended(&app, &bees).await;
    let counts = &seen["progress"]["sources"];
    assert_eq!(
        (&counts["processed"], &counts["failed"], &counts["pending"]),
        (&json!(2), &json!(1), &json!(0))
    );
    assert_eq!(seen["fact_count"], 2, "{seen:#}");
    let mut expected = 0.0;
    for id in [&one, &two] {
        let cost = app.source(id).await["cost"]["usd"].as_f64().unwrap();
        assert!(cost > 0.0);
        expected += cost;
    }
    let cost = seen["cost"]["usd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} instead of {expected}");
    assert!(seen["cost"]["tokens_in"].as_u64().unwrap() > 0);

    // Its jobs are those of its sources, and a source of two investigations is in both lists.
    let of_bees = jobs(&app, &bees).await;
    let ids = |sources: &[&String]| sources.iter().map(|id| (*id).clone()).collect::<BTreeSet<_>>();
    assert_eq!(of_bees, ids(&[&one, &two, &failing]));
    assert_eq!(jobs(&app, &all).await, ids(&[&one, &other]));
    let list = format!("/jobs?investigation_id={bees}&kind=retrieve_source");
    assert_eq!(column(&app, &list, 2, "kind").await, ["retrieve_source"; 3]);
    let discarded = app.read(&format!("/jobs?investigation_id={bees}&state=running")).await;
    assert_eq!(discarded["data"], json!([]));

    // What is gone costs nothing any more, here.
    assert_eq!(app.delete(&format!("/sources/{two}")).await.status, 204);
    let seen = investigation(&app, &bees).await;
    assert!(seen["cost"]["usd"].as_f64().unwrap() < cost);
    assert_eq!(seen["progress"]["total"], 2);
}

/// The sources of the jobs of an investigation, which come newest first and without a gap.
async fn jobs(app: &TestApp, id: &str) -> BTreeSet<String> {
    let list = format!("/jobs?investigation_id={id}");
    let ids = column(app, &list, 200, "id").await;
    assert!(ids.is_sorted_by(|one, next| one > next), "{ids:?}");
    assert_eq!(column(app, &list, 1, "id").await, ids);
    column(app, &list, 200, "source_id").await.into_iter().collect()
}

/// A source that waits for money is counted as one that does.
#[tokio::test]
async fn what_waits_for_a_budget_is_told() {
    let mut app = TestApp::builder().models(Behaviour::default(), PRICE).start().await;
    let set = app.put("/settings/budget", &json!({"monthly_usd": 0.000_001})).await;
    assert_eq!(set.status, 200, "{set:?}");
    let id = begin(&app, "Bees").await;
    let source = add_text(&app, &id, "Honey bees find their way home by the light of the sky.").await;
    app.work().await;
    app.until(&source, |seen| seen["waiting_for"] == "budget").await;
    let seen = investigation(&app, &id).await;
    let counts = &seen["progress"]["sources"];
    assert_eq!((&counts["processing"], &counts["waiting_for_budget"]), (&json!(1), &json!(1)), "{seen:#}");
    assert_eq!(seen["progress"]["done"], 0);
}
