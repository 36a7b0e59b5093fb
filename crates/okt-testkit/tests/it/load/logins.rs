use std::time::{Duration, Instant};

use okt_testkit::client::{Answer, client};
use okt_testkit::served::TestService;
use serde_json::json;

/// Limits are tested elsewhere; here they would be all there is to see.
const UNLIMITED: [(&str, &str); 2] =
    [("SVC__RATE_LIMITS__LOGIN_PER_MINUTE", "0"), ("SVC__RATE_LIMITS__LOGIN_PER_HOUR_PER_ACCOUNT", "0")];

async fn with_ada() -> TestService {
    let service = TestService::product(&UNLIMITED).await;
    let account = json!({"email": "ada@example.org", "password": "correct horse"});
    let registered = service.request(http::Method::POST, "/api/v1/auth/register").json(&account);
    assert_eq!(Answer::of(registered).await.status, 201);
    service
}

fn login(service: &TestService, email: &str) -> reqwest::RequestBuilder {
    let body = json!({"email": email, "password": "wrong horse"});
    service.request(http::Method::POST, "/api/v1/auth/login").json(&body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_and_known_addresses_fail_alike_and_in_the_same_time() {
    let service = with_ada().await;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let mut bodies = Vec::new();
    for round in 0..80 {
        // In turns and in both orders, so that whatever else the machine does falls on both.
        let mut pair = [("ada@example.org", &mut known), ("eve@example.org", &mut unknown)];
        if round % 2 == 1 {
            pair.reverse();
        }
        for (email, times) in pair {
            let started = Instant::now();
            let answer = Answer::of(login(&service, email)).await;
            times.push(started.elapsed());
            assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"));
            let mut body = answer.json();
            body["request_id"].take();
            bodies.push(body.to_string());
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the same words: {bodies:?}");
    // What the quicker half takes: the slower half tells of the machine.
    let quarter = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 4].as_secs_f64()
    };
    let (known, unknown) = (quarter(&mut known), quarter(&mut unknown));
    println!("known {:.1} ms, unknown {:.1} ms, ratio {:.3}", known * 1e3, unknown * 1e3, unknown / known);
    assert!((unknown / known - 1.0).abs() < 0.10, "known {known:.4} s, unknown {unknown:.4} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_logins_at_once_leave_health_checks_quick() {
    let service = with_ada().await;
    let mut logins = tokio::task::JoinSet::new();
    for _ in 0..200 {
        logins.spawn(Answer::of(login(&service, "ada@example.org")));
    }
    let (client, mut times) = (client(), Vec::new());
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    while !logins.is_empty() {
        let started = Instant::now();
        let health = Answer::of(client.get(format!("{}/healthz", service.url))).await;
        times.push(started.elapsed());
        assert_eq!(health.status, 200);
        while let Some(done) = logins.try_join_next() {
            let answer = done.expect("an answer");
            if answer.status == 503 {
                assert_eq!(answer.header("retry-after"), "1");
            }
            *statuses.entry(answer.status.as_u16()).or_default() += 1;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    println!("{statuses:?}; {} health checks, p99 {} ms", times.len(), p99.as_millis());
    assert!(statuses.keys().all(|status| [401, 503].contains(status)), "{statuses:?}");
    assert!(statuses[&401] >= 34, "as many as hash and wait were served: {statuses:?}");
    assert!(p99 < Duration::from_millis(200), "{p99:?}");
}
