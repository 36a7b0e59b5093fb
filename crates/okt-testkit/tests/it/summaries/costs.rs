//! Only what has changed is asked for again.
//!
//! The short form. `OKT_SUMMED_UP=500 cargo nextest run --workspace -E 'test(summaries::costs)'` is the long one.

use std::time::Duration;

use okt_model::RefreshConceptRelations;
use okt_store::outbox::When;
use okt_testkit::jobs;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::json;

use super::{app, calls, check, deeds, link, say, settle, settled, stored};
use crate::facts::faults::number;

#[tokio::test]
async fn new_facts_cost_their_own_slices_and_definitions_and_nothing_else() {
    let concepts = number("OKT_SUMMED_UP", 30);
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let mut texts = Vec::new();
    for n in 0..concepts {
        texts.push(deeds(&n.to_string(), 1, 6));
    }
    say(&app, &texts.concat()).await;
    let mut made = Vec::new();
    for (n, texts) in texts.iter().enumerate() {
        made.push(link(&app, &format!("Hive {n}"), "Place", texts).await);
    }
    settle(&app).await;
    check(&app).await;
    let slices = u64::try_from(concepts * 2).unwrap();
    let before = (calls(&app, "concept_summary").await, calls(&app, "concept_synthesis").await);
    assert_eq!(before, (slices, u64::try_from(concepts).unwrap()), "two slices and a definition for each");
    let asked = app.models.await_stats(|stats| stats.in_flight == 0).await.requests;
    assert_eq!(asked, before.0 + before.1, "the model says the same");
    let snapshot = stored(&mut app.connect().await).await;

    // Twenty facts for three of them: one closes its open slice and fills four, the others one each and a bit.
    let news = [("0", 16), ("1", 2), ("2", 2)];
    let new: Vec<Vec<String>> = news.iter().map(|(hive, count)| deeds(hive, 100, *count)).collect();
    say(&app, &new.concat()).await;
    for ((hive, _), texts) in news.iter().zip(&new) {
        link(&app, &format!("Hive {hive}"), "Place", texts).await;
    }
    settle(&app).await;
    check(&app).await;
    let after = (calls(&app, "concept_summary").await, calls(&app, "concept_synthesis").await);
    // Of the first: the open slice with two more, three full ones and an open one with two.
    assert_eq!(
        (after.0 - before.0, after.1 - before.1),
        (5 + 1 + 1, 3),
        "the touched slices and definitions"
    );
    let now = stored(&mut app.connect().await).await;
    for (place, slice) in snapshot.iter().filter(|(_, slice)| !slice.is_open) {
        assert_eq!(now.get(place), Some(slice), "a closed slice stays as it is");
    }

    // Nothing has changed: nothing is asked.
    settle(&app).await;
    let looked = app.put("/settings/stages", &json!({"synthesis": true})).await;
    assert_eq!(looked.status, 200, "{looked:?}");
    settled(&app).await;
    assert_eq!((calls(&app, "concept_summary").await, calls(&app, "concept_synthesis").await), after);
    let more = app.models.await_stats(|stats| stats.in_flight == 0).await.requests - asked;
    assert_eq!(more, 5 + 1 + 1 + 3, "the model says the same");
}

/// Summaries and definitions wait for a budget like everything else, and nothing is paid for twice.
#[tokio::test]
async fn a_budget_that_is_reached_pauses_and_raising_it_goes_on() {
    let mut app = app(Behaviour::default(), &[]).await;
    let (budget, hives) = (0.008, 6);
    let set = app.put("/settings/budget", &json!({"monthly_usd": budget})).await;
    assert_eq!(set.status, 200, "{set:?}");
    for n in 0..hives {
        let texts = deeds(&n.to_string(), 1, 8);
        say(&app, &texts).await;
        link(&app, &format!("Hive {n}"), "Place", &texts).await;
    }
    app.work().await;
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &RefreshConceptRelations {}, When::default()).await;
    eventually(Duration::from_mins(1), "it waits for money", async || {
        let waiting = app.read("/jobs?kind=summarize_concepts&state=scheduled").await;
        if waiting["data"][0]["waiting_for"] == "budget" { Ok(()) } else { Err(waiting) }
    })
    .await;
    let spent = app.read("/ai/usage").await["total"]["usd"].as_f64().unwrap();
    assert!(spent <= budget && spent > 0.0, "{spent} of {budget}");
    assert!(calls(&app, "concept_summary").await < hives * 2, "not all of it");

    let raised = app.put("/settings/budget", &json!({"monthly_usd": 100})).await;
    assert_eq!(raised.status, 200, "{raised:?}");
    settled(&app).await;
    check(&app).await;
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    assert!(stats.good.values().all(|times| times.len() == 1), "none was paid for twice: {:?}", stats.good);
    let paid = (calls(&app, "concept_summary").await, calls(&app, "concept_synthesis").await);
    assert_eq!(paid, (hives * 2, hives));
}
