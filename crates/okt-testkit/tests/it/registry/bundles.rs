//! Graph Bundles that go through a registry.

use okt_app::Origin;
use okt_interchange::origin::{self, SigningKey};
use okt_model::Revoked;
use okt_testkit::app::TestApp;
use okt_testkit::registry::{StandIn, TestRegistry, rewritten};
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::builder;

const TEXT: &str = "Honey bees find the way back to their hive by the position of the sun. \
    Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006. \
    Oxalic acid kills Varroa mites on adult honey bees in winter.";
const OTHER: &str = "Varroa mites killed 40 percent of all honey bee colonies in Norway in 2006. \
    The Norwegian Beekeepers Association was founded in 1884.";

async fn job(app: &TestApp, path: &str, body: &Value) -> Value {
    let asked = app.post(path, body).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    app.ended(asked.json()["job_id"].as_str().unwrap()).await
}

async fn app(registry: &TestRegistry, keys: &[(&str, &str)]) -> TestApp {
    let rules = [("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", "builtin-extractive-1")];
    let mut app = builder(&registry.url).settings(keys).settings(&rules).start().await;
    app.work().await;
    app
}

async fn rows(app: &TestApp) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in [
        "sources",
        "source_texts",
        "facts",
        "fact_sources",
        "concepts",
        "fact_concepts",
        "reports",
        "investigations",
    ] {
        counts.push(app.count(&format!("SELECT count(*) FROM okt_repository.{table}")).await);
    }
    counts
}

