//! Stores that are away, slow, killed, locked, or not there at all.

use std::time::{Duration, Instant};

use okt_model::{Error, RepositoryId, Result};
use okt_store::{Databases, Purpose};
use okt_testkit::cluster::{Cluster, free_port};
use okt_testkit::db::{config, run};
use okt_testkit::qdrant::QdrantServer;
use okt_testkit::vectors::Cloud;
use okt_vectors::{PgVector, Qdrant, Space, Tenant, VectorStore};
use serde_json::json;

use crate::vectors::stores::{id, own_qdrant, pgvector, point};

/// What every call says while the store is away.
async fn all(store: &dyn VectorStore, space: &Space) -> Vec<(&'static str, Result<()>)> {
    let (tenant, query) = (Tenant::new(RepositoryId::mint(), "default"), [vec![1.0, 0.0]]);
    vec![
        ("ping", store.ping().await),
        ("prepare", store.prepare(space, false).await.map(drop)),
        ("upsert", store.upsert(&tenant, space, &[point(1, &[1.0, 0.0])]).await),
        ("remove", store.remove(&tenant, space, &[id(1)]).await),
        ("nearest", store.nearest(&tenant, space, &query, 1, 0.0).await.map(drop)),
        ("find", store.find(&tenant, space, &[id(1)]).await.map(drop)),
        ("list", store.list(&tenant, space, None, 1).await.map(drop)),
        ("count", store.count(&tenant, space).await.map(drop)),
        ("delete_tenant", store.delete_tenant(&tenant, space).await),
        ("drop_space", store.drop_space(space).await),
    ]
}

fn space() -> Space {
    Space { name: "okt_test".to_owned(), dimensions: 2 }
}

#[tokio::test]
async fn a_store_that_is_not_there_may_be_asked_again() {
    let port = free_port().to_string();
    let away = config(&[("VECTOR_STORE_HOST", "127.0.0.1"), ("VECTOR_STORE_PORT", &port)]);
    let qdrant = Qdrant::new(&away.providers.vector_store).unwrap();
    let cluster = Cluster::start();
    let url = cluster.url();
    let settings =
        [("SVC__DATABASES__DEFAULT__URL", &*url), ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "2s")];
    let config = config(&settings);
    Databases::migrate(&config).await.unwrap();
    let databases = Databases::open(&config, &[Purpose::Worker]).await.unwrap().remove(0);
    let pgvector = PgVector::new(databases);
    pgvector.ping().await.unwrap();
    cluster.down();
    for (name, store) in [("Qdrant", &qdrant as &dyn VectorStore), ("pgvector", &pgvector)] {
        for (call, outcome) in all(store, &space()).await {
            let error = outcome.expect_err(call);
            assert!(error.retryable(), "{name}, {call}: {error:?}");
        }
    }
    cluster.up();
    pgvector.prepare(&space(), false).await.unwrap();
}

#[tokio::test]
async fn a_server_that_refuses_or_sleeps_may_be_asked_again() {
    let server = QdrantServer::start();
    let store = Qdrant::with_patience(&server.config(), Duration::from_millis(700)).unwrap();
    store.prepare(&space(), false).await.unwrap();
    for how in [json!({"unavailable": true}), json!({"slow": 1.5})] {
        server.misbehave(&how);
        for (call, outcome) in all(&store, &space()).await {
            let started = Instant::now();
            let error = outcome.expect_err(call);
            assert!(error.retryable(), "{how}, {call}: {error:?}");
            assert!(started.elapsed() < Duration::from_secs(3), "{how}, {call}");
        }
        server.misbehave(&json!({}));
        // What it was told in its sleep may still be done.
        tokio::time::sleep(Duration::from_secs(3)).await;
        store.prepare(&space(), false).await.unwrap();
        let tenant = Tenant::new(RepositoryId::mint(), "default");
        store.upsert(&tenant, &space(), &[point(1, &[1.0, 0.0])]).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_written_is_there_after_a_kill_and_the_client_finds_its_way_back() {
    let mut fixture = own_qdrant(8).await;
    let tenant = fixture.tenant().await;
    let mut cloud = Cloud::new(7, 8, 3);
    let mut written = Vec::new();
    for _ in 0..3 {
        let points = cloud.points(50);
        fixture.upsert(&tenant, &points).await;
        written.extend(points.iter().map(|point| point.id));
        fixture.qdrant.as_mut().unwrap().kill();
        let away = fixture.store.upsert(&tenant, &fixture.space, &points).await.unwrap_err();
        assert!(away.retryable(), "{away:?}");
        fixture.qdrant.as_mut().unwrap().restart();
        let mut expected = written.clone();
        expected.sort();
        assert_eq!(fixture.ids(&tenant, 100).await, expected);
        fixture.store.prepare(&fixture.space, false).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_for_the_operator_and_never_shown() {
    let server = QdrantServer::start_with("right-key");
    let mut config = server.config();
    Qdrant::new(&config).unwrap().prepare(&space(), false).await.unwrap();
    for wrong in ["", "planted-secret"] {
        config.api_key = wrong.to_owned().into();
        let store = Qdrant::new(&config).unwrap();
        for (call, outcome) in all(&store, &space()).await {
            let error = outcome.expect_err(call);
            assert!(matches!(&error, Error::Operator(text) if text.contains("api_key")), "{call}: {error:?}");
            assert!(!format!("{error:?}").contains("planted-secret"), "{call}");
        }
    }
    config.api_key = "planted-secret\n".to_owned().into();
    let error = Qdrant::new(&config).err().unwrap();
    assert!(!format!("{error:?}").contains("planted-secret"), "{error:?}");
}

#[tokio::test]
async fn a_database_without_pgvector_says_what_it_needs() {
    let fixture = pgvector(2).await;
    let mut owner = fixture.database.as_ref().unwrap().connect().await;
    run(&mut owner, "DROP SCHEMA okt_vectors CASCADE; DROP EXTENSION vector").await;
    for (call, outcome) in all(&*fixture.store, &fixture.space).await {
        let error = outcome.expect_err(call);
        assert!(
            matches!(&error, Error::Operator(text) if text.contains("pgvector 0.8")),
            "{call}: {error:?}"
        );
    }
    // It is found out when it has come.
    Databases::migrate(&fixture.database.as_ref().unwrap().config(&[])).await.unwrap();
    fixture.store.prepare(&fixture.space, false).await.unwrap();
}
