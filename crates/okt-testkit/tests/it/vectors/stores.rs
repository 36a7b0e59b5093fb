//! Every kind of store under test, with nothing in it but an empty space.

use std::sync::Arc;

use okt_model::RepositoryId;
use okt_store::{Databases, Purpose};
use okt_testkit::db::{TestDatabase, config};
use okt_testkit::qdrant::QdrantServer;
use okt_vectors::{PgVector, Point, Qdrant, Space, Tenant, VectorStore};
use uuid::Uuid;

pub struct TestStore {
    pub name: &'static str,
    pub store: Arc<dyn VectorStore>,
    pub space: Space,
    pub database: Option<TestDatabase>,
    pub qdrant: Option<QdrantServer>,
}

/// One of each store.
pub async fn stores(dimensions: u32) -> [TestStore; 2] {
    [qdrant(dimensions).await, pgvector(dimensions).await]
}

/// A full Qdrant where one is named, else one of our own.
async fn qdrant(dimensions: u32) -> TestStore {
    let named = [("VECTOR_STORE_HOST", ""), ("VECTOR_STORE_PORT", ""), ("VECTOR_STORE_API_KEY", "")]
        .map(|(name, _)| (name, std::env::var(name).unwrap_or_default()));
    if named[0].1.is_empty() {
        return own_qdrant(dimensions).await;
    }
    let settings: Vec<_> =
        named.iter().filter(|(_, value)| !value.is_empty()).map(|(n, v)| (*n, &**v)).collect();
    let store = Qdrant::new(&config(&settings).providers.vector_store).unwrap();
    TestStore::new("a full Qdrant", Arc::new(store), dimensions, None, None).await
}

pub async fn own_qdrant(dimensions: u32) -> TestStore {
    let server = QdrantServer::start();
    let store = Qdrant::new(&server.config()).unwrap();
    TestStore::new("Qdrant", Arc::new(store), dimensions, None, Some(server)).await
}

pub async fn pgvector(dimensions: u32) -> TestStore {
    let database = TestDatabase::migrated().await;
    let store = PgVector::new(databases(&database).await);
    TestStore::new("pgvector", Arc::new(store), dimensions, Some(database), None).await
}

pub async fn databases(database: &TestDatabase) -> Databases {
    Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0)
}

impl TestStore {
    async fn new(
        name: &'static str,
        store: Arc<dyn VectorStore>,
        dimensions: u32,
        database: Option<TestDatabase>,
        qdrant: Option<QdrantServer>,
    ) -> Self {
        let space = Space { name: format!("okt_test_{}", RepositoryId::mint().uuid().simple()), dimensions };
        store.prepare(&space, false).await.unwrap();
        Self { name, store, space, database, qdrant }
    }

    /// Somebody with a repository of theirs.
    pub async fn tenant(&self) -> Tenant {
        self.tenant_of(RepositoryId::mint()).await
    }

    pub async fn tenant_of(&self, repository: RepositoryId) -> Tenant {
        if let Some(database) = &self.database {
            // Only the id matters, as of one that was deleted.
            sqlx::query(
                "INSERT INTO okt_system.repositories (id, name, slug, description, database, tier, preset, state)
                 VALUES ($1, '', '', '', 'default', 'shared', 'general', 'deleted')",
            )
            .bind(repository.uuid())
            .execute(&mut database.connect().await)
            .await
            .unwrap();
        }
        Tenant::new(repository, "default")
    }

    pub async fn upsert(&self, tenant: &Tenant, points: &[Point]) {
        self.store.upsert(tenant, &self.space, points).await.unwrap();
    }

    /// All ids of a tenant, sorted, fetched a few at a time.
    pub async fn ids(&self, tenant: &Tenant, page: u32) -> Vec<Uuid> {
        let mut all: Vec<Uuid> = Vec::new();
        loop {
            let last = all.last().copied();
            let found = self.store.list(tenant, &self.space, last, page).await.unwrap();
            assert!(found.len() <= usize::try_from(page).unwrap(), "{}", self.name);
            if found.is_empty() {
                all.sort();
                return all;
            }
            all.extend(found);
        }
    }

    /// Leaves nothing behind on a server that is not our own.
    pub async fn end(&self) {
        self.store.drop_space(&self.space).await.unwrap();
    }
}

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn point(number: u128, vector: &[f32]) -> Point {
    Point { id: id(number), vector: vector.to_vec() }
}
