//! Locks of repositories, by which work that must not be done twice at once is done in turns. Each has its number here, so that no two
//! kinds of work wait for each other by mistake.

use okt_model::RepositoryId;
use sqlx::PgConnection;

use okt_pg::Result;

/// What is done in turns. In two numbers with the repository, beside the locks of the write fence.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RepositoryLock {
    /// Counting relations of concepts.
    Relations = 1_869_771_877,
    /// Taking and undoing steps of curation.
    Curation = 1_869_771_878,
    /// Writing lists of the texts that have a word.
    Lists = 1_869_771_879,
    /// Writing versions of a definition, by its name.
    Syntheses = 1_869_771_880,
    /// Marking claims that changed facts concern; settling claims shares it.
    Claims = 1_869_771_881,
    /// Taking in a bundle.
    Import = 1_869_771_882,
    /// Marking answers whose evidence changed.
    AnswerMarks = 1_869_771_883,
}

/// Waits for the lock, and keeps it until the end of the transaction. In a statement of its own, so that the next one sees what was
/// written by whom we waited for.
pub(crate) async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lock: RepositoryLock,
) -> Result<()> {
    hold_of(conn, repository, lock, "").await
}

/// As [`hold`], for one thing of the repository.
pub(crate) async fn hold_of(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lock: RepositoryLock,
    thing: &str,
) -> Result<()> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock($2::integer, hashtext($1::uuid::text || $3::text))",
        repository.uuid(),
        lock as i32,
        thing,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// As [`hold`], but beside others who share it.
pub(crate) async fn share(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lock: RepositoryLock,
) -> Result<()> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock_shared($2::integer, hashtext($1::uuid::text))",
        repository.uuid(),
        lock as i32,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// As [`hold`], if nobody has it; whether it is held now.
pub(crate) async fn try_hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lock: RepositoryLock,
) -> Result<bool> {
    let held = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock($2::integer, hashtext($1::uuid::text)) AS "held!""#,
        repository.uuid(),
        lock as i32,
    );
    Ok(held.fetch_one(conn).await?)
}
