//! What the stores cost: writing against the bare client and the bare statement, and a small repository among many
//! others against the same one alone. The arms take turns.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use okt_model::RepositoryId;
use okt_store::{Databases, Purpose};
use okt_vectors::{PgVector, Point, Qdrant, Space, Tenant, VectorStore};
use qdrant_client::qdrant::{PointStruct, UpsertPointsBuilder, Value};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::Cloud;
use crate::cluster::Cluster;
use crate::db::{config, run};
use crate::qdrant::QdrantServer;
use crate::soak::percentile;

const DIMENSIONS: u32 = 384;
/// Of points, as the stores send them.
const BATCH: usize = 250_000 / 384;
/// In the repository that is small, and in each of the others.
const SMALL: usize = 1_000;
/// In how many steps they are written, so that rows lie among those of others, as in a table that grew.
const STEPS: u32 = 20;

fn space() -> Space {
    Space { name: "okt_facts_1".to_owned(), dimensions: DIMENSIONS }
}

/// Ours against bare: of how many points a second, the median of all rounds.
pub async fn upsert_to_qdrant(points: usize, rounds: usize) -> Result<f64> {
    let server = QdrantServer::start();
    let ours = Qdrant::new(&server.config())?;
    ours.prepare(&space(), false).await?;
    let url = format!("http://{}:{}", server.config().host, server.config().port);
    let bare = qdrant_client::Qdrant::from_url(&url).skip_compatibility_check().build()?;
    let mut cloud = Cloud::new(1, DIMENSIONS, 100);
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let mut times = Vec::new();
        for is_bare in [true, false, false, true] {
            let (tenant, points) = (Tenant::new(RepositoryId::mint(), "default"), cloud.points(points));
            let started = Instant::now();
            if is_bare {
                for batch in points.chunks(BATCH) {
                    let batch: Vec<_> = batch.iter().map(|point| bare_point(&tenant, point)).collect();
                    bare.upsert_points(UpsertPointsBuilder::new("okt_facts_1", batch).wait(true)).await?;
                }
            } else {
                ours.upsert(&tenant, &space(), &points).await?;
            }
            times.push(started.elapsed());
        }
        ratios.extend(pairs(&times));
    }
    Ok(percentile(&mut ratios, 0.5))
}

fn bare_point(tenant: &Tenant, point: &Point) -> PointStruct {
    let payload = [
        ("repo".to_owned(), Value::from(tenant.repository().uuid().to_string())),
        ("id".to_owned(), Value::from(point.id.to_string())),
    ];
    PointStruct {
        id: Some(point.id.to_string().into()),
        vectors: Some(point.vector.clone().into()),
        payload: payload.into_iter().collect(),
    }
}

/// As [`upsert_to_qdrant`]; bare is one statement for each batch, on one connection, into a table of no tenants.
pub async fn upsert_to_pgvector(points: usize, rounds: usize) -> Result<f64> {
    let cluster = Cluster::start();
    let ours = store(&cluster.url()).await?;
    let mut bare = PgConnection::connect(&cluster.url()).await?;
    let table = "CREATE TABLE bare (repository_id uuid, space text, id uuid, embedding vector NOT NULL, \
                 PRIMARY KEY (repository_id, space, id))";
    run(&mut bare, table).await;
    let mut cloud = Cloud::new(2, DIMENSIONS, 100);
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let mut times = Vec::new();
        for is_bare in [true, false, false, true] {
            let (tenant, points) = (Tenant::new(RepositoryId::mint(), "default"), cloud.points(points));
            let started = Instant::now();
            if is_bare {
                for batch in points.chunks(BATCH) {
                    insert_bare(&mut bare, &tenant, batch).await?;
                }
            } else {
                ours.upsert(&tenant, &space(), &points).await?;
            }
            times.push(started.elapsed());
        }
        ratios.extend(pairs(&times));
    }
    Ok(percentile(&mut ratios, 0.5))
}

