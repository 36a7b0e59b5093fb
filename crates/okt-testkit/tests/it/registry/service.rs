//! The registry itself: what it takes, from whom, and what it hands out.

use std::time::Duration;

use http::Method;
use okt_interchange::origin::{self, SigningKey};
use okt_testkit::client::Answer;
use okt_testkit::registry::{TestRegistry, package};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::FACTS;
use super::graphs::bundle;

pub(super) const URL: &str = "https://example.org/gulls";

pub(super) fn path(source: &str) -> String {
    format!("/api/v1/sources/{source}/decompositions/far-model")
}

#[tokio::test]
async fn a_package_is_taken_and_handed_out_as_it_is() {
    let registry = TestRegistry::start(&[]).await;
    let (writer, reader) = (registry.key(true, None).await, registry.key(false, None).await);
    let nothing = registry.get(&reader, &format!("/api/v1/search?url={URL}")).await.json();
    assert_eq!(nothing, json!({"found": false, "source": null, "decompositions": []}));
    let source = registry.source(&writer, URL).await;
    assert_eq!(registry.source(&writer, URL).await, source, "known already");
    assert_eq!(registry.source(&writer, "HTTPS://EXAMPLE.org/gulls#part").await, source, "the same address");
    let empty = registry.get(&reader, &format!("/api/v1/search?url={URL}")).await.json();
    assert_eq!((&empty["found"], &empty["source"]["source_id"]), (&json!(false), &json!(source)));

    let body = package(&FACTS);
    let pushed = registry.request(Method::POST, &path(&source)).bearer_auth(&writer);
    let key = SigningKey::read(&origin::written(&[7; 32])).unwrap();
    let bytes = body.to_string();
    let signature = key.sign(&Sha256::digest(&bytes).into());
    let pushed = pushed.header("content-type", "application/json").header("x-okt-signature", &signature);
    let pushed = Answer::of(pushed.body(bytes)).await;
    assert_eq!(pushed.status, 201, "{pushed:?}");
    assert_eq!(pushed.json(), json!({"source_id": source, "facts_new": 3, "facts_linked": 0}));
    let again = registry.post(&writer, &path(&source), &body).await;
    assert_eq!((again.status.as_u16(), &again.json()["facts_new"]), (201, &json!(0)), "the same package");

    let found = registry.get(&reader, &format!("/api/v1/search?url={URL}&doi=10.1000/unknown")).await.json();
    assert_eq!((&found["found"], &found["source"]["title"]), (&json!(true), &json!("On gulls")));
    let one = &found["decompositions"][0];
    assert_eq!(
        (&one["model_id"], &one["fact_count"], &one["version"]),
        (&json!("far-model"), &json!(3), &json!(1))
    );
    assert_eq!((&one["signed"], &one["promptset_hash"]), (&json!(true), &json!("9".repeat(64))));
    assert_eq!(one["key_id"], key.id());
    // A signature is over what is pushed.
    let altered = registry.request(Method::POST, &path(&source)).bearer_auth(&writer);
    let altered = altered.header("x-okt-signature", &signature).json(&package(&FACTS[..1]));
    let refused = Answer::of(altered).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{refused:?}");
    let pulled = registry.get(&reader, &path(&source)).await;
    assert_eq!((pulled.status.as_u16(), pulled.header("x-okt-signature")), (200, &*signature));
    assert_eq!(pulled.json(), body);

    let other = package(&[FACTS[0], "Gulls like chips."]);
    let pushed = registry.post(&writer, &path(&source), &other).await.json();
    assert_eq!((&pushed["facts_new"], &pushed["facts_linked"]), (&json!(1), &json!(1)));
    let listed = registry.get(&reader, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    let versions: Vec<(&Value, &Value)> =
        listed["data"].as_array().unwrap().iter().map(|one| (&one["version"], &one["signed"])).collect();
    // What nobody signed does not hide what somebody has.
    assert_eq!(versions, [(&json!(1), &json!(true)), (&json!(2), &json!(false))], "{listed:#}");
    assert_eq!(registry.get(&reader, &path(&source)).await.json(), other);
    assert_eq!(registry.get(&reader, &format!("{}?version=1", path(&source))).await.json(), body);
    assert_eq!(registry.get(&reader, &format!("{}?version=3", path(&source))).await.status, 404);
    let third = registry.post(&writer, &path(&source), &package(&FACTS[1..])).await;
    assert_eq!(third.status, 201, "{third:?}");
    let listed = registry.get(&reader, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][1]["version"]), (2, &json!(3)));
    let sources = registry.get(&reader, "/api/v1/sources?limit=1").await.json();
    assert_eq!(sources["data"][0]["source_id"], json!(source));
    assert_eq!(registry.get(&reader, &format!("/api/v1/sources/{source}")).await.json()["url"], URL);
}

