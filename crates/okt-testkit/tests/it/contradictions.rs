//! Facts that may contradict each other: how they are listed, what people say of them, and what that changes.

mod postures;

use http::Method;
use okt_model::{ContradictionFoundBy, Difference, FactStatus, JobId, MergedBy, SourceId};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::fact_merges::{self, Merge};
use okt_testkit::accounts::{give, register};
use okt_testkit::app::TestApp;
use okt_testkit::facts::{forget_source, insert_source, new_fact, replace_facts};
use serde_json::{Value, json};
use uuid::Uuid;

const FIVE: &str = "The Halden line runs five ferries.";
const TWO: &str = "The Halden line runs two ferries.";
const PAIR: &str = "The line of Halden runs 2 ferries.";
const NONE: &str = "The Halden line does not run ferries.";

/// A source that says this.
async fn say(app: &TestApp, texts: &[&str]) -> SourceId {
    let databases = app.service.api.app.databases();
    let source = insert_source(databases, app.repository).await;
    let facts: Vec<_> = texts.iter().map(|text| new_fact(text)).collect();
    replace_facts(databases, app.repository, source, &facts, FactStatus::Stable).await;
    source
}

/// The number and the id of a fact.
async fn fact(app: &TestApp, text: &str) -> (i64, Uuid) {
    let found = sqlx::query_as("SELECT no, id FROM okt_repository.facts WHERE text = $1").bind(text);
    found.fetch_one(&mut app.connect().await).await.unwrap()
}

