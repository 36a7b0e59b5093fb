use http::Method;
use okt_testkit::accounts::{
    Barrier, KEYS, Person, api_key, api_key_in, count, give, register, repository, send, sql, tables_with,
    take,
};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::accounts::fields;

const ME: &str = "/api/v1/users/me";
const USERS: &str = "/api/v1/admin/users";

async fn create(service: &TestService, owner: &Person, body: &Value) -> Answer {
    send(service, &owner.token, Method::POST, KEYS, body).await
}

async fn revoke(service: &TestService, token: &str, id: &str) -> Answer {
    Answer::of(service.request(Method::DELETE, &format!("{KEYS}/{id}")).bearer_auth(token)).await
}

async fn status(service: &TestService, token: &str, path: &str) -> u16 {
    service.get_as(token, path).await.status.as_u16()
}

fn named(name: &str) -> Value {
    json!({"name": name, "permissions": ["source:read"]})
}

#[tokio::test]
async fn a_key_is_shown_once_and_nowhere_else() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let repository = repository(&service).await;
    let body = json!({"name": " My key ", "permissions": ["source:write", "source:read", "source:read"],
                      "repository_id": repository, "expires_in_days": 7});
    let created = create(&service, &ada, &body).await;
    assert_eq!(created.status, 201, "{created:?}");
    let key = created.json();
    let shown = [
        "created_at",
        "expires_at",
        "id",
        "last_used_at",
        "name",
        "permissions",
        "prefix",
        "repository_id",
        "revoked_at",
    ];
    let mut with_token = shown.to_vec();
    with_token.push("token");
    assert_eq!(fields(&key), with_token);
    assert_eq!(created.header("location"), format!("{KEYS}/{}", key["id"].as_str().unwrap()));
    assert_eq!((&key["name"], &key["repository_id"]), (&json!("My key"), &json!(repository)));
    assert_eq!(key["permissions"], json!(["source:read", "source:write"]));
    assert_eq!((&key["last_used_at"], &key["revoked_at"]), (&Value::Null, &Value::Null));
    let days = count(
        &service,
        "SELECT round(extract(epoch FROM expires_at - created_at) / 86400)::bigint FROM okt_system.api_keys",
    );
    assert_eq!(days.await, 7);

    let token = key["token"].as_str().unwrap();
    let rest = token.strip_prefix("okt_").unwrap();
    assert!(rest.len() == 46 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{rest}");
    assert_eq!(key["prefix"], token[..12]);

    assert_eq!(status(&service, token, ME).await, 200);
    assert_eq!(status(&service, token, USERS).await, 403);
    let listed = service.get_as(&ada.token, KEYS).await;
    assert_eq!(fields(&listed.json()["data"][0]), shown);
    assert!(listed.json()["data"][0]["last_used_at"].is_string(), "{}", listed.text);
    let audit = service.get_as(&ada.token, "/api/v1/admin/audit?limit=200").await;
    let secret = &token[12..];
    for text in [&listed.text, &audit.text] {
        assert!(text.contains(key["id"].as_str().unwrap()) && !text.contains(secret), "{text}");
    }
    assert_eq!(tables_with(&service, secret).await, [""; 0]);
    assert_eq!(tables_with(&service, &token[..12]).await, ["api_keys"], "the search finds what is there");
}

#[tokio::test]
async fn a_mistyped_key_is_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, token) = api_key(&service, &ada, &["source:read"]).await;
    let other = |at: usize| if token.as_bytes()[at] == b'a' { "b" } else { "a" };
    for at in [4, 20, 43, 44, 49] {
        let typo = format!("{}{}{}", &token[..at], other(at), &token[at + 1..]);
        let answer = service.get_as(&typo, ME).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"), "{at}");
    }
    for wrong in [&token[..49], &token[4..], &token.to_uppercase(), &format!("{token}0")] {
        assert_eq!(status(&service, wrong, ME).await, 401, "{wrong}");
    }
    assert_eq!(status(&service, &token, ME).await, 200);
}

/// A stolen key must not be made permanent, nor lock its owner out.
#[tokio::test]
async fn a_key_makes_no_keys_and_changes_no_profile() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let everything: Vec<_> =
        ["user:read", "user:write", "user:update", "user:manage", "role:manage"].to_vec();
    let (id, key) = api_key(&service, &ada, &everything).await;
    let own = format!("/api/v1/users/{}", ada.id);
    for (method, path, body) in [
        (Method::POST, KEYS, named("another")),
        (Method::GET, KEYS, Value::Null),
        (Method::DELETE, &format!("{KEYS}/{id}"), Value::Null),
        (Method::PUT, &own, json!({"email": "mallory@example.org"})),
        (Method::POST, "/api/v1/auth/logout", Value::Null),
    ] {
        let answer = send(&service, &key, method.clone(), path, &body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (403, "forbidden"),
            "{method} {path}"
        );
    }
    assert_eq!(status(&service, &key, ME).await, 200, "it was not revoked");
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.api_keys").await, 1);
}

