//! Nobody becomes a member but by a secret that somebody handed to them, and by each once.

use futures_util::future::join_all;
use http::Method;
use okt_testkit::accounts::{PASSWORD, Person, post, register, sql, tables_with};
use okt_testkit::client::Answer;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, path};

const ACCEPT: &str = "/api/v1/invitations/accept";
const REGISTER: &str = "/api/v1/auth/register";

async fn invite(fixture: &TwoDatabases, who: &Person, id: Uuid, email: &str, role: &str) -> Answer {
    let body = json!({"email": email, "role": role});
    fixture.send(who, Method::POST, &path(id, "invitations"), &body).await
}

/// Ada's invitation to her repository.
async fn secret(fixture: &TwoDatabases, id: Uuid, role: &str) -> String {
    let made = invite(fixture, &fixture.ada, id, "eve@example.org", role).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["secret"].as_str().unwrap().to_owned()
}

async fn accept(fixture: &TwoDatabases, who: &Person, secret: &str) -> Answer {
    fixture.send(who, Method::POST, ACCEPT, &json!({"secret": secret})).await
}

fn refused(answer: &Answer, field: &str) {
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["errors"][0]["field"]),
        (422, &json!(field)),
        "{answer:?}"
    );
}

#[tokio::test]
async fn who_has_the_link_joins_once() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let (eve, bob) = (register(&fixture.service, "eve").await, register(&fixture.service, "bob").await);
    let made = invite(&fixture, &fixture.ada, id, "eve@example.org", "editor").await;
    assert_eq!(made.status, 201, "{made:?}");
    let record = made.json();
    let secret = record["secret"].as_str().unwrap();
    assert_eq!(record["link"], format!("{}/invite#{secret}", fixture.service.url));
    assert_eq!(made.header("location"), path(id, &format!("invitations/{}", record["id"].as_str().unwrap())));
    assert!(tables_with(&fixture.service, secret).await.is_empty(), "only its hash is kept");
    let page = Answer::of(fixture.service.request(Method::GET, "/invite")).await;
    assert!(page.status == 200 && page.text.contains(ACCEPT), "{page:?}");

    let listed = fixture.get(&fixture.ada, &path(id, "invitations")).await.json();
    let mut open = record.clone();
    open.as_object_mut().unwrap().retain(|field, _| field != "secret" && field != "link");
    assert_eq!(listed["data"], json!([open]));
    assert_eq!(fixture.get(&eve, &path(id, "")).await.status, 404, "nobody is a member unasked");

    let joined = accept(&fixture, &eve, secret).await;
    let expected = json!({"repository_id": id, "name": "Bees", "slug": "bees", "role": "editor"});
    assert_eq!((joined.status.as_u16(), joined.json()), (200, expected), "{joined:?}");
    assert_eq!(fixture.get(&eve, &path(id, "")).await.json()["roles"], json!(["editor"]));
    for who in [&bob, &eve] {
        refused(&accept(&fixture, who, secret).await, "secret");
    }
    assert_eq!(fixture.get(&fixture.ada, &path(id, "invitations")).await.json()["data"], json!([]));

    let audit = fixture.get(&fixture.ada, &path(id, "audit?limit=200")).await;
    for action in ["invitation.created", "invitation.accepted"] {
        assert!(audit.text.contains(action), "{action}: {audit:?}");
    }
    assert!(!audit.text.contains("eve@"), "addresses are not for the audit: {audit:?}");
}

#[tokio::test]
async fn an_invitation_says_nothing_about_who_has_an_account() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let shape =
        |answer: &Answer| -> Vec<String> { answer.json().as_object().unwrap().keys().cloned().collect() };
    let known = invite(&fixture, &fixture.ada, id, "admin@example.org", "viewer").await;
    let unknown = invite(&fixture, &fixture.ada, id, "nobody@example.org", "viewer").await;
    assert_eq!((known.status, shape(&known)), (unknown.status, shape(&unknown)));
    assert_eq!(known.status, 201);
    assert_eq!(
        fixture.get(&fixture.ada, &path(id, "invitations")).await.json()["data"].as_array().unwrap().len(),
        2
    );
}

/// Two who press the button at once, and one who presses it ten times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_use_it_at_once_one_joins() {
    let fixture = TwoDatabases::with(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let (eve, bob) = (register(&fixture.service, "eve").await, register(&fixture.service, "bob").await);
    for _ in 0..5 {
        let id = fixture.repository().await;
        let secret = secret(&fixture, id, "viewer").await;
        let tries = (0..10).map(|n| accept(&fixture, if n % 2 == 0 { &eve } else { &bob }, &secret));
        let all = join_all(tries).await;
        assert_eq!(all.iter().filter(|answer| answer.status == 200).count(), 1, "{all:?}");
        assert!(all.iter().all(|answer| answer.status == 200 || answer.status == 422), "{all:?}");
        let members = format!("SELECT count(*) FROM okt_system.role_assignments WHERE domain = '{id}'");
        assert_eq!(fixture.count("default", &members).await, 2);
    }
}

