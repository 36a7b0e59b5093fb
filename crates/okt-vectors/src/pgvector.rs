//! pgvector, in the database where the repository lives.
//!
//! A small repository is read through the key, which is exact. A large one has an index of its own, see [`index`]. Two
//! things keep tenants apart, and each has to hold alone: each statement names its repository, and row-level security.

mod index;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use okt_model::{Error, RepositoryId, Result};
use okt_store::{Databases, Tx, from_sqlx, repositories};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::store::{Near, Point, Space, Tenant, VectorStore};

pub use index::{Indexing, LARGE};

/// The longest vectors that it keeps.
const LONGEST: u32 = 16_000;

/// How many rows are removed at once.
const REMOVED: i64 = 5_000;

/// How many candidates are looked at in an index, at least and at most; and how many for each that is wanted.
const CANDIDATES: (u32, u32) = (200, 1_000);
const OVERSAMPLING: u32 = 2;

/// Cheap to clone.
#[derive(Clone)]
pub struct PgVector {
    databases: Databases,
    large: u32,
}

impl PgVector {
    pub fn new(databases: Databases) -> Self {
        Self::with_large(databases, LARGE)
    }

    /// As [`Self::new`], with another number of points from which on a repository is large.
    pub fn with_large(databases: Databases, large: u32) -> Self {
        Self { databases, large }
    }

    async fn prepare(&self, space: &Space, recreate: bool) -> Result<()> {
        if space.dimensions > LONGEST {
            return Err(Error::Operator(format!(
                "pgvector keeps vectors of at most {LONGEST} numbers; {} has {}",
                space.name, space.dimensions
            )));
        }
        for home in self.databases.homes() {
            while let Some(other) = self.declare(home, space).await? {
                if !recreate {
                    return Err(Error::Operator(format!(
                        "{} holds vectors of {other} numbers in the database {home}, but vectors of {} are wanted. Set \
                         providers.vector_store.allow_recreate to delete them and begin anew, or go over to another \
                         space with `okt reembed`",
                        space.name, space.dimensions,
                    )));
                }
                tracing::warn!(space = space.name, "other vectors are deleted, and their space is made anew");
                let old = Space { name: space.name.clone(), dimensions: other };
                self.drop_space(&old).await?;
            }
        }
        Ok(())
    }

    /// The databases for repositories whose server has no pgvector, or in which it is not set up yet.
    pub async fn missing(databases: &Databases) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for home in databases.homes() {
            let mut tx = databases.begin_behind(home, Uuid::nil().into()).await?;
            let there =
                sqlx::query_scalar!(r#"SELECT to_regclass('okt_vectors.points') IS NOT NULL AS "there!""#);
            let there = there.fetch_one(&mut *tx).await.map_err(from_sqlx)?;
            tx.commit().await?;
            if !there {
                missing.push(home.clone());
            }
        }
        Ok(missing)
    }

    /// Says that there is a space; `Some` when there is one already with other dimensions.
    async fn declare(&self, home: &str, space: &Space) -> Result<Option<u32>> {
        let mut tx = self.begin_for_nobody(home).await?;
        let dimensions = i32::try_from(space.dimensions).unwrap_or(i32::MAX);
        sqlx::query!(
            "INSERT INTO okt_vectors.spaces (name, dimensions) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            space.name,
            dimensions,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| from_pgvector(home, error))?;
        let found =
            sqlx::query_scalar!("SELECT dimensions FROM okt_vectors.spaces WHERE name = $1", space.name)
                .fetch_optional(&mut *tx)
                .await
                .map_err(from_sqlx)?;
        tx.commit().await?;
        let found = found.and_then(|found| u32::try_from(found).ok());
        Ok(found.filter(|found| *found != space.dimensions))
    }

    /// Spaces belong to no tenant.
    async fn begin_for_nobody(&self, home: &str) -> Result<Tx> {
        self.databases.begin_behind(home, Uuid::nil().into()).await
    }

