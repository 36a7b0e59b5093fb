//! Accounts that can't be used.

use http::Method;
use okt_testkit::accounts::{
    Barrier, PASSWORD, Person, api_key, count, give, login, post, refresh, register, send, sql,
};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{self, Browser, PageForm, SIGN_IN, client, request, tokens};
use okt_testkit::served::TestService;
use serde_json::json;
use uuid::Uuid;

const LOGIN: &str = "/api/v1/auth/login";
const ME: &str = "/api/v1/users/me";

async fn set(service: &TestService, by: &Person, whom: Uuid, status: &str) -> Answer {
    let path = format!("/api/v1/admin/users/{whom}/status");
    send(service, &by.token, Method::PUT, &path, &json!({"status": status})).await
}

async fn me(service: &TestService, token: &str) -> u16 {
    service.get_as(token, ME).await.status.as_u16()
}

async fn shown(service: &TestService, admin: &Person, whom: &Person) -> String {
    let users = service.get_as(&admin.token, "/api/v1/admin/users").await.json();
    let rows = users["data"].as_array().unwrap().clone();
    let row = rows.into_iter().find(|row| row["id"] == json!(whom.id)).unwrap();
    row["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nothing_of_a_disabled_account_works_with_the_next_request_on_every_process() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let there = login(&beside, &ada.email).await;
    let client = client(&service).await;
    let given = tokens(&service, &client, &ada.email, "read").await;
    let text = |name: &str| given[name].as_str().unwrap().to_owned();
    let (access, granted) = (text("access_token"), text("refresh_token"));
    let unused = oauth::code(&service, &client, &ada.email, "read").await;
    let (_, key) = api_key(&service, &ada, &["source:read"]).await;
    let mut browser = Browser::default();
    let page = browser.ask(&service, &request(&client, "read")).await;
    let question = browser.sign_in(&service, &page, &ada.email).await;
    for token in [&ada.token, &there.token, &key] {
        assert_eq!(me(&beside, token).await, 200);
    }
    assert_eq!(me(&service, &access).await, 200);

    assert_eq!(set(&service, &admin, ada.id, "disabled").await.status, 204);
    for process in [&service, &beside] {
        for (what, token) in [("session", &ada.token), ("session", &there.token), ("key", &key)] {
            assert_eq!(me(process, token).await, 401, "{what}");
        }
        let body = json!({"email": ada.email, "password": PASSWORD});
        assert_eq!(post(process, LOGIN, &body).await.status, 401);
    }
    assert_eq!(me(&service, &access).await, 401, "a client");
    for token in [&ada.refresh, &there.refresh] {
        assert_eq!(refresh(&service, token).await.status, 401);
    }
    assert_eq!(oauth::error(&oauth::refresh(&service, &client, &granted).await), "invalid_grant");
    assert_eq!(oauth::error(&oauth::exchange(&service, &client, &unused).await), "invalid_grant");
    let form = PageForm::of(&question);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")];
    assert_eq!(browser.send(&service, oauth::AUTHORIZE, &fields).await.status, 400);
    let mut browser = Browser::default();
    let form = PageForm::of(&browser.ask(&service, &request(&client, "read")).await);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("email", &ada.email), ("password", PASSWORD)];
    assert_eq!(browser.send(&service, SIGN_IN, &fields).await.status, 401);
    assert_eq!(shown(&service, &admin, &ada).await, "disabled");
    assert_eq!(set(&service, &admin, ada.id, "disabled").await.status, 204, "twice is the same as once");

    assert_eq!(set(&service, &admin, ada.id, "active").await.status, 204);
    assert_eq!(shown(&service, &admin, &ada).await, "active");
    let now = [me(&beside, &ada.token).await, me(&service, &access).await, me(&beside, &key).await];
    assert_eq!(now, [401, 401, 200], "what ended stays so, and keys are there again");
    assert_eq!(me(&service, &login(&service, &ada.email).await.token).await, 200);
    let audited = "SELECT count(*) FROM okt_system.audit WHERE action IN ('user.disabled', 'user.enabled')";
    assert_eq!(count(&service, audited).await, 2);
    assert!(
        count(&service, "SELECT count(*) FROM okt_system.audit WHERE action = 'login.disabled'").await > 0
    );
}

