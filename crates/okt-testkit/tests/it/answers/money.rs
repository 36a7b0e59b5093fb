//! Who may ask a model, how many at once, and what it may cost.

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{
    FUNDY, OPENED, RANCE, SIHWA, SOON, TURBINES, ask, ask_as, by_model, faithful, list, sound, stream,
};

async fn spent(app: &TestApp) -> i64 {
    app.count("SELECT count(*) FROM okt_system.ai_calls WHERE subject_kind = 'question'").await
}

#[tokio::test]
async fn whoever_may_only_read_gets_the_facts_unless_the_repository_says_otherwise() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA]).await;
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let answer = ask_as(&app, &viewer, &json!({ "question": TURBINES })).await;
    sound(&answer);
    assert_eq!(answer["extractive_reason"], "not_permitted", "{answer:#}");
    assert_eq!(spent(&app).await, 0);
    let refused =
        app.send(&viewer, Method::POST, "/ask", &json!({ "question": TURBINES, "mode": "model" })).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden".to_owned()));

    let change = json!({ "viewers": true });
    let refused = app.send(&viewer, Method::PUT, "/settings/ask", &change).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let set = app.put("/settings/ask", &change).await.json();
    assert_eq!(set["ask"], json!({ "viewers": true, "per_person_per_day_usd": 0.5 }), "{set:#}");
    let answer = ask_as(&app, &viewer, &json!({ "question": TURBINES })).await;
    assert_eq!(answer["mode"], "model", "{answer:#}");
    assert!(spent(&app).await > 0);
}

#[tokio::test]
async fn a_person_spends_no_more_in_a_day_than_they_may() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA]).await;
    let set = app.put("/settings/ask", &json!({ "per_person_per_day_usd": 0.0 })).await.json();
    assert_eq!(set["ask"]["per_person_per_day_usd"], 0.0, "{set:#}");
    let answer = ask(&app, TURBINES).await;
    assert_eq!(answer["extractive_reason"], "daily_limit", "{answer:#}");
    let refused = app.post("/ask", &json!({ "question": TURBINES, "mode": "model" })).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (429, "ask_limit".to_owned()));
    assert_eq!(spent(&app).await, 0);
    let set = app.put("/settings/ask", &json!({ "per_person_per_day_usd": null })).await.json();
    assert_eq!(set["ask"]["per_person_per_day_usd"], 0.5, "what the installation gives: {set:#}");
    assert_eq!(ask(&app, TURBINES).await["mode"], "model");
}

#[tokio::test]
async fn an_answer_that_could_cost_more_than_it_may_is_the_facts() {
    let app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA, FUNDY]).await;
    let body = json!({ "question": TURBINES, "max_cost_usd": 0.000_001 });
    let answer = ask_as(&app, &app.owner, &body).await;
    sound(&answer);
    assert_eq!(
        (&answer["status"], &answer["extractive_reason"], &answer["cost"]["usd"]),
        (&json!("extractive"), &json!("max_cost"), &json!(0.0)),
        "{answer:#}"
    );
    // And where the repository has spent what it may.
    let budget = json!({ "monthly_usd": 0.000_001, "on_exceed": "pause" });
    assert!(app.put("/settings/budget", &budget).await.status.is_success());
    let answer = ask(&app, "When was the Rance tidal power station opened?").await;
    sound(&answer);
    assert_eq!(answer["extractive_reason"], "over_budget", "{answer:#}");
}

