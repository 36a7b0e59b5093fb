//! Whose packages are taken, what is known of where things came from, and taking it out again.

use std::time::Duration;

use http::Method;
use okt_app::{Origin, RevokedIn};
use okt_interchange::origin::{self, SigningKey};
use okt_model::Revoked;
use okt_testkit::accounts::send;
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::registry::{StandIn, TestRegistry, package};
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{FACTS, add, builder, id, is_imported, start};

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::read(&origin::written(&[seed; 32])).unwrap()
}

async fn trusts(app: &TestApp, trust: &str, keys: &[&str]) {
    let changed = app.put("/settings/registry", &json!({"trust": trust, "trusted_keys": keys})).await;
    assert!(changed.status.is_success(), "{changed:?}");
    let seen = &changed.json()["registry"];
    assert_eq!((&seen["trust"], &seen["trusted_keys"]), (&json!(trust), &json!(keys)));
}

/// Whether the page is taken from the registry; it is gone afterwards.
async fn takes(app: &TestApp) -> bool {
    let seen = add(app).await;
    assert_eq!(app.delete(&format!("/sources/{}", id(&seen))).await.status, 204);
    is_imported(&seen)
}

#[tokio::test]
async fn a_repository_says_whose_packages_it_takes() {
    let (app, registry) = start().await;
    let (url, package) = (app.web.url("/gulls"), package(&FACTS));
    let (good, other) = (key(1), key(2));
    for (trust, keys, expected) in [
        ("anyone", vec![], [true, true, true]),
        ("signed", vec![], [false, true, true]),
        ("listed", vec![good.id()], [false, true, false]),
    ] {
        trusts(&app, trust, &keys).await;
        registry.offer(&url, &package);
        assert_eq!(takes(&app).await, expected[0], "{trust}: nobody signed it");
        registry.offer_signed(&url, &package, &good);
        assert_eq!(takes(&app).await, expected[1], "{trust}: a good key signed it");
        registry.offer_signed(&url, &package, &other);
        assert_eq!(takes(&app).await, expected[2], "{trust}: another key signed it");
    }
    // What a registry says of a key is not what counts.
    let bytes = package.to_string().into_bytes();
    let theirs = other.sign(&sha256(&bytes));
    registry.offer_bytes(&url, &package, bytes, Some((good.id(), &theirs)));
    assert!(!takes(&app).await, "a good key is named, and another one signed");
    // Settings of the registry that say nothing of trust leave it as it is.
    let changed = app.put("/settings/registry", &json!({"push_level": "facts"})).await.json();
    assert_eq!(
        (&changed["registry"]["trust"], &changed["registry"]["push_level"]),
        (&json!("listed"), &json!("facts"))
    );
    for wrong in [json!({"trust": "nobody"}), json!({"trusted_keys": ["okp_x"]}), json!({"trusted_keys": []})]
    {
        let refused = app.put("/settings/registry", &wrong).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{wrong}");
    }
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(bytes).into()
}

/// Whoever runs the registry, or gives sources names there, hands out a package of a good key where it does not belong.
#[tokio::test]
async fn a_package_that_says_it_is_of_another_source_is_not_taken() {
    let (app, registry) = start().await;
    let (url, package, good) = (app.web.url("/gulls"), package(&FACTS), key(1));
    for (trust, keys, expected) in
        [("anyone", vec![], true), ("signed", vec![], false), ("listed", vec![good.id()], false)]
    {
        trusts(&app, trust, &keys).await;
        registry.offer_signed_for(&url, &app.web.url("/terns"), &package, &good);
        assert!(!takes(&app).await, "{trust}: of another source");
        let bytes = package.to_string().into_bytes();
        let signature = good.sign(&sha256(&bytes));
        registry.offer_bytes(&url, &package, bytes, Some((good.id(), &signature)));
        assert_eq!(takes(&app).await, expected, "{trust}: of no source");
        registry.offer_signed(&url, &package, &good);
        assert!(takes(&app).await, "{trust}: of this source");
    }
}

