//! Answers of events that go on for longer than a request may take.

use std::time::{Duration, Instant};

use http::Method;
use okt_http::StreamRules;
use okt_testkit::client::Answer;
use okt_testkit::notes::IDLE;
use okt_testkit::served::TestService;
use okt_testkit::wait::eventually;

async fn open(service: &TestService, name: &str, query: &str) -> reqwest::Response {
    let request = service.request(Method::GET, &format!("/ticks?{query}")).bearer_auth(name);
    request.send().await.unwrap()
}

/// Reads to the end, which has to be a proper one.
async fn rest(mut stream: reqwest::Response) -> String {
    let mut text = String::new();
    while let Some(chunk) = stream.chunk().await.expect("it ends as a stream does") {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    text
}

#[tokio::test]
async fn a_stream_may_take_longer_than_a_request_and_holds_no_place_of_one() {
    let settings = [("SVC__SERVER__WRITE_TIMEOUT", "500ms"), ("SVC__SERVER__MAX_IN_FLIGHT", "2")];
    let service = TestService::notes(&settings).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let stream = open(&service, "ada", "every_ms=100&count=15").await;
        assert_eq!(
            (stream.status().as_u16(), &stream.headers()["x-accel-buffering"]),
            (200, &"no".parse().unwrap())
        );
        streams.spawn(rest(stream));
    }
    assert_eq!(service.get("/notes/1").await.problem(), "not_found", "there are permits left");
    let expected: Vec<_> = (0..15).map(|n| format!("data: {n}\n\n")).collect();
    for text in streams.join_all().await {
        assert_eq!(text, expected.concat());
    }
}

#[tokio::test]
async fn a_stream_ends_soon_after_the_rights_of_its_reader() {
    let service = TestService::notes(&[]).await;
    // Silent until the end of its idle time, which would come first.
    let rules = StreamRules { check: Duration::from_millis(300), ..StreamRules::default() };
    service.api.edge().set_stream_rules(rules);
    let (talks, silent) = ("every_ms=50&count=1000", "every_ms=60000&count=1");
    let (dans, his, adas) = tokio::join!(
        open(&service, "dan", talks),
        open(&service, "dan", silent),
        open(&service, "ada", "every_ms=50&count=60"),
    );
    let left = Answer::of(service.request(Method::DELETE, "/people/dan")).await;
    assert_eq!(left.status, 204);
    let started = Instant::now();
    let (talked, said, adas) = tokio::join!(
        rest(dans),
        async {
            let said = rest(his).await;
            (said, started.elapsed())
        },
        rest(adas)
    );
    assert!(talked.len() < 50 * 12, "{talked}");
    assert!(said.0.is_empty() && said.1 < Duration::from_millis(1_500), "{said:?}");
    assert_eq!(adas.matches("data: ").count(), 60, "the streams of others go on");
    assert_eq!(open(&service, "dan", talks).await.status(), 401);
}

#[tokio::test]
async fn a_stream_in_which_nothing_happens_ends() {
    let service = TestService::notes(&[]).await;
    let started = Instant::now();
    assert_eq!(rest(open(&service, "ada", "every_ms=60000&count=1").await).await, "");
    assert!((IDLE..IDLE * 3).contains(&started.elapsed()), "{:?}", started.elapsed());
    // Each event begins the time anew.
    let all = rest(open(&service, "ada", "every_ms=1200&count=3").await).await;
    assert_eq!(all.matches("data: ").count(), 3);
}

#[tokio::test]
async fn streams_are_limited_for_each_and_for_all() {
    let service = TestService::notes(&[]).await;
    service.api.edge().set_stream_rules(StreamRules {
        per_caller: 2,
        per_process: 4,
        ..StreamRules::default()
    });
    let query = "every_ms=100&count=1000";
    let mut held = vec![open(&service, "ada", query).await, open(&service, "ada", query).await];
    let refused = service.get_as("ada", &format!("/ticks?{query}")).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (429, "rate_limited"));
    assert_eq!(refused.header("retry-after"), "30");
    held.push(open(&service, "bob", query).await);
    let refused = service.get_as("bob", &format!("/ticks?{query}")).await;
    assert_eq!(refused.problem(), "overloaded", "the last one is for those who have none");
    held.push(open(&service, "dan", query).await);
    assert!(held.iter().all(|stream| stream.status() == 200));
    // A service that is mounted has the same, and gives it back where it answers at once.
    assert_eq!(service.get_as("ada", "/echo").await.problem(), "rate_limited");
    drop(held);
    eventually(Duration::from_secs(10), "places are given back", async || {
        let status = open(&service, "ada", query).await.status();
        if status == 200 { Ok(()) } else { Err(status) }
    })
    .await;
    for _ in 0..5 {
        assert_eq!(service.get_as("ada", "/echo").await.status, 200);
    }
}
