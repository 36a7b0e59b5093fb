//! Contradictions that are found between facts of one concept, by the rule and by a model: each pair is judged once.

use std::time::Duration;

use okt_model::{EmbedFacts, RefreshConceptRelations, SourceId};
use okt_store::fact_judgements;
use okt_store::outbox::When;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::facts::forget_source;
use okt_testkit::jobs;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{FIVE, NONE, TWO, fact, list, mark, say, texts};

const SEVEN: &str = "The Halden line runs seven ferries.";

/// Whatever is near enough to be an answer is compared.
const NEAR: (&str, &str) = ("SVC__PROVIDERS__CONTRADICTIONS__SIMILARITY_THRESHOLD", "0.3");

async fn started(settings: &[(&str, &str)]) -> TestApp {
    let mut app = TestApp::builder().vectors().settings(&[NEAR]).settings(settings).start().await;
    app.work().await;
    app
}

/// Facts of their own source that speak of one thing, with vectors.
async fn tell(app: &TestApp, thing: &str, told: &[&str]) -> SourceId {
    let source = say(app, told).await;
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &EmbedFacts { source: None }, When::default()).await;
    let bare =
        "SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NULL AND status IN ('new', 'stable')";
    eventually(Duration::from_mins(2), "every fact has a vector", async || {
        let left = app.count(bare).await;
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
    speak_of(app, thing, told).await;
    source
}

async fn speak_of(app: &TestApp, thing: &str, told: &[&str]) {
    let mut numbers = Vec::new();
    for text in told {
        numbers.push(fact(app, text).await.0);
    }
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let concept = file_concept(&mut tx, app.repository, thing, "Concept").await.unwrap();
    link_facts(&mut tx, app.repository, concept, &numbers).await.unwrap();
    tx.commit().await.unwrap();
}

/// Has counted and compared what changed, and waits until nothing is left to be judged.
async fn compare(app: &TestApp) {
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &RefreshConceptRelations {}, When::default()).await;
    eventually(Duration::from_mins(2), "every pair is judged", async || {
        let left = "SELECT (SELECT count(*) FROM okt_repository.relation_changes) + (SELECT count(*) FROM okt_repository.unchecked_facts)
                         + (SELECT count(*) FROM okt_repository.fact_judgements WHERE judged_by IS NULL)
                         + (SELECT count(*) FROM okt_repository.outbox WHERE kind IN ('check_contradictions', 'refresh_concept_relations'))
                         + (SELECT count(*) FROM okt_tasks.jobs
                             WHERE kind IN ('check_contradictions', 'refresh_concept_relations') AND finished_at IS NULL)";
        let left = app.count(left).await;
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
}

const JUDGED: &str = "SELECT count(*) FROM okt_repository.fact_judgements WHERE judged_by IS NOT NULL";

/// The number of the last pair that was noted: it grows whenever one is to be judged.
async fn last(app: &TestApp) -> i64 {
    app.count("SELECT coalesce(max(no), 0) FROM okt_repository.fact_judgements").await
}

/// How often the model was asked, and paid.
async fn asked(app: &TestApp) -> i64 {
    app.count("SELECT count(*) FROM okt_system.ai_calls WHERE operation = 'posture_classification'").await
}

#[tokio::test]
async fn facts_of_one_concept_that_contradict_each_other_are_found() {
    let app = started(&[]).await;
    let first = tell(&app, "Halden line", &[FIVE]).await;
    let second = tell(&app, "Halden line", &[TWO]).await;
    // It contradicts both, and nobody has said that it is about the same.
    tell(&app, "Denial", &[NONE]).await;
    app.sql(&format!(
        "UPDATE okt_repository.sources SET title = 'Timetable', published_at = '1999-01-01' WHERE id = '{first}'"
    ))
    .await;
    compare(&app).await;
    let rows = list(&app, "open").await;
    assert_eq!(texts(&rows), [[FIVE, TWO]]);
    let row = &rows[0];
    assert_eq!(
        (&row["found_by"], &row["judged_by"], &row["difference"]),
        (&json!("posture"), &json!("builtin-posture-1"), &json!("number"))
    );
    assert!(row["confidence"].as_f64().is_some_and(|sure| (sure - 0.9).abs() < 0.001), "{row:#}");
    assert_eq!(
        row["facts"][0]["sources"],
        json!([{"id": first, "title": "Timetable", "published_at": "1999-01-01"}])
    );
    assert_eq!(row["facts"][1]["sources"][0]["id"], json!(second));

    // Nothing is new, so nothing is judged. A fact that comes to another concept is compared with what is there.
    let before = last(&app).await;
    compare(&app).await;
    assert_eq!(last(&app).await, before, "each pair is judged once");
    tell(&app, "Halden line", &[SEVEN]).await;
    compare(&app).await;
    assert_eq!(texts(&list(&app, "open").await), [[TWO, SEVEN], [FIVE, SEVEN], [FIVE, TWO]]);
    assert_eq!(last(&app).await, before + 2, "only the new one's pairs");
    speak_of(&app, "Halden line", &[NONE]).await;
    compare(&app).await;
    assert_eq!(app.count(JUDGED).await, 6, "whoever comes to the concept is compared with all of it");

    // A rejected fact contradicts nobody, and nobody is asked when it is back.
    let path = format!("/facts/{}", fact(&app, SEVEN).await.1);
    assert_eq!(app.put(&path, &json!({"status": "rejected"})).await.status, 200);
    compare(&app).await;
    assert!(!texts(&list(&app, "open").await).iter().flatten().any(|text| *text == SEVEN));
    let before = last(&app).await;
    assert_eq!(app.put(&path, &json!({"status": "stable"})).await.status, 200);
    compare(&app).await;
    assert!(texts(&list(&app, "open").await).iter().flatten().any(|text| *text == SEVEN));
    assert_eq!(last(&app).await, before);
    // One that is deleted takes everything with it.
    forget_source(app.service.api.app.databases(), app.repository, first).await;
    compare(&app).await;
    assert!(!texts(&list(&app, "open").await).iter().flatten().any(|text| *text == FIVE));
    assert_eq!(app.count(JUDGED).await, 3);
}

#[tokio::test]
async fn what_people_say_is_not_found_anew() {
    let app = started(&[]).await;
    tell(&app, "Halden line", &[FIVE, TWO]).await;
    compare(&app).await;
    let id = list(&app, "open").await[0]["id"].as_str().unwrap().to_owned();
    mark(&app, &id, "not_a_contradiction", "Two lines").await;
    // As if nobody had judged it before.
    let number = fact(&app, TWO).await.0;
    app.sql("DELETE FROM okt_repository.fact_judgements").await;
    app.sql("DELETE FROM okt_repository.fact_contradictions").await;
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    fact_judgements::note(&mut tx, app.repository, &[number]).await.unwrap();
    tx.commit().await.unwrap();
    compare(&app).await;
    assert_eq!(app.count(JUDGED).await, 1, "it was judged again");
    assert!(list(&app, "open").await.is_empty());
    let rows = list(&app, "not_a_contradiction").await;
    assert_eq!((texts(&rows), &rows[0]["note"]), (vec![[FIVE, TWO]], &json!("Two lines")));
}

async fn with_model(behaviour: Behaviour, settings: &[(&str, &str)]) -> TestApp {
    let own = [("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL), NEAR];
    let prices = "input_cost_per_1m = 1.0\noutput_cost_per_1m = 2.0";
    let mut app = TestApp::builder()
        .vectors()
        .models(behaviour, prices)
        .settings(&own)
        .settings(settings)
        .start()
        .await;
    app.work().await;
    app
}

/// It says so only if the older fact is shown as the statement.
fn one_way(sentence: &str, fact: &str) -> &'static str {
    match (sentence, fact) {
        (one, other) if one.contains("red") && other.contains("sails") => "contradicts",
        _ => "related",
    }
}

const RED: &str = "The ferry of the Halden line is painted in a deep red.";
const SAILS: &str = "The ferry of the Halden line sails under a green hull.";

#[tokio::test]
async fn a_model_is_asked_once_in_both_directions_and_nobody_pays_twice() {
    let app = with_model(Behaviour { posture: one_way, ..Behaviour::default() }, &[]).await;
    tell(&app, "Halden line", &[RED, SAILS]).await;
    // What was answered can't be kept, as if the process were killed each time.
    app.sql(
        "CREATE FUNCTION okt_repository.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'killed' USING ERRCODE = '40001'; END $$",
    )
    .await;
    app.sql(
        "CREATE TRIGGER die BEFORE UPDATE ON okt_repository.fact_judgements FOR EACH ROW EXECUTE FUNCTION okt_repository.die()",
    )
    .await;
    jobs::push(app.service.api.app.databases(), app.repository, &RefreshConceptRelations {}, When::default())
        .await;
    eventually(Duration::from_mins(2), "it has failed", async || {
        let failed = app
            .count("SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'check_contradictions' AND state = 'retryable'")
            .await;
        if failed == 1 { Ok(()) } else { Err(failed) }
    })
    .await;
    assert_eq!(asked(&app).await, 2, "once in each direction");
    app.sql("DROP TRIGGER die ON okt_repository.fact_judgements").await;
    app.sql("UPDATE okt_tasks.jobs SET scheduled_at = now() WHERE kind = 'check_contradictions'").await;
    compare(&app).await;
    assert_eq!(asked(&app).await, 2, "what was answered is known");
    let rows = list(&app, "open").await;
    assert_eq!(texts(&rows), [[RED, SAILS]]);
    assert_eq!((&rows[0]["judged_by"], &rows[0]["found_by"]), (&json!(MODEL), &json!("posture")));
    assert!(rows[0]["confidence"].as_f64().is_some_and(|sure| (sure - 0.9).abs() < 0.001), "{rows:#?}");
    compare(&app).await;
    assert_eq!(asked(&app).await, 2);
    let left = app
        .count("SELECT count(*) FROM okt_repository.model_answers WHERE subject_kind = 'repository'")
        .await;
    assert_eq!(left, 0, "answers that nobody asks for again are gone");
}

#[tokio::test]
async fn pairs_wait_for_the_budget_and_are_judged_when_there_is_money() {
    let budget = [("SVC__BUDGET__DEFAULT_USD", "0.000001")];
    let app = with_model(Behaviour { posture: one_way, ..Behaviour::default() }, &budget).await;
    tell(&app, "Halden line", &[RED, SAILS]).await;
    jobs::push(app.service.api.app.databases(), app.repository, &RefreshConceptRelations {}, When::default())
        .await;
    let mut waits = Value::Null;
    eventually(Duration::from_mins(1), "it waits for the budget", async || {
        waits = app.read("/jobs?kind=check_contradictions").await;
        if waits["data"][0]["waiting_for"] == "budget" { Ok(()) } else { Err(waits.clone()) }
    })
    .await;
    assert!(list(&app, "open").await.is_empty());
    let raised = app.put("/settings/budget", &json!({"monthly_usd": 1.0, "on_exceed": "pause"})).await;
    assert!(raised.status.is_success(), "{raised:?}");
    eventually(Duration::from_mins(1), "it goes on when there is money", async || {
        let rows = list(&app, "open").await;
        if rows.len() == 1 { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await;
}
