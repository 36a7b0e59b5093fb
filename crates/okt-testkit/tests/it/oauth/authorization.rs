use http::Method;
use okt_testkit::accounts::{count, post, register};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, CHALLENGE, PageForm, REGISTER, client, exchange, parameter, query, request,
};
use okt_testkit::served::TestService;
use serde_json::json;
use url::Url;

use crate::oauth::{Request, changed, given, more, offered, sent_to, signed_in, stays};

const REQUESTS: &str = "SELECT count(*) FROM okt_system.oauth_requests";

/// Registers a public client with these addresses; returns its id.
async fn client_at(service: &TestService, addresses: &[&str]) -> String {
    let document = json!({"redirect_uris": addresses, "token_endpoint_auth_method": "none"});
    let answer = post(service, REGISTER, &document).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["client_id"].as_str().unwrap().to_owned()
}

/// Requests that prove nothing when the code is exchanged.
fn unproven(good: &Request) -> Vec<Request> {
    let long = "a".repeat(129);
    vec![
        changed(good, "code_challenge", None),
        changed(good, "code_challenge", Some("")),
        changed(good, "code_challenge", Some(&CHALLENGE[..42])),
        changed(good, "code_challenge", Some(&long)),
        changed(good, "code_challenge", Some(&format!("{CHALLENGE}="))),
        changed(good, "code_challenge", Some(&CHALLENGE.replace('-', "+"))),
        changed(good, "code_challenge", Some(&CHALLENGE.replace('-', "é"))),
        changed(good, "code_challenge_method", None),
        changed(good, "code_challenge_method", Some("")),
        changed(good, "code_challenge_method", Some("plain")),
        changed(good, "code_challenge_method", Some("s256")),
        changed(good, "code_challenge_method", Some("S512")),
        more(good, "code_challenge", CHALLENGE),
        more(good, "code_challenge_method", "S256"),
    ]
}

/// Requests of a client that is known, with an address that is right, for something that can't be had; and the error
/// that the client is to be told.
fn impossible(good: &Request) -> Vec<(Request, &'static str)> {
    let others = [
        (changed(good, "response_type", None), "invalid_request"),
        (changed(good, "response_type", Some("")), "invalid_request"),
        (changed(good, "response_type", Some("token")), "unsupported_response_type"),
        (changed(good, "response_type", Some("code token")), "unsupported_response_type"),
        (changed(good, "response_type", Some("CODE")), "unsupported_response_type"),
        (more(good, "response_type", "code"), "invalid_request"),
        (more(good, "state", "another"), "invalid_request"),
        (more(good, "scope", "read"), "invalid_request"),
        (changed(good, "scope", Some("fly")), "invalid_scope"),
        (changed(good, "scope", Some("read everything")), "invalid_scope"),
        (changed(good, "scope", Some("read,mcp")), "invalid_scope"),
        (changed(good, "scope", Some("\"><script>")), "invalid_scope"),
        (more(good, "resource", "https://evil.example"), "invalid_target"),
        (more(good, "resource", "not an address"), "invalid_target"),
        (
            more(&more(good, "resource", "https://a.example"), "resource", "https://b.example"),
            "invalid_target",
        ),
    ];
    unproven(good).into_iter().map(|bad| (bad, "invalid_request")).chain(others).collect()
}

#[tokio::test]
async fn what_is_not_known_is_ignored_and_what_is_empty_counts_as_left_out() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (good, mut browser) =
        (request(&client(&service).await, "read"), signed_in(&service, &ada.email).await);
    for fine in [
        good.clone(),
        more(&more(&good, "prompt", "none"), "nonce", "1"),
        more(&more(&good, "unknown", "1"), "unknown", "2"),
        more(&good, "Scope", "fly"),
        more(&good, "request_uri", "https://evil.example/"),
        more(&good, "response_mode", "fragment"),
        more(&good, "scope", ""),
        more(&good, "response_type", ""),
        changed(&good, "scope", Some("")),
        changed(&good, "redirect_uri", Some("")),
        changed(&good, "state", None),
        more(&good, "resource", &service.url),
        more(&good, "resource", &format!("{}/", service.url)),
        more(&good, "resource", &format!("{}/mcp", service.url)),
    ] {
        let page = browser.ask(&service, &fine).await;
        assert_eq!(page.status, 200, "{fine:?}: {page:?}");
        let answer = browser.decide(&service, &page, "allow").await;
        assert!(parameter(&answer, "code").is_some(), "{answer}");
        assert_eq!(answer.fragment(), None, "{answer}");
    }
    let posted = browser.dressed(service.request(Method::HEAD, &format!("{AUTHORIZE}?{}", query(&good))));
    assert_eq!(Answer::of(posted).await.status, 200);
}

