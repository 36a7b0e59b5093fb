use okt_jobs::{Expired, delete_expired};
use okt_model::RepositoryId;
use okt_testkit::accounts::{PASSWORD, count, register, sql};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, PageForm, SIGN_IN, client, exchange, form_request, parameter, request,
};
use okt_testkit::served::TestService;
use serde_json::json;

use crate::oauth::{
    GRANTS, SIGNED_IN, allow_fields, changed, given, sent_to, sign_in_fields, signed_in, stays,
};

#[tokio::test]
async fn forms_lead_on_with_303_so_that_no_password_is_sent_further() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = Browser::default();
    let good = request(&client(&service).await, "read");
    let page = browser.ask(&service, &good).await;
    let form = PageForm::of(&page);
    let next = browser.send(&service, SIGN_IN, &sign_in_fields(&form, &ada.email)).await;
    assert_eq!(next.status, 303);
    assert_eq!(next.header("location"), format!("{}{AUTHORIZE}?flow={}", service.url, form.flow));
    assert!(!format!("{next:?}").contains(PASSWORD));
    let page = browser.open(&service, next.header("location")).await;
    let done = browser.send(&service, AUTHORIZE, &allow_fields(&PageForm::of(&page))).await;
    assert_eq!((done.status.as_u16(), done.text.as_str()), (303, ""));
    assert_eq!((done.header("cache-control"), done.header("referrer-policy")), ("no-store", "no-referrer"));
    let told = browser.ask(&service, &changed(&good, "scope", Some("fly"))).await;
    assert_eq!(told.status, 303);
}

/// What a browser says with a form that another site made.
const FOREIGN: [&[(&str, &str)]; 7] = [
    &[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")],
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site"), ("origin", "https://other.okt.example")],
    &[("sec-fetch-site", "none")],
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
    &[("origin", "http://127.0.0.1:1")],
];

#[tokio::test]
async fn a_form_from_another_site_does_nothing() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let (form, signed_in_before) = (PageForm::of(&page), count(&service, SIGNED_IN).await);
    let send = async |browser: &Browser, path: &str, form: &[(&str, &str)], headers: &[(&str, &str)]| {
        let mut request = browser.dressed(form_request(&service, path, form));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    };
    for headers in FOREIGN {
        stays(&send(&browser, SIGN_IN, &sign_in_fields(&form, &ada.email), headers).await, 403);
    }
    assert_eq!(count(&service, SIGNED_IN).await, signed_in_before);

    let page = browser.sign_in(&service, &page, &ada.email).await;
    let form = PageForm::of(&page);
    for headers in FOREIGN {
        stays(&send(&browser, AUTHORIZE, &allow_fields(&form), headers).await, 403);
    }
    assert_eq!(given(&service).await, (0, 0));

    // What our own pages make browsers say.
    let own: &[(&str, &str)] = &[("sec-fetch-site", "same-origin"), ("origin", "null")];
    sent_to(&send(&browser, AUTHORIZE, &allow_fields(&form), own).await);
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let own: &[(&str, &str)] = &[("origin", &service.url)];
    sent_to(&send(&browser, AUTHORIZE, &allow_fields(&PageForm::of(&page)), own).await);
    assert_eq!(given(&service).await, (2, 2));
}

