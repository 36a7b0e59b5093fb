//! Moving a repository to another named database.
//!
//! Reading goes on all the time; writing stops from the first row that is copied until every process has heard of the new
//! place. Until the new place is written down, the old one is the truth. Whoever moves a repository holds a lock for as long as
//! they live: where the lock is free and the move not over, any process opens the repository again where it is.

use std::time::Duration;

use okt_auth::LOCATED_FOR;
use okt_model::{Error, RepositoryId, Result};
use okt_queue::jobs;
use okt_store::write_fence::{self, Closed};
use okt_store::{Listener, moves, repositories};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// What is left at the old place may still be read by whoever asked a moment ago.
pub const LEFT_BEHIND_FOR: Duration = Duration::from_mins(1);
const BATCH: i64 = 5_000;
/// How many moves are looked at in one go.
const MOVING: i64 = 100;

const LOST: &str =
    "the move lost its lock on the repository, which stays in its old database; run the move again";

/// What a move came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    /// Rows by table.
    pub rows: Vec<(&'static str, u64)>,
}

impl App {
    /// Moves a repository, named by its id or its slug. To where it lives already: gives up a move that was cut off.
    pub async fn move_repository(&self, origin: &Origin, named: &str, to: &str) -> Result<Moved> {
        let databases = self.databases();
        let shard = databases.shard(to).map(str::to_owned).ok_or_else(|| {
            Error::Operator(format!(
                "{to} is not a database for repositories; those are: {}",
                databases.shards().join(", ")
            ))
        })?;
        let mut conn = databases.acquire_system().await?;
        let located = repositories::locate(&mut conn, named).await?.ok_or(Error::NotFound("repository"))?;
        let id = located.id;
        // For as long as this process lives, or until the move is over.
        let Some(mut alone) = databases.take_alone(id).await? else {
            return Err(Error::Conflict("another process is moving or cleaning up this repository"));
        };
        let from = repositories::mark_moving(&mut conn, id, to).await?.ok_or(Error::Conflict(
            "a move to another database was interrupted; finish it, or abort it by moving the repository to its current database",
        ))?;
        drop(conn);
        let mut rows = Vec::new();
        if databases.shard(&from) != Some(&*shard) {
            match self.copy_repository(id, &from, to, &mut alone).await {
                Ok(copied) => rows = copied,
                Err(error) => {
                    // Nothing has happened yet but copies.
                    self.abandon_move(id, &from, &mut alone).await;
                    return Err(error);
                }
            }
        }
        if from != to {
            alone.ping().await?;
            let mut tx = databases.begin_system().await?;
            if !repositories::mark_moved(&mut tx, id, to).await? {
                let lives = repositories::find(&mut tx, id).await?.is_some();
                return Err(Error::Conflict(if lives {
                    LOST
                } else {
                    "the repository was deleted during the move"
                }));
            }
            let object = format!("from {from} to {to}");
            record_in(&mut tx, origin, Actor::SERVICE, "repository.moved", &object, Some(id)).await?;
            tx.commit().await?;
        }
        self.settle_move(id, to).await?;
        Ok(Moved { from, rows })
    }

