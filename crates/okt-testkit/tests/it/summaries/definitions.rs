//! Definitions: one text for a name, its versions, and both sides of what contradicts itself.

use okt_model::{Difference, ImageId, RefreshConceptRelations, SourceId};
use okt_store::fact_contradictions::{self, NewContradiction};
use okt_store::outbox::When;
use okt_testkit::app::TestApp;
use okt_testkit::jobs;
use okt_testkit::llm::{Behaviour, Citing, Latency};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{app, calls, check, cited, deeds, fact_id, link, say, settle, settled};

async fn definition(app: &TestApp, concept: impl std::fmt::Display, query: &str) -> Value {
    app.read(&format!("/concepts/{concept}/definition{query}")).await
}

#[tokio::test]
async fn a_definition_covers_all_contexts_of_its_name_and_its_versions_can_be_compared() {
    let mut app = app(Behaviour::default(), &[]).await;
    let (place, device) = (deeds("A", 1, 5), deeds("A", 50, 3));
    say(&app, &[place.clone(), device.clone()].concat()).await;
    let concept = link(&app, "Hive A", "Place", &place).await;
    let other = link(&app, "hive A", "Device", &device).await;
    app.work().await;
    settle(&app).await;
    check(&app).await;
    assert_eq!(calls(&app, "concept_synthesis").await, 1, "it waits for all contexts");
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
    assert_eq!((&estimate["calls"], &estimate["usd"]), (&json!(0), &json!(0.0)), "{estimate:#}");
    let job = app.post(&path, &Value::Null).await;
    assert_eq!(job.status, 202, "{job:?}");
    let ended = app.ended(job.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(
        (&ended["state"], &ended["output"]["unchanged"]),
        (&json!("completed"), &json!(true)),
        "{ended:#}"
    );
    assert_eq!(calls(&app, "concept_synthesis").await, paid);
    // A question that nobody has answered yet.
    let forget = sqlx::query("DELETE FROM okt_repository.model_answers");
    let forgotten = forget.execute(&mut app.connect().await).await.unwrap();
    assert!(forgotten.rows_affected() > 0);
    let estimate = app.post(&format!("{path}?dry_run=true"), &Value::Null).await.json();
    assert!(estimate["calls"] == 1 && estimate["usd"].as_f64().unwrap() > 0.0, "{estimate:#}");

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
    let pair = NewContradiction {
        facts: (numbers[0], numbers[1]),
        difference: Difference::Number,
        cosine: 0.95,
        found_by: okt_model::ContradictionFoundBy::RefusedMerge,
    };
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

/// The name is given up while a model writes of it: nothing is kept under it.
#[tokio::test]
async fn a_name_that_is_gone_meanwhile_gets_no_definition() {
    let mut app = app(Behaviour::default(), &[]).await;
    app.work().await;
    let texts = deeds("A", 1, 4);
    say(&app, &texts).await;
    let concept = link(&app, "Hive A", "Place", &texts[..2]).await;
    settle(&app).await;
    let before = app.models.await_stats(|stats| stats.in_flight == 0).await.requests;
    let slow = Latency::Fixed(1_500);
    app.models.behave(Behaviour { latency: slow, ..Behaviour::default() });
    link(&app, "Hive A", "Place", &texts[2..]).await;
    let databases = app.service.api.app.databases();
    jobs::push(databases, app.repository, &RefreshConceptRelations {}, When::default()).await;
    // The slice, then the definition.
    app.models.await_stats(|stats| stats.requests == before + 2).await;
    let renamed = app.put(&format!("/concepts/{concept}"), &json!({"canonical_name": "Beehive"})).await;
    assert!(renamed.status.is_success(), "{renamed:?}");
    app.models.behave(Behaviour::default());
    settled(&app).await;
    check(&app).await;
    let orphans = "SELECT count(*) FROM okt_repository.concept_syntheses WHERE name_key = 'hive a'";
    assert_eq!(app.count(orphans).await, 0, "nobody has this name");
    assert_eq!(definition(&app, concept, "").await["synthesis"]["is_current"], true);
}

/// Makes these facts ones that were read from images of a source; returns the images.
async fn illustrate(app: &TestApp, source: SourceId, texts: &[String]) -> Vec<Uuid> {
    let mut images = Vec::new();
    for text in texts {
        let image = ImageId::mint().uuid();
        let drawn = "WITH fact AS (
                 UPDATE okt_repository.facts SET kind = 'image' WHERE repository_id = $1 AND text = $4 RETURNING no),
             image AS (
                 INSERT INTO okt_repository.source_images
                        (repository_id, source_id, id, kind, position, alt_text, content_type, sha256, size)
                 VALUES ($1, $2, $3, 'inline', 0, 'A photograph of ' || $4, 'image/png', sha256('image'), 5))
             UPDATE okt_repository.fact_sources l SET image_id = $3
               FROM fact, okt_repository.sources s
              WHERE l.repository_id = $1 AND l.fact_no = fact.no AND s.repository_id = $1 AND s.id = $2 AND l.source_no = s.no";
        let done = sqlx::query(drawn)
            .bind(app.repository.uuid())
            .bind(source.uuid())
            .bind(image)
            .bind(text)
            .execute(&mut app.connect().await)
            .await
            .unwrap();
        assert_eq!(done.rows_affected(), 1);
        images.push(image);
    }
    images
}

#[tokio::test]
async fn a_definition_shows_images_of_its_facts_and_knows_what_is_related() {
    let settings =
        [("SVC__PROVIDERS__SYNTHESIS__MAX_IMAGES", "1"), ("SVC__CONCEPTS__MIN_SHARED_FACT_COUNT", "2")];
    let mut app = app(Behaviour { keep: true, ..Behaviour::default() }, &settings).await;
    app.work().await;
    let texts = deeds("A", 1, 4);
    say(&app, &texts).await;
    let source = say(&app, &texts[..2]).await;
    let images = illustrate(&app, source, &texts[..2]).await;
    let concept = link(&app, "Hive A", "Place", &texts).await;
    settle(&app).await;
    check(&app).await;
    let seen = definition(&app, concept, "").await;
    let shown = seen["synthesis"]["images"].as_array().unwrap();
    assert_eq!(shown.len(), 1, "{seen:#}");
    assert_eq!(shown[0]["source_id"], source.to_string());
    let content = seen["content"].as_str().unwrap();
    let cited_images: Vec<_> =
        images.iter().filter(|image| content.contains(&format!("](<image:{image}>)"))).collect();
    assert_eq!(cited_images.len(), 1, "{content}");
    assert_eq!(shown[0]["image_id"], cited_images[0].to_string());
    assert_eq!(calls(&app, "image_picking").await, 1, "one of two");

    // Another concept shares three facts, and is told what is known of this one.
    link(&app, "Garden", "Place", &texts[..3]).await;
    settle(&app).await;
    check(&app).await;
    let asked = app.models.stats().asked;
    let garden = asked.iter().find(|asked| asked.contains("Concept: Garden\nIn the context Place:"));
    let garden = garden.unwrap_or_else(|| panic!("{asked:#?}"));
    assert!(garden.contains("Related concepts: Hive A (Place; 3 shared facts)\n"), "{garden}");
    assert!(garden.contains("About Hive A, not to be cited: Hive A gave "), "{garden}");

    // The images go with their source, though another one states the same.
    assert_eq!(app.delete(&format!("/sources/{source}")).await.status, 204);
    let left = definition(&app, concept, "").await;
    assert_eq!(left["synthesis"]["images"], json!([]), "{left:#}");
    assert!(!left["content"].as_str().unwrap().contains("photograph"), "{left:#}");
    assert_eq!(cited(left["content"].as_str().unwrap()).len(), 4);
    let job = app.post(&format!("/concepts/{concept}/resynthesize"), &Value::Null).await.json();
    let ended = app.ended(job["job_id"].as_str().unwrap()).await;
    assert_eq!((&ended["state"], &ended["output"]["version"]), (&json!("completed"), &json!(2)), "{ended:#}");
    let kept = "SELECT count(*) FROM okt_repository.concept_syntheses
                 WHERE name_key = 'hive a' AND (content LIKE '%photograph%' OR cardinality(images) > 0)";
    assert_eq!(app.count(kept).await, 0, "nor in an earlier version");
}
