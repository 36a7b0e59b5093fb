//! The registry itself: what it takes, from whom, and what it hands out.

use http::Method;
use okt_interchange::bundle::{Metadata, Section, Spool, Writer};
use okt_interchange::origin::{self, SigningKey};
use okt_testkit::client::Answer;
use okt_testkit::registry::{TestRegistry, package};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::FACTS;

const URL: &str = "https://example.org/gulls";

fn path(source: &str) -> String {
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
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["version"]), (1, &json!(2)));
    assert_eq!(registry.get(&reader, &path(&source)).await.json(), other);
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
async fn what_is_wrong_is_refused_whole_with_the_place() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let source = registry.source(&key, URL).await;
    let cases: [(&str, Value, &str); 6] = [
        ("/schema_version", json!(2), "schema_version: is 2"),
        ("/facts/1/content_hash", json!("0".repeat(64)), "facts[1].content_hash"),
        ("/facts/1/concept_ids/0", json!("0197a3c0-0000-7000-8000-00000000dead"), "facts[1].concept_ids[0]"),
        ("/summaries/0/concept_id", json!("0197a3c0-0000-7000-8000-00000000dead"), "summaries[0].concept_id"),
        ("/facts/0/content", json!("a\u{0}"), "facts[0].content"),
        ("/model_id", json!("another"), "model_id"),
    ];
    for (pointer, value, place) in cases {
        let mut body = package(&FACTS);
        *body.pointer_mut(pointer).unwrap() = value;
        let refused = registry.post(&key, &path(&source), &body).await;
        assert_eq!(refused.status, 422, "{pointer}: {refused:?}");
        assert!(refused.text.contains(place), "{pointer}: {}", refused.text);
    }
    let listed = registry.get(&key, &format!("/api/v1/sources/{source}/decompositions")).await.json();
    assert_eq!(listed["data"], json!([]), "nothing is kept");
    let nowhere = registry.post(&key, &path("0197a3c0-0000-7000-8000-00000000dead"), &package(&FACTS)).await;
    assert_eq!((nowhere.status.as_u16(), &*nowhere.problem()), (404, "not_found"));
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
    assert!(registry.registry.withdraw(id, "far-model", "it is wrong").await.unwrap());
    assert_eq!(registry.get(&other, &path(&source)).await.json(), package(&FACTS), "the one before");
    let again = registry.post(&other, &path(&source), &package(&FACTS[..2])).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"));
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
    assert_eq!(reasons, ["it is wrong", "a stolen key"]);
    let since = told["data"][1]["withdrawn_at"].as_str().unwrap();
    let rest = registry.get(&other, &format!("/api/v1/withdrawals?since={since}")).await.json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1, "{rest}");
    let first = registry.get(&other, "/api/v1/withdrawals?limit=1").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = registry.get(&other, &format!("/api/v1/withdrawals?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&second["data"][0], &second["next_cursor"]), (&told["data"][1], &Value::Null));
}

/// A bundle of nothing but its name, and the hash of its graph.
fn bundle(name: &str) -> (Vec<u8>, String) {
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
    let digest: okt_model::ContentHash = hash.parse().unwrap();
    let signature = signing.sign(&digest.0);
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

    // Nothing of what is wrong is kept.
    let mut cut = file.clone();
    cut.truncate(file.len() - 9);
    let (_, another) = bundle("Something else");
    let wrong: [(&str, &str, &str, &[u8], &[(&str, &str)]); 7] = [
        ("no name", "", &hash, &file, &[]),
        ("no hash", "x", "nonsense", &file, &[]),
        ("another hash", "x", &another, &file, &[]),
        ("garbage", "x", &hash, b"0123456789", &[]),
        ("cut off", "x", &hash, &cut, &[]),
        ("another count", "x", &hash, &file, &[("x-graph-fact-count", "3")]),
        ("another's signature", "x", &another, &file, &[("x-okt-signature", &signature)]),
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
    let again = push_bundle(&registry, &key, "Trees", &hash, &file, &[]).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"));
    let told = registry.get(&key, "/api/v1/withdrawals").await.json();
    let one = &told["data"][0];
    assert_eq!(
        (&one["graph_id"], &one["sha256"], &one["model_id"]),
        (&json!(id), &json!(hash), &Value::Null)
    );
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
        assert_eq!(get("/readyz").await.json(), ready);
        assert_eq!(get("/metrics").await.status, 200);
        let document = get("/openapi.json").await.json();
        assert_eq!(document["info"]["title"], "okt registry");
        // Who needs a key is said as it is.
        let sources = &document["paths"]["/api/v1/sources"];
        let needs = |operation: &Value| !operation["security"].as_array().unwrap().is_empty();
        assert_eq!((needs(&sources["get"]), needs(&sources["post"])), (read, write), "{access}");
    }
}