#[tokio::test]
async fn a_parameter_that_comes_twice_is_refused_and_never_chosen_from() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (good, mut browser) =
        (request(&client(&service).await, "read"), signed_in(&service, &ada.email).await);
    for name in ["response_type", "scope", "state", "code_challenge", "code_challenge_method"] {
        for second in ["another", good.iter().find(|(of, _)| *of == name).unwrap().1.as_str()] {
            let answer = offered(&browser.ask(&service, &more(&good, name, second)).await);
            assert_eq!(parameter(&answer, "error").as_deref(), Some("invalid_request"), "{name}");
            assert!(answer.as_str().starts_with(CALLBACK), "{answer}");
        }
    }
    let before = count(&service, REQUESTS).await;
    for (name, second) in [
        ("client_id", "client_of_somebody"),
        ("client_id", good[1].1.as_str()),
        ("redirect_uri", "https://evil.example/"),
        ("redirect_uri", CALLBACK),
    ] {
        stays(&browser.ask(&service, &more(&good, name, second)).await, 400);
        let first: Request = [(name, second.to_owned())].into_iter().chain(good.clone()).collect();
        stays(&browser.ask(&service, &first).await, 400);
    }
    assert_eq!(count(&service, REQUESTS).await, before);
}

#[tokio::test]
async fn for_an_unknown_client_or_address_there_is_a_page_and_nobody_is_sent_anywhere() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let good = request(&client(&service).await, "read");
    let before = count(&service, REQUESTS).await;
    let known = signed_in(&service, &ada.email).await;
    for mut browser in [Browser::default(), known] {
        for bad in [
            changed(&good, "client_id", None),
            changed(&good, "client_id", Some("")),
            changed(&good, "client_id", Some("client_00000000000000000000000000000000")),
            changed(&good, "client_id", Some(&ada.id.to_string())),
            changed(&good, "client_id", Some("https://evil.example")),
            changed(&good, "client_id", Some("http://127.0.0.1/client.json")),
            changed(&good, "client_id", Some(&"x".repeat(3000))),
            changed(&good, "client_id", Some("' OR 1=1 --")),
            changed(&good, "redirect_uri", Some("https://evil.example/")),
            changed(&good, "redirect_uri", Some("javascript:alert(1)")),
            changed(&good, "redirect_uri", Some("//evil.example")),
            changed(&good, "redirect_uri", Some("http://127.0.0.1/other")),
        ] {
            let answer = browser.ask(&service, &bad).await;
            stays(&answer, 400);
            assert_eq!(answer.header("set-cookie"), "", "{answer:?}");
            assert!(!answer.text.contains("evil.example"), "{}", answer.text);
            // Not even when everything else is wrong as well.
            let worse = changed(&changed(&bad, "response_type", None), "scope", Some("fly"));
            stays(&browser.ask(&service, &worse).await, 400);
        }
    }
    // The one request of the browser that is signed in.
    assert_eq!(count(&service, REQUESTS).await, before + 1);
}

#[tokio::test]
async fn the_only_registered_address_may_be_left_out_and_one_of_several_not() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let one = client_at(&service, &["https://app.example.org/callback?from=okt"]).await;
    let several = client_at(&service, &["https://app.example.org/a", "https://app.example.org/b"]).await;
    let bare = |client: &str| changed(&request(client, "read"), "redirect_uri", None);

    let page = browser.ask(&service, &bare(&one)).await;
    let answer = browser.decide(&service, &page, "allow").await;
    assert!(answer.as_str().starts_with("https://app.example.org/callback?from=okt&code="), "{answer}");

    stays(&browser.ask(&service, &bare(&several)).await, 400);
    let second = changed(&bare(&several), "redirect_uri", Some("https://app.example.org/b"));
    let page = browser.ask(&service, &second).await;
    let answer = browser.decide(&service, &page, "allow").await;
    assert!(answer.as_str().starts_with("https://app.example.org/b?code="), "{answer}");
}

