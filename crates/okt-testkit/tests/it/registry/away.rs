use std::time::{Duration, Instant};

use okt_testkit::app::TestApp;
use okt_testkit::registry::{StandIn, package};
use okt_testkit::wait::eventually;
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
        ("5 GB that do come", json_page(vec![b' '; 1 << 20]).times(5_000)),
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

/// How long it is until a source is fetched, with a registry at this address, which answers what `prepare` says.
async fn fetched_after(registry: &str, prepare: impl FnOnce(&TestApp)) -> Duration {
    let settings = [("SVC__PROVIDERS__REGISTRY__TIMEOUT", "4s")];
    let mut app = builder(registry).settings(&settings).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    prepare(&app);
    app.work().await;
    let begun = Instant::now();
    app.add_page("/gulls").await;
    app.web.await_asked("/gulls", 1).await;
    begun.elapsed()
}

#[tokio::test]
async fn a_registry_that_fails_costs_a_source_one_timeout_at_most() {
    let without = fetched_after("", |_| {}).await;
    // A second one would be too much.
    let most = without + Duration::from_secs(4 + 2);
    let down = fetched_after("http://127.0.0.1:9/", |_| {}).await;
    assert!(down < most, "down: {down:?}, without a registry {without:?}");
    let hanging = || json_page("{\"found\": true").header("content-length", "100").stops_after(5);
    for (what, page, is_package) in [
        ("garbage", json_page("<html>"), false),
        ("a list that hangs", hanging(), false),
        ("a package that hangs", hanging(), true),
    ] {
        let registry = StandIn::start().await;
        let took = fetched_after(&registry.url(), |app| {
            let gulls = app.web.url("/gulls");
            let path = if is_package {
                registry.offer(&gulls, &package(&FACTS));
                "/api/v1/sources/s1/decompositions/far-model".to_owned()
            } else {
                StandIn::search_path(&gulls)
            };
            registry.web.page(&path, page);
        })
        .await;
        assert!(took < most, "{what}: {took:?}, without a registry {without:?}");
    }
}

/// Of this process, in MiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn an_answer_without_an_end_takes_no_more_memory_than_answers_may() {
    for is_package in [false, true] {
        let registry = StandIn::start().await;
        let url = registry.url();
        let settings = [("SVC__SERVER__LIMITS__PACKAGE_BYTES", "4194304")];
        let mut app = builder(&url).settings(&settings).start().await;
        app.work().await;
        // What the first source takes is here then.
        app.web.page("/terns", Page::article("Terns"));
        let first = app.add_page("/terns").await;
        assert_eq!(app.settled(&first).await["status"], "processed");

        let gulls = app.web.url("/gulls");
        let endless = json_page(vec![b' '; 1 << 20]).times(5_000);
        if is_package {
            registry.offer(&gulls, &package(&FACTS));
            registry.web.page("/api/v1/sources/s1/decompositions/far-model", endless);
        } else {
            registry.web.page(&StandIn::search_path(&gulls), endless);
        }
        app.web.page("/gulls", Page::article("Gulls"));
        // From now on, what is resident now counts as the most.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = memory("VmRSS:");
        assert!(!is_imported(&add(&app).await));
        let grown = memory("VmHWM:").saturating_sub(before);
        assert!(grown < 64, "{grown} MiB more for 5 GB (a package: {is_package})");
    }
}

