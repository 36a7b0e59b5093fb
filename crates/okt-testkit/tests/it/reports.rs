//! Reports that are checked sentence by sentence, and stay checked.

mod command;
mod evidence;
mod exported;
mod found;
mod hard;
mod judged;
mod kept;
mod models;
mod recorded;

use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

const SUN: &str = "Honey bees find the way back to their hive by the position of the sun.";
const MITE: &str = "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006.";
const HEIGHT: &str = "The tallest hive in the valley of Arn is exactly 212 centimetres high.";

async fn started() -> TestApp {
    let mut app = TestApp::builder().vectors().start().await;
    app.work().await;
    app
}

/// Adds a source that says this, and waits until its facts were compared with the others; its id.
async fn source(app: &TestApp, name: &str, text: &str) -> String {
    let id = app.add_text(name, text).await;
    app.settled(&id).await;
    id
}

async fn write(app: &TestApp, title: &str, body: &str) -> String {
    let made = app.post("/reports", &json!({"title": title, "body_markdown": body})).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["id"].as_str().unwrap().to_owned()
}

/// The health of a report once nothing of it waits and this is so.
async fn health(app: &TestApp, report: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/reports/{report}/health");
    let mut seen = Value::Null;
    eventually(Duration::from_mins(2), what, async || {
        let health = app.read(&path).await;
        let done =
            health["status"] == "annotated" && health["counts"]["waiting"] == 0 && is(&health["counts"]);
        seen = health.clone();
        if done { Ok(()) } else { Err(health) }
    })
    .await;
    seen
}

async fn sentences(app: &TestApp, report: &str) -> Vec<(String, String)> {
    let rows = app.read(&format!("/reports/{report}/sentences")).await;
    let rows = rows["data"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (word(&row["text"]), word(&row["state"]))).collect()
}

