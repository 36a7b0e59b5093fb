//! One thing has one concept: what is certain is merged, what a model says is merged, and what a person said stays.

use std::time::Duration;

use okt_model::{AliasBy, ConceptId, RefineConcepts};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::outbox::When;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use okt_testkit::jobs;
use okt_testkit::llm::Behaviour;
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

const ON: (&str, &str) = ("SVC__PROVIDERS__REFINEMENT__ENABLED", "true");

/// Concepts by name and context, each with a fact.
async fn file(app: &TestApp, concepts: &[(&str, &str)]) -> Vec<ConceptId> {
    let databases = app.service.api.app.databases();
    let source = insert_source(databases, app.repository).await;
    let facts: Vec<_> =
        concepts.iter().map(|(name, context)| new_fact(&format!("{name} is a {context}."))).collect();
    replace_facts(databases, app.repository, source, &facts, okt_model::FactStatus::Stable).await;
    let mut made = Vec::new();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    for (name, context) in concepts {
        let concept = file_concept(&mut tx, app.repository, name, context).await.unwrap();
        let fact = sqlx::query_scalar("SELECT no FROM okt_repository.facts WHERE text = $1")
            .bind(format!("{name} is a {context}."))
            .fetch_one(&mut app.connect().await)
            .await
            .unwrap();
        link_facts(&mut tx, app.repository, concept, &[fact]).await.unwrap();
        made.push(concept);
    }
    tx.commit().await.unwrap();
    made
}

async fn alias(app: &TestApp, concept: ConceptId, text: &str) {
    let mut tx = app.service.api.app.databases().begin("default", app.repository).await.unwrap();
    let alias = NewAlias { concept, text: text.to_owned(), by: AliasBy::Builtin };
    concept_aliases::insert(&mut tx, app.repository, &[alias]).await.unwrap();
    tx.commit().await.unwrap();
}

/// Has what is new compared.
async fn refine(app: &TestApp) {
    jobs::push(app.service.api.app.databases(), app.repository, &RefineConcepts {}, When::default()).await;
    eventually(Duration::from_mins(1), "all concepts were compared", async || {
        let open = "SELECT (SELECT count(*) FROM okt_repository.concepts WHERE NOT refined AND merged_into IS NULL)
                         + (SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'refine_concepts' AND finished_at IS NULL)
                         + (SELECT count(*) FROM okt_repository.outbox WHERE kind = 'refine_concepts')";
        let open = app.count(open).await;
        if open == 0 { Ok(()) } else { Err(open) }
    })
    .await;
}

/// The name that a concept is shown under.
async fn name(app: &TestApp, concept: ConceptId) -> String {
    app.read(&format!("/concepts/{concept}")).await["canonical_name"].as_str().unwrap().to_owned()
}

async fn calls(app: &TestApp) -> u64 {
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == "concept_refinement").map_or(0, |row| row["calls"].as_u64().unwrap())
}

