use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{api_key, register};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;

#[tokio::test]
async fn over_the_cap_requests_are_shed_at_once_and_probes_are_not() {
    let service = TestService::notes(&[("SVC__SERVER__MAX_IN_FLIGHT", "2")]).await;
    let held: Vec<_> =
        (0..2).map(|_| tokio::spawn(Answer::of(service.request(Method::GET, "/slow?ms=1500")))).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;

    let started = std::time::Instant::now();
    let shed = service.get("/slow?ms=0").await;
    assert_eq!((shed.status.as_u16(), shed.problem().as_str()), (503, "overloaded"));
    assert_eq!(shed.header("retry-after"), "1");
    assert_eq!(service.get("/readyz").await.status, 200);
    assert!(started.elapsed() < Duration::from_secs(1), "nobody queued");

    for request in held {
        assert_eq!(request.await.unwrap().status, 204);
    }
    assert_eq!(service.get("/slow?ms=0").await.status, 204);
}

#[tokio::test]
async fn bodies_that_drip_in_take_no_room_from_others() {
    let service = TestService::notes(&[("SVC__SERVER__MAX_IN_FLIGHT", "2")]).await;
    let dripping = || {
        let drops = futures_util::stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Some((Ok::<_, std::io::Error>(" "), ()))
        });
        let request = service.request(Method::POST, "/notes").bearer_auth("ada");
        request.header("content-type", "application/json").body(reqwest::Body::wrap_stream(drops))
    };
    let held: Vec<_> = (0..2).map(|_| tokio::spawn(dripping().send())).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(Answer::of(dripping()).await.problem(), "overloaded", "there is no room for a third body");
    assert_eq!(service.get("/slow?ms=0").await.status, 204, "and all of it for requests without one");
    held.iter().for_each(tokio::task::JoinHandle::abort);
}

/// They take three quarters of the places at most, and one each when those are gone.
#[tokio::test]
async fn nine_addresses_that_drip_bodies_keep_nobody_from_signing_in() {
    let service = TestService::product(&[
        ("SVC__SERVER__MAX_IN_FLIGHT", "32"),
        ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8"),
    ])
    .await;
    let sign_in = |address: u8, body: reqwest::Body| {
        let request = service.request(Method::POST, "/api/v1/auth/login");
        let request = request.header("x-forwarded-for", format!("192.0.2.{address}"));
        request.header("content-type", "application/json").body(body)
    };
    let stalled = || reqwest::Body::wrap_stream(futures_util::stream::pending::<std::io::Result<String>>());
    let mut held = tokio::task::JoinSet::new();
    for address in (1..=9).flat_map(|address| [address; 10]) {
        held.spawn(Answer::of(sign_in(address, stalled())));
    }
    let mut refused = Vec::new();
    while let Ok(Some(answer)) = tokio::time::timeout(Duration::from_secs(2), held.join_next()).await {
        refused.push(answer.unwrap().problem());
    }
    assert!(refused.iter().any(|code| code == "rate_limited"), "{refused:?}");
    assert!(refused.iter().any(|code| code == "overloaded"), "{refused:?}");
    let account = r#"{"email":"ada@example.org","password":"wrong horse"}"#;
    assert_eq!(Answer::of(sign_in(10, account.into())).await.problem(), "unauthenticated");
}