    async fn upsert(&self, tenant: &Tenant, space: &Space, points: &[Point]) -> Result<()> {
        let dimensions = i32::try_from(space.dimensions).unwrap_or(i32::MAX);
        for batch in space.directions(points)?.chunks(space.batch()) {
            let ids: Vec<Uuid> = batch.iter().map(|point| point.id).collect();
            let numbers = batch.iter().map(|point| &*point.vector).collect::<Vec<_>>().concat();
            let mut tx = self.databases.begin(&tenant.database, tenant.repository).await?;
            let known = sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT FROM okt_vectors.spaces WHERE name = $1 AND dimensions = $2) AS "known!""#,
                space.name,
                dimensions,
            );
            let known = known.fetch_one(&mut *tx).await;
            if !known.map_err(|error| from_pgvector(&tenant.database, error))? {
                return Err(Error::Operator(format!(
                    "there is no space {} for vectors of {dimensions} numbers in the database {}; it is made when a \
                     process of okt starts",
                    space.name, tenant.database,
                )));
            }
            // One that is there already as it is makes no dead row.
            sqlx::query!(
                "INSERT INTO okt_vectors.points AS p (repository_id, space, id, embedding)
                 SELECT $1, $2, u.id, ($4::real[])[(u.n::int - 1) * $5::int + 1 : u.n::int * $5::int]::vector
                   FROM unnest($3::uuid[]) WITH ORDINALITY AS u (id, n)
                 ON CONFLICT (repository_id, space, id) DO UPDATE SET embedding = excluded.embedding
                  WHERE p.embedding <> excluded.embedding",
                tenant.repository.uuid(),
                key(space),
                &ids,
                &numbers,
                dimensions,
            )
            .execute(&mut *tx)
            .await
            .map_err(from_sqlx)?;
            tx.commit().await?;
        }
        Ok(())
    }

    async fn remove(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<()> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        for batch in ids.chunks(usize::try_from(REMOVED).unwrap_or(usize::MAX)) {
            let mut tx = self.databases.begin(&tenant.database, tenant.repository).await?;
            sqlx::query!(
                "DELETE FROM okt_vectors.points WHERE repository_id = $1 AND space = $2 AND id = ANY ($3)",
                tenant.repository.uuid(),
                key(space),
                batch,
            )
            .execute(&mut *tx)
            .await
            .map_err(|error| from_pgvector(&tenant.database, error))?;
            tx.commit().await?;
        }
        Ok(())
    }

    async fn nearest(
        &self,
        tenant: &Tenant,
        space: &Space,
        queries: &[Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> Result<Vec<Vec<Near>>> {
        let queries: Vec<_> = queries.iter().map(|query| space.direction(query)).collect::<Result<_>>()?;
        let mut all = vec![Vec::new(); queries.len()];
        if limit == 0 || queries.is_empty() {
            return Ok(all);
        }
        let database = &tenant.database;
        let mut tx = self.databases.begin_to_read(database, tenant.repository).await?;
        for (batch, out) in queries.chunks(space.batch()).zip(all.chunks_mut(space.batch())) {
            let indexed = index::choose(&mut tx, tenant, space, limit)
                .await
                .map_err(|error| from_pgvector(database, error))?;
            let rows: Vec<(i32, Uuid, f64)> =
                sqlx::query_as(AssertSqlSafe(nearest_statement(space, indexed)))
                    .bind(tenant.repository.uuid())
                    .bind(key(space))
                    .bind(batch.concat())
                    .bind(i32::try_from(space.dimensions).unwrap_or(i32::MAX))
                    .bind(i32::try_from(batch.len()).unwrap_or(i32::MAX))
                    .bind(i64::from(limit))
                    .bind(at_least)
                    .fetch_all(&mut *tx)
                    .await
                    .map_err(|error| from_pgvector(database, error))?;
            for (query, id, cosine) in rows {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "between -1 and 1; the rounding is meant"
                )]
                let near = Near { id, cosine: cosine as f32 };
                if let Some(out) = usize::try_from(query - 1).ok().and_then(|query| out.get_mut(query)) {
                    out.push(near);
                }
            }
        }
        tx.commit().await?;
        Ok(all)
    }

    async fn find(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<Vec<Point>> {
        let mut tx = self.databases.begin_to_read(&tenant.database, tenant.repository).await?;
        let mut all = Vec::new();
        for batch in ids.chunks(space.batch()) {
            let rows = sqlx::query!(
                r#"SELECT id, embedding::real[] AS "vector!" FROM okt_vectors.points
                    WHERE repository_id = $1 AND space = $2 AND id = ANY ($3)"#,
                tenant.repository.uuid(),
                key(space),
                batch,
            );
            let rows =
                rows.fetch_all(&mut *tx).await.map_err(|error| from_pgvector(&tenant.database, error))?;
            all.extend(rows.into_iter().map(|row| Point { id: row.id, vector: row.vector }));
        }
        tx.commit().await?;
        Ok(all)
    }

    async fn there(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<Vec<Uuid>> {
        let mut tx = self.databases.begin_to_read(&tenant.database, tenant.repository).await?;
        let found = sqlx::query_scalar!(
            "SELECT p.id FROM unnest($3::uuid[]) AS n (id)
               JOIN okt_vectors.points p ON p.repository_id = $1 AND p.space = $2 AND p.id = n.id",
            tenant.repository.uuid(),
            key(space),
            ids,
        );
        let found =
            found.fetch_all(&mut *tx).await.map_err(|error| from_pgvector(&tenant.database, error))?;
        tx.commit().await?;
        Ok(found)
    }

    async fn list(
        &self,
        tenant: &Tenant,
        space: &Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Uuid>> {
        let mut tx = self.databases.begin_to_read(&tenant.database, tenant.repository).await?;
        let ids = sqlx::query_scalar!(
            "SELECT id FROM okt_vectors.points
              WHERE repository_id = $1 AND space = $2
                AND id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
              ORDER BY id LIMIT $4",
            tenant.repository.uuid(),
            key(space),
            after,
            i64::from(limit),
        );
        let ids = ids.fetch_all(&mut *tx).await.map_err(|error| from_pgvector(&tenant.database, error))?;
        tx.commit().await?;
        Ok(ids)
    }

    async fn count(&self, tenant: &Tenant, space: &Space) -> Result<u64> {
        let mut tx = self.databases.begin_to_read(&tenant.database, tenant.repository).await?;
        let count = sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM okt_vectors.points WHERE repository_id = $1 AND space = $2"#,
            tenant.repository.uuid(),
            key(space),
        );
        let count =
            count.fetch_one(&mut *tx).await.map_err(|error| from_pgvector(&tenant.database, error))?;
        tx.commit().await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Past the door, which may be closed for ever.
    async fn empty(&self, database: &str, repository: RepositoryId, space: &Space) -> Result<()> {
        loop {
            let mut tx = self.databases.begin_behind(database, repository).await?;
            // In the order of the key, so that a batch does not wade through what those before it have left. A repository
            // is in one part, so the place of a row says which one it is.
            let removed = sqlx::query!(
                "DELETE FROM okt_vectors.points
                  WHERE repository_id = $1 AND space = $2
                    AND ctid = ANY (ARRAY(SELECT ctid FROM okt_vectors.points
                                           WHERE repository_id = $1 AND space = $2 ORDER BY id LIMIT $3))",
                repository.uuid(),
                key(space),
                REMOVED,
            )
            .execute(&mut *tx)
            .await
            .map_err(|error| from_pgvector(database, error))?;
            tx.commit().await?;
            if removed.rows_affected() == 0 {
                return Ok(());
            }
        }
    }

    async fn forget(&self, tenant: &Tenant, space: &Space) -> Result<()> {
        self.empty(&tenant.database, tenant.repository, space).await?;
        self.index_large(tenant, space).await.map(drop)
    }

    async fn drop_space(&self, space: &Space) -> Result<()> {
        const PAGE: i64 = 1_000;
        // First of all nobody may write there any more.
        for home in self.databases.homes() {
            let mut tx = self.begin_for_nobody(home).await?;
            sqlx::query!(
                "DELETE FROM okt_vectors.spaces WHERE name = $1 AND dimensions = $2",
                space.name,
                i32::try_from(space.dimensions).unwrap_or(i32::MAX),
            )
            .execute(&mut *tx)
            .await
            .map_err(|error| from_pgvector(home, error))?;
            tx.commit().await?;
        }
        // One tenant after the other, so that the policy needs no exception.
        let mut last = None;
        loop {
            let mut conn = self.databases.acquire_system().await?;
            let page = repositories::list_homes(&mut conn, last, PAGE).await?;
            conn.done();
            for (repository, database) in &page {
                if let Some(home) = self.databases.home(database) {
                    self.empty(home, *repository, space).await?;
                }
            }
            match page.last() {
                Some((repository, _)) => last = Some(*repository),
                None => break,
            }
        }
        self.drop_indexes(space).await
    }

    async fn ping(&self) -> Result<()> {
        Self::missing(&self.databases).await?.first().map_or(Ok(()), |home| Err(no_pgvector(home)))
    }
}

impl VectorStore for PgVector {
    fn prepare<'a>(&'a self, space: &'a Space, recreate: bool) -> BoxFuture<'a, Result<()>> {
        self.prepare(space, recreate).boxed()
    }

    fn upsert<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        points: &'a [Point],
    ) -> BoxFuture<'a, Result<()>> {
        self.upsert(tenant, space, points).boxed()
    }

    fn remove<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<()>> {
        self.remove(tenant, space, ids).boxed()
    }

    fn nearest<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        queries: &'a [Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> BoxFuture<'a, Result<Vec<Vec<Near>>>> {
        self.nearest(tenant, space, queries, limit, at_least).boxed()
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Point>>> {
        self.find(tenant, space, ids).boxed()
    }

    fn there<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Uuid>>> {
        self.there(tenant, space, ids).boxed()
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Uuid>>> {
        self.list(tenant, space, after, limit).boxed()
    }

    fn count<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<u64>> {
        self.count(tenant, space).boxed()
    }

    fn index<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        async move { self.index_large(tenant, space).await.map(drop) }.boxed()
    }

    fn forget<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        self.forget(tenant, space).boxed()
    }

    fn drop_space<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        self.drop_space(space).boxed()
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        self.ping().boxed()
    }
}

