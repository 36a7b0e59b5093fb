use okt_testkit::accounts::{self, count, sql};
use okt_testkit::oauth::client;
use serde_json::json;

use crate::oauth_tokens::{
    Given, Pair, Scene, ask, audited, code, confidential, fields, me, refresh_form, refused, registered,
    state, text, unchanged, with,
};

/// Refresh tokens of clients that somebody could use.
const UNUSED: &str =
    "SELECT count(*) FROM okt_system.refresh_tokens t JOIN okt_system.oauth_grants g ON g.id = t.session_id
                       WHERE used_at IS NULL AND superseded_at IS NULL";

/// Lets time pass for tokens that were used.
async fn later(scene: &Scene, seconds: u32) {
    let earlier =
        format!("UPDATE okt_system.refresh_tokens SET used_at = used_at - interval '{seconds} seconds'");
    sql(&scene.service, &earlier).await;
}

#[tokio::test]
async fn each_refresh_gives_another_pair_and_the_access_token_before_goes_on() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let mut seen = vec![first.clone()];
    for generation in 0..5 {
        let answer = scene.refresh(&seen.last().unwrap().refresh).await;
        let body = answer.json();
        assert_eq!(fields(&body), ["access_token", "expires_in", "refresh_token", "scope", "token_type"]);
        assert_eq!((&body["expires_in"], &body["scope"]), (&json!(900), &json!("read")));
        assert_eq!(answer.header("cache-control"), "no-store");
        let pair = Pair::of(&answer);
        assert!(
            seen.iter().all(|old| old.refresh != pair.refresh && old.access != pair.access),
            "{generation}"
        );
        assert_eq!(
            [me(&scene.service, &pair.access).await, me(&scene.service, &first.access).await],
            [200, 200]
        );
        seen.push(pair);
    }
    assert_eq!(count(&scene.service, UNUSED).await, 1);
    let linked = "SELECT count(*) FROM okt_system.refresh_tokens t JOIN okt_system.refresh_tokens n ON n.hash = t.successor
                   WHERE t.used_at IS NOT NULL AND n.session_id = t.session_id";
    assert_eq!(count(&scene.service, linked).await, 5, "each that was used says what took its place");
    let last = seen.pop().unwrap();
    assert_eq!(me(&scene.service, &last.refresh).await, 401, "a refresh token opens no door");
    let before = state(&scene.service).await;
    for wrong in ["nonsense", "okto_", &format!("{}x", last.refresh), &last.access, &scene.ada.refresh] {
        refused(&scene.refresh(wrong).await, "invalid_grant");
    }
    let elsewhere = accounts::refresh(&scene.service, &last.refresh).await;
    assert_eq!(elsewhere.status, 401, "it is no refresh token of a session");
    unchanged(&scene.service, &before, "refused").await;
}

#[tokio::test]
async fn a_narrower_scope_is_for_the_access_token_alone() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let given = Given { scope: Some("user:read audit:read"), ..Given::default() };
    let code = code(service, &scene.client, scene.ada.id, &given).await;
    let whole = Pair::of(&scene.exchange(&code).await);
    let may = async |pair: &Pair| {
        let (users, audit) = ("/api/v1/admin/users", "/api/v1/admin/audit");
        [service.get_as(&pair.access, users).await.status, service.get_as(&pair.access, audit).await.status]
            .map(|status| status.as_u16())
    };
    assert_eq!(may(&whole).await, [200, 200]);
    let answer =
        ask(service, &with(&refresh_form(&scene.client, &whole.refresh), "scope", "user:read")).await;
    assert_eq!(answer.json()["scope"], "user:read");
    let narrow = Pair::of(&answer);
    assert_eq!((may(&narrow).await, may(&whole).await), ([200, 403], [200, 200]));
    let answer = scene.refresh(&narrow.refresh).await;
    assert_eq!(answer.json()["scope"], "audit:read user:read", "what was granted is still there");
    assert_eq!(may(&Pair::of(&answer)).await, [200, 200]);
}

