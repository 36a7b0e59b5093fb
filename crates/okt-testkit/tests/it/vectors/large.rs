//! A repository that has grown large has an index of its own, and its neighbours have none of it.

use std::time::Duration;

use okt_model::RepositoryId;
use okt_testkit::vectors::{Cloud, cosine};
use okt_vectors::{Indexing, PgVector, Point, Tenant, VectorStore};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::vectors::stores::{TestStore, databases, pgvector};

const DIMENSIONS: u32 = 64;
const LARGE: u32 = 2_000;
const POINTS: usize = 5_000;
const WANTED: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_repository_gets_an_index_and_loses_it_when_it_shrinks() {
    let fixture = pgvector(DIMENSIONS).await;
    let database = fixture.database.as_ref().unwrap();
    let store = PgVector::with_large(databases(database).await, LARGE);
    let mut owner = database.connect().await;
    let (large, small) = neighbours(&fixture, &mut owner).await;
    let mut cloud = Cloud::new(8, DIMENSIONS, 50);
    let points = cloud.points(POINTS);
    let few = cloud.points(usize::try_from(LARGE).unwrap() - 1);
    store.upsert(&large, &fixture.space, &points).await.unwrap();
    store.upsert(&small, &fixture.space, &few).await.unwrap();
    let queries = cloud.vectors(100);

    let exact = recall(&store, &fixture, &large, &points, &queries).await;
    assert!(exact > 0.999, "{exact}: read through the key it is exact");
    assert_eq!(store.index_large(&small, &fixture.space).await.unwrap(), Indexing::Unneeded);
    assert_eq!(store.index_large(&large, &fixture.space).await.unwrap(), Indexing::Built);
    assert_eq!(store.index_large(&large, &fixture.space).await.unwrap(), Indexing::Kept);
    assert_eq!(store.index_large(&small, &fixture.space).await.unwrap(), Indexing::Unneeded);
    let indexes = indexes(&mut owner).await;
    assert_eq!(indexes.len(), 1, "{indexes:?}");
    assert!(indexes[0].contains(&large.repository().uuid().simple().to_string()), "{indexes:?}");

    // It is used for the one and not for the other, which lies in the same part.
    let before = scans(&mut owner).await;
    let found = recall(&store, &fixture, &small, &few, &queries).await;
    assert!(found > 0.999, "{found}: the neighbour is still read through the key");
    settle(&store, &fixture, &small).await;
    assert_eq!(scans(&mut owner).await, before, "the neighbour has nothing to do with the index");
    let found = recall(&store, &fixture, &large, &points, &queries).await;
    assert!(found >= 0.95, "recall of {found}");
    settle(&store, &fixture, &large).await;
    assert!(scans(&mut owner).await >= before + 100, "the index is used");
    println!("recall at {WANTED}: {found}");

    // Points come and go; the index follows.
    let fresh = cloud.points(20);
    store.upsert(&large, &fixture.space, &fresh).await.unwrap();
    for point in &fresh {
        let near = store
            .nearest(&large, &fixture.space, std::slice::from_ref(&point.vector), 1, 0.99)
            .await
            .unwrap();
        assert_eq!(near[0][0].id, point.id);
    }
    // As many as before by half: it stays, so that one who goes to and fro does not build it again and again.
    let ids: Vec<Uuid> = points.iter().chain(&fresh).map(|point| point.id).collect();
    store.remove(&large, &fixture.space, &ids[1_500..]).await.unwrap();
    assert_eq!(store.index_large(&large, &fixture.space).await.unwrap(), Indexing::Kept);
    store.remove(&large, &fixture.space, &ids[900..1_500]).await.unwrap();
    assert_eq!(store.index_large(&large, &fixture.space).await.unwrap(), Indexing::Dropped);
    assert!(self::indexes(&mut owner).await.is_empty());
    assert_eq!(store.count(&large, &fixture.space).await.unwrap(), 900);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_goes_with_its_repository_or_its_space_and_one_that_was_cut_short_is_built_anew() {
    let fixture = pgvector(DIMENSIONS).await;
    let database = fixture.database.as_ref().unwrap();
    let store = PgVector::with_large(databases(database).await, 100);
    let mut owner = database.connect().await;
    let tenant = fixture.tenant().await;
    let points = Cloud::new(9, DIMENSIONS, 5).points(300);
    store.upsert(&tenant, &fixture.space, &points).await.unwrap();
    assert_eq!(store.index_large(&tenant, &fixture.space).await.unwrap(), Indexing::Built);
    let index = indexes(&mut owner).await.remove(0);
    sqlx::query("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass($1)")
        .bind(format!("okt_vectors.{index}"))
        .execute(&mut owner)
        .await
        .unwrap();
    let near = store
        .nearest(&tenant, &fixture.space, std::slice::from_ref(&points[0].vector), 1, 0.9)
        .await
        .unwrap();
    assert_eq!(near[0][0].id, points[0].id, "it is read through the key");
    assert_eq!(store.index_large(&tenant, &fixture.space).await.unwrap(), Indexing::Built);

    // Only one builds at a time.
    let (one, two) =
        tokio::join!(store.index_large(&tenant, &fixture.space), store.index_large(&tenant, &fixture.space));
    assert_eq!((one.unwrap(), two.unwrap()), (Indexing::Kept, Indexing::Kept));

    store.delete_tenant(&tenant, &fixture.space).await.unwrap();
    assert!(indexes(&mut owner).await.is_empty(), "it went with the repository");
    store.upsert(&tenant, &fixture.space, &points).await.unwrap();
    assert_eq!(store.index_large(&tenant, &fixture.space).await.unwrap(), Indexing::Built);
    store.drop_space(&fixture.space).await.unwrap();
    assert!(indexes(&mut owner).await.is_empty(), "it went with the space");
}

/// Two tenants in the same part.
async fn neighbours(fixture: &TestStore, conn: &mut PgConnection) -> (Tenant, Tenant) {
    let first = RepositoryId::mint();
    let part = part(conn, first).await;
    loop {
        let second = RepositoryId::mint();
        if self::part(conn, second).await == part {
            return (fixture.tenant_of(first).await, fixture.tenant_of(second).await);
        }
    }
}

async fn part(conn: &mut PgConnection, repository: RepositoryId) -> i32 {
    sqlx::query_scalar(
        "SELECT n FROM generate_series(0, 63) AS n
          WHERE satisfies_hash_partition('okt_vectors.points'::regclass, 64, n, $1::uuid)",
    )
    .bind(repository.uuid())
    .fetch_one(conn)
    .await
    .unwrap()
}

/// Which share of the truly nearest was found, with every cosine as it should be.
async fn recall(
    store: &PgVector,
    fixture: &TestStore,
    tenant: &Tenant,
    points: &[Point],
    queries: &[Vec<f32>],
) -> f64 {
    let found = store.nearest(tenant, &fixture.space, queries, WANTED, -1.0).await.unwrap();
    let mut hits = 0_u32;
    for (query, found) in queries.iter().zip(&found) {
        let mut exact: Vec<_> = points.iter().map(|point| (cosine(query, &point.vector), point.id)).collect();
        exact.sort_by(|one, other| other.0.total_cmp(&one.0));
        exact.truncate(usize::try_from(WANTED).unwrap());
        assert_eq!(found.len(), exact.len());
        assert!(found.is_sorted_by(|one, other| one.cosine >= other.cosine));
        for near in found {
            let point = points.iter().find(|point| point.id == near.id).unwrap();
            let cosine = cosine(query, &point.vector);
            assert!((f64::from(near.cosine) - cosine).abs() < 1e-5, "{near:?}, not {cosine}");
            hits += u32::from(exact.iter().any(|(_, id)| *id == near.id));
        }
    }
    f64::from(hits) / (f64::from(WANTED) * f64::from(u32::try_from(queries.len()).unwrap()))
}

async fn indexes(conn: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
          WHERE relnamespace = 'okt_vectors'::regnamespace AND relkind = 'i' AND relname LIKE 'hnsw%' ORDER BY 1",
    )
    .fetch_all(conn)
    .await
    .unwrap()
}

/// How often the indexes were looked into.
async fn scans(conn: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes WHERE indexrelname LIKE 'hnsw%'",
    )
    .fetch_one(conn)
    .await
    .unwrap()
}

/// A connection tells once a second how often it used what.
async fn settle(store: &PgVector, fixture: &TestStore, tenant: &Tenant) {
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    store.count(tenant, &fixture.space).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
}
