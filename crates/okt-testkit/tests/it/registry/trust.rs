//! Whose packages are taken, what is known of where things came from, and taking it out again.

use std::time::Duration;

use okt_app::{Origin, RevokedIn};
use okt_interchange::origin::{self, SigningKey};
use okt_jobs::ReadWithdrawals;
use okt_model::Revoked;
use okt_queue::jobs;
use okt_testkit::app::TestApp;
use okt_testkit::registry::{StandIn, package};
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::{FACTS, add, builder, id, is_imported, start};

fn key(seed: u8) -> SigningKey {
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

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(bytes).into()
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
    let told = |found: RevokedIn| all.push(found.revoked);
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

async fn takes_other(app: &TestApp, registry: &StandIn) -> bool {
    app.web.page("/other", Page::article("Others"));
    registry.offer(&app.web.url("/other"), &package(&FACTS));
    let source = app.add_page("/other").await;
    is_imported(&app.settled(&source).await)
}

/// They are told, and nothing is removed for that.
#[tokio::test]
async fn consumers_learn_of_withdrawals() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let seen = add(&app).await;
    assert_eq!(seen["origin"]["withdrawn"], Value::Null);
    let hash = seen["extraction"]["registry"]["package_sha256"].clone();
    let withdrawn = json!({"data": [{"source_id": "s1", "model_id": "far-model", "sha256": hash,
                                     "withdrawn_at": "2026-03-04T05:06:07Z", "reason": "it is wrong"}], "next_cursor": null});
    for path in [
        "/api/v1/withdrawals?limit=20",
        "/api/v1/withdrawals?limit=20&since=2026-03-04T04%3A56%3A07%2B00%3A00",
    ] {
        registry.web.page(path, Page::new("application/json", withdrawn.to_string()));
    }
    for _ in 0..2 {
        jobs::push(app.service.api.app.databases(), &ReadWithdrawals {}, Duration::ZERO).await.unwrap();
        let told = eventually(Duration::from_mins(1), "it is known", async || {
            let seen = app.source(&id(&seen)).await;
            let open =
                "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'read_withdrawals' AND finished_at IS NULL";
            if seen["origin"]["withdrawn"].is_null() || app.count(open).await > 0 {
                Err(seen)
            } else {
                Ok(seen)
            }
        })
        .await;
        assert_eq!(
            told["origin"]["withdrawn"],
            json!({"at": "2026-03-04T05:06:07Z", "reason": "it is wrong"})
        );
        assert_eq!(told["fact_count"], 3);
    }
    assert!(registry.web.asked().iter().any(|path| path.contains("since=")), "from where it ended");
}