#[tokio::test]
async fn a_narrower_scope_may_be_a_part_of_read() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let form = refresh_form(&scene.client, &pair.refresh);
    let answer = ask(&scene.service, &with(&form, "scope", "user:read")).await;
    let narrow = Pair::of(&answer);
    assert_eq!(scene.service.get_as(&narrow.access, "/api/v1/admin/users").await.status, 200);
    assert_eq!(scene.service.get_as(&narrow.access, "/api/v1/admin/audit").await.status, 403);
    let whole = with(&refresh_form(&scene.client, &narrow.refresh), "scope", "read");
    assert_eq!(ask(&scene.service, &whole).await.json()["scope"], "read");
}

#[tokio::test]
async fn a_wider_scope_is_refused_and_the_token_stays_good() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let given = Given { scope: Some("user:read"), ..Given::default() };
    let code = code(service, &scene.client, scene.ada.id, &given).await;
    let pair = Pair::of(&scene.exchange(&code).await);
    let before = state(service).await;
    for wider in [
        "read",
        "user:read audit:read",
        "audit:read",
        "mcp",
        "user:read mcp",
        "openid",
        "user:read nonsense",
        " ",
    ] {
        let form = with(&refresh_form(&scene.client, &pair.refresh), "scope", wider);
        refused(&ask(service, &form).await, "invalid_scope");
    }
    unchanged(service, &before, "refused").await;
    assert_eq!(scene.refresh(&pair.refresh).await.status, 200);
}

#[tokio::test]
async fn a_stolen_token_ends_the_grant_whatever_it_is_asked_for() {
    for (field, value) in [("scope", "read mcp"), ("resource", "https://elsewhere.example")] {
        let scene = Scene::new().await;
        let first = scene.pair().await;
        let second = Pair::of(&scene.refresh(&first.refresh).await);
        let third = Pair::of(&scene.refresh(&second.refresh).await);
        let form = with(&refresh_form(&scene.client, &first.refresh), field, value);
        refused(&ask(&scene.service, &form).await, "invalid_grant");
        assert_eq!(me(&scene.service, &third.access).await, 401, "{field}");
    }
}

#[tokio::test]
async fn a_lost_reply_is_made_good_for_ten_seconds() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let lost = Pair::of(&scene.refresh(&first.refresh).await);
    later(&scene, 9).await;
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    assert_ne!(lost.refresh, second.refresh);
    assert_eq!(count(&scene.service, UNUSED).await, 1, "the lost one was replaced");
    assert_eq!(me(&scene.service, &second.access).await, 200);
    assert_eq!(scene.refresh(&second.refresh).await.status, 200);
    assert_eq!(audited(&scene.service, "grant.token_reused").await, 0);
}

#[tokio::test]
async fn the_ten_seconds_are_counted_from_the_first_use_and_not_from_the_last() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    for _ in 0..3 {
        assert_eq!(scene.refresh(&first.refresh).await.status, 200);
        later(&scene, 3).await;
    }
    later(&scene, 2).await;
    refused(&scene.refresh(&first.refresh).await, "invalid_grant");
    assert_eq!(me(&scene.service, &first.access).await, 401);
}

#[tokio::test]
async fn a_token_that_was_taken_for_lost_and_is_not_ends_the_grant() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let lost = Pair::of(&scene.refresh(&first.refresh).await);
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    refused(&scene.refresh(&lost.refresh).await, "invalid_grant");
    for pair in [&first, &lost, &second] {
        assert_eq!(me(&scene.service, &pair.access).await, 401);
    }
    refused(&scene.refresh(&second.refresh).await, "invalid_grant");
    assert_eq!(audited(&scene.service, "grant.token_reused").await, 1);
}

