//! Making, changing and deleting investigations, and who may.

use http::Method;
use okt_testkit::accounts::{api_key_in, give, register, send};
use okt_testkit::app::TestApp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{add, begin, column, investigation, say};

async fn counted(app: &TestApp) -> Value {
    let path = format!("/api/v1/repositories/{}", app.repository);
    app.read(&path).await["counts"]["investigations"].clone()
}

#[tokio::test]
async fn an_investigation_is_made_changed_listed_and_deleted() {
    let app = TestApp::start().await;
    let body = json!({"title": "  How bees find their way ", "topic": "Which cues?\nOver which distance?"});
    let made = app.post("/investigations", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location"), app.path(&format!("/investigations/{id}")));
    let seen = investigation(&app, &id).await;
    assert_eq!(seen, made.json());
    assert_eq!(
        (&seen["title"], &seen["topic"]),
        (&json!("How bees find their way"), &json!("Which cues?\nOver which distance?"))
    );
    assert_eq!((&seen["source_count"], &seen["fact_count"]), (&json!(0), &json!(0)));
    assert_eq!(seen["cost"], json!({"tokens_in": 0, "tokens_out": 0, "usd": 0.0}));
    assert_eq!((&seen["progress"]["done"], &seen["progress"]["total"]), (&json!(0), &json!(0)));
    assert_eq!(counted(&app).await, 1);

    let path = format!("/investigations/{id}");
    let changed = app.put(&path, &json!({"title": "How bees navigate"})).await.json();
    assert_eq!((&changed["title"], &changed["topic"]), (&json!("How bees navigate"), &seen["topic"]));
    assert_ne!(changed["updated_at"], seen["updated_at"]);
    let changed = app.put(&path, &json!({"topic": ""})).await.json();
    assert_eq!((&changed["title"], &changed["topic"]), (&json!("How bees navigate"), &Value::Null));

    let others = [begin(&app, "Wax").await, begin(&app, "Honey").await];
    let expected = [others[1].clone(), others[0].clone(), id.clone()];
    for limit in [1, 2, 3, 4] {
        assert_eq!(column(&app, "/investigations", limit, "id").await, expected, "in pages of {limit}");
    }

    let source = say(&app, &["Bees dance."]).await;
    assert!(add(&app, &id, source).await);
    assert_eq!(app.delete(&path).await.status, 204);
    assert_eq!(app.get(&path).await.status, 404);
    assert_eq!(app.delete(&path).await.status, 404);
    assert_eq!(app.put(&path, &json!({"title": "x"})).await.status, 404);
    assert_eq!(counted(&app).await, 2);
    assert_eq!(app.source(&source.to_string()).await["id"], json!(source), "its sources stay");
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.investigation_sources").await, 0);
    let audit = app.read("/audit?action=investigation.deleted").await;
    assert_eq!(audit["data"][0]["object"], json!(id), "{audit:#}");
}

#[tokio::test]
async fn what_is_no_investigation_is_refused_with_its_field() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let long = "x".repeat(301);
    for (method, rest, body, field) in [
        (Method::POST, String::new(), json!({}), "title"),
        (Method::POST, String::new(), json!({"title": " "}), "title"),
        (Method::POST, String::new(), json!({"title": long}), "title"),
        (Method::POST, String::new(), json!({"title": "x", "topic": "x".repeat(4_001)}), "topic"),
        (Method::POST, String::new(), json!({"title": "x", "topic": "\u{1}"}), "topic"),
        (Method::POST, String::new(), json!({"title": "x", "sources": []}), "sources"),
        (Method::PUT, format!("/{id}"), json!({"title": ""}), "title"),
        (Method::POST, format!("/{id}/sources"), json!({}), "source_id"),
        (Method::POST, format!("/{id}/sources"), json!({"source_id": Uuid::nil()}), "source_id"),
        (
            Method::POST,
            format!("/{id}/sources"),
            json!({"source_id": Uuid::nil(), "candidates": []}),
            "source_id",
        ),
        (Method::POST, format!("/{id}/sources"), json!({"candidates": []}), "candidates"),
        (
            Method::POST,
            format!("/{id}/sources"),
            json!({"candidates": vec![json!({"doi": "10.1000/182"}); 51]}),
            "candidates",
        ),
    ] {
        let refused = app.ask(method, &format!("/investigations{rest}"), &body).await;
        assert_eq!(refused.status, 422, "{rest} {body}: {refused:?}");
        assert_eq!(refused.json()["errors"][0]["field"], field, "{body}");
    }
    assert_eq!(counted(&app).await, 1);
    assert_eq!(app.read("/sources").await["data"], json!([]));
}

