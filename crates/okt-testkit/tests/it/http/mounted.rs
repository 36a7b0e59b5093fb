//! A service that is mounted at a line of the table: what goes for handlers goes for it.

use std::time::Duration;

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::notes;
use okt_testkit::served::TestService;
use serde_json::json;

async fn ask(service: &TestService, method: Method, path: &str, name: &str) -> Answer {
    Answer::of(service.request(method, path).bearer_auth(name)).await
}

#[tokio::test]
async fn a_service_answers_at_and_below_its_path_to_those_whom_its_guard_lets_in() {
    let service = TestService::notes(&[]).await;
    for path in ["/echo", "/echo/", "/echo/a/b?c=d&unknown=1"] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let refused = Answer::of(service.request(method.clone(), path)).await;
            assert_eq!((refused.status.as_u16(), &*refused.problem()), (401, "unauthenticated"), "{path}");
            let answer = ask(&service, method.clone(), path, "ada").await;
            assert_eq!(answer.status, 200, "{method} {path}: {answer:?}");
            let seen = path.split('?').next().unwrap().trim_end_matches('/');
            let expected = json!({"method": method.as_str(), "path": seen, "person": "user:ada", "bytes": 0});
            assert_eq!(answer.json(), expected);
            assert!(!answer.header("x-request-id").is_empty());
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("ratelimit-limit"), "600");
        }
    }
    let lines: Vec<_> = notes::routes(&service.api).lines().iter().map(ToString::to_string).collect();
    assert!(lines.contains(&"any /echo — authenticated, service".to_owned()), "{lines:#?}");
}

#[tokio::test]
async fn a_service_is_limited_as_handlers_are() {
    let settings = [
        ("SVC__SERVER__MAX_IN_FLIGHT", "1"),
        ("SVC__SERVER__LIMITS__JSON_BYTES", "1000"),
        ("SVC__RATE_LIMITS__API_PER_MINUTE", "5"),
    ];
    let service = TestService::notes(&settings).await;
    let post = |body: String| {
        let request = service.request(Method::POST, "/echo").bearer_auth("ada");
        Answer::of(request.header("content-type", "application/json").body(body))
    };
    assert_eq!(post(format!("\"{}\"", "a".repeat(900))).await.json()["bytes"], 902);
    assert_eq!(post(format!("\"{}\"", "a".repeat(1000))).await.problem(), "too_large");
    let panicked = ask(&service, Method::GET, "/echo/panic", "ada").await;
    assert_eq!((panicked.status.as_u16(), &*panicked.problem()), (500, "internal"));

    let held = tokio::spawn(Answer::of(service.request(Method::GET, "/slow?ms=1000")));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let shed = ask(&service, Method::GET, "/echo", "bob").await;
    assert_eq!((shed.status.as_u16(), &*shed.problem()), (503, "overloaded"));
    assert_eq!(held.await.unwrap().status, 204);

    for _ in 0..2 {
        assert_eq!(ask(&service, Method::GET, "/echo", "ada").await.status, 200);
    }
    assert_eq!(ask(&service, Method::GET, "/echo", "ada").await.problem(), "rate_limited");
}

#[tokio::test]
async fn a_stream_of_a_service_ends_with_the_rights_of_its_reader() {
    let service = TestService::notes(&[("SVC__SERVER__WRITE_TIMEOUT", "500ms")]).await;
    let mut stream = service.request(Method::GET, "/echo/events").bearer_auth("dan").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    for _ in 0..10 {
        assert!(stream.chunk().await.unwrap().is_some(), "it goes on for longer than a request may take");
    }
    assert_eq!(ask(&service, Method::DELETE, "/people/dan", "ada").await.status, 204);
    let rest = async { while stream.chunk().await.expect("it ends as a stream does").is_some() {} };
    tokio::time::timeout(Duration::from_secs(5), rest).await.expect("it ends");
}
