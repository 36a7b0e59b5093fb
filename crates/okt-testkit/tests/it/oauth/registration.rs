use futures_util::StreamExt;
use http::Method;
use okt_testkit::accounts::{count, post, register};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, CHALLENGE, REGISTER, VERIFIER, code, error, form_request, query, request,
    tokens,
};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::oauth::{PUBLIC, fields};

pub(crate) const CLIENTS: &str = "SELECT count(*) FROM okt_system.oauth_clients";

pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Registers a client and returns the answer's body.
pub(crate) async fn registered(service: &TestService, document: &Value) -> Value {
    let answer = post(service, REGISTER, document).await;
    assert_eq!(answer.status, 201, "{document}: {answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_registration_answers_with_what_was_registered() {
    let service = TestService::product(&[]).await;
    let document = json!({
        "client_name": "Ada's Agent",
        "client_uri": "https://app.example.org/about",
        "redirect_uris": ["https://app.example.org/callback", CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
        "scope": "source:write read",
    });
    let answer = post(&service, REGISTER, &document).await;
    assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (201, "no-store"));
    let body = answer.json();
    assert_eq!(
        fields(&body),
        [
            "client_id",
            "client_id_issued_at",
            "client_name",
            "client_secret",
            "client_secret_expires_at",
            "client_uri",
            "grant_types",
            "redirect_uris",
            "registration_access_token",
            "registration_client_uri",
            "response_types",
            "scope",
            "token_endpoint_auth_method",
        ]
    );
    for field in [
        "client_name",
        "client_uri",
        "redirect_uris",
        "grant_types",
        "response_types",
        "token_endpoint_auth_method",
    ] {
        assert_eq!(body[field], document[field], "{field}");
    }
    assert_eq!(body["scope"], "read source:write");
    assert_eq!(body["client_secret_expires_at"], 0);
    let id = text(&body, "client_id");
    assert_eq!(body["registration_client_uri"], format!("{}{REGISTER}/{id}", service.url));
    let issued = format!(
        "SELECT floor(extract(epoch FROM created_at))::bigint FROM okt_system.oauth_clients WHERE id = '{id}'"
    );
    assert_eq!(body["client_id_issued_at"], count(&service, &issued).await);
    let now = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint";
    assert!((0..60).contains(&(count(&service, now).await - body["client_id_issued_at"].as_i64().unwrap())));
}

#[tokio::test]
async fn what_is_left_out_has_the_defaults_of_the_standard() {
    let service = TestService::product(&[]).await;
    let body = registered(&service, &json!({"redirect_uris": ["https://app.example.org/callback"]})).await;
    assert_eq!(body["grant_types"], json!(["authorization_code"]));
    assert_eq!(body["response_types"], json!(["code"]));
    assert_eq!(body["token_endpoint_auth_method"], "client_secret_basic");
    assert!(text(&body, "client_secret").len() > 40, "{body}");
    assert_eq!(body["client_secret_expires_at"], 0);
    assert_eq!(body["client_name"], "app.example.org");
    assert_eq!((&body["scope"], &body["client_uri"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_public_client_gets_no_secret_and_needs_none() {
    let service = TestService::product(&[]).await;
    let document = json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"});
    let body = registered(&service, &document).await;
    assert_eq!((&body["client_secret"], &body["client_secret_expires_at"]), (&Value::Null, &Value::Null));
    assert!(!fields(&body).contains(&"client_secret"), "absent, not null: {body}");
    let ada = register(&service, "ada").await;
    let tokens = tokens(&service, text(&body, "client_id"), &ada.email, "read").await;
    assert_eq!(tokens["refresh_token"], Value::Null, "it did not register for it");
}

/// Checks that none of them is taken, each with this error.
async fn all_refused(service: &TestService, documents: &[Value], expected: &str) {
    for document in documents {
        let answer = post(service, REGISTER, document).await;
        assert_eq!(answer.status, 400, "{document}: {answer:?}");
        assert_eq!(error(&answer), expected, "{document}");
        assert_eq!(fields(&answer.json()), ["error", "error_description"], "{document}");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    assert_eq!(count(service, CLIENTS).await, 0);
}

#[tokio::test]
async fn forty_bad_addresses_are_refused_with_the_error_of_the_standard() {
    let service = TestService::product(&[]).await;
    let address = |uri: &str| json!({"redirect_uris": [uri]});
    let long = format!("https://app.example.org/{}", "x".repeat(2000));
    let many: Vec<_> = (0..11).map(|n| format!("https://app.example.org/{n}")).collect();
    let addresses = [
        json!({}),
        json!({"redirect_uris": null}),
        json!({"redirect_uris": []}),
        json!({"redirect_uris": CALLBACK}),
        json!({"redirect_uris": [CALLBACK, 7]}),
        json!({"redirect_uris": [CALLBACK, "http://app.example.org/callback"]}),
        json!({"redirect_uris": many}),
        address(""),
        address("callback"),
        address("//app.example.org/callback"),
        address("https://"),
        address("https:///callback"),
        address("https:app.example.org/callback"),
        address("http://app.example.org/callback"),
        address("http://localhost.evil.example/callback"),
        address("http://127.0.0.1.evil.example/callback"),
        address("http://127.0.0.1@evil.example/callback"),
        address("http://127.0.0.2/callback"),
        address("http://0.0.0.0/callback"),
        address("http://192.168.1.1/callback"),
        address("https://app.example.org/callback#fragment"),
        address("https://app.example.org/callback#"),
        address("https://user@app.example.org/callback"),
        address("https://user:word@app.example.org/callback"),
        address("https://*.example.org/callback"),
        address("https://app.example.org/*"),
        address("https://app.example.org\\@evil.example/callback"),
        address("https://app.example.org/call back"),
        address("https://app.example.org/call\nback"),
        address("https://app.exämple.org/callback"),
        address("https://app.example.org;sandbox/callback"),
        address("https://app.example.org,evil.example/callback"),
        address("https://com/callback"),
        address("https://co.uk/callback"),
        address("https://github.io/callback"),
        address("javascript:alert(1)"),
        address("javascript://app.example.org/%0aalert(1)"),
        address("data:text/html,hello"),
        address("file:///etc/passwd"),
        address("blob:https://app.example.org/1"),
        address("org.example.app:/callback"),
        address("myapp://callback"),
        address("urn:ietf:wg:oauth:2.0:oob"),
        address(&long),
    ];
    assert!(addresses.len() >= 40, "{}", addresses.len());
    all_refused(&service, &addresses, "invalid_redirect_uri").await;
}

#[tokio::test]
async fn thirty_other_bad_descriptions_are_refused_with_the_error_of_the_standard() {
    let service = TestService::product(&[]).await;
    let beside = |field: &str, value: Value| {
        let mut document = json!({"redirect_uris": ["https://app.example.org/callback"]});
        document[field] = value;
        document
    };
    let metadata = [
        json!([]),
        json!("text"),
        json!(null),
        beside("grant_types", json!(["implicit"])),
        beside("grant_types", json!(["password", "authorization_code"])),
        beside("grant_types", json!(["client_credentials"])),
        beside("grant_types", json!(["refresh_token"])),
        beside("grant_types", json!([])),
        beside("grant_types", json!("authorization_code")),
        beside("response_types", json!(["token"])),
        beside("response_types", json!(["code", "token"])),
        beside("response_types", json!(["code id_token"])),
        beside("response_types", json!([])),
        beside("token_endpoint_auth_method", json!("private_key_jwt")),
        beside("token_endpoint_auth_method", json!("client_secret_jwt")),
        beside("token_endpoint_auth_method", json!("")),
        beside("token_endpoint_auth_method", json!(["none"])),
        beside("client_uri", json!("http://app.example.org")),
        beside("client_uri", json!("javascript:alert(1)")),
        beside("client_uri", json!("https://user:word@app.example.org")),
        beside("client_uri", json!("https://app.example.org/\nab")),
        beside("client_uri", json!("not an address")),
        beside("logo_uri", json!("http://192.168.1.1/logo.png")),
        beside("logo_uri", json!("data:image/png;base64,AA")),
        beside("tos_uri", json!("javascript:alert(1)")),
        beside("policy_uri", json!("file:///etc/passwd")),
        beside("jwks_uri", json!("http://169.254.169.254/")),
        beside("jwks_uri", json!(7)),
        beside("scope", json!("fly")),
        beside("scope", json!("read *")),
        beside("scope", json!(["read"])),
        beside("client_name", json!({"en": "Agent"})),
        beside("client_name", json!("x".repeat(2001))),
    ];
    assert!(metadata.len() >= 30, "{}", metadata.len());
    all_refused(&service, &metadata, "invalid_client_metadata").await;
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_no_description() {
    let service = TestService::product(&[]).await;
    let send = async |kind: &str, body: &str| {
        let request = service.request(Method::POST, REGISTER).header("content-type", kind);
        Answer::of(request.body(body.to_owned())).await
    };
    for body in ["", "{", "redirect_uris=https://app.example.org/callback", "{} {}", "\u{feff}{}"] {
        let answer = send("application/json", body).await;
        assert_eq!(
            (answer.status.as_u16(), error(&answer).as_str()),
            (400, "invalid_client_metadata"),
            "{body}"
        );
    }
    let good = r#"{"redirect_uris": ["https://app.example.org/callback"]}"#;
    for (kind, body) in [
        ("text/plain", good),
        ("application/x-www-form-urlencoded", good),
        ("multipart/form-data; boundary=a", good),
        ("application/x-www-form-urlencoded", "redirect_uris=https%3A%2F%2Fapp.example.org%2Fcallback"),
        (
            "application/x-www-form-urlencoded",
            r#"{"redirect_uris": ["https://app.example.org/"], "client_uri": "https://a.example/\u0000"}"#,
        ),
    ] {
        let answer = send(kind, body).await;
        assert!((400..500).contains(&answer.status.as_u16()), "{kind}: {answer:?}");
    }
    let nul = json!({"redirect_uris": ["https://app.example.org/"], "client_name": "a\u{0}b"});
    assert_eq!(post(&service, REGISTER, &nul).await.status, 400);
    assert_eq!(count(&service, CLIENTS).await, 0);
}

#[tokio::test]
async fn https_and_the_persons_own_machine_may_be_registered() {
    let service = TestService::product(&[]).await;
    let good = [
        "https://app.example.org/callback",
        "https://app.example.org",
        "https://app.example.org:8443/callback?from=okt",
        "https://someone.github.io/callback",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:33418/",
        "http://[::1]:1234/callback",
        "http://localhost:3000/callback",
    ];
    let body = registered(&service, &json!({"redirect_uris": good})).await;
    assert_eq!(body["redirect_uris"], json!(good), "as they were written");
}

#[tokio::test]
async fn a_client_chooses_neither_its_id_nor_its_secret_nor_to_be_let_in_unasked() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let document = json!({
        "redirect_uris": [CALLBACK],
        "client_id": ada.id,
        "client_secret": "of my own choice, and long enough to be one",
        "client_id_issued_at": 0,
        "client_secret_expires_at": 1,
        "registration_access_token": "mine",
        "registration_client_uri": "https://evil.example/",
        "skip_consent": true,
        "skip_logout_consent": true,
        "trusted": true,
        "software_statement": "eyJhbGciOiJub25lIn0.e30.",
    });
    let body = registered(&service, &document).await;
    let id = text(&body, "client_id");
    assert!(id.starts_with("client_"), "{id}");
    for field in [
        "client_id",
        "client_secret",
        "client_id_issued_at",
        "client_secret_expires_at",
        "registration_access_token",
        "registration_client_uri",
    ] {
        assert_ne!(body[field], document[field], "{field}");
    }
    for field in ["skip_consent", "skip_logout_consent", "trusted", "software_statement"] {
        assert_eq!(body[field], Value::Null, "{field}");
    }
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(id, "read")).await;
    let page = browser.sign_in(&service, &page, &ada.email).await;
    assert!(page.text.contains("Allow"), "{}", page.text);
    assert_eq!(crate::oauth::given(&service).await, (0, 0));

    let again = registered(&service, &document).await;
    assert_ne!(again["client_id"], body["client_id"]);
}

#[tokio::test]
async fn a_name_is_shown_without_what_hides_or_turns_around() {
    let service = TestService::product(&[]).await;
    for (given, shown) in [
        ("Ada's Agent", "Ada's Agent"),
        ("  Ada's \n\t Agent ", "Ada's Agent"),
        ("evil\u{202e}gnp.exe", "evilgnp.exe"),
        ("\u{2066}Google\u{2069}", "Google"),
        ("zero\u{200b}width\u{feff}\u{2060}", "zerowidth"),
        ("soft\u{ad}hyphen\u{61c}", "softhyphen"),
        ("tag\u{e0041}\u{e0042}s", "tags"),
        ("\u{1b}[31mred", "[31mred"),
        ("\u{3164}\u{115f}\u{1160}\u{ffa0}", "127.0.0.1"),
        ("\u{2800}\u{34f}\u{17b4}\u{180e}", "127.0.0.1"),
        ("\u{7}\u{200b} ", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("研究 助手 🔬", "研究 助手 🔬"),
        (&"x".repeat(100), &"x".repeat(64)),
        (&"é".repeat(100), &"é".repeat(64)),
    ] {
        let body = registered(&service, &json!({"redirect_uris": [CALLBACK], "client_name": given})).await;
        assert_eq!(body["client_name"], shown, "{given:?}");
    }
}

#[tokio::test]
async fn the_eleventh_registration_within_an_hour_from_one_address_is_refused() {
    let service = TestService::product(&[PUBLIC]).await;
    let document = json!({"redirect_uris": [CALLBACK]});
    for _ in 0..10 {
        registered(&service, &document).await;
    }
    let refused = post(&service, REGISTER, &document).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (429, "rate_limited"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=360).contains(&wait), "{wait}");
    assert_eq!(
        service.get("/.well-known/oauth-authorization-server").await.status,
        200,
        "others are not touched"
    );

    let development = TestService::product(&[]).await;
    for _ in 0..12 {
        registered(&development, &document).await;
    }
}

#[tokio::test]
async fn of_ten_thousand_registrations_from_one_address_ten_leave_a_trace() {
    let service = TestService::product(&[PUBLIC]).await;
    let document = json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"});
    for _ in 0..10 {
        registered(&service, &document).await;
    }
    let flood = (10..10_000).map(|_| post(&service, REGISTER, &document));
    let answers = futures_util::stream::iter(flood).buffer_unordered(64).map(|answer| answer.status.as_u16());
    let through = answers.filter(|status| std::future::ready(*status != 429)).count().await;
    // One more every six minutes.
    assert!(through <= 1, "{through}");
    assert!((10..=11).contains(&count(&service, CLIENTS).await));
    let recorded = "SELECT count(*) FROM okt_system.audit WHERE action = 'client.registered'";
    assert!((10..=11).contains(&count(&service, recorded).await));
}

#[tokio::test]
async fn what_a_client_registered_for_is_the_most_it_can_ask_for() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let document = json!({
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "scope": "read source:write",
    });
    let body = registered(&service, &document).await;
    let id = text(&body, "client_id").to_owned();
    let mut browser = crate::oauth::signed_in(&service, &ada.email).await;
    for (scope, fits) in [
        ("read", true),
        ("fact:read source:write", true),
        ("", true),
        ("source:delete", false),
        ("read mcp", false),
        ("read source:write fact:write", false),
    ] {
        let answer = browser.ask(&service, &request(&id, scope)).await;
        assert_eq!(answer.status, if fits { 200 } else { 400 }, "{scope}");
        if !fits {
            assert!(crate::oauth::offered(&answer).as_str().contains("error=invalid_scope"), "{answer:?}");
        }
    }
    let page = browser
        .open(
            &service,
            &format!("{AUTHORIZE}?{}", query(&crate::oauth::changed(&request(&id, ""), "scope", None))),
        )
        .await;
    assert!(page.text.contains("See everything that you can see"), "asks for all of it when it does not say");
    assert!(page.text.contains("Add and change sources"), "{}", page.text);
}

#[tokio::test]
async fn a_secret_is_asked_for_wherever_there_is_one() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let document = json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_post"});
    let body = registered(&service, &document).await;
    let (id, secret) = (text(&body, "client_id"), text(&body, "client_secret"));
    let code = code(&service, id, &ada.email, "read").await;
    let exchange = async |secret: &str| {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", id),
            ("client_secret", secret),
            ("code", &code),
            ("code_verifier", VERIFIER),
        ];
        Answer::of(form_request(&service, okt_testkit::oauth::TOKEN, &form)).await
    };
    for wrong in ["", "wrong", CHALLENGE] {
        let answer = exchange(wrong).await;
        assert_eq!((answer.status.as_u16(), error(&answer).as_str()), (401, "invalid_client"), "{wrong}");
    }
    assert_eq!(exchange(secret).await.status, 200, "wrong ones use nothing up");
}
