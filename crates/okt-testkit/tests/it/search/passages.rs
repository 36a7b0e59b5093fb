//! Passages are found by meaning too, if `search.passages.vectors` is on.

use std::time::Duration;

use okt_config::Config;
use okt_jobs::spaces;
use okt_model::{EXTRACTIVE_MODEL, SpaceKind};
use okt_store::{Databases, Purpose, embedding_spaces};
use okt_testkit::accounts::{register, send};
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::jobs::tools;
use okt_testkit::llm::Behaviour;
use okt_testkit::qdrant::QdrantServer;
use okt_testkit::wait::eventually;
use okt_vectors::{Tenant, Vectors};
use serde_json::{Value, json};

use super::upkeep::swept;
use super::{add, rows, search, settled, sources};

const ON: (&str, &str) = ("SVC__SEARCH__PASSAGES__VECTORS", "true");
const BEES: &str = "Why do honey bees dance on the comb? Which flower would they tell of?";
const TIDES: &str = "The Moon causes the tides of the sea. The tides are highest in the Bay of Fundy.";
/// Has no word of what it asks for.
const QUESTION: &str = "insects that communicate about nectar";
const POINTS: &str = "SELECT count(*) FROM okt_vectors.points WHERE space LIKE '%\\_passages/%'";
const RUNS: &str = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'embed_passages'";

/// What is found by meaning alone. A machine that does other things as well may take longer than a question waits.
async fn by_meaning(app: &TestApp, rest: &str) -> Value {
    eventually(Duration::from_secs(30), "vectors answer", async || {
        let found = search(app, QUESTION, &format!("&mode=vector{rest}")).await;
        if found["search_mode"] == "vector" { Ok(found) } else { Err(found) }
    })
    .await
}

/// The best passage by meaning alone.
async fn nearest(app: &TestApp) -> Option<Value> {
    rows(&by_meaning(app, "&types=passages").await).first().cloned()
}

/// An app with a model that embeds by words, at once.
async fn quick(settings: &[(&str, &str)], catalogue: &str) -> TestApp {
    let behaviour = Behaviour { dimensions: 64, keep: true, ..Behaviour::default() };
    let usual = [
        ("SVC__PROVIDERS__DECOMPOSITION__FACT_EXTRACTION__MODEL", EXTRACTIVE_MODEL),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", MODEL),
        ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
    ];
    TestApp::builder().models(behaviour, catalogue).settings(&usual).settings(settings).start().await
}

fn switched(app: &TestApp, on: bool) -> Config {
    let mut config = app.service.api.app.config().clone();
    config.search.passages.vectors = on;
    config
}

async fn two_texts(app: &TestApp) -> [String; 2] {
    let ids = [add(app, "bees", "Dances", BEES).await, add(app, "tides", "Tides", TIDES).await];
    settled(app, &ids).await;
    assert!(app.facts(&ids[0]).await.is_empty(), "questions are no facts");
    ids
}

/// Has vectors of nobody removed now.
async fn cleaned_up(app: &TestApp) {
    let done = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'cleanup_facts' AND state = 'completed'";
    let before = app.count(done).await;
    eventually(Duration::from_mins(1), "the clean-up runs", async || {
        app.sql("UPDATE okt_tasks.jobs SET scheduled_at = now() WHERE kind = 'cleanup_facts' AND state = 'scheduled'")
            .await;
        let now = app.count(done).await;
        if now > before { Ok(()) } else { Err(now) }
    })
    .await;
}

#[tokio::test]
async fn what_no_fact_says_is_found_by_meaning_where_that_is_on() {
    let mut app = TestApp::builder().vectors().settings(&[ON]).start().await;
    let off = switched(&app, false);
    app.work_as(&off).await;
    let ids = two_texts(&app).await;
    swept(&app).await;
    assert_eq!((app.count(RUNS).await, app.count(POINTS).await), (0, 0), "nobody has asked for them");
    assert_eq!(nearest(&app).await, None);

    // What was there before gets its vectors from the next sweep on.
    app.work().await;
    swept(&app).await;
    assert_eq!(app.count(POINTS).await, 2);
    let best = nearest(&app).await.unwrap();
    assert_eq!((&best["id"], &best["found_by"]), (&json!(ids[0]), &json!(["vector"])), "{best:#}");
    let found = search(&app, QUESTION, "&types=sources&mode=hybrid").await;
    assert_eq!(sources(&found).first(), Some(&ids[0]), "a source is as near as its passages: {found:#}");
    let found = by_meaning(&app, &format!("&types=passages&source={}", ids[1])).await;
    assert_eq!(sources(&found), [ids[1].clone()], "{found:#}");
    // Facts have no other cosines than before.
    let fact = search(&app, "what the Moon does", "&types=facts&mode=vector&explain=true").await;
    assert_eq!(sources(&fact), [ids[1].clone()], "{fact:#}");
    let runs = app.count(RUNS).await;
    swept(&app).await;
    assert_eq!(app.count(RUNS).await, runs, "all have theirs");

    // As vectors away: by words.
    app.sql("ALTER TABLE okt_vectors.points RENAME TO points_away").await;
    let found = search(&app, "honey bees", "&types=passages").await;
    assert_eq!(
        (&found["search_mode"], &found["degraded_reason"], sources(&found)),
        (&json!("lexical"), &json!("vectors_away"), vec![ids[0].clone()])
    );
}

