//! Nothing is spent that may not be spent.

use http::Method;
use okt_testkit::jobs::Hired;
use okt_testkit::llm::{Behaviour, Latency, Stats};
use serde_json::{Value, json};

use crate::desk::{Desk, essay};

/// Fifty dollars for a million tokens, so that a call is money.
const DEAR: &str = "input_cost_per_1m = 50.0\noutput_cost_per_1m = 50.0";

/// What the model would write on its bill.
fn bill(stats: &Stats) -> f64 {
    f64::from(u32::try_from(stats.tokens_in + stats.tokens_out).unwrap()) * 50.0 / 1e6
}

#[tokio::test]
async fn a_budget_that_is_reached_pauses_the_source_and_raising_it_goes_on_without_paying_twice() {
    let slow = Behaviour { latency: Latency::Fixed(20), ..Behaviour::default() };
    let mut desk = Desk::open_with(slow, DEAR, &[]).await;
    let budget = 1.0;
    let set = desk.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": budget})).await;
    assert_eq!(set.status, 200, "{set:?}");
    desk.work().await;
    let id = desk.add("essay.txt", &essay(1, 400)).await;
    let paused = desk.until(&id, |seen| seen["waiting_for"] != Value::Null).await;
    assert_eq!(
        (&paused["status"], &paused["waiting_for"]),
        (&json!("processing"), &json!("budget")),
        "{paused:#}"
    );
    let job = desk.asleep(&paused).await;
    assert_eq!((&job["state"], &job["waiting_for"]), (&json!("scheduled"), &json!("budget")), "{job:#}");
    let spent = desk.get("/ai/usage").await["total"]["usd"].as_f64().unwrap();
    assert!(spent > budget / 2.0 && spent <= budget, "{spent} of {budget}");
    let first = desk.models.await_stats(|stats| stats.in_flight == 0).await;
    assert!((bill(&first) - spent).abs() < 1e-9, "the books say what the model says");
    assert!(first.good_answers() > 2, "in the middle of the source: {}", first.good_answers());
    let held: i64 = {
        let mut conn = desk.service.database.connect().await;
        sqlx::query_scalar("SELECT count(*) FROM okt_system.ai_holds").fetch_one(&mut conn).await.unwrap()
    };
    assert_eq!(held, 0, "nothing is set aside for calls that are over");

    let raised = desk.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 100})).await;
    assert_eq!(raised.status, 200, "{raised:?}");
    let seen = desk.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(400)), "{seen:#}");
    assert_eq!(seen["waiting_for"], Value::Null);
    let stats = desk.models.await_stats(|stats| stats.in_flight == 0).await;
    assert!(stats.good.values().all(|times| times.len() == 1), "none was paid twice: {:?}", stats.good);
    assert_eq!(json!(stats.good_answers()), seen["extraction"]["chunks"]);
}

/// Many sources at once must not spend together what none of them would alone.
#[tokio::test]
async fn many_sources_at_once_stay_within_the_budget_together() {
    let slow = Behaviour { latency: Latency::Fixed(60), ..Behaviour::default() };
    let mut desk = Desk::open_with(slow, DEAR, &[]).await;
    let budget = 3.0;
    desk.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": budget})).await;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(desk.add(&format!("{n}.txt"), &essay(n, 60)).await);
    }
    // Two that share nothing but the database.
    let config = desk.service.api.app.config().clone();
    let _other = Hired::start(&config, Vec::new()).await;
    desk.work().await;
    let mut paused = 0;
    for id in &ids {
        let seen =
            desk.until(id, |seen| seen["waiting_for"] == "budget" || seen["status"] == "processed").await;
        paused += u32::from(seen["waiting_for"] == "budget");
    }
    let spent = bill(&desk.models.await_stats(|stats| stats.in_flight == 0).await);
    assert!(paused > 0, "it was too much for the budget");
    assert!(spent <= budget && spent > budget / 2.0, "{spent} of {budget}");
}

#[tokio::test]
async fn a_source_costs_no_more_than_it_may() {
    let mut desk = Desk::open_with(Behaviour::default(), DEAR, &[]).await;
    desk.work().await;
    let id = desk.add_within("essay.txt", &essay(1, 400), Some(0.6)).await;
    let seen = desk.settled(&id).await;
    assert_eq!(seen["failure"]["code"], "max_cost_reached", "{seen:#}");
    let spent = seen["cost"]["usd"].as_f64().unwrap();
    assert!(spent > 0.2 && spent <= 0.6, "{spent}");
    assert!(seen["fact_count"].as_i64().unwrap() > 0, "what was paid for is kept");
    assert!(!desk.facts(&id).await.is_empty());
}
