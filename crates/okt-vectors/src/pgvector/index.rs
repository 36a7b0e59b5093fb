//! Indexes of large repositories, each of its own rows alone.
//!
//! One index over all tenants would be searched in vain for a small one, and one for each would be a million. So a
//! repository gets one when it has grown large, and loses it when it has shrunk. Whether there is one is read from the
//! catalogue each time. The login builds it, because the role of the service may change rows but not tables.

use okt_pg::Result;
use okt_store::Connection;
use sqlx::{AssertSqlSafe, Connection as _};
use uuid::Uuid;

use super::{CANDIDATES, OVERSAMPLING, PgVector, from_pgvector, key};
use crate::store::{Space, Tenant};

/// From so many points on a repository is large: reading 25,000 of 384 numbers each through the key takes about 50 ms.
pub const LARGE: u32 = 25_000;

/// The longest vectors that can be indexed; longer ones are always read through the key.
const LONGEST: u32 = 4_000;

/// Memory in which to build an index, unless the server is given more: one that does not fit takes many times as long.
const MEMORY: &str = "256MB";

/// What was done about the index of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// It is small, and has none.
    Unneeded,
    /// It is large, or was until lately, and has one.
    Kept,
    Built,
    Dropped,
    /// Somebody else is at it.
    Busy,
}

impl PgVector {
    /// Builds the index of a repository that has grown large, or drops that of one that has shrunk to half of it. Takes
    /// minutes for a million points; nobody else waits for it.
    pub async fn index_large(&self, tenant: &Tenant, space: &Space) -> Result<Indexing> {
        let name = name(tenant, space);
        let (part, count, found) = self.size(tenant, space, &name).await?;
        let wanted = match found {
            Some(true) => count > i64::from(self.large / 2),
            _ => count > i64::from(self.large),
        } && space.dimensions <= LONGEST;
        match (found, wanted) {
            (None, false) => return Ok(Indexing::Unneeded),
            (Some(true), true) => return Ok(Indexing::Kept),
            _ => {}
        }
        let mut owner = self.databases.connect_as_owner(&tenant.database).await?;
        // For as long as the connection lives.
        let alone =
            sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS "alone!""#, name);
        // Somebody may have been at it since we looked.
        if !alone.fetch_one(&mut owner).await? || state(&mut owner, &name).await? != found {
            return Ok(Indexing::Busy);
        }
        let settings = sqlx::query_scalar!(
            "SELECT concat(set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),
                           set_config('maintenance_work_mem', greatest(pg_size_bytes($1),
                               pg_size_bytes(current_setting('maintenance_work_mem'))) / 1024 || 'kB', false))",
            MEMORY,
        );
        settings.fetch_one(&mut owner).await?;
        // One that is there but can't be used was cut short.
        drop_index(&mut owner, &name).await?;
        let done = match part {
            Some(part) if wanted => {
                build(&mut owner, &name, &part, tenant, space).await?;
                Indexing::Built
            }
            _ => Indexing::Dropped,
        };
        owner.close().await?;
        tracing::info!(repository.id = %tenant.repository, space = space.name, count, ?done, "updated the vector index of a repository");
        Ok(done)
    }

    /// In which part a repository lies, how many points it has, counted until it is large, and what is there of its index.
    async fn size(
        &self,
        tenant: &Tenant,
        space: &Space,
        index: &str,
    ) -> Result<(Option<String>, i64, Option<bool>)> {
        let mut tx = self.databases.begin_unfenced(&tenant.database, tenant.repository).await?;
        let row = sqlx::query!(
            r#"SELECT max(part::text) AS part, count(*) AS "count!"
                 FROM (SELECT tableoid::regclass AS part FROM okt_vectors.points
                        WHERE repository_id = $1 AND space = $2 LIMIT $3) AS points"#,
            tenant.repository.uuid(),
            key(space),
            i64::from(self.large) + 1,
        );
        let row = row.fetch_one(&mut *tx).await.map_err(|error| from_pgvector(&tenant.database, error))?;
        let found = state(&mut tx, index).await?;
        tx.commit().await?;
        Ok((row.part, row.count, found))
    }

    /// Those of all repositories in a space.
    pub(super) async fn drop_indexes(&self, database: &str, space: &Space) -> Result<()> {
        let mut owner = self.databases.connect_as_owner(database).await?;
        let names = sqlx::query_scalar!(
            r#"SELECT relname::text AS "name!" FROM pg_class
                WHERE relnamespace = 'okt_vectors'::regnamespace AND relkind = 'i' AND relname LIKE $1"#,
            format!("hnsw\\_%\\_{}", tag(space)),
        );
        for name in names.fetch_all(&mut owner).await? {
            drop_index(&mut owner, &name).await?;
        }
        Ok(owner.close().await?)
    }
}

