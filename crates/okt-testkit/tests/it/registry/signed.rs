//! Requests that are signed instead of carrying a key.

use http::Method;
use okt_interchange::signing::{Message, Stamp, digest, sign, split_key};
use okt_testkit::app::MODEL;
use okt_testkit::client::Answer;
use okt_testkit::registry::TestRegistry;
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::json;
use std::time::Duration;

use super::{add, builder, is_imported};

const PATH: &str = "/api/v1/sources";
const BODY: &str = r#"{"url":"https://example.org/gulls"}"#;

struct Signed {
    input: String,
    signature: String,
    digest: String,
}

/// Signs a push with this key, so many seconds from now.
async fn signed(registry: &TestRegistry, key: &str, nonce: &str, skew: i64) -> Signed {
    let (id, secret) = split_key(key).unwrap();
    let now: i64 = sqlx::query_scalar("SELECT extract(epoch FROM clock_timestamp())::bigint")
        .fetch_one(&mut registry.database.connect().await)
        .await
        .unwrap();
    let stamp = Stamp { created: now + skew, nonce: nonce.to_owned(), keyid: id.to_owned() };
    let digest = digest(BODY.as_bytes());
    let message = Message { method: "POST", target: PATH, digest: &digest };
    let (input, signature) = sign(secret, message, &stamp);
    Signed { input, signature, digest }
}

async fn send(registry: &TestRegistry, signed: &Signed, path: &str, body: &str) -> Answer {
    let request = registry.request(Method::POST, path).header("content-type", "application/json");
    let request = request.header("signature-input", &signed.input).header("signature", &signed.signature);
    Answer::of(request.header("content-digest", &signed.digest).body(body.to_owned())).await
}

#[tokio::test]
async fn signed_requests_are_taken_once_unaltered_and_in_time() {
    let registry = TestRegistry::start(&[]).await;
    let (key, reader) = (registry.key(true, None).await, registry.key(false, None).await);
    let good = signed(&registry, &key, "nonce-0001", 0).await;
    let taken = send(&registry, &good, PATH, BODY).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let replayed = send(&registry, &good, PATH, BODY).await;
    assert_eq!((replayed.status.as_u16(), &*replayed.problem()), (401, "unauthenticated"), "replayed");
    assert!(replayed.text.contains("used before"));

    for (nonce, skew, status) in [
        ("nonce-0002", -240, 201),
        ("nonce-0003", 240, 201),
        ("nonce-0004", -310, 401),
        ("nonce-0005", 310, 401),
    ] {
        let signed = signed(&registry, &key, nonce, skew).await;
        assert_eq!(send(&registry, &signed, PATH, BODY).await.status.as_u16(), status, "{skew} seconds");
    }
    let altered = signed(&registry, &key, "nonce-0006", 0).await;
    let other = BODY.replace("gulls", "terns");
    assert_eq!(send(&registry, &altered, PATH, &other).await.status, 401, "another body");
    let altered = signed(&registry, &key, "nonce-0007", 0).await;
    let redigested = Signed { digest: digest(other.as_bytes()), ..altered };
    assert_eq!(send(&registry, &redigested, PATH, &other).await.status, 401, "another body and its digest");
    let altered = signed(&registry, &key, "nonce-0008", 0).await;
    assert_eq!(send(&registry, &altered, &format!("{PATH}?x=1"), BODY).await.status, 401, "another address");
    let signed = signed(&registry, &reader, "nonce-0009", 0).await;
    assert_eq!(send(&registry, &signed, PATH, BODY).await.status, 403, "a read key can't write");
}

/// Keys that were made before the signing secret was changed sign as before, for as long as the old one is known.
#[tokio::test]
async fn keys_outlive_a_change_of_the_signing_secret() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let new = b"another secret that is long enough for tests";
    let before = ("SVC__AUTH__JWT_SECRET_PREVIOUS", "a secret that is long enough for tests");
    for (settings, status) in [(vec![before], 201), (vec![], 401)] {
        let changed = TestRegistry::start_with(registry.database.clone(), &settings, new).await;
        let signed = signed(&changed, &key, &format!("nonce-{status}"), 0).await;
        assert_eq!(send(&changed, &signed, PATH, BODY).await.status.as_u16(), status);
        assert_eq!(changed.get(&key, PATH).await.status, 200, "bearers need no secret");
    }
}

/// One instance pays, the registry keeps, another instance gets it for nothing.
#[tokio::test]
async fn two_instances_share_a_registry() {
    for mode in ["bearer", "hmac"] {
        let registry = TestRegistry::start(&[]).await;
        let (writer, reader) = (registry.key(true, None).await, registry.key(false, None).await);
        let keys = [
            ("REGISTRY_AUTH_MODE", mode),
            ("REGISTRY_API_KEY", &*writer),
            ("REGISTRY_READ_API_KEY", &*reader),
        ];
        let mut one = builder(&registry.url).settings(&keys).start().await;
        one.web.page("/gulls", Page::article("Gulls"));
        let on = one.put("/settings/auto-contribute", &json!({"enabled": true})).await;
        assert!(on.status.is_success(), "{on:?}");
        one.work().await;
        let seen = add(&one).await;
        assert!(!is_imported(&seen), "{mode}");
        let address = one.web.url("/gulls");
        let search = format!("/api/v1/search?url={address}");
        eventually(Duration::from_mins(2), "the package is in the registry", async || {
            let found = registry.get(&reader, &search).await.json();
            if found["found"] == true { Ok(()) } else { Err(found) }
        })
        .await;

        let mut other = builder(&registry.url).settings(&keys).start().await;
        other.work().await;
        let sources = format!("/api/v1/repositories/{}/sources", other.repository);
        let added = other.post(&sources, &json!({"url": address})).await;
        assert_eq!(added.status, 202, "{added:?}");
        let source = added.json()["source_id"].as_str().unwrap().to_owned();
        let imported = other.settled(&source).await;
        assert!(is_imported(&imported), "{mode}: {imported}");
        assert_eq!(imported["fact_count"], seen["fact_count"]);
        assert_eq!(imported["extraction"]["model"], MODEL);
        assert_eq!(other.models.stats().requests, 0);
        assert_eq!(one.web.asked().iter().filter(|path| *path == "/gulls").count(), 1, "fetched once");
    }
}
