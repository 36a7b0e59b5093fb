//! Rows of `okt_repository.concepts` and `okt_repository.fact_concepts`: what facts speak of.

use okt_model::{ConceptId, Error, RepositoryId};
use sqlx::PgConnection;

use crate::counters;
use okt_pg::Result;

/// What a step of emptying a context into another one did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// Concepts that changed their context.
    pub moved: i64,
    /// Concepts that the other one had already, and that gave it their links.
    pub merged: i64,
}

/// The concept of this name in the context of this label; made where there is none. In a context that is becoming a part
/// of another one, it is that other one's.
#[tracing::instrument(level = "debug", name = "db.concepts.file", skip_all)]
pub async fn file(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    context: &str,
) -> Result<ConceptId> {
    // Once more where somebody else made it, or the context began to merge, between two looks.
    for _ in 0..3 {
        if let Some(id) = find(conn, repository, name, context).await? {
            return Ok(id);
        }
        if let Some(id) = insert(conn, repository, name, context).await? {
            return Ok(id);
        }
    }
    Err(Error::Overloaded("the context is being changed; try again in a moment").into())
}

async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    context: &str,
) -> Result<Option<ConceptId>> {
    // Counted first, because that is the lock.
    let context_no = sqlx::query_scalar!(
        "UPDATE okt_repository.contexts SET concept_count = concept_count + 1
          WHERE repository_id = $1
            AND no = (SELECT coalesce(c.merging_into, c.no) FROM okt_repository.contexts c
                       WHERE c.repository_id = $1 AND lower(c.label) = lower($2))
         RETURNING no",
        repository.uuid(),
        context,
    )
    .fetch_optional(&mut *conn)
    .await?
    .ok_or(Error::NotFound("context"))?;
    let id = ConceptId::mint();
    let made = sqlx::query!(
        "INSERT INTO okt_repository.concepts (repository_id, id, canonical_name, context_no)
         SELECT $1, $2, $3, c.no FROM okt_repository.contexts c
          WHERE c.repository_id = $1 AND c.no = $4 AND c.merging_into IS NULL
         ON CONFLICT (repository_id, lower(canonical_name), context_no) WHERE merged_into IS NULL DO NOTHING",
        repository.uuid(),
        id.uuid(),
        name,
        context_no,
    )
    .execute(&mut *conn)
    .await?;
    if made.rows_affected() == 1 {
        counters::add(conn, repository, "concepts", 1).await?;
        return Ok(Some(id));
    }
    sqlx::query!(
        "UPDATE okt_repository.contexts SET concept_count = concept_count - 1 WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        context_no,
    )
    .execute(conn)
    .await?;
    Ok(None)
}

/// The concept of this name in the context of this label, or in the one that it is becoming a part of.
#[tracing::instrument(level = "debug", name = "db.concepts.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    context: &str,
) -> Result<Option<ConceptId>> {
    let id = sqlx::query_scalar!(
        "SELECT p.id
           FROM okt_repository.contexts c
           JOIN okt_repository.concepts p
             ON p.repository_id = $1 AND p.context_no IN (c.no, c.merging_into)
            AND lower(p.canonical_name) = lower($2) AND p.merged_into IS NULL
          WHERE c.repository_id = $1 AND lower(c.label) = lower($3)
          -- The other one's is there to stay.
          ORDER BY p.context_no = c.no
          LIMIT 1",
        repository.uuid(),
        name,
        context,
    )
    .fetch_optional(conn)
    .await?;
    Ok(id.map(Into::into))
}

/// Links facts to a concept, or to the one that took its place; returns how many links are new. The concept stays what it
/// is until the end of the transaction, so no link is left with one that is just being merged away.
#[tracing::instrument(level = "debug", name = "db.fact_concepts.link", skip_all)]
pub async fn link(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: ConceptId,
    facts: &[i64],
) -> Result<u64> {
    let mut held = sqlx::query!(
        "SELECT no, merged_into FROM okt_repository.concepts WHERE repository_id = $1 AND id = $2 FOR SHARE",
        repository.uuid(),
        concept.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?
    .map(|row| (row.no, row.merged_into))
    .ok_or(Error::NotFound("concept"))?;
    while let (_, Some(next)) = held {
        held = sqlx::query!(
            "SELECT no, merged_into FROM okt_repository.concepts WHERE repository_id = $1 AND no = $2 FOR SHARE",
            repository.uuid(),
            next,
        )
        .fetch_optional(&mut *conn)
        .await?
        .map(|row| (row.no, row.merged_into))
        .ok_or(Error::NotFound("concept"))?;
    }
    let done = sqlx::query!(
        "INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
         SELECT $1, $2, f FROM unnest($3::bigint[]) AS f
         ON CONFLICT DO NOTHING",
        repository.uuid(),
        held.0,
        facts,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Empties a context into another one, a few concepts at a time; nothing is left to do when it did nothing. What the other
/// one has under the same name takes over the links. Whoever links or files meanwhile waits for the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.concepts.empty", skip_all)]
pub async fn empty(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    target: i64,
    limit: i64,
) -> Result<Emptied> {
    // Nobody files anything new in either one until the end of the transaction.
    let held = sqlx::query!(
        "SELECT no FROM okt_repository.contexts WHERE repository_id = $1 AND no IN ($2, $3) ORDER BY no FOR UPDATE",
        repository.uuid(),
        source,
        target,
    );
    if held.fetch_all(&mut *conn).await?.len() < 2 {
        return Err(Error::NotFound("context").into());
    }
    // Held by a statement of its own: the next one has to see the links of whoever we waited for.
    let batch = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1 AND context_no = $2 AND merged_into IS NULL
          ORDER BY no LIMIT $3 FOR UPDATE",
        repository.uuid(),
        source,
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let row = sqlx::query_file!("src/sql/empty_context.sql", repository.uuid(), &batch, target)
        .fetch_one(&mut *conn)
        .await?;
    let emptied = Emptied { moved: row.moved, merged: row.merged };
    if emptied == Emptied::default() {
        return Ok(emptied);
    }
    sqlx::query!(
        "UPDATE okt_repository.contexts c
            SET concept_count = concept_count + CASE WHEN c.no = $2 THEN -$4::bigint - $5::bigint ELSE $4 END
          WHERE repository_id = $1 AND no IN ($2, $3)",
        repository.uuid(),
        source,
        target,
        emptied.moved,
        emptied.merged,
    )
    .execute(&mut *conn)
    .await?;
    if emptied.merged > 0 {
        counters::add(conn, repository, "concepts", -emptied.merged).await?;
    }
    Ok(emptied)
}