async fn contradict(app: &TestApp, one: &str, other: &str, difference: Difference) {
    let facts = (fact(app, one).await.0, fact(app, other).await.0);
    let found =
        NewContradiction { facts, difference, cosine: 0.95, found_by: ContradictionFoundBy::RefusedMerge };
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    fact_contradictions::insert(&mut tx, app.repository, &[found]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn merge(app: &TestApp, duplicate: &str, into: &str) {
    let (fact, into) = (fact(app, duplicate).await.0, fact(app, into).await.0);
    let merge = Merge { fact, into, cosine: 0.97, by: MergedBy::Rule };
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn list(app: &TestApp, state: &str) -> Vec<Value> {
    app.read(&format!("/contradictions?state={state}")).await["data"].as_array().unwrap().clone()
}

/// The texts of both sides of each row.
fn texts(rows: &[Value]) -> Vec<[&str; 2]> {
    rows.iter().map(|row| [0, 1].map(|side| row["facts"][side]["text"].as_str().unwrap())).collect()
}

async fn mark(app: &TestApp, id: &str, state: &str, note: &str) -> Value {
    let marked = app.put(&format!("/contradictions/{id}"), &json!({"state": state, "note": note})).await;
    assert_eq!(marked.status, 200, "{marked:?}");
    marked.json()
}

/// The texts that a fact shows as candidates.
async fn candidates(app: &TestApp, text: &str) -> Vec<String> {
    let seen = app.read(&format!("/facts/{}", fact(app, text).await.1)).await;
    let rows = seen["candidate_contradictions"].as_array().unwrap();
    rows.iter().map(|row| row["text"].as_str().unwrap().to_owned()).collect()
}

async fn among(app: &TestApp) -> usize {
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let all: Vec<i64> = sqlx::query_scalar("SELECT no FROM okt_repository.facts WHERE merged_into IS NULL")
        .fetch_all(&mut *tx)
        .await
        .unwrap();
    fact_contradictions::list_among(&mut tx, app.repository, &all).await.unwrap().len()
}

#[tokio::test]
async fn both_sides_are_listed_with_their_sources_and_what_is_said_of_them() {
    let app = TestApp::start().await;
    let first = say(&app, &[FIVE]).await;
    let (second, third) = (say(&app, &[TWO]).await, say(&app, &[TWO, NONE]).await);
    for (source, date) in [(first, "2001-02-03"), (second, "1999-01-01"), (third, "2010-05-06")] {
        app.sql(&format!("UPDATE okt_repository.sources SET published_at = '{date}' WHERE id = '{source}'"))
            .await;
    }
    contradict(&app, FIVE, TWO, Difference::Number).await;
    contradict(&app, TWO, NONE, Difference::Negation).await;
    contradict(&app, FIVE, NONE, Difference::Judged).await;
    let rows = list(&app, "open").await;
    assert_eq!(texts(&rows), [[TWO, NONE], [FIVE, TWO]], "what people took apart is no candidate");
    let row = &rows[1];
    assert_eq!(
        (&row["state"], &row["difference"], &row["found_by"]),
        (&json!("open"), &json!("number"), &json!("refused_merge"))
    );
    assert_eq!(
        (&row["note"], &row["user_id"], &row["decided_at"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(row["id"], format!("{}.{}", fact(&app, FIVE).await.1, fact(&app, TWO).await.1));
    let side = &row["facts"][1];
    assert_eq!(
        (&side["all_sources"], &side["first_published"], &side["last_published"]),
        (&json!(2), &json!("1999-01-01"), &json!("2010-05-06"))
    );
    let retracted = app.put(&format!("/sources/{first}/mark"), &json!({"kind": "retracted"})).await;
    assert_eq!(retracted.status, 200, "{retracted:?}");
    let rows = app.read("/contradictions").await["data"].as_array().unwrap().clone();
    assert_eq!(
        (&rows[1]["facts"][0]["retracted"], &rows[1]["facts"][1]["retracted"]),
        (&json!(true), &json!(false))
    );

    let marked = mark(&app, row["id"].as_str().unwrap(), "scope_differs", " Before and after 2005 ").await;
    let seen = &marked["contradiction"];
    assert_eq!((&seen["state"], &seen["note"]), (&json!("scope_differs"), &json!("Before and after 2005")));
    assert_eq!(seen["user_id"], json!(app.owner.id));
    assert!(marked["curation_id"].is_string() && seen["decided_at"].is_string(), "{marked:#}");
    assert_eq!(texts(&list(&app, "open").await), [[TWO, NONE]]);
    let rows = list(&app, "scope_differs").await;
    assert_eq!(texts(&rows), [[FIVE, TWO]]);
    assert_eq!(rows[0]["note"], "Before and after 2005");
    assert!(list(&app, "real").await.is_empty());
    let fact = app.read(&format!("/facts/{}", fact(&app, FIVE).await.1)).await;
    assert_eq!(fact["candidate_contradictions"][0]["state"], "scope_differs", "{fact:#}");
    // Said again, in either order of the two.
    let turned: Vec<&str> = row["id"].as_str().unwrap().rsplit('.').collect();
    let again = mark(&app, &turned.join("."), "scope_differs", "Before and after 2005").await;
    assert_eq!(again["curation_id"], Value::Null);
    let step = app.read("/curation?limit=1").await["data"][0].clone();
    assert_eq!(
        (&step["action"], &step["contradiction"]),
        (&json!("mark_contradiction"), &json!("scope_differs"))
    );
    assert_eq!(step["fact_ids"].as_array().unwrap().len(), 2);
    let recorded =
        app.count("SELECT count(*) FROM okt_system.audit WHERE action = 'contradiction.marked'").await;
    assert_eq!(recorded, 1);
}

#[tokio::test]
async fn what_is_no_contradiction_is_not_shown_again() {
    let app = TestApp::start().await;
    let source = say(&app, &[FIVE, TWO]).await;
    contradict(&app, FIVE, TWO, Difference::Number).await;
    assert_eq!((candidates(&app, FIVE).await, among(&app).await), (vec![TWO.to_owned()], 1));
    let id = list(&app, "open").await[0]["id"].as_str().unwrap().to_owned();
    mark(&app, &id, "not_a_contradiction", "Two lines").await;
    assert_eq!((candidates(&app, FIVE).await, among(&app).await), (Vec::<String>::new(), 0));
    assert!(candidates(&app, TWO).await.is_empty() && list(&app, "open").await.is_empty());

    // Another fact takes one of them in; and the pair is found between the others of both.
    say(&app, &[PAIR]).await;
    contradict(&app, FIVE, PAIR, Difference::Number).await;
    assert_eq!(list(&app, "open").await.len(), 1, "of that nobody has said anything");
    merge(&app, PAIR, TWO).await;
    assert_eq!(
        (list(&app, "open").await.len(), among(&app).await, candidates(&app, FIVE).await.len()),
        (0, 0, 0)
    );
    assert_eq!(texts(&list(&app, "not_a_contradiction").await), [[FIVE, TWO]]);

    // The source is gone, and read anew.
    let databases = app.service.api.app.databases();
    forget_source(databases, app.repository, source).await;
    app.sql("DELETE FROM okt_repository.fact_contradictions").await;
    say(&app, &[FIVE, TWO]).await;
    contradict(&app, FIVE, TWO, Difference::Number).await;
    assert_eq!(
        (list(&app, "open").await.len(), among(&app).await, candidates(&app, FIVE).await.len()),
        (0, 0, 0)
    );
    let id = list(&app, "not_a_contradiction").await[0]["id"].as_str().unwrap().to_owned();
    mark(&app, &id, "open", "").await;
    assert_eq!((list(&app, "open").await.len(), among(&app).await), (1, 1));
}

#[tokio::test]
async fn what_was_said_is_taken_back_exactly() {
    let app = TestApp::start().await;
    say(&app, &[FIVE, TWO, PAIR]).await;
    contradict(&app, FIVE, TWO, Difference::Number).await;
    contradict(&app, FIVE, PAIR, Difference::Number).await;
    let rows = list(&app, "open").await;
    let id = |of: &str| {
        rows.iter().find(|row| row["facts"][1]["text"] == of).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let real = mark(&app, &id(TWO), "real", "So it is").await;
    mark(&app, &id(PAIR), "not_a_contradiction", "A slip").await;
    merge(&app, PAIR, TWO).await;
    assert_eq!(list(&app, "not_a_contradiction").await.len(), 1, "what was said last holds");
    assert!(list(&app, "real").await.is_empty());
    let step =
        mark(&app, &id(TWO), "scope_differs", "Years").await["curation_id"].as_str().unwrap().to_owned();
    assert_eq!(list(&app, "scope_differs").await.len(), 1);
    let first =
        app.post(&format!("/curation/{}/undo", real["curation_id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(first.status, 409, "a later step changed the same: {first:?}");
    let undone = app.post(&format!("/curation/{step}/undo"), &Value::Null).await;
    assert_eq!(undone.status, 200, "{undone:?}");
    let rows = list(&app, "not_a_contradiction").await;
    assert_eq!((rows.len(), &rows[0]["note"]), (1, &json!("A slip")));
    let first =
        app.post(&format!("/curation/{}/undo", real["curation_id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(first.status, 200, "{first:?}");
    let left = app.count("SELECT count(*) FROM okt_repository.contradiction_states").await;
    assert_eq!(left, 1);
}

#[tokio::test]
async fn pages_follow_each_other_and_only_what_is_known_can_be_marked() {
    let app = TestApp::start().await;
    let all: Vec<String> = (0..7).map(|at| format!("The Halden line runs {} ferries.", at + 10)).collect();
    let named: Vec<&str> = all.iter().map(String::as_str).collect();
    say(&app, &named).await;
    for (at, one) in named.iter().enumerate() {
        for other in &named[at + 1..] {
            contradict(&app, one, other, Difference::Number).await;
        }
    }
    let ids = async |state: &str| {
        let (mut seen, mut next) = (Vec::new(), format!("/contradictions?state={state}&limit=4"));
        loop {
            let page = app.read(&next).await;
            seen.extend(
                page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()),
            );
            let Some(cursor) = page["next_cursor"].as_str() else { return seen };
            next = format!("/contradictions?state={state}&limit=4&cursor={cursor}");
        }
    };
    let open = ids("open").await;
    assert_eq!(open.iter().collect::<std::collections::BTreeSet<_>>().len(), 21);
    assert_eq!(open.len(), 21);
    for id in &open[3..12] {
        mark(&app, id, "real", "").await;
    }
    assert_eq!((ids("open").await.len(), ids("real").await), (12, open[3..12].to_vec()));

    let put = async |id: &str, body: Value| app.put(&format!("/contradictions/{id}"), &body).await;
    for id in ["x", "x.y", &Uuid::nil().to_string(), &format!("{}.{}", Uuid::nil(), Uuid::nil())] {
        assert_eq!(put(id, json!({"state": "real"})).await.status, 404, "{id}");
    }
    let same = open[0].split('.').next().unwrap();
    assert_eq!(put(&format!("{same}.{same}"), json!({"state": "real"})).await.status, 404);
    for (body, field) in [
        (json!({"state": "true"}), "state"),
        (json!({"state": "real", "note": "x".repeat(1_001)}), "note"),
        (json!({}), "state"),
    ] {
        let refused = put(&open[0], body).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.json()["errors"].to_string().contains(field), "{refused:?}");
    }
    assert_eq!(app.get("/contradictions?state=maybe").await.status, 422);
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    assert_eq!(app.get_as(&viewer, "/contradictions").await.status, 200);
    let path = format!("/contradictions/{}", open[0]);
    assert_eq!(app.send(&viewer, Method::PUT, &path, &json!({"state": "real"})).await.status, 403);
    // A rejected fact contradicts nobody.
    let fact = open[0].split('.').next().unwrap();
    assert_eq!(app.put(&format!("/facts/{fact}"), &json!({"status": "rejected"})).await.status, 200);
    assert!(!ids("open").await.contains(&open[0]));
    assert_eq!(put(&open[0], json!({"state": "real"})).await.status, 404);
}