#[tokio::test]
async fn a_token_that_comes_again_after_ten_seconds_ends_the_grant_and_is_on_record() {
    let scene = Scene::new().await;
    let bystander = scene.pair().await;
    let first = scene.pair().await;
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    later(&scene, 11).await;
    refused(&scene.refresh(&first.refresh).await, "invalid_grant");
    for pair in [&first, &second] {
        assert_eq!(me(&scene.service, &pair.access).await, 401);
        refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
    }
    let recorded =
        "SELECT count(*) FROM okt_system.audit a JOIN okt_system.oauth_grants g ON g.id::text = a.object
                     WHERE a.action = 'grant.token_reused' AND a.address = '127.0.0.1'";
    assert_eq!(count(&scene.service, recorded).await, 1, "once, with the grant and the address");
    assert_eq!(scene.refresh(&bystander.refresh).await.status, 200, "other grants go on");
    assert_eq!(me(&scene.service, &scene.ada.token).await, 200);
}

#[tokio::test]
async fn a_token_of_any_generation_that_comes_again_ends_the_grant() {
    let scene = Scene::new().await;
    for generation in 0..4 {
        let mut chain = vec![scene.pair().await];
        for _ in 0..4 {
            chain.push(Pair::of(&scene.refresh(&chain.last().unwrap().refresh).await));
        }
        assert_eq!(me(&scene.service, &chain[4].access).await, 200);
        if generation == 3 {
            later(&scene, 11).await;
        }
        // At once: the one after it was used, so no reply was lost. Of the last but one it was not.
        refused(&scene.refresh(&chain[generation].refresh).await, "invalid_grant");
        for pair in &chain {
            assert_eq!(me(&scene.service, &pair.access).await, 401, "generation {generation}");
            refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
        }
    }
    assert_eq!(audited(&scene.service, "grant.token_reused").await, 4);
}

#[tokio::test]
async fn a_refresh_token_that_nobody_used_for_thirty_days_is_over() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let left = |table: &str, key: &str| {
        format!(
            "SELECT extract(epoch FROM t.expires_at - clock_timestamp())::int8
               FROM okt_system.{table} t JOIN okt_system.oauth_grants g ON g.id = t.{key}"
        )
    };
    let month = 30 * 24 * 3600;
    for row in [left("refresh_tokens", "session_id"), left("sessions", "id")] {
        let left = count(&scene.service, &row).await;
        assert!((month - 10..=month).contains(&left), "{left}");
    }
    let almost = "UPDATE okt_system.refresh_tokens SET expires_at = clock_timestamp() + interval '5 seconds'";
    sql(&scene.service, almost).await;
    let next = Pair::of(&scene.refresh(&pair.refresh).await);
    let left =
        count(&scene.service, &format!("{} WHERE t.used_at IS NULL", left("refresh_tokens", "session_id")))
            .await;
    assert!((month - 10..=month).contains(&left), "every use begins the thirty days anew: {left}");

    sql(
        &scene.service,
        "UPDATE okt_system.refresh_tokens SET expires_at = clock_timestamp() - interval '1 millisecond'",
    )
    .await;
    let before = state(&scene.service).await;
    refused(&scene.refresh(&next.refresh).await, "invalid_grant");
    unchanged(&scene.service, &before, "refused").await;
}

#[tokio::test]
async fn a_grant_is_over_after_ninety_days_however_often_it_was_refreshed() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let mut pair = scene.pair().await;
    let pass = |days: u32| {
        format!(
            "UPDATE okt_system.sessions s SET created_at = s.created_at - interval '{days} days',
                    expires_at = s.expires_at - interval '{days} days'
               FROM okt_system.oauth_grants g WHERE g.id = s.id;
             UPDATE okt_system.refresh_tokens t SET expires_at = t.expires_at - interval '{days} days',
                    used_at = t.used_at - interval '{days} days'
               FROM okt_system.oauth_grants g WHERE g.id = t.session_id"
        )
    };
    for _ in 0..4 {
        sql(service, &pass(22)).await;
        pair = Pair::of(&scene.refresh(&pair.refresh).await);
    }
    let left = "SELECT extract(epoch FROM s.expires_at - clock_timestamp())::int8
                  FROM okt_system.sessions s JOIN okt_system.oauth_grants g ON g.id = s.id";
    let left = count(service, left).await;
    assert!((2 * 24 * 3600 - 30..=2 * 24 * 3600).contains(&left), "two days of ninety: {left}");
    sql(service, &pass(1)).await;
    pair = Pair::of(&scene.refresh(&pair.refresh).await);
    assert_eq!(me(service, &pair.access).await, 200);
    sql(service, &pass(1)).await;
    refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
    assert_eq!(me(service, &pair.access).await, 401, "and with it the access token");
}