/// Tells the database how to look for the nearest points of a repository; says whether by an index. Plans are made anew
/// for each repository, because the condition of its index is met by no other.
pub(super) async fn choose(
    conn: &mut Connection,
    tenant: &Tenant,
    space: &Space,
    limit: u32,
) -> sqlx::Result<bool> {
    let candidates = limit.saturating_mul(OVERSAMPLING).clamp(CANDIDATES.0, CANDIDATES.1);
    // Beside the index there are only ways to read all of the repository and put it in order.
    let row = sqlx::query!(
        r#"WITH found AS MATERIALIZED (
               SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid) AS yes)
           SELECT yes AS "indexed!", concat(
                  set_config('plan_cache_mode', 'force_custom_plan', true),
                  set_config('enable_seqscan', 'off', true),
                  set_config('enable_sort', CASE WHEN yes THEN 'off' ELSE 'on' END, true),
                  set_config('enable_bitmapscan', CASE WHEN yes THEN 'off' ELSE 'on' END, true),
                  set_config('hnsw.iterative_scan', 'relaxed_order', true),
                  set_config('hnsw.ef_search', $2, true)) AS settings
             FROM found"#,
        format!("okt_vectors.{}", name(tenant, space)),
        candidates.to_string(),
    )
    .fetch_one(conn)
    .await?;
    Ok(row.indexed)
}

/// What is indexed: half as long as the vectors, and only to find candidates.
pub(super) fn expression(space: &Space) -> String {
    format!("embedding::{}", half(space))
}

pub(super) fn half(space: &Space) -> String {
    format!("halfvec({})", space.dimensions)
}

fn name(tenant: &Tenant, space: &Space) -> String {
    format!("hnsw_{}_{}", tenant.repository.uuid().simple(), tag(space))
}

/// Short, because names are.
fn tag(space: &Space) -> String {
    let mut tag = Uuid::new_v5(&Uuid::nil(), key(space).as_bytes()).simple().to_string();
    tag.truncate(16);
    tag
}

async fn build(conn: &mut Connection, name: &str, part: &str, tenant: &Tenant, space: &Space) -> Result<()> {
    // The name of a space may hold anything, so the server puts it between quotes.
    let statement = sqlx::query_scalar!(
        r#"SELECT format('CREATE INDEX CONCURRENTLY %I ON %s USING hnsw ((%s) halfvec_cosine_ops)
                           WHERE repository_id = %L AND space = %L',
                         $1::text, $2::text, $3::text, $4::uuid, $5::text) AS "statement!""#,
        name,
        part,
        expression(space),
        tenant.repository.uuid(),
        key(space),
    );
    let statement = statement.fetch_one(&mut *conn).await?;
    execute(conn, &statement).await
}

async fn drop_index(conn: &mut Connection, name: &str) -> Result<()> {
    execute(conn, &format!("DROP INDEX CONCURRENTLY IF EXISTS okt_vectors.{name}")).await
}

/// Whether there is such an index, and whether it can be used.
async fn state(conn: &mut Connection, name: &str) -> Result<Option<bool>> {
    let valid = sqlx::query_scalar!(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)",
        format!("okt_vectors.{name}"),
    );
    Ok(valid.fetch_optional(conn).await?)
}

/// What can't be prepared; nothing in it comes from anybody else.
async fn execute(conn: &mut Connection, statement: &str) -> Result<()> {
    sqlx::query(AssertSqlSafe(statement.to_owned())).execute(conn).await?;
    Ok(())
}
