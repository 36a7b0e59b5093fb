use http::Method;
use okt_testkit::accounts::{access_token, api_key, api_key_in, give, register, repository, send};
use serde_json::{Value, json};

use crate::repositories::two_databases::{REPOSITORIES, TwoDatabases, id_of, path};

fn names(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn people_see_their_own_and_what_is_shared_with_them() {
    let fixture = TwoDatabases::new().await;
    let eve = register(&fixture.service, "eve").await;
    let bees = fixture.make(&fixture.ada, &json!({"name": "Bees"})).await;
    let wasps = fixture.make(&eve, &json!({"name": "Wasps"})).await;
    assert_eq!(names(&fixture.get(&fixture.ada, REPOSITORIES).await.json()), ["Bees"]);
    assert_eq!(names(&fixture.get(&eve, REPOSITORIES).await.json()), ["Wasps"]);
    assert_eq!(
        names(&fixture.get(&fixture.admin, REPOSITORIES).await.json()),
        ["Wasps", "Bees"],
        "newest first"
    );

    give(&fixture.service, eve.id, bees["id"].as_str().unwrap(), "viewer").await;
    let list = fixture.get(&eve, REPOSITORIES).await.json();
    assert_eq!(names(&list), ["Wasps", "Bees"]);
    assert_eq!(
        (&list["data"][0]["roles"], &list["data"][1]["roles"]),
        (&json!(["repoadmin"]), &json!(["viewer"]))
    );
    // Whoever can't see it can't tell it from one that is not there.
    let nothing = uuid::Uuid::nil();
    let bodies: Vec<_> = [id_of(&wasps), nothing].map(|id| path(id, "")).into();
    for address in bodies {
        let hidden = fixture.get(&fixture.ada, &address).await;
        assert_eq!((hidden.status.as_u16(), hidden.problem().as_str()), (404, "not_found"), "{address}");
        assert_eq!(hidden.json()["detail"], "repository not found");
    }
    for name in ["wasps", "no-such-slug"] {
        let hidden = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/{name}")).await;
        assert_eq!(
            (hidden.status.as_u16(), hidden.json()["detail"].clone()),
            (404, json!("repository not found"))
        );
    }
}

#[tokio::test]
async fn a_list_pages_by_key_for_members_and_for_sysadmins() {
    let fixture = TwoDatabases::new().await;
    for n in 0..7 {
        fixture.make(&fixture.ada, &json!({"name": format!("n{n}")})).await;
    }
    for who in [&fixture.ada, &fixture.admin] {
        let (mut found, mut next) = (Vec::new(), format!("{REPOSITORIES}?limit=3"));
        loop {
            let page = fixture.get(who, &next).await.json();
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
    let fixture = TwoDatabases::new().await;
    let (bees, _) = (fixture.repository().await, fixture.make(&fixture.ada, &json!({"name": "Wasps"})).await);
    let listed = async |token: &str| {
        let answer = fixture.service.get_as(token, REPOSITORIES).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        names(&answer.json()).len()
    };
    let service = &fixture.service;
    assert_eq!(listed(&api_key(service, &fixture.ada, &["repository:read"]).await.1).await, 2);
    assert_eq!(listed(&api_key(service, &fixture.ada, &["source:read"]).await.1).await, 0);
    assert_eq!(listed(&api_key_in(service, &fixture.ada, &["repository:read"], bees).await.1).await, 1);
    assert_eq!(listed(&api_key_in(service, &fixture.admin, &["repository:read"], bees).await.1).await, 1);
    assert_eq!(listed(&api_key(service, &fixture.admin, &["repository:read"]).await.1).await, 2);
    assert_eq!(listed(&api_key(service, &fixture.admin, &["source:read"]).await.1).await, 0);
    assert_eq!(listed(&access_token(service, fixture.ada.id, "repository:read").await).await, 2);
    assert_eq!(listed(&access_token(service, fixture.ada.id, "fact:read").await).await, 0);
}

#[tokio::test]
async fn a_key_for_a_repository_that_is_not_there_is_refused() {
    let fixture = TwoDatabases::new().await;
    let theirs = repository(&fixture.service).await;
    for (who, id) in
        [(&fixture.ada, theirs.uuid()), (&fixture.ada, fixture.ada.id), (&fixture.admin, fixture.ada.id)]
    {
        let body = json!({"name": "a key", "permissions": ["source:read"], "repository_id": id});
        let refused =
            send(&fixture.service, &who.token, Method::POST, "/api/v1/users/me/api-keys", &body).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], "repository_id");
    }
}

#[tokio::test]
async fn permissions_are_told_to_anybody_and_tell_nothing_of_others() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let eve = register(&fixture.service, "eve").await;
    let held = fixture.get(&fixture.ada, &path(id, "permissions")).await.json();
    assert_eq!((&held["domain"], &held["roles"]), (&json!(id), &json!(["repoadmin"])));
    assert!(
        held["permissions"]
            .as_array()
            .unwrap()
            .contains(&json!({"object": "repository", "action": "manage"}))
    );
    let by_slug = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/bees/permissions")).await.json();
    assert_eq!(by_slug, held);
    for unseen in [id, eve.id] {
        let told = fixture.get(&eve, &path(unseen, "permissions")).await;
        assert_eq!(told.json(), json!({"domain": unseen, "roles": [], "permissions": []}));
    }
    for slug in ["bees", "wasps"] {
        assert_eq!(fixture.get(&eve, &format!("{REPOSITORIES}/{slug}/permissions")).await.status, 404);
    }
}