#[tokio::test]
async fn without_a_model_only_what_is_certain_is_merged() {
    let mut app = TestApp::builder().settings(&[ON]).start().await;
    app.work().await;
    let filed = [
        ("self-driving car", "Device"),
        ("Self driving car", "Device"),
        ("World Health Organization", "Organisation"),
        ("WHO", "Organisation"),
        ("Mercury", "Deity"),
        ("Mercury", "Planet"),
        ("bee", "Species"),
        ("bees", "Species"),
        ("Fundy", "Concept"),
        ("Fundy", "Place"),
        ("Java", "Concept"),
        ("Java", "Place"),
        ("Java", "Device"),
        ("AMA", "Organisation"),
        ("American Medical Association", "Organisation"),
        ("American Marketing Association", "Organisation"),
        ("Coca-Cola", "Concept"),
        ("Coca Cola", "Device"),
        ("LHC", "Concept"),
        ("Large Hadron Collider", "Device"),
    ];
    let labels: std::collections::BTreeSet<&str> = filed.iter().map(|(_, context)| *context).collect();
    for label in labels {
        let settings = app.read("/settings").await;
        if !settings["contexts"].as_array().unwrap().iter().any(|context| context["label"] == label) {
            let made = app.post("/settings/contexts", &json!({ "label": label, "description": "" })).await;
            assert!(made.status.is_success(), "{made:?}");
        }
    }
    let made = file(&app, &filed).await;
    alias(&app, made[2], "WHO").await;
    alias(&app, made[19], "LHC").await;
    alias(&app, made[14], "AMA").await;
    alias(&app, made[15], "AMA").await;
    refine(&app).await;
    let mut shown = Vec::new();
    for concept in &made {
        let seen = app.read(&format!("/concepts/{concept}")).await;
        shown.push((seen["id"].clone(), seen["canonical_name"].clone()));
    }
    assert_eq!(shown[0], shown[1], "two spellings");
    assert_eq!(shown[2], shown[3], "an abbreviation");
    assert_ne!(shown[4].0, shown[5].0, "two contexts");
    assert_ne!(shown[6].0, shown[7].0, "a plural may be another thing");
    assert_eq!(shown[8], shown[9], "nobody had said what it is");
    assert_ne!(shown[10].0, shown[11].0, "it may be either of two");
    assert_eq!(shown[16].1, "Coca Cola", "the one whose class is known");
    assert_eq!(shown[18].1, "Large Hadron Collider");
    assert_ne!(shown[14].0, shown[15].0, "one abbreviation of two names");
    assert!(shown[13] != shown[14] && shown[13] != shown[15], "it may be either of two");
    // One more of a name that is not clear.
    let person = file(&app, &[("Java", "Person")]).await[0];
    refine(&app).await;
    assert_eq!(app.read(&format!("/concepts/{person}")).await["context"], "Person");
    assert_eq!(app.read(&format!("/concepts/{}", made[10])).await["context"], "Concept");

    // A person parts what was merged, and it stays parted.
    let steps = app.read("/curation?limit=50").await;
    let steps: Vec<&Value> = steps["data"].as_array().unwrap().iter().collect();
    assert_eq!(steps.len(), 5, "{steps:#?}");
    assert!(steps.iter().all(|step| step["job_id"].is_string() && step["reason"].is_string()), "{steps:#?}");
    let spelled = steps.iter().find(|step| step["reason"] == "two spellings of one name").unwrap();
    let undone = app.post(&format!("/curation/{}/undo", spelled["id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(undone.status, 200, "{undone:?}");
    app.sql("UPDATE okt_repository.concepts SET refined = false").await;
    refine(&app).await;
    assert_ne!(name(&app, made[0]).await, name(&app, made[1]).await, "a person said that these are two");
}

#[tokio::test]
async fn a_model_is_asked_once_about_what_is_near_and_is_believed() {
    let verdict: fn(&str, &str) -> &'static str = |one, other| {
        let both = format!("{one} {other}");
        if both.contains("Duck") { "different" } else { "same" }
    };
    let behaviour = Behaviour { verdict, ..Behaviour::default() };
    let mut app = TestApp::builder()
        .models(behaviour, "input_cost_per_1m = 1.0")
        .settings(&[ON, ("SVC__PROVIDERS__REFINEMENT__MODEL", MODEL)])
        .start()
        .await;
    app.work().await;
    let made = file(&app, &[("Mumbai", "Place"), ("Bombay", "Place"), ("Bombay Duck", "Place")]).await;
    alias(&app, made[0], "City of Bombay").await;
    alias(&app, made[1], "City of Bombay").await;
    alias(&app, made[2], "City of Bombay").await;
    refine(&app).await;
    assert_eq!(name(&app, made[1]).await, "Mumbai", "the older one of two that are as often named");
    assert_eq!(name(&app, made[2]).await, "Bombay Duck");
    let paid = calls(&app).await;
    assert!((1..=2).contains(&paid), "{paid}");
    let steps = app.read("/curation").await;
    assert_eq!(steps["data"][0]["action"], "merge", "{steps:#}");

    // What was judged is not asked again.
    app.sql("UPDATE okt_repository.concepts SET refined = false").await;
    refine(&app).await;
    assert_eq!(calls(&app).await, paid);
}

/// Nothing is compared where the repository does not have it done; when it is turned on, all that is there is compared.
#[tokio::test]
async fn the_stage_is_off_until_somebody_turns_it_on() {
    let mut app = TestApp::start().await;
    app.work().await;
    let made = file(&app, &[("self-driving car", "Concept"), ("self driving car", "Concept")]).await;
    let job =
        jobs::push(app.service.api.app.databases(), app.repository, &RefineConcepts {}, When::default())
            .await;
    app.ended(&job.to_string()).await;
    assert_ne!(name(&app, made[0]).await, name(&app, made[1]).await);
    let on = app.put("/settings/stages", &json!({ "refinement": true })).await;
    assert_eq!(on.status, 200, "{on:?}");
    eventually(Duration::from_mins(1), "they are one", async || {
        let (one, other) = (name(&app, made[0]).await, name(&app, made[1]).await);
        if one == other { Ok(()) } else { Err(one) }
    })
    .await;
}

/// If A is B and B is C, and A is not C, not all of it can be true.
#[tokio::test]
async fn what_was_said_to_differ_is_not_merged_through_a_third() {
    let verdict: fn(&str, &str) -> &'static str = |one, other| {
        let both = [one, other].concat();
        if both.contains("Ada ") && both.contains("Cyd ") { "different" } else { "same" }
    };
    let mut app = TestApp::builder()
        .models(Behaviour { verdict, ..Behaviour::default() }, "input_cost_per_1m = 1.0")
        .settings(&[ON, ("SVC__PROVIDERS__REFINEMENT__MODEL", MODEL)])
        .start()
        .await;
    app.work().await;
    let made = file(&app, &[("Ada X", "Place"), ("Bob X", "Place"), ("Cyd X", "Place")]).await;
    for concept in &made {
        alias(&app, *concept, "City of X").await;
    }
    refine(&app).await;
    assert_ne!(name(&app, made[0]).await, name(&app, made[2]).await);
    assert_eq!(
        app.count("SELECT count(*) FROM okt_repository.concepts WHERE merged_into IS NOT NULL").await,
        1
    );
}
