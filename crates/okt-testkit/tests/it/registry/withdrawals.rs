//! What registries do not hand out any more, and what consumers learn of it.

use std::time::Duration;

use http::Method;
use okt_jobs::ReadWithdrawals;
use okt_queue::jobs;
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::registry::{TestRegistry, package};
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::service::{URL, path};
use super::trust::{key, sha256};
use super::{FACTS, add, id, is_imported, start};

/// Pushing what somebody else has pushed, and being moderated for it, takes nothing away from them.
#[tokio::test]
async fn bytes_that_another_key_has_pushed_are_not_withdrawn_with_those_of_a_bad_one() {
    let registry = TestRegistry::start(&[]).await;
    let (good, bad) = (registry.key(true, None).await, registry.key(true, None).await);
    let body = package(&FACTS);
    let source = twice(&registry, &good, &bad, &body).await;

    let id = bad.split('.').next().unwrap();
    assert_eq!(registry.registry.withdraw_all_of(id, "it is spam").await.unwrap(), (1, 0));
    let told = async || {
        let told = registry.get(&good, "/api/v1/withdrawals").await.json();
        told["data"].as_array().unwrap().len()
    };
    assert_eq!(told().await, 0, "it is still handed out");
    let listed = registry.get(&good, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed:#}");
    let pushed = registry.post(&good, &path(&source), &body).await;
    assert_eq!((pushed.status.as_u16(), &pushed.json()["facts_new"]), (201, &json!(0)), "{pushed:?}");

    // Until it is withdrawn itself.
    let source_id = source.parse().unwrap();
    assert_eq!(registry.registry.withdraw(source_id, "far-model", None, "it is wrong").await.unwrap(), 1);
    assert_eq!(told().await, 2);
    let refused = registry.post(&good, &path(&source), &body).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (409, "conflict"), "{refused:?}");
}

/// What is judged is what a package says, whoever else has pushed it.
#[tokio::test]
async fn a_version_is_withdrawn_with_all_that_have_its_bytes() {
    let registry = TestRegistry::start(&[]).await;
    let (one, other) = (registry.key(true, None).await, registry.key(true, None).await);
    let body = package(&FACTS);
    let source = twice(&registry, &one, &other, &body).await;
    assert_eq!(registry.post(&one, &path(&source), &package(&FACTS[..1])).await.status, 201);
    let source_id = source.parse().unwrap();
    let withdrawn = registry.registry.withdraw(source_id, "far-model", Some(1), "it is wrong").await;
    assert_eq!(withdrawn.unwrap(), 2);
    let told = registry.get(&one, "/api/v1/withdrawals").await.json();
    assert_eq!(told["data"].as_array().unwrap().len(), 2, "{told:#}");
    let refused = registry.post(&other, &path(&source), &body).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (409, "conflict"), "{refused:?}");
    let listed = registry.get(&one, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    let versions: Vec<&Value> =
        listed["data"].as_array().unwrap().iter().map(|row| &row["version"]).collect();
    assert_eq!(versions, [&json!(3)], "another package stays: {listed:#}");
}

/// A source with the same bytes of two keys, the second with a signature.
async fn twice(registry: &TestRegistry, one: &str, other: &str, body: &Value) -> String {
    let source = registry.source(one, URL).await;
    assert_eq!(registry.post(one, &path(&source), body).await.status, 201);
    let bytes = body.to_string();
    let again = registry.request(Method::POST, &path(&source)).bearer_auth(other);
    let again = again.header("content-type", "application/json");
    let again = again.header("x-okt-signature", key(1).sign(&sha256(bytes.as_bytes())));
    assert_eq!(Answer::of(again.body(bytes)).await.status, 201);
    assert_eq!(registry.count("SELECT count(*) FROM okt_registry.decompositions").await, 2);
    source
}

/// They are told, and nothing is removed for that.
#[tokio::test]
async fn consumers_learn_of_withdrawals() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let seen = add(&app).await;
    assert_eq!(seen["origin"]["withdrawn"], Value::Null);
    let hash = seen["extraction"]["registry"]["package_sha256"].clone();
    // The same bytes for another source, or of another model, are somebody else's.
    let row = |source: &str, model: &str, reason: &str| json!({"source_id": source, "model_id": model, "sha256": hash, "withdrawn_at": "2020-03-04T05:06:07Z", "reason": reason});
    let rows = [
        row("s2", "far-model", "another source"),
        row("s1", "near-model", "another model"),
        row("s1", "far-model", "it is wrong"),
    ];
    let withdrawn = json!({"data": rows, "next_cursor": null});
    for path in [
        "/api/v1/withdrawals?limit=200",
        "/api/v1/withdrawals?limit=200&since=2020-03-04T04%3A56%3A07%2B00%3A00",
    ] {
        registry.web.page(path, Page::new("application/json", withdrawn.to_string()));
    }
    for _ in 0..2 {
        read_withdrawals(&app).await;
        let told = app.source(&id(&seen)).await;
        let expected = json!({"at": "2020-03-04T05:06:07Z", "reason": "it is wrong"});
        assert_eq!((&told["origin"]["withdrawn"], &told["fact_count"]), (&expected, &json!(3)), "{told:#}");
    }
    assert!(registry.web.asked().iter().any(|path| path.contains("since=")), "from where it ended");
}

