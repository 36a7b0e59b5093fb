//! Bundles in the registry itself.

use std::time::Duration;

use http::Method;
use okt_interchange::bundle::{Metadata, Section, Spool, Writer};
use okt_interchange::origin::{self, SigningKey};
use okt_testkit::client::Answer;
use okt_testkit::registry::{TestRegistry, package, rewritten};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::FACTS;
use super::service::{URL, path};

/// A bundle of nothing but its name, and the hash of its graph.
pub(super) fn bundle(name: &str) -> (Vec<u8>, String) {
    let metadata = Metadata {
        name: name.to_owned(),
        exported_at: "2026-01-02T03:04:05Z".to_owned(),
        ..Metadata::default()
    };
    let spool = Spool::new(std::io::Cursor::new(Vec::new()), &metadata);
    let mut spooled = spool.finish().unwrap();
    let sha256 = spooled.sha256.clone();
    let metadata = Metadata { sha256: sha256.clone(), ..metadata };
    let mut writer = Writer::new(Vec::new(), &metadata).unwrap();
    for section in Section::ALL {
        if section.is_required() {
            writer.section(section, &mut spooled).unwrap();
        }
    }
    (writer.finish().unwrap(), sha256)
}

async fn push_bundle(
    registry: &TestRegistry,
    key: &str,
    name: &str,
    hash: &str,
    body: &[u8],
    more: &[(&str, &str)],
) -> Answer {
    let request = registry.request(Method::POST, "/api/v1/graphs").bearer_auth(key);
    let mut request = request.header("content-type", "application/gzip").header("x-graph-name", name);
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    Answer::of(request.header("x-graph-sha256", hash).body(body.to_vec())).await
}

#[tokio::test]
async fn bundles_are_verified_while_they_arrive_and_kept_as_they_are() {
    let registry = TestRegistry::start(&[]).await;
    let (owner, other) = (registry.key(true, None).await, registry.key(true, None).await);
    let (file, hash) = bundle("Trees");
    let signing = SigningKey::read(&origin::written(&[7; 32])).unwrap();
    let signature = signing.sign(&Sha256::digest(&file).into());
    let tags =
        [("x-graph-tags", "bees,m%C3%B6wen"), ("x-graph-fact-count", "0"), ("x-okt-signature", &*signature)];
    let push = async |key: &str, name: &str, hash: &str, body: &[u8]| {
        push_bundle(&registry, key, name, hash, body, &tags).await
    };
    let pushed = push(&owner, "B%C3%A4ume", &hash, &file).await;
    assert_eq!(pushed.status, 201, "{pushed:?}");
    assert_eq!(pushed.json()["new"], true);
    let id = pushed.json()["graph_id"].as_str().unwrap().to_owned();
    let again = push(&other, "B%C3%A4ume", &hash, &file).await.json();
    assert_eq!(again, json!({"graph_id": id, "new": false}));
    // The hash is in the bundle, too.
    let unsaid = registry.request(Method::POST, "/api/v1/graphs").bearer_auth(&other).body(file.clone());
    let unsaid = unsaid.header("content-type", "application/gzip").header("x-graph-name", "B%C3%A4ume");
    assert_eq!(Answer::of(unsaid).await.json(), again);

    // Nothing of what is wrong is kept.
    let mut cut = file.clone();
    cut.truncate(file.len() - 9);
    let (_, another) = bundle("Something else");
    let altered = rewritten(&file);
    let nothing: &[(&str, &str)] = &[];
    let wrong = [
        ("no name", "", &*hash, &*file, nothing),
        ("no hash", "x", "nonsense", &file, nothing),
        ("another hash", "x", &another, &file, nothing),
        ("garbage", "x", &hash, b"0123456789", nothing),
        ("cut off", "x", &hash, &cut, nothing),
        ("another count", "x", &hash, &file, &[("x-graph-fact-count", "3")]),
        ("another file of the graph", "x", &hash, &altered, &[("x-okt-signature", &signature)]),
    ];
    for (what, name, hash, body, more) in wrong {
        let refused = push_bundle(&registry, &owner, name, hash, body, more).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{what}: {refused:?}");
    }
    let untyped = registry.request(Method::POST, "/api/v1/graphs").bearer_auth(&owner).body(file.clone());
    assert_eq!(Answer::of(untyped).await.status, 415);
    let kept = registry.get(&other, "/api/v1/graphs").await.json();
    assert_eq!(kept["data"].as_array().unwrap().len(), 1, "{kept}");
    assert_eq!(registry.files("graphs"), 1, "no file is left of the others");
    assert_eq!(registry.files("incoming"), 0);

    let listed = registry.get(&other, "/api/v1/graphs?q=b%C3%A4u&tag=m%C3%B6wen").await.json();
    let one = &listed["data"][0];
    assert_eq!(
        (&one["name"], &one["tags"], &one["key_id"]),
        (&json!("Bäume"), &json!(["bees", "möwen"]), &json!(signing.id()))
    );
    assert_eq!(one["owner"], owner.split('.').next().unwrap(), "whoever was let in");
    assert_eq!(registry.get(&other, "/api/v1/graphs?tag=nothing").await.json()["data"], json!([]));
    let bundle = format!("/api/v1/graphs/{id}/bundle");
    let whole = registry.request(Method::GET, &bundle).bearer_auth(&other).send().await.unwrap();
    assert_eq!(whole.headers()["x-okt-signature"].to_str().unwrap(), signature);
    assert_eq!(whole.bytes().await.unwrap(), file);
    let end = file.len();
    for (range, part) in
        [("bytes=2-4", &file[2..5]), ("bytes=7-", &file[7..]), ("bytes=-3", &file[end - 3..])]
    {
        let request = registry.request(Method::GET, &bundle).bearer_auth(&other).header("range", range);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 206, "{range}");
        assert_eq!(answer.bytes().await.unwrap(), part, "{range}");
    }
    let beyond =
        registry.request(Method::GET, &bundle).bearer_auth(&other).header("range", format!("bytes={end}-"));
    assert_eq!(Answer::of(beyond).await.status, 416);
    let delete = async |key: &str| {
        Answer::of(registry.request(Method::DELETE, &format!("/api/v1/graphs/{id}")).bearer_auth(key))
            .await
            .status
    };
    assert_eq!(delete(&other).await, 403, "somebody else's");
    assert_eq!(delete(&owner).await, 204);
    assert_eq!(registry.get(&owner, &bundle).await.status, 404);
    assert_eq!(registry.files("graphs"), 0);
}

