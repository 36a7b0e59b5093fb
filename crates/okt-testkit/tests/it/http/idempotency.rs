use std::time::Duration;

use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::db::run;
use okt_testkit::notes::{FAIL, WAIT};
use okt_testkit::served::TestService;
use okt_testkit::wait::eventually;
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
async fn two_keys_are_refused() {
    let service = TestService::notes(&[]).await;
    let request = post(&service, "ada", "k1", &json!({"text": "a"})).header("idempotency-key", "k2");
    let answer = Answer::of(request).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "malformed"));
    assert_eq!(count(&service).await, 0);
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

/// A failure may have come after the deed: with one key nothing is ever done twice.
#[tokio::test]
async fn refusals_and_failures_are_answers_too() {
    let service = TestService::notes(&[("SVC__SERVER__WRITE_TIMEOUT", "1500ms")]).await;
    let wrong = json!({"text": 1});
    let first = Answer::of(post(&service, "ada", "k1", &wrong)).await;
    let again = Answer::of(post(&service, "ada", "k1", &wrong)).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (422, 422));
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(count(&service).await, 0);

    for (key, control, value, expected) in [
        ("k2", FAIL, "error", (500, "internal")),
        ("k3", FAIL, "panic", (500, "internal")),
        ("k4", WAIT, "6000", (503, "timed_out")),
    ] {
        let body = json!({"text": key});
        let failed = Answer::of(post(&service, "ada", key, &body).header(control, value)).await;
        assert_eq!((failed.status.as_u16(), failed.problem().as_str()), expected, "{key}");
        let mut again = Answer::of(post(&service, "ada", key, &body)).await;
        // What is kept is kept a moment after the outer limit answered.
        while again.status == 409 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            again = Answer::of(post(&service, "ada", key, &body)).await;
        }
        assert_eq!(again.status.as_u16(), expected.0, "{key}");
        assert_eq!(again.json()["code"], expected.1, "{key}");
        assert_eq!(again.header("idempotency-replayed"), "true", "{key}");
    }
    let texts: Vec<String> = sqlx::query_scalar("SELECT text FROM notes")
        .fetch_all(&mut service.database.connect().await)
        .await
        .unwrap();
    assert_eq!(texts, ["k4"], "written before the time ran out, and not again");
}

#[tokio::test]
async fn a_request_whose_process_died_is_said_to_be_lost() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    assert_eq!(Answer::of(post(&service, "ada", "k1", &body)).await.status, 201);
    run(
        &mut service.database.connect().await,
        "UPDATE okt_system.idempotency_keys SET status = NULL, claimed_at = claimed_at - interval '10 minutes'",
    )
    .await;
    let answer = Answer::of(post(&service, "ada", "k1", &body)).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "idempotency_lost"));
    assert_eq!(count(&service).await, 1);
}

/// An answer may hold what is shown only once.
#[tokio::test]
async fn kept_answers_can_not_be_read_in_the_database() {
    let service = TestService::notes(&[]).await;
    assert_eq!(Answer::of(post(&service, "ada", "k1", &json!({"text": "planted-secret"}))).await.status, 201);
    let kept: Vec<u8> = sqlx::query_scalar("SELECT sealed_body FROM okt_system.idempotency_keys")
        .fetch_one(&mut service.database.connect().await)
        .await
        .unwrap();
    assert!(kept.len() > 20 && !String::from_utf8_lossy(&kept).contains("planted"));
}

#[tokio::test]
async fn twenty_at_once_do_it_once() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        requests.spawn(Answer::of(post(&service, "ada", "k1", &body).header(WAIT, 300)));
    }
    for answer in requests.join_all().await {
        // Whoever came late, because a connection to PostgreSQL took its time, gets the kept answer.
        if answer.status != 201 {
            assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "idempotency_in_flight"));
        }
    }
    assert_eq!(count(&service).await, 1);
}

#[tokio::test]
async fn a_request_still_at_work_is_said_to_be_in_flight() {
    let service = TestService::notes(&[]).await;
    let body = json!({"text": "once"});
    let first = tokio::spawn(Answer::of(post(&service, "ada", "k1", &body).header(WAIT, 10_000)));
    let mut connection = service.database.connect().await;
    eventually(Duration::from_secs(8), "the first request claims its key", async || {
        let claimed: i64 =
            sqlx::query_scalar("SELECT count(*) FROM okt_system.idempotency_keys WHERE status IS NULL")
                .fetch_one(&mut connection)
                .await
                .unwrap();
        if claimed == 1 { Ok(()) } else { Err(claimed) }
    })
    .await;
    let answer = Answer::of(post(&service, "ada", "k1", &body)).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "idempotency_in_flight"));
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(first.await.unwrap().status, 201);
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
async fn abandoned_work_still_takes_room_and_is_waited_for() {
    let service =
        TestService::notes(&[("SVC__SERVER__MAX_IN_FLIGHT", "2"), ("SVC__SERVER__DRAIN_DELAY", "0s")]).await;
    for round in 0..2 {
        let key = format!("k{round}");
        let cut = post(&service, "ada", &key, &json!({"text": "a"})).header(WAIT, 1500);
        assert!(cut.timeout(Duration::from_millis(300)).send().await.is_err(), "the client gave up");
    }
    let shed = Answer::of(post(&service, "ada", "k9", &json!({"text": "a"}))).await;
    assert_eq!((shed.status.as_u16(), shed.problem().as_str()), (503, "overloaded"));

    service.stop_and_wait().await;
    let mut conn = service.database.connect().await;
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_system.idempotency_keys WHERE status = 201")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(kept, 2, "the drain waited for both answers to be kept");
}

#[tokio::test]
async fn a_request_without_a_body_can_carry_a_key() {
    let service = TestService::notes(&[]).await;
    let bare = || service.request(Method::POST, "/notes").bearer_auth("ada").header("idempotency-key", "k1");
    let first = Answer::of(bare()).await;
    assert_eq!((first.status.as_u16(), first.problem().as_str()), (415, "unsupported_media_type"));
    assert_eq!(Answer::of(bare()).await.header("idempotency-replayed"), "true", "the key was looked at");
}