#[tokio::test]
async fn sources_are_found_by_any_of_their_names() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let made = json!({"url": URL, "doi": "10.1000/Gulls", "sha256": "a".repeat(64)});
    let source = registry.post(&key, "/api/v1/sources", &made).await.json()["source_id"].clone();
    for query in [
        &format!("url={URL}"),
        "doi=10.1000/gulls",
        &format!("sha256={}", "a".repeat(64)),
        "url=https://doi.org/10.1000/gulls",
    ] {
        let found = registry.get(&key, &format!("/api/v1/search?{query}")).await.json();
        assert_eq!(found["source"]["source_id"], source, "{query}");
    }
    for (query, status) in [("", 422), ("?sha256=xyz", 422), ("?url=ftp://x", 422), ("?ulr=x", 422)] {
        let refused = registry.get(&key, &format!("/api/v1/search{query}")).await;
        assert_eq!(refused.status.as_u16(), status, "{query}: {refused:?}");
    }
    let nameless = registry.post(&key, "/api/v1/sources", &json!({"title": "x"})).await;
    assert_eq!((nameless.status.as_u16(), &*nameless.problem()), (422, "invalid"));
}

#[tokio::test]
async fn a_known_source_gets_the_names_that_it_did_not_have_from_whoever_made_it_known() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let made = async |body: Value| {
        let made = registry.post(&key, "/api/v1/sources", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["source_id"].as_str().unwrap().to_owned()
    };
    let found = async |query: &str| {
        registry.get(&key, &format!("/api/v1/search?{query}")).await.json()["source"]["source_id"].clone()
    };
    assert_eq!(found("doi=10.1000/gulls").await, Value::Null);
    // Anybody else could have what is known of one paper handed out as another one's.
    let stranger = registry.key(true, None).await;
    let named =
        registry.post(&stranger, "/api/v1/sources", &json!({"url": URL, "doi": "10.1000/victim"})).await;
    assert_eq!((named.status.as_u16(), &named.json()["source_id"]), (201, &json!(source)));
    assert_eq!(found("doi=10.1000/victim").await, Value::Null);
    assert_eq!(made(json!({"url": URL, "doi": "10.1000/gulls"})).await, source);
    assert_eq!(found("doi=10.1000/gulls").await, json!(source));
    // What is another source's stays so, and what it has stays, too.
    let other = made(json!({"sha256": "a".repeat(64)})).await;
    assert_ne!(other, source);
    assert_eq!(made(json!({"url": URL, "doi": "10.1000/terns", "sha256": "a".repeat(64)})).await, source);
    assert_eq!(found(&format!("sha256={}", "a".repeat(64))).await, json!(other));
    assert_eq!(found("doi=10.1000/terns").await, Value::Null);
    let shown = registry.get(&key, &format!("/api/v1/sources/{source}")).await.json();
    assert_eq!((&shown["doi"], &shown["title"]), (&json!("10.1000/gulls"), &json!("On gulls")));
}

#[tokio::test]
async fn what_is_wrong_is_refused_whole_with_the_place() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let cases: [(&str, Value, &str); 7] = [
        ("/schema_version", json!(2), "schema_version: is 2"),
        ("/facts/1/content_hash", json!("0".repeat(64)), "facts[1].content_hash"),
        ("/facts/1/concept_ids/0", json!("0197a3c0-0000-7000-8000-00000000dead"), "facts[1].concept_ids[0]"),
        ("/summaries/0/concept_id", json!("0197a3c0-0000-7000-8000-00000000dead"), "summaries[0].concept_id"),
        ("/facts/0/content", json!("a\u{0}"), "facts[0].content"),
        ("/model_id", json!("another"), "model_id"),
        ("/decomposed_at", json!("9999-01-02T03:04:05Z"), "decomposed_at: is in the future"),
    ];
    for (pointer, value, place) in cases {
        let mut body = package(&FACTS);
        *body.pointer_mut(pointer).unwrap() = value;
        let refused = registry.post(&key, &path(&source), &body).await;
        assert_eq!(refused.status, 422, "{pointer}: {refused:?}");
        assert!(refused.text.contains(place), "{pointer}: {}", refused.text);
    }
    let mut empty = package(&FACTS);
    (empty["facts"], empty["summaries"]) = (json!([]), json!([]));
    let refused = registry.post(&key, &path(&source), &empty).await;
    assert!(refused.status == 422 && refused.text.contains("facts: are none"), "{refused:?}");
    let listed = registry.get(&key, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    assert_eq!(listed["data"], json!([]), "nothing is kept");
    let nowhere = registry.post(&key, &path("0197a3c0-0000-7000-8000-00000000dead"), &package(&FACTS)).await;
    assert_eq!((nowhere.status.as_u16(), &*nowhere.problem()), (404, "not_found"));
}