#[tokio::test]
async fn three_answers_of_a_person_are_on_their_way_at_once() {
    let mut app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA]).await;
    app.rest();
    let question =
        |n: u32| json!({ "question": format!("How many turbines does the Rance station have, {n}?") });
    let mut begun = Vec::new();
    for n in 0..3 {
        let asked = stream(&app, &question(n)).await;
        assert_eq!(asked.status(), 200);
        begun.push(asked.headers()["x-answer-id"].to_str().unwrap().to_owned());
    }
    let refused = app.post("/ask", &question(3)).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (429, "too_many_answers".to_owned()));
    assert!(!refused.header("retry-after").is_empty());
    // Another person may.
    let editor = register(&app.service, "editor").await;
    give(&app.service, editor.id, &app.repository.to_string(), "editor").await;
    let theirs = app.send(&editor, Method::POST, "/ask", &question(4)).await;
    assert_eq!(theirs.status, 202, "{theirs:?}");
    let stopped = app.post(&format!("/answers/{}/cancel", begun[0]), &Value::Null).await;
    assert_eq!(stopped.status, 202, "{stopped:?}");
    assert_eq!(app.post("/ask", &question(3)).await.status, 202, "there is a place again");
    // One whose job was cancelled by somebody else holds no place.
    let job = app.read(&format!("/answers/{}", begun[1])).await["job_id"].as_str().unwrap().to_owned();
    // Brings jobs to the queue and runs none.
    let config = app.service.api.app.config();
    let _relay = okt_testkit::jobs::worker(config, okt_queue::Kinds::default(), vec![], |_| {}).await;
    okt_testkit::wait::eventually(std::time::Duration::from_secs(30), "the job is cancelled", async || {
        let cancelled = app.post(&format!("/jobs/{job}/cancel"), &Value::Null).await;
        if cancelled.status == 202 { Ok(()) } else { Err(cancelled.text) }
    })
    .await;
    assert_eq!(app.post("/ask", &question(5)).await.status, 202, "there is a place again");
    let answer = app.read(&format!("/answers/{}", begun[1])).await;
    assert_eq!((&answer["status"], list(&answer, "sentences").len()), (&json!("cancelled"), 0), "{answer:#}");
}

#[tokio::test]
async fn stopping_or_deleting_an_answer_gives_nothing_back() {
    let mut app = by_model(faithful(), &[], &[RANCE, OPENED, SIHWA]).await;
    assert!(app.put("/settings/ask", &json!({ "per_person_per_day_usd": 0.05 })).await.status.is_success());
    app.rest();
    let asked = stream(&app, &json!({ "question": TURBINES })).await;
    let path = format!("/answers/{}", asked.headers()["x-answer-id"].to_str().unwrap());
    drop(asked);
    let body = json!({ "question": "When was the Rance tidal power station opened?", "mode": "model" });
    let refused = async || app.post("/ask", &body).await.problem();
    assert_eq!(refused().await, "ask_limit", "what runs may cost all of it");
    assert_eq!(app.post(&format!("{path}/cancel"), &Value::Null).await.status, 202);
    assert_eq!(refused().await, "ask_limit", "a call may have been on the wire");
    assert_eq!(app.delete(&path).await.status, 204);
    assert_eq!(refused().await, "ask_limit");
    // Later it is known what it has cost: nothing.
    app.sql("UPDATE okt_repository.answer_spending SET ended_at = ended_at - interval '6 hours'").await;
    assert_eq!(app.post("/ask", &body).await.status, 202);
}

#[tokio::test]
async fn a_person_has_no_more_answers_of_a_day_than_they_may_whatever_they_cost() {
    let settings = [SOON, ("SVC__ASK__ANSWERS_PER_PERSON_PER_DAY", "2")];
    let app = TestApp::builder().settings(&settings).start().await;
    for _ in 0..2 {
        assert_eq!(ask(&app, TURBINES).await["status"], "abstained");
    }
    let body = json!({ "question": TURBINES });
    let refused = app.post("/ask", &body).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "quota_exceeded".to_owned()));
    assert!(refused.text.contains("ask.answers_per_person_per_day"), "{refused:?}");
    let kept = app.read("/answers").await;
    assert_eq!(list(&kept, "data").len(), 2);
    // Deleting gives none back.
    for answer in list(&kept, "data") {
        assert_eq!(app.delete(&format!("/answers/{}", answer["id"].as_str().unwrap())).await.status, 204);
    }
    assert_eq!(app.post("/ask", &body).await.problem(), "quota_exceeded");
    // Another person may.
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    ask_as(&app, &viewer, &body).await;
    // And tomorrow.
    app.sql("UPDATE okt_repository.answer_days SET day = day - 1").await;
    ask(&app, TURBINES).await;
}