/// Though the worker makes them.
#[tokio::test]
async fn where_it_is_off_nobody_asks_for_vectors_of_passages() {
    let mut app = quick(&[], "").await;
    let on = switched(&app, true);
    app.work_as(&on).await;
    two_texts(&app).await;
    assert_eq!(app.count(POINTS).await, 2);
    assert_eq!(nearest(&app).await, None);
}

async fn paid(app: &TestApp) -> u64 {
    let usage = app.read("/ai/usage?group_by=operation").await;
    let rows = usage["data"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == "passage_embedding").map_or(0, |row| row["calls"].as_u64().unwrap())
}

/// What the model was asked to embed of passages, each with how often.
fn asked(app: &TestApp, prefix: &str) -> Vec<String> {
    let asked = app.models.stats().asked;
    let all = asked.iter().flat_map(|asked| asked.lines());
    let mut all: Vec<String> = all.filter_map(|text| text.strip_prefix(prefix)).map(str::to_owned).collect();
    all.retain(|text| text.starts_with("Dances. "));
    all
}

#[tokio::test]
async fn a_passage_is_paid_for_once_and_its_vector_goes_with_its_text() {
    let mut app = quick(&[ON], "input_cost_per_1m = 1.0\npassage_prefix = \"passage: \"").await;
    app.work().await;
    let id = add(&app, "bees", "Dances", BEES).await;
    settled(&app, std::slice::from_ref(&id)).await;
    assert_eq!((app.count(POINTS).await, paid(&app).await), (1, 1));
    assert_eq!(asked(&app, "passage: "), [format!("Dances. {BEES}")]);
    let usage = app.read("/ai/usage?group_by=source").await;
    assert_eq!(usage["data"][0]["key"], json!(id), "it is charged to the source: {usage:#}");

    // Whoever died after the vector was made, and whoever reads the source once more.
    let forgotten = "UPDATE okt_repository.search_units SET embedded_in = NULL";
    for lost in [forgotten, "UPDATE okt_repository.search_units SET version = 0 WHERE kind = 3"] {
        app.sql(lost).await;
        swept(&app).await;
        let without =
            "SELECT count(*) FROM okt_repository.search_units WHERE kind > 1 AND embedded_in IS NULL";
        assert_eq!((app.count(without).await, paid(&app).await), (0, 1), "{lost}");
    }

    // Its text changes.
    app.sql("UPDATE okt_repository.source_texts SET text = replace(text, 'honey', 'brown')").await;
    app.sql("UPDATE okt_repository.search_units SET version = 0 WHERE kind = 3").await;
    swept(&app).await;
    assert_eq!((app.count(POINTS).await, paid(&app).await), (1, 2), "the old one is gone");
    let found = search(&app, "bees", "&types=passages&mode=vector").await;
    assert_eq!(rows(&found).len(), 1, "{found:#}");
    cleaned_up(&app).await;
    assert_eq!(app.count(POINTS).await, 1);

    // Its vector is lost.
    app.sql("DELETE FROM okt_vectors.points WHERE space LIKE '%\\_passages/%'").await;
    let other = add(&app, "tides", "Tides", TIDES).await;
    settled(&app, std::slice::from_ref(&other)).await;
    assert_eq!(app.count(POINTS).await, 1, "that of the other one");
    assert_eq!(app.delete(&format!("/sources/{other}")).await.status, 204);
    settled(&app, &[]).await;
    cleaned_up(&app).await;
    assert_eq!(app.count(POINTS).await, 0, "what was deleted takes its vector along");
    swept(&app).await;
    assert_eq!((app.count(POINTS).await, paid(&app).await), (1, 4));

    // Another space.
    let mut changed = app.service.api.app.config().clone();
    changed.providers.ai.models[0].passage_prefix = "text: ".to_owned();
    let databases = Databases::open(&changed, &[Purpose::Worker]).await.unwrap().remove(0);
    let tools = tools(&changed, &databases).await;
    assert!(spaces::reembed(&databases, &tools, |_, _| ()).await.unwrap().changed);
    assert_eq!(asked(&app, "text: "), [format!("Dances. {}", BEES.replace("honey", "brown"))]);
    assert_eq!(app.count(POINTS).await, 1, "the old ones are dropped");
    app.work_as(&changed).await;
    swept(&app).await;
    assert_eq!(paid(&app).await, 5, "and nothing is left to do");
}

