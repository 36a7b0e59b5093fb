use http::Method;
use okt_testkit::accounts::{Person, register};
use okt_testkit::client::Answer;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::two_databases::{TwoDatabases, path};

async fn set(fixture: &TwoDatabases, who: &Person, id: Uuid, body: &Value) -> Answer {
    fixture.send(who, Method::PUT, &path(id, "members"), body).await
}

async fn remove(fixture: &TwoDatabases, who: &Person, id: Uuid, body: &Value) -> Answer {
    fixture.send(who, Method::DELETE, &path(id, "members"), body).await
}

async fn listed(fixture: &TwoDatabases, id: Uuid) -> Vec<(String, Value)> {
    let list = fixture.get(&fixture.ada, &path(id, "members")).await.json();
    let rows = list["data"].as_array().unwrap().clone();
    assert!(rows.iter().all(|row| row.get("email").is_none()), "an address is its owner's to tell");
    rows.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["roles"].clone())).collect()
}

#[tokio::test]
async fn a_member_has_the_one_role_that_was_given_last() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let (bob, eve) = (register(&fixture.service, "bob").await, register(&fixture.service, "eve").await);
    assert_eq!(fixture.get(&bob, &path(id, "")).await.status, 404);
    assert_eq!(
        set(&fixture, &fixture.ada, id, &json!({"user_id": bob.id, "role": "viewer"})).await.status,
        204
    );
    assert_eq!(fixture.get(&bob, &path(id, "")).await.status, 200, "with the next request");
    assert_eq!(
        set(&fixture, &fixture.ada, id, &json!({"user_id": eve.id, "role": "editor"})).await.status,
        204
    );
    assert_eq!(
        set(&fixture, &fixture.ada, id, &json!({"user_id": bob.id, "role": "curator"})).await.status,
        204
    );
    let expected = [("ada", "repoadmin"), ("bob", "curator"), ("eve", "editor")];
    assert_eq!(listed(&fixture, id).await, expected.map(|(name, role)| (name.to_owned(), json!([role]))));

    assert_eq!(set(&fixture, &bob, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await.status, 403);
    assert_eq!(remove(&fixture, &fixture.ada, id, &json!({"user_id": bob.id})).await.status, 204);
    assert_eq!(fixture.get(&bob, &path(id, "")).await.status, 404);
    assert_eq!(remove(&fixture, &fixture.ada, id, &json!({"user_id": bob.id})).await.status, 404);
    assert_eq!(listed(&fixture, id).await.len(), 2);

    for (body, status) in [
        (json!({"role": "viewer"}), 422),
        (json!({"user_id": bob.id, "email": "bob@example.org", "role": "viewer"}), 422),
        (json!({"user_id": bob.id, "role": "sysadmin"}), 422),
        (json!({"user_id": bob.id, "role": "king"}), 422),
        (json!({"user_id": id, "role": "viewer"}), 404),
        (json!({"email": "eve@example.org", "role": "viewer"}), 422),
        (json!({"email": "nobody@example.org", "role": "viewer"}), 422),
    ] {
        assert_eq!(set(&fixture, &fixture.ada, id, &body).await.status, status, "{body}");
    }
}

/// Nobody has proven an address, and whether somebody has an account is not for strangers to ask.
#[tokio::test]
async fn an_address_is_answered_alike_whether_or_not_somebody_has_it() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let mut told = Vec::new();
    for email in ["admin@example.org", "nobody@example.org"] {
        let given = set(&fixture, &fixture.ada, id, &json!({"email": email, "role": "viewer"})).await;
        let taken = remove(&fixture, &fixture.ada, id, &json!({"email": email})).await;
        for refused in [&given, &taken] {
            let why = &refused.json()["errors"][0];
            assert_eq!((refused.status.as_u16(), &why["field"]), (422, &json!("email")), "{refused:?}");
            assert!(why["message"].as_str().unwrap().contains("/invitations"), "{why}");
        }
        told.push((given.json()["errors"].clone(), taken.json()["errors"].clone()));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(listed(&fixture, id).await.len(), 1, "nobody became a member");
}

#[tokio::test]
async fn the_last_repoadmin_stays() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let bob = register(&fixture.service, "bob").await;
    let me = json!({"user_id": fixture.ada.id});
    let demoted = json!({"user_id": fixture.ada.id, "role": "viewer"});
    for refused in
        [remove(&fixture, &fixture.ada, id, &me).await, set(&fixture, &fixture.ada, id, &demoted).await]
    {
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "conflict"));
    }
    let role = json!({"user_id": fixture.ada.id, "role": "repoadmin", "domain": id});
    let refused = fixture.send(&fixture.admin, Method::DELETE, "/api/v1/admin/users/roles", &role).await;
    assert_eq!(refused.status, 409, "not even by the front door: {refused:?}");

    set(&fixture, &fixture.ada, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await;
    assert_eq!(set(&fixture, &fixture.ada, id, &demoted).await.status, 204);
    assert_eq!(remove(&fixture, &bob, id, &json!({"user_id": bob.id})).await.status, 409);
}

/// Two who leave at once leave one behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_repoadmins_can_not_leave_at_once() {
    let fixture = TwoDatabases::new().await;
    let bob = register(&fixture.service, "bob").await;
    for _ in 0..10 {
        let id = fixture.repository().await;
        set(&fixture, &fixture.ada, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await;
        let (mine, his) = (json!({"user_id": fixture.ada.id}), json!({"user_id": bob.id}));
        let (one, other) =
            tokio::join!(remove(&fixture, &fixture.ada, id, &mine), remove(&fixture, &bob, id, &his));
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409]);
    }
}

#[tokio::test]
async fn members_page_by_key_and_roles_go_only_to_repositories_that_are_there() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    for name in ["b", "c", "d"] {
        let person = register(&fixture.service, name).await;
        set(&fixture, &fixture.ada, id, &json!({"user_id": person.id, "role": "viewer"})).await;
    }
    let first = fixture.get(&fixture.ada, &path(id, "members?limit=3")).await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second =
        fixture.get(&fixture.ada, &path(id, &format!("members?limit=3&cursor={cursor}"))).await.json();
    assert_eq!(first["data"].as_array().unwrap().len() + second["data"].as_array().unwrap().len(), 4);
    assert_eq!(second["next_cursor"], Value::Null);

    let role = json!({"user_id": fixture.ada.id, "role": "viewer", "domain": fixture.ada.id});
    let refused = fixture.send(&fixture.admin, Method::PUT, "/api/v1/admin/users/roles", &role).await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["detail"].clone()),
        (404, json!("repository not found"))
    );
}