#[tokio::test]
async fn a_repository_goes_through_a_registry_and_can_be_taken_out_again() {
    let registry = TestRegistry::start(&[]).await;
    let (writer, reader) = (registry.key(true, None).await, registry.key(false, None).await);
    let signing = origin::written(&[5; 32]);
    let key_id = SigningKey::read(&signing).unwrap().id().to_owned();
    let keys = [
        ("REGISTRY_AUTH_MODE", "hmac"),
        ("REGISTRY_API_KEY", &*writer),
        ("REGISTRY_READ_API_KEY", &*reader),
        ("SVC__PROVIDERS__REGISTRY__SIGNING_KEY", &*signing),
    ];
    let (one, other) = (app(&registry, &keys).await, app(&registry, &keys).await);
    for (name, text) in [("bees.txt", TEXT), ("mites.txt", OTHER)] {
        let source = one.add_text(name, text).await;
        assert_eq!(one.settled(&source).await["status"], "processed");
    }
    let made = one.post("/investigations", &json!({"title": "Mites"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let report = json!({"title": "Bees", "body_markdown": "Oxalic acid kills Varroa mites in winter."});
    assert_eq!(one.post("/reports", &report).await.status, 201);
    one.quiet().await;
    let exported =
        json!({"name": "Bees of Norway", "description": "What is known of them", "tags": ["bees"]});
    let ended = job(&one, "/export-graph", &exported).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let graph = ended["output"]["registry"].clone();
    assert_eq!(
        (&graph["new"], &graph["signed"], &graph["id"]),
        (&json!(true), &json!(true), &json!("default"))
    );
    let again = job(&one, "/export-graph", &exported).await;
    assert_eq!(
        (&again["output"]["registry"]["new"], &again["output"]["registry"]["graph_id"]),
        (&json!(false), &graph["graph_id"])
    );

    let listed = other.read("/registry/graphs?q=norway&tag=bees").await;
    let found = &listed["data"][0];
    assert_eq!(
        (&found["graph_id"], &found["sha256"]),
        (&graph["graph_id"], &ended["output"]["sha256"]),
        "{listed:#}"
    );
    assert_eq!((&found["description"], &found["signed"]), (&json!("What is known of them"), &json!(true)));
    // One of its sources is here already, and says one thing less.
    let here = other.add_text("mites.txt", OTHER).await;
    assert_eq!(other.settled(&here).await["status"], "processed");
    other.quiet().await;
    other.sql("DELETE FROM okt_repository.fact_sources WHERE fact_no IN (SELECT no FROM okt_repository.facts WHERE text LIKE '%1884%')").await;
    other.sql("DELETE FROM okt_repository.fact_concepts WHERE fact_no IN (SELECT no FROM okt_repository.facts WHERE text LIKE '%1884%')").await;
    other.sql("DELETE FROM okt_repository.facts WHERE text LIKE '%1884%'").await;
    other.sql("UPDATE okt_repository.sources SET fact_count = fact_count - 1").await;
    other.sql("UPDATE okt_repository.counters SET value = value - 1 WHERE name = 'facts'").await;
    let before = rows(&other).await;
    let import = json!({"registry_graph_id": graph["graph_id"]});
    let mut dry = import.clone();
    dry["dry_run"] = json!(true);
    let would = job(&other, "/import-graph", &dry).await;
    assert_eq!(would["state"], "completed", "{would:#}");
    assert_eq!(rows(&other).await, before, "a dry run changes nothing");
    let taken = job(&other, "/import-graph", &import).await;
    assert_eq!(
        (&taken["output"]["rows"], &taken["output"]["sha256"]),
        (&would["output"]["rows"], &ended["output"]["sha256"])
    );
    assert_eq!(taken["output"]["registry"]["key_id"], key_id);
    assert_eq!(taken["output"]["rows"]["sources"], json!({"added": 1, "linked": 1}), "{taken:#}");
    other.quiet().await;
    let facts = other.facts(&here).await;
    let added = facts
        .iter()
        .find(|fact| fact["text"].as_str().unwrap().contains("1884"))
        .expect("the bundle says it");
    let seen = other.read(&format!("/facts/{}", added["id"].as_str().unwrap())).await;
    let origin = &seen["sources"][0]["origin"];
    assert_eq!(
        (&origin["kind"], &origin["key_id"], &origin["registry"]),
        (&json!("bundle"), &json!(key_id), &json!("default")),
        "{seen:#}"
    );

    // Everything goes that came with it, also what sources say that were here before.
    let mut revoked = Vec::<Revoked>::new();
    let app = &other.service.api.app;
    app.revoke_origin(&Origin::service("test"), &key_id, false, |found| revoked.extend(found.revoked))
        .await
        .unwrap();
    let Revoked { imports, sources, emptied, reports, investigations, .. } = revoked[0];
    assert_eq!((imports, sources, emptied, reports, investigations), (1, 1, 0, 1, 1), "{revoked:?}");
    other.quiet().await;
    assert_eq!(rows(&other).await, before);
    let refused = job(&other, "/import-graph", &import).await;
    assert!(
        refused["state"] == "discarded" && refused.to_string().contains("its origin was revoked"),
        "{refused:#}"
    );
    assert_eq!(rows(&other).await, before);
}

#[tokio::test]
async fn a_bundle_of_nobody_who_is_trusted_is_not_taken() {
    let registry = TestRegistry::start(&[]).await;
    let key = registry.key(true, None).await;
    let keys = [("REGISTRY_AUTH_MODE", "bearer"), ("REGISTRY_API_KEY", &*key)];
    let (one, other) = (app(&registry, &keys).await, app(&registry, &keys).await);
    let source = one.add_text("bees.txt", TEXT).await;
    one.settled(&source).await;
    one.quiet().await;
    let ended = job(&one, "/export-graph", &json!({"registry_id": "default"})).await;
    assert_eq!(ended["output"]["registry"]["signed"], false, "{ended:#}");
    let import = json!({"registry_graph_id": ended["output"]["registry"]["graph_id"]});
    let changed = other.put("/settings/registry", &json!({"trust": "signed"})).await;
    assert!(changed.status.is_success(), "{changed:?}");
    let refused = job(&other, "/import-graph", &import).await;
    assert!(
        refused["state"] == "discarded" && refused.to_string().contains("it is not signed"),
        "{refused:#}"
    );
    assert_eq!(other.count("SELECT count(*) FROM okt_repository.facts").await, 0);
    for (path, body) in [
        ("/import-graph", json!({"registry_graph_id": "x", "registry_id": "nobody"})),
        ("/export-graph", json!({"registry_id": "nobody"})),
    ] {
        let refused = other.post(path, &body).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (422, "invalid"), "{path}");
    }
    let missing =
        job(&other, "/import-graph", &json!({"registry_graph_id": "0197a3c0-0000-7000-8000-00000000dead"}))
            .await;
    assert!(missing["state"] == "discarded" && missing.to_string().contains("answered 404"), "{missing:#}");
}

/// Whoever runs the registry has changed what the hash of a graph does not tell.
#[tokio::test]
async fn a_bundle_that_was_altered_beside_its_graph_is_not_taken() {
    let registry = TestRegistry::start(&[]).await;
    let (key, signing) = (registry.key(true, None).await, origin::written(&[5; 32]));
    let keys = [
        ("REGISTRY_AUTH_MODE", "bearer"),
        ("REGISTRY_API_KEY", &*key),
        ("SVC__PROVIDERS__REGISTRY__SIGNING_KEY", &*signing),
    ];
    let one = app(&registry, &keys).await;
    let source = one.add_text("bees.txt", TEXT).await;
    one.settled(&source).await;
    one.quiet().await;
    let ended = job(&one, "/export-graph", &json!({"registry_id": "default"})).await;
    let id = ended["output"]["registry"]["graph_id"].as_str().unwrap();
    let shown = registry.get(&key, &format!("/api/v1/graphs/{id}")).await.json();
    let path = format!("/api/v1/graphs/{id}/bundle");
    let pulled = registry.request(http::Method::GET, &path).bearer_auth(&key).send().await.unwrap();
    let signature = pulled.headers()["x-okt-signature"].to_str().unwrap().to_owned();
    let file = pulled.bytes().await.unwrap();

    let hostile = StandIn::start().await;
    let url = hostile.url();
    let mut other = builder(&url).start().await;
    other.work().await;
    hostile.web.page(&format!("/api/v1/graphs/{id}"), Page::new("application/json", shown.to_string()));
    let import = json!({"registry_graph_id": id});
    for (what, body, taken) in
        [("altered", rewritten(&file), false), ("as it was signed", file.to_vec(), true)]
    {
        let page = Page::new("application/gzip", body).header("x-okt-signature", &signature);
        hostile.web.page(&path, page);
        let ended = job(&other, "/import-graph", &import).await;
        assert_eq!(ended["state"] == "completed", taken, "{what}: {ended:#}");
        assert_eq!(ended.to_string().contains("signature is not valid"), !taken, "{what}: {ended:#}");
        let facts = other.count("SELECT count(*) FROM okt_repository.facts").await;
        assert_eq!(facts > 0, taken, "{what}");
    }
}

/// What a page can show before anything is added.
#[tokio::test]
async fn people_see_what_the_registry_has_and_whether_it_would_be_taken() {
    let (app, registry) = super::start().await;
    let (page, package) = (app.web.url("/gulls"), okt_testkit::registry::package(&super::FACTS));
    registry.offer(&page, &package);
    let search = format!("/registry/search?url={page}");
    let seen = app.read(&search).await;
    assert_eq!(
        (&seen["registry"], &seen["found"], &seen["source"]["title"]),
        (&json!("default"), &json!(true), &json!("On gulls"))
    );
    let one = &seen["decompositions"][0];
    assert_eq!(
        (&one["model_id"], &one["admitted"], &one["reason"]),
        (&json!("far-model"), &json!(true), &Value::Null),
        "{seen:#}"
    );
    assert!(app.put("/settings/registry", &json!({"trust": "signed"})).await.status.is_success());
    let seen = app.read(&search).await;
    assert_eq!(seen["decompositions"][0]["reason"], "it is not signed", "{seen:#}");
    for (query, status) in
        [("", 422), ("?url=ftp://x", 422), ("?doi=x", 422), ("?url=http://x.org&doi=10.1000/1", 422)]
    {
        assert_eq!(app.get(&format!("/registry/search{query}")).await.status.as_u16(), status, "{query}");
    }
    let away = builder("http://127.0.0.1:9/").start().await;
    let refused = away.get("/registry/search?url=https://example.org").await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "unavailable"), "{refused:?}");
    let without = builder("").start().await;
    for path in ["/registry/search?url=https://example.org", "/registry/graphs"] {
        let refused = without.get(path).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "not_configured"), "{path}");
    }
}
