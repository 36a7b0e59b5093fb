use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Method;
use okt_jobs::{Expired, delete_expired};
use okt_testkit::accounts::{self, PASSWORD, Person, count, login, post, refresh, register, send, sql};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::accounts::fields;

const REGISTER: &str = "/api/v1/auth/register";
const LOGIN: &str = "/api/v1/auth/login";
const REFRESH: &str = "/api/v1/auth/refresh";
const LOGOUT: &str = "/api/v1/auth/logout";
const ME: &str = "/api/v1/users/me";

async fn logout(service: &TestService, token: &str) -> Answer {
    Answer::of(service.request(Method::POST, LOGOUT).bearer_auth(token)).await
}

async fn me(service: &TestService, token: &str) -> u16 {
    service.get_as(token, ME).await.status.as_u16()
}

/// The pair that a refresh answers.
fn pair(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("token"), text("refresh_token"))
}

/// Refresh tokens of the one session that nobody used yet.
async fn unused(service: &TestService) -> i64 {
    count(
        service,
        "SELECT count(*) FROM okt_system.refresh_tokens WHERE used_at IS NULL AND superseded_at IS NULL",
    )
    .await
}

#[tokio::test]
async fn answers_have_the_fields_that_are_documented_and_no_others() {
    let service = TestService::product(&[]).await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD, "name": " Ada "});
    let registered = post(&service, REGISTER, &account).await;
    assert_eq!(registered.status, 201);
    let body = registered.json();
    assert_eq!(fields(&body), ["expires_in", "refresh_token", "token", "user"]);
    assert_eq!(body["expires_in"], 24 * 60 * 60);
    assert_eq!(fields(&body["user"]), ["email", "id", "name"]);
    assert_eq!((&body["user"]["email"], &body["user"]["name"]), (&json!("ada@example.org"), &json!("Ada")));
    let id = body["user"]["id"].as_str().unwrap().to_owned();
    assert_eq!(registered.header("location"), format!("/api/v1/users/{id}"));

    let login = post(&service, LOGIN, &json!({"email": "ada@example.org", "password": PASSWORD})).await;
    assert_eq!(login.status, 200);
    assert_eq!(fields(&login.json()), ["expires_in", "refresh_token", "token", "user"]);
    assert_eq!(login.json()["user"], body["user"]);

    let next = refresh(&service, login.json()["refresh_token"].as_str().unwrap()).await;
    assert_eq!(fields(&next.json()), ["expires_in", "refresh_token", "token"]);

    let token = next.json()["token"].as_str().unwrap().to_owned();
    let me = service.get_as(&token, ME).await.json();
    assert_eq!(fields(&me), ["created_at", "email", "id", "name", "system_roles"]);
    assert_eq!((&me["id"], &me["system_roles"]), (&json!(id), &json!(["sysadmin", "user"])));
    assert!(me["created_at"].as_str().unwrap().ends_with('Z'), "{me}");

    let out = logout(&service, &token).await;
    assert_eq!((out.status.as_u16(), out.text.as_str()), (204, ""));
}

#[tokio::test]
async fn an_account_needs_no_name() {
    let service = TestService::product(&[]).await;
    let answer = post(&service, REGISTER, &json!({"email": "a@example.org", "password": PASSWORD})).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["user"]["name"]), (201, &json!("")));
}

#[tokio::test]
async fn an_address_is_trimmed_and_the_same_in_any_case() {
    let service = TestService::product(&[]).await;
    let account = |email: &str| json!({"email": email, "password": PASSWORD});
    let first = post(&service, REGISTER, &account("  Ada@Example.org\t")).await;
    assert_eq!((first.status.as_u16(), &first.json()["user"]["email"]), (201, &json!("Ada@Example.org")));
    for again in ["Ada@Example.org", "ada@example.org", " ADA@EXAMPLE.ORG "] {
        let answer = post(&service, REGISTER, &account(again)).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "already_exists"), "{again}");
        let answer = post(&service, LOGIN, &account(again)).await;
        assert_eq!(answer.status, 200, "{again}");
    }
    for wrong in ["", "ada", "@example.org", "ada@", "a b@example.org", "a@b@c"] {
        let answer = post(&service, REGISTER, &account(wrong)).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{wrong}");
        assert_eq!(answer.json()["errors"][0]["field"], "email");
    }
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.users").await, 1);
}

