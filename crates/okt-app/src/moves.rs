//! Moving a repository to another named database.
//!
//! Reading goes on all the time; writing stops from the first row that is copied until every process has heard of the new
//! place. Whoever is cut off in the middle begins again: until the new place is written down, the old one is the truth.

use std::time::Duration;

use okt_auth::LOCATED_FOR;
use okt_model::{Error, RepositoryId, Result};
use okt_queue::jobs;
use okt_store::doors::{self, Closed};
use okt_store::{moves, repositories};

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
        let Some(_alone) = databases.take_alone(repository_key(id)).await? else {
            return Err(Error::Conflict("somebody else is moving this repository right now"));
        };
        let from = repositories::mark_moving(&mut conn, id, to).await?.ok_or(Error::Conflict(
            "a move to another database was cut off; finish it, or give it up by moving the repository to where it is",
        ))?;
        conn.done();
        let mut rows = Vec::new();
        if databases.home(&from) != Some(&*home) {
            match self.copy_repository(id, &from, to).await {
                Ok(copied) => rows = copied,
                Err(error) => {
                    // Nothing has happened yet but copies.
                    self.settle_move(id, &from).await?;
                    return Err(error);
                }
            }
        }
        if from != to {
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
    ) -> Result<Vec<(&'static str, u64)>> {
        let databases = self.databases();
        for place in [to, from] {
            doors::close(databases, place, id, &Closed::Moving).await?;
        }
        let mut rows = Vec::new();
        for table in moves::TABLES {
            // What an earlier try has left.
            while moves::remove(databases, id, table, to, BATCH).await? > 0 {}
            let count = moves::copy(databases, id, table, from, to).await?;
            tracing::info!(repository.id = %id, table, count, "rows of a repository were copied");
            rows.push((table, count));
            // Whoever carries notes to the queue may mark one while it is copied.
            if table == "outbox" {
                continue;
            }
            let (old, new) = (
                moves::digest(databases, id, table, from).await?,
                moves::digest(databases, id, table, to).await?,
            );
            if old != new {
                return Err(Error::Operator(format!(
                    "{table} is not the same at both ends: {} and {} rows. Nothing was moved; is the repository \
                     being written to by a program that is older than this one?",
                    old.0, new.0
                )));
            }
        }
        Ok(rows)
    }

    /// Opens the door where the repository lives, leaves the address at the others, and has what lies there removed.
    async fn settle_move(&self, id: RepositoryId, home: &str) -> Result<()> {
        let databases = self.databases();
        let here = databases.home(home).map(str::to_owned);
        for place in databases.homes().to_vec() {
            if Some(&place) != here.as_ref() {
                doors::forward(databases, &place, id, home).await?;
            }
        }
        jobs::move_notes(databases, id, here.as_deref().unwrap_or(home)).await?;
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

/// The end of an id is its random part.
fn repository_key(id: RepositoryId) -> i64 {
    let bytes = id.uuid().into_bytes();
    let mut tail = [0; 8];
    tail.copy_from_slice(&bytes[8..]);
    i64::from_be_bytes(tail)
}
