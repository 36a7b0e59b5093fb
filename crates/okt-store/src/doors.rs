//! Rows of `okt_repository.closed`: where a repository can't be written to any more, or for now.
//!
//! Whoever writes goes through [`Databases::begin`], which asks at the door and holds it open; whoever closes it waits
//! until everybody is out.

use okt_model::{RepositoryId, Result};
use sqlx::postgres::PgDatabaseError;

use crate::databases::Databases;
use crate::error::from_sqlx;

/// What the door says in place of opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    Moving,
    /// To the database of this name.
    Moved(String),
    Deleted,
}

impl Closed {
    pub(crate) fn of(error: &sqlx::Error) -> Option<Self> {
        let error = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
        if error.code() != "OKT01" {
            return None;
        }
        Some(match (error.detail(), error.hint()) {
            (Some("moved"), Some(to)) => Self::Moved(to.to_owned()),
            (Some("deleted"), _) => Self::Deleted,
            _ => Self::Moving,
        })
    }

    const fn why(&self) -> &'static str {
        match self {
            Self::Moving => "moving",
            Self::Moved(_) => "moved",
            Self::Deleted => "deleted",
        }
    }
}

/// Closes the door of a repository in a database, and waits until everybody who wrote has left.
#[tracing::instrument(level = "debug", name = "db.closed.close", skip_all, fields(repository.id = %repository))]
pub async fn close(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    why: &Closed,
) -> Result<()> {
    let mut tx = databases.begin_behind(database, repository).await?;
    let moved_to = match why {
        Closed::Moved(to) => Some(to.as_str()),
        _ => None,
    };
    sqlx::query!("SELECT okt_repository.shut($1, $2)", why.why(), moved_to)
        .execute(&mut *tx)
        .await
        .map_err(from_sqlx)?;
    tx.commit().await
}

/// Opens the door again, or for the first time.
#[tracing::instrument(level = "debug", name = "db.closed.open", skip_all, fields(repository.id = %repository))]
pub async fn open(databases: &Databases, database: &str, repository: RepositoryId) -> Result<()> {
    let mut tx = databases.begin_behind(database, repository).await?;
    sqlx::query!("DELETE FROM okt_repository.closed WHERE repository_id = $1", repository.uuid())
        .execute(&mut *tx)
        .await
        .map_err(from_sqlx)?;
    tx.commit().await
}

/// Leaves the new address at a door that is closed; where there is none, nobody knows of the repository.
#[tracing::instrument(level = "debug", name = "db.closed.forward", skip_all, fields(repository.id = %repository))]
pub async fn forward(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    to: &str,
) -> Result<()> {
    let mut tx = databases.begin_behind(database, repository).await?;
    sqlx::query!(
        "UPDATE okt_repository.closed SET why = 'moved', moved_to = $2 WHERE repository_id = $1 AND why <> 'deleted'",
        repository.uuid(),
        to,
    )
    .execute(&mut *tx)
    .await
    .map_err(from_sqlx)?;
    tx.commit().await
}