/// Whoever sees the repository sees its investigations; curators change them; adding new sources is for editors.
#[tokio::test]
async fn people_do_what_their_roles_allow() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let source = say(&app, &["Bees dance."]).await;
    let domain = app.repository.to_string();
    let path = format!("/investigations/{id}");
    let sources = format!("{path}/sources");
    let candidates = json!({"candidates": [{"doi": "10.1000/182"}]});
    let link = json!({"source_id": source});
    let search = json!({"query": "bees", "provider": "none"});
    for (role, writes, adds) in [("viewer", false, false), ("curator", true, false), ("editor", true, true)] {
        let who = register(&app.service, role).await;
        give(&app.service, who.id, &domain, role).await;
        for rest in ["", &*path, &*sources, &format!("{path}/facts"), &format!("{path}/concepts")] {
            let rest = if rest.is_empty() { "/investigations" } else { rest };
            assert_eq!(app.get_as(&who, rest).await.status, 200, "{role} {rest}");
        }
        let changed = if writes { 200 } else { 403 };
        assert_eq!(
            app.send(&who, Method::PUT, &path, &json!({"topic": role})).await.status,
            changed,
            "{role}"
        );
        assert_eq!(app.send(&who, Method::POST, &sources, &link).await.status, changed, "{role}");
        let made = app.send(&who, Method::POST, "/investigations", &json!({"title": role})).await;
        assert_eq!(made.status, if writes { 201 } else { 403 }, "{role}");
        let added = if adds { 200 } else { 403 };
        assert_eq!(app.send(&who, Method::POST, &sources, &candidates).await.status, added, "{role}");
        let found = app.send(&who, Method::POST, "/sources/search", &search).await.status;
        assert_eq!(found, if adds { 422 } else { 403 }, "{role}");
        let removed = app.delete_as(&who, &format!("{sources}/{source}")).await.status;
        assert_eq!(removed, if writes { 204 } else { 403 }, "{role}");
    }
    // A key that may change investigations and add no sources.
    let permissions = ["investigation:read", "investigation:update"];
    let (_, key) = api_key_in(&app.service, &app.owner, &permissions, app.repository.uuid()).await;
    let post = async |body: &Value| send(&app.service, &key, Method::POST, &app.path(&sources), body).await;
    assert_eq!(post(&link).await.status, 200);
    let more = json!({"candidates": [{"doi": "10.1000/183"}]});
    assert_eq!(post(&more).await.status, 403);
    let known = "SELECT count(*) FROM okt_repository.sources WHERE doi = '10.1000/183'";
    assert_eq!(app.count(known).await, 0);
}

/// What another tenant has is not there, by whatever route it is asked for.
#[tokio::test]
async fn another_tenant_sees_and_changes_nothing() {
    let app = TestApp::start().await;
    let id = begin(&app, "Bees").await;
    let source = say(&app, &["Bees dance."]).await;
    add(&app, &id, source).await;
    let before = investigation(&app, &id).await;

    let stranger = register(&app.service, "stranger").await;
    let made = json!({"name": "Theirs"});
    let made = send(&app.service, &stranger.token, Method::POST, "/api/v1/repositories", &made).await;
    let theirs = format!("/api/v1/repositories/{}", made.json()["id"].as_str().unwrap());
    let own = send(
        &app.service,
        &stranger.token,
        Method::POST,
        &format!("{theirs}/investigations"),
        &json!({"title": "Mine"}),
    )
    .await;
    let own = own.json()["id"].as_str().unwrap().to_owned();
    let ours = app.path("");
    for base in [&ours, &theirs] {
        let one = format!("{base}/investigations/{id}");
        for (method, path, body) in [
            (Method::GET, one.clone(), json!(null)),
            (Method::PUT, one.clone(), json!({"title": "Taken"})),
            (Method::DELETE, one.clone(), json!(null)),
            (Method::GET, format!("{one}/sources"), json!(null)),
            (Method::GET, format!("{one}/facts"), json!(null)),
            (Method::GET, format!("{one}/concepts"), json!(null)),
            (Method::POST, format!("{one}/sources"), json!({"source_id": source})),
            (Method::POST, format!("{one}/sources"), json!({"candidates": [{"doi": "10.1000/182"}]})),
            (Method::DELETE, format!("{one}/sources/{source}"), json!(null)),
        ] {
            let answer = send(&app.service, &stranger.token, method, &path, &body).await;
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
        }
    }
    // Their own investigation, and our source; and the other way round.
    let taken = format!("{theirs}/investigations/{own}/sources");
    let taken =
        send(&app.service, &stranger.token, Method::POST, &taken, &json!({"source_id": source})).await;
    assert_eq!(taken.status, 422, "{taken:?}");
    let named = json!({"doi": "10.1000/182", "investigation_id": id});
    let named = send(&app.service, &stranger.token, Method::POST, &format!("{theirs}/sources"), &named).await;
    assert_eq!(
        (named.status.as_u16(), &named.json()["errors"][0]["field"]),
        (422, &json!("investigation_id"))
    );
    let listed =
        app.service.get_as(&stranger.token, &format!("{theirs}/sources?investigation_id={id}")).await;
    assert_eq!(listed.status, 422, "{listed:?}");
    let jobs = app.service.get_as(&stranger.token, &format!("{theirs}/jobs?investigation_id={id}")).await;
    assert_eq!(jobs.json()["data"], json!([]));
    assert_eq!(investigation(&app, &id).await, before);
}
