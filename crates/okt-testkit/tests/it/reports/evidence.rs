//! Evidence and checks that keep nothing.

use http::Method;
use okt_testkit::accounts::{give, register};
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::llm::Behaviour;
use serde_json::json;

use super::{MITE, SUN, source, started};

#[tokio::test]
async fn a_claim_is_held_against_the_facts_and_nothing_is_kept() {
    let app = started().await;
    let bees = source(&app, "bees.txt", &format!("{SUN} {MITE}")).await;
    let found = app.post("/evidence", &json!({"claim": SUN})).await;
    assert_eq!(found.status, 200, "{found:?}");
    let found = found.json();
    assert_eq!(
        (&found["state"], &found["degraded_reason"]),
        (&json!("supported"), &json!(null)),
        "{found:#}"
    );
    let fact = &found["facts"][0];
    assert_eq!(
        (&fact["fact_text"], &fact["posture"], &fact["sources"][0]["id"]),
        (&json!(SUN), &json!("supports"), &json!(bees))
    );
    let claim = "Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.";
    let found = app.post("/evidence", &json!({ "claim": claim })).await.json();
    assert_eq!(found["state"], "contradicted", "{found:#}");

    let text =
        format!("# Bees\n\n{SUN} {claim}\n\nWho knows the price of copper on the markets of Zurich in 1911?");
    let checked = app.post("/check", &json!({ "text": text })).await;
    assert_eq!(checked.status, 200, "{checked:?}");
    let counts = &checked.json()["counts"];
    assert_eq!(
        (&counts["supported"], &counts["contradicted"], &counts["unsupported"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(app.count("SELECT count(*) FROM okt_repository.report_sentences").await, 0);

    for (path, body, field) in [
        ("/evidence", json!({"claim": " "}), "claim"),
        ("/evidence", json!({"claim": "x".repeat(4_001)}), "claim"),
        ("/check", json!({"text": format!("{SUN} ").repeat(201)}), "text"),
    ] {
        let refused = app.post(path, &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn without_vectors_words_are_compared_and_it_says_so() {
    let mut app = TestApp::start().await;
    app.work().await;
    source(&app, "bees.txt", SUN).await;
    super::eventually(super::Duration::from_mins(1), "the fact is indexed", async || {
        let found = app.post("/evidence", &json!({"claim": SUN})).await.json();
        if found["state"] == "supported" && found["degraded_reason"] == "no_vectors" {
            Ok(())
        } else {
            Err(found)
        }
    })
    .await;
}

#[tokio::test]
async fn a_viewer_spends_nothing() {
    let settings = [
        ("SVC__PROVIDERS__REPORTS__POSTURE__MODEL", MODEL),
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", okt_model::EXTRACTIVE_MODEL),
    ];
    let behaviour = Behaviour { posture: |_, _| "contradicts", ..Behaviour::default() };
    let mut app = TestApp::builder().vectors().models(behaviour, "").settings(&settings).start().await;
    app.work().await;
    source(&app, "bees.txt", SUN).await;
    let viewer = register(&app.service, "viewer").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let calls = "SELECT count(*) FROM okt_system.ai_calls WHERE operation = 'posture_classification'";
    for path in ["/evidence", "/check"] {
        let body = if path == "/check" { json!({"text": SUN}) } else { json!({"claim": SUN}) };
        let found = app.send(&viewer, Method::POST, path, &body).await;
        assert_eq!(found.status, 200, "{found:?}");
    }
    assert_eq!(app.count(calls).await, 0, "judged by rules");
    let found = app.post("/evidence", &json!({"claim": SUN})).await.json();
    assert_eq!(app.count(calls).await, 1, "{found:#}");
}
