//! Nothing is spent that may not be spent.

use http::Method;
use okt_testkit::accounts::send;
use okt_testkit::jobs::TestWorker;
use okt_testkit::llm::{Behaviour, Latency, Stats};
use serde_json::{Value, json};

use crate::facts::{essay, job_in, test_app_with};

/// Fifty dollars for a million tokens, so that a call is money.
const DEAR: &str = "input_cost_per_1m = 50.0\noutput_cost_per_1m = 50.0";

/// What the model would write on its bill.
fn bill(stats: &Stats) -> f64 {
    f64::from(u32::try_from(stats.tokens_in + stats.tokens_out).unwrap()) * 50.0 / 1e6
}

#[tokio::test]
async fn a_budget_that_is_reached_pauses_the_source_and_raising_it_goes_on_without_paying_twice() {
    let slow = Behaviour { latency: Latency::Fixed(20), ..Behaviour::default() };
    let mut app = test_app_with(slow, DEAR, &[]).await;
    let budget = 1.0;
    let set = app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": budget})).await;
    assert_eq!(set.status, 200, "{set:?}");
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 400)).await;
    let paused = app.until(&id, |seen| seen["waiting_for"] != Value::Null).await;
    assert_eq!(
        (&paused["status"], &paused["waiting_for"]),
        (&json!("processing"), &json!("budget")),
        "{paused:#}"
    );
    let job = job_in(&app, "scheduled", &paused).await;
    assert_eq!((&job["state"], &job["waiting_for"]), (&json!("scheduled"), &json!("budget")), "{job:#}");
    let spent = app.read("/ai/usage").await["total"]["usd"].as_f64().unwrap();
    assert!(spent > budget / 2.0 && spent <= budget, "{spent} of {budget}");
    let first = app.models.await_stats(|stats| stats.in_flight == 0).await;
    assert!((bill(&first) - spent).abs() < 1e-9, "the books say what the model says");
    assert!(first.good_answers() > 2, "in the middle of the source: {}", first.good_answers());
    let held: i64 = {
        let mut conn = app.service.database.connect().await;
        sqlx::query_scalar("SELECT count(*) FROM okt_system.ai_holds").fetch_one(&mut conn).await.unwrap()
    };
    assert_eq!(held, 0, "nothing is set aside for calls that are over");

    let raised = app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 100})).await;
    assert_eq!(raised.status, 200, "{raised:?}");
    let seen = app.settled(&id).await;
    assert_eq!((&seen["status"], &seen["fact_count"]), (&json!("processed"), &json!(400)), "{seen:#}");
    assert_eq!(seen["waiting_for"], Value::Null);
    let stats = app.models.await_stats(|stats| stats.in_flight == 0).await;
    assert!(stats.good.values().all(|times| times.len() == 1), "none was paid twice: {:?}", stats.good);
    assert_eq!(json!(stats.good_answers()), seen["extraction"]["chunks"]);
}

/// Many sources at once must not spend together what none of them would alone.
#[tokio::test]
async fn many_sources_at_once_stay_within_the_budget_together() {
    let slow = Behaviour { latency: Latency::Fixed(60), ..Behaviour::default() };
    let mut app = test_app_with(slow, DEAR, &[]).await;
    let budget = 3.0;
    app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": budget})).await;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(app.add_text(&format!("{n}.txt"), &essay(n, 60)).await);
    }
    // Two that share nothing but the database.
    let config = app.service.api.app.config().clone();
    let _other = TestWorker::start(&config, Vec::new()).await;
    app.work().await;
    let mut paused = 0;
    for id in &ids {
        let seen =
            app.until(id, |seen| seen["waiting_for"] == "budget" || seen["status"] == "processed").await;
        paused += u32::from(seen["waiting_for"] == "budget");
    }
    let spent = bill(&app.models.await_stats(|stats| stats.in_flight == 0).await);
    assert!(paused > 0, "it was too much for the budget");
    assert!(spent <= budget && spent > budget / 2.0, "{spent} of {budget}");
}