/// What may cost no more is found by its words.
#[tokio::test]
async fn a_source_that_may_cost_no_more_gets_no_vectors_and_is_not_asked_about_again() {
    let mut app = quick(&[ON], "input_cost_per_1m = 1000.0").await;
    app.work().await;
    let id = app.add_text_within("bees.txt", BEES, 0.000_1).await;
    settled(&app, std::slice::from_ref(&id)).await;
    let runs = app.count(RUNS).await;
    assert!(runs > 0);
    swept(&app).await;
    assert_eq!((app.count(RUNS).await, app.count(POINTS).await, paid(&app).await), (runs, 0, 0));
    let found = search(&app, "honey bees", "&types=passages&mode=lexical").await;
    assert_eq!(sources(&found), [id]);
}

/// Even if a store mixes tenants up.
#[tokio::test]
async fn vectors_of_others_lead_nowhere() {
    let mut app = quick(&[ON], "").await;
    app.work().await;
    let id = add(&app, "tides", "Tides", TIDES).await;
    settled(&app, std::slice::from_ref(&id)).await;
    let other = register(&app.service, "stranger").await;
    let body = json!({"name": "Other"});
    let made = send(&app.service, &other.token, http::Method::POST, "/api/v1/repositories", &body).await;
    let theirs = made.json()["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let path = format!("/api/v1/repositories/{theirs}/sources/upload");
    let request = app.service.request(http::Method::POST, &path).bearer_auth(&other.token);
    let form = okt_testkit::multipart::form(&[], "bees.txt", "text/plain", BEES.as_bytes());
    let request = request.header("content-type", okt_testkit::multipart::CONTENT_TYPE).body(form);
    assert_eq!(okt_testkit::client::Answer::of(request).await.status, 202);
    settled(&app, &[]).await;
    let of = |which: &str| format!("{POINTS} AND repository_id {which} '{theirs}'");
    assert_eq!((app.count(&of("=")).await, app.count(&of("<>")).await), (1, 1));
    let ask = async || by_meaning(&app, "&types=passages,sources&explain=true").await;
    let before = ask().await;
    assert_eq!(sources(&before), [id], "{before:#}");
    app.sql(&format!(
        "INSERT INTO okt_vectors.points SELECT '{}', space, id, embedding FROM okt_vectors.points
          WHERE repository_id = '{theirs}' AND space LIKE '%\\_passages/%'",
        app.repository
    ))
    .await;
    assert_eq!(app.count(&of("<>")).await, 2, "the store takes it for ours");
    assert_eq!(ask().await, before);
}

#[tokio::test]
async fn qdrant_keeps_vectors_of_passages_until_their_repository_goes() {
    let mut qdrant = QdrantServer::start();
    let port = qdrant.config().port.to_string();
    let settings = [ON, ("VECTOR_STORE_HOST", "127.0.0.1"), ("VECTOR_STORE_PORT", &port)];
    let mut app = TestApp::builder().vectors().settings(&settings).start().await;
    app.work().await;
    let ids = two_texts(&app).await;
    assert_eq!(nearest(&app).await.unwrap()["id"], json!(ids[0]));
    qdrant.kill();
    let found = search(&app, "honey bees", "&types=passages").await;
    assert_eq!(
        (&found["search_mode"], &found["degraded_reason"], sources(&found)),
        (&json!("lexical"), &json!("vectors_away"), vec![ids[0].clone()])
    );
    qdrant.restart();
    assert_eq!(nearest(&app).await.unwrap()["id"], json!(ids[0]));

    let config = app.service.api.app.config();
    let databases = app.service.api.app.databases();
    let vectors = Vectors::open(config, databases).await.unwrap().unwrap();
    let mut conn = databases.acquire_system().await.unwrap();
    let space = embedding_spaces::find_current(&mut conn, SpaceKind::Facts).await.unwrap().unwrap();
    drop(conn);
    let (tenant, place) = (Tenant::new(app.repository, "default"), vectors.passage_space(&space));
    assert_eq!(vectors.store().count(&tenant, &place).await.unwrap(), 2);
    let path = format!("/api/v1/repositories/{}", app.repository);
    assert_eq!(app.delete(&path).await.status, 204);
    eventually(Duration::from_mins(1), "its vectors are gone", async || {
        let left = vectors.store().count(&tenant, &place).await.unwrap();
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
}
