use http::Method;
use okt_jobs::{Expired, delete_expired};
use okt_testkit::accounts::{count, register, send, sql};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{Browser, CALLBACK, REGISTER, client, code, error, refresh, request, tokens};
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::oauth::registration::{CLIENTS, registered, text};
use crate::oauth::stays;

async fn manage(service: &TestService, method: Method, client: &Value, token: &str, body: &Value) -> Answer {
    let path = format!("{REGISTER}/{}", text(client, "client_id"));
    send(service, token, method, &path, body).await
}

#[tokio::test]
async fn a_registration_is_managed_with_its_own_token_which_changes_every_time() {
    let service = TestService::product(&[]).await;
    let document = json!({"redirect_uris": [CALLBACK], "client_name": "One", "scope": "read"});
    let mine = registered(&service, &document).await;
    let other = registered(&service, &document).await;
    let first = text(&mine, "registration_access_token");
    let get = async |token: &str| manage(&service, Method::GET, &mine, token, &json!({})).await;

    let read = get(first).await;
    assert_eq!((read.status.as_u16(), read.header("cache-control")), (200, "no-store"));
    let body = read.json();
    for field in ["client_id", "client_name", "redirect_uris", "grant_types", "scope", "client_id_issued_at"]
    {
        assert_eq!(body[field], mine[field], "{field}");
    }
    assert_eq!(body["client_secret"], Value::Null, "told once");
    let second = text(&body, "registration_access_token").to_owned();
    assert_ne!(second, first);
    assert_eq!(get(first).await.status, 401, "the one before is over");

    let change = json!({"redirect_uris": ["https://app.example.org/callback"], "client_name": "Two"});
    let changed = manage(&service, Method::PUT, &mine, &second, &change).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let body = changed.json();
    assert_eq!(
        (&body["client_name"], &body["scope"]),
        (&json!("Two"), &Value::Null),
        "the whole is replaced"
    );
    assert_eq!(body["redirect_uris"], change["redirect_uris"]);
    assert_eq!(get(&second).await.status, 401);
    let third = text(&body, "registration_access_token").to_owned();

    let stranger = text(&other, "registration_access_token");
    let ada = register(&service, "ada").await;
    let secret = text(&mine, "client_secret");
    for wrong in [stranger, "", "nonsense", &ada.token, secret, &third[..third.len() - 1]] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let answer = manage(&service, method.clone(), &mine, wrong, &document).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem().as_str()),
                (401, "unauthenticated"),
                "{method} {wrong}"
            );
        }
    }
    let nobody = json!({"client_id": "client_00000000000000000000000000000000"});
    assert_eq!(manage(&service, Method::GET, &nobody, &third, &json!({})).await.status, 401, "not 404");
    let path = format!("{REGISTER}/{}", text(&mine, "client_id"));
    assert_eq!(service.get(&path).await.status, 401);
    assert_eq!(service.get_as(stranger, &path).await.status, 401);

    let gone = manage(&service, Method::DELETE, &mine, &third, &json!({})).await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    assert_eq!(get(&third).await.status, 401);
    stays(&Browser::default().ask(&service, &request(text(&mine, "client_id"), "read")).await, 400);
    assert_eq!(count(&service, CLIENTS).await, 1, "the other one stays");
}

#[tokio::test]
async fn a_change_is_checked_like_a_registration() {
    let service = TestService::product(&[]).await;
    let mine = registered(&service, &json!({"redirect_uris": [CALLBACK], "client_name": "One"})).await;
    let token = text(&mine, "registration_access_token");
    for (change, expected) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [CALLBACK], "scope": "fly"}), "invalid_client_metadata"),
        (json!({"redirect_uris": [CALLBACK], "client_id": "client_of_somebody"}), "invalid_client_metadata"),
        (
            json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}),
            "invalid_client_metadata",
        ),
    ] {
        let answer = manage(&service, Method::PUT, &mine, token, &change).await;
        assert_eq!((answer.status.as_u16(), error(&answer).as_str()), (400, expected), "{change}");
    }
    let kept = manage(&service, Method::GET, &mine, token, &json!({})).await;
    assert_eq!(kept.status, 200, "a refused change uses nothing up");
    assert_eq!(kept.json()["client_name"], "One");
    assert_eq!(kept.json()["token_endpoint_auth_method"], "client_secret_basic");
}

