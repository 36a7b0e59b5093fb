//! Removing the points of a repository, and those of all of them.

use okt_model::RepositoryId;
use okt_pg::Result;
use okt_store::repositories;

use super::{PgVector, REMOVED, from_pgvector, key};
use crate::store::{Space, Tenant};

impl PgVector {
    /// Does not acquire the write fence, which may be closed for good.
    async fn empty(&self, database: &str, repository: RepositoryId, space: &Space) -> Result<()> {
        loop {
            let mut tx = self.databases.begin_unfenced(database, repository).await?;
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

    pub(super) async fn delete_tenant(&self, tenant: &Tenant, space: &Space) -> Result<()> {
        self.empty(&tenant.database, tenant.repository, space).await?;
        self.index_large(tenant, space).await.map(drop)
    }

    pub(super) async fn drop_space(&self, space: &Space) -> Result<()> {
        const PAGE: i64 = 1_000;
        // What lies in a database that is away stays there, and keeps nothing that lies elsewhere.
        let (mut shards, mut away) = (Vec::new(), None);
        // First of all nobody may write there any more.
        for shard in self.databases.shards() {
            match self.delete_space_rows(shard, space).await {
                Err(error) if error.retryable() => away = Some(error),
                done => shards.push(done.map(|()| shard.as_str())?),
            }
        }
        // One tenant after the other, so that the policy needs no exception.
        let mut last = None;
        loop {
            let mut conn = self.databases.acquire_system().await?;
            let page = repositories::list_shards(&mut conn, last, PAGE).await?;
            drop(conn);
            for (repository, database) in &page {
                let shard = self.databases.shard(database).filter(|shard| shards.contains(shard));
                let Some(shard) = shard else { continue };
                match self.empty(shard, *repository, space).await {
                    Err(error) if error.retryable() => {
                        shards.retain(|other| *other != shard);
                        away = Some(error);
                    }
                    done => done?,
                }
            }
            match page.last() {
                Some((repository, _)) => last = Some(*repository),
                None => break,
            }
        }
        for shard in shards {
            match self.drop_indexes(shard, space).await {
                Err(error) if error.retryable() => away = Some(error),
                done => done?,
            }
        }
        away.map_or(Ok(()), Err)
    }

    async fn delete_space_rows(&self, shard: &str, space: &Space) -> Result<()> {
        let mut tx = self.begin_without_tenant(shard).await?;
        sqlx::query!(
            "DELETE FROM okt_vectors.spaces WHERE name = $1 AND dimensions = $2",
            space.name,
            i32::try_from(space.dimensions).unwrap_or(i32::MAX),
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| from_pgvector(shard, error))?;
        tx.commit().await
    }
}