/// Anybody who may push could else take signed packages away from those who want these.
#[tokio::test]
async fn a_newer_package_of_nobody_does_not_hide_a_signed_one() {
    let registry = TestRegistry::start(&[]).await;
    let writer = registry.key(true, None).await;
    let auth = [("REGISTRY_AUTH_MODE", "bearer"), ("REGISTRY_API_KEY", &*writer)];
    let mut app = builder(&registry.url).settings(&auth).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    let (url, good) = (app.web.url("/gulls"), key(1));
    let source = registry.source(&writer, &url).await;
    let path = format!("/api/v1/sources/{source}/decompositions/far-model");
    let mut signed = package(&FACTS);
    signed["source"] = json!({"url": url});
    let bytes = signed.to_string();
    let push =
        registry.request(Method::POST, &path).bearer_auth(&writer).header("content-type", "application/json");
    let push = push.header("x-okt-signature", good.sign(&sha256(bytes.as_bytes())));
    assert_eq!(Answer::of(push.body(bytes)).await.status, 201);
    let mut newer = package(&FACTS[..1]);
    newer["decomposed_at"] = json!("2026-02-03T04:05:06Z");
    assert_eq!(registry.post(&writer, &path, &newer).await.status, 201);

    trusts(&app, "listed", &[good.id()]).await;
    let seen = add(&app).await;
    assert!(is_imported(&seen), "{seen:#}");
    assert_eq!((&seen["origin"]["key_id"], &seen["fact_count"]), (&json!(good.id()), &json!(3)), "{seen:#}");
    assert_eq!(app.delete(&format!("/sources/{}", id(&seen))).await.status, 204);
    trusts(&app, "anyone", &[]).await;
    assert_eq!(add(&app).await["fact_count"], 1, "the newest");
}

/// Anybody has a key to sign with. What they signed is newer, and says of no source.
#[tokio::test]
async fn a_worthless_package_takes_a_good_one_away_from_nobody() {
    let registry = TestRegistry::start(&[]).await;
    let writer = registry.key(true, None).await;
    let auth = [("REGISTRY_AUTH_MODE", "bearer"), ("REGISTRY_API_KEY", &*writer)];
    let mut app = builder(&registry.url).settings(&auth).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    let url = app.web.url("/gulls");
    let source = registry.source(&writer, &url).await;
    let path = format!("/api/v1/sources/{source}/decompositions/far-model");
    for (seed, at, told) in [
        (1, "2026-01-02T03:04:05Z", json!({"url": url})),
        (2, "2026-01-03T03:04:05Z", Value::Null),
        (3, "2026-01-04T03:04:05Z", Value::Null),
    ] {
        let mut package = package(&FACTS);
        (package["decomposed_at"], package["source"]) = (json!(at), told);
        let bytes = package.to_string();
        let push = registry.request(Method::POST, &path).bearer_auth(&writer);
        let push = push.header("content-type", "application/json");
        let push = push.header("x-okt-signature", key(seed).sign(&sha256(bytes.as_bytes())));
        assert_eq!(Answer::of(push.body(bytes)).await.status, 201, "{seed}");
    }
    trusts(&app, "signed", &[]).await;
    let seen = add(&app).await;
    assert!(is_imported(&seen), "{seen:#}");
    assert_eq!(seen["origin"]["key_id"], key(1).id(), "{seen:#}");
}

/// Somebody on the way has changed it: nobody takes it, whoever they trust.
#[tokio::test]
async fn a_package_that_was_altered_after_it_was_signed_is_not_taken() {
    let (app, registry) = start().await;
    let url = app.web.url("/gulls");
    let key = key(1);
    let signature = key.sign(&sha256(package(&FACTS[..2]).to_string().as_bytes()));
    let package = package(&FACTS);
    let bytes = package.to_string().into_bytes();
    registry.offer_bytes(&url, &package, bytes, Some((key.id(), &signature)));
    assert!(!takes(&app).await);
}