async fn read_withdrawals(app: &TestApp) {
    jobs::push(app.service.api.app.databases(), &ReadWithdrawals {}, Duration::ZERO).await.unwrap();
    eventually(Duration::from_mins(1), "they are read", async || {
        let open =
            "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'read_withdrawals' AND finished_at IS NULL";
        let open = app.count(open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
}

/// Its job was killed between the import and looking once more whether the key is revoked.
#[tokio::test]
async fn what_was_imported_while_its_key_was_revoked_does_not_stay() {
    let (app, registry) = start().await;
    registry.offer_signed(&app.web.url("/gulls"), &package(&FACTS), &key(1));
    let source = id(&add(&app).await);
    // Of one that is cleared, nothing is looked for.
    let earlier = "INSERT INTO okt_system.revoked_origins (key_id, revoked_at, cleared_at) SELECT";
    app.sql(&format!(
        "{earlier} '{}', clock_timestamp() - interval '25 hours', clock_timestamp()",
        key(1).id()
    ))
    .await;
    read_withdrawals(&app).await;
    assert!(is_imported(&app.source(&source).await));
    let cleared = "SELECT count(*) FROM okt_system.revoked_origins WHERE cleared_at IS NOT NULL";
    app.sql("UPDATE okt_system.revoked_origins SET revoked_at = clock_timestamp(), cleared_at = NULL").await;
    read_withdrawals(&app).await;
    assert_eq!(app.source(&source).await["failure"]["code"], "origin_revoked");
    assert_eq!(app.count(cleared).await, 0, "an import may still end");
}

/// Nobody was there to take it out on the day on which its key was revoked.
#[tokio::test]
async fn what_came_from_a_key_is_looked_for_until_all_repositories_were_seen() {
    let (app, registry) = start().await;
    registry.offer_signed(&app.web.url("/gulls"), &package(&FACTS), &key(1));
    let source = id(&add(&app).await);
    app.quiet().await;
    let earlier = "INSERT INTO okt_system.revoked_origins (key_id, revoked_at) SELECT";
    app.sql(&format!("{earlier} '{}', clock_timestamp() - interval '3 days'", key(1).id())).await;
    let cleared = "SELECT count(*) FROM okt_system.revoked_origins WHERE cleared_at IS NOT NULL";
    app.sql(&format!(
        "INSERT INTO okt_repository.closed (repository_id, why) VALUES ('{}', 'moving')",
        app.repository
    ))
    .await;
    read_withdrawals(&app).await;
    assert!(is_imported(&app.source(&source).await));
    assert_eq!(app.count(cleared).await, 0, "one is being moved");
    app.sql("DELETE FROM okt_repository.closed").await;
    read_withdrawals(&app).await;
    assert_eq!(app.source(&source).await["failure"]["code"], "origin_revoked");
    assert_eq!(app.count(cleared).await, 1);
}

/// However many there are, and whatever times a registry tells.
#[tokio::test]
async fn a_list_of_withdrawals_goes_on_where_it_ended() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let seen = add(&app).await;
    let hash = seen["extraction"]["registry"]["package_sha256"].clone();
    let page = |at: &str, source: &str, next: Value| {
        let row = json!({"source_id": source, "model_id": "far-model", "sha256": hash, "withdrawn_at": at, "reason": "x"});
        Page::new("application/json", json!({"data": [row], "next_cursor": next}).to_string())
    };
    let (first, second) = ("/api/v1/withdrawals?limit=200", "/api/v1/withdrawals?limit=200&cursor=c1");
    registry.web.page(first, page("9999-01-01T00:00:00Z", "s9", json!("c1")));
    registry.web.page(second, Page::new("application/json", "{}").status(503));
    read_withdrawals(&app).await;
    registry.web.page(second, page("9999-01-02T00:00:00Z", "s1", Value::Null));
    read_withdrawals(&app).await;
    let told = app.source(&id(&seen)).await["origin"]["withdrawn"].clone();
    assert!(told["at"].as_str().is_some_and(|at| !at.starts_with("9999")), "{told}");
    read_withdrawals(&app).await;
    let asked: Vec<String> =
        registry.web.asked().into_iter().filter(|path| path.contains("withdrawals")).collect();
    let [one, other, again, later] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((&**one, &**other, &**again), (first, second, second));
    assert!(later.contains("since=") && !later.contains("9999") && !later.contains("cursor="), "{later}");
}
