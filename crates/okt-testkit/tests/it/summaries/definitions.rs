//! Definitions: one text for a name, its versions, and both sides of what contradicts itself.

use okt_model::Difference;
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_testkit::app::TestApp;
use okt_testkit::llm::{Behaviour, Citing};
use serde_json::{Value, json};

use super::{app, calls, check, cited, deeds, fact_id, link, say, settle, settled};

async fn definition(app: &TestApp, concept: impl std::fmt::Display, query: &str) -> Value {
    app.read(&format!("/concepts/{concept}/definition{query}")).await
}

#[tokio::test]
async fn a_definition_covers_all_contexts_of_its_name_and_its_versions_can_be_compared() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let (place, device) = (deeds("A", 1, 5), deeds("A", 50, 3));
    say(&app, &[place.clone(), device.clone()].concat()).await;
    let concept = link(&app, "Hive A", "Place", &place).await;
    let other = link(&app, "hive A", "Device", &device).await;
    settle(&app).await;
    check(&app).await;
    let first = definition(&app, concept, "").await;
    assert_eq!(first["method"], "model");
    assert_eq!(
        (&first["synthesis"]["version"], &first["synthesis"]["is_current"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(first["synthesis"]["concept_ids"].as_array().unwrap().len(), 2, "{first:#}");
    assert_eq!(first["content"], definition(&app, other, "").await["content"], "one text for the name");
    assert_eq!(cited(first["content"].as_str().unwrap()).len(), 8, "{first:#}");
    assert_eq!(app.read(&format!("/concepts/{concept}")).await["synthesis"]["version"], 1);

    // One fact comes, one goes.
    let new = deeds("A", 90, 1);
    say(&app, &new).await;
    link(&app, "Hive A", "Place", &new).await;
    let gone = fact_id(&app, &device[0]).await;
    let rejected = app.put(&format!("/facts/{gone}"), &json!({"status": "rejected"})).await;
    assert!(rejected.status.is_success(), "{rejected:?}");
    settle(&app).await;
    check(&app).await;
    let came = fact_id(&app, &new[0]).await;
    let seen = definition(&app, concept, "?diff=1").await;
    assert_eq!(
        (&seen["synthesis"]["version"], &seen["diff"]["from"], &seen["diff"]["to"]),
        (&json!(2), &json!(1), &json!(2)),
        "{seen:#}"
    );
    assert_eq!(seen["diff"]["facts_added"][0]["fact_id"], json!(came.to_string()));
    assert_eq!(seen["diff"]["facts_removed"][0]["fact_id"], json!(gone.to_string()));
    let changes: Vec<&str> = seen["diff"]["sentences"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|sentence| sentence["change"].as_str().filter(|change| *change != "same"))
        .collect();
    assert!(changes.contains(&"added"), "{seen:#}");
    let old = definition(&app, concept, "?version=1").await;
    assert_eq!((&old["synthesis"]["version"], &old["synthesis"]["is_current"]), (&json!(1), &json!(false)));
    assert!(!cited(old["content"].as_str().unwrap()).contains(&gone.uuid()), "a rejected fact is not shown");
    assert_eq!(seen["versions"].as_array().unwrap().len(), 2);
    for bad in ["?version=7", "?diff=9"] {
        assert_eq!(app.get(&format!("/concepts/{concept}/definition{bad}")).await.status, 404, "{bad}");
    }
    assert_eq!(app.get(&format!("/concepts/{concept}/definition?version=0")).await.status, 422);

    // Somebody wants it anew: it is estimated, then written; the same question is not paid for twice.
    let paid = calls(&app, "concept_synthesis").await;
    let path = format!("/concepts/{concept}/resynthesize");
    let estimate = app.post(&format!("{path}?dry_run=true"), &Value::Null).await;
    assert_eq!(estimate.status, 200, "{estimate:?}");
    let estimate = estimate.json();
    assert!(estimate["calls"] == 1 && estimate["usd"].as_f64().unwrap() > 0.0, "{estimate:#}");
    let job = app.post(&path, &Value::Null).await;
    assert_eq!(job.status, 202, "{job:?}");
    let ended = app.ended(job.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(
        (&ended["state"], &ended["output"]["unchanged"]),
        (&json!("completed"), &json!(true)),
        "{ended:#}"
    );
    assert_eq!(calls(&app, "concept_synthesis").await, paid);

    // A name that nobody has any more has no definition.
    let renamed = app.put(&format!("/concepts/{other}"), &json!({"canonical_name": "Beehive A"})).await;
    assert!(renamed.status.is_success(), "{renamed:?}");
    settled(&app).await;
    check(&app).await;
    assert_eq!(definition(&app, other, "").await["synthesis"]["version"], 1);
    assert_eq!(definition(&app, concept, "").await["synthesis"]["concept_ids"].as_array().unwrap().len(), 1);
    let stage = app.put("/settings/stages", &json!({"synthesis": false})).await;
    assert_eq!(stage.status, 200, "{stage:?}");
    assert_eq!(app.post(&path, &Value::Null).await.status, 409, "the stage is off");
}

#[tokio::test]
async fn a_text_with_one_side_of_a_contradiction_is_refused_and_the_last_one_stays() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 4);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts).await;
    settle(&app).await;
    let before = definition(&app, concept, "").await;
    assert_eq!(before["synthesis"]["version"], 1, "{before:#}");

    // Two of them are found to contradict each other, and the model tells of one.
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let numbers: Vec<i64> = sqlx::query_scalar("SELECT no FROM okt_repository.facts ORDER BY no LIMIT 2")
        .fetch_all(&mut *tx)
        .await
        .unwrap();
    let pair =
        NewContradiction { facts: (numbers[0], numbers[1]), difference: Difference::Number, cosine: 0.95 };
    fact_contradictions::insert(&mut tx, app.repository, &[pair]).await.unwrap();
    tx.commit().await.unwrap();
    app.models.behave(Behaviour { citing: Citing::OneSided, ..Behaviour::default() });
    let path = format!("/concepts/{concept}/resynthesize");
    let job = app.post(&path, &Value::Null).await.json();
    let ended = app.ended(job["job_id"].as_str().unwrap()).await;
    assert_eq!(ended["state"], "discarded", "{ended:#}");
    assert_eq!(definition(&app, concept, "").await["content"], before["content"], "the last good one stays");

    // The same job, when the model tells of both.
    app.models.behave(Behaviour::default());
    let retried = app.post(&format!("/jobs/{}/retry", job["job_id"].as_str().unwrap()), &Value::Null).await;
    assert!(retried.status.is_success(), "{retried:?}");
    settled(&app).await;
    let after = definition(&app, concept, "").await;
    assert_eq!(after["synthesis"]["version"], 2, "{after:#}");
    assert_eq!(cited(after["content"].as_str().unwrap()).len(), 4);
    check(&app).await;
}
