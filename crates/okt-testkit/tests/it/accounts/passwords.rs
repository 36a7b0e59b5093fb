use http::Method;
use okt_testkit::accounts::{
    Barrier, PASSWORD, Person, access_token, api_key, count, login, post, refresh, register, send,
};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{self, Browser, client, request, tokens};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

const CHANGE: &str = "/api/v1/users/me/password";
const LOGIN: &str = "/api/v1/auth/login";
const ME: &str = "/api/v1/users/me";
const NEW: &str = "another battery staple";

async fn change(service: &TestService, token: &str, body: &Value) -> Answer {
    send(service, token, Method::POST, CHANGE, body).await
}

async fn me(service: &TestService, token: &str) -> u16 {
    service.get_as(token, ME).await.status.as_u16()
}

async fn sign_in(service: &TestService, person: &Person, password: &str) -> u16 {
    post(service, LOGIN, &json!({"email": person.email, "password": password})).await.status.as_u16()
}

fn field(answer: &Answer) -> String {
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{answer:?}");
    answer.json()["errors"][0]["field"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_password_counts_and_ends_every_other_session_and_grant_on_every_process() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let (here, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let there = login(&beside, &here.email).await;
    let client = client(&service).await;
    let given = tokens(&service, &client, &here.email, "read").await;
    let text = |name: &str| given[name].as_str().unwrap().to_owned();
    let (access, granted) = (text("access_token"), text("refresh_token"));
    let (_, key) = api_key(&service, &here, &["source:read"]).await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client, "read")).await;
    let question = browser.sign_in(&service, &page, &here.email).await;
    assert_eq!([me(&beside, &there.token).await, me(&service, &access).await], [200, 200]);

    let changed = change(&service, &here.token, &json!({"current": PASSWORD, "new": NEW})).await;
    assert_eq!((changed.status.as_u16(), changed.text.as_str()), (204, ""), "{changed:?}");

    for process in [&service, &beside] {
        assert_eq!(me(process, &here.token).await, 200, "the session that asked goes on");
        assert_eq!(me(process, &there.token).await, 401, "another session");
        assert_eq!(me(process, &key).await, 200, "keys have nothing to do with it");
        assert_eq!(me(process, &bob.token).await, 200, "nor have other people");
        assert_eq!(sign_in(process, &here, PASSWORD).await, 401);
        assert_eq!(sign_in(process, &here, NEW).await, 200);
    }
    assert_eq!(me(&service, &access).await, 401, "a client's token");
    assert_eq!(refresh(&service, &there.refresh).await.status, 401);
    assert_eq!(refresh(&service, &here.refresh).await.status, 200);
    assert_eq!(oauth::error(&oauth::refresh(&service, &client, &granted).await), "invalid_grant");
    let form = oauth::PageForm::of(&question);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")];
    let late = browser.send(&service, oauth::AUTHORIZE, &fields).await;
    assert_eq!(late.status, 400, "what was asked before is over: {late:?}");
    let again = browser.ask(&service, &request(&client, "read")).await;
    assert!(
        again.text.contains("type=\"password\""),
        "and whoever sits there signs in again: {}",
        again.text
    );

    let audited = "SELECT count(*) FROM okt_system.audit WHERE action = 'password.changed'";
    assert_eq!(count(&service, audited).await, 1);
}

#[tokio::test]
async fn the_present_password_is_asked_for_and_the_new_one_is_as_sound_as_any() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    for (body, wrong) in [
        (json!({"current": "not mine at all", "new": NEW}), "current"),
        (json!({"current": "", "new": NEW}), "current"),
        (json!({"current": PASSWORD, "new": "short"}), "new"),
        (json!({"current": PASSWORD, "new": "x".repeat(257)}), "new"),
        (json!({"current": PASSWORD, "new": NEW, "more": 1}), "more"),
    ] {
        assert_eq!(field(&change(&service, &ada.token, &body).await), wrong, "{body}");
    }
    for body in [json!({"current": PASSWORD}), json!({"new": NEW}), json!({})] {
        assert_eq!(change(&service, &ada.token, &body).await.status, 422, "{body}");
    }
    assert_eq!(sign_in(&service, &ada, PASSWORD).await, 200, "nothing was changed");

    let public = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    let ada = register(&public, "ada").await;
    assert_eq!(
        field(&change(&public, &ada.token, &json!({"current": PASSWORD, "new": "Password1"})).await),
        "new"
    );
}