#[tokio::test]
async fn what_one_key_pushes_hides_nothing_that_another_one_has_pushed() {
    let registry = TestRegistry::start(&[]).await;
    let (one, other) = (registry.key(true, None).await, registry.key(true, None).await);
    let source = registry.source(&one, URL).await;
    // Invented models of one key do not push it off the list, either.
    for at in 0..3 {
        let mut body = package(&FACTS[..1]);
        body["model_id"] = json!(format!("model-{at}"));
        let path = format!("/api/v1/sources/{source}/decompositions/model-{at}");
        assert_eq!(registry.post(&other, &path, &body).await.status, 201);
    }
    assert_eq!(registry.post(&one, &path(&source), &package(&FACTS)).await.status, 201);
    assert_eq!(registry.post(&other, &path(&source), &package(&FACTS[..1])).await.status, 201);
    let listed = registry.get(&one, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    let by = one.split('.').next().unwrap();
    let rows = listed["data"].as_array().unwrap();
    let place = rows.iter().position(|row| row["pushed_by"] == by).unwrap();
    assert!(rows.len() == 5 && place < 2, "{listed:#}");
}

#[tokio::test]
async fn a_package_is_kept_only_for_the_source_that_it_says_it_is_of() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let mut body = package(&FACTS);
    for (told, status) in [
        (json!({"url": "https://example.org/terns"}), 422),
        (json!({}), 422),
        (json!({"url": "HTTPS://example.org/gulls", "doi": "10.1000/gulls"}), 201),
        (Value::Null, 201),
    ] {
        body["source"] = told.clone();
        let pushed = registry.post(&key, &path(&source), &body).await;
        assert_eq!(pushed.status.as_u16(), status, "{told}: {pushed:?}");
    }
}

#[tokio::test]
async fn packages_are_as_large_as_the_operator_allows() {
    let registry = TestRegistry::start(&[("SVC__SERVER__LIMITS__PACKAGE_BYTES", "2000")]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let mut body = package(&FACTS[..1]);
    assert_eq!(registry.post(&key, &path(&source), &body).await.status, 201);
    body["later"] = json!("x".repeat(2_000));
    let refused = registry.post(&key, &path(&source), &body).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (413, "too_large"));
}

#[tokio::test]
async fn with_validation_a_push_needs_a_promptset_hash_and_earlier_ones_can_still_be_pulled() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let mut body = package(&FACTS);
    body["promptset_hash"] = json!("");
    assert_eq!(registry.post(&key, &path(&source), &body).await.status, 201);
    let listed = registry.get(&key, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    assert_eq!(listed["data"][0]["promptset_hash"], Value::Null, "stored as null");

    let validates = [("SVC__REGISTRY__PROMPTSET__ENABLE_VALIDATION", "true")];
    let strict = TestRegistry::start_on(registry.database.clone(), &validates).await;
    let pulled = strict.get(&key, &path(&source)).await;
    assert_eq!((pulled.status.as_u16(), pulled.json()), (200, body.clone()), "only pushes are validated");
    for empty in [json!(""), Value::Null] {
        body["promptset_hash"] = empty;
        let refused = strict.post(&key, &path(&source), &body).await;
        assert_eq!(refused.status, 400);
        assert_eq!(refused.json()["detail"], "promptset_hash required when validation enabled");
    }
    assert_eq!(strict.post(&key, &path(&source), &package(&FACTS)).await.status, 201);
}

