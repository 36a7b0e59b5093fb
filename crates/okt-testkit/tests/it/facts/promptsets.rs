//! Instructions for models: addressed by what they say, never changed, chosen by a repository.

use http::Method;
use okt_extract::Promptset;
use okt_testkit::accounts::{register, send};
use serde_json::{Value, json};

use crate::facts::{essay, test_app};

#[tokio::test]
async fn promptsets_are_addressed_by_what_they_say() {
    let app = test_app(&[]).await;
    let admin = &app.owner.token;
    let ask =
        async |method: Method, path: &str, body: &Value| send(&app.service, admin, method, path, body).await;
    let builtin = Promptset::builtin();
    let listed = app.service.get_as(admin, "/api/v1/promptsets").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let ours = &listed["data"][0];
    assert_eq!((&ours["hash"], &ours["built_in"]), (&json!(builtin.hash().to_string()), &json!(true)));
    assert_eq!(ours["phases"].as_object().unwrap().len(), 8);

    let new = json!({"name": "Terse", "phases": {"summarization": "Be terse."}});
    let made = ask(Method::POST, "/api/v1/promptsets", &new).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(made["registry_hash"], ours["registry_hash"], "summaries are not shared");
    assert_ne!(made["hash"], ours["hash"]);
    assert_eq!(made["phases"]["posture"], ours["phases"]["posture"]);
    let again =
        ask(Method::POST, "/api/v1/promptsets", &json!({"name": "Other", "phases": new["phases"]})).await;
    assert_eq!((again.status.as_u16(), &again.json()["name"]), (200, &json!("Terse")));
    let shown =
        app.service.get_as(admin, &format!("/api/v1/promptsets/{}", made["hash"].as_str().unwrap())).await;
    assert_eq!(shown.json(), made);
    let shared = json!({"name": "Facts", "phases": {"fact_extraction": "Only dates."}});
    let shared = ask(Method::POST, "/api/v1/promptsets", &shared).await.json();
    assert_ne!(shared["registry_hash"], ours["registry_hash"]);

    let mut seen = Vec::new();
    let mut next = "/api/v1/promptsets?limit=1".to_owned();
    loop {
        let page = app.service.get_as(admin, &next).await.json();
        seen.extend(
            page["data"].as_array().unwrap().iter().map(|row| row["hash"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("/api/v1/promptsets?limit=1&cursor={cursor}");
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(seen[0], builtin.hash().to_string(), "the built-in one first");

    for (body, field) in [
        (json!({"name": "", "phases": {"posture": "x"}}), "name"),
        (json!({"name": "x", "phases": {}}), "phases"),
        (json!({"name": "x", "phases": {"poetry": "x"}}), "phases"),
        (json!({"name": "x", "phases": {"posture": " "}}), "phases.posture"),
        (json!({"name": "x", "phases": {"posture": builtin.text(okt_extract::Phase::Posture)}}), "phases"),
    ] {
        let refused = ask(Method::POST, "/api/v1/promptsets", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{body}"
        );
    }
    let somebody = register(&app.service, "somebody").await;
    let refused = send(&app.service, &somebody.token, Method::POST, "/api/v1/promptsets", &new).await;
    assert_eq!(refused.status, 403, "only whoever runs the installation writes them");
    assert_eq!(app.service.get_as(&somebody.token, "/api/v1/promptsets").await.status, 200);
}

#[tokio::test]
async fn a_repository_uses_the_promptset_that_it_chose() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("essay.txt", &essay(1, 10)).await;
    app.settled(&id).await;
    let body = json!({"name": "Plain", "phases": {"fact_extraction": "State facts as JSON, with sentence numbers."}});
    let made = send(&app.service, &app.owner.token, Method::POST, "/api/v1/promptsets", &body).await.json();
    let unknown = json!({"promptset_hash": "0".repeat(64)});
    assert_eq!(app.ask(Method::PUT, "/settings/promptsets", &unknown).await.status, 422);
    let used = app.ask(Method::PUT, "/settings/promptsets", &json!({"promptset_hash": made["hash"]})).await;
    assert_eq!(used.json()["promptset_hash"], made["hash"], "{used:?}");
    let other = app.add_text("other.txt", &essay(2, 10)).await;
    let seen = app.settled(&other).await;
    assert_eq!(seen["extraction"]["promptset_hash"], made["registry_hash"]);
    assert!(app.facts(&other).await.iter().all(|fact| fact["promptset_hash"] == made["registry_hash"]));
    // Other instructions are another question.
    let requests = app.models.stats().requests;
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    app.until(&id, |seen| seen["extraction"]["promptset_hash"] == made["registry_hash"]).await;
    assert!(app.models.stats().requests > requests);
    let back = app.ask(Method::PUT, "/settings/promptsets", &json!({"promptset_hash": null})).await;
    assert_eq!(back.json()["promptset_hash"], Value::Null);
}
