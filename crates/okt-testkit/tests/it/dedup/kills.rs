//! Workers and the store of vectors die while facts get their vectors; in the end every fact has one, and nothing else does.
//!
//! The short form. `OKT_VECTOR_KILLS=200 cargo nextest run --workspace -E 'test(are_killed)'` is the long one.

use std::time::Duration;

use okt_jobs::{Reconciled, spaces};
use okt_model::{EmbedFacts, SpaceKind};
use okt_store::embedding_spaces;
use okt_store::outbox::When;
use okt_testkit::db::FILE;
use okt_testkit::jobs::{program, push, tools};
use okt_testkit::llm::{Behaviour, Latency, ModelServer};
use okt_testkit::process::Process;
use okt_testkit::qdrant::QdrantServer;
use okt_testkit::wait::eventually;
use okt_vectors::{Tenant, Vectors};
use uuid::Uuid;

use crate::dedup::stored_facts::{StoredFacts, statements};

const CATALOGUE: &str = "[[providers.ai.models]]\nid = \"vectors\"\nprovider = \"local\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_workers_and_the_store_are_killed_every_fact_has_its_vector_and_nothing_else_has() {
    let kills: usize = std::env::var("OKT_VECTOR_KILLS").map_or(6, |text| text.parse().unwrap());
    let slow = Latency::LogNormal { median_ms: 30.0, sigma: 0.5 };
    let models =
        ModelServer::start(Behaviour { dimensions: 64, latency: slow, ..Behaviour::default() }).await;
    let mut qdrant = QdrantServer::start();
    let (url, port) = (models.base_url(), qdrant.config().port.to_string());
    let settings = [
        ("LLM_LOCAL_BASE_URL", url.as_str()),
        (FILE, CATALOGUE),
        ("SVC__PROVIDERS__EMBEDDING__MODEL", "vectors"),
        ("SVC__PROVIDERS__EMBEDDING__DIMENSIONS", "64"),
        ("SVC__PROVIDERS__AI__EMBED_BATCH_SIZE", "4"),
        ("SVC__TASK__HEARTBEAT_INTERVAL", "200ms"),
        ("SVC__TASK__HEARTBEAT_TIMEOUT", "1s"),
        ("VECTOR_STORE_HOST", "127.0.0.1"),
        ("VECTOR_STORE_PORT", &port),
    ];
    let fixture = StoredFacts::open(&settings).await;
    let config = fixture.service.api.app.config().clone();
    let tools = tools(&config, &fixture.databases).await;
    spaces::start(&fixture.databases, &tools).await.unwrap();
    let worker_settings = fixture.process_settings();

    let facts = statements(kills * 25);
    for (n, part) in facts.chunks(25).enumerate() {
        let source = fixture.say(part).await;
        embed(&fixture, EmbedFacts { source: Some(source) }).await;
        let worker = Process::serve_as(program(), &["--role", "worker"], &worker_settings);
        tokio::time::sleep(Duration::from_millis(500 + 137 * (n as u64 % 7))).await;
        if n % 2 == 0 {
            qdrant.kill();
        }
        tokio::time::sleep(Duration::from_millis(30 * (n as u64 % 5))).await;
        drop(worker);
        if n % 2 == 0 {
            qdrant.restart();
        }
    }
    // Nobody dies any more. What the dead have given up is asked for again, as the tidying job does.
    embed(&fixture, EmbedFacts { source: None }).await;
    let worker = Process::serve_as(program(), &["--role", "worker"], &worker_settings);
    compared(&fixture).await;
    drop(worker);
    let found = check(&fixture, &tools, true).await;
    println!("after {kills} kills: {found:?}");
    let vectors = found.vectors - found.orphaned + found.missing;
    assert_eq!(check(&fixture, &tools, false).await, Reconciled { vectors, ..Reconciled::default() });

    let vectors = Vectors::open(&config, &fixture.databases).await.unwrap().unwrap();
    let mut conn = fixture.databases.acquire_system().await.unwrap();
    let space = embedding_spaces::find_current(&mut conn, SpaceKind::Facts).await.unwrap().unwrap();
    drop(conn);
    let before = nearest(&fixture, &vectors, &vectors.space(&space)).await;
    vectors.store().drop_space(&vectors.space(&space)).await.unwrap();
    let lost = check(&fixture, &tools, true).await;
    assert!(lost.missing > 0, "the collection was dropped: {lost:?}");
    let again = check(&fixture, &tools, false).await;
    assert_eq!((again.orphaned, again.missing), (0, 0));
    assert_eq!(again.vectors, lost.missing);
    assert_eq!(nearest(&fixture, &vectors, &vectors.space(&space)).await, before, "the same after a rebuild");
}

async fn embed(fixture: &StoredFacts, payload: EmbedFacts) {
    push(&fixture.databases, fixture.repository, &payload, When::default()).await;
}

async fn check(fixture: &StoredFacts, tools: &okt_jobs::Tools, mend: bool) -> Reconciled {
    let mut found = Reconciled::default();
    spaces::doctor(&fixture.databases, tools, mend, |checked| found = checked.found).await.unwrap();
    found
}

/// Waits until nothing is new.
async fn compared(fixture: &StoredFacts) {
    eventually(Duration::from_mins(3), "every fact is compared", async || {
        match fixture.count("SELECT count(*) FROM okt_repository.facts WHERE status = 'new'").await {
            0 => Ok(()),
            new => Err(new),
        }
    })
    .await;
}

/// The ten nearest of some facts with their cosines. Those that are as near as the tenth may be others.
async fn nearest(
    fixture: &StoredFacts,
    vectors: &Vectors,
    space: &okt_vectors::Space,
) -> Vec<Vec<(String, Uuid)>> {
    let query = "SELECT id FROM okt_repository.facts WHERE status = 'stable' ORDER BY no LIMIT 20";
    let ids: Vec<Uuid> =
        sqlx::query_scalar(query).fetch_all(&mut fixture.service.database.connect().await).await.unwrap();
    let tenant = Tenant::new(fixture.repository, "default");
    let mut points = vectors.store().find(&tenant, space, &ids).await.unwrap();
    points.sort_by_key(|point| point.id);
    let queries: Vec<Vec<f32>> = points.into_iter().map(|point| point.vector).collect();
    let near = vectors.store().nearest(&tenant, space, &queries, 10, -1.0).await.unwrap();
    let ten = near.into_iter().map(|near| {
        let last = near.last().map_or(0.0, |last| last.cosine) + 1e-4;
        let mut ten: Vec<(String, Uuid)> = near
            .iter()
            .map(|near| {
                (format!("{:.3}", near.cosine), if near.cosine > last { near.id } else { Uuid::nil() })
            })
            .collect();
        ten.sort();
        ten
    });
    ten.collect()
}