#[tokio::test]
async fn files_that_no_row_speaks_of_do_not_stay() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    assert_eq!(registry.post(&key, &path(&source), &package(&FACTS)).await.status, 201);
    let (file, hash) = bundle("Trees");
    let pushed = push_bundle(&registry, &key, "Trees", &hash, &file, &[]).await.json();
    let same = push_bundle(&registry, &key, "Trees", &hash, &rewritten(&file), &[]).await.json();
    assert_eq!(same, json!({"graph_id": pushed["graph_id"], "new": false}));
    assert_eq!(registry.files("graphs"), 1, "another file of the same graph is not kept");

    for path in ["packages/ab", "graphs/ab", "incoming"] {
        registry.leave(&format!("{path}/{}", "ab".repeat(32)));
    }
    // As somebody leaves a large one who is killed while it arrives.
    registry.leave("incoming/0197a3c0-0000-7000-8000-000000000001#1");
    let files = || ["packages", "graphs", "incoming"].map(|folder| registry.files(folder));
    let sweep = async |age| {
        for folder in 0..=u8::MAX {
            registry.registry.sweep(folder, age).await.unwrap();
        }
    };
    sweep(Duration::from_hours(24)).await;
    assert_eq!(files(), [2, 2, 2], "somebody may be about to write a row");
    sweep(Duration::ZERO).await;
    assert_eq!(files(), [1, 1, 0]);
    assert_eq!(registry.get(&key, &path(&source)).await.json(), package(&FACTS));
}

#[tokio::test]
async fn a_bundle_that_was_withdrawn_is_gone_for_good() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let (file, hash) = bundle("Trees");
    let pushed = push_bundle(&registry, &key, "Trees", &hash, &file, &[]).await.json();
    let id = pushed["graph_id"].as_str().unwrap();
    assert!(registry.registry.withdraw_graph(id.parse().unwrap(), "it is spam").await.unwrap());
    for path in ["", "/bundle"] {
        let gone = registry.get(&key, &format!("/api/v1/graphs/{id}{path}")).await;
        assert!(gone.status == 404 && gone.text.contains("it is spam"), "{gone:?}");
    }
    assert_eq!(registry.get(&key, "/api/v1/graphs").await.json()["data"], json!([]));
    for name in ["Trees", "More trees"] {
        let again = push_bundle(&registry, &key, name, &hash, &file, &[]).await;
        assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"), "{name}");
    }
    let told = registry.get(&key, "/api/v1/withdrawals").await.json();
    let one = &told["data"][0];
    assert_eq!(
        (&one["graph_id"], &one["sha256"], &one["model_id"]),
        (&json!(id), &json!(hash), &Value::Null)
    );
}

/// Whoever downloaded it elsewhere may have altered what the hash of the graph leaves out.
#[tokio::test]
async fn a_bundle_of_a_stranger_is_in_the_way_of_nobody_who_signs_theirs() {
    let registry = TestRegistry::start(&[]).await;
    let (owner, stranger) = (registry.key(true, None).await, registry.key(true, None).await);
    let (file, hash) = bundle("Trees");
    let altered = rewritten(&file);
    let theirs = push_bundle(&registry, &stranger, "Trees", &hash, &altered, &[]).await.json();
    assert_eq!(theirs["new"], true);
    let signing = SigningKey::read(&origin::written(&[7; 32])).unwrap();
    let signature = signing.sign(&Sha256::digest(&file).into());
    let signed = [("x-okt-signature", &*signature)];
    let own = push_bundle(&registry, &owner, "Trees", &hash, &file, &signed).await;
    assert_eq!((own.status.as_u16(), &own.json()["new"]), (201, &json!(true)), "{own:?}");
    let listed = registry.get(&owner, "/api/v1/graphs").await.json();
    assert_eq!(
        (&listed["data"][0]["key_id"], listed["data"].as_array().unwrap().len()),
        (&json!(signing.id()), 2)
    );
    // And withdrawing the stranger's withdraws nothing else.
    let id = theirs["graph_id"].as_str().unwrap().parse().unwrap();
    assert!(registry.registry.withdraw_graph(id, "its images are others").await.unwrap());
    let again = push_bundle(&registry, &owner, "Trees", &hash, &file, &signed).await.json();
    assert_eq!(again, json!({"graph_id": own.json()["graph_id"], "new": false}));
    assert_eq!(push_bundle(&registry, &owner, "More trees", &hash, &file, &signed).await.status, 201);
    assert_eq!(push_bundle(&registry, &stranger, "Trees", &hash, &altered, &[]).await.status, 409);
}