#[tokio::test]
async fn an_address_matches_to_the_letter_but_for_the_port_on_the_persons_own_machine() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let https = client_at(&service, &["https://app.example.org/callback"]).await;
    let ipv4 = client_at(&service, &["http://127.0.0.1:33418/callback"]).await;
    let ipv6 = client_at(&service, &["http://[::1]/callback"]).await;
    let named = client_at(&service, &["http://localhost/callback"]).await;
    for (client, given, fits) in [
        (&https, "https://app.example.org/callback", true),
        (&https, "https://app.example.org/callback/", false),
        (&https, "https://app.example.org/Callback", false),
        (&https, "https://APP.example.org/callback", false),
        (&https, "HTTPS://app.example.org/callback", false),
        (&https, "https://app.example.org/callback?more=1", false),
        (&https, "https://app.example.org/callback#fragment", false),
        (&https, "https://app.example.org%2Fcallback", false),
        (&https, "https://app.example.org/call%62ack", false),
        (&https, "https://app.example.org/./callback", false),
        (&https, "https://app.example.org:443/callback", false),
        (&https, "https://app.example.org:8443/callback", false),
        (&https, "http://app.example.org/callback", false),
        (&https, "https://app.example.org.evil.example/callback", false),
        (&https, "https://app.example.org@evil.example/callback", false),
        (&https, "https://evil.example/?https://app.example.org/callback", false),
        (&https, " https://app.example.org/callback", false),
        (&https, CALLBACK, false),
        (&ipv4, "http://127.0.0.1:33418/callback", true),
        (&ipv4, "http://127.0.0.1:1/callback", true),
        (&ipv4, "http://127.0.0.1/callback", true),
        (&ipv4, "http://localhost:33418/callback", false),
        (&ipv4, "http://[::1]:33418/callback", false),
        (&ipv4, "https://127.0.0.1:33418/callback", false),
        (&ipv4, "http://127.0.0.2:33418/callback", false),
        (&ipv4, "http://127.1:33418/callback", false),
        (&ipv4, "http://127.0.0.1:33418/callback/", false),
        (&ipv4, "http://127.0.0.1:33418/callback?more=1", false),
        (&ipv4, "http://127.0.0.1:33418/callback#a", false),
        (&ipv4, "http://127.0.0.1:99999/callback", false),
        (&ipv4, "http://127.0.0.1:80@evil.example/callback", false),
        (&ipv4, "http://127.0.0.1.evil.example/callback", false),
        (&ipv6, "http://[::1]:4000/callback", true),
        (&ipv6, "http://127.0.0.1:4000/callback", false),
        (&named, "http://localhost:4000/callback", true),
        (&named, "http://localhost.evil.example:4000/callback", false),
        (&named, "http://127.0.0.1:4000/callback", false),
    ] {
        let page =
            browser.ask(&service, &changed(&request(client, "read"), "redirect_uri", Some(given))).await;
        if fits {
            let answer = browser.decide(&service, &page, "allow").await;
            assert!(answer.as_str().starts_with(&format!("{given}?code=")), "{given}: {answer}");
        } else {
            assert_eq!(page.status, 400, "{given}");
            stays(&page, 400);
        }
    }
}

#[tokio::test]
async fn a_challenge_is_needed_of_the_one_method_and_of_the_right_shape() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    // Clients with a secret too.
    let document = json!({"redirect_uris": [CALLBACK]});
    let secret = post(&service, REGISTER, &document).await.json()["client_id"].as_str().unwrap().to_owned();
    let before = count(&service, REQUESTS).await;
    let public = client(&service).await;
    for client in [&public, &secret] {
        for bad in unproven(&request(client, "read")) {
            let answer = offered(&browser.ask(&service, &bad).await);
            assert_eq!(parameter(&answer, "error").as_deref(), Some("invalid_request"), "{bad:?}");
            let description = parameter(&answer, "error_description").unwrap();
            assert!(description.contains("code_challenge"), "{description}");
        }
    }
    assert_eq!(count(&service, REQUESTS).await, before, "nothing was asked");
    for fine in ["a".repeat(43), "a".repeat(128), format!("{}-._~", "A9".repeat(20))] {
        let good = changed(&request(&public, "read"), "code_challenge", Some(&fine));
        assert_eq!(browser.ask(&service, &good).await.status, 200, "{fine}");
    }
}

#[tokio::test]
async fn errors_go_back_with_the_state_and_the_issuer_once_the_person_has_let_the_client_in() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let good = request(&client(&service).await, "read");
    let page = browser.ask(&service, &good).await;
    browser.decide(&service, &page, "allow").await;
    let stranger = client(&service).await;
    let before = given(&service).await;
    for (bad, expected) in impossible(&good) {
        let answer = browser.ask(&service, &bad).await;
        let answer = sent_to(&answer);
        // Anybody can register a client, and nobody is sent to one without a click.
        let unknown = changed(&bad, "client_id", Some(&stranger));
        assert_eq!(offered(&browser.ask(&service, &unknown).await), answer, "{bad:?}");
        assert!(answer.as_str().starts_with(&format!("{CALLBACK}?error={expected}&")), "{bad:?}: {answer}");
        let names: Vec<_> = answer.query_pairs().map(|(name, _)| name.into_owned()).collect();
        assert_eq!(names, ["error", "error_description", "state", "iss"], "{bad:?}");
        assert_eq!(parameter(&answer, "iss").as_ref(), Some(&service.url));
        assert_eq!(parameter(&answer, "state").as_deref(), Some("a state & more"));
        let description = parameter(&answer, "error_description").unwrap();
        let allowed = |c| matches!(c, ' '..='!' | '#'..='[' | ']'..='~');
        assert!(!description.is_empty() && description.chars().all(allowed), "{description}");
        assert!(!description.contains("script"), "what was sent is not repeated: {description}");
    }
    assert_eq!(given(&service).await, before);
}

