//! Moving a repository to another named database.
//!
//! Reading goes on all the time; writing stops from the first row that is copied until every process has heard of the new
//! place. Whoever is cut off in the middle begins again: until the new place is written down, the old one is the truth.

use std::time::Duration;

use okt_auth::LOCATED_FOR;
use okt_model::{Error, RepositoryId, Result};
use okt_queue::jobs;
use okt_store::doors::{self, Closed};
use okt_store::{Listener, moves, repositories};

use crate::audit::{Actor, record_in};
use crate::{App, Origin};

/// What is left at the old place may still be read by whoever asked a moment ago.
pub const LEFT_BEHIND_FOR: Duration = Duration::from_mins(1);
const BATCH: i64 = 5_000;

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
        let home = databases.home(to).map(str::to_owned).ok_or_else(|| {
            Error::Operator(format!(
                "{to} is not a database that repositories may live in: {}",
                databases.homes().join(", ")
            ))
        })?;
        let mut conn = databases.acquire_system().await?;
        let located = repositories::locate(&mut conn, named).await?.ok_or(Error::NotFound("repository"))?;
        let id = located.id;
        // For as long as this process lives, or until the move is over.
        let Some(mut alone) = databases.take_alone(id).await? else {
            return Err(Error::Conflict("somebody else is moving or cleaning up this repository right now"));
        };
        let from = repositories::mark_moving(&mut conn, id, to).await?.ok_or(Error::Conflict(
            "a move to another database was cut off; finish it, or give it up by moving the repository to where it is",
        ))?;
        conn.done();
        let mut rows = Vec::new();
        if databases.home(&from) != Some(&*home) {
            match self.copy_repository(id, &from, to, &mut alone).await {
                Ok(copied) => rows = copied,
                Err(error) => {
                    // Nothing has happened yet but copies.
                    if let Err(unsettled) = self.settle_move(id, &from).await {
                        let error = &unsettled as &dyn std::error::Error;
                        tracing::error!(repository.id = %id, error, "a repository can't be opened again");
                    }
                    return Err(error);
                }
            }
        }
        if from != to {
            alone.ping().await?;
            let mut tx = databases.begin_system().await?;
            if !repositories::mark_moved(&mut tx, id, to).await? {
                return Err(Error::Conflict("the repository was deleted meanwhile"));
            }
            let object = format!("from {from} to {to}");
            record_in(&mut tx, origin, Actor::SERVICE, "repository.moved", &object, Some(id)).await?;
            tx.commit().await?;
        }
        self.settle_move(id, to).await?;
        Ok(Moved { from, rows })
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
            doors::close(databases, place, id, &Closed::Moving).await?;
        }
        let mut rows = Vec::new();
        for table in moves::TABLES {
            // Whoever lost the lock may not be the only one any more.
            alone.ping().await?;
            // What an earlier try has left.
            while moves::clear(databases, id, table, to, BATCH).await? > 0 {}
            let count = moves::copy(databases, id, table, from, to).await?;
            tracing::info!(repository.id = %id, table = table.name, count, "rows of a repository were copied");
            rows.push((table.name, count));
            // Whoever carries notes to the queue may mark one while it is copied.
            if table.name == "outbox" {
                continue;
            }
            let (old, new) = (
                moves::digest(databases, id, table, from).await?,
                moves::digest(databases, id, table, to).await?,
            );
            if old != new {
                return Err(Error::Operator(format!(
                    "{} is not the same at both ends: {} and {} rows. Nothing was moved; is the repository \
                     being written to by a program that is older than this one?",
                    table.name, old.0, new.0
                )));
            }
        }
        Ok(rows)
    }

    /// Opens the door where the repository lives, leaves the address at the others, and has what lies there removed. A place
    /// that does not answer must not keep it closed: whoever cleans up later leaves the address there.
    async fn settle_move(&self, id: RepositoryId, home: &str) -> Result<()> {
        let databases = self.databases();
        let here = databases.home(home).map(str::to_owned);
        for place in databases.homes() {
            if Some(place) != here.as_ref()
                && let Err(error) = doors::forward(databases, place, id, home).await
            {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(database = place, error, "the new address of a repository can't be left yet");
            }
        }
        if let Err(error) = jobs::move_notes(databases, id, here.as_deref().unwrap_or(home)).await {
            // They are led on at the old door.
            let error = &error as &dyn std::error::Error;
            tracing::warn!(repository.id = %id, error, "jobs of a repository have not heard of its move");
        }
        // Until nobody remembers the old place: else somebody could read there what has changed here.
        tokio::time::sleep(LOCATED_FOR * 2).await;
        doors::open(databases, home, id).await?;
        let mut conn = databases.acquire_system().await?;
        repositories::mark_settled(&mut conn, id).await?;
        conn.done();
        self.auth().forget_located(id);
        self.ask_to_clean_up(id, LEFT_BEHIND_FOR).await;
        Ok(())
    }
}
