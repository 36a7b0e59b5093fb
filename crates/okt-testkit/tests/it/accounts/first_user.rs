use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{Barrier, PASSWORD, count, login, post, register, sql};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::json;

const REGISTER: &str = "/api/v1/auth/register";
const SYSADMINS: &str =
    "SELECT count(*) FROM okt_system.role_assignments WHERE domain = 'system' AND role = 'sysadmin'";
const USERS: &str = "SELECT count(*) FROM okt_system.users";

const EMAIL: (&str, &str) = ("SVC_BOOTSTRAP_DEFAULT_ADMIN_EMAIL", "Root@example.org");
const SECRET: (&str, &str) = ("SVC_BOOTSTRAP_DEFAULT_ADMIN_PASSWORD", PASSWORD);
const NAME: (&str, &str) = ("SVC_BOOTSTRAP_DEFAULT_ADMIN_DISPLAY_NAME", "Root");
const SEED: (&str, &str) = ("SVC__BOOTSTRAP__DEFAULT_ADMIN", "true");

/// Whoever finds too many passwords before theirs tries again, as they are told to.
async fn patiently(request: reqwest::RequestBuilder) -> Answer {
    loop {
        let answer = Answer::of(request.try_clone().unwrap()).await;
        if answer.status != 503 {
            return answer;
        }
        assert_eq!(answer.header("retry-after"), "1");
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}

/// Passwords are hashed two at a time, which would spread the fifty out; at the barrier the first twenty come together
/// again, and the others are right behind them. Each round on a fresh database; `OKT_FIRST_USER_ROUNDS=20` is the long form.
#[tokio::test]
async fn fifty_first_registrations_at_once_make_one_sysadmin() {
    let rounds =
        std::env::var("OKT_FIRST_USER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4);
    let narrow =
        [("SVC__DATABASES__DEFAULT__MAX_CONNS", "20"), ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "20s")];
    let settings = [&Barrier::PATIENT[..], &narrow].concat();
    for round in 0..rounds {
        let service = TestService::product(&settings).await;
        let barrier = Barrier::before(&service, "users").await;
        let mut people = tokio::task::JoinSet::new();
        for number in 0..50 {
            let account = json!({"email": format!("p{number}@example.org"), "password": PASSWORD});
            people.spawn(patiently(service.request(Method::POST, REGISTER).json(&account)));
        }
        barrier.open_for(20).await;
        for answer in people.join_all().await {
            assert_eq!(answer.status, 201, "round {round}: {answer:?}");
        }
        assert_eq!(count(&service, USERS).await, 50, "round {round}");
        assert_eq!(count(&service, SYSADMINS).await, 1, "round {round}");
    }
}

#[tokio::test]
async fn the_first_is_promoted_and_the_second_is_not() {
    let service = TestService::product(&[]).await;
    let first = register(&service, "first").await;
    let second = register(&service, "second").await;
    let roles =
        async |token: &str| service.get_as(token, "/api/v1/users/me").await.json()["system_roles"].clone();
    assert_eq!(roles(&first.token).await, json!(["sysadmin", "user"]));
    assert_eq!(roles(&second.token).await, json!(["user"]));
}

#[tokio::test]
async fn with_promotion_off_nobody_becomes_sysadmin() {
    for off in ["false", "0", "FALSE"] {
        let service = TestService::product(&[("SVC_BOOTSTRAP_AUTO_PROMOTE", off)]).await;
        service.api.app.bootstrap().await.unwrap();
        register(&service, "first").await;
        assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (1, 0), "{off}");
    }
}

#[tokio::test]
async fn the_configured_administrator_is_made_once_and_wins_over_promotion() {
    let service = TestService::product(&[SEED, EMAIL, SECRET, NAME]).await;
    service.api.app.bootstrap().await.unwrap();
    service.api.app.bootstrap().await.unwrap();
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (1, 1));
    let root = login(&service, "root@example.org").await;
    let me = service.get_as(&root.token, "/api/v1/users/me").await.json();
    assert_eq!((&me["email"], &me["name"]), (&json!("Root@example.org"), &json!("Root")));
    assert_eq!(me["system_roles"], json!(["sysadmin", "user"]));

    register(&service, "first").await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (2, 1));
}

#[tokio::test]
async fn with_a_value_missing_or_the_switch_off_no_administrator_is_made() {
    for settings in [[SEED, EMAIL, SECRET], [SEED, EMAIL, NAME], [SEED, SECRET, NAME], [EMAIL, SECRET, NAME]]
    {
        let service = TestService::product(&settings).await;
        service.api.app.bootstrap().await.unwrap();
        assert_eq!(count(&service, USERS).await, 0, "{settings:?}");
        register(&service, "first").await;
        assert_eq!(count(&service, SYSADMINS).await, 1, "the first to register is promoted instead");
    }
}

#[tokio::test]
async fn where_somebody_is_no_administrator_is_made() {
    let service = TestService::product(&[SEED, EMAIL, SECRET, NAME]).await;
    let first = register(&service, "first").await;
    sql(&service, "DELETE FROM okt_system.role_assignments").await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (1, 0));
    let login = json!({"email": "root@example.org", "password": PASSWORD});
    assert_eq!(post(&service, "/api/v1/auth/login", &login).await.status, 401);

    sql(&service, "DELETE FROM okt_system.users").await;
    service.api.app.bootstrap().await.unwrap();
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (1, 1));
    assert_eq!(service.get_as(&first.token, "/api/v1/users/me").await.status, 401);
}

/// As many processes as one likes start on a fresh database.
#[tokio::test]
async fn ten_starts_at_once_make_one_administrator() {
    let service = TestService::product(&[&Barrier::PATIENT[..], &[SEED, EMAIL, SECRET, NAME]].concat()).await;
    let barrier = Barrier::before(&service, "users").await;
    let starts = futures_util::future::join_all((0..10).map(|_| service.api.app.bootstrap()));
    let (starts, ()) = tokio::join!(starts, barrier.open_for(10));
    for start in starts {
        start.unwrap();
    }
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (1, 1));
}