#[tokio::test]
async fn what_ran_out_within_the_ten_seconds_is_not_made_good() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    let over =
        "UPDATE okt_system.refresh_tokens SET expires_at = clock_timestamp() - interval '1 millisecond'
                 WHERE used_at IS NOT NULL";
    sql(&scene.service, over).await;
    let before = state(&scene.service).await;
    refused(&scene.refresh(&first.refresh).await, "invalid_grant");
    unchanged(&scene.service, &before, "refused").await;
    assert_eq!(scene.refresh(&second.refresh).await.status, 200, "nor does it end what goes on");
}

#[tokio::test]
async fn another_client_can_do_nothing_with_a_refresh_token() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let thief = client(service).await;
    let (known, secret) = confidential(service, "client_secret_post").await;
    let first = scene.pair().await;
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    let third = Pair::of(&scene.refresh(&second.refresh).await);
    let before = state(service).await;
    // Used long ago, used within the ten seconds, and in force.
    for pair in [&first, &second, &third] {
        refused(&ask(service, &refresh_form(&thief, &pair.refresh)).await, "invalid_grant");
        let form = with(&refresh_form(&known, &pair.refresh), "client_secret", &secret);
        refused(&ask(service, &form).await, "invalid_grant");
        refused(&ask(service, &refresh_form("client_of_nobody", &pair.refresh)).await, "invalid_client");
    }
    unchanged(service, &before, "refused").await;
    assert_eq!(me(service, &third.access).await, 200);
    assert_eq!(scene.refresh(&third.refresh).await.status, 200);
}

#[tokio::test]
async fn a_deleted_person_leaves_no_token_that_works() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let code = scene.code().await;
    sql(&scene.service, "DELETE FROM okt_system.users").await;
    assert_eq!(me(&scene.service, &pair.access).await, 401);
    refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
    refused(&scene.exchange(&code).await, "invalid_grant");
    for table in ["sessions", "refresh_tokens", "oauth_grants", "oauth_codes"] {
        assert_eq!(
            count(&scene.service, &format!("SELECT count(*) FROM okt_system.{table}")).await,
            0,
            "{table}"
        );
    }
}

#[tokio::test]
async fn what_the_person_took_back_can_not_be_refreshed() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (pair, other) = (scene.pair().await, scene.pair().await);
    let grants = service.get_as(&scene.ada.token, "/api/v1/users/me/grants").await.json();
    let path = format!("/api/v1/users/me/grants/{}", text(&grants["data"][0], "id"));
    let taken = accounts::send(service, &scene.ada.token, http::Method::DELETE, &path, &json!({})).await;
    assert_eq!(taken.status, 204);
    assert_eq!([me(service, &pair.access).await, me(service, &other.access).await], [401, 200]);
    refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
    assert_eq!(scene.refresh(&other.refresh).await.status, 200);
    assert_eq!(audited(service, "grant.token_reused").await, 0);
}

#[tokio::test]
async fn a_deleted_client_leaves_no_token_that_works() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let bystander = scene.pair().await;
    let gone = registered(service, json!({})).await;
    let id = text(&gone, "client_id");
    let code = code(service, &id, scene.ada.id, &Given::default()).await;
    let pair = Pair::of(&ask(service, &crate::oauth_tokens::code_form(&id, &code)).await);
    let path = format!("/api/v1/oauth/register/{id}");
    let token = text(&gone, "registration_access_token");
    let deleted = accounts::send(service, &token, http::Method::DELETE, &path, &json!({})).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(me(service, &pair.access).await, 401);
    refused(&ask(service, &refresh_form(&id, &pair.refresh)).await, "invalid_client");
    refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
    assert_eq!(count(service, UNUSED).await, 1, "of the other client");
    assert_eq!(scene.refresh(&bystander.refresh).await.status, 200);
}
