//! The write fence of a repository, `okt_repository.closed`: where it can't be written to any more, or for now.
//!
//! A transaction that may write acquires the fence by [`Databases::begin`] and releases it when it ends. Closing the fence
//! waits for all of these, and refuses whoever comes later.

use okt_model::RepositoryId;
use sqlx::postgres::PgDatabaseError;

use crate::databases::Databases;
use okt_pg::Result;

/// Why the fence is closed.
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

/// Closes the fence of a repository in a database, after the transactions that have acquired it.
#[tracing::instrument(level = "debug", name = "db.closed.close", skip_all, fields(repository.id = %repository))]
pub async fn close(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    why: &Closed,
) -> Result<()> {
    let mut tx = databases.begin_unfenced(database, repository).await?;
    let moved_to = match why {
        Closed::Moved(to) => Some(to.as_str()),
        _ => None,
    };
    sqlx::query!("SELECT okt_repository.shut($1, $2)", why.why(), moved_to).execute(&mut *tx).await?;
    tx.commit().await
}

/// Opens the fence again, or for the first time.
#[tracing::instrument(level = "debug", name = "db.closed.open", skip_all, fields(repository.id = %repository))]
pub async fn open(databases: &Databases, database: &str, repository: RepositoryId) -> Result<()> {
    let mut tx = databases.begin_unfenced(database, repository).await?;
    sqlx::query!("DELETE FROM okt_repository.closed WHERE repository_id = $1", repository.uuid())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Says at a closed fence where the repository is now; where no fence is closed, nobody knows of the repository.
#[tracing::instrument(level = "debug", name = "db.closed.forward", skip_all, fields(repository.id = %repository))]
pub async fn forward(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    to: &str,
) -> Result<()> {
    let mut tx = databases.begin_unfenced(database, repository).await?;
    sqlx::query!(
        "UPDATE okt_repository.closed SET why = 'moved', moved_to = $2 WHERE repository_id = $1 AND why <> 'deleted'",
        repository.uuid(),
        to,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}
