//! What becomes of texts while models answer nothing of use, or nothing at all.

use std::time::{Duration, Instant};

use okt_jobs::SweepConceptRelations;
use okt_queue::jobs;
use okt_testkit::app::TestApp;
use okt_testkit::llm::{Behaviour, Citing, Faults};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::slices::merge;
use super::{app, check, check_kept, cited, deeds, fact_id, link, say, settle, settled};

fn garbage() -> Behaviour {
    Behaviour { faults: Faults { garbage: 1.0, ..Faults::default() }, ..Behaviour::default() }
}

/// Has the job that gave something up run again.
async fn retry(app: &TestApp) {
    let failed = app.read("/jobs?kind=summarize_concepts&state=discarded").await;
    let job = failed["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{failed:#}"));
    let retried = app.post(&format!("/jobs/{job}/retry"), &Value::Null).await;
    assert!(retried.status.is_success(), "{retried:?}");
    settled(app).await;
}

/// Requests to the model so far.
async fn asked(app: &TestApp) -> u64 {
    app.models.await_stats(|stats| stats.in_flight == 0).await.requests
}

/// A model that answers nothing of use leaves what was written before, and it is said why.
#[tokio::test]
async fn what_is_not_answered_keeps_its_last_text() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 3);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts[..2]).await;
    settle(&app).await;
    let seen = async || {
        let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
        let definition = app.read(&format!("/concepts/{concept}/definition")).await;
        (slices["data"][0].clone(), definition)
    };
    let (slice, definition) = seen().await;

    app.models.behave(garbage());
    link(&app, "Hive A", "Place", &texts[2..]).await;
    settle(&app).await;
    let (kept, still) = seen().await;
    assert_eq!((&kept["content"], &kept["is_current"]), (&slice["content"], &json!(false)), "{kept:#}");
    assert!(kept["failure"].is_string() && kept["fact_ids"].as_array().unwrap().len() == 3, "{kept:#}");
    assert_eq!(still["content"], definition["content"]);
    assert_eq!(
        (&still["synthesis"]["version"], &still["synthesis"]["is_current"]),
        (&json!(1), &json!(false)),
        "{still:#}"
    );

    // The model is itself again, and somebody has the job run again.
    app.models.behave(Behaviour::default());
    retry(&app).await;
    check(&app).await;
    let (written, anew) = seen().await;
    assert_eq!((&written["failure"], &written["is_current"]), (&Value::Null, &json!(true)), "{written:#}");
    assert_eq!(anew["synthesis"]["version"], 2, "{anew:#}");
    assert_eq!(cited(anew["content"].as_str().unwrap()).len(), 3);
}

/// An answer without a sentence takes nothing away: neither the text of the slice nor the definition made of it.
#[tokio::test]
async fn an_empty_answer_takes_nothing_away() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 3);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts[..2]).await;
    settle(&app).await;
    let before = app.read(&format!("/concepts/{concept}/definition")).await;
    app.models.behave(Behaviour { citing: Citing::Silent, ..Behaviour::default() });
    link(&app, "Hive A", "Place", &texts[2..]).await;
    settle(&app).await;
    let slice = app.read(&format!("/concepts/{concept}/summaries")).await["data"][0].clone();
    assert_eq!((&slice["method"], &slice["is_current"]), (&json!("model"), &json!(false)), "{slice:#}");
    assert_eq!(cited(slice["content"].as_str().unwrap()).len(), 2, "{slice:#}");
    assert!(slice["failure"].is_string(), "{slice:#}");
    let after = app.read(&format!("/concepts/{concept}/definition")).await;
    assert_eq!((&after["content"], &after["versions"]), (&before["content"], &before["versions"]));
    check_kept(&app).await;

    // Nor is it kept as an answer: whoever tries again asks again.
    app.models.behave(Behaviour::default());
    retry(&app).await;
    check(&app).await;
}

/// All facts of a slice became others, and nobody writes of these: the definition stays as long as there are any.
#[tokio::test]
async fn a_definition_stays_while_its_slices_have_no_words() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (older, newer) = (deeds("A", 1, 2), deeds("A", 50, 2));
    say(&app, &older).await;
    say(&app, &newer).await;
    let concept = link(&app, "Hive A", "Place", &newer).await;
    settle(&app).await;
    app.models.behave(garbage());
    for (one, other) in older.iter().zip(&newer) {
        merge(&app, fact_id(&app, one).await, fact_id(&app, other).await).await.unwrap();
    }
    settle(&app).await;
    let slice = app.read(&format!("/concepts/{concept}/summaries")).await["data"][0].clone();
    assert_eq!(slice["method"], "extractive", "{slice:#}");
    let kept = "SELECT count(*) FROM okt_repository.concept_syntheses WHERE name_key = 'hive a'";
    assert_eq!(app.count(kept).await, 1, "the last good one stays");

    // Without a fact there is none.
    for text in &older {
        let path = format!("/facts/{}", fact_id(&app, text).await);
        assert!(app.put(&path, &json!({"status": "rejected"})).await.status.is_success());
    }
    settle(&app).await;
    assert_eq!(app.count(kept).await, 0, "nothing is known any more");
}