/// What a space is called in a row.
fn key(space: &Space) -> String {
    format!("{}/{}", space.name, space.dimensions)
}

/// The vectors to look for come as one array. They are cut out of it once, not for every row that they are compared with.
/// What an index finds is put in order by what the vectors really are.
fn nearest_statement(space: &Space, indexed: bool) -> String {
    let candidates = if indexed {
        let half = index::expression(space);
        format!("ORDER BY p.{half} <=> q.v::{} LIMIT $6 * {OVERSAMPLING}", index::half(space))
    } else {
        "ORDER BY p.embedding <=> q.v LIMIT $6".to_owned()
    };
    format!(
        "WITH q AS MATERIALIZED (
             SELECT n, ($3::real[])[(n - 1) * $4 + 1 : n * $4]::vector AS v FROM generate_series(1, $5) AS n)
         SELECT q.n, near.id, near.cosine
           FROM q CROSS JOIN LATERAL (
                SELECT c.id, 1 - (c.embedding <=> q.v) AS cosine
                  FROM (SELECT p.id, p.embedding FROM okt_vectors.points p
                         WHERE p.repository_id = $1 AND p.space = $2 {candidates}) AS c
                 ORDER BY c.embedding <=> q.v, c.id LIMIT $6) AS near
          WHERE near.cosine >= $7
          ORDER BY q.n, near.cosine DESC, near.id"
    )
}

/// A database without the tables needs pgvector, which is not for us to install.
fn from_pgvector(database: &str, error: sqlx::Error) -> Error {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    // No such schema, table, type or function.
    if code.is_some_and(|code| matches!(&*code, "3F000" | "42P01" | "42704" | "42883")) {
        return no_pgvector(database);
    }
    from_sqlx(error)
}

fn no_pgvector(database: &str) -> Error {
    Error::Operator(format!(
        "the database {database} keeps no vectors: its server needs pgvector 0.8 or later, switched on there by \
         `CREATE EXTENSION vector`, and then `okt migrate`"
    ))
}