#[tokio::test]
async fn a_form_with_a_token_of_another_browser_question_or_step_does_nothing() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let good = request(&client(&service).await, "read");
    let mut adas = signed_in(&service, &ada.email).await;
    let mut bobs = signed_in(&service, &bob.email).await;
    let mut unsigned = Browser::default();
    let sign_in = PageForm::of(&unsigned.ask(&service, &good).await);
    let page = PageForm::of(&adas.ask(&service, &good).await);
    let other = PageForm::of(&adas.ask(&service, &good).await);
    let of_bob = PageForm::of(&bobs.ask(&service, &good).await);
    let missing = String::new();
    let cut = page.token[..page.token.len() - 1].to_owned();
    let tampered = page.token.chars().rev().collect::<String>();
    for (browser, flow, token) in [
        (&adas, &page.flow, &missing),
        (&adas, &page.flow, &cut),
        (&adas, &page.flow, &tampered),
        (&adas, &page.flow, &other.token),
        (&adas, &page.flow, &of_bob.token),
        (&adas, &page.flow, &sign_in.token),
        (&adas, &of_bob.flow, &of_bob.token),
        (&adas, &of_bob.flow, &page.token),
        (&bobs, &page.flow, &page.token),
        (&unsigned, &page.flow, &page.token),
        (&Browser::default(), &page.flow, &page.token),
        (&unsigned, &sign_in.flow, &sign_in.token),
    ] {
        let form = PageForm { flow: flow.clone(), token: token.clone() };
        stays(&browser.clone().send(&service, AUTHORIZE, &allow_fields(&form)).await, 403);
        stays(
            &browser
                .clone()
                .send(&service, AUTHORIZE, &[&allow_fields(&form)[..], &[("flow", "x")]].concat())
                .await,
            403,
        );
    }
    // The token that fits, twice or with another beside it, is a riddle as well.
    for extra in [("token", page.token.as_str()), ("token", "x"), ("flow", page.flow.as_str())] {
        stays(
            &adas.clone().send(&service, AUTHORIZE, &[&allow_fields(&page)[..], &[extra]].concat()).await,
            403,
        );
    }
    // In the page to sign in, too.
    let signed_in_before = count(&service, SIGNED_IN).await;
    let foreign = Browser::default();
    for (browser, flow, token) in [
        (&unsigned, &sign_in.flow, &missing),
        (&unsigned, &sign_in.flow, &page.token),
        (&unsigned, &page.flow, &sign_in.token),
        (&adas, &sign_in.flow, &sign_in.token),
        (&foreign, &sign_in.flow, &sign_in.token),
    ] {
        let form = PageForm { flow: flow.clone(), token: token.clone() };
        stays(&browser.clone().send(&service, SIGN_IN, &sign_in_fields(&form, &bob.email)).await, 403);
    }
    assert_eq!(count(&service, SIGNED_IN).await, signed_in_before);
    assert_eq!(given(&service).await, (0, 0));
    sent_to(&adas.send(&service, AUTHORIZE, &allow_fields(&page)).await);
    assert_eq!(given(&service).await, (1, 1));
}

#[tokio::test]
async fn a_form_works_once_however_many_are_sent_at_once() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let (first, form) = (browser.clone(), PageForm::of(&page));
    let page = browser.sign_in(&service, &page, &ada.email).await;
    // The form to sign in was used up, also for who kept the cookie that went with it.
    stays(&first.clone().send(&service, SIGN_IN, &sign_in_fields(&form, &ada.email)).await, 400);
    assert_eq!(count(&service, SIGNED_IN).await, 1);

    let form = PageForm::of(&page);
    let tries =
        (0..10).map(|_| Answer::of(browser.dressed(form_request(&service, AUTHORIZE, &allow_fields(&form)))));
    let mut statuses: Vec<_> =
        futures_util::future::join_all(tries).await.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![303], vec![400; 9]].concat());
    assert_eq!(given(&service).await, (1, 1));
    stays(&browser.send(&service, AUTHORIZE, &allow_fields(&form)).await, 400);
    stays(&browser.open(&service, &format!("{AUTHORIZE}?flow={}", form.flow)).await, 400);
    assert_eq!(given(&service).await, (1, 1));
}

#[tokio::test]
async fn a_form_that_took_too_long_does_nothing() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let good = request(&client(&service).await, "read");
    let over = "UPDATE okt_system.oauth_requests SET expires_at = clock_timestamp() - interval '1 second'";
    let minutes = "SELECT round(extract(epoch FROM expires_at - clock_timestamp()) / 60)::bigint
                     FROM okt_system.oauth_requests";

    let mut browser = Browser::default();
    let form = PageForm::of(&browser.ask(&service, &good).await);
    assert_eq!(count(&service, minutes).await, 10);
    sql(&service, over).await;
    stays(&browser.clone().send(&service, SIGN_IN, &sign_in_fields(&form, &ada.email)).await, 400);
    assert_eq!(count(&service, SIGNED_IN).await, 0);

    let page = browser.ask(&service, &good).await;
    let form = PageForm::of(&browser.sign_in(&service, &page, &ada.email).await);
    sql(&service, over).await;
    stays(&browser.send(&service, AUTHORIZE, &allow_fields(&form)).await, 400);
    stays(&browser.open(&service, &format!("{AUTHORIZE}?flow={}", form.flow)).await, 400);
    assert_eq!(given(&service).await, (0, 0));

    sql(
        &service,
        "UPDATE okt_system.oauth_browsers SET expires_at = clock_timestamp() - interval '1 second'",
    )
    .await;
    assert_eq!(delete_expired(service.api.app.databases(), Expired::Authorizations).await.unwrap(), 2);
    assert_eq!(count(&service, SIGNED_IN).await, 0);
}

