use http::Method;
use okt_testkit::accounts::{access_token, api_key, api_key_in, give, register, repository, send};
use serde_json::{Value, json};

use crate::house::{House, REPOSITORIES, id_of, path};

fn names(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn people_see_their_own_and_what_is_shared_with_them() {
    let house = House::new().await;
    let eve = register(&house.service, "eve").await;
    let bees = house.make(&house.ada, &json!({"name": "Bees"})).await;
    let wasps = house.make(&eve, &json!({"name": "Wasps"})).await;
    assert_eq!(names(&house.get(&house.ada, REPOSITORIES).await.json()), ["Bees"]);
    assert_eq!(names(&house.get(&eve, REPOSITORIES).await.json()), ["Wasps"]);
    assert_eq!(names(&house.get(&house.admin, REPOSITORIES).await.json()), ["Wasps", "Bees"], "newest first");

    give(&house.service, eve.id, bees["id"].as_str().unwrap(), "viewer").await;
    let list = house.get(&eve, REPOSITORIES).await.json();
    assert_eq!(names(&list), ["Wasps", "Bees"]);
    assert_eq!(
        (&list["data"][0]["roles"], &list["data"][1]["roles"]),
        (&json!(["repoadmin"]), &json!(["viewer"]))
    );
    // Whoever can't see it can't tell it from one that is not there.
    let nothing = uuid::Uuid::nil();
    let bodies: Vec<_> = [id_of(&wasps), nothing].map(|id| path(id, "")).into();
    for address in bodies {
        let hidden = house.get(&house.ada, &address).await;
        assert_eq!((hidden.status.as_u16(), hidden.problem().as_str()), (404, "not_found"), "{address}");
        assert_eq!(hidden.json()["detail"], "repository not found");
    }
    for name in ["wasps", "no-such-slug"] {
        let hidden = house.get(&house.ada, &format!("{REPOSITORIES}/{name}")).await;
        assert_eq!(
            (hidden.status.as_u16(), hidden.json()["detail"].clone()),
            (404, json!("repository not found"))
        );
    }
}

#[tokio::test]
async fn a_list_pages_by_key_for_members_and_for_sysadmins() {
    let house = House::new().await;
    for n in 0..7 {
        house.make(&house.ada, &json!({"name": format!("n{n}")})).await;
    }
    for who in [&house.ada, &house.admin] {
        let (mut found, mut next) = (Vec::new(), format!("{REPOSITORIES}?limit=3"));
        loop {
            let page = house.get(who, &next).await.json();
            found.extend(names(&page).into_iter().map(str::to_owned));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            next = format!("{REPOSITORIES}?limit=3&cursor={cursor}");
        }
        assert_eq!(found, ["n6", "n5", "n4", "n3", "n2", "n1", "n0"]);
    }
}

/// What a credential may do is the owner's less what it was not given; the list shows no more than that.
#[tokio::test]
async fn a_key_lists_what_it_reaches() {
    let house = House::new().await;
    let (bees, _) = (house.repository().await, house.make(&house.ada, &json!({"name": "Wasps"})).await);
    let listed = async |token: &str| {
        let answer = house.service.get_as(token, REPOSITORIES).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        names(&answer.json()).len()
    };
    let service = &house.service;
    assert_eq!(listed(&api_key(service, &house.ada, &["repository:read"]).await.1).await, 2);
    assert_eq!(listed(&api_key(service, &house.ada, &["source:read"]).await.1).await, 0);
    assert_eq!(listed(&api_key_in(service, &house.ada, &["repository:read"], bees).await.1).await, 1);
    assert_eq!(listed(&api_key_in(service, &house.admin, &["repository:read"], bees).await.1).await, 1);
    assert_eq!(listed(&api_key(service, &house.admin, &["repository:read"]).await.1).await, 2);
    assert_eq!(listed(&api_key(service, &house.admin, &["source:read"]).await.1).await, 0);
    assert_eq!(listed(&access_token(service, house.ada.id, "repository:read").await).await, 2);
    assert_eq!(listed(&access_token(service, house.ada.id, "fact:read").await).await, 0);
}

#[tokio::test]
async fn a_key_for_a_repository_that_is_not_there_is_refused() {
    let house = House::new().await;
    let theirs = repository(&house.service).await;
    for (who, id) in [(&house.ada, theirs.uuid()), (&house.ada, house.ada.id), (&house.admin, house.ada.id)] {
        let body = json!({"name": "a key", "permissions": ["source:read"], "repository_id": id});
        let refused =
            send(&house.service, &who.token, Method::POST, "/api/v1/users/me/api-keys", &body).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], "repository_id");
    }
}

