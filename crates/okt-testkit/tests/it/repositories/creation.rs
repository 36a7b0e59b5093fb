use http::Method;
use okt_testkit::accounts::{api_key, give, take};
use serde_json::{Value, json};

use crate::repositories::two_databases::{REPOSITORIES, TwoDatabases, id_of, path};

#[tokio::test]
async fn a_repository_is_as_it_was_asked_for() {
    let fixture = TwoDatabases::new().await;
    let made = fixture
        .create(
            &fixture.ada,
            &json!({"name": " Bees ", "slug": "bees-1", "description": "All of them", "tier": "isolated"}),
        )
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let record = made.json();
    assert_eq!(made.header("location"), path(id_of(&record), ""));
    let expected = json!({
        "id": record["id"], "name": "Bees", "slug": "bees-1", "description": "All of them", "database": "default",
        "tier": "isolated", "preset": "general", "owner_id": fixture.ada.id, "roles": ["repoadmin"],
        "counts": {"sources": 0, "facts": 0, "concepts": 0, "reports": 0, "investigations": 0},
        "created_at": record["created_at"], "updated_at": record["updated_at"],
    });
    assert_eq!(record, expected);
    for name in [&record["id"], &record["slug"]] {
        let seen = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/{}/", name.as_str().unwrap())).await;
        assert_eq!(seen.json(), expected);
    }
}

#[tokio::test]
async fn what_is_no_repository_is_refused_with_the_field() {
    let fixture = TwoDatabases::new().await;
    for (body, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "a\u{7}"}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "n", "slug": "Bees"}), "slug"),
        (json!({"name": "n", "slug": ""}), "slug"),
        (json!({"name": "n", "slug": "presets"}), "slug"),
        (json!({"name": "n", "slug": fixture.ada.id}), "slug"),
        (json!({"name": "n", "tier": "gold"}), "tier"),
        (json!({"name": "n", "preset": "none"}), "preset"),
        (json!({"name": "n", "description": "d".repeat(5001)}), "description"),
        (json!({"slug": "n"}), "name"),
        (json!({"name": "n", "owner_id": fixture.ada.id}), "owner_id"),
    ] {
        let refused = fixture.create(&fixture.ada, &body).await;
        assert_eq!(refused.status, 422, "{body}: {refused:?}");
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors[0]["field"], field, "{body}: {errors}");
    }
}

