use http::Method;
use okt_testkit::accounts::{Person, register};
use okt_testkit::client::Answer;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::house::{House, path};

async fn set(house: &House, who: &Person, id: Uuid, body: &Value) -> Answer {
    house.send(who, Method::PUT, &path(id, "members"), body).await
}

async fn remove(house: &House, who: &Person, id: Uuid, body: &Value) -> Answer {
    house.send(who, Method::DELETE, &path(id, "members"), body).await
}

async fn listed(house: &House, id: Uuid) -> Vec<(String, Value)> {
    let list = house.get(&house.ada, &path(id, "members")).await.json();
    let rows = list["data"].as_array().unwrap().clone();
    assert!(rows.iter().all(|row| row.get("email").is_none()), "an address is its owner's to tell");
    rows.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["roles"].clone())).collect()
}

#[tokio::test]
async fn a_member_has_the_one_role_that_was_given_last() {
    let house = House::new().await;
    let id = house.repository().await;
    let (bob, eve) = (register(&house.service, "bob").await, register(&house.service, "eve").await);
    assert_eq!(house.get(&bob, &path(id, "")).await.status, 404);
    assert_eq!(set(&house, &house.ada, id, &json!({"user_id": bob.id, "role": "viewer"})).await.status, 204);
    assert_eq!(house.get(&bob, &path(id, "")).await.status, 200, "with the next request");
    assert_eq!(
        set(&house, &house.ada, id, &json!({"email": "EVE@example.org", "role": "editor"})).await.status,
        204
    );
    assert_eq!(set(&house, &house.ada, id, &json!({"user_id": bob.id, "role": "curator"})).await.status, 204);
    let expected = [("ada", "repoadmin"), ("bob", "curator"), ("eve", "editor")];
    assert_eq!(listed(&house, id).await, expected.map(|(name, role)| (name.to_owned(), json!([role]))));

    assert_eq!(set(&house, &bob, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await.status, 403);
    assert_eq!(remove(&house, &house.ada, id, &json!({"email": "bob@example.org"})).await.status, 204);
    assert_eq!(house.get(&bob, &path(id, "")).await.status, 404);
    assert_eq!(remove(&house, &house.ada, id, &json!({"user_id": bob.id})).await.status, 404);
    assert_eq!(listed(&house, id).await.len(), 2);
    let _ = eve;

    for (body, status) in [
        (json!({"role": "viewer"}), 422),
        (json!({"user_id": bob.id, "email": "bob@example.org", "role": "viewer"}), 422),
        (json!({"user_id": bob.id, "role": "sysadmin"}), 422),
        (json!({"user_id": bob.id, "role": "king"}), 422),
        (json!({"user_id": id, "role": "viewer"}), 404),
        (json!({"email": "nobody@example.org", "role": "viewer"}), 404),
        (json!({"email": "nobody", "role": "viewer"}), 422),
    ] {
        assert_eq!(set(&house, &house.ada, id, &body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn the_last_repoadmin_stays() {
    let house = House::new().await;
    let id = house.repository().await;
    let bob = register(&house.service, "bob").await;
    let me = json!({"user_id": house.ada.id});
    let demoted = json!({"user_id": house.ada.id, "role": "viewer"});
    for refused in [remove(&house, &house.ada, id, &me).await, set(&house, &house.ada, id, &demoted).await] {
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "conflict"));
    }
    let role = json!({"user_id": house.ada.id, "role": "repoadmin", "domain": id});
    let refused = house.send(&house.admin, Method::DELETE, "/api/v1/admin/users/roles", &role).await;
    assert_eq!(refused.status, 409, "not even by the front door: {refused:?}");

    set(&house, &house.ada, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await;
    assert_eq!(set(&house, &house.ada, id, &demoted).await.status, 204);
    assert_eq!(remove(&house, &bob, id, &json!({"user_id": bob.id})).await.status, 409);
}

/// Two who leave at once leave one behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_repoadmins_can_not_leave_at_once() {
    let house = House::new().await;
    let bob = register(&house.service, "bob").await;
    for _ in 0..10 {
        let id = house.repository().await;
        set(&house, &house.ada, id, &json!({"user_id": bob.id, "role": "repoadmin"})).await;
        let (mine, his) = (json!({"user_id": house.ada.id}), json!({"user_id": bob.id}));
        let (one, other) =
            tokio::join!(remove(&house, &house.ada, id, &mine), remove(&house, &bob, id, &his));
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409]);
    }
}

#[tokio::test]
async fn members_page_by_key_and_roles_go_only_to_repositories_that_are_there() {
    let house = House::new().await;
    let id = house.repository().await;
    for name in ["b", "c", "d"] {
        let person = register(&house.service, name).await;
        set(&house, &house.ada, id, &json!({"user_id": person.id, "role": "viewer"})).await;
    }
    let first = house.get(&house.ada, &path(id, "members?limit=3")).await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = house.get(&house.ada, &path(id, &format!("members?limit=3&cursor={cursor}"))).await.json();
    assert_eq!(first["data"].as_array().unwrap().len() + second["data"].as_array().unwrap().len(), 4);
    assert_eq!(second["next_cursor"], Value::Null);

    let role = json!({"user_id": house.ada.id, "role": "viewer", "domain": house.ada.id});
    let refused = house.send(&house.admin, Method::PUT, "/api/v1/admin/users/roles", &role).await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["detail"].clone()),
        (404, json!("repository not found"))
    );
}
