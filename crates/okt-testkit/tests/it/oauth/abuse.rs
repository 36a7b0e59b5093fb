use futures_util::future::join_all;
use http::Method;
use okt_testkit::accounts::{PASSWORD, count, post, register};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, PageForm, REGISTER, REVOKE, SIGN_IN, TOKEN, VERIFIER, client, error,
    form_request, parameter, query, request,
};
use okt_testkit::served::TestService;
use serde_json::json;
use uuid::Uuid;

use crate::oauth::{PUBLIC, changed, sent_to, stays};

const PROXY: (&str, &str) = ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8");

/// Opens our page at its public address, where the service is not; then the way on as the page has it.
async fn sign_in(
    service: &TestService,
    browser: &mut Browser,
    issuer: &str,
    page: &Answer,
    email: &str,
) -> Answer {
    let form = PageForm::of(page);
    let fields = [("flow", &*form.flow), ("token", &form.token), ("email", email), ("password", PASSWORD)];
    let next = sent_to(&browser.send(service, SIGN_IN, &fields).await);
    let path = next.as_str().strip_prefix(issuer).unwrap().to_owned();
    browser.open(service, &path).await
}

#[tokio::test]
async fn every_answer_to_a_client_names_the_issuer_of_the_metadata() {
    for issuer in [None, Some("https://okt.example"), Some("https://okt.example/research")] {
        let settings: Vec<_> = issuer.iter().map(|issuer| ("SVC_OAUTH_ISSUER", *issuer)).collect();
        let service = TestService::product(&settings).await;
        let metadata = service.get("/.well-known/oauth-authorization-server").await.json();
        let issuer = metadata["issuer"].as_str().unwrap().to_owned();
        let ada = register(&service, "ada").await;
        let good = request(&client(&service).await, "read");
        let mut browser = Browser::default();
        let page = browser.ask(&service, &good).await;
        let page = sign_in(&service, &mut browser, &issuer, &page, &ada.email).await;
        let allowed = browser.decide(&service, &page, "allow").await;
        assert!(parameter(&allowed, "code").is_some(), "{allowed}");
        let page = browser.ask(&service, &good).await;
        let denied = browser.decide(&service, &page, "deny").await;
        let mut answers = vec![allowed, denied];
        for (name, value) in [
            ("response_type", "token"),
            ("scope", "fly"),
            ("resource", "https://a.example"),
            ("code_challenge", ""),
        ] {
            answers.push(sent_to(&browser.ask(&service, &changed(&good, name, Some(value))).await));
        }
        for answer in answers {
            let named: Vec<_> =
                answer.query_pairs().filter(|(name, _)| name == "iss").map(|(_, v)| v.into_owned()).collect();
            assert_eq!(named, [issuer.as_str()], "{answer}");
        }
    }
}

#[tokio::test]
async fn the_eleventh_try_on_the_page_within_a_minute_from_one_address_is_refused() {
    let service = TestService::product(&[PUBLIC]).await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let form = PageForm::of(&page);
    let tries = join_all((0..11).map(|number| {
        let email = format!("p{number}@example.org");
        let fields =
            [("flow", &*form.flow), ("token", &form.token), ("email", &email), ("password", PASSWORD)];
        Answer::of(browser.dressed(form_request(&service, SIGN_IN, &fields)))
    }));
    let answers = tries.await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![401; 10], vec![429]].concat());
    for answer in &answers {
        stays(answer, answer.status.as_u16());
        assert!(answer.text.contains("type=\"password\""), "the page once more");
        assert_eq!(answer.header("set-cookie"), "");
    }
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=6).contains(&wait), "{wait}");
    // The same allowance as at the front door, not another one.
    let login = json!({"email": "somebody@example.org", "password": PASSWORD});
    assert_eq!(post(&service, "/api/v1/auth/login", &login).await.status, 429);
}

#[tokio::test]
async fn the_twenty_first_try_on_the_page_to_one_account_is_refused_even_from_loopback() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let id = client(&service).await;
    let mut statuses = Vec::new();
    let mut last = None;
    for _ in 0..3 {
        let mut browser = Browser::default();
        let form = PageForm::of(&browser.ask(&service, &request(&id, "read")).await);
        let fields = [
            ("flow", &*form.flow),
            ("token", &form.token),
            ("email", &ada.email),
            ("password", "a wrong one"),
        ];
        let tries =
            join_all((0..7).map(|_| Answer::of(browser.dressed(form_request(&service, SIGN_IN, &fields)))));
        statuses.extend(tries.await.iter().map(|answer| answer.status.as_u16()));
        last = Some((browser, form));
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![401; 20], vec![429]].concat());
    let (mut browser, form) = last.unwrap();
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("email", &ada.email), ("password", PASSWORD)];
    assert_eq!(browser.send(&service, SIGN_IN, &fields).await.status, 429, "the right password waits too");
}