#[tokio::test]
async fn one_address_registers_once_however_many_try() {
    let service = TestService::product(&[]).await;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let account = json!({"email": "ada@example.org", "password": PASSWORD});
        tries.spawn(Answer::of(service.request(Method::POST, REGISTER).json(&account)));
    }
    let mut statuses: Vec<_> = tries.join_all().await.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn a_password_has_8_to_256_characters_of_any_kind() {
    let service = TestService::product(&[]).await;
    for (number, (character, length, accepted)) in [
        ("x", 7, false),
        ("x", 8, true),
        ("x", 256, true),
        ("x", 257, false),
        ("é", 7, false),
        ("é", 8, true),
        ("🦀", 256, true),
        ("🦀", 257, false),
        (" ", 8, true),
    ]
    .into_iter()
    .enumerate()
    {
        let account =
            json!({"email": format!("p{number}@example.org"), "password": character.repeat(length)});
        let answer = post(&service, REGISTER, &account).await;
        if accepted {
            assert_eq!(answer.status, 201, "{length} of {character}");
            assert_eq!(post(&service, LOGIN, &account).await.status, 200, "{length} of {character}");
        } else {
            assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"));
            assert_eq!(answer.json()["errors"][0]["field"], "password", "{length} of {character}");
        }
    }
    let first = json!({"email": "p1@example.org", "password": "xxxxxxxx "});
    assert_eq!(post(&service, LOGIN, &first).await.status, 401, "blanks count");
}

#[tokio::test]
async fn fields_that_nobody_knows_are_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let new = json!({"email": "eve@example.org", "password": PASSWORD});
    let old = json!({"email": ada.email, "password": PASSWORD});
    let own = format!("/api/v1/users/{}", ada.id);
    for (method, path, sound, field) in [
        (Method::POST, REGISTER, new.clone(), "system_roles"),
        (Method::POST, REGISTER, new, "id"),
        (Method::POST, LOGIN, old, "remember"),
        (Method::POST, REFRESH, json!({"refresh_token": ada.refresh}), "cookie"),
        (Method::PUT, &own, json!({"name": "Ada"}), "password_hash"),
        (Method::PUT, &own, json!({"name": "Ada"}), "roles_version"),
        (Method::POST, accounts::KEYS, json!({"name": "k", "permissions": ["source:read"]}), "token"),
        (
            Method::PUT,
            "/api/v1/admin/users/roles",
            json!({"user_id": ada.id, "role": "user", "domain": "system"}),
            "force",
        ),
    ] {
        let mut body = sound;
        body[field] = json!("1");
        let answer = send(&service, &ada.token, method, path, &body).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{path} {field}");
        assert_eq!(answer.json()["errors"][0]["field"], field, "{path} {}", answer.text);
    }
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.users").await, 1);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_get_the_same_answer() {
    let service = TestService::product(&[]).await;
    register(&service, "ada").await;
    let mut answers = Vec::new();
    for email in ["ada@example.org", "bob@example.org", "nonsense", ""] {
        let request = service.request(Method::POST, LOGIN).header("x-request-id", "same");
        let answer = Answer::of(request.json(&json!({"email": email, "password": "wrong horse"}))).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"));
        let mut headers = answer.headers.clone();
        headers.remove("date");
        answers.push((answer.text, headers));
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:?}");
}