#[tokio::test]
async fn what_is_contributed_is_signed_with_the_key_of_the_installation() {
    let registry = StandIn::start().await;
    let (url, written) = (registry.url(), origin::written(&[3; 32]));
    let mut app =
        builder(&url).settings(&[("SVC__PROVIDERS__REGISTRY__SIGNING_KEY", &*written)]).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    registry.take(okt_testkit::app::MODEL);
    app.work().await;
    let settings = app.read("/settings").await;
    assert_eq!(settings["registry"]["signing_key_id"], key(3).id());
    assert_eq!(settings["registry"]["available"][0]["id"], "default", "{settings:#}");
    add(&app).await;
    app.post("/settings/contribute-all", &json!({})).await;
    eventually(Duration::from_mins(1), "it is pushed", async || {
        if registry.pushed().is_empty() { Err("nothing yet") } else { Ok(()) }
    })
    .await;
    let (_, body) = registry.web.sent().into_iter().next_back().unwrap();
    let package: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        package["source"],
        json!({"url": app.web.url("/gulls")}),
        "the signature is over the source, too"
    );
    let signature = registry.web.header("x-okt-signature").expect("it is signed");
    assert_eq!(origin::verified(&signature, &sha256(&body)).as_deref(), Some(key(3).id()));
}

/// The same facts from a key and from somebody else, and what only the key said.
async fn two_sources(app: &TestApp, registry: &StandIn) -> (String, String) {
    registry.offer_signed(&app.web.url("/gulls"), &package(&FACTS), &key(1));
    let theirs = id(&add(app).await);
    let mut own = package(&FACTS[..1]);
    own["facts"][0]["id"] = json!("0197a3c0-0000-7000-8000-000000000099");
    own["concepts"][0]["canonical_name"] = json!("Bird");
    own["concepts"][0]["id"] = json!("0197a3c0-0000-7000-8000-0000000000c1");
    own["facts"][0]["concept_ids"] = json!(["0197a3c0-0000-7000-8000-0000000000c1"]);
    own["concepts"][0]["aliases"] = json!([]);
    own["summaries"] = json!([]);
    registry.offer(&app.web.url("/own"), &own);
    let source = app.add_page("/own").await;
    assert!(is_imported(&app.settled(&source).await));
    (theirs, source)
}

async fn revoke(app: &TestApp, key: &str, dry_run: bool) -> Vec<Revoked> {
    let mut all = Vec::new();
    let told = |found: RevokedIn| all.extend(found.revoked);
    app.service.api.app.revoke_origin(&Origin::service("test"), key, dry_run, told).await.unwrap();
    all
}

