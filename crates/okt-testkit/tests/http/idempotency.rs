use std::time::Duration;

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::notes::{FAIL, WAIT};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

fn post(service: &TestService, name: &str, key: &str, body: &Value) -> reqwest::RequestBuilder {
    service.request(Method::POST, "/notes").bearer_auth(name).header("idempotency-key", key).json(body)
}

async fn count(service: &TestService) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM notes")
        .fetch_one(&mut service.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_same_key_and_body_get_the_first_answer_again() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    let first = Answer::of(post(&service, "ada", "k1", &body)).await;
    let again = Answer::of(post(&service, "ada", "k1", &body)).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.text, again.text);
    assert_eq!(first.header("location"), again.header("location"));
    assert_eq!(first.header("content-type"), again.header("content-type"));
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), ("", "true"));
    assert_eq!(count(&service).await, 1);

    let other = Answer::of(post(&service, "ada", "k1", &json!({"text": "twice"}))).await;
    assert_eq!((other.status.as_u16(), other.problem().as_str()), (422, "idempotency_mismatch"));
    assert_eq!(
        Answer::of(post(&service, "bob", "k1", &body)).await.status,
        201,
        "keys belong to their caller"
    );
    assert_eq!(count(&service).await, 2);
}

#[tokio::test]
async fn without_a_key_every_request_counts() {
    let service = TestService::notes(&[]).await;
    for _ in 0..2 {
        let request = service.request(Method::POST, "/notes").bearer_auth("ada").json(&json!({"text": "a"}));
        assert_eq!(Answer::of(request).await.status, 201);
    }
    assert_eq!(count(&service).await, 2);
}

#[tokio::test]
async fn a_refusal_is_an_answer_too_but_a_failure_is_not() {
    let service = TestService::notes(&[]).await;
    let wrong = json!({"text": 1});
    let first = Answer::of(post(&service, "ada", "k1", &wrong)).await;
    let again = Answer::of(post(&service, "ada", "k1", &wrong)).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (422, 422));
    assert_eq!(again.header("idempotency-replayed"), "true");

    for how in ["error", "panic", "error"] {
        let failed = post(&service, "ada", "k2", &json!({"text": "a"})).header(FAIL, how);
        let failed = Answer::of(failed).await;
        assert_eq!((failed.status.as_u16(), failed.problem().as_str()), (500, "internal"), "{how}");
    }
    assert_eq!(
        Answer::of(post(&service, "ada", "k2", &json!({"text": "a"}))).await.status,
        201,
        "the key is free again"
    );
}

#[tokio::test]
async fn twenty_at_once_do_it_once() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        requests.spawn(Answer::of(post(&service, "ada", "k1", &body).header(WAIT, 300)));
    }
    let mut statuses: Vec<u16> = Vec::new();
    for answer in requests.join_all().await {
        if answer.status == 409 {
            assert_eq!(answer.problem(), "idempotency_in_flight");
            assert_eq!(answer.header("retry-after"), "1");
        }
        statuses.push(answer.status.as_u16());
    }
    assert!(statuses.contains(&201) && statuses.contains(&409), "{statuses:?}");
    assert_eq!(count(&service).await, 1);
}

/// What a client does whose connection breaks after the row was written.
#[tokio::test]
async fn a_client_that_hangs_up_finds_its_answer_later() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    for round in 0..5 {
        let key = format!("k{round}");
        let cut = post(&service, "ada", &key, &body)
            .header(WAIT, 400)
            .timeout(Duration::from_millis(150))
            .send()
            .await;
        assert!(cut.is_err(), "the client gave up");
        let answer = loop {
            let answer = Answer::of(post(&service, "ada", &key, &body)).await;
            if answer.status != 409 {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((answer.status.as_u16(), answer.header("idempotency-replayed")), (201, "true"));
        assert_eq!(count(&service).await, round + 1);
    }
}

#[tokio::test]
async fn a_key_that_can_not_be_one_is_refused() {
    let service = TestService::notes(&[]).await;
    let long = "k".repeat(256);
    for key in ["", long.as_str()] {
        let answer = Answer::of(post(&service, "ada", key, &json!({"text": "a"}))).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{key}");
    }
    assert_eq!(count(&service).await, 0);
}

#[tokio::test]
async fn a_request_that_takes_too_long_gives_its_key_back() {
    let service = TestService::notes(&[("SVC__SERVER__WRITE_TIMEOUT", "300ms")]).await;
    let slow = post(&service, "ada", "k1", &json!({"text": "a"})).header(WAIT, 2000);
    let slow = Answer::of(slow).await;
    assert_eq!((slow.status.as_u16(), slow.problem().as_str()), (503, "timed_out"));
    // The limit inside ends at the same moment as the one outside; the release follows it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(Answer::of(post(&service, "ada", "k1", &json!({"text": "a"}))).await.status, 201);
}