#[tokio::test]
async fn a_state_comes_back_as_it_was_or_not_at_all() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let good = request(&client(&service).await, "read");
    let long = "s".repeat(2000);
    for state in [
        "plain",
        "a+b c%20d",
        "&code=evil&iss=evil#x",
        "<script>\"'",
        "ünïcode ✓",
        "\r\nset-cookie: a=b",
        &long,
    ] {
        let with = changed(&good, "state", Some(state));
        let page = browser.ask(&service, &with).await;
        assert_eq!(page.status, 200, "{state:?}: {page:?}");
        let answer = browser.decide(&service, &page, "allow").await;
        let values = |name: &str| -> Vec<String> {
            answer.query_pairs().filter(|(of, _)| of == name).map(|(_, value)| value.into_owned()).collect()
        };
        assert_eq!(values("state"), [state]);
        assert_eq!((values("code").len(), values("iss")), (1, vec![service.url.clone()]), "{state:?}");

        let page = browser.ask(&service, &with).await;
        let denied = browser.decide(&service, &page, "deny").await;
        assert_eq!(parameter(&denied, "state").as_deref(), Some(state));
        let refused = sent_to(&browser.ask(&service, &changed(&with, "scope", Some("fly"))).await);
        assert_eq!(parameter(&refused, "state").as_deref(), Some(state));
    }
    for none in [changed(&good, "state", None), changed(&good, "state", Some(""))] {
        let page = browser.ask(&service, &none).await;
        assert_eq!(parameter(&browser.decide(&service, &page, "allow").await, "state"), None);
        let refused = sent_to(&browser.ask(&service, &changed(&none, "scope", Some("fly"))).await);
        assert_eq!(parameter(&refused, "state"), None);
    }
    let longer = changed(&good, "state", Some(&"s".repeat(2001)));
    let refused = sent_to(&browser.ask(&service, &longer).await);
    assert_eq!(parameter(&refused, "error").as_deref(), Some("invalid_request"));
}

#[tokio::test]
async fn until_the_person_has_signed_in_nobody_is_sent_anywhere() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let good = request(&client(&service).await, "read");
    let mut unsigned = Browser::default();
    let page = unsigned.ask(&service, &good).await;
    stays(&page, 200);
    let mut expired = signed_in(&service, &ada.email).await;
    let over = "UPDATE okt_system.oauth_browsers SET expires_at = clock_timestamp() - interval '1 second'";
    okt_testkit::accounts::sql(&service, over).await;
    let forged = Browser { cookie: Some("okt_as=oktb_nobody".to_owned()) };
    for mut browser in [Browser::default(), unsigned, expired.clone(), forged] {
        for (bad, word) in impossible(&good) {
            let answer = browser.ask(&service, &bad).await;
            stays(&answer, 400);
            assert!(answer.text.contains(word), "the person reads it: {}", answer.text);
            assert!(!answer.text.contains("<script>"), "{}", answer.text);
        }
    }
    stays(&expired.ask(&service, &good).await, 200);
}

#[tokio::test]
async fn no_other_origin_may_read_the_pages() {
    let service = TestService::product(&[]).await;
    let good = format!("{AUTHORIZE}?{}", query(&request(&client(&service).await, "read")));
    for method in [Method::GET, Method::OPTIONS, Method::POST] {
        let request = service
            .request(method.clone(), &good)
            .header("origin", "https://app.example.org")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type");
        let answer = Answer::of(request).await;
        let names: Vec<_> =
            answer.headers.keys().filter(|name| name.as_str().starts_with("access-control")).collect();
        assert!(names.is_empty(), "{method}: {answer:?}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{method}");
    }
}

