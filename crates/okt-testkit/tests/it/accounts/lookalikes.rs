//! What looks like something else.

use http::Method;
use okt_testkit::accounts::{KEYS, PASSWORD, count, post, register, send};
use okt_testkit::served::TestService;
use serde_json::json;

const REGISTER: &str = "/api/v1/auth/register";

/// A name with characters that hide or turn around others, and as it is shown.
const FORGED: (&str, &str) = ("  Ada\u{200b} \u{202e}Lovelace\u{feff} ", "Ada Lovelace");

#[tokio::test]
async fn an_address_that_looks_like_another_is_refused() {
    let service = TestService::product(&[]).await;
    let al = json!({"email": "al@x.org", "password": PASSWORD});
    assert_eq!(post(&service, REGISTER, &al).await.status, 201);
    let bob = register(&service, "bob").await;
    for (forged, reason) in [
        ("al@x.org\u{200b}", "can't be seen"),
        ("a\u{ad}l@x.org", "can't be seen"),
        ("\u{202e}al@x.org", "can't be seen"),
        ("\u{ff41}l@x.org", "look like others"),
        ("al@x\u{ff0e}org", "look like others"),
    ] {
        let body = json!({"email": forged, "password": PASSWORD});
        let own = format!("/api/v1/users/{}", bob.id);
        for answer in [
            post(&service, REGISTER, &body).await,
            send(&service, &bob.token, Method::PUT, &own, &json!({"email": forged})).await,
        ] {
            assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{forged:?}");
            let error = &answer.json()["errors"][0];
            assert_eq!(error["field"], "email");
            assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
        }
        assert_eq!(post(&service, "/api/v1/auth/login", &body).await.status, 401, "{forged:?}");
    }
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.users").await, 2);
    for written in ["cafe\u{301}@x.org", "caf\u{e9}@x.org"] {
        let body = json!({"email": written, "password": PASSWORD});
        let status = post(&service, REGISTER, &body).await.status;
        assert_eq!(status, if written.len() > 11 { 201 } else { 409 }, "two ways to write one address");
    }
}

#[tokio::test]
async fn names_show_what_they_are_wherever_somebody_gives_one() {
    let service = TestService::product(&[]).await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD, "name": FORGED.0});
    let registered = post(&service, REGISTER, &account).await.json();
    assert_eq!(registered["user"]["name"], FORGED.1);
    let token = registered["token"].as_str().unwrap();
    let own = format!("/api/v1/users/{}", registered["user"]["id"].as_str().unwrap());
    let repository =
        send(&service, token, Method::POST, "/api/v1/repositories", &json!({"name": FORGED.0})).await;
    assert_eq!((repository.status.as_u16(), &repository.json()["name"]), (201, &json!(FORGED.1)));
    let repository = format!("/api/v1/repositories/{}", repository.json()["id"].as_str().unwrap());
    let contexts = format!("{repository}/settings/contexts");
    for (method, path, field, more) in [
        (Method::PUT, own.as_str(), "name", json!({})),
        (Method::POST, KEYS, "name", json!({"permissions": ["source:read"]})),
        (Method::PUT, &repository, "name", json!({})),
        (Method::POST, &contexts, "label", json!({})),
        (Method::POST, "/api/v1/promptsets", "name", json!({"phases": {"posture": "Say which"}})),
    ] {
        let body = |text: &str| {
            let mut body = more.clone();
            body[field] = json!(text);
            body
        };
        let answer = send(&service, token, method.clone(), path, &body(FORGED.0)).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        assert_eq!(answer.json()[field], FORGED.1, "{path}");
        for wrong in ["a\nb", "a\u{7}b"] {
            let answer = send(&service, token, method.clone(), path, &body(wrong)).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem().as_str()),
                (422, "invalid"),
                "{path} {wrong:?}"
            );
        }
        if path != own {
            let answer = send(&service, token, method.clone(), path, &body("\u{200b}\u{3164}")).await;
            assert_eq!(answer.status, 422, "{path}: a name that nobody sees is none");
        }
    }
}