#[tokio::test]
async fn who_may_do_what_depends_on_the_key_and_on_the_access() {
    for (access, anonymous_read, anonymous_write) in
        [("open", 200, 201), ("read_open", 200, 401), ("closed", 401, 401)]
    {
        let registry = TestRegistry::start(&[("SVC__REGISTRY__ACCESS", access)]).await;
        let (reader, writer) = (registry.key(false, None).await, registry.key(true, None).await);
        let body = json!({"url": URL});
        let read = Answer::of(registry.request(Method::GET, "/api/v1/sources")).await;
        assert_eq!(read.status.as_u16(), anonymous_read, "{access}");
        let write = Answer::of(registry.request(Method::POST, "/api/v1/sources").json(&body)).await;
        assert_eq!(write.status.as_u16(), anonymous_write, "{access}");
        assert_eq!(registry.get(&reader, "/api/v1/sources").await.status, 200, "{access}");
        let refused = registry.post(&reader, "/api/v1/sources", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &*refused.problem()),
            (403, "forbidden"),
            "{access}: a read key can't write"
        );
        assert_eq!(registry.post(&writer, "/api/v1/sources", &body).await.status, 201, "{access}");
        for wrong in ["nonsense", "okg_x.y", &format!("{writer}x"), &writer[..writer.len() - 1]] {
            assert_eq!(registry.get(wrong, "/api/v1/sources").await.status, 401, "{access}: {wrong}");
        }
        let id = writer.split('.').next().unwrap();
        assert!(registry.registry.revoke_key(id).await.unwrap());
        assert_eq!(registry.get(&writer, "/api/v1/sources").await.status, 401, "{access}: revoked");
    }
}