/// The list is as it should be, and the package has no end.
#[tokio::test]
async fn a_package_without_an_end_is_read_no_further_than_packages_go() {
    let (app, registry) = start().await;
    registry.offer(&app.web.url("/gulls"), &package(&FACTS));
    let endless = json_page(vec![b' '; 1 << 20]).times(5_000);
    registry.web.page("/api/v1/sources/s1/decompositions/far-model", endless);
    let begun = Instant::now();
    assert!(!is_imported(&add(&app).await));
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
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

/// A few packages are downloaded at once, and the others wait for us, not for the registry.
#[tokio::test]
async fn waiting_for_our_own_downloads_is_no_fault_of_the_registry() {
    let (app, registry) = start().await;
    for at in 0..8_usize {
        let path = format!("/gulls-{at}");
        let text = format!("Gull number {at} flew around the island.");
        let mut package = package(&[text.as_str()]);
        package["facts"][0]["id"] = json!(uuid::Uuid::from_u128(0x7_0000 + at as u128));
        package["facts"][0]["concept_ids"] = json!([]);
        (package["concepts"], package["summaries"]) = (json!([]), json!([]));
        let bytes = package.to_string().into_bytes();
        registry.offer_as(&app.web.url(&path), &package, bytes.clone(), at);
        // Two at once, four times after each other: longer than the timeout of two seconds.
        let slow = json_page(bytes).waits(Duration::from_millis(800));
        registry.web.page(&format!("/api/v1/sources/s{at}/decompositions/far-model"), slow);
        app.web.page(&path, Page::article("Gulls"));
    }
    let mut added = Vec::new();
    for at in 0..8 {
        added.push(app.add_page(&format!("/gulls-{at}")).await);
    }
    for source in added {
        let seen = app.settled(&source).await;
        assert!(is_imported(&seen), "{seen:#}");
    }
}

/// What it has would be paid for otherwise: whoever adds much asks much.
#[tokio::test]
async fn a_source_waits_for_a_registry_that_is_asked_too_often() {
    let (app, registry) = start().await;
    let url = app.web.url("/gulls");
    let path = StandIn::search_path(&url);
    registry.web.page(&path, json_page("{}").status(429).header("retry-after", "1"));
    let source = app.add_page("/gulls").await;
    // What counts is when it was asked for, which may be long after the source was added.
    app.sql("UPDATE okt_repository.sources SET created_at = created_at - interval '1 day'").await;
    registry.web.await_asked(&path, 6).await;
    registry.offer(&url, &package(&FACTS));
    let seen = app.settled(&source).await;
    assert!(is_imported(&seen), "{seen:#}");
    assert_eq!(app.web.asked(), [""; 0], "nothing is fetched");
    // Where that goes on for long, it is fetched.
    app.web.page("/terns", Page::article("Terns"));
    let path = StandIn::search_path(&app.web.url("/terns"));
    registry.web.page(&path, json_page("{}").status(429).header("retry-after", "1"));
    let source = app.add_page("/terns").await;
    registry.web.await_asked(&path, 1).await;
    app.sql("UPDATE okt_repository.outbox SET created_at = created_at - interval '1 hour'").await;
    let seen = app.settled(&source).await;
    assert!(seen["status"] == "processed" && !is_imported(&seen), "{seen:#}");
}

/// That it takes nothing, or has too much to do for one request, says nothing of what it has.
#[tokio::test]
async fn a_registry_that_takes_nothing_or_is_busy_is_still_asked() {
    let (app, registry) = start().await;
    assert!(!is_imported(&add(&app).await));
    registry.web.page("/api/v1/sources", json_page("{}").status(500));
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    registry.web.await_asked("/api/v1/sources", 1).await;
    // The job has heard of it.
    eventually(Duration::from_mins(1), "the push has failed", async || {
        let waiting = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'contribute_source' AND attempt = 1 AND failures <> '[]'";
        let waiting = app.count(waiting).await;
        if waiting == 1 { Ok(()) } else { Err(waiting) }
    })
    .await;
    registry.offer(&app.web.url("/one"), &package(&FACTS));
    let one = app.add_page("/one").await;
    assert!(is_imported(&app.settled(&one).await));

    let busy = json!({"detail": "too many requests are being answered"}).to_string();
    registry.web.page(&StandIn::search_path(&app.web.url("/busy")), json_page(busy).status(503));
    app.web.page("/busy", Page::article("Busy"));
    let source = app.add_page("/busy").await;
    assert!(!is_imported(&app.settled(&source).await));
    registry.offer(&app.web.url("/other"), &package(&FACTS));
    let other = app.add_page("/other").await;
    assert!(is_imported(&app.settled(&other).await));
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
