//! What a developer hears of a JSON body that can't be read: every field, by its path, with what it should be.

use http::Method;
use okt_testkit::accounts::{post, register, send};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

fn errors(answer: &Answer) -> Vec<String> {
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{answer:?}");
    let errors = answer.json()["errors"].as_array().cloned().unwrap_or_default();
    let line = |error: &Value| {
        format!("{}: {}", error["field"].as_str().unwrap(), error["message"].as_str().unwrap())
    };
    errors.iter().map(line).collect()
}

#[tokio::test]
async fn every_field_that_is_missing_wrong_or_unknown_is_named_at_once() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let as_ada =
        async |method: Method, path: &str, body: Value| send(&service, &ada.token, method, path, &body).await;

    let empty = post(&service, "/api/v1/auth/register", &json!({})).await;
    assert_eq!(errors(&empty), ["email: required", "password: required"]);
    assert_eq!(empty.json()["detail"], "email: required (and 1 more)");
    let wrong = post(&service, "/api/v1/auth/login", &json!({"email": 1, "pasword": "secret words"})).await;
    assert_eq!(
        errors(&wrong),
        ["password: required", "email: must be text", "pasword: unknown field; did you mean `password`?"]
    );
    assert!(!wrong.text.contains("secret words"), "{wrong:?}");

    let key = as_ada(Method::POST, "/api/v1/users/me/api-keys", json!({"expires_in_days": "soon"})).await;
    assert_eq!(errors(&key)[..2], ["name: required", "permissions: required"]);
    assert!(errors(&key)[2].starts_with("expires_in_days: must be a whole number"), "{key:?}");
    let permissions = json!({"name": "k", "permissions": ["fact:read", 7]});
    let permissions = as_ada(Method::POST, "/api/v1/users/me/api-keys", permissions).await;
    assert_eq!(errors(&permissions), ["permissions[1]: must be text"]);

    let bees = json!({"name": "Bees", "slug": "bees"});
    assert_eq!(as_ada(Method::POST, "/api/v1/repositories", bees).await.status, 201);
    let repository = as_ada(Method::POST, "/api/v1/repositories", json!({"title": "Bees"})).await;
    let said = errors(&repository);
    assert_eq!(said[0], "name: required");
    assert!(said[1].starts_with("title: unknown field; known are database, description, name"), "{said:?}");
    let sources = json!({"source_ids": ["not an id"]});
    let estimate = as_ada(Method::POST, "/api/v1/repositories/bees/sources/estimate", sources).await;
    assert_eq!(errors(&estimate), ["source_ids[0]: must be an id, which is a UUID"]);
}

#[tokio::test]
async fn the_detail_says_the_reason_and_words_are_listed() {
    let service = TestService::product(&[]).await;
    let short = json!({"email": "ada@example.org", "password": "short"});
    let short = post(&service, "/api/v1/auth/register", &short).await;
    assert_eq!(short.json()["detail"], "password: must have 8 to 256 characters");

    let ada = register(&service, "ada").await;
    let bees = json!({"name": "Bees", "slug": "bees"});
    assert_eq!(send(&service, &ada.token, Method::POST, "/api/v1/repositories", &bees).await.status, 201);
    for (list, first) in [
        ("facts?status=odd", "status: must be one of new, "),
        ("sources?status=odd", "status: must be one of "),
    ] {
        let answer = service.get_as(&ada.token, &format!("/api/v1/repositories/bees/{list}")).await;
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 422 && detail.starts_with(first), "{answer:?}");
    }
}

#[tokio::test]
async fn broken_json_is_located() {
    let service = TestService::product(&[]).await;
    for (body, place) in [
        ("{\"email\": \"a\",\n \"password\": }", "line 2 column 14"),
        // What is missing in it is not the point.
        ("{\"pasword\": 1,,}", "line 1 column 15"),
        ("", "empty"),
    ] {
        let request =
            service.request(Method::POST, "/api/v1/auth/login").header("content-type", "application/json");
        let answer = Answer::of(request.body(body)).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "malformed"), "{answer:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("not well-formed JSON") && detail.contains(place), "{detail}");
    }
}
