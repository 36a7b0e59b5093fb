use std::time::{Duration, Instant};

use okt_testkit::registry::{StandIn, package};
use okt_testkit::web::Page;
use serde_json::json;

use super::{FACTS, add, builder, id, is_imported, start};

fn json_page(body: impl Into<Vec<u8>>) -> Page {
    Page::new("application/json", body)
}

/// Whatever a registry does, the source is fetched, and for a while nobody asks again.
#[tokio::test]
async fn no_source_fails_for_a_registry_that_does() {
    let garbage = json_page("<html>").header("x", "y");
    let hanging = json_page("{\"found\": true").header("content-length", "100").stops_after(5);
    let large = json_page("x").header("content-length", "5000000000");
    for (what, page) in [
        ("garbage", garbage),
        ("an error", json_page("{}").status(503)),
        ("hanging", hanging),
        ("5 GB", large),
    ] {
        let (app, registry) = start().await;
        let path = StandIn::search_path(&app.web.url("/gulls"));
        registry.web.page(&path, page);
        let begun = Instant::now();
        assert!(!is_imported(&add(&app).await), "{what}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}: {:?}", begun.elapsed());
        // The next one is not even asked about.
        let asked = registry.web.asked().len();
        assert_eq!(asked, 1, "{what}");
        app.web.page("/terns", Page::article("Terns"));
        let other = app.add_page("/terns").await;
        assert_eq!(app.settled(&other).await["status"], "processed", "{what}");
        assert_eq!(registry.web.asked().len(), asked, "{what}");
    }
}

#[tokio::test]
async fn a_registry_that_is_down_is_no_reason_to_wait() {
    let mut app = builder("http://127.0.0.1:9/").start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    assert!(!is_imported(&add(&app).await));
}

/// It answers, and knows nothing: everybody goes on asking.
#[tokio::test]
async fn an_unknown_source_is_fetched_and_the_next_one_is_asked_about() {
    let (app, registry) = start().await;
    let unknown = json_page(json!({"found": false, "source": null, "decompositions": []}).to_string());
    registry.web.page(&StandIn::search_path(&app.web.url("/gulls")), unknown);
    assert!(!is_imported(&add(&app).await));
    registry.offer(&app.web.url("/terns"), &package(&FACTS));
    let source = app.add_page("/terns").await;
    assert!(is_imported(&app.settled(&source).await));
}

/// What somebody uploads is read here.
#[tokio::test]
async fn uploads_are_not_asked_about() {
    let (app, registry) = start().await;
    let source = app.add_text("gulls.txt", "Herring gulls nest on the cliffs of Norway in spring.").await;
    assert_eq!(app.settled(&source).await["status"], "processed");
    assert_eq!(registry.web.asked(), [""; 0]);
}

/// One repository may choose another registry than the first.
#[tokio::test]
async fn a_repository_uses_the_registry_that_it_chose() {
    let (one, other) = (StandIn::start().await, StandIn::start().await);
    let file = format!(
        "[[providers.registries]]\nid = \"one\"\nurl = \"{}\"\n[[providers.registries]]\nid = \"other\"\nurl = \"{}\"\n",
        one.url(),
        other.url()
    );
    let mut app = builder("").settings(&[(okt_testkit::db::FILE, &file)]).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    for registry in [&one, &other] {
        registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    }
    for (chosen, registry) in [("other", &other), ("one", &one)] {
        let changed = app.put("/settings/registry", &json!({"id": chosen})).await;
        assert!(changed.status.is_success(), "{changed:?}");
        let seen = add(&app).await;
        assert_eq!(seen["extraction"]["registry"]["registry"], chosen, "{seen}");
        assert_eq!(registry.web.asked().len(), 2, "a search and a package");
        assert_eq!(app.delete(&format!("/sources/{}", id(&seen))).await.status, 204);
    }
}
