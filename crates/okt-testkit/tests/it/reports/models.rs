//! Reports that a model judges: what is asked, what is paid, and what is believed.

use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::Behaviour;
use serde_json::json;

use super::{HEIGHT, MITE, SUN, health, source, write};

const COPPER: &str = "Copper prices in Zurich were 30 percent higher in 1914 than in 1911.";

fn posture(sentence: &str, fact: &str) -> &'static str {
    match (sentence, fact) {
        _ if sentence == fact => "supports",
        _ if fact.contains("never") => "contradicts",
        _ => "irrelevant",
    }
}

async fn started(behaviour: Behaviour) -> TestApp {
    let settings = [
        ("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
    ];
    let prices = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    let mut app = TestApp::builder().vectors().models(behaviour, prices).settings(&settings).start().await;
    app.work().await;
    app
}

/// How many pairs were judged by the model.
async fn asked(app: &TestApp) -> i64 {
    app.count(
        "SELECT count(*) FROM okt_system.ai_calls WHERE operation = 'posture_classification' AND subject_kind = 'report'",
    )
    .await
}

#[tokio::test]
async fn one_more_fact_asks_only_about_sentences_near_it() {
    let app = started(Behaviour { posture, ..Behaviour::default() }).await;
    source(&app, "all.txt", &format!("{SUN} {MITE} {HEIGHT} {COPPER}")).await;
    let report = write(&app, "All", &format!("{SUN} {MITE} {HEIGHT} {COPPER}")).await;
    health(&app, &report, "everything is supported", |counts| counts["supported"] == 4).await;
    let calls = asked(&app).await;
    assert!(calls >= 1);
    let judged = app.count("SELECT count(*) FROM okt_repository.report_annotations").await;

    source(&app, "more.txt", "Honey bees never find the way back to their hive by the position of the sun.")
        .await;
    let seen = health(&app, &report, "one is contradicted now", |counts| counts["contradicted"] == 1).await;
    assert_eq!(
        (&seen["changes"][0]["cause"], &seen["changes"][0]["sentence"]),
        (&json!("fact_added"), &json!(SUN)),
        "{seen:#}"
    );
    assert_eq!(asked(&app).await, calls + 1, "one question");
    let now = app.count("SELECT count(*) FROM okt_repository.report_annotations").await;
    assert_eq!(now, judged + 1, "about one pair");
    // Facts that have nothing to do with any sentence ask nothing.
    source(&app, "else.txt", "Whales sing to each other across whole oceans in the months of winter.").await;
    health(&app, &report, "nothing has changed", |_| true).await;
    assert_eq!(asked(&app).await, calls + 1);
    // Nor does looking again.
    let again = app.post(&format!("/reports/{report}/annotate"), &json!(null)).await;
    app.ended(again.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(asked(&app).await, calls + 1, "nobody pays twice");
    assert_eq!(health(&app, &report, "as before", |_| true).await["counts"], seen["counts"]);
}

#[tokio::test]
async fn a_model_that_calls_everything_supported_is_not_believed_against_the_words() {
    let app = started(Behaviour { posture: |_, _| "supports", ..Behaviour::default() }).await;
    source(&app, "mites.txt", MITE).await;
    let false_claim = "Varroa mites killed 90 percent of all honey bee colonies in Norway in 2006.";
    let report = write(&app, "Mites", &format!("{MITE} {false_claim}")).await;
    let seen = health(&app, &report, "both are checked", |counts| counts["supported"] == 1).await;
    assert_eq!(seen["counts"]["supported"], 1, "a number that differs supports nothing: {seen:#}");
}

#[tokio::test]
async fn a_model_that_is_away_leaves_sentences_waiting_and_says_so() {
    let behaviour = Behaviour { posture, ..Behaviour::default() };
    let settings = [
        ("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
        ("SVC__BUDGET__DEFAULT_USD", "0.000001"),
    ];
    let prices = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    let mut app = TestApp::builder().vectors().models(behaviour, prices).settings(&settings).start().await;
    app.work().await;
    source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    super::eventually(super::Duration::from_mins(1), "it waits for the budget", async || {
        let jobs = app.read("/jobs?kind=annotate_report").await;
        if jobs["data"][0]["waiting_for"] == "budget" { Ok(()) } else { Err(jobs) }
    })
    .await;
    let seen = app.read(&format!("/reports/{report}")).await;
    assert_eq!(
        (&seen["status"], &seen["counts"]["waiting"], &seen["counts"]["unsupported"]),
        (&json!("annotating"), &json!(1), &json!(0)),
        "what was not judged is not unsupported: {seen:#}"
    );
    assert_eq!(super::sentences(&app, &report).await[0].1, "waiting");
    let raised = app.put("/settings/budget", &json!({"monthly_usd": 1.0, "on_exceed": "pause"})).await;
    assert!(raised.status.is_success(), "{raised:?}");
    health(&app, &report, "it goes on when there is money", |counts| counts["supported"] == 1).await;
}