#[tokio::test]
async fn where_a_fact_came_from_is_seen_and_what_came_from_a_key_can_be_removed() {
    let (app, registry) = start().await;
    let (theirs, own) = two_sources(&app, &registry).await;
    let origin = &app.source(&theirs).await["origin"];
    assert_eq!((&origin["kind"], &origin["registry"]), (&json!("package"), &json!("default")), "{origin}");
    assert_eq!((&origin["key_id"], &origin["pushed_by"]), (&json!(key(1).id()), &json!("okg_somebody")));
    let facts = app.facts(&theirs).await;
    let shared =
        facts.iter().find(|fact| fact["text"] == FACTS[0]).unwrap()["id"].as_str().unwrap().to_owned();
    let seen = app.read(&format!("/facts/{shared}")).await;
    let keys: Vec<&Value> =
        seen["sources"].as_array().unwrap().iter().map(|one| &one["origin"]["key_id"]).collect();
    assert_eq!(keys, [&json!(key(1).id()), &Value::Null], "{seen:#}");

    app.quiet().await;
    let count = async |table: &str| app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await;
    assert_eq!(revoke(&app, key(2).id(), true).await, [], "another key");
    let would = revoke(&app, key(1).id(), true).await;
    assert_eq!(would.len(), 1, "{would:?}");
    let Revoked { imports, sources, emptied, facts, concepts, summaries, .. } = would[0];
    assert_eq!((imports, sources, emptied, facts, concepts, summaries), (1, 0, 1, 3, 1, 1), "{would:?}");
    assert_eq!((count("facts").await, count("concept_summaries").await), (3, 1), "a dry run changes nothing");
    assert!(is_imported(&app.source(&theirs).await));

    assert_eq!(revoke(&app, key(1).id(), false).await, would, "as it was told before");
    app.quiet().await;
    let gone = app.source(&theirs).await;
    assert_eq!(
        (&gone["status"], &gone["failure"]["code"]),
        (&json!("failed"), &json!("origin_revoked")),
        "{gone:#}"
    );
    assert_eq!(
        (&gone["fact_count"], &gone["origin"], &gone["parsed_text"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    assert_eq!(app.source(&own).await["fact_count"], 1, "what others say stays");
    let left = app.read(&format!("/facts/{shared}")).await;
    assert_eq!(
        (&left["source_count"], left["sources"].as_array().unwrap().len()),
        (&json!(1), 1),
        "{left:#}"
    );
    assert_eq!((count("facts").await, count("concept_summaries").await), (1, 0));
    assert_eq!(count("concepts WHERE canonical_name = 'Gull'").await, 0, "nothing speaks of it");
    let counted = "counters WHERE (name, value) IN (('facts', 1), ('concepts', 1), ('sources', 2))";
    assert_eq!(count(counted).await, 3);
    assert_eq!(revoke(&app, key(1).id(), false).await, [], "once");

    // Nothing of the key is taken any more: the source is fetched.
    let retried = app.post(&format!("/sources/{theirs}/retry"), &json!({})).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let seen = app.settled(&theirs).await;
    assert!(seen["status"] == "processed" && !is_imported(&seen), "{seen:#}");
    assert_eq!(app.source(&theirs).await["origin"], Value::Null);
    let audited = "SELECT count(*) FROM okt_system.audit WHERE action = 'origin.revoked'";
    assert_eq!(app.count(audited).await, 1);
}

/// As of any source that is processed, or has failed.
#[tokio::test]
async fn webhooks_hear_of_imports_and_of_what_is_taken_out_again() {
    let (app, registry) = start().await;
    app.sql(&format!(
        "INSERT INTO okt_repository.webhooks (repository_id, id, url, events, secret, created_by)
         VALUES ('{0}', '{0}', 'http://127.0.0.1:9/', ARRAY['source.processed', 'source.failed'], 'x', '{0}')",
        app.repository
    ))
    .await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    add(&app).await;
    let told = async |event: &str| {
        app.count(&format!("SELECT count(*) FROM okt_repository.webhook_deliveries WHERE event = '{event}'"))
            .await
    };
    assert_eq!((told("source.processed").await, told("source.failed").await), (1, 0));
    assert_eq!(revoke(&app, "okg_somebody", false).await.len(), 1);
    assert_eq!((told("source.processed").await, told("source.failed").await), (1, 1));
}

/// What several imports of a key say goes, and a dry run counts the same: a fact that only they share is gone with the last of them.
#[tokio::test]
async fn all_imports_of_a_key_are_taken_out_together() {
    let (app, registry) = start().await;
    for (at, facts) in [&FACTS[..1], &FACTS[..2], &FACTS[..]].into_iter().enumerate() {
        let path = format!("/gulls-{at}");
        let mut package = package(facts);
        package["summaries"] = json!([]);
        registry.offer_signed(&app.web.url(&path), &package, &key(1));
        let source = app.add_page(&path).await;
        assert!(is_imported(&app.settled(&source).await));
    }
    app.quiet().await;
    let would = revoke(&app, key(1).id(), true).await;
    assert_eq!((would.len(), would[0].imports, would[0].emptied, would[0].facts), (1, 3, 3, 6), "{would:?}");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 3);
    assert_eq!(revoke(&app, key(1).id(), false).await, would);
    for table in ["facts", "fact_sources", "fact_concepts", "concepts"] {
        assert_eq!(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await, 0, "{table}");
    }
    assert_eq!(revoke(&app, key(1).id(), false).await, [], "once");
}

/// It is named, and those behind it lose what came from the key; one that is deleted meanwhile is in the way of nobody, either.
#[tokio::test]
async fn a_repository_that_is_moving_keeps_nothing_of_the_key_in_others() {
    let (app, registry) = start().await;
    registry.offer_signed(&app.web.url("/gulls"), &package(&FACTS), &key(1));
    let source = id(&add(&app).await);
    app.quiet().await;
    // The latest comes first.
    let name = json!({"name": "Moving"});
    let made = send(&app.service, &app.owner.token, Method::POST, "/api/v1/repositories", &name).await;
    assert_eq!(made.status, 201, "{made:?}");
    let moving = made.json()["id"].as_str().unwrap().to_owned();
    app.sql(&format!("INSERT INTO okt_repository.closed (repository_id, why) VALUES ('{moving}', 'moving')"))
        .await;
    let mut all = Vec::new();
    let told = |found: RevokedIn| {
        all.push((found.repository.id.to_string(), found.revoked.map(|gone| gone.imports)));
    };
    app.service.api.app.revoke_origin(&Origin::service("test"), key(1).id(), false, told).await.unwrap();
    assert_eq!(all, [(moving, None), (app.repository.to_string(), Some(1))]);
    assert_eq!(app.source(&source).await["failure"]["code"], "origin_revoked");
    app.sql("UPDATE okt_repository.closed SET why = 'deleted'").await;
    assert_eq!(revoke(&app, key(1).id(), false).await, []);
}

/// Whoever pushed it to a registry can be revoked as well.
#[tokio::test]
async fn what_a_key_of_a_registry_pushed_can_be_removed() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let source = id(&add(&app).await);
    let revoked = revoke(&app, "okg_somebody", false).await;
    assert_eq!((revoked.len(), revoked[0].facts), (1, 3));
    assert_eq!(app.source(&source).await["failure"]["code"], "origin_revoked");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 0);
    assert!(!takes_other(&app, &registry).await);
}