#[tokio::test]
async fn permissions_are_told_to_anybody_and_tell_nothing_of_others() {
    let house = House::new().await;
    let id = house.repository().await;
    let eve = register(&house.service, "eve").await;
    let held = house.get(&house.ada, &path(id, "permissions")).await.json();
    assert_eq!((&held["domain"], &held["roles"]), (&json!(id), &json!(["repoadmin"])));
    assert!(
        held["permissions"]
            .as_array()
            .unwrap()
            .contains(&json!({"object": "repository", "action": "manage"}))
    );
    let by_slug = house.get(&house.ada, &format!("{REPOSITORIES}/bees/permissions")).await.json();
    assert_eq!(by_slug, held);
    for unseen in [id, eve.id] {
        let told = house.get(&eve, &path(unseen, "permissions")).await;
        assert_eq!(told.json(), json!({"domain": unseen, "roles": [], "permissions": []}));
    }
    for slug in ["bees", "wasps"] {
        assert_eq!(house.get(&eve, &format!("{REPOSITORIES}/{slug}/permissions")).await.status, 404);
    }
}

#[tokio::test]
async fn a_change_is_seen_and_recorded() {
    let house = House::new().await;
    let id = house.repository().await;
    let changed = house
        .send(&house.ada, Method::PUT, &path(id, ""), &json!({"name": "Honey bees", "description": "Apis"}))
        .await;
    let record = changed.json();
    assert_eq!(
        (&record["name"], &record["description"], &record["slug"]),
        (&json!("Honey bees"), &json!("Apis"), &json!("bees"))
    );
    assert!(record["updated_at"].as_str().unwrap() > record["created_at"].as_str().unwrap());
    let same = house.send(&house.ada, Method::PUT, &path(id, ""), &json!({})).await.json();
    assert_eq!(same["name"], "Honey bees");
    for body in [json!({"name": " "}), json!({"slug": "other"}), json!({"database": "second"})] {
        assert_eq!(house.send(&house.ada, Method::PUT, &path(id, ""), &body).await.status, 422, "{body}");
    }
    let audit = house.get(&house.ada, &path(id, "audit")).await.json();
    let actions: Vec<_> = audit["data"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(
        actions,
        [json!("repository.updated"), json!("repository.updated"), json!("repository.created")]
    );
    assert!(audit["data"].as_array().unwrap().iter().all(|row| row["repository_id"] == json!(id)));
    // Others' deeds are not in it.
    house.make(&house.admin, &json!({"name": "Other"})).await;
    assert_eq!(house.get(&house.ada, &path(id, "audit")).await.json(), audit);
}

/// One home is away: everybody else's repositories are listed as ever, and its own without their counts.
#[tokio::test]
async fn a_list_does_not_wait_for_a_database_that_is_away() {
    let house = House::new().await;
    house.make(&house.admin, &json!({"name": "Here"})).await;
    house.make(&house.admin, &json!({"name": "There", "database": "second"})).await;
    // Whoever asks there waits.
    let mut away = house.second.connect().await;
    okt_testkit::db::run(&mut away, "BEGIN; LOCK TABLE okt_repository.counters IN ACCESS EXCLUSIVE MODE")
        .await;
    let asked = std::time::Instant::now();
    let list = house.get(&house.admin, REPOSITORIES).await.json();
    assert!(asked.elapsed() < std::time::Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(names(&list), ["There", "Here"]);
    assert_eq!(list["data"][0]["counts"], Value::Null);
    assert_eq!(list["data"][1]["counts"]["facts"], 0);
}

/// Neither the answers nor the limits tell a stranger which slugs are taken.
#[tokio::test]
async fn whoever_guesses_slugs_learns_nothing() {
    let house = House::new().await;
    house.repository().await;
    let mut told = Vec::new();
    for (name, slug) in [("eve", "bees"), ("mallory", "wasps")] {
        let stranger = register(&house.service, name).await;
        let mut statuses = Vec::new();
        for _ in 0..70 {
            statuses.push(house.get(&stranger, &format!("{REPOSITORIES}/{slug}")).await.status.as_u16());
        }
        told.push(statuses);
    }
    assert_eq!(told[0], told[1]);
    assert!(told[0].contains(&429), "{:?}", told[0]);
    let seen = house.get(&house.ada, &format!("{REPOSITORIES}/bees/audit")).await.text;
    assert!(!seen.contains("request.denied"), "strangers are nobody's business here: {seen}");
}
