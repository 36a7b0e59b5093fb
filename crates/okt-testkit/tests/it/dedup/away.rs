//! The database of one repository does not answer, and the vectors of the others are made all the same.

use okt_config::Config;
use okt_jobs::spaces;
use okt_model::{EMBEDDING_MODEL, RepositoryId};
use okt_testkit::cluster::free_port;
use okt_testkit::db::{FILE, run};
use okt_testkit::jobs::{TestWorker, tools};
use okt_testkit::llm::ModelServer;

use crate::dedup::leftovers::{CATALOGUE, count, embed, models, other, until};
use crate::dedup::stored_facts::{StoredFacts, statements};

const MADE: &str = "okt_repository.facts f JOIN okt_system.embedding_spaces s ON s.no = f.embedded_in
                     WHERE s.model = 'other'";
const LEFT: &str = r#"okt_tasks.jobs WHERE kind = 'refill_vectors' AND state IN ('available', 'scheduled')
                         AND payload = '{"databases": ["away"], "repositories": []}'"#;

/// A repository whose facts have vectors, and one that nobody can reach.
async fn one_is_away() -> (ModelServer, StoredFacts, Config) {
    let models = models().await;
    let (url, nowhere) = (models.base_url(), format!("postgres://okt@127.0.0.1:{}/okt", free_port()));
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL),
        ("SVC__DATABASES__AWAY__URL", &nowhere),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    let worker = TestWorker::start(&config, Vec::new()).await;
    let source = fixture.say(&statements(25)).await;
    embed(&fixture, source).await;
    until(&fixture, "okt_repository.facts WHERE status = 'stable'", 25).await;
    drop(worker);
    // Newer than the other one, so it comes first.
    let there = format!(
        "INSERT INTO okt_system.repositories (id, name, slug, description, database, tier, preset, state)
         VALUES ('{}', 'Wasps', 'wasps', '', 'away', 'shared', 'general', 'active')",
        RepositoryId::mint()
    );
    run(&mut fixture.service.database.connect().await, &there).await;
    (models, fixture, config)
}

#[tokio::test]
async fn vectors_that_were_dropped_are_made_again_where_somebody_answers() {
    let (_models, fixture, config) = Box::pin(one_is_away()).await;
    let mut changed = other(&config);
    changed.providers.vector_store.allow_recreate = true;
    let _worker = TestWorker::start(&changed, Vec::new()).await;
    until(&fixture, MADE, 25).await;
    until(&fixture, LEFT, 1).await;
    // It comes back for those that are left, and only for them.
    run(
        &mut fixture.service.database.connect().await,
        "UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE kind = 'refill_vectors'",
    )
    .await;
    let ended = r#"okt_tasks.jobs WHERE kind = 'refill_vectors' AND state = 'completed'
                      AND output = '{"repositories": 0, "databases_away": ["away"]}'"#;
    until(&fixture, ended, 1).await;
    until(&fixture, LEFT, 1).await;
}

#[tokio::test]
async fn whoever_looks_at_all_repositories_names_those_that_could_not_be_looked_at() {
    let (_models, fixture, config) = Box::pin(one_is_away()).await;
    let old = tools(&config, &fixture.databases).await;
    for mend in [false, true] {
        let mut looked_at = Vec::new();
        let away = spaces::doctor(&fixture.databases, &old, mend, |checked| {
            looked_at.push((checked.repository.id, checked.found.vectors, checked.found.missing));
        });
        let away: Vec<String> = away.await.unwrap().into_iter().map(|one| one.slug).collect();
        assert_eq!(away, ["wasps"]);
        assert_eq!(looked_at, [(fixture.repository, 25, 0)]);
    }
    let new = tools(&other(&config), &fixture.databases).await;
    let done = spaces::reembed(&fixture.databases, &new, |_, _| ()).await.unwrap();
    let away: Vec<&str> = done.away.iter().map(|one| one.slug.as_str()).collect();
    assert_eq!((done.changed, done.old_left, away), (true, true, vec!["wasps"]));
    assert_eq!(count(&fixture, MADE).await, 25);
    assert_eq!(count(&fixture, LEFT).await, 1, "a job comes back for those that were passed over");
    assert_eq!(
        count(&fixture, "okt_vectors.points").await,
        25,
        "the old ones are gone where somebody answers"
    );
}

/// It says nothing about the database, so nothing is passed over and nothing is switched.
#[tokio::test]
async fn a_model_that_does_not_answer_leaves_the_old_vectors_where_they_are() {
    let (models, fixture, config) = Box::pin(one_is_away()).await;
    drop(models);
    let mut changed = other(&config);
    changed.providers.llm_retry.max_attempts = 1;
    let new = tools(&changed, &fixture.databases).await;
    assert!(spaces::reembed(&fixture.databases, &new, |_, _| ()).await.is_err());
    let current =
        format!("okt_system.embedding_spaces WHERE state = 'current' AND model = '{EMBEDDING_MODEL}'");
    assert_eq!(count(&fixture, &current).await, 1);
}