#[tokio::test]
async fn browsers_get_the_refresh_token_as_a_cookie_and_nowhere_else() {
    let service = TestService::product(&[]).await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD, "cookie": true});
    let mut answers = vec![post(&service, REGISTER, &account).await, post(&service, LOGIN, &account).await];
    let ask = |value: &str| {
        let cookies = format!("theme=dark; okt_refresh={value}; other=1");
        Answer::of(service.request(Method::POST, REFRESH).header("cookie", cookies).json(&json!({})))
    };
    let (value, _) = cookie(&answers[1]);
    answers.push(ask(&value).await);
    let mut values = Vec::new();
    for answer in &answers {
        assert!(answer.status.is_success(), "{answer:?}");
        assert!(answer.json().get("refresh_token").is_none(), "{}", answer.text);
        let (value, flags) = cookie(answer);
        assert_eq!(
            flags,
            ["HttpOnly", "Max-Age=2592000", "Path=/api/v1/auth", "SameSite=Strict", "Secure"],
            "30 days, for these routes of this site alone"
        );
        assert!(value.starts_with("oktr_") && !answer.text.contains(&value), "{answer:?}");
        values.push(value);
    }
    let token = answers[2].json()["token"].as_str().unwrap().to_owned();
    assert_eq!(me(&service, &token).await, 200);

    let next = ask(&values[2]).await;
    assert_eq!(next.status, 200, "the cookie that a refresh set is good for the next one");
    let out = logout(&service, &token).await;
    let (value, flags) = cookie(&out);
    assert_eq!((out.status.as_u16(), value.as_str()), (204, ""));
    assert!(flags.contains(&"Max-Age=0".to_owned()), "{flags:?}");
    assert!(flags.contains(&"Path=/api/v1/auth".to_owned()), "a cookie is deleted where it was set");
    let (value, _) = cookie(&next);
    assert_eq!(ask(&value).await.status, 401);

    let bare = Answer::of(service.request(Method::POST, REFRESH).json(&json!({}))).await;
    assert_eq!((bare.status.as_u16(), bare.problem().as_str()), (422, "invalid"));
    assert_eq!(bare.json()["errors"][0]["field"], "refresh_token");
}

#[tokio::test]
async fn another_site_can_not_use_the_cookie() {
    let service = TestService::product(&[]).await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD, "cookie": true});
    let (value, _) = cookie(&post(&service, REGISTER, &account).await);
    let ask = async |name: &str, said: &str| {
        let request = service.request(Method::POST, REFRESH).header("cookie", format!("okt_refresh={value}"));
        Answer::of(request.header(name, said).json(&json!({}))).await
    };
    for (name, said) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let refused = ask(name, said).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (403, "forbidden"), "{name}: {said}");
    }
    assert_eq!(ask("origin", &service.url).await.status, 200, "and the token was not used up");
}

/// The value of the cookie, and its flags in alphabetical order.
fn cookie(answer: &Answer) -> (String, Vec<String>) {
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 1, "{answer:?}");
    let mut parts = answer.header("set-cookie").split("; ").map(str::to_owned);
    let value = parts.next().unwrap().strip_prefix("okt_refresh=").unwrap().to_owned();
    let mut flags: Vec<_> = parts.collect();
    flags.sort();
    (value, flags)
}

#[tokio::test]
async fn without_being_asked_for_no_cookie_is_set() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let answer = post(&service, LOGIN, &json!({"email": ada.email, "password": PASSWORD})).await;
    assert_eq!(answer.header("set-cookie"), "");
    assert_eq!(refresh(&service, &ada.refresh).await.header("set-cookie"), "");
}

#[tokio::test]
async fn logging_out_ends_this_session_at_once_and_no_other() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let elsewhere = login(&service, &ada.email).await;
    assert_eq!(logout(&service, &ada.token).await.status, 204);
    let refused = service.get_as(&ada.token, ME).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (401, "unauthenticated"));
    assert!(refused.header("www-authenticate").starts_with("Bearer error=\"invalid_token\", "));
    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);
    assert_eq!(logout(&service, &ada.token).await.status, 401, "it is over already");
    assert_eq!(me(&service, &elsewhere.token).await, 200);
    assert_eq!(refresh(&service, &elsewhere.refresh).await.status, 200);
}

#[tokio::test]
async fn a_refresh_gives_new_tokens_and_the_access_token_before_goes_on() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (mut token, mut next) = (ada.token.clone(), ada.refresh.clone());
    for _ in 0..5 {
        let (newer, after) = pair(&refresh(&service, &next).await);
        assert!(newer != token && after != next);
        (token, next) = (newer, after);
        assert_eq!([me(&service, &token).await, me(&service, &ada.token).await], [200, 200]);
    }
    assert_eq!(unused(&service).await, 1);
    for wrong in ["", "oktr_", "nonsense", &format!("{next}x"), &ada.token] {
        let answer = refresh(&service, wrong).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"), "{wrong}");
    }
    let access = service.get_as(&next, ME).await;
    assert_eq!(access.status, 401, "a refresh token opens no door");
}

