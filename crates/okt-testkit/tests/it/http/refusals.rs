use http::Method;
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::json;

async fn post(service: &TestService, body: impl Into<reqwest::Body>) -> Answer {
    let request =
        service.request(Method::POST, "/notes").bearer_auth("ada").header("content-type", "application/json");
    Answer::of(request.body(body)).await
}

#[tokio::test]
async fn every_refusal_is_a_problem_with_a_stable_code() {
    let service = TestService::notes(&[]).await;
    assert_eq!(service.get("/nowhere").await.problem(), "not_found");
    assert_eq!(service.get("/notes/7").await.problem(), "not_found");
    assert_eq!(service.get("/notes/seven").await.problem(), "not_found");
    assert_eq!(service.get("/slow?ms=soon").await.problem(), "invalid");
    assert_eq!(service.get("/panics").await.problem(), "internal");

    let method = Answer::of(service.request(Method::DELETE, "/notes/7")).await;
    assert_eq!((method.status.as_u16(), method.problem().as_str()), (405, "method_not_allowed"));
    assert_eq!(method.header("allow"), "GET,HEAD");

    let stranger = service.get("/notes").await;
    assert_eq!((stranger.status.as_u16(), stranger.problem().as_str()), (401, "unauthenticated"));
    assert_eq!(stranger.header("www-authenticate"), "Bearer");
}

#[tokio::test]
async fn bodies_are_bounded_in_form_size_and_depth() {
    let service = TestService::notes(&[("SVC__SERVER__LIMITS__JSON_BYTES", "2000")]).await;
    assert_eq!(post(&service, r#"{"text":"a"}"#).await.status, 201);

    for broken in ["", "{", r#"{"text":"a"} x"#, "\u{0}", r#"{"text":"a",}"#] {
        let answer = post(&service, broken).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "malformed"), "{broken}");
    }
    let field_of = |answer: &Answer| answer.json()["errors"][0]["field"].clone();
    for (body, field) in
        [(r#"{"text":1}"#, "text"), ("{}", "text"), (r#"{"text":"a","more":1}"#, "more"), ("[]", "body")]
    {
        let answer = post(&service, body).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{body}");
        assert_eq!(field_of(&answer), field, "{answer:?}");
    }

    let large = post(&service, format!(r#"{{"text":"{}"}}"#, "a".repeat(2000))).await;
    assert_eq!((large.status.as_u16(), large.problem().as_str()), (413, "too_large"));
    let unannounced = in_pieces(vec!["a".repeat(1500), "a".repeat(1500)]);
    assert_eq!(post(&service, unannounced).await.problem(), "too_large");
    let deep = post(&service, format!(r#"{{"text":{}1{}}}"#, "[".repeat(64), "]".repeat(64))).await;
    assert_eq!((deep.status.as_u16(), deep.problem().as_str()), (413, "too_large"));

    let form = service
        .request(Method::POST, "/notes")
        .bearer_auth("ada")
        .header("content-type", "text/plain")
        .body("a");
    let form = Answer::of(form).await;
    assert_eq!((form.status.as_u16(), form.problem().as_str()), (415, "unsupported_media_type"));
    let nul = post(&service, r#"{"text":"a\u0000b"}"#).await;
    assert_eq!((nul.status.as_u16(), nul.problem().as_str()), (400, "malformed"));
    for address in ["/notes/%00", "/slow?ms=%00", "/slow?ms=1&x=%00"] {
        let nul = service.get(address).await;
        assert_eq!((nul.status.as_u16(), nul.problem().as_str()), (400, "malformed"), "{address}");
    }
    let long = service.get(&format!("/slow?ms=1&x={}", "a".repeat(9000))).await;
    assert_eq!((long.status.as_u16(), long.problem().as_str()), (414, "uri_too_long"));
}

/// A body in pieces, so that no length is announced.
fn in_pieces(pieces: Vec<String>) -> reqwest::Body {
    reqwest::Body::wrap_stream(futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>)))
}

#[tokio::test]
async fn slow_bodies_and_slow_answers_end() {
    let service = TestService::notes(&[
        ("SVC__SERVER__READ_TIMEOUT", "200ms"),
        ("SVC__SERVER__WRITE_TIMEOUT", "600ms"),
    ])
    .await;
    let dripping = futures_util::stream::unfold(0, async |n| {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Some((Ok::<_, std::io::Error>("a"), n + 1))
    });
    let answer = post(&service, reqwest::Body::wrap_stream(dripping)).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (408, "body_too_slow"));

    let answer = service.get("/slow?ms=5000").await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "timed_out"));
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn request_ids_are_taken_when_sane_and_minted_otherwise() {
    let service = TestService::notes(&[]).await;
    let ask = async |id: &[u8]| {
        let id = http::HeaderValue::from_bytes(id).unwrap();
        Answer::of(service.request(Method::GET, "/nowhere").header("x-request-id", id)).await
    };
    for kept in ["a", "trace-1_2.3", &"x".repeat(128)] {
        let answer = ask(kept.as_bytes()).await;
        assert_eq!(answer.header("x-request-id"), kept);
        assert_eq!(answer.problem(), "not_found");
    }
    for refused in [&b""[..], b"two words", b"a\"b", b"\xff\xfe", "x".repeat(129).as_bytes(), b"<script>"] {
        let answer = ask(refused).await;
        assert_eq!(answer.header("x-request-id").len(), 36, "{refused:?}");
        assert_eq!(answer.problem(), "not_found");
    }
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let service = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    for path in ["/healthz", "/nowhere", "/api/v1/openapi.json", "/api/docs"] {
        let answer = service.get(path).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
            ("strict-transport-security", "max-age=63072000"),
        ] {
            assert_eq!(answer.header(name), value, "{path} {name}");
        }
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
    }
    let plain = TestService::product(&[]).await.get("/healthz").await;
    assert_eq!(plain.header("strict-transport-security"), "", "only when the service is reached by https");
}

#[tokio::test]
async fn a_database_fault_is_ours_and_says_nothing_of_itself() {
    let service = TestService::notes(&[]).await;
    okt_testkit::db::run(&mut service.database.connect().await, "DROP TABLE notes").await;
    let answer =
        Answer::of(service.request(Method::POST, "/notes").bearer_auth("ada").json(&json!({"text": "a"})))
            .await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (500, "internal"));
    assert_eq!(answer.json()["detail"], "internal error");
    assert!(!answer.text.contains("notes"), "{}", answer.text);
}
