//! Another model makes the vectors from now on, and there is no moment in which nothing is found.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_jobs::spaces;
use okt_model::{EMBEDDING_MODEL, EmbedFacts, JobId};
use okt_store::outbox::{self, When};
use okt_testkit::db::FILE;
use okt_testkit::jobs::{Hired, tools};
use okt_testkit::llm::{Behaviour, ModelServer};
use serde_json::Value;

use crate::desk::{Desk, statements};

const CATALOGUE: &str = "[[providers.ai.models]]\nid = \"other\"\nprovider = \"local\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changing_the_model_leaves_no_moment_in_which_nothing_is_found() {
    let models = ModelServer::start(Behaviour { dimensions: 64, ..Behaviour::default() }).await;
    let url = models.base_url();
    let shared = [("LLM_LOCAL_BASE_URL", url.as_str()), (FILE, CATALOGUE)];
    let mut settings = shared.to_vec();
    settings.push(("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL));
    let desk = Arc::new(Desk::open(&settings).await);
    let config = desk.service.api.app.config().clone();
    let worker = Hired::start(&config, Vec::new()).await;
    let source = desk.say(&statements(120)).await;
    let mut tx = desk.databases.begin("default", desk.repository).await.unwrap();
    let payload = EmbedFacts { source: Some(source) };
    outbox::push(&mut tx, desk.repository, JobId::mint(), &payload, When::default()).await.unwrap();
    tx.commit().await.unwrap();
    let stable = stable_facts(&desk).await;
    drop(worker);

    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::clone(&desk));
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
    let new = tools(&changed, &desk.databases).await;
    let mut made = 0;
    assert!(spaces::reembed(&desk.databases, &new, |_, count| made += count).await.unwrap());
    assert_eq!(made, 120);
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let (count, seen) = asking.await.unwrap();
    println!("{count} searches while the vectors changed");
    assert!(count > 20, "hardly anybody asked");
    assert_eq!(seen, BTreeSet::from([EMBEDDING_MODEL.to_owned(), "other".to_owned()]));

    assert!(!spaces::reembed(&desk.databases, &new, |_, _| ()).await.unwrap(), "once is enough");
    let spaces_left: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_system.embedding_spaces")
        .fetch_one(&mut desk.service.database.connect().await)
        .await
        .unwrap();
    assert_eq!(spaces_left, 1, "the old vectors are gone");
    let points: (i64, i64) = sqlx::query_as("SELECT count(*), count(DISTINCT space) FROM okt_vectors.points")
        .fetch_one(&mut desk.service.database.connect().await)
        .await
        .unwrap();
    assert_eq!(points, (120, 1));

    // Who is still configured for the old one goes on with the new, as long as it can be asked.
    let old = tools(&config, &desk.databases).await;
    spaces::start(&desk.databases, &old).await.unwrap();
    let mut alone = config.clone();
    alone.providers.ai.models.clear();
    let alone = tools(&alone, &desk.databases).await;
    let error = spaces::start(&desk.databases, &alone).await.unwrap_err().to_string();
    assert!(error.contains("\"other\"") && error.contains("okt reembed"), "{error}");
}

/// Waits until nothing is new; the ids.
async fn stable_facts(desk: &Desk) -> Vec<String> {
    for _ in 0..3_000 {
        let page = desk.get("/facts?status=stable&limit=200").await.json();
        let facts: &Vec<Value> = page["data"].as_array().unwrap();
        if facts.len() == 120 {
            return facts.iter().map(|fact| fact["id"].as_str().unwrap().to_owned()).collect();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the facts never got their vectors");
}