#[tokio::test]
async fn neither_a_key_nor_a_client_changes_a_password() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, key) = api_key(&service, &ada, &["user:manage", "user:update"]).await;
    let client = access_token(&service, ada.id, "user:manage user:update").await;
    let body = json!({"current": PASSWORD, "new": NEW});
    assert_eq!(change(&service, &key, &body).await.status, 403);
    assert_eq!(change(&service, &client, &body).await.status, 401);
    assert_eq!(sign_in(&service, &ada, PASSWORD).await, 200);
}

/// Whoever finds a session open guesses no more often than whoever has none.
#[tokio::test]
async fn the_twenty_first_change_within_an_hour_is_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut statuses = Vec::new();
    for _ in 0..21 {
        let body = json!({"current": "a wrong one", "new": NEW});
        statuses.push(change(&service, &ada.token, &body).await.status.as_u16());
    }
    assert_eq!(statuses, [vec![422; 20], vec![429]].concat());
}

/// All of them have shown the old password before it is changed, and none has a session yet.
#[tokio::test]
async fn who_signs_in_while_the_password_is_changed_has_no_session_that_stays() {
    let service = TestService::product(&Barrier::PATIENT).await;
    let ada = register(&service, "ada").await;
    let barrier = Barrier::before(&service, "audit").await;
    let mut late = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let body = json!({"email": ada.email, "password": PASSWORD});
        late.spawn(Answer::of(service.request(Method::POST, LOGIN).json(&body)));
    }
    let body = json!({"current": PASSWORD, "new": NEW});
    let changing = change(&service, &ada.token, &body);
    let (changed, ()) = tokio::join!(changing, barrier.open_for(5));
    assert_eq!(changed.status, 204, "{changed:?}");
    for answer in late.join_all().await {
        if answer.status == 200 {
            let token = answer.json()["token"].as_str().unwrap().to_owned();
            assert_eq!(me(&service, &token).await, 401, "a session that began with the old password goes on");
        } else {
            assert_eq!(answer.status, 401, "{answer:?}");
        }
    }
    assert_eq!(me(&service, &ada.token).await, 200);
}

#[tokio::test]
async fn of_two_changes_at_once_one_counts() {
    let service = TestService::product(&Barrier::PATIENT).await;
    let ada = register(&service, "ada").await;
    let other = login(&service, &ada.email).await;
    let barrier = Barrier::before(&service, "users").await;
    let (first, second) = (
        json!({"current": PASSWORD, "new": "the first of two"}),
        json!({"current": PASSWORD, "new": "the second of two"}),
    );
    let (first, second, ()) = tokio::join!(
        change(&service, &ada.token, &first),
        change(&service, &other.token, &second),
        barrier.open_for(2)
    );
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 422]);
    let signed_in = [
        sign_in(&service, &ada, PASSWORD).await,
        sign_in(&service, &ada, "the first of two").await,
        sign_in(&service, &ada, "the second of two").await,
    ];
    assert_eq!(signed_in.iter().filter(|status| **status == 200).count(), 1, "{signed_in:?}");
    assert_eq!(signed_in[0], 401);
}

#[tokio::test]
async fn a_profile_says_where_passwords_are_changed_instead_of_passing_one_over() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let own = format!("/api/v1/users/{}", ada.id);
    for (who, body) in [
        (&ada, json!({"password": NEW})),
        (&ada, json!({"name": "Ada", "password": NEW})),
        (&ada, json!({"email": ada.email, "password": NEW})),
        (&ada, json!({"email": "new@example.org", "password": NEW})),
        (&admin, json!({"password": NEW})),
        (&admin, json!({"email": "new@example.org", "password": NEW})),
    ] {
        let answer = send(&service, &who.token, Method::PUT, &own, &body).await;
        assert_eq!(field(&answer), "password", "{body}");
        let message = answer.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("POST /api/v1/users/me/password"), "{message}");
    }
    let right = json!({"email": "new@example.org", "password": PASSWORD});
    assert_eq!(send(&service, &ada.token, Method::PUT, &own, &right).await.status, 200);
    let unknown = send(&service, &ada.token, Method::PUT, &own, &json!({"role": "sysadmin"})).await;
    assert_eq!(field(&unknown), "role");
}