    /// Opens a repository again that could not be moved. Without the lock that is for somebody else to do, who may have done it
    /// before the last write fence was closed here, and is told to do it again.
    async fn abandon_move(&self, id: RepositoryId, from: &str, alone: &mut Listener) {
        let settled = async {
            if alone.ping().await.is_ok() {
                return self.settle_move(id, from).await;
            }
            let mut conn = self.databases().acquire_system().await?;
            repositories::mark_unsettled(&mut conn, id).await?;
            drop(conn);
            Ok(())
        };
        if let Err(error) = settled.await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                repository.id = %id, error,
                "failed to reopen a repository for writes; move it to its current database once the system database answers"
            );
        }
    }

    /// Opens repositories again, where they live, whose mover died.
    pub(crate) async fn reopen_abandoned(&self) -> Result<()> {
        let databases = self.databases();
        let mut conn = databases.acquire_system().await?;
        let moving = repositories::list_moving(&mut conn, MOVING).await?;
        drop(conn);
        for id in moving {
            if let Err(error) = self.reopen(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(repository.id = %id, error, "failed to reopen a repository for writes; will retry");
            }
        }
        Ok(())
    }

    async fn reopen(&self, id: RepositoryId) -> Result<()> {
        let databases = self.databases();
        // Its mover lives, or somebody else is opening it.
        let Some(alone) = databases.take_alone(id).await? else { return Ok(()) };
        let mut conn = databases.acquire_system().await?;
        // From here on a mover that lost its lock but not its life can't end its move any more.
        let shard = repositories::give_up_moving(&mut conn, id).await?;
        drop(conn);
        if let Some(shard) = shard {
            tracing::warn!(repository.id = %id, database = shard, "a move was interrupted; reopening the repository in its current database");
            self.settle_move(id, &shard).await?;
        }
        drop(alone);
        Ok(())
    }

    /// Copies everything and compares it. Nobody writes at either end from here on.
    async fn copy_repository(
        &self,
        id: RepositoryId,
        from: &str,
        to: &str,
        alone: &mut Listener,
    ) -> Result<Vec<(&'static str, u64)>> {
        let databases = self.databases();
        for place in [to, from] {
            // Whoever lost the lock may not be the only one any more, and would close what was opened again.
            alone.ping().await?;
            write_fence::close(databases, place, id, &Closed::Moving).await?;
        }
        let mut rows = Vec::new();
        for table in moves::TABLES {
            alone.ping().await?;
            // What an earlier try has left.
            while moves::clear(databases, id, table, to, BATCH).await? > 0 {}
            let count = moves::copy(databases, id, table, from, to).await?;
            tracing::info!(repository.id = %id, table = table.name, count, "copied rows of a repository");
            rows.push((table.name, count));
            // A relay may mark an outbox entry while it is copied.
            if table.name == "outbox" {
                continue;
            }
            let (old, new) = (
                moves::digest(databases, id, table, from).await?,
                moves::digest(databases, id, table, to).await?,
            );
            if old != new {
                return Err(Error::Operator(format!(
                    "table {} differs after the copy: {} rows in the old database, {} in the new one. Nothing was \
                     moved; is an older version of okt writing to the repository?",
                    table.name, old.0, new.0
                )));
            }
        }
        Ok(rows)
    }

    /// Opens the write fence where the repository lives, leaves the address at the others, and has what lies there removed. A place
    /// that does not answer must not keep it closed: whoever cleans up later leaves the address there.
    async fn settle_move(&self, id: RepositoryId, shard: &str) -> Result<()> {
        let databases = self.databases();
        let here = databases.shard(shard).map(str::to_owned);
        for place in databases.shards() {
            if Some(place) != here.as_ref()
                && let Err(error) = write_fence::forward(databases, place, id, shard).await
            {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    database = place,
                    error,
                    "failed to record the new database of a repository in its old one; will retry"
                );
            }
        }
        if let Err(error) = jobs::set_database(databases, id, here.as_deref().unwrap_or(shard)).await {
            // The old write fence refuses them and names the new database.
            let error = &error as &dyn std::error::Error;
            tracing::warn!(repository.id = %id, error, "failed to update the database of a repository's jobs after its move");
        }
        // Until nobody remembers the old place: else somebody could read there what has changed here.
        tokio::time::sleep(LOCATED_FOR * 2).await;
        write_fence::open(databases, shard, id).await?;
        let mut conn = databases.acquire_system().await?;
        repositories::mark_settled(&mut conn, id).await?;
        drop(conn);
        self.auth().forget_located(id);
        self.ask_to_clean_up(id, LEFT_BEHIND_FOR).await;
        Ok(())
    }
}
