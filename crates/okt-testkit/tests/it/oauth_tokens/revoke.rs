use http::Method;
use okt_testkit::accounts::{api_key, send};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{REVOKE, client, form_request, query};
use okt_testkit::served::TestService;
use serde_json::json;

use crate::oauth_tokens::access::{SECRET, claims, forged, part};
use crate::oauth_tokens::{
    Given, Pair, Scene, ask, audited, code, code_form, confidential, me, refused, state, unchanged, with,
};

async fn revoke(service: &TestService, form: &[(&str, &str)]) -> Answer {
    Answer::of(form_request(service, REVOKE, form)).await
}

/// As the public client of the scene.
async fn give_back(scene: &Scene, token: &str) -> Answer {
    revoke(&scene.service, &[("client_id", &scene.client), ("token", token)]).await
}

#[tokio::test]
async fn what_is_no_token_is_answered_as_if_it_had_been_one() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let code = scene.code().await;
    let before = state(&scene.service).await;
    let cut = &pair.refresh[..pair.refresh.len() - 1];
    let (message, signature) = pair.access.rsplit_once('.').unwrap();
    let altered = format!("{message}.{}", signature.chars().rev().collect::<String>());
    let (never, _) = okt_auth::opaque::mint(okt_auth::opaque::Prefix::ClientRefresh).unwrap();
    for token in
        ["nonsense", "okto_", "é", cut, &altered, &code, never.expose(), &scene.ada.token, &"x".repeat(9000)]
    {
        let answer = give_back(&scene, token).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""), "{token}");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    unchanged(&scene.service, &before, "refused").await;
    assert_eq!(
        me(&scene.service, &scene.ada.token).await,
        200,
        "a person's session is not a client's to end"
    );
    assert_eq!(scene.exchange(&code).await.status, 200);
}

#[tokio::test]
async fn revocation_takes_a_posted_form_from_a_client_that_proves_itself() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (id, secret) = confidential(service, "client_secret_post").await;
    let code = code(service, &id, scene.ada.id, &Given::default()).await;
    let form = with(&code_form(&id, &code), "client_secret", &secret);
    let pair = Pair::of(&ask(service, &form).await);
    let before = state(service).await;
    let form = vec![("client_id", id.as_str()), ("token", &pair.refresh)];
    refused(&revoke(service, &form).await, "invalid_client");
    refused(&revoke(service, &with(&form, "client_secret", "okts_x")).await, "invalid_client");
    refused(&revoke(service, &with(&form, "client_id", "client_of_nobody")).await, "invalid_client");
    refused(&revoke(service, &[("token", &pair.refresh)]).await, "invalid_request");
    refused(&revoke(service, &[("client_id", &scene.client)]).await, "invalid_request");
    let get = service.get(&format!("{REVOKE}?{}", query(&with(&form, "client_secret", &secret)))).await;
    assert_eq!(get.status, 405);
    let body = json!({"client_id": id, "client_secret": secret, "token": pair.refresh});
    assert_eq!(Answer::of(service.request(Method::POST, REVOKE).json(&body)).await.status, 415);
    unchanged(service, &before, "refused").await;
    assert_eq!(me(service, &pair.access).await, 200);
    assert_eq!(revoke(service, &with(&form, "client_secret", &secret)).await.status, 200);
    assert_eq!(me(service, &pair.access).await, 401);
}

#[tokio::test]
async fn a_wrong_hint_at_the_kind_of_token_does_not_save_it() {
    let scene = Scene::new().await;
    let service = &scene.service;
    for hint in ["access_token", "refresh_token", "id_token", "", "nonsense"] {
        for refresh in [true, false] {
            let pair = scene.pair().await;
            let token = if refresh { &pair.refresh } else { &pair.access };
            let form = [("client_id", scene.client.as_str()), ("token", token), ("token_type_hint", hint)];
            assert_eq!(revoke(service, &form).await.status, 200, "{hint}");
            assert_eq!(me(service, &pair.access).await, 401, "{hint}");
            refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
        }
    }
}