#[tokio::test]
async fn an_account_that_is_made_with_one_is_a_member_from_the_start() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let secret = secret(&fixture, id, "curator").await;
    let account =
        |email: &str, secret: &str| json!({"email": email, "password": PASSWORD, "invitation": secret});
    refused(&post(&fixture.service, REGISTER, &account("new@example.org", "okti_none")).await, "invitation");
    let taken = post(&fixture.service, REGISTER, &account("admin@example.org", &secret)).await;
    assert_eq!(taken.status, 409, "{taken:?}");

    let made = post(&fixture.service, REGISTER, &account("new@example.org", &secret)).await;
    assert_eq!(made.status, 201, "neither try made an account or used it up: {made:?}");
    let new = Person::of(&made);
    assert_eq!(fixture.get(&new, &path(id, "")).await.json()["roles"], json!(["curator"]));
    refused(&post(&fixture.service, REGISTER, &account("other@example.org", &secret)).await, "invitation");
    let people = "SELECT count(*) FROM okt_system.users WHERE email = 'other@example.org'";
    assert_eq!(fixture.count("default", people).await, 0);
}

#[tokio::test]
async fn one_that_is_over_is_over() {
    let fixture = TwoDatabases::with(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let id = fixture.repository().await;
    let (eve, bob) = (register(&fixture.service, "eve").await, register(&fixture.service, "bob").await);

    let replaced = secret(&fixture, id, "viewer").await;
    let withdrawn = invite(&fixture, &fixture.ada, id, "EVE@example.org", "viewer").await.json();
    refused(&accept(&fixture, &eve, &replaced).await, "secret");
    let one = path(id, &format!("invitations/{}", withdrawn["id"].as_str().unwrap()));
    assert_eq!(fixture.delete(&bob, &one).await.status, 404);
    assert_eq!(fixture.delete(&fixture.ada, &one).await.status, 204);
    assert_eq!(fixture.delete(&fixture.ada, &one).await.status, 404);
    refused(&accept(&fixture, &eve, withdrawn["secret"].as_str().unwrap()).await, "secret");

    let late = secret(&fixture, id, "viewer").await;
    let days = "SELECT count(*) FROM okt_system.invitations
                 WHERE expires_at BETWEEN now() + interval '167 hours' AND now() + interval '168 hours'";
    assert_eq!(fixture.count("default", days).await, 1, "seven days");
    sql(&fixture.service, "UPDATE okt_system.invitations SET expires_at = now() - interval '1 second'").await;
    refused(&accept(&fixture, &eve, &late).await, "secret");
    assert_eq!(fixture.get(&fixture.ada, &path(id, "invitations")).await.json()["data"], json!([]));

    // Whoever was removed does not come back by what they wrote before, nor does anybody else by it.
    for after in [Value::Null, json!("editor")] {
        fixture
            .send(
                &fixture.ada,
                Method::PUT,
                &path(id, "members"),
                &json!({"user_id": bob.id, "role": "repoadmin"}),
            )
            .await;
        let theirs = invite(&fixture, &bob, id, "bob@example.net", "repoadmin").await.json();
        let member = if after.is_null() {
            fixture
                .send(&fixture.ada, Method::DELETE, &path(id, "members"), &json!({"user_id": bob.id}))
                .await
        } else {
            fixture
                .send(
                    &fixture.ada,
                    Method::PUT,
                    &path(id, "members"),
                    &json!({"user_id": bob.id, "role": after}),
                )
                .await
        };
        assert_eq!(member.status, 204);
        refused(&accept(&fixture, &eve, theirs["secret"].as_str().unwrap()).await, "secret");
    }

    // Nor does whoever was disabled, by a second account.
    let admin = json!({"user_id": bob.id, "role": "repoadmin"});
    fixture.send(&fixture.ada, Method::PUT, &path(id, "members"), &admin).await;
    let theirs = invite(&fixture, &bob, id, "bob@example.net", "repoadmin").await.json();
    let status = format!("/api/v1/admin/users/{}/status", bob.id);
    let disabled = fixture.send(&fixture.admin, Method::PUT, &status, &json!({"status": "disabled"})).await;
    assert_eq!(disabled.status, 204);
    refused(&accept(&fixture, &eve, theirs["secret"].as_str().unwrap()).await, "secret");

    let last = secret(&fixture, id, "viewer").await;
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.status, 204);
    refused(&accept(&fixture, &eve, &last).await, "secret");
    let worker = fixture.worker().await;
    fixture.until("default", "SELECT count(*) FROM okt_system.invitations", 0).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_role_is_given_by_those_who_may_and_never_taken() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let eve = register(&fixture.service, "eve").await;
    fixture
        .send(&fixture.ada, Method::PUT, &path(id, "members"), &json!({"user_id": eve.id, "role": "editor"}))
        .await;
    assert_eq!(invite(&fixture, &eve, id, "x@example.org", "viewer").await.status, 403);
    assert_eq!(fixture.get(&eve, &path(id, "invitations")).await.status, 403);
    for (email, role, field) in [
        ("x@example.org", "sysadmin", "role"),
        ("x@example.org", "user", "role"),
        ("x@example.org", "king", "role"),
        ("nobody", "viewer", "email"),
    ] {
        refused(&invite(&fixture, &fixture.ada, id, email, role).await, field);
    }
    // The last administrator stays one, and an editor is not made less.
    for (who, role, kept) in
        [(&fixture.ada, "viewer", "repoadmin"), (&eve, "curator", "editor"), (&eve, "repoadmin", "repoadmin")]
    {
        let secret = secret(&fixture, id, role).await;
        assert_eq!(accept(&fixture, who, &secret).await.json()["role"], kept);
        assert_eq!(fixture.get(who, &path(id, "")).await.json()["roles"], json!([kept]));
    }
}