/// Each takes tens of megabytes while it is read.
#[tokio::test]
async fn nobody_sends_more_than_two_long_texts_at_once() {
    let app = TestApp::start().await;
    let path = format!("/api/v1/repositories/{}/reports", app.repository);
    let report = |body: reqwest::Body| {
        let request = app.service.request(Method::POST, &path).bearer_auth(&app.owner.token);
        Answer::of(request.header("content-type", "application/json").body(body))
    };
    // How long it will be is not said.
    let stalled = || reqwest::Body::wrap_stream(futures_util::stream::pending::<std::io::Result<String>>());
    let held: Vec<_> = (0..2).map(|_| tokio::spawn(report(stalled()))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let third = report(stalled()).await;
    assert_eq!((third.status.as_u16(), third.problem().as_str()), (429, "rate_limited"));
    let short = serde_json::json!({"title": "Bees", "body_markdown": "Bees fly to the flowers."});
    assert_eq!(report(short.to_string().into()).await.status, 201, "a short one needs no such place");
    held.iter().for_each(tokio::task::JoinHandle::abort);
}

/// By default a body and a handler have the same time; the handler's begins when the body is there.
#[tokio::test]
async fn a_stalled_body_is_always_told_so() {
    let both = [("SVC__SERVER__READ_TIMEOUT", "300ms"), ("SVC__SERVER__WRITE_TIMEOUT", "300ms")];
    let service = TestService::notes(&both).await;
    let mut stalled = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let body = reqwest::Body::wrap_stream(futures_util::stream::pending::<std::io::Result<String>>());
        let request = service.request(Method::POST, "/notes").bearer_auth("ada");
        stalled.spawn(Answer::of(request.header("content-type", "application/json").body(body)));
    }
    for answer in stalled.join_all().await {
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (408, "body_too_slow"));
    }
}

#[tokio::test]
async fn a_running_request_is_finished_before_the_end() {
    let service = TestService::notes(&[("SVC__SERVER__DRAIN_DELAY", "0s")]).await;
    let running = tokio::spawn(Answer::of(service.request(Method::GET, "/slow?ms=1500")));
    tokio::time::sleep(Duration::from_millis(300)).await;
    service.stop_and_wait().await;
    assert_eq!(running.await.unwrap().status, 204);
}

#[tokio::test]
async fn callers_are_limited_each_for_themselves() {
    let service = TestService::notes(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "3")]).await;
    for remaining in [2, 1, 0] {
        let answer = service.get_as("ada", "/notes").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-limit"), "3");
        assert_eq!(answer.header("ratelimit-remaining"), remaining.to_string());
    }
    let refused = service.get_as("ada", "/notes").await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (429, "rate_limited"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(service.get_as("bob", "/notes").await.status, 200);
}

/// A person has twice what one of their credentials has, however many there are.
#[tokio::test]
async fn credentials_of_one_person_are_limited_together() {
    let service = TestService::product(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "10")]).await;
    let ada = register(&service, "ada").await;
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(api_key(&service, &ada, &["source:read"]).await.1);
    }
    // Four of twenty are gone.
    let mut statuses = Vec::new();
    for token in tokens.iter().flat_map(|token| [token; 8]) {
        statuses.push(service.get_as(token, "/api/v1/users/me").await.status.as_u16());
    }
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert!((16..=18).contains(&served), "{served}: {statuses:?}");
    let bob = register(&service, "bob").await;
    assert_eq!(service.get_as(&bob.token, "/api/v1/users/me").await.status, 200);
}