#[tokio::test]
async fn of_two_changes_at_once_with_one_token_one_counts() {
    let service = TestService::product(&[]).await;
    let mine = registered(&service, &json!({"redirect_uris": [CALLBACK]})).await;
    let token = text(&mine, "registration_access_token");
    let tries = futures_util::future::join_all(
        (0..8).map(|_| manage(&service, Method::GET, &mine, token, &Value::Null)),
    );
    let mut statuses: Vec<_> = tries.await.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200], vec![401; 7]].concat());
}

#[tokio::test]
async fn deleting_a_client_ends_what_people_gave_it() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let document = json!({
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    });
    let mine = registered(&service, &document).await;
    let id = text(&mine, "client_id");
    let tokens = tokens(&service, id, &ada.email, "read").await;
    let access = text(&tokens, "access_token");
    assert_eq!(service.get_as(access, "/api/v1/users/me").await.status, 200);
    let token = text(&mine, "registration_access_token");
    assert_eq!(manage(&service, Method::DELETE, &mine, token, &json!({})).await.status, 204);
    assert_eq!(service.get_as(access, "/api/v1/users/me").await.status, 401);
    let answer = refresh(&service, id, text(&tokens, "refresh_token")).await;
    assert_eq!((answer.status.as_u16(), error(&answer).as_str()), (401, "invalid_client"));
    assert_eq!(service.get_as(&ada.token, "/api/v1/users/me").await.status, 200, "she stays");
}

#[tokio::test]
async fn clients_that_nobody_uses_are_forgotten_and_those_with_a_grant_are_kept() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let mut clients = Vec::new();
    for _ in 0..7 {
        clients.push(client(&service).await);
    }
    let [fresh, idle, lasting, pending, unused, used, dead] = clients.try_into().unwrap();
    let age = async |client: &str, column: &str, age: &str| {
        let change = format!("SET {column} = clock_timestamp() - interval '{age}' WHERE id = '{client}'");
        sql(&service, &format!("UPDATE okt_system.oauth_clients {change}")).await;
    };
    // Never let in: a day.
    age(&fresh, "created_at", "23 hours 59 minutes").await;
    age(&idle, "created_at", "24 hours 1 minute").await;
    // Let in once: 30 days, and as long as something of it lives.
    for client in [&lasting, &unused, &used, &dead] {
        tokens(&service, client, &ada.email, "read").await;
        age(client, "created_at", "100 days").await;
    }
    let ended = |client: &str, how: &str| {
        format!(
            "UPDATE okt_system.sessions SET {how}
              WHERE id IN (SELECT id FROM okt_system.oauth_grants WHERE client_id = '{client}')"
        )
    };
    age(&lasting, "authorized_at", "31 days").await;
    age(&unused, "authorized_at", "30 days 1 minute").await;
    sql(&service, &ended(&unused, "revoked_at = clock_timestamp()")).await;
    age(&used, "authorized_at", "29 days 23 hours").await;
    sql(&service, &ended(&used, "revoked_at = clock_timestamp()")).await;
    age(&dead, "authorized_at", "31 days").await;
    sql(&service, &ended(&dead, "expires_at = clock_timestamp() - interval '1 second'")).await;
    // Let in, and the code is still on its way.
    code(&service, &pending, &ada.email, "read").await;
    age(&pending, "created_at", "2 days").await;

    assert_eq!(delete_expired(service.api.app.databases(), Expired::Clients).await.unwrap(), 3);
    for (name, client, stays) in [
        ("fresh", &fresh, 1),
        ("idle", &idle, 0),
        ("lasting", &lasting, 1),
        ("pending", &pending, 1),
        ("unused", &unused, 0),
        ("used", &used, 1),
        ("dead", &dead, 0),
    ] {
        assert_eq!(count(&service, &format!("{CLIENTS} WHERE id = '{client}'")).await, stays, "{name}");
    }
    assert_eq!(delete_expired(service.api.app.databases(), Expired::Clients).await.unwrap(), 0);
}
