//! Another model makes the vectors from now on, and there is no moment in which nothing is found.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_jobs::spaces;
use okt_model::{EMBEDDING_MODEL, EmbedFacts};
use okt_store::outbox::When;
use okt_testkit::db::FILE;
use okt_testkit::jobs::{TestWorker, push, tools};
use okt_testkit::llm::{Behaviour, ModelServer};
use okt_testkit::wait::eventually;
use serde_json::Value;

use crate::dedup::stored_facts::{StoredFacts, statements};

const CATALOGUE: &str = "[[providers.ai.models]]\nid = \"other\"\nprovider = \"local\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changing_the_model_leaves_no_moment_in_which_nothing_is_found() {
    let models = ModelServer::start(Behaviour { dimensions: 64, ..Behaviour::default() }).await;
    let url = models.base_url();
    let shared = [("LLM_LOCAL_BASE_URL", url.as_str()), (FILE, CATALOGUE)];
    let mut settings = shared.to_vec();
    settings.push(("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL));
    let fixture = Arc::new(StoredFacts::open(&settings).await);
    let config = fixture.service.api.app.config().clone();
    let worker = TestWorker::start(&config, Vec::new()).await;
    let source = fixture.say(&statements(120)).await;
    let payload = EmbedFacts { source: Some(source) };
    push(&fixture.databases, fixture.repository, &payload, When::default()).await;
    let stable = stable_facts(&fixture).await;
    drop(worker);

    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::clone(&fixture));
    let stopped = Arc::clone(&stop);
    let asking = tokio::spawn(async move {
        let (mut count, mut models) = (0, BTreeSet::new());
        while !stopped.load(Ordering::Relaxed) {
            let id = &stable[count % stable.len()];
            let answer = asked.get(&format!("/facts/{id}/similar?limit=3")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let found = answer.json();
            assert_eq!(found["data"].as_array().unwrap().len(), 3, "nothing is found: {found:#}");
            models.insert(found["model"].as_str().unwrap().to_owned());
            count += 1;
        }
        (count, models)
    });
    let mut changed = config.clone();
    changed.providers.embedding.model = "other".to_owned();
    changed.providers.embedding.dimensions = 64;
    let new = tools(&changed, &fixture.databases).await;
    let mut made = 0;
    assert!(spaces::reembed(&fixture.databases, &new, |_, count| made += count).await.unwrap().changed);
    assert_eq!(made, 120);
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let (count, seen) = asking.await.unwrap();
    println!("{count} searches while the vectors changed");
    assert!(count > 20, "hardly anybody asked");
    assert_eq!(seen, BTreeSet::from([EMBEDDING_MODEL.to_owned(), "other".to_owned()]));

    assert!(!spaces::reembed(&fixture.databases, &new, |_, _| ()).await.unwrap().changed, "once is enough");
    let spaces_left = "SELECT count(*) FROM okt_system.embedding_spaces";
    assert_eq!(fixture.count(spaces_left).await, 1, "the old vectors are gone");
    let points: (i64, i64) = sqlx::query_as("SELECT count(*), count(DISTINCT space) FROM okt_vectors.points")
        .fetch_one(&mut fixture.service.database.connect().await)
        .await
        .unwrap();
    assert_eq!(points, (120, 1));

    // Who is still configured for the old one goes on with the new, as long as it can be asked.
    let old = tools(&config, &fixture.databases).await;
    spaces::start(&fixture.databases, &old).await.unwrap();
    let mut alone = config.clone();
    alone.providers.ai.models.clear();
    let alone = tools(&alone, &fixture.databases).await;
    let error = spaces::start(&fixture.databases, &alone).await.unwrap_err().to_string();
    assert!(error.contains("\"other\"") && error.contains("okt reembed"), "{error}");
}

/// Waits until nothing is new; the ids.
async fn stable_facts(fixture: &StoredFacts) -> Vec<String> {
    eventually(Duration::from_mins(3), "every fact has its vector", async || {
        let page = fixture.read("/facts?status=stable&limit=200").await;
        let facts: &Vec<Value> = page["data"].as_array().unwrap();
        if facts.len() == 120 {
            return Ok(facts.iter().map(|fact| fact["id"].as_str().unwrap().to_owned()).collect());
        }
        Err(facts.len())
    })
    .await
}