#[tokio::test]
async fn a_token_that_comes_again_after_its_successor_was_used_ends_the_session() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let elsewhere = login(&service, &ada.email).await;
    let (_, second) = pair(&refresh(&service, &ada.refresh).await);
    let (token, third) = pair(&refresh(&service, &second).await);
    assert_eq!(me(&service, &token).await, 200);

    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);
    assert_eq!([me(&service, &token).await, me(&service, &ada.token).await], [401, 401]);
    for dead in [&third, &second, &ada.refresh] {
        assert_eq!(refresh(&service, dead).await.status, 401);
    }
    assert_eq!(me(&service, &elsewhere.token).await, 200, "other sessions go on");
}

#[tokio::test]
async fn a_lost_reply_is_made_good_for_a_moment() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, lost) = pair(&refresh(&service, &ada.refresh).await);
    let (token, second) = pair(&refresh(&service, &ada.refresh).await);
    assert_ne!(lost, second);
    assert_eq!(me(&service, &token).await, 200);
    assert_eq!(unused(&service).await, 1, "the lost one was replaced");
    assert_eq!(refresh(&service, &second).await.status, 200);
}

#[tokio::test]
async fn a_token_that_was_taken_for_lost_and_is_not_ends_the_session() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, lost) = pair(&refresh(&service, &ada.refresh).await);
    let (token, second) = pair(&refresh(&service, &ada.refresh).await);
    assert_eq!(refresh(&service, &lost).await.status, 401);
    assert_eq!([me(&service, &token).await, refresh(&service, &second).await.status.as_u16()], [401, 401]);
}

#[tokio::test]
async fn a_token_that_comes_again_after_that_moment_ends_the_session() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (token, successor) = pair(&refresh(&service, &ada.refresh).await);
    sql(
        &service,
        "UPDATE okt_system.refresh_tokens SET used_at = used_at - interval '11 seconds' WHERE used_at IS NOT NULL",
    )
    .await;
    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);
    assert_eq!([me(&service, &token).await, refresh(&service, &successor).await.status.as_u16()], [401, 401]);
}

/// Over two services on one database, as a balancer would spread them.
#[tokio::test]
async fn fifty_refreshes_of_one_token_at_once_leave_one_live_chain() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let ada = register(&service, "ada").await;
    let mut racers = tokio::task::JoinSet::new();
    for number in 0..50 {
        let service = if number % 2 == 0 { &service } else { &beside };
        let body = json!({"refresh_token": ada.refresh});
        racers.spawn(Answer::of(service.request(Method::POST, REFRESH).json(&body)));
    }
    let pairs: Vec<_> = racers.join_all().await.iter().map(pair).collect();
    assert_eq!(unused(&service).await, 1);

    let live = "SELECT hash FROM okt_system.refresh_tokens WHERE used_at IS NULL AND superseded_at IS NULL";
    let (mut alive, mut dead) = (Vec::new(), Vec::new());
    for (token, next) in &pairs {
        assert_eq!(me(&service, token).await, 200, "they are all of the same session");
        let is_live = format!("SELECT count(*) FROM ({live}) t WHERE hash = sha256('{next}'::bytea)");
        if count(&service, &is_live).await == 1 { &mut alive } else { &mut dead }.push(next);
    }
    assert_eq!((alive.len(), dead.len()), (1, 49));
    let (token, next) = pair(&refresh(&service, alive[0]).await);
    let (_, next) = pair(&refresh(&beside, &next).await);
    assert_eq!((unused(&service).await, me(&beside, &token).await), (1, 200));

    assert_eq!(refresh(&service, dead[0]).await.status, 401);
    assert_eq!([me(&beside, &token).await, refresh(&beside, &next).await.status.as_u16()], [401, 401]);
}

#[tokio::test]
async fn logging_out_wins_over_a_refresh_at_the_same_time() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    for round in 0..10 {
        let now = login(&service, &ada.email).await;
        let (out, next) = tokio::join!(logout(&service, &now.token), refresh(&service, &now.refresh));
        assert_eq!(out.status, 204, "round {round}");
        assert_eq!(me(&service, &now.token).await, 401, "round {round}");
        if next.status != 401 {
            let (token, after) = pair(&next);
            let statuses = [me(&service, &token).await, refresh(&service, &after).await.status.as_u16()];
            assert_eq!(statuses, [401, 401], "round {round}");
        }
    }
}