#[tokio::test]
async fn keys_have_quotas_and_packages_can_be_withdrawn() {
    let registry = TestRegistry::start(&[]).await;
    let (limited, other) = (registry.key(true, Some(1)).await, registry.key(true, None).await);
    let source = registry.source(&limited, URL).await;
    assert_eq!(registry.post(&limited, &path(&source), &package(&FACTS)).await.status, 201);
    let refused = registry.post(&limited, &path(&source), &package(&FACTS[..2])).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (429, "rate_limited"));
    assert_eq!(registry.post(&other, &path(&source), &package(&FACTS[..2])).await.status, 201);

    let id: uuid::Uuid = source.parse().unwrap();
    assert_eq!(registry.registry.withdraw(id, "far-model", Some(2), "it is wrong").await.unwrap(), 1);
    assert_eq!(registry.get(&other, &path(&source)).await.json(), package(&FACTS), "the one before");
    let again = registry.post(&other, &path(&source), &package(&FACTS[..2])).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"));
    // Nor behind a newer one.
    let newer = package(&FACTS[1..]);
    assert_eq!(registry.post(&other, &path(&source), &newer).await.status, 201);
    let again = registry.post(&other, &path(&source), &package(&FACTS[..2])).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"), "behind a newer one");
    assert_eq!(registry.registry.withdraw(id, "far-model", Some(3), "a test").await.unwrap(), 1);
    let same = registry.post(&other, &path(&source), &package(&FACTS)).await.json();
    assert_eq!((&same["facts_new"], &same["facts_linked"]), (&json!(0), &json!(3)), "handed out already");
    assert_eq!(registry.count("SELECT count(*) FROM okt_registry.decompositions").await, 3);
    let key = limited.split('.').next().unwrap();
    assert_eq!(registry.registry.withdraw_all_of(key, "a stolen key").await.unwrap(), (1, 0));
    let gone = registry.get(&other, &path(&source)).await;
    assert_eq!(gone.status, 404);
    assert!(gone.text.contains("withdrawn"), "{gone:?}");
    let found = registry.get(&other, &format!("/api/v1/search?url={URL}")).await.json();
    assert_eq!((&found["found"], &found["decompositions"]), (&json!(false), &json!([])));
    let told = registry.get(&other, "/api/v1/withdrawals").await.json();
    let reasons: Vec<&str> =
        told["data"].as_array().unwrap().iter().map(|row| row["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["it is wrong", "a test", "a stolen key"]);
    let since = told["data"][2]["withdrawn_at"].as_str().unwrap();
    let rest = registry.get(&other, &format!("/api/v1/withdrawals?since={since}")).await.json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1, "{rest}");
    let first = registry.get(&other, "/api/v1/withdrawals?limit=1").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = registry.get(&other, &format!("/api/v1/withdrawals?limit=1&cursor={cursor}")).await.json();
    assert_eq!(second["data"][0], told["data"][1]);
    let cursor = second["next_cursor"].as_str().unwrap();
    let third = registry.get(&other, &format!("/api/v1/withdrawals?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&third["data"][0], &third["next_cursor"]), (&told["data"][2], &Value::Null));
}

/// What is wrong is not always the latest.
#[tokio::test]
async fn any_version_of_a_package_can_be_withdrawn_or_all() {
    let registry = TestRegistry::start(&[]).await;
    let (one, other) = (registry.key(true, None).await, registry.key(true, None).await);
    let source = registry.source(&one, URL).await;
    for (key, facts) in [(&one, &FACTS[..1]), (&other, &FACTS[..2]), (&one, &FACTS[..])] {
        assert_eq!(registry.post(key, &path(&source), &package(facts)).await.status, 201);
    }
    let versions = async || -> Vec<i64> {
        let listed = registry.get(&one, &format!("/api/v1/sources/{source}/decompositions")).await.json();
        let rows = listed["data"].as_array().unwrap().iter();
        let mut versions: Vec<i64> = rows.map(|row| row["version"].as_i64().unwrap()).collect();
        versions.sort_unstable();
        versions
    };
    assert_eq!(versions().await, [2, 3]);
    let id = source.parse().unwrap();
    assert_eq!(registry.registry.withdraw(id, "far-model", Some(2), "it is wrong").await.unwrap(), 1);
    assert_eq!(versions().await, [3]);
    assert_eq!(registry.registry.withdraw(id, "far-model", Some(9), "it is wrong").await.unwrap(), 0);
    assert_eq!(registry.registry.withdraw(id, "far-model", None, "all are wrong").await.unwrap(), 2);
    assert_eq!(versions().await, [0_i64; 0]);
}

#[tokio::test]
async fn those_without_a_key_have_a_quota_together() {
    let few = [("SVC__REGISTRY__ACCESS", "open"), ("SVC__REGISTRY__ANONYMOUS_DAILY_PUSHES", "2")];
    let registry = TestRegistry::start(&few).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let push = async |facts: &[&str]| {
        Answer::of(registry.request(Method::POST, &path(&source)).json(&package(facts))).await
    };
    for facts in [&FACTS[..1], &FACTS[..2]] {
        assert_eq!(push(facts).await.status, 201);
    }
    let refused = push(&FACTS).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (429, "rate_limited"));
    let (file, hash) = bundle("Trees");
    let bundle = registry.request(Method::POST, "/api/v1/graphs").header("content-type", "application/gzip");
    let bundle = bundle.header("x-graph-name", "Trees").header("x-graph-sha256", &hash).body(file);
    assert_eq!(Answer::of(bundle).await.status, 429);
    assert_eq!(registry.post(&key, &path(&source), &package(&FACTS)).await.status, 201, "a key has its own");
}

/// Nobody fills the storage, nor one source with versions.
#[tokio::test]
async fn a_key_has_a_quota_of_bytes_and_of_versions() {
    // A source counts 4096.
    let registry = TestRegistry::start(&[("SVC__REGISTRY__DAILY_BYTES", "10096")]).await;
    let (one, other) = (registry.key(true, None).await, registry.key(true, None).await);
    let source = registry.source(&one, URL).await;
    let mut large = package(&FACTS);
    large["later"] = json!("x".repeat(2_000));
    assert_eq!(registry.post(&one, &path(&source), &large).await.status, 201);
    large["later"] = json!("y".repeat(2_000));
    let refused = registry.post(&one, &path(&source), &large).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (429, "rate_limited"));
    assert_eq!(registry.files("packages"), 1, "it is not kept");
    assert_eq!(registry.post(&other, &path(&source), &large).await.status, 201, "each has its own");
    for (at, status) in [201, 429, 429].into_iter().enumerate() {
        let made = json!({"url": format!("https://example.org/terns-{at}")});
        let made = registry.post(&other, "/api/v1/sources", &made).await;
        assert_eq!(made.status.as_u16(), status, "{at}: {made:?}");
    }
    assert_eq!(registry.source(&other, URL).await, source, "what is known takes nothing");

    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    for at in 0..21 {
        let mut body = package(&FACTS);
        body["decomposed_by"] = json!(format!("version {at}"));
        let pushed = registry.post(&key, &path(&source), &body).await;
        assert_eq!(pushed.status.as_u16(), if at < 20 { 201 } else { 409 }, "{at}: {pushed:?}");
    }
}