/// Else whoever guesses would learn that the guess was right.
#[tokio::test]
async fn the_right_password_of_a_disabled_account_is_answered_like_a_wrong_one() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    assert_eq!(set(&service, &admin, ada.id, "disabled").await.status, 204);
    let mut answers = Vec::new();
    for (email, password) in
        [(&*ada.email, PASSWORD), (&*ada.email, "a wrong one"), ("nobody@example.org", PASSWORD)]
    {
        let answer = post(&service, LOGIN, &json!({"email": email, "password": password})).await;
        let mut body = answer.json();
        body["request_id"] = json!("");
        let mut headers: Vec<_> = answer.headers.keys().map(|name| name.as_str().to_owned()).collect();
        headers.sort();
        answers.push((answer.status, body, headers));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

#[tokio::test]
async fn nobody_disables_themselves_and_who_may_not_manage_users_disables_nobody() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let refused = set(&service, &admin, admin.id, "disabled").await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "conflict"));
    assert_eq!(set(&service, &ada, admin.id, "disabled").await.status, 403);
    assert_eq!(set(&service, &admin, Uuid::nil(), "disabled").await.status, 404);
    let unknown = set(&service, &admin, ada.id, "asleep").await;
    assert_eq!((unknown.status.as_u16(), unknown.problem().as_str()), (422, "invalid"));
    assert!(unknown.text.contains("active") && unknown.text.contains("disabled"), "{unknown:?}");
    for person in [&admin, &ada] {
        assert_eq!(me(&service, &person.token).await, 200);
    }
}

#[tokio::test]
async fn of_two_sysadmins_who_disable_each_other_at_once_one_stays() {
    let service = TestService::product(&Barrier::PATIENT).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let sysadmins =
        "SELECT count(*) FROM okt_system.role_assignments a JOIN okt_system.users u ON u.id = a.user_id
                      WHERE a.role = 'sysadmin' AND u.disabled_at IS NULL";
    give(&service, bob.id, "system", "sysadmin").await;
    let barrier = Barrier::before(&service, "users").await;
    let both = async {
        tokio::join!(set(&service, &ada, bob.id, "disabled"), set(&service, &bob, ada.id, "disabled"))
    };
    let ((first, second), ()) = tokio::join!(both, barrier.open_for(2));
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409], "{first:?} {second:?}");
    assert_eq!(count(&service, sysadmins).await, 1);
}

#[tokio::test]
async fn a_disabled_sysadmin_does_not_count_when_the_last_one_leaves() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    give(&service, bob.id, "system", "sysadmin").await;
    assert_eq!(set(&service, &ada, bob.id, "disabled").await.status, 204);
    let leave = json!({"user_id": ada.id, "role": "sysadmin", "domain": "system"});
    let roles = "/api/v1/admin/users/roles";
    assert_eq!(send(&service, &ada.token, Method::DELETE, roles, &leave).await.status, 409);
    assert_eq!(set(&service, &ada, bob.id, "active").await.status, 204);
    assert_eq!(send(&service, &ada.token, Method::DELETE, roles, &leave).await.status, 204);
}

/// Also where it was done by SQL, without ending anything.
#[tokio::test]
async fn an_account_that_is_disabled_in_the_database_is_disabled() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, key) = api_key(&service, &ada, &["source:read"]).await;
    sql(&service, "UPDATE okt_system.users SET disabled_at = now()").await;
    assert_eq!([me(&service, &ada.token).await, me(&service, &key).await], [401, 401]);
    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);
}
