//! From an address to text: what is told when it goes wrong, and what can be done about it.

use http::Method;
use okt_testkit::accounts;
use okt_testkit::web::{Page, Web};
use serde_json::json;

use crate::library::Library;

#[tokio::test]
async fn what_can_not_be_had_says_why_and_can_be_tried_again() {
    let mut library = Library::open(&[]).await;
    library.web.page("/forbidden", Page::html("no").status(403));
    library.web.page("/picture", Page::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()));
    let gone = library.add("/gone").await;
    let forbidden = library.add("/forbidden").await;
    let picture = library.add("/picture").await;
    library.work().await;
    for (source, stage, code) in [
        (&gone, "fetch", "not_found"),
        (&forbidden, "fetch", "forbidden"),
        (&picture, "fetch", "unsupported_type"),
    ] {
        let seen = library.settled(source).await;
        assert_eq!((&seen["status"], &seen["failure"]["stage"]), (&json!("failed"), &json!(stage)), "{seen}");
        assert_eq!(seen["failure"]["code"], code, "{seen}");
        assert!(!seen["failure"]["message"].as_str().unwrap().is_empty());
        assert_eq!(seen["failure"]["retryable"], false, "{seen}");
    }
    let seen = library.get(&format!("/{forbidden}")).await.json();
    let attempts = seen["fetch_attempts"].as_array().unwrap();
    // The first, and two more as the settings say.
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    assert!(attempts.iter().all(|attempt| attempt["status"] == 403 && attempt["outcome"] == "forbidden"));
    let processed = library.ask(Method::POST, &format!("/{gone}/process"), &json!({})).await;
    assert_eq!((processed.status.as_u16(), &*processed.problem()), (409, "conflict"));

    library.web.page("/gone", Page::article("Found"));
    let retried = library.ask(Method::POST, &format!("/{gone}/retry"), &json!({})).await;
    assert_eq!(retried.status, 202, "{retried:?}");
    let seen = library.settled(&gone).await;
    assert_eq!((&seen["status"], &seen["failure"]), (&json!("processed"), &json!(null)), "{seen}");
    let again = library.ask(Method::POST, &format!("/{gone}/retry"), &json!({})).await;
    assert_eq!((again.status.as_u16(), &*again.problem()), (409, "conflict"));
    let processed = library.ask(Method::POST, &format!("/{gone}/process"), &json!({})).await;
    assert_eq!(processed.status, 202, "{processed:?}");
    assert_eq!(library.settled(&gone).await["status"], "processed");
}