/// Line by line, as the contract has it.
#[tokio::test]
async fn the_database_rule() {
    let fixture = TwoDatabases::new().await;
    let home = |answer: Value| answer["database"].as_str().unwrap().to_owned();
    let asked = |database: &str| json!({"name": "n", "database": database});

    // Nobody asks: the default one.
    assert_eq!(home(fixture.make(&fixture.admin, &json!({"name": "n"})).await), "default");
    // A sysadmin may pick what the list allows.
    for database in ["second", "alias", "default"] {
        assert_eq!(home(fixture.make(&fixture.admin, &asked(database)).await), database);
    }
    // And nothing else, not even what is configured.
    for database in ["unlisted", "tasks", "nowhere", ""] {
        let refused = fixture.create(&fixture.admin, &asked(database)).await;
        assert_eq!(refused.status, 422, "{database}: {refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], "database");
    }
    // For any other caller the value is silently replaced, whatever it is.
    for database in ["second", "alias", "unlisted", "tasks", "nowhere", ""] {
        assert_eq!(home(fixture.make(&fixture.ada, &asked(database)).await), "default", "{database}");
    }
    // A sysadmin's key that was not given the permission to manage is any other caller.
    let (_, key) = api_key(&fixture.service, &fixture.admin, &["repository:write", "repository:read"]).await;
    let made =
        okt_testkit::accounts::send(&fixture.service, &key, Method::POST, REPOSITORIES, &asked("second"))
            .await;
    assert_eq!(home(made.json()), "default", "{made:?}");
    let (_, key) =
        api_key(&fixture.service, &fixture.admin, &["repository:write", "repository:manage"]).await;
    let made =
        okt_testkit::accounts::send(&fixture.service, &key, Method::POST, REPOSITORIES, &asked("second"))
            .await;
    assert_eq!(home(made.json()), "second", "{made:?}");
    // Being somebody's repoadmin does not make one the manager of all repositories.
    give(&fixture.service, fixture.ada.id, &fixture.repository().await.to_string(), "repoadmin").await;
    assert_eq!(home(fixture.make(&fixture.ada, &asked("second")).await), "default");
}

#[tokio::test]
async fn an_empty_list_of_databases_lets_nobody_pick() {
    let fixture = TwoDatabases::with(&[("SVC__ISOLATION__ALLOWED_DATABASES", "")]).await;
    let asked = json!({"name": "n", "database": "second"});
    assert_eq!(fixture.create(&fixture.admin, &asked).await.status, 422);
    assert_eq!(fixture.make(&fixture.ada, &asked).await["database"], "default");
}

#[tokio::test]
async fn repositories_land_where_the_configuration_says() {
    let fixture = TwoDatabases::with(&[("SVC__ISOLATION__DEFAULT_DATABASE", "second")]).await;
    let id = fixture.repository().await;
    assert_eq!(fixture.get(&fixture.ada, &path(id, "")).await.json()["database"], "second");
    let contexts = "SELECT count(DISTINCT repository_id) FROM okt_repository.contexts";
    assert_eq!((fixture.count("default", contexts).await, fixture.count("second", contexts).await), (0, 1));
}

#[tokio::test]
async fn who_may_not_make_repositories_makes_none() {
    let fixture = TwoDatabases::with(&[("SVC__RBAC__USERS_MAY_CREATE_REPOSITORIES", "false")]).await;
    assert_eq!(fixture.create(&fixture.ada, &json!({"name": "n"})).await.status, 403);
    assert_eq!(fixture.create(&fixture.admin, &json!({"name": "n"})).await.status, 201);
    let fixture = TwoDatabases::new().await;
    take(&fixture.service, fixture.ada.id, "system", "user").await;
    assert_eq!(fixture.create(&fixture.ada, &json!({"name": "n"})).await.status, 403);
}

/// Each preset, and the one that is taken when none is named.
#[tokio::test]
async fn a_preset_says_what_a_repository_starts_with() {
    let fixture = TwoDatabases::new().await;
    let presets = fixture.get(&fixture.ada, "/api/v1/repositories/presets").await.json();
    let ids: Vec<&str> =
        presets["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["enterprise", "general", "scientific"]);
    let classes = okt_config::ontology::classes().count();
    let scientific = presets["data"][2]["contexts"].as_array().unwrap().len();
    for (preset, search, resolution, built_in, own) in [
        (
            "general",
            json!({"web": true, "academic": true}),
            json!({"fetch": true, "open_access": true, "tls": true, "challenge_solver": true}),
            classes,
            0,
        ),
        (
            "scientific",
            json!({"web": false, "academic": true}),
            json!({"fetch": true, "open_access": true, "tls": true, "challenge_solver": false}),
            scientific,
            0,
        ),
        (
            "enterprise",
            json!({"web": true, "academic": false}),
            json!({"fetch": true, "open_access": false, "tls": false, "challenge_solver": false}),
            0,
            3,
        ),
    ] {
        let made = fixture.make(&fixture.ada, &json!({"name": preset, "preset": preset})).await;
        assert_eq!(made["preset"], preset);
        let settings = fixture.get(&fixture.ada, &path(id_of(&made), "settings")).await.json();
        assert_eq!(settings["providers"], json!({"search": search, "resolution": resolution}), "{preset}");
        let contexts = settings["contexts"].as_array().unwrap();
        let custom: Vec<&str> = contexts
            .iter()
            .filter(|one| one["custom"] == true)
            .map(|one| one["label"].as_str().unwrap())
            .collect();
        assert_eq!((contexts.len() - custom.len(), custom.len()), (built_in, own), "{preset}");
        if own > 0 {
            assert_eq!(custom, ["Application", "Product", "Role"]);
        }
    }
    assert!(classes > 90 && scientific > 30, "{classes} {scientific}");
    let other = TwoDatabases::with(&[("SVC__DEFAULT_REPOSITORY_PRESET", "enterprise")]).await;
    assert_eq!(other.make(&other.ada, &json!({"name": "n"})).await["preset"], "enterprise");
}

#[tokio::test]
async fn a_slug_is_unique_and_told_apart_where_nobody_asked_for_it() {
    let fixture = TwoDatabases::new().await;
    let slug = |record: &Value| record["slug"].as_str().unwrap().to_owned();
    assert_eq!(slug(&fixture.make(&fixture.ada, &json!({"name": "Über Bienen"})).await), "uber-bienen");
    let second = slug(&fixture.make(&fixture.admin, &json!({"name": "Über Bienen"})).await);
    assert!(second.starts_with("uber-bienen-"), "{second}");
    let refused = fixture.create(&fixture.ada, &json!({"name": "n", "slug": "uber-bienen"})).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (409, "already_exists"));

    // Many at once: each has one of its own.
    let body = json!({"name": "Same"});
    let all = futures_util::future::join_all((0..10).map(|_| fixture.create(&fixture.ada, &body))).await;
    let slugs: std::collections::BTreeSet<_> = all.iter().map(|made| slug(&made.json())).collect();
    assert_eq!(slugs.len(), 10);
    let body = json!({"name": "n", "slug": "only-one"});
    let all = futures_util::future::join_all((0..10).map(|_| fixture.create(&fixture.ada, &body))).await;
    assert_eq!(all.iter().filter(|made| made.status == 201).count(), 1);

    // A deleted one's is free at once.
    let gone = fixture.make(&fixture.ada, &json!({"name": "n", "slug": "again"})).await;
    assert_eq!(fixture.delete(&fixture.ada, &path(id_of(&gone), "")).await.status, 204);
    let next = fixture.make(&fixture.ada, &json!({"name": "n", "slug": "again"})).await;
    assert_ne!(next["id"], gone["id"]);
    let seen = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/again")).await;
    assert_eq!(seen.json()["id"], next["id"]);
}

/// The system database has the row, the home has not answered: nobody ever sees it, and its slug is not lost.
#[tokio::test]
async fn a_repository_whose_database_is_away_is_not_there() {
    let fixture = TwoDatabases::new().await;
    okt_testkit::db::run(
        &mut fixture.second().connect().await,
        "ALTER TABLE okt_repository.contexts RENAME TO away",
    )
    .await;
    let body = json!({"name": "n", "slug": "unlucky", "database": "second"});
    assert_eq!(fixture.create(&fixture.admin, &body).await.status, 500);
    assert_eq!(fixture.get(&fixture.admin, &format!("{REPOSITORIES}/unlucky")).await.status, 404);
    assert_eq!(fixture.get(&fixture.admin, REPOSITORIES).await.json()["data"], json!([]));
    okt_testkit::db::run(
        &mut fixture.second().connect().await,
        "ALTER TABLE okt_repository.away RENAME TO contexts",
    )
    .await;
    assert_eq!(fixture.create(&fixture.admin, &body).await.status, 201);
}

/// Whoever made it was cut off: its slug is free again soon.
#[tokio::test]
async fn a_slug_is_not_held_by_what_was_never_finished() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let body = json!({"name": "n", "slug": "bees"});
    for (age, status) in [("1 minute", 409), ("3 minutes", 201)] {
        let cut = format!(
            "UPDATE okt_system.repositories SET state = 'creating', untidy_since = now() - interval '{age}' WHERE id = '{id}'"
        );
        okt_testkit::accounts::sql(&fixture.service, &cut).await;
        assert_eq!(fixture.create(&fixture.ada, &body).await.status, status, "{age}");
    }
}

#[tokio::test]
async fn the_same_key_makes_a_repository_once() {
    let fixture = TwoDatabases::new().await;
    let body = json!({"name": "Once"});
    let ask = || {
        let request = fixture.service.request(Method::POST, REPOSITORIES).bearer_auth(&fixture.ada.token);
        okt_testkit::client::Answer::of(request.header("idempotency-key", "k1").json(&body))
    };
    let (first, second) = (ask().await, ask().await);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 201));
    assert_eq!(first.json(), second.json());
    assert_eq!(fixture.get(&fixture.ada, REPOSITORIES).await.json()["data"].as_array().unwrap().len(), 1);
}
