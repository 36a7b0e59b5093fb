//! pgvector, in the database where the repository lives.
//!
//! A small repository is read through the key, which is exact. A large one has an index of its own, see [`index`]. Two
//! things keep tenants apart, and each has to hold alone: each statement names its repository, and row-level security.

mod index;
mod removal;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use okt_model::Error;
use okt_pg::Result;
use okt_store::{Databases, Tx};
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

    async fn prepare(&self, space: &Space, recreate: bool) -> Result<bool> {
        if space.dimensions > LONGEST {
            return Err(Error::Operator(format!(
                "pgvector supports vectors of at most {LONGEST} dimensions; {} has {}",
                space.name, space.dimensions
            ))
            .into());
        }
        let (mut prepared, mut away) = (None, None);
        for database in self.databases.shards() {
            match self.prepare_in(database, space, recreate).await {
                // The others get their space all the same, and it gets its own when it is back.
                Err(error) if error.retryable() => {
                    let cause = &error as &dyn std::error::Error;
                    tracing::warn!(
                        database,
                        error = cause,
                        "failed to prepare a database for vectors; will retry when it answers"
                    );
                    away.get_or_insert(error);
                }
                recreated => prepared = Some(prepared.unwrap_or(false) | recreated?),
            }
        }
        match (prepared, away) {
            (None, Some(away)) => Err(away),
            (prepared, _) => Ok(prepared.unwrap_or(false)),
        }
    }

    async fn prepare_in(&self, database: &str, space: &Space, recreate: bool) -> Result<bool> {
        let mut recreated = false;
        while let Some(other) = self.declare(database, space).await? {
            if !recreate {
                return Err(Error::Operator(format!(
                    "{} holds vectors of {other} dimensions in the database {database}, but {} are configured. Set \
                     providers.vector_store.allow_recreate to delete them and re-embed everything, or switch to \
                     another space with `okt reembed`",
                    space.name, space.dimensions,
                ))
                .into());
            }
            tracing::warn!(
                space = space.name,
                "deleting vectors of other dimensions and recreating their space"
            );
            let old = Space { name: space.name.clone(), dimensions: other };
            self.drop_space(&old).await?;
            recreated = true;
        }
        Ok(recreated)
    }

    /// The databases for repositories whose server has no pgvector, or in which it is not set up yet. One that does not
    /// answer is not among them: nobody knows.
    pub async fn missing(databases: &Databases) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for database in databases.shards() {
            match Self::is_there(databases, database).await {
                Ok(true) => {}
                Ok(false) => missing.push(database.clone()),
                Err(error) if error.retryable() => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(database, error, "cannot find out whether pgvector is installed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }

    async fn is_there(databases: &Databases, database: &str) -> Result<bool> {
        let mut tx = databases.begin_unfenced(database, Uuid::nil().into()).await?;
        let there =
            sqlx::query_scalar!(r#"SELECT to_regclass('okt_vectors.points') IS NOT NULL AS "there!""#);
        let there = there.fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(there)
    }

    /// Says that there is a space; `Some` when there is one already with other dimensions.
    async fn declare(&self, database: &str, space: &Space) -> Result<Option<u32>> {
        let mut tx = self.begin_without_tenant(database).await?;
        let dimensions = i32::try_from(space.dimensions).unwrap_or(i32::MAX);
        sqlx::query!(
            "INSERT INTO okt_vectors.spaces (name, dimensions) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            space.name,
            dimensions,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| from_pgvector(database, error))?;
        let found =
            sqlx::query_scalar!("SELECT dimensions FROM okt_vectors.spaces WHERE name = $1", space.name)
                .fetch_optional(&mut *tx)
                .await?;
        tx.commit().await?;
        let found = found.and_then(|found| u32::try_from(found).ok());
        Ok(found.filter(|found| *found != space.dimensions))
    }

    /// Spaces belong to no tenant.
    async fn begin_without_tenant(&self, database: &str) -> Result<Tx> {
        self.databases.begin_unfenced(database, Uuid::nil().into()).await
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
                    "there is no space {} for vectors of {dimensions} dimensions in the database {}; it is created \
                     when `okt serve` starts",
                    space.name, tenant.database,
                ))
                .into());
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
            .await?;
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
        let queries: Vec<_> =
            queries.iter().map(|query| space.direction(query)).collect::<Result<_, Error>>()?;
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

    async fn existing(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<Vec<Uuid>> {
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

    /// A tenant's database that does not answer is reported by its own name; here only if none answers.
    async fn ping(&self) -> Result<()> {
        let (mut answered, mut away) = (false, Ok(()));
        for database in self.databases.shards() {
            match Self::is_there(&self.databases, database).await {
                Ok(true) => answered = true,
                Ok(false) => return Err(no_pgvector(database)),
                Err(error) if error.retryable() => away = Err(error),
                Err(error) => return Err(error),
            }
        }
        if answered { Ok(()) } else { away }
    }
}

impl VectorStore for PgVector {
    fn prepare<'a>(&'a self, space: &'a Space, recreate: bool) -> BoxFuture<'a, okt_model::Result<bool>> {
        self.prepare(space, recreate).err_into().boxed()
    }

    fn upsert<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        points: &'a [Point],
    ) -> BoxFuture<'a, okt_model::Result<()>> {
        self.upsert(tenant, space, points).err_into().boxed()
    }

    fn remove<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, okt_model::Result<()>> {
        self.remove(tenant, space, ids).err_into().boxed()
    }

    fn nearest<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        queries: &'a [Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> BoxFuture<'a, okt_model::Result<Vec<Vec<Near>>>> {
        self.nearest(tenant, space, queries, limit, at_least).err_into().boxed()
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, okt_model::Result<Vec<Point>>> {
        self.find(tenant, space, ids).err_into().boxed()
    }

    fn existing<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, okt_model::Result<Vec<Uuid>>> {
        self.existing(tenant, space, ids).err_into().boxed()
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> BoxFuture<'a, okt_model::Result<Vec<Uuid>>> {
        self.list(tenant, space, after, limit).err_into().boxed()
    }

    fn count<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, okt_model::Result<u64>> {
        self.count(tenant, space).err_into().boxed()
    }

    fn index<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, okt_model::Result<()>> {
        self.index_large(tenant, space).map_ok(drop).err_into().boxed()
    }

    fn delete_tenant<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
    ) -> BoxFuture<'a, okt_model::Result<()>> {
        self.delete_tenant(tenant, space).err_into().boxed()
    }

    fn drop_space<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, okt_model::Result<()>> {
        self.drop_space(space).err_into().boxed()
    }

    fn ping(&self) -> BoxFuture<'_, okt_model::Result<()>> {
        self.ping().err_into().boxed()
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
fn from_pgvector(database: &str, error: sqlx::Error) -> okt_pg::Error {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    // No such schema, table, type or function.
    if code.is_some_and(|code| matches!(&*code, "3F000" | "42P01" | "42704" | "42883")) {
        return no_pgvector(database);
    }
    error.into()
}

fn no_pgvector(database: &str) -> okt_pg::Error {
    Error::Operator(format!(
        "the database {database} cannot store vectors: install pgvector 0.8 or later, run \
         `CREATE EXTENSION vector` there, and then `okt migrate`"
    ))
    .into()
}
