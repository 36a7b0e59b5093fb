//! Vectors that are missing: for one fact, for one repository, for all of them, and for a moment only.

use std::time::{Duration, Instant};

use http::Method;
use okt_config::Config;
use okt_jobs::spaces;
use okt_model::{CleanupFacts, EMBEDDING_MODEL, EmbedFacts, JobId, SourceId};
use okt_store::outbox::{self, When};
use okt_testkit::accounts::send;
use okt_testkit::db::{FILE, run};
use okt_testkit::jobs::{TestWorker, push, tools};
use okt_testkit::llm::{Behaviour, ModelServer, NOWHERE};
use serde_json::json;

use crate::dedup::stored_facts::{StoredFacts, statements};

/// A dollar for a hundred tokens.
pub(super) const CATALOGUE: &str =
    "[[providers.ai.models]]\nid = \"other\"\nprovider = \"local\"\ninput_cost_per_1m = 10000.0\n";

pub(super) async fn models() -> ModelServer {
    ModelServer::start(Behaviour { dimensions: 64, ..Behaviour::default() }).await
}

pub(super) fn other(config: &Config) -> Config {
    let mut config = config.clone();
    "other".clone_into(&mut config.providers.embedding.model);
    config.providers.embedding.dimensions = 64;
    config
}

pub(super) async fn embed(fixture: &StoredFacts, source: SourceId) {
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let payload = EmbedFacts { source: Some(source) };
    outbox::push(&mut tx, fixture.repository, JobId::mint(), &payload, When::default()).await.unwrap();
    tx.commit().await.unwrap();
}

pub(super) async fn count(fixture: &StoredFacts, what: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {what}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(query))
        .fetch_one(&mut fixture.service.database.connect().await)
        .await
        .unwrap()
}

pub(super) async fn until(fixture: &StoredFacts, what: &str, expected: i64) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while count(fixture, what).await != expected {
        assert!(Instant::now() < deadline, "{what}: {} and not {expected}", count(fixture, what).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_vector_of_zeros_fails_alone() {
    let models = models().await;
    let url = models.base_url();
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", "other"),
        ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    let _worker = TestWorker::start(&config, Vec::new()).await;
    let mut texts = statements(20);
    texts[7] = format!("{NOWHERE}{}", texts[7]);
    let source = fixture.say(&texts).await;
    embed(&fixture, source).await;
    until(&fixture, "okt_repository.facts WHERE status = 'stable'", 20).await;
    assert_eq!(count(&fixture, "okt_vectors.points").await, 19);
    assert_eq!(count(&fixture, "okt_tasks.jobs WHERE state IN ('retryable', 'discarded')").await, 0);

    // Nobody pays for it again: neither those who tidy up, nor those who repair.
    let paid = models.stats().requests;
    let tidied =
        push(&fixture.databases, fixture.repository, &CleanupFacts { soon: true }, When::default()).await;
    until(&fixture, &format!("okt_tasks.jobs WHERE id = '{tidied}' AND state = 'completed'"), 1).await;
    let ended = "okt_tasks.jobs WHERE kind = 'embed_facts' AND state = 'completed'";
    assert_eq!(
        count(&fixture, ended).await,
        count(&fixture, "okt_tasks.jobs WHERE kind = 'embed_facts'").await
    );
    let tools = tools(&config, &fixture.databases).await;
    for mend in [false, true] {
        let mut found = okt_jobs::Reconciled::default();
        spaces::doctor(&fixture.databases, &tools, mend, |checked| found = checked.found).await.unwrap();
        assert_eq!((found.vectors, found.missing, found.queued), (19, 0, 0));
    }
    assert_eq!(models.stats().requests, paid);
}

#[tokio::test]
async fn a_repository_without_budget_does_not_hold_up_the_others() {
    let models = models().await;
    let url = models.base_url();
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL),
    ];
    let mut fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    spaces::start(&fixture.databases, &tools(&config, &fixture.databases).await).await.unwrap();
    fixture.say(&statements(30)).await;
    let set = fixture.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 0.01})).await;
    assert_eq!(set.status, 200, "{set:?}");
    let (poor, name) = (fixture.repository, json!({"name": "Wasps"}));
    let made =
        send(&fixture.service, &fixture.owner.token, Method::POST, "/api/v1/repositories", &name).await;
    let rich: uuid::Uuid = made.json()["id"].as_str().unwrap().parse().unwrap();
    fixture.repository = rich.into();
    let texts = statements(60);
    fixture.say(&texts[30..]).await;

    let new = tools(&other(&config), &fixture.databases).await;
    let mut told = Vec::new();
    let done = spaces::reembed(&fixture.databases, &new, |repository, made| told.push((repository.id, made)));
    let done = done.await.unwrap();
    assert!(done.changed);
    assert_eq!(told, [(fixture.repository, 30)]);
    assert_eq!(done.skipped.iter().map(|repository| repository.id).collect::<Vec<_>>(), [poor]);
    let queued = format!("okt_repository.outbox WHERE kind = 'embed_facts' AND repository_id = '{poor}'");
    assert_eq!(count(&fixture, &queued).await, 1, "they get their vectors when they may");
    fixture.repository = poor;
    let raised = fixture.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": null})).await;
    assert_eq!(raised.status, 200, "{raised:?}");
    let _worker = TestWorker::start(&other(&config), Vec::new()).await;
    until(&fixture, "okt_vectors.points", 60).await;
}