#[tokio::test]
async fn what_counts_is_what_was_asked_and_not_what_the_browser_sends_with_the_answer() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let (mine, other) = (client(&service).await, client(&service).await);
    let mut browser = signed_in(&service, &ada.email).await;
    let page = browser.ask(&service, &request(&mine, "fact:read")).await;
    let bob_id = bob.id.to_string();
    let tampered = [
        ("client_id", &*other),
        ("redirect_uri", "https://evil.example/"),
        ("scope", "read mcp source:delete"),
        ("state", "another"),
        ("resource", "https://evil.example/"),
        ("code_challenge", "another"),
        ("code_challenge_method", "plain"),
        ("response_type", "token"),
        ("user_id", &bob_id),
        ("email", &bob.email),
        ("iss", "https://evil.example/"),
    ];
    let form = PageForm::of(&page);
    let fields = [&allow_fields(&form)[..], &tampered].concat();
    let path = format!("{AUTHORIZE}?{}", okt_testkit::oauth::query(&tampered));
    let answer = sent_to(&browser.send(&service, &path, &fields).await);
    assert!(answer.as_str().starts_with(&format!("{CALLBACK}?code=")), "{answer}");
    assert_eq!(parameter(&answer, "state").as_deref(), Some("a state & more"));
    assert_eq!(parameter(&answer, "iss").as_ref(), Some(&service.url));
    let code = parameter(&answer, "code").unwrap();
    assert_eq!(exchange(&service, &other, &code).await.status, 400, "not the other client's");
    let tokens = exchange(&service, &mine, &code).await.json();
    assert_eq!(tokens["scope"], "fact:read");
    let grants = service.get_as(&ada.token, GRANTS).await.json();
    assert_eq!(grants["data"][0]["resource"], service.url);
    assert_eq!(service.get_as(&bob.token, GRANTS).await.json()["data"], json!([]));
}

#[tokio::test]
async fn an_answer_that_says_neither_yes_nor_no_does_nothing() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut browser = signed_in(&service, &ada.email).await;
    let page = browser.ask(&service, &request(&client(&service).await, "read")).await;
    let form = PageForm::of(&page);
    let (repository, both) =
        (RepositoryId::mint().to_string(), [("flow", &*form.flow), ("token", &*form.token)]);
    for choice in [
        &[][..],
        &[("decision", "allow")],
        &[("decision", "ALLOW"), ("repositories", "all")],
        &[("decision", "yes"), ("repositories", "all")],
        &[("decision", "allow"), ("decision", "deny"), ("repositories", "all")],
        &[("decision", "allow"), ("decision", "allow"), ("repositories", "all")],
        &[("decision", "allow"), ("repositories", "none")],
        &[("decision", "allow"), ("repositories", "some")],
        &[("decision", "allow"), ("repositories", "some"), ("repository", "")],
        &[("decision", "allow"), ("repositories", "some"), ("repository", "*")],
        &[("decision", "allow"), ("repositories", "some"), ("repository", &repository), ("repository", "x")],
        &[
            ("decision", "allow"),
            ("repositories", "all"),
            ("repositories", "some"),
            ("repository", &repository),
        ],
    ] {
        stays(&browser.clone().send(&service, AUTHORIZE, &[&both[..], choice].concat()).await, 400);
    }
    assert_eq!(given(&service).await, (0, 0));
    assert!(parameter(&browser.decide(&service, &page, "allow").await, "code").is_some(), "it is still open");
}