/// Whoever announces what is large and takes their time keeps nobody out, and memory is bounded.
#[tokio::test]
async fn packages_are_read_as_far_as_there_is_room_for_them() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let host = registry.url.trim_start_matches("http://").to_owned();
    let all = 64 << 20;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {all}\r\n\r\n{{",
        path(&source)
    );
    let mut slow = Vec::new();
    for _ in 0..6 {
        #[expect(clippy::disallowed_methods, reason = "a client that sends no end")]
        let mut one = TcpStream::connect(&host).await.unwrap();
        one.write_all(head.as_bytes()).await.unwrap();
        slow.push(one);
    }
    let counted = "SELECT coalesce(sum(count), 0)::bigint FROM okt_registry.pushes";
    eventually(Duration::from_mins(1), "all of them have begun", async || {
        let counted = registry.count(counted).await;
        if counted == 6 { Ok(()) } else { Err(counted) }
    })
    .await;
    assert_eq!(
        registry.post(&key, &path(&source), &package(&FACTS)).await.status,
        201,
        "they have sent little"
    );

    let mut large = slow.pop().unwrap();
    drop(slow);
    // All but the end.
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..63 {
        large.write_all(&spaces).await.unwrap();
    }
    large.write_all(&spaces[..1_000_000]).await.unwrap();
    let refused = eventually(Duration::from_mins(1), "there is no room", async || {
        let pushed = registry.post(&key, &path(&source), &package(&FACTS)).await;
        if pushed.status == 503 { Ok(pushed) } else { Err(pushed.status) }
    })
    .await;
    assert_eq!(refused.problem(), "overloaded");
    drop(large);
    eventually(Duration::from_mins(1), "there is room again", async || {
        let pushed = registry.post(&key, &path(&source), &package(&FACTS)).await;
        if pushed.status == 201 { Ok(()) } else { Err(pushed.status) }
    })
    .await;
}

/// Whatever strangers call their sources.
#[tokio::test]
async fn pages_show_what_there_is_without_a_script() {
    let registry = TestRegistry::start(&[("SVC__REGISTRY__ACCESS", "read_open")]).await;
    let key = registry.key(true, None).await;
    let title = "<script>alert(1)</script> & \"gulls\"";
    let made = registry.post(&key, "/api/v1/sources", &json!({"url": URL, "title": title})).await.json();
    let source = made["source_id"].as_str().unwrap();
    assert_eq!(registry.post(&key, &path(source), &package(&FACTS)).await.status, 201);
    for (path, expected) in
        [("/", URL), (&format!("/?q={URL}"), URL), (&format!("/sources/{source}"), "far-model")]
    {
        let page = Answer::of(registry.request(Method::GET, path)).await;
        assert_eq!(
            (page.status.as_u16(), page.header("content-type")),
            (200, "text/html; charset=utf-8"),
            "{path}"
        );
        assert!(page.text.contains(expected), "{path}: {}", page.text);
        assert!(page.text.contains("&lt;script&gt;") && !page.text.contains("<script"), "{path}");
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    }
    let nothing = Answer::of(registry.request(Method::GET, "/?q=https://example.org/unknown")).await;
    assert!(nothing.text.contains("Nothing is known"), "{nothing:?}");
}

#[tokio::test]
async fn it_says_what_it_is_and_how_it_is() {
    for (access, read, write) in [("open", false, false), ("read_open", false, true), ("closed", true, true)]
    {
        let registry = TestRegistry::start(&[("SVC__REGISTRY__ACCESS", access)]).await;
        let get = async |path: &str| Answer::of(registry.request(Method::GET, path)).await;
        assert_eq!(get("/healthz").await.json(), json!({"status": "alive"}));
        let ready = json!({"status": "ready", "checks": {"database": "ok", "storage": "ok"}});
        let (one, other) = tokio::join!(get("/readyz"), get("/readyz"));
        assert_eq!((one.json(), other.json()), (ready.clone(), ready));
        assert_eq!(get("/metrics").await.status, 200);
        let document = get("/openapi.json").await.json();
        assert_eq!(document["info"]["title"], "okt registry");
        // Who needs a key is said as it is.
        let sources = &document["paths"]["/api/v1/sources"];
        let needs = |operation: &Value| !operation["security"].as_array().unwrap().is_empty();
        assert_eq!((needs(&sources["get"]), needs(&sources["post"])), (read, write), "{access}");
    }
}