/// An address that was changed behind our back is checked when it is fetched, not when it was added.
#[tokio::test]
async fn an_address_that_came_to_lead_inside_is_refused_at_retry() {
    let mut library = Library::open(&[]).await;
    let inside = Web::start().await;
    inside.page("/secret", Page::article("Secret"));
    let source = library.add("/gone").await;
    library.work().await;
    assert_eq!(library.settled(&source).await["failure"]["code"], "not_found");
    library.web.page("/away", Page::html("").status(302).header("location", &inside.url("/secret")));
    for address in [
        inside.url("/secret"),
        inside.url("/secret").replace("127.0.0.1", "localhost"),
        inside.url("/secret").replace("127.0.0.1", "[::ffff:127.0.0.1]"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://2130706433/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "upload://nothing".to_owned(),
        library.web.url("/away"),
    ] {
        let change = format!("UPDATE okt_repository.sources SET url = '{address}' WHERE id = '{source}'");
        accounts::sql(&library.service, &change).await;
        assert_eq!(library.ask(Method::POST, &format!("/{source}/retry"), &json!({})).await.status, 202);
        let seen = library.settled(&source).await;
        assert_eq!(seen["failure"]["code"], "address_refused", "{address}: {seen}");
    }
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
}

#[tokio::test]
async fn a_source_whose_job_is_cancelled_or_given_up_says_so() {
    let mut library = Library::open(&[]).await;
    library.web.page("/slow", Page::article("Slow").stops_after(10));
    let added = library.ask(Method::POST, "", &json!({"url": library.web.url("/slow")})).await.json();
    let (source, job) = (added["source_id"].as_str().unwrap(), added["job_id"].as_str().unwrap());
    library.work().await;
    library.web.await_asked("/slow", 1).await;
    assert_eq!(library.get(&format!("/{source}")).await.json()["status"], "fetching");
    let cancel = format!("/api/v1/repositories/{}/jobs/{job}/cancel", library.repository);
    let cancelled =
        accounts::send(&library.service, &library.owner.token, Method::POST, &cancel, &json!({})).await;
    assert!(cancelled.status.is_success(), "{cancelled:?}");
    // The note is old enough at once, for a test.
    let old = "UPDATE okt_repository.outbox SET arrived_at = arrived_at - interval '1 minute'";
    accounts::sql(&library.service, old).await;
    let seen = library.settled(source).await;
    assert_eq!(
        (&seen["failure"]["code"], &seen["failure"]["retryable"]),
        (&json!("cancelled"), &json!(true))
    );
    library.web.page("/slow", Page::article("Slow"));
    assert_eq!(library.ask(Method::POST, &format!("/{source}/retry"), &json!({})).await.status, 202);
    assert_eq!(library.settled(source).await["status"], "processed");
}

#[tokio::test]
async fn a_provider_that_keeps_failing_for_a_host_is_left_out_for_a_while() {
    let settings = [
        ("SVC__PROVIDERS__RESOLUTION__AUTO_SKIP__MIN_SAMPLE", "3"),
        ("SVC__PROVIDERS__RESOLUTION__FETCH__RETRY__MAX_ATTEMPTS", "3"),
    ];
    let mut library = Library::open(&settings).await;
    for path in ["/a", "/b"] {
        library.web.page(path, Page::html("no").status(403));
    }
    let first = library.add("/a").await;
    library.work().await;
    library.settled(&first).await;
    let tries = library.web.asked().len();
    let second = library.add("/b").await;
    let seen = library.settled(&second).await;
    assert_eq!(library.web.asked().len(), tries, "nobody was asked: {seen}");
    assert_eq!(seen["failure"]["retryable"], true, "{seen}");
    // Once the while is over it is tried again.
    accounts::sql(
        &library.service,
        "UPDATE okt_system.host_providers SET failed_at = failed_at - interval '25 hours'",
    )
    .await;
    library.web.page("/b", Page::article("B"));
    assert_eq!(library.ask(Method::POST, &format!("/{second}/retry"), &json!({})).await.status, 202);
    assert_eq!(library.settled(&second).await["status"], "processed");
}

#[tokio::test]
async fn a_pdf_is_read_with_the_place_of_every_sentence() {
    let mut library = Library::open(&[]).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../okt-parse/fixtures/pdf");
    let pdf = std::fs::read(format!("{folder}/article.pdf")).expect("the project's own article");
    let added = library.upload("article.pdf", "application/pdf", &pdf).await;
    library.work().await;
    let seen = library.settled(added.json()["source_id"].as_str().unwrap()).await;
    assert_eq!((&seen["status"], &seen["kind"]), (&json!("processed"), &json!("pdf")), "{seen}");
    let (offsets, boxes) =
        (seen["sentence_offsets"].as_array().unwrap(), seen["sentence_boxes"].as_array().unwrap());
    assert!(offsets.len() > 3 && offsets.len() == boxes.len(), "{} {}", offsets.len(), boxes.len());
    assert!(boxes.iter().all(|places| {
        let numbers = places.as_array().unwrap();
        numbers.len() >= 5 && numbers.len() % 5 == 0
    }));
    let pages = seen["images"].as_array().unwrap().iter().filter(|image| image["kind"] == "page").count();
    assert!(pages > 0, "{}", seen["images"]);
}
