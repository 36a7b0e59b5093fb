//! What people say of facts and sentences: it stays, it is told, and it can be taken back.

use std::time::Duration;

use okt_model::{CheckReports, FactId, JobId, MergedBy};
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_testkit::app::TestApp;
use okt_testkit::jobs;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use super::{SUN, health, source, started, write};

const NEVER: &str = "Honey bees never find the way back to their hive by the position of the sun.";

/// What is said of the fact with this text.
async fn said(app: &TestApp, report: &str, fact: &str) -> Value {
    let rows = app.read(&format!("/reports/{report}/annotations")).await;
    let rows = rows["data"].as_array().unwrap().iter();
    rows.clone().find(|row| row["fact_text"] == fact).cloned().unwrap_or_else(|| panic!("{rows:?}"))
}

async fn judge(app: &TestApp, report: &str, fact: &str, posture: Value) -> Value {
    let n = &said(app, report, fact).await["n"];
    let judged = app.put(&format!("/reports/{report}/annotations/{n}"), &json!({ "posture": posture })).await;
    assert_eq!(judged.status, 200, "{judged:?}");
    judged.json()
}

async fn number_of(app: &TestApp, fact: &str) -> (i64, FactId) {
    let found: (i64, uuid::Uuid) = sqlx::query_as("SELECT no, id FROM okt_repository.facts WHERE text = $1")
        .bind(fact)
        .fetch_one(&mut app.connect().await)
        .await
        .unwrap();
    (found.0, found.1.into())
}

#[tokio::test]
async fn what_a_person_says_is_told_and_can_be_taken_back() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    let events = app.service.request(http::Method::GET, &app.path("/events")).bearer_auth(&app.owner.token);
    let mut events = events.send().await.unwrap();

    let judged = judge(&app, &report, SUN, json!("irrelevant")).await;
    assert_eq!((&judged["posture"], &judged["judged_by"]), (&json!("irrelevant"), &json!("person")));
    let mut told = String::new();
    let heard = async {
        while !told.contains("report.health_changed") || !told.ends_with("\n\n") {
            told.push_str(std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_mins(1), heard).await.expect("the event comes");
    let event = told.split("\n\n").find(|block| block.contains("report.health_changed")).unwrap();
    let data: Value = serde_json::from_str(event.split("data: ").nth(1).unwrap()).unwrap();
    assert_eq!(
        (&data["report_id"], &data["changed"], &data["counts"]["unsupported"]),
        (&json!(report), &json!(1), &json!(1)),
        "{data:#}"
    );

    // The same state, another posture: it is in the history all the same.
    judge(&app, &report, SUN, json!("related")).await;
    let seen = health(&app, &report, "nothing supports it", |counts| counts["unsupported"] == 1).await;
    let change = &seen["changes"][0];
    assert_eq!(
        [&change["cause"], &change["before"], &change["posture_before"], &change["posture_after"]],
        [&json!("person"), &json!("unsupported"), &json!("irrelevant"), &json!("related")],
        "{seen:#}"
    );
    let bare = app.read(&format!("/reports/{report}/health?history=false")).await;
    assert_eq!((&bare["changes"], &bare["counts"]), (&json!([]), &seen["counts"]));

    let back = judge(&app, &report, SUN, Value::Null).await;
    assert_eq!(back["judged_by"], "taken_back");
    let seen = health(&app, &report, "it is judged anew", |counts| counts["supported"] == 1).await;
    assert_eq!(seen["changes"][1]["posture_after"], Value::Null, "{seen:#}");
    let now = said(&app, &report, SUN).await;
    assert_eq!((&now["judged_by"], &now["person"]), (&json!("builtin-posture-1"), &Value::Null));
    let again =
        app.put(&format!("/reports/{report}/annotations/{}", now["n"]), &json!({ "posture": null })).await;
    assert_eq!(again.status, 409, "{again:?}");
}

#[tokio::test]
async fn a_fact_that_a_person_judged_and_that_is_gone_explains_no_later_change() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    judge(&app, &report, SUN, json!("supports")).await;
    let (_, fact) = number_of(&app, SUN).await;
    let rejected = app.put(&format!("/facts/{fact}"), &json!({"status": "rejected"})).await;
    assert!(rejected.status.is_success(), "{rejected:?}");
    eventually(Duration::from_mins(1), "it is told", async || {
        let seen = app.read(&format!("/reports/{report}/health")).await;
        if seen["changes"][0]["cause"] == "fact_removed" { Ok(()) } else { Err(seen) }
    })
    .await;
    source(&app, "other.txt", NEVER).await;
    let seen =
        health(&app, &report, "the new fact contradicts it", |counts| counts["contradicted"] == 1).await;
    assert_eq!(seen["changes"][0]["cause"], "fact_added", "{seen:#}");
    // And it counts again when it is there again.
    let restored = app.put(&format!("/facts/{fact}"), &json!({"status": "stable"})).await;
    assert!(restored.status.is_success(), "{restored:?}");
    eventually(Duration::from_mins(1), "both are shown", async || {
        let rows = app.read(&format!("/reports/{report}/annotations")).await;
        let person = |row: &Value| row["judged_by"] == "person" && row["fact_text"] == SUN;
        if rows["data"].as_array().unwrap().iter().any(person) { Ok(()) } else { Err(rows) }
    })
    .await;
}

#[tokio::test]
async fn what_a_person_said_follows_a_merge_and_its_undoing() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    source(&app, "other.txt", NEVER).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is contradicted", |counts| counts["contradicted"] == 1).await;
    judge(&app, &report, NEVER, json!("related")).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;

    let ((canonical, _), (duplicate, id)) = (number_of(&app, SUN).await, number_of(&app, NEVER).await);
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let merge = Merge { fact: duplicate, into: canonical, cosine: 0.97, by: MergedBy::Cosine };
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
    jobs::push(databases, app.repository, &CheckReports {}, When::default()).await;
    let seen = health(&app, &report, "it holds for the other", |counts| counts["unsupported"] == 1).await;
    assert_eq!(seen["changes"][0]["cause"], "judged", "{seen:#}");
    assert_eq!(said(&app, &report, SUN).await["judged_by"], "person");

    let mut tx = databases.begin("default", app.repository).await.unwrap();
    assert!(fact_merges::undo(&mut tx, app.repository, id, None).await.unwrap().is_some());
    tx.commit().await.unwrap();
    jobs::push(databases, app.repository, &CheckReports {}, When::default()).await;
    health(&app, &report, "it holds for its own fact alone", |counts| counts["supported"] == 1).await;
    assert_eq!(said(&app, &report, SUN).await["judged_by"], "builtin-posture-1");
    assert_eq!(said(&app, &report, NEVER).await["judged_by"], "person");
}