/// A slice whose answer can't be used is not paid for again with each new fact of its concept.
#[tokio::test]
async fn a_slice_that_was_given_up_is_not_paid_for_again() {
    let mut app = app(garbage(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 5);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts[..4]).await;
    settle(&app).await;
    let first = asked(&app).await;
    assert_eq!(first, 2, "one complaint");
    link(&app, "Hive A", "Place", &texts[4..]).await;
    settle(&app).await;
    assert_eq!(asked(&app).await - first, 2, "the slice of the new fact, and not the closed one");

    // Turning the stage on has all of it tried again.
    app.models.behave(Behaviour::default());
    let on = app.put("/settings/stages", &json!({"summarization": true})).await;
    assert_eq!(on.status, 200, "{on:?}");
    settled(&app).await;
    check(&app).await;
    assert_eq!(app.read(&format!("/concepts/{concept}/definition")).await["synthesis"]["version"], 1);
}

/// A wrong key: it is said, nothing is given up, and once it is right everything is written without anybody's help.
#[tokio::test]
async fn while_no_model_answers_nothing_is_given_up() {
    let refused = Faults { refused: 1.0, ..Faults::default() };
    let mut app = app(Behaviour { faults: refused, ..Behaviour::default() }, &[]).await;
    app.work().await;
    let mut concepts = Vec::new();
    for hive in ["A", "B", "C"] {
        let texts = deeds(hive, 1, 6);
        say(&app, &texts).await;
        concepts.push(link(&app, &format!("Hive {hive}"), "Place", &texts).await);
    }
    settle(&app).await;
    let ended = app.read("/jobs?kind=summarize_concepts&state=discarded").await;
    let id = ended["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{ended:#}"));
    let said = app.read(&format!("/jobs/{id}")).await.to_string();
    assert!(said.contains("401") && said.contains("wait for the next run"), "{said}");

    app.models.behave(Behaviour::default());
    jobs::push(app.service.api.app.databases(), &SweepConceptRelations {}, Duration::ZERO).await.unwrap();
    eventually(Duration::from_mins(1), "the sweep has ended", async || {
        let open = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'sweep_concept_relations' AND finished_at IS NULL";
        let open = app.count(open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
    settled(&app).await;
    check(&app).await;
    for concept in &concepts {
        let definition = app.read(&format!("/concepts/{concept}/definition")).await;
        assert_eq!(definition["synthesis"]["is_current"], true, "{definition:#}");
    }
}

/// Vectors that do not come are waited for once, however many slices wait for their text.
#[tokio::test]
async fn a_page_of_unwritten_slices_waits_for_vectors_once() {
    let embedding = [("SVC__PROVIDERS__EMBEDDING__MODEL", okt_model::EMBEDDING_MODEL)];
    let mut app = app(garbage(), &embedding).await;
    app.work().await;
    let texts = deeds("A", 1, 16);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts).await;
    settle(&app).await;
    let mut conn = app.connect().await;
    let mut tx = conn.begin().await.unwrap();
    let hold = "LOCK TABLE okt_vectors.points IN ACCESS EXCLUSIVE MODE";
    sqlx::query(hold).execute(&mut *tx).await.unwrap();
    let began = Instant::now();
    let slices = app.read(&format!("/concepts/{concept}/summaries")).await;
    let took = began.elapsed();
    tx.rollback().await.unwrap();
    let slices = slices["data"].as_array().unwrap();
    assert_eq!(slices.len(), 4, "{slices:#?}");
    for slice in slices {
        assert_eq!(slice["method"], "extractive", "{slice:#}");
        let (shown, facts) =
            (cited(slice["content"].as_str().unwrap()), slice["fact_ids"].as_array().unwrap());
        assert!(
            !shown.is_empty() && shown.iter().all(|id| facts.contains(&json!(id.to_string()))),
            "{slice:#}"
        );
    }
    assert!(took >= Duration::from_millis(1_500), "nobody waited: {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
