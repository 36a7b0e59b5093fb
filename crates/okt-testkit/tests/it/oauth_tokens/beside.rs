use std::time::{Duration, Instant};

use http::Method;
use okt_testkit::accounts::{give, register, send, session, sql};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{REVOKE, form_request};
use okt_testkit::served::TestService;
use serde_json::json;

use crate::oauth_tokens::access::{USERS, given};
use crate::oauth_tokens::{
    BALANCED, Given, ME, Pair, Scene, ask, code, code_form, me, refused, registered, text,
};

/// Two services, and a token that both know well.
struct Two {
    scene: Scene,
    beside: TestService,
    pair: Pair,
    person: String,
}

impl Two {
    async fn new() -> Self {
        let scene = Scene::with(&BALANCED).await;
        let beside = scene.service.beside().await;
        let pair = scene.pair().await;
        let person = session(&scene.service, scene.ada.id).await;
        for _ in 0..3 {
            assert_eq!([me(&scene.service, &pair.access).await, me(&beside, &pair.access).await], [200, 200]);
            assert_eq!(beside.get_as(&pair.access, USERS).await.status, 200);
        }
        Self { scene, beside, pair, person }
    }

    /// How long after now the other service answers with this status, which is less than a second.
    async fn felt(&self, token: &str, path: &str, status: u16) -> Duration {
        let began = Instant::now();
        loop {
            let answered = self.beside.get_as(token, path).await.status.as_u16();
            let elapsed = began.elapsed();
            assert!(elapsed < Duration::from_secs(1), "{answered} after {elapsed:?}");
            if answered == status {
                return elapsed;
            }
        }
    }

    async fn refresh_beside(&self) -> Answer {
        ask(&self.beside, &crate::oauth_tokens::refresh_form(&self.scene.client, &self.pair.refresh)).await
    }
}

#[tokio::test]
async fn taking_back_a_grant_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    let grants = two.beside.get_as(&two.person, "/api/v1/users/me/grants").await.json();
    let path = format!("/api/v1/users/me/grants/{}", text(&grants["data"][0], "id"));
    let taken = Answer::of(two.scene.service.request(Method::DELETE, &path).bearer_auth(&two.person)).await;
    assert_eq!(taken.status, 204);
    println!("grant taken back: felt beside after {:?}", two.felt(&two.pair.access, ME, 401).await);
    refused(&two.refresh_beside().await, "invalid_grant");
}

#[tokio::test]
async fn revoking_a_refresh_token_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    let form = [("client_id", two.scene.client.as_str()), ("token", &two.pair.refresh)];
    assert_eq!(Answer::of(form_request(&two.scene.service, REVOKE, &form)).await.status, 200);
    println!("refresh token revoked: felt beside after {:?}", two.felt(&two.pair.access, ME, 401).await);
    refused(&two.refresh_beside().await, "invalid_grant");
}

#[tokio::test]
async fn revoking_an_access_token_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    let form = [("client_id", two.scene.client.as_str()), ("token", &two.pair.access)];
    assert_eq!(Answer::of(form_request(&two.scene.service, REVOKE, &form)).await.status, 200);
    println!("access token revoked: felt beside after {:?}", two.felt(&two.pair.access, ME, 401).await);
    refused(&two.refresh_beside().await, "invalid_grant");
}

#[tokio::test]
async fn deleting_a_client_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    let service = &two.scene.service;
    let gone = registered(service, json!({})).await;
    let id = text(&gone, "client_id");
    let code = code(service, &id, two.scene.ada.id, &Given::default()).await;
    let pair = Pair::of(&ask(service, &code_form(&id, &code)).await);
    assert_eq!(me(&two.beside, &pair.access).await, 200);
    let path = format!("/api/v1/oauth/register/{id}");
    let token = text(&gone, "registration_access_token");
    assert_eq!(send(service, &token, Method::DELETE, &path, &json!({})).await.status, 204);
    println!("client deleted: felt beside after {:?}", two.felt(&pair.access, ME, 401).await);
    refused(
        &ask(&two.beside, &crate::oauth_tokens::refresh_form(&id, &pair.refresh)).await,
        "invalid_client",
    );
}

#[tokio::test]
async fn losing_a_role_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    let bob = register(&two.scene.service, "bob").await;
    give(&two.scene.service, bob.id, "system", "sysadmin").await;
    let pair = given(&two.scene, bob.id, &Given::default()).await;
    assert_eq!(two.beside.get_as(&pair.access, USERS).await.status, 200);
    let role = json!({"user_id": bob.id, "role": "sysadmin", "domain": "system"});
    let taken =
        send(&two.scene.service, &two.person, Method::DELETE, "/api/v1/admin/users/roles", &role).await;
    assert!(taken.status.is_success(), "{taken:?}");
    println!("role lost: felt beside after {:?}", two.felt(&pair.access, USERS, 403).await);
    assert_eq!(me(&two.beside, &pair.access).await, 200, "the token itself goes on");
}

#[tokio::test]
async fn a_code_that_comes_again_ends_its_tokens_on_another_service_within_a_second() {
    let two = Two::new().await;
    let code = two.scene.code().await;
    let pair = Pair::of(&two.scene.exchange(&code).await);
    assert_eq!(me(&two.beside, &pair.access).await, 200);
    refused(&two.scene.exchange(&code).await, "invalid_grant");
    println!("code came again: felt beside after {:?}", two.felt(&pair.access, ME, 401).await);
    refused(
        &ask(&two.beside, &crate::oauth_tokens::refresh_form(&two.scene.client, &pair.refresh)).await,
        "invalid_grant",
    );
}

#[tokio::test]
async fn a_refresh_token_that_comes_again_ends_its_grant_on_another_service_within_a_second() {
    let two = Two::new().await;
    let second = Pair::of(&two.refresh_beside().await);
    Pair::of(&two.scene.refresh(&second.refresh).await);
    refused(&two.scene.refresh(&two.pair.refresh).await, "invalid_grant");
    println!("refresh token came again: felt beside after {:?}", two.felt(&second.access, ME, 401).await);
}

#[tokio::test]
async fn a_deleted_person_is_felt_on_another_service_within_a_second() {
    let two = Two::new().await;
    sql(&two.scene.service, &format!("DELETE FROM okt_system.users WHERE id = '{}'", two.scene.ada.id)).await;
    println!("person deleted: felt beside after {:?}", two.felt(&two.pair.access, ME, 401).await);
    refused(&two.refresh_beside().await, "invalid_grant");
}