#[tokio::test]
async fn a_report_is_checked_sentence_by_sentence() {
    let app = started().await;
    source(&app, "bees.txt", &format!("{SUN} {MITE}")).await;
    let body = format!(
        "# Honey bees and the sun\n\n{SUN} Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.\n\n\
         Nothing is known here of the price of copper on the markets of Zurich in 1911.\n\n```\n{SUN}\n```\n"
    );
    let report = write(&app, "Bees", &body).await;
    let health = health(&app, &report, "the report is checked", |counts| counts["supported"] == 1).await;
    assert_eq!(
        (&health["counts"]["contradicted"], &health["counts"]["unsupported"]),
        (&json!(1), &json!(1)),
        "{health:#}"
    );
    let sentences = sentences(&app, &report).await;
    let stands = |text: &str| {
        let found = sentences.iter().find(|(sentence, _)| sentence.contains(text));
        found.map(|(_, state)| state.as_str())
    };
    assert_eq!(stands("position of the sun"), Some("supported"), "{sentences:?}");
    assert_eq!(stands("70 percent"), Some("contradicted"), "{sentences:?}");
    assert_eq!(stands("copper"), Some("unsupported"), "{sentences:?}");

    // Offsets are those of the Markdown, in code points.
    let rows = app.read(&format!("/reports/{report}/annotations")).await;
    let rows = rows["data"].as_array().unwrap();
    let supports = rows.iter().find(|row| row["posture"] == "supports").unwrap();
    let (start, end) = (supports["start"].as_u64().unwrap(), supports["end"].as_u64().unwrap());
    let chars: Vec<char> = body.chars().collect();
    let cut: String = chars[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()].iter().collect();
    assert_eq!((cut.as_str(), &supports["fact_text"]), (SUN, &json!(SUN)));
    assert_eq!(supports["judged_by"], "builtin-posture-1");
    assert!(rows.iter().any(|row| row["posture"] == "contradicts"), "{rows:#?}");
    // The history says how it began.
    let changes = health["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3, "{health:#}");
    assert!(changes.iter().all(|change| change["cause"] == "checked" && change["before"].is_null()));
}

#[tokio::test]
async fn reports_have_parts_and_are_changed_sentence_by_sentence() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    let parent = write(&app, "All", "Nothing is said in this part of the report of anything at all.").await;
    let body = json!({"title": "Bees", "topic": "Bees", "body_markdown": SUN, "parent_id": parent});
    let made = app.post("/reports", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let part = made.json()["id"].as_str().unwrap().to_owned();
    assert!(made.json()["job_id"].is_string());
    health(&app, &part, "the part is checked", |counts| counts["supported"] == 1).await;
    let rows = app.read(&format!("/reports?parent_id={parent}")).await;
    assert_eq!((rows["data"].as_array().unwrap().len(), &rows["data"][0]["id"]), (1, &json!(part)));
    assert_eq!(app.read("/reports").await["data"].as_array().unwrap().len(), 2);
    // No circles.
    let circle = app.put(&format!("/reports/{parent}"), &json!({"parent_id": part})).await;
    assert_eq!(circle.status, 409, "{circle:?}");
    let unknown = app
        .put(&format!("/reports/{parent}"), &json!({"parent_id": "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37"}))
        .await;
    assert_eq!(unknown.status, 422, "{unknown:?}");

    // What a person said of a sentence stays when others come before it.
    let rows = app.read(&format!("/reports/{part}/annotations")).await;
    let n = rows["data"][0]["n"].as_i64().unwrap();
    let judged =
        app.put(&format!("/reports/{part}/annotations/{n}"), &json!({"posture": "contradicts"})).await;
    assert_eq!(judged.status, 200, "{judged:?}");
    assert_eq!(
        (&judged.json()["judged_by"], &judged.json()["posture"]),
        (&json!("person"), &json!("contradicts"))
    );
    let longer = format!("Nobody has ever written this sentence about anything before today.\n\n{SUN}");
    let changed = app
        .put(&format!("/reports/{part}"), &json!({"body_markdown": longer, "topic": "", "parent_id": ""}))
        .await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!((&changed.json()["topic"], &changed.json()["parent_id"]), (&Value::Null, &Value::Null));
    let seen = health(&app, &part, "both sentences are checked", |counts| counts["unsupported"] == 1).await;
    assert_eq!(seen["counts"]["contradicted"], 1, "{seen:#}");
    assert!(seen["changes"].as_array().unwrap().iter().any(|change| change["cause"] == "person"), "{seen:#}");
    let again = app.post(&format!("/reports/{part}/annotate"), &Value::Null).await;
    assert_eq!(again.status, 202, "{again:?}");
    app.ended(again.json()["job_id"].as_str().unwrap()).await;
    let seen = health(&app, &part, "it was checked again", |_| true).await;
    assert_eq!(seen["counts"]["contradicted"], 1, "what a person said stays: {seen:#}");
    let body = app.read(&format!("/reports/{part}?include=body")).await;
    assert_eq!(body["body_markdown"], json!(longer));

    assert_eq!(app.read("").await["counts"]["reports"], 2);
    assert_eq!(app.delete(&format!("/reports/{parent}")).await.status, 204);
    assert_eq!(app.get(&format!("/reports/{parent}")).await.status, 404);
    assert_eq!(app.delete(&format!("/reports/{part}")).await.status, 204);
    assert_eq!(app.read("").await["counts"]["reports"], 0);
    for table in ["reports", "report_sentences", "report_annotations", "report_changes"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_long_report_is_taken_and_a_longer_one_is_not() {
    let app = TestApp::start().await;
    let long = format!("{MITE} ").repeat(20_000);
    assert!(long.len() > 1_048_576 && long.len() < 8_388_608);
    let made = app.post("/reports", &json!({"title": "Long", "body_markdown": long})).await;
    assert_eq!((made.status.as_u16(), &made.json()["sentence_count"]), (201, &json!(20_000)), "{made:?}");
    let longer = "x ".repeat(4_300_000);
    let refused = app.post("/reports", &json!({"title": "Longer", "body_markdown": longer})).await;
    assert_eq!(refused.status, 413, "{refused:?}");
    let many = "Bees fly home in the evening. ".repeat(60_000);
    let refused = app.post("/reports", &json!({"title": "Many", "body_markdown": many})).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let elsewhere = app.post("/evidence", &json!({"claim": "x ".repeat(600_000)})).await;
    assert_eq!(elsewhere.status, 413, "only reports may be that long: {elsewhere:?}");
}

#[tokio::test]
async fn who_may_read_may_not_judge() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "the report is checked", |counts| counts["supported"] == 1).await;
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let n = app.read(&format!("/reports/{report}/annotations")).await["data"][0]["n"].as_i64().unwrap();
    let judge = format!("/reports/{report}/annotations/{n}");
    let judged = app.send(&viewer, Method::PUT, &judge, &json!({"posture": "related"})).await;
    assert_eq!(judged.status, 403, "{judged:?}");
    let other = write(&app, "Other", HEIGHT).await;
    let elsewhere =
        app.put(&format!("/reports/{other}/annotations/{n}"), &json!({"posture": "related"})).await;
    assert_eq!(elsewhere.status, 404, "an annotation of another report: {elsewhere:?}");
    for bad in [json!({"posture": "unclear"}), json!({})] {
        let word = app.put(&judge, &bad).await;
        assert_eq!(word.status, 422, "{word:?}");
    }
}