#[tokio::test]
async fn a_key_does_what_it_is_for_and_nothing_else() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "admin").await;
    let (_, users) = api_key(&service, &admin, &["user:read"]).await;
    let (_, roles) = api_key(&service, &admin, &["role:read"]).await;
    let (_, bound) =
        api_key_in(&service, &admin, &["user:read", "role:read"], repository(&service).await.uuid()).await;
    let seen = async |key: &str| {
        let paths = [USERS, "/api/v1/admin/permissions", "/api/v1/admin/audit"];
        let statuses = paths.map(|path| status(&service, key, path));
        futures_util::future::join_all(statuses).await
    };
    assert_eq!(seen(&users).await, [200, 403, 403]);
    assert_eq!(seen(&roles).await, [403, 200, 403]);
    assert_eq!(seen(&bound).await, [403, 403, 403], "the system is outside of every repository");
    let body = json!({"user_id": admin.id, "role": "user", "domain": "system"});
    assert_eq!(send(&service, &roles, Method::PUT, "/api/v1/admin/users/roles", &body).await.status, 403);
}

#[tokio::test]
async fn a_key_loses_what_its_owner_loses_and_gets_it_back_with_them() {
    let service = TestService::product(&[]).await;
    register(&service, "admin").await;
    let ada = register(&service, "ada").await;
    let (_, key) = api_key(&service, &ada, &["user:read"]).await;
    assert_eq!(status(&service, &key, USERS).await, 403, "its owner never had it");
    give(&service, ada.id, "system", "sysadmin").await;
    assert_eq!(status(&service, &key, USERS).await, 200);
    take(&service, ada.id, "system", "sysadmin").await;
    let refused = service.get_as(&key, USERS).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (403, "forbidden"));
}

#[tokio::test]
async fn revoked_and_expired_keys_are_dead_and_free_their_place() {
    let service = TestService::product(&[("SVC__API_KEYS__MAX_PER_USER", "3")]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    let (revoked_id, revoked) = api_key(&service, &ada, &["source:read"]).await;
    let (expired_id, expired) = api_key(&service, &ada, &["source:read"]).await;
    let (_, alive) = api_key(&service, &ada, &["source:read"]).await;
    let full = create(&service, &ada, &named("fourth")).await;
    assert_eq!((full.status.as_u16(), full.problem().as_str()), (409, "conflict"));
    api_key(&service, &bob, &["source:read"]).await;

    assert_eq!(revoke(&service, &bob.token, &revoked_id).await.status, 404, "it is not bob's");
    assert_eq!(status(&service, &revoked, ME).await, 200);
    assert_eq!(revoke(&service, &ada.token, &revoked_id).await.status, 204);
    assert_eq!(revoke(&service, &ada.token, &revoked_id).await.status, 404, "there is no such live key");
    let refused = service.get_as(&revoked, ME).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (401, "unauthenticated"));
    sql(
        &service,
        &format!(
            "UPDATE okt_system.api_keys SET expires_at = now() - interval '1 s' WHERE id = '{expired_id}'"
        ),
    )
    .await;
    assert_eq!(status(&service, &expired, ME).await, 401);
    assert_eq!(status(&service, &alive, ME).await, 200);

    for name in ["fourth", "fifth"] {
        assert_eq!(create(&service, &ada, &named(name)).await.status, 201, "{name}");
    }
    assert_eq!(create(&service, &ada, &named("sixth")).await.status, 409);
    let listed = service.get_as(&ada.token, KEYS).await.json();
    let rows = listed["data"].as_array().unwrap();
    assert_eq!(rows.len(), 5, "dead ones are listed too");
    let of = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    assert!(of(&revoked_id)["revoked_at"].is_string() && of(&expired_id)["revoked_at"].is_null());
}

#[tokio::test]
async fn ten_who_want_the_last_place_get_one() {
    let three = ("SVC__API_KEYS__MAX_PER_USER", "3");
    let service = TestService::product(&[&Barrier::PATIENT[..], &[three]].concat()).await;
    let beside = service.beside().await;
    let ada = register(&service, "ada").await;
    for _ in 0..2 {
        api_key(&service, &ada, &["source:read"]).await;
    }
    let barrier = Barrier::before(&service, "api_keys").await;
    let mut racers = tokio::task::JoinSet::new();
    for number in 0..10 {
        let service = if number % 2 == 0 { &service } else { &beside };
        let request = service.request(Method::POST, KEYS).bearer_auth(&ada.token);
        racers.spawn(Answer::of(request.json(&named("last"))));
    }
    barrier.open_for(10).await;
    let mut statuses: Vec<_> = racers.join_all().await.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.api_keys").await, 3);
}

#[tokio::test]
async fn zero_keys_per_user_are_the_built_in_twenty() {
    let service = TestService::product(&[("SVC__API_KEYS__MAX_PER_USER", "0")]).await;
    let ada = register(&service, "ada").await;
    for number in 0..21 {
        let answer = create(&service, &ada, &named("a key")).await;
        assert_eq!(answer.status.as_u16(), if number < 20 { 201 } else { 409 }, "{number}");
    }
}