/// The operator's money is one purse, whatever the budgets of the repositories say.
#[tokio::test]
async fn repositories_stay_within_the_ceiling_of_the_installation_together() {
    let slow = Behaviour { latency: Latency::Fixed(60), ..Behaviour::default() };
    let ceiling = 3.0;
    let mut app = test_app_with(slow, DEAR, &[("SVC__PROVIDERS__AI__MONTHLY_USD", "3")]).await;
    let first = app.repository;
    let name = json!({"name": "Wasps"});
    let made = send(&app.service, &app.owner.token, Method::POST, "/api/v1/repositories", &name).await;
    let second = made.json()["id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap().into();
    // One has no budget, the other one that alone would be too much.
    app.repository = second;
    let set = app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 100})).await;
    assert_eq!(set.status, 200, "{set:?}");
    let mut sources = Vec::new();
    for n in 0..12 {
        app.repository = if n % 2 == 0 { first } else { second };
        sources.push((app.repository, app.add_text(&format!("{n}.txt"), &essay(n, 60)).await));
    }
    let config = app.service.api.app.config().clone();
    let _other = TestWorker::start(&config, Vec::new()).await;
    app.work().await;
    let mut paused = Vec::new();
    for (repository, id) in &sources {
        app.repository = *repository;
        let seen =
            app.until(id, |seen| seen["waiting_for"] == "budget" || seen["status"] == "processed").await;
        if seen["waiting_for"] == "budget" {
            assert_eq!(seen["waiting_budget"], "installation", "{seen:#}");
            paused.push((*repository, seen));
        }
    }
    let spent = bill(&app.models.await_stats(|stats| stats.in_flight == 0).await);
    assert!(spent <= ceiling && spent > ceiling / 2.0, "{spent} of {ceiling}");
    let (repository, seen) = paused.last().expect("it was too much for the ceiling");
    app.repository = *repository;
    let job = job_in(&app, "scheduled", seen).await;
    assert_eq!(job["waiting_for"], "budget");
    let why = job["progress"]["message"].as_str().unwrap();
    assert!(why.contains("installation") && why.contains("providers.ai.monthly_usd"), "{job:#}");
    let mut told = 0.0;
    for repository in [first, second] {
        app.repository = repository;
        told += app.read("/ai/usage").await["total"]["usd"].as_f64().unwrap();
    }
    assert!((told - spent).abs() < 1e-9, "the books say {told}, the model {spent}");
}

#[tokio::test]
async fn a_repository_that_chose_no_budget_has_the_default() {
    let mut app = test_app_with(Behaviour::default(), DEAR, &[("SVC__BUDGET__DEFAULT_USD", "0.5")]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 400)).await;
    let paused = app.until(&id, |seen| seen["waiting_for"] != Value::Null).await;
    assert_eq!(
        (&paused["waiting_for"], &paused["waiting_budget"]),
        (&json!("budget"), &json!("repository")),
        "{paused:#}"
    );
    let spent = bill(&app.models.await_stats(|stats| stats.in_flight == 0).await);
    assert!(spent <= 0.5 && spent > 0.1, "{spent}");
    let budget = app.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 100})).await.json();
    assert_eq!((&budget["effective_usd"], &budget["monthly_usd"]), (&json!(100.0), &json!(100.0)));
    assert!((budget["spent_usd"].as_f64().unwrap() - spent).abs() < 1e-9, "{budget} {spent}");
    assert_eq!(app.settled(&id).await["waiting_budget"], Value::Null);
}

#[tokio::test]
async fn a_source_costs_no_more_than_it_may() {
    let mut app = test_app_with(Behaviour::default(), DEAR, &[]).await;
    app.work().await;
    let id = app.add_text_within("essay.txt", &essay(1, 400), 0.6).await;
    let seen = app.settled(&id).await;
    assert_eq!(seen["failure"]["code"], "max_cost_reached", "{seen:#}");
    let spent = seen["cost"]["usd"].as_f64().unwrap();
    assert!(spent > 0.2 && spent <= 0.6, "{spent}");
    assert!(seen["fact_count"].as_i64().unwrap() > 0, "what was paid for is kept");
    assert!(!app.facts(&id).await.is_empty());
}