/// How many wait for a table.
const WAITING: &str = "SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND l.locktype = 'relation'
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

async fn is_waiting(app: &TestApp) {
    eventually(Duration::from_mins(1), "the import waits", async || {
        let waiting = app.count(WAITING).await;
        if waiting > 0 { Ok(()) } else { Err(waiting) }
    })
    .await;
}

/// Whoever revokes does not see what is not committed yet.
#[tokio::test]
async fn a_key_that_is_revoked_while_something_of_it_is_imported_leaves_nothing() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let mut other = app.connect().await;
    let mut held = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE okt_repository.imports IN EXCLUSIVE MODE").execute(&mut *held).await.unwrap();
    let source = app.add_page("/gulls").await;
    is_waiting(&app).await;
    assert_eq!(revoke(&app, "okg_somebody", false).await, [], "nothing is to be seen yet");
    held.commit().await.unwrap();
    eventually(Duration::from_mins(1), "it is taken out again", async || {
        let seen = app.source(&source).await;
        if seen["failure"]["code"] == "origin_revoked" { Ok(()) } else { Err(seen) }
    })
    .await;
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.facts").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.imports WHERE revoked_at IS NULL").await, 0);
}

/// What people decide while a package is on its way counts.
#[tokio::test]
async fn trust_is_looked_at_again_before_anything_is_imported() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    trusts(&app, "anyone", &[]).await;
    let mut other = app.connect().await;
    let mut held = other.begin().await.unwrap();
    let lock = "LOCK TABLE okt_repository.contexts IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let source = app.add_page("/gulls").await;
    is_waiting(&app).await;
    app.sql("UPDATE okt_system.repository_settings SET trust = 'signed'").await;
    held.commit().await.unwrap();
    let seen = app.settled(&source).await;
    assert!(seen["status"] == "processed" && !is_imported(&seen), "{seen:#}");
}

async fn takes_other(app: &TestApp, registry: &StandIn) -> bool {
    app.web.page("/other", Page::article("Others"));
    registry.offer(&app.web.url("/other"), &package(&FACTS));
    let source = app.add_page("/other").await;
    is_imported(&app.settled(&source).await)
}