#[tokio::test]
async fn addresses_are_limited_unless_it_is_loopback_in_development() {
    let limit = ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "2");
    let development = TestService::notes(&[limit]).await;
    for _ in 0..10 {
        assert_eq!(development.get("/slow?ms=0").await.status, 204);
    }

    let issued = TestService::notes(&[limit, ("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    let statuses =
        [issued.get("/slow?ms=0").await, issued.get("/slow?ms=0").await, issued.get("/slow?ms=0").await];
    assert_eq!(statuses.map(|answer| answer.status.as_u16()), [204, 204, 429]);
    assert_eq!(issued.get("/readyz").await.status, 200, "probes are never limited");
}

/// Nobody guesses a token, and who shares an address with a program that goes on with an old one has done nothing.
#[tokio::test]
async fn bad_credentials_lock_out_nobody() {
    let service = TestService::notes(&[
        ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "2"),
        ("SVC_OAUTH_ISSUER", "https://okt.example"),
    ])
    .await;
    for _ in 0..20 {
        assert_eq!(service.get_as("eve", "/notes").await.status, 401, "it is told what is wrong, every time");
    }
    assert_eq!(service.get_as("ada", "/notes").await.status, 200);
    assert_eq!(service.get("/slow?ms=0").await.status, 204, "nor does it use up what those without one have");
    let strangers = [service.get("/notes").await, service.get("/notes").await];
    assert_eq!(strangers.map(|answer| answer.status.as_u16()), [401, 429]);
}

/// What is no token could be sent by anybody, as often as they like.
#[tokio::test]
async fn what_has_not_the_form_of_a_credential_counts_for_its_address() {
    let elsewhere = TestService::product(&[]).await;
    let foreign = register(&elsewhere, "ada").await.token;
    let service = TestService::product(&[
        ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "3"),
        ("SVC_OAUTH_ISSUER", "https://okt.example"),
    ])
    .await;
    let ask = async |authorization: &str| {
        let request = service.request(Method::GET, "/api/v1/users/me").header("authorization", authorization);
        Answer::of(request).await.status.as_u16()
    };
    for _ in 0..10 {
        assert_eq!(ask(&format!("Bearer {foreign}")).await, 401, "it has the form of one");
    }
    let nonsense = [ask("Bearer nonsense").await, ask("Basic YTpi").await, ask("Bearer a.b.c").await];
    assert_eq!(nonsense, [401; 3]);
    assert_eq!(ask("Bearer nonsense").await, 429);
    assert_eq!(ask(&format!("Bearer {foreign}")).await, 401);
}

#[tokio::test]
async fn forwarded_addresses_count_only_behind_a_trusted_proxy() {
    let base = [("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "1"), ("SVC_OAUTH_ISSUER", "https://okt.example")];
    let from = async |service: &TestService, address: &str| {
        let request = service.request(Method::GET, "/slow?ms=0").header("x-forwarded-for", address);
        Answer::of(request).await.status.as_u16()
    };
    let direct = TestService::notes(&base).await;
    assert_eq!(
        [from(&direct, "192.0.2.1").await, from(&direct, "192.0.2.2").await],
        [204, 429],
        "the header is ignored"
    );

    let proxied =
        TestService::notes(&[base[0], base[1], ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    assert_eq!([from(&proxied, "192.0.2.1").await, from(&proxied, "192.0.2.2").await], [204, 204]);
    assert_eq!(from(&proxied, "192.0.2.1").await, 429);
}

#[tokio::test]
async fn connections_that_say_nothing_or_never_finish_are_cut_off() {
    let service = TestService::notes(&[("SVC__SERVER__HEADER_TIMEOUT", "300ms")]).await;
    for said in [&b""[..], b"G", b"PRI * HT", b"GET /readyz HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
        let started = std::time::Instant::now();
        let answer = raw(&service, said).await;
        assert!(!answer.contains("200"), "{answer}");
        assert!(started.elapsed() < Duration::from_secs(3), "{said:?}");
    }

    let service = TestService::notes(&[("SVC__SERVER__LIMITS__HEADER_BYTES", "8192")]).await;
    let huge = format!("GET /readyz HTTP/1.1\r\nHost: a\r\nX-Huge: {}\r\n\r\n", "a".repeat(10_000));
    let answer = raw(&service, huge.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a connection that sends nothing")]
async fn connections_over_the_cap_wait_for_one_to_end() {
    let service = TestService::notes(&[("SVC__SERVER__MAX_CONNECTIONS", "1")]).await;
    let address = service.url.trim_start_matches("http://").to_owned();
    let held = tokio::net::TcpStream::connect(&address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = service.request(Method::GET, "/readyz").timeout(Duration::from_millis(500)).send().await;
    assert!(waiting.is_err(), "there is no room yet");
    drop(held);
    assert_eq!(service.get("/readyz").await.status, 200);
}

/// Writes bytes to a connection of its own and reads until the server closes it.
#[expect(clippy::disallowed_methods, reason = "bytes that no HTTP client would send")]
async fn raw(service: &TestService, bytes: &[u8]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