#[tokio::test]
async fn a_key_that_can_not_be_is_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let with = |field: &str, value: Value| {
        let mut body = named("a key");
        body[field] = value;
        body
    };
    for (body, field) in [
        (with("name", json!("")), "name"),
        (with("name", json!("  ")), "name"),
        (with("name", json!("n".repeat(201))), "name"),
        (with("permissions", json!([])), "permissions"),
        (with("permissions", json!(["source:fly"])), "permissions"),
        (with("permissions", json!(["source:read", "everything"])), "permissions"),
        (with("permissions", json!(["*:*"])), "permissions"),
        (with("expires_in_days", json!(0)), "expires_in_days"),
        (with("expires_in_days", json!(91)), "expires_in_days"),
        (with("expires_in_days", json!(4_000_000_000_u64)), "expires_in_days"),
        (with("expires_in_days", json!(-1)), "expires_in_days"),
        (with("repository_id", json!("here")), "repository_id"),
    ] {
        let answer = create(&service, &ada, &body).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{body}");
        assert_eq!(answer.json()["errors"][0]["field"], field, "{body}");
    }
    assert_eq!(create(&service, &ada, &with("expires_in_days", json!(90))).await.status, 201);
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.api_keys").await, 1);
}

#[tokio::test]
async fn lifetimes_follow_the_settings() {
    let lifetime = "SELECT coalesce(round(extract(epoch FROM expires_at - created_at) / 86400)::bigint, 0)
                      FROM okt_system.api_keys ORDER BY id DESC LIMIT 1";
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    assert!(create(&service, &ada, &named("a key")).await.json()["expires_at"].is_string());
    assert_eq!(count(&service, lifetime).await, 90, "without one asked for, the upper bound");

    let service = TestService::product(&[("SVC__API_KEYS__MAX_TTL", "90m")]).await;
    let ada = register(&service, "ada").await;
    assert_eq!(create(&service, &ada, &named("a key")).await.status, 201);
    let minutes =
        "SELECT round(extract(epoch FROM expires_at - created_at) / 60)::bigint FROM okt_system.api_keys";
    assert_eq!(count(&service, minutes).await, 90, "also one of less than a day");

    let service = TestService::product(&[("SVC__API_KEYS__MAX_TTL", "0s")]).await;
    let ada = register(&service, "ada").await;
    assert_eq!(create(&service, &ada, &named("a key")).await.json()["expires_at"], Value::Null);
    assert_eq!(count(&service, lifetime).await, 0, "without either, none");

    let capless = [("SVC__API_KEYS__DEFAULT_TTL", "30"), ("SVC__API_KEYS__MAX_TTL", "0s")];
    let service = TestService::product(&capless).await;
    let ada = register(&service, "ada").await;
    assert_eq!(create(&service, &ada, &named("a key")).await.status, 201);
    assert_eq!(count(&service, lifetime).await, 30, "the default");
    let mut decade = named("a key");
    decade["expires_in_days"] = json!(3650);
    assert_eq!(create(&service, &ada, &decade).await.status, 201);
    assert_eq!(count(&service, lifetime).await, 3650);
}

#[tokio::test]
async fn a_lifetime_beyond_all_calendars_is_no_fault_of_ours() {
    let service = TestService::product(&[("SVC__API_KEYS__MAX_TTL", "0s")]).await;
    let ada = register(&service, "ada").await;
    for days in [200_000_000, i32::MAX.unsigned_abs(), u32::MAX] {
        let mut body = named("a key");
        body["expires_in_days"] = json!(days);
        let answer = create(&service, &ada, &body).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{days} days");
    }
}

#[tokio::test]
async fn the_same_idempotency_key_gets_the_same_token_and_one_key() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let ask = async || {
        let request = service.request(Method::POST, KEYS).bearer_auth(&ada.token);
        Answer::of(request.header("idempotency-key", "once").json(&named("a key"))).await
    };
    let (first, again) = (ask().await, ask().await);
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.text, again.text);
    assert_eq!(first.header("location"), again.header("location"));
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), ("", "true"));
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.api_keys").await, 1);

    let token = first.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(status(&service, &token, ME).await, 200);
    assert_eq!(
        count(&service, "SELECT count(*) FROM okt_system.idempotency_keys WHERE status = 201").await,
        1
    );
    assert_eq!(tables_with(&service, &token[12..]).await, [""; 0]);
}

#[tokio::test]
async fn lists_are_paged_and_each_sees_their_own() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    for number in 0..5 {
        assert_eq!(create(&service, &ada, &named(&format!("key {number}"))).await.status, 201);
    }
    api_key(&service, &bob, &["source:read"]).await;
    let (mut names, mut path) = (Vec::new(), format!("{KEYS}?limit=2"));
    loop {
        let page = service.get_as(&ada.token, &path).await.json();
        names.extend(
            page["data"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{KEYS}?limit=2&cursor={cursor}");
    }
    assert_eq!(names, ["key 0", "key 1", "key 2", "key 3", "key 4"]);
}