#[tokio::test]
async fn money_that_is_only_reserved_is_waited_for() {
    let models = models().await;
    let url = models.base_url();
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", "other"),
        ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let set = fixture.ask(Method::PUT, "/settings/budget", &json!({"monthly_usd": 100})).await;
    assert_eq!(set.status, 200, "{set:?}");
    // For a call of somebody else, which is out.
    let hold = format!(
        "INSERT INTO okt_system.ai_holds (call_id, repository_id, micro_usd, expires_at)
         VALUES (gen_random_uuid(), '{}', 100000000, clock_timestamp() + interval '1 hour')",
        fixture.repository
    );
    let mut conn = fixture.service.database.connect().await;
    run(&mut conn, &hold).await;
    let source = fixture.say(&statements(5)).await;
    embed(&fixture, source).await;
    let config = fixture.service.api.app.config().clone();
    let _worker = TestWorker::start(&config, Vec::new()).await;
    until(&fixture, "okt_tasks.jobs WHERE kind = 'embed_facts' AND state = 'running'", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    run(&mut conn, "DELETE FROM okt_system.ai_holds").await;
    until(&fixture, "okt_vectors.points", 5).await;
}

#[tokio::test]
async fn vectors_that_were_dropped_are_made_again_for_all() {
    let models = models().await;
    let url = models.base_url();
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    let worker = TestWorker::start(&config, Vec::new()).await;
    let source = fixture.say(&statements(25)).await;
    embed(&fixture, source).await;
    until(&fixture, "okt_repository.facts WHERE status = 'stable'", 25).await;
    drop(worker);
    let mut changed = other(&config);
    changed.providers.vector_store.allow_recreate = true;
    // Starting is all that somebody does.
    let _worker = TestWorker::start(&changed, Vec::new()).await;
    until(&fixture, "okt_vectors.points", 25).await;
    let spaces = "okt_repository.facts f JOIN okt_system.embedding_spaces s ON s.no = f.embedded_in
                   WHERE s.model = 'other'";
    until(&fixture, spaces, 25).await;
}

/// A process deletes the vectors of the old model and dies of it.
#[tokio::test]
async fn vectors_are_made_again_although_the_process_that_deleted_the_old_ones_died() {
    let models = models().await;
    let url = models.base_url();
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    let worker = TestWorker::start(&config, Vec::new()).await;
    let source = fixture.say(&statements(25)).await;
    embed(&fixture, source).await;
    until(&fixture, "okt_repository.facts WHERE status = 'stable'", 25).await;
    drop(worker);

    let mut changed = other(&config);
    changed.providers.vector_store.allow_recreate = true;
    let new = tools(&changed, &fixture.databases).await;
    // Whoever deletes them waits here.
    let mut reader = fixture.service.database.connect().await;
    run(&mut reader, "BEGIN; SELECT FROM okt_vectors.points FOR UPDATE").await;
    let databases = fixture.databases.clone();
    let dying = tokio::spawn(async move { spaces::start(&databases, &new).await });
    let deletes = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                      AND query LIKE 'DELETE FROM okt_vectors.points%'";
    until(&fixture, deletes, 1).await;
    dying.abort();
    assert!(dying.await.is_err_and(|error| error.is_cancelled()));
    run(&mut reader, "ROLLBACK").await;

    let _worker = TestWorker::start(&changed, Vec::new()).await;
    let made = "okt_repository.facts f JOIN okt_system.embedding_spaces s ON s.no = f.embedded_in
                 WHERE s.model = 'other'";
    until(&fixture, made, 25).await;
}

#[tokio::test]
async fn what_is_about_to_get_its_vector_is_not_missing() {
    let fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let config = fixture.service.api.app.config().clone();
    let tools = tools(&config, &fixture.databases).await;
    spaces::start(&fixture.databases, &tools).await.unwrap();
    let check = async || {
        let mut found = okt_jobs::Reconciled::default();
        spaces::doctor(&fixture.databases, &tools, false, |checked| found = checked.found).await.unwrap();
        (found.missing, found.queued)
    };
    let texts = statements(40);
    let source = fixture.say(&texts[..10]).await;
    assert_eq!(check().await, (10, 0), "nobody comes for them");
    embed(&fixture, source).await;
    assert_eq!(check().await, (0, 10), "on its way to the queue");
    fixture.say(&texts[10..25]).await;
    assert_eq!(check().await, (15, 10), "those of another source are not queued with it");
    let worker = TestWorker::start(&config, Vec::new()).await;
    until(&fixture, "okt_repository.facts WHERE embedded_in IS NOT NULL", 10).await;
    drop(worker);
    assert_eq!(check().await, (15, 0));
}