#[tokio::test]
async fn a_client_can_not_revoke_what_another_one_holds() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let pair = scene.pair().await;
    let stranger = client(service).await;
    let (known, secret) = confidential(service, "client_secret_post").await;
    let before = state(service).await;
    for token in [&pair.refresh, &pair.access] {
        let answer = revoke(service, &[("client_id", &stranger), ("token", token)]).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""), "it learns nothing");
        let form = [("client_id", known.as_str()), ("client_secret", &secret), ("token", token)];
        assert_eq!(revoke(service, &form).await.status, 200);
    }
    unchanged(service, &before, "refused").await;
    assert_eq!(me(service, &pair.access).await, 200);
    assert_eq!(scene.refresh(&pair.refresh).await.status, 200);
}

#[tokio::test]
async fn revoking_any_token_of_a_grant_ends_all_of_them_and_no_other_grant() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let bystander = scene.pair().await;
    // The refresh token in force, one that was used up, and access tokens of both.
    for which in 0..4 {
        let first = scene.pair().await;
        let second = Pair::of(&scene.refresh(&first.refresh).await);
        let token = [&second.refresh, &first.refresh, &second.access, &first.access][which];
        assert_eq!(give_back(&scene, token).await.status, 200, "{which}");
        assert_eq!(
            [me(service, &first.access).await, me(service, &second.access).await],
            [401, 401],
            "{which}"
        );
        refused(&scene.refresh(&second.refresh).await, "invalid_grant");
    }
    assert_eq!(audited(service, "grant.revoked").await, 4);
    assert_eq!(audited(service, "grant.token_reused").await, 0, "giving a used token back is no theft");
    assert_eq!(me(service, &bystander.access).await, 200);
    assert_eq!(scene.refresh(&bystander.refresh).await.status, 200);
    assert_eq!(me(service, &scene.ada.token).await, 200);
}

#[tokio::test]
async fn an_access_token_that_has_run_out_still_ends_its_grant() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let (header, mut said) = (part(&pair.access, 0), claims(&pair.access));
    for time in ["iat", "exp"] {
        said[time] = json!(said[time].as_u64().unwrap() - 3600);
    }
    let old = forged(&scene.service, &header, &said.to_string(), SECRET).await;
    assert_eq!([me(&scene.service, &old).await, me(&scene.service, &pair.access).await], [401, 200]);
    assert_eq!(give_back(&scene, &old).await.status, 200);
    assert_eq!(me(&scene.service, &pair.access).await, 401);
    refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
}

#[tokio::test]
async fn revoking_once_more_is_the_same() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    assert_eq!(give_back(&scene, &pair.refresh).await.status, 200);
    let before = state(&scene.service).await;
    for token in [&pair.refresh, &pair.access, &pair.refresh] {
        let answer = give_back(&scene, token).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
    }
    unchanged(&scene.service, &before, "and recorded once").await;
}

#[tokio::test]
async fn tokens_that_were_not_given_to_clients_are_of_an_unsupported_type_and_go_on() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (_, key) = api_key(service, &scene.ada, &["source:read"]).await;
    let before = state(service).await;
    for token in [&key, &scene.ada.refresh] {
        refused(&give_back(&scene, token).await, "unsupported_token_type");
        let form = [("client_id", "client_of_nobody"), ("token", token.as_str())];
        refused(&revoke(service, &form).await, "invalid_client");
    }
    unchanged(service, &before, "refused").await;
    assert_eq!([me(service, &key).await, me(service, &scene.ada.token).await], [200, 200]);
    let body = json!({"refresh_token": scene.ada.refresh});
    let next = send(service, "", Method::POST, "/api/v1/auth/refresh", &body).await;
    assert_eq!(next.status, 200);
}