#[tokio::test]
async fn an_expired_session_is_refused() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    sql(&service, "UPDATE okt_system.sessions SET expires_at = now() - interval '1 second'").await;
    assert_eq!(me(&service, &ada.token).await, 401);
    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);

    let again = login(&service, &ada.email).await;
    sql(&service, "UPDATE okt_system.refresh_tokens SET expires_at = now() - interval '1 second'").await;
    assert_eq!(refresh(&service, &again.refresh).await.status, 401);
    assert_eq!(me(&service, &again.token).await, 200, "its session is not over");
}

#[tokio::test]
async fn a_deleted_user_is_nobody() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let (_, key) = accounts::api_key(&service, &ada, &["source:read"]).await;
    assert_eq!([me(&service, &ada.token).await, me(&service, &key).await], [200, 200]);
    sql(&service, "DELETE FROM okt_system.users").await;
    assert_eq!([me(&service, &ada.token).await, me(&service, &key).await], [401, 401]);
    assert_eq!(refresh(&service, &ada.refresh).await.status, 401);
}

#[tokio::test]
async fn a_credential_is_taken_from_one_authorization_header_only() {
    let service = TestService::product(&[]).await;
    let Person { token, .. } = register(&service, "ada").await;
    let with = async |values: &[String]| {
        let request = service.request(Method::GET, ME);
        let request = values.iter().fold(request, |request, value| request.header("authorization", value));
        Answer::of(request).await
    };
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer "] {
        assert_eq!(with(&[format!("{scheme} {token}")]).await.status, 200, "{scheme}");
    }
    let right = format!("Bearer {token}");
    for two in [[right.clone(), right.clone()], [right.clone(), "Basic YTpi".to_owned()]] {
        let answer = with(&two).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "malformed"));
    }
    for wrong in ["", "Bearer", "Bearer ", &token, &format!("Token {token}"), &format!("Bearer{token}")] {
        let answer = with(&[wrong.to_owned()]).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"), "{wrong}");
    }
    for name in ["access_token", "token", "authorization"] {
        assert_eq!(service.get(&format!("{ME}?{name}={token}")).await.status, 401, "{name}");
    }
    let body = service.request(Method::POST, LOGOUT).json(&json!({"access_token": token}));
    assert_eq!(Answer::of(body).await.status, 401);
    let cookie = service.request(Method::GET, ME).header("cookie", format!("token={token}"));
    assert_eq!(Answer::of(cookie).await.status, 401);
}

#[tokio::test]
async fn an_access_token_says_what_it_is_documented_to_say() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let parts: Vec<_> = ada.token.split('.').collect();
    let part = |at: usize| {
        serde_json::from_slice::<Value>(&BASE64_URL_SAFE_NO_PAD.decode(parts[at]).unwrap()).unwrap()
    };
    assert_eq!((&part(0)["alg"], &part(0)["typ"]), (&json!("HS256"), &json!("session+jwt")));
    let claims = part(1);
    assert_eq!(fields(&claims), ["aud", "exp", "iat", "iss", "jti", "sid", "sub"]);
    assert_eq!(claims["sub"], json!(ada.id));
    let seconds = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(seconds, 24 * 3600);
}

#[tokio::test]
async fn sessions_that_have_been_over_for_a_day_are_forgotten() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    for hours in [25, 23] {
        login(&service, &ada.email).await;
        let over = format!("UPDATE okt_system.sessions SET expires_at = now() - interval '{hours} hours'");
        sql(&service, &format!("{over} WHERE id = (SELECT max(id::text)::uuid FROM okt_system.sessions)"))
            .await;
    }
    assert_eq!(delete_expired(service.api.app.databases(), Expired::Sessions).await.unwrap(), 1);
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.sessions").await, 2);
    assert_eq!(
        count(&service, "SELECT count(*) FROM okt_system.refresh_tokens").await,
        2,
        "its tokens with it"
    );
    assert_eq!(me(&service, &ada.token).await, 200);
}