#[tokio::test]
async fn a_change_is_seen_and_recorded() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let changed = fixture
        .send(&fixture.ada, Method::PUT, &path(id, ""), &json!({"name": "Honey bees", "description": "Apis"}))
        .await;
    let record = changed.json();
    assert_eq!(
        (&record["name"], &record["description"], &record["slug"]),
        (&json!("Honey bees"), &json!("Apis"), &json!("bees"))
    );
    assert!(record["updated_at"].as_str().unwrap() > record["created_at"].as_str().unwrap());
    let same = fixture.send(&fixture.ada, Method::PUT, &path(id, ""), &json!({})).await.json();
    assert_eq!(same["name"], "Honey bees");
    for body in [json!({"name": " "}), json!({"slug": "other"}), json!({"database": "second"})] {
        assert_eq!(fixture.send(&fixture.ada, Method::PUT, &path(id, ""), &body).await.status, 422, "{body}");
    }
    let audit = fixture.get(&fixture.ada, &path(id, "audit")).await.json();
    let actions: Vec<_> = audit["data"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(
        actions,
        [json!("repository.updated"), json!("repository.updated"), json!("repository.created")]
    );
    assert!(audit["data"].as_array().unwrap().iter().all(|row| row["repository_id"] == json!(id)));
    // Others' deeds are not in it.
    fixture.make(&fixture.admin, &json!({"name": "Other"})).await;
    assert_eq!(fixture.get(&fixture.ada, &path(id, "audit")).await.json(), audit);
}

/// One home is away: everybody else's repositories are listed as ever, and its own without their counts.
#[tokio::test]
async fn a_list_does_not_wait_for_a_database_that_is_away() {
    let fixture = TwoDatabases::new().await;
    fixture.make(&fixture.admin, &json!({"name": "Here"})).await;
    fixture.make(&fixture.admin, &json!({"name": "There", "database": "second"})).await;
    // Whoever asks there waits.
    let mut away = fixture.second().connect().await;
    okt_testkit::db::run(&mut away, "BEGIN; LOCK TABLE okt_repository.counters IN ACCESS EXCLUSIVE MODE")
        .await;
    let asked = std::time::Instant::now();
    let list = fixture.get(&fixture.admin, REPOSITORIES).await.json();
    assert!(asked.elapsed() < std::time::Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(names(&list), ["There", "Here"]);
    assert_eq!(list["data"][0]["counts"], Value::Null);
    assert_eq!(list["data"][1]["counts"]["facts"], 0);
}

/// A slug that was asked for is that slug or none; one that is made from the name can be another.
#[tokio::test]
async fn a_slug_that_a_hidden_repository_has_is_refused_and_says_nothing_else() {
    let fixture = TwoDatabases::new().await;
    fixture.make(&fixture.ada, &json!({"name": "n", "slug": "alpha"})).await;
    let eve = register(&fixture.service, "eve").await;
    for who in [&fixture.ada, &fixture.admin, &eve] {
        let refused = fixture.create(who, &json!({"name": "n", "slug": "alpha"})).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "already_exists"));
    }
    let made = fixture.make(&eve, &json!({"name": "Alpha"})).await;
    let slug = made["slug"].as_str().unwrap();
    assert!(slug.starts_with("alpha-") && slug.len() == "alpha-".len() + 8, "{slug}");
    assert_eq!(fixture.get(&eve, &format!("{REPOSITORIES}/{slug}")).await.json()["id"], made["id"]);
    let hidden = fixture.get(&eve, &format!("{REPOSITORIES}/alpha")).await;
    assert_eq!(hidden.status, 404, "it is still nobody's business");
}

/// Neither the answers nor the limits tell a stranger which slugs are taken.
#[tokio::test]
async fn whoever_guesses_slugs_learns_nothing() {
    let fixture = TwoDatabases::with(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "600")]).await;
    fixture.repository().await;
    let mut told = Vec::new();
    for (name, slug) in [("eve", "bees"), ("mallory", "wasps")] {
        let stranger = register(&fixture.service, name).await;
        let mut statuses = Vec::new();
        for _ in 0..400 {
            statuses.push(fixture.get(&stranger, &format!("{REPOSITORIES}/{slug}")).await.status.as_u16());
        }
        told.push(statuses);
    }
    // Meanwhile a few come back to the allowance of 300 a minute, by the clock and not by what is asked for.
    assert_eq!(told[0][..300], told[1][..300]);
    for statuses in &told {
        assert!(
            statuses.contains(&429) && statuses.iter().all(|status| matches!(status, 404 | 429)),
            "{statuses:?}"
        );
    }
    let seen = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/bees/audit")).await.text;
    assert!(!seen.contains("request.denied"), "strangers are nobody's business here: {seen}");
}