#[tokio::test]
async fn requests_for_tokens_are_limited_for_each_client_even_from_loopback() {
    let service = TestService::product(&[("SVC__RATE_LIMITS__OAUTH_TOKEN_PER_MINUTE", "5")]).await;
    let (mine, other) = (client(&service).await, client(&service).await);
    let guess = async |client: &str, kind: &str, value: &str| {
        let form = [("grant_type", kind), ("client_id", client), ("refresh_token", value), ("code", value)];
        let form = [&form[..], &[("code_verifier", VERIFIER)]].concat();
        Answer::of(form_request(&service, TOKEN, &form)).await
    };
    for number in 0..5 {
        let kind = ["refresh_token", "authorization_code"][number % 2];
        let answer = guess(&mine, kind, "a guess").await;
        assert_eq!((answer.status.as_u16(), error(&answer).as_str()), (400, "invalid_grant"), "{number}");
    }
    let refused = guess(&mine, "refresh_token", "a guess").await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (429, "rate_limited"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=12).contains(&wait), "{wait}");
    let form = [("client_id", &*mine), ("token", "a guess")];
    assert_eq!(Answer::of(form_request(&service, REVOKE, &form)).await.status, 429, "one allowance for both");
    assert_eq!(guess(&other, "refresh_token", "a guess").await.status, 400, "another client is not touched");
    let usual = TestService::product(&[]).await;
    assert_eq!(usual.api.app.config().rate_limits.oauth_token_per_minute, 60);
}

/// Every address of a /64 is one subscriber's.
#[tokio::test]
async fn requests_for_tokens_are_limited_for_a_whole_network_of_ipv6() {
    let limit = ("SVC__RATE_LIMITS__OAUTH_TOKEN_PER_MINUTE", "2");
    let service = TestService::product(&[limit, ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    let client = client(&service).await;
    let guess = async |from: &str| {
        let form = [("grant_type", "refresh_token"), ("client_id", &*client), ("refresh_token", "a guess")];
        let request = form_request(&service, TOKEN, &form).header("x-forwarded-for", from);
        Answer::of(request).await.status.as_u16()
    };
    let same = [guess("2001:db8::1").await, guess("2001:db8::2").await, guess("2001:db8::3").await];
    assert_eq!(same, [400, 400, 429]);
    assert_eq!(guess("2001:db8:0:1::1").await, 400, "another network is not touched");
}

#[tokio::test]
async fn asking_people_is_limited_for_each_address() {
    let service = TestService::product(&[PUBLIC, ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "6")]).await;
    // The first of six.
    let address = format!("{AUTHORIZE}?{}", query(&request(&client(&service).await, "read")));
    for _ in 0..5 {
        assert_eq!(service.get(&address).await.status, 200);
    }
    let refused = service.get(&address).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (429, "rate_limited"));
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.oauth_requests").await, 5);
}

#[tokio::test]
async fn what_a_peer_says_of_its_address_counts_only_from_a_trusted_proxy() {
    let document = json!({"redirect_uris": [CALLBACK]});
    let registration = |service: &TestService, from: String| {
        let request = service.request(Method::POST, REGISTER).header("x-forwarded-for", from);
        Answer::of(
            request.header("forwarded", "for=192.0.2.77").header("x-real-ip", "192.0.2.78").json(&document),
        )
    };
    let statuses = async |service: &TestService, from: fn(usize) -> String| -> Vec<u16> {
        let mut statuses = Vec::new();
        for number in 0..11 {
            statuses.push(registration(service, from(number)).await.status.as_u16());
        }
        statuses
    };
    let ten = [vec![201; 10], vec![429]].concat();

    // A stranger who writes another address every time stays one stranger.
    let direct = TestService::product(&[PUBLIC]).await;
    assert_eq!(statuses(&direct, |number| format!("192.0.2.{number}")).await, ten);
    let elsewhere = TestService::product(&[PUBLIC, ("SVC__SERVER__TRUSTED_PROXIES", "10.0.0.0/8")]).await;
    assert_eq!(statuses(&elsewhere, |number| format!("192.0.2.{number}")).await, ten);

    // Behind a proxy, what the proxy added counts, and not what was there before.
    let behind = TestService::product(&[PUBLIC, PROXY]).await;
    assert_eq!(statuses(&behind, |number| format!("203.0.113.{number}, 192.0.2.1")).await, ten);
    assert_eq!(statuses(&behind, |number| format!("198.51.100.{number}")).await, [201; 11]);
    let recorded = "SELECT count(DISTINCT address) FROM okt_system.audit WHERE action = 'client.registered'";
    assert_eq!(count(&behind, recorded).await, 12);
    assert_eq!(count(&direct, recorded).await, 1);
}

#[tokio::test]
async fn a_client_is_never_taken_for_a_person() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    for _ in 0..20 {
        let document =
            json!({"redirect_uris": [CALLBACK], "client_id": ada.id, "token_endpoint_auth_method": "none"});
        let answer = post(&service, REGISTER, &document).await;
        let id = answer.json()["client_id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("client_") && id.parse::<Uuid>().is_err(), "{id}");
    }
    let same = "SELECT count(*) FROM okt_system.oauth_clients c, okt_system.users u
                 WHERE c.id IN (u.id::text, replace(u.id::text, '-', ''), u.email)";
    assert_eq!(count(&service, same).await, 0);

    // And no person is taken for a client.
    for person in [ada.id.to_string(), ada.id.simple().to_string(), ada.email.clone()] {
        stays(&Browser::default().ask(&service, &request(&person, "read")).await, 400);
        let form =
            [("grant_type", "refresh_token"), ("client_id", &*person), ("refresh_token", &ada.refresh)];
        let answer = Answer::of(form_request(&service, TOKEN, &form)).await;
        assert_eq!((answer.status.as_u16(), error(&answer).as_str()), (401, "invalid_client"), "{person}");
    }
}