#[tokio::test]
async fn the_page_says_who_asks_for_what_where_the_answer_goes_and_who_is_asked() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let document = json!({
        "client_name": "Reading Room",
        "redirect_uris": ["https://app.example.org:8443/callback", "http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    });
    let id = post(&service, REGISTER, &document).await.json()["client_id"].as_str().unwrap().to_owned();
    let ask = |uri: &str| changed(&request(&id, "fact:read source:write mcp"), "redirect_uri", Some(uri));
    let page = browser.ask(&service, &ask("https://app.example.org:8443/callback")).await;
    assert_eq!(page.status, 200);
    for expected in [
        "Reading Room",
        "app.example.org:8443",
        "ada@example.org",
        "<li>See facts</li>",
        "<li>Add and change sources</li>",
        "<li>Use this service as a tool (MCP)",
        "This app is not verified",
    ] {
        assert!(page.text.contains(expected), "{expected} in {}", page.text);
    }
    assert_eq!(page.text.matches("<li>").count(), 3, "and nothing else");
    assert!(!page.text.contains("fact:read"), "in words, not in code");

    let local = browser.ask(&service, &ask("http://127.0.0.1:5000/callback")).await;
    assert!(local.text.contains("127.0.0.1:5000"), "{}", local.text);
    assert_ne!(local.text.matches("computer").count(), 0, "a warning of its own for this machine");
    assert_eq!(page.text.matches("computer").count(), 0, "{}", page.text);
}

#[tokio::test]
async fn the_person_is_asked_every_time_and_again_when_more_is_wanted() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let id = client(&service).await;
    let mut browser = signed_in(&service, &ada.email).await;
    for (number, scope) in ["fact:read", "fact:read", "fact:read source:write"].into_iter().enumerate() {
        let page = browser.ask(&service, &request(&id, scope)).await;
        stays(&page, 200);
        let rows = i64::try_from(number).unwrap();
        assert_eq!(given(&service).await, (rows, rows), "nothing is given before the answer");
        assert_eq!(page.text.contains("Add and change sources"), scope.contains("source:write"));
        let code = parameter(&browser.decide(&service, &page, "allow").await, "code").unwrap();
        assert_eq!(exchange(&service, &id, &code).await.json()["scope"], scope);
    }
    let other = Browser::default().ask(&service, &request(&id, "fact:read")).await;
    assert!(other.text.contains("type=\"password\""), "another browser knows nobody");
}

#[tokio::test]
async fn who_says_no_sends_access_denied_and_gives_nothing() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let answer: Url = browser.decide(&service, &page, "deny").await;
    assert!(answer.as_str().starts_with(&format!("{CALLBACK}?error=access_denied&")), "{answer}");
    let names: Vec<_> = answer.query_pairs().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, ["error", "error_description", "state", "iss"]);
    assert_eq!(parameter(&answer, "state").as_deref(), Some("a state & more"));
    assert_eq!(given(&service).await, (0, 0));
    let sessions = "SELECT count(*) FROM okt_system.sessions";
    assert_eq!(count(&service, sessions).await, 1, "her own");
    let recorded = "SELECT count(*) FROM okt_system.audit WHERE action = 'grant.denied'";
    assert_eq!(count(&service, recorded).await, 1);

    // And it stays a no.
    let form = PageForm::of(&page);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")];
    stays(&browser.send(&service, AUTHORIZE, &fields).await, 400);
    assert_eq!(given(&service).await, (0, 0));
}

#[tokio::test]
async fn signing_in_starts_a_new_secret_and_the_one_before_is_worth_nothing() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let good = request(&client(&service).await, "read");
    let mut browser = Browser::default();
    let page = browser.ask(&service, &good).await;
    // Whoever planted or saw the first secret keeps a copy of it.
    let mut thief = browser.clone();
    let page = browser.sign_in(&service, &page, &ada.email).await;
    assert_ne!(browser.cookie, thief.cookie);
    let flow = PageForm::of(&page).flow;

    stays(&thief.open(&service, &format!("{AUTHORIZE}?flow={flow}")).await, 400);
    let form = PageForm::of(&page);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")];
    stays(&thief.clone().send(&service, AUTHORIZE, &fields).await, 403);
    let again = thief.ask(&service, &good).await;
    assert!(again.text.contains("type=\"password\""), "{}", again.text);
    assert!(!again.text.contains(&ada.email), "{}", again.text);
    assert_eq!(given(&service).await, (0, 0));

    // Secrets of strangers' making are not taken up.
    let mut planted = Browser { cookie: Some("okt_as=oktb_planted".to_owned()) };
    planted.ask(&service, &good).await;
    assert_ne!(planted.cookie.as_deref(), Some("okt_as=oktb_planted"));
    assert!(parameter(&browser.decide(&service, &page, "allow").await, "code").is_some());
}
