//! What one tenant can get to see of another: nothing, whichever of the guards fails.

use std::collections::BTreeSet;

use okt_store::Databases;
use okt_testkit::db::run;
use okt_testkit::vectors::Cloud;
use okt_vectors::{Point, Tenant};
use serde_json::json;
use uuid::Uuid;

use crate::vectors::stores::{TestStore, databases, own_qdrant, pgvector, stores};

const QUERIES: usize = 10_000;
const BATCH: usize = 500;
const DIMENSIONS: u32 = 16;

struct Planted {
    mine: Tenant,
    theirs: Tenant,
    my_ids: BTreeSet<Uuid>,
    their_points: Vec<Point>,
}

/// For every question that I will ask, the other has exactly that vector, and I have none as near.
async fn plant(fixture: &TestStore) -> Planted {
    let (mine, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let mut cloud = Cloud::new(6, DIMENSIONS, 20);
    let (my_points, their_points) = (cloud.points(300), cloud.points(QUERIES / 10));
    fixture.upsert(&mine, &my_points).await;
    fixture.upsert(&theirs, &their_points).await;
    Planted { mine, theirs, my_ids: my_points.iter().map(|point| point.id).collect(), their_points }
}

/// Asks for what the other has, in every way there is; says how much was found at all.
async fn ask(fixture: &TestStore, planted: &Planted) -> usize {
    let (store, space) = (&fixture.store, &fixture.space);
    let mut found = 0;
    let queries: Vec<_> = planted.their_points.iter().map(|point| point.vector.clone()).collect();
    for turn in 0..QUERIES / BATCH {
        let from = turn * BATCH % queries.len();
        let nearest =
            store.nearest(&planted.mine, space, &queries[from..from + BATCH], 5, -1.0).await.unwrap();
        assert_eq!(nearest.len(), BATCH);
        for near in nearest.iter().flatten() {
            assert!(planted.my_ids.contains(&near.id), "{}: {near:?} is another tenant's", fixture.name);
            found += 1;
        }
    }
    let ids: Vec<_> = planted.their_points.iter().map(|point| point.id).collect();
    assert_eq!(store.find(&planted.mine, space, &ids).await.unwrap(), [], "{}", fixture.name);
    let mut listed = store.list(&planted.mine, space, None, 2_000).await.unwrap();
    listed.extend(store.list(&planted.mine, space, Some(ids[0]), 2_000).await.unwrap());
    assert!(listed.iter().all(|id| planted.my_ids.contains(id)), "{}", fixture.name);
    found
}

#[tokio::test]
async fn ten_thousand_questions_find_nothing_of_another_tenant() {
    for fixture in stores(DIMENSIONS).await {
        let planted = plant(&fixture).await;
        assert_eq!(ask(&fixture, &planted).await, 5 * QUERIES, "{}: everything of one's own", fixture.name);
        // What is theirs can't be removed either.
        let ids: Vec<_> = planted.their_points.iter().map(|point| point.id).collect();
        fixture.store.remove(&planted.mine, &fixture.space, &ids).await.unwrap();
        fixture.store.delete_tenant(&planted.mine, &fixture.space).await.unwrap();
        let left = fixture.store.count(&planted.theirs, &fixture.space).await.unwrap();
        assert_eq!(usize::try_from(left).unwrap(), ids.len(), "{}", fixture.name);
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_filter_leaks_nothing() {
    let fixture = own_qdrant(DIMENSIONS).await;
    let planted = plant(&fixture).await;
    let server = fixture.qdrant.as_ref().unwrap();
    server.misbehave(&json!({"ignore_filters": true}));
    let found = ask(&fixture, &planted).await;
    assert!(found < QUERIES, "it does ignore them: {found} of one's own were found");
}

/// A superuser past all policies: only the statements' own conditions are in the way.
#[tokio::test]
async fn without_row_level_security_the_statements_leak_nothing() {
    let fixture = pgvector(DIMENSIONS).await;
    let planted = plant(&fixture).await;
    let mut owner = fixture.database.as_ref().unwrap().connect().await;
    run(&mut owner, "ALTER TABLE okt_vectors.points DISABLE ROW LEVEL SECURITY").await;
    for part in 0..64 {
        run(&mut owner, &format!("ALTER TABLE okt_vectors.points_{part} DISABLE ROW LEVEL SECURITY")).await;
    }
    assert_eq!(ask(&fixture, &planted).await, 5 * QUERIES);
}

/// The statement names the other's repository, or none, or the part in which it lies: only row-level security is in the
/// way.
#[tokio::test]
async fn statements_that_name_the_other_one_find_nothing() {
    let fixture = pgvector(DIMENSIONS).await;
    let planted = plant(&fixture).await;
    let (mine, theirs) = (repository(&planted.mine), repository(&planted.theirs));
    let databases = databases(fixture.database.as_ref().unwrap()).await;
    let mut owner = fixture.database.as_ref().unwrap().connect().await;
    let part: String = sqlx::query_scalar(
        "SELECT tableoid::regclass::text FROM okt_vectors.points WHERE repository_id = $1 LIMIT 1",
    )
    .bind(theirs)
    .fetch_one(&mut owner)
    .await
    .unwrap();
    let mut seen = 0;
    let mut tx = databases.begin("default", mine.into()).await.unwrap();
    for table in ["okt_vectors.points", &part] {
        let nearest = format!(
            "SELECT repository_id FROM {table} WHERE repository_id = $1 ORDER BY embedding <=> $2::real[]::vector LIMIT 5"
        );
        for point in &planted.their_points {
            let found: Vec<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(nearest.clone()))
                .bind(theirs)
                .bind(&point.vector)
                .fetch_all(&mut *tx)
                .await
                .unwrap();
            assert!(found.is_empty(), "{table}");
        }
        for change in [
            "SELECT count(*) FROM {} WHERE repository_id <> $1",
            "WITH d AS (DELETE FROM {} WHERE repository_id <> $1 RETURNING 1) SELECT count(*) FROM d",
            "WITH d AS (UPDATE {} SET space = 'x' WHERE repository_id <> $1 RETURNING 1) SELECT count(*) FROM d",
        ] {
            let change = change.replace("{}", table);
            let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(change.clone()))
                .bind(mine)
                .fetch_one(&mut *tx)
                .await
                .unwrap();
            assert_eq!(rows, 0, "{change}");
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
    let planted_there = sqlx::query("INSERT INTO okt_vectors.points VALUES ($1, 'x', $1, '[1,2]'::vector)")
        .bind(theirs)
        .execute(&mut *tx)
        .await
        .unwrap_err();
    assert!(planted_there.to_string().contains("row-level security"), "{planted_there}");
    drop(tx);
    nobody(&databases).await;
}

/// No tenant at all.
async fn nobody(databases: &Databases) {
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_vectors.points")
        .fetch_one(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap();
    assert_eq!(rows, 0);
}

fn repository(tenant: &Tenant) -> Uuid {
    tenant.repository().uuid()
}