async fn insert_bare(conn: &mut PgConnection, tenant: &Tenant, batch: &[Point]) -> Result<()> {
    sqlx::query(
        "INSERT INTO bare SELECT $1, 'okt_facts_1', u.id,
                ($3::real[])[(u.n::int - 1) * 384 + 1 : u.n::int * 384]::vector
           FROM unnest($2::uuid[]) WITH ORDINALITY AS u (id, n)
         ON CONFLICT (repository_id, space, id) DO UPDATE SET embedding = excluded.embedding",
    )
    .bind(tenant.repository().uuid())
    .bind(batch.iter().map(|point| point.id).collect::<Vec<_>>())
    .bind(batch.iter().flat_map(|point| point.vector.iter().copied()).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// How many times as long a question takes in a repository of a thousand points among so many of others as in the same
/// one alone: medians.
pub async fn among_others(others: u32, rounds: usize) -> Result<f64> {
    // Memory for all of it, as whoever has so many gives the server: what is measured is the statements.
    let cluster = Cluster::start_with(&["shared_buffers=2GB", "max_wal_size=8GB", "autovacuum=off"]);
    let mut conn = PgConnection::connect(&cluster.url()).await?;
    run(&mut conn, "CREATE DATABASE alone").await;
    let many_url = cluster.url();
    let (server, _) = many_url.rsplit_once('/').context("an address with a database")?;
    let alone_url = format!("{server}/alone");
    let stores = [store(&alone_url).await?, store(&many_url).await?];
    let mut cloud = Cloud::new(3, DIMENSIONS, 100);
    let (tenant, points) = (Tenant::new(RepositoryId::mint(), "default"), cloud.points(SMALL));
    let queries = cloud.vectors(100);
    for (step, part) in (0..STEPS).zip(points.chunks(SMALL / 20)) {
        for store in &stores {
            store.upsert(&tenant, &space(), part).await?;
        }
        load(&mut conn, others / STEPS * step..others / STEPS * (step + 1)).await?;
    }
    for url in [&many_url, &alone_url] {
        run(&mut PgConnection::connect(url).await?, "VACUUM ANALYZE").await;
    }
    let mut ratios = Vec::new();
    for round in 0..=rounds {
        let mut times = Vec::new();
        for at in [0, 1, 1, 0] {
            times.push(median(&stores[at], &tenant, &queries).await?);
        }
        // The first one warms up.
        if round > 0 {
            ratios.extend([times[1] / times[0], times[2] / times[3]]);
        }
    }
    Ok(percentile(&mut ratios, 0.5))
}

async fn median(store: &PgVector, tenant: &Tenant, queries: &[Vec<f32>]) -> Result<f64> {
    let mut times = Vec::new();
    for query in queries {
        let started = Instant::now();
        let found = store.nearest(tenant, &space(), std::slice::from_ref(query), 10, -1.0).await?;
        times.push(started.elapsed().as_secs_f64());
        anyhow::ensure!(found[0].len() == 10, "ten are found");
    }
    Ok(percentile(&mut times, 0.5))
}

/// Points of others, a thousand for each of them, made by the database itself.
async fn load(conn: &mut PgConnection, numbers: std::ops::Range<u32>) -> Result<()> {
    let statement = format!(
        "INSERT INTO okt_vectors.points
         SELECT md5('repository' || n / {SMALL})::uuid, 'okt_facts_1/{DIMENSIONS}', md5('point' || n)::uuid,
                (SELECT array_agg((random() - 0.5)::real) FROM generate_series(1, {DIMENSIONS}) WHERE n >= 0)::vector
           FROM generate_series($1::bigint, $2::bigint - 1) AS n"
    );
    let insert = sqlx::query(AssertSqlSafe(statement));
    let insert = insert.bind(i64::from(numbers.start)).bind(i64::from(numbers.end));
    insert.execute(conn).await.context("points of others")?;
    Ok(())
}

async fn store(url: &str) -> Result<PgVector> {
    let config = config(&[("SVC__DATABASES__DEFAULT__URL", url)]);
    Databases::migrate(&config).await?;
    let store = PgVector::new(Databases::open(&config, &[Purpose::Worker]).await?.remove(0));
    store.prepare(&space(), false).await?;
    Ok(store)
}

/// Bare, ours, ours, bare: how much of bare ours reaches.
fn pairs(times: &[Duration]) -> [f64; 2] {
    let seconds = |at: usize| times[at].as_secs_f64();
    [seconds(0) / seconds(1), seconds(3) / seconds(2)]
}
