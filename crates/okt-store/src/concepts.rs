//! Rows of `okt_repository.concepts` and `okt_repository.fact_concepts`: what facts speak of.
//!
//! A link stays with the concept that it was made for. Where concepts are merged, `merged_into` makes a tree: its root is the
//! one that is shown, and the links, aliases and names of all its members are read as the root's. So undoing a merge is exact,
//! whatever happened since. Whoever changes what is read writes the facts concerned to the log of
//! [`crate::concept_relations`] in the same transaction.
//!
//! Statements that walk along the tree take each step by `CROSS JOIN LATERAL (… OFFSET 0)`: few concepts are merged, but the
//! planner does not know that, and would rather read all of them once than look one up.

mod facts;
mod filing;
mod linking;
mod reading;

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{ConceptId, Error, RepositoryId, name_key};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{concept_relations, concept_syntheses, counters, summary_states};
use okt_pg::Result;

pub use facts::{
    MOST_FACTS_READ, SourcePlace, TimelinePlace, count_links, list_facts, list_shared_facts, list_sources,
    list_strongest_facts, list_timeline,
};
pub use filing::{Filed, Single, file, find, find_single, list_taken};
pub(crate) use filing::{insert_words, rename_words};
pub(crate) use linking::link_held;
pub use linking::{NewLink, link, relink, unlink, unlink_found};
pub use reading::{ConceptPlace, get, list, list_contexts, list_numbered};

/// What a step of emptying a context into another one did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// Concepts that changed their context.
    pub moved: i64,
    /// Concepts that the other one had already, and that were merged into those.
    pub merged: i64,
    /// Concepts that had been merged before, and changed their context as well.
    pub followed: i64,
}

/// Empties a context into another one, a few concepts at a time; nothing is left to do when it did nothing. What the other
/// one has under the same name takes the concept in. Whoever files meanwhile waits for the end of the transaction.
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
    let batch = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1
            AND no = ANY (ARRAY((SELECT no FROM okt_repository.concepts
                                  WHERE repository_id = $1 AND context_no = $2 AND merged_into IS NULL LIMIT $3)
                                 UNION ALL
                                (SELECT no FROM okt_repository.concepts
                                  WHERE repository_id = $1 AND context_no = $2 AND merged_into IS NOT NULL LIMIT $3)
                                 LIMIT $3))
          ORDER BY no FOR UPDATE",
        repository.uuid(),
        source,
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let row = sqlx::query_file!("src/sql/empty_context.sql", repository.uuid(), &batch, target)
        .fetch_one(&mut *conn)
        .await?;
    // Former names lead on from there as well.
    sqlx::query!(
        "WITH led AS (DELETE FROM okt_repository.former_names WHERE repository_id = $1 AND context_no = $2
                      RETURNING name_key, concept_no)
         INSERT INTO okt_repository.former_names (repository_id, context_no, name_key, concept_no)
         SELECT $1, $3, name_key, concept_no FROM led
         ON CONFLICT (repository_id, context_no, name_key, concept_no) DO NOTHING",
        repository.uuid(),
        source,
        target,
    )
    .execute(&mut *conn)
    .await?;
    let merged = i64::try_from(row.merged.len()).map_err(Error::internal)?;
    let emptied = Emptied { moved: row.moved, merged, followed: row.followed };
    concept_relations::mark_concepts(conn, repository, &row.merged).await?;
    if emptied.moved + emptied.merged > 0 {
        count(conn, repository, &[(source, -emptied.moved - emptied.merged), (target, emptied.moved)])
            .await?;
    }
    if emptied.merged > 0 {
        counters::add(conn, repository, COUNTER, -emptied.merged).await?;
    }
    Ok(emptied)
}

/// Gives a concept, or the one that it is part of, another name, or another context by its number. False if it is not there.
///
/// # Errors
///
/// [`Error::AlreadyExists`] if the context has a concept of this name, [`Error::NotFound`] if there is no such context.
#[tracing::instrument(level = "debug", name = "db.concepts.update", skip_all, fields(concept.id = %id))]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    id: ConceptId,
    name: Option<&str>,
    context: Option<i64>,
) -> Result<bool> {
    // Once more where it was merged, or changed its context, before we held it.
    for _ in 0..5 {
        let Some(no) = roots(conn, repository, &[id.uuid()]).await?.get(&id.uuid()).copied() else {
            return Ok(false);
        };
        let Some(held) = hold(conn, repository, &[no], context).await? else { continue };
        let Some(held) = held.first().filter(|held| held.merged_into.is_none()) else { continue };
        let key = name.map_or_else(|| held.name_key.clone(), name_key);
        let context = context.unwrap_or(held.context_no);
        if key.is_empty() {
            return Err(Error::invalid("name", "must have a visible character").into());
        }
        // Its own name in another case is free.
        if key != held.name_key || context != held.context_no {
            check_name(conn, repository, &key, context).await?;
        }
        sqlx::query!(
            "UPDATE okt_repository.concepts
                SET canonical_name = coalesce($3, canonical_name), name_key = $4, context_no = $5
              WHERE repository_id = $1 AND no = $2",
            repository.uuid(),
            no,
            name,
            key,
            context,
        )
        .execute(&mut *conn)
        .await?;
        rename_words(conn, repository, no, &held.name_key, &key).await?;
        define_anew(conn, repository, no, &held.name_key).await?;
        if context != held.context_no {
            count(conn, repository, &[(held.context_no, -1), (context, 1)]).await?;
        }
        return Ok(true);
    }
    Err(Error::Overloaded("the same concept is just being changed").into())
}

/// A concept was called so, or was in another context. Definitions are about a name and its contexts, so it is looked at anew,
/// and so are those that are still called so.
pub(crate) async fn define_anew(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: i64,
    former: &str,
) -> Result<()> {
    concept_syntheses::remove_unnamed(conn, repository, &[former]).await?;
    let named = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1 AND (no = $2 OR name_key = $3 AND merged_into IS NULL)",
        repository.uuid(),
        concept,
        former,
    );
    let named = named.fetch_all(&mut *conn).await?;
    summary_states::mark(conn, repository, Some(&named)).await
}

pub(crate) const COUNTER: &str = "concepts";

/// A concept whose row is locked, as it is now.
pub(crate) struct Held {
    pub no: i64,
    pub name_key: String,
    pub context_no: i64,
    pub merged_into: Option<i64>,
}

/// Locks concepts until the end of the transaction, and before them their contexts and another one, as everybody does who files.
/// `None` if a concept changed its context meanwhile; an error if there is no such context.
pub(crate) async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
    context: Option<i64>,
) -> Result<Option<Vec<Held>>> {
    let contexts = sqlx::query_scalar!(
        "SELECT context_no FROM okt_repository.concepts WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        concepts,
    );
    let contexts: BTreeSet<i64> = contexts.fetch_all(&mut *conn).await?.into_iter().chain(context).collect();
    let numbers: Vec<i64> = contexts.iter().copied().collect();
    let there = sqlx::query!(
        "SELECT no FROM okt_repository.contexts WHERE repository_id = $1 AND no = ANY ($2) ORDER BY no FOR UPDATE",
        repository.uuid(),
        &numbers,
    );
    let there = there.fetch_all(&mut *conn).await?.len() == contexts.len();
    let held = sqlx::query_as!(
        Held,
        "SELECT no, name_key, context_no, merged_into FROM okt_repository.concepts
          WHERE repository_id = $1 AND no = ANY ($2) ORDER BY no FOR UPDATE",
        repository.uuid(),
        concepts,
    );
    let held = held.fetch_all(conn).await?;
    if held.len() < concepts.len() || held.iter().any(|held| !contexts.contains(&held.context_no)) {
        return Ok(None);
    }
    if !there {
        return Err(Error::NotFound("context").into());
    }
    Ok(Some(held))
}

/// Whether a name is free in a context, which is held.
pub(crate) async fn check_name(
    conn: &mut PgConnection,
    repository: RepositoryId,
    key: &str,
    context: i64,
) -> Result<()> {
    let taken = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts
                           WHERE repository_id = $1 AND name_key = $2 AND context_no = $3 AND merged_into IS NULL)
                  AS "taken!""#,
        repository.uuid(),
        key,
        context,
    );
    if taken.fetch_one(conn).await? {
        return Err(Error::AlreadyExists("a concept of this name in this context").into());
    }
    Ok(())
}

/// Counts concepts more or less in contexts, which are held.
pub(crate) async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    changes: &[(i64, i64)],
) -> Result<()> {
    let (contexts, deltas): (Vec<i64>, Vec<i64>) = changes.iter().copied().unzip();
    sqlx::query!(
        "UPDATE okt_repository.contexts c SET concept_count = c.concept_count + n.delta
           FROM unnest($2::bigint[], $3::bigint[]) AS n (no, delta)
          WHERE c.repository_id = $1 AND c.no = n.no",
        repository.uuid(),
        &contexts,
        &deltas,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The numbers of the concepts that these are part of now, by their ids. Those that are not there are not in it.
pub(crate) async fn roots(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<BTreeMap<Uuid, i64>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE led AS (
               SELECT id, no, merged_into FROM okt_repository.concepts WHERE repository_id = $1 AND id = ANY ($2)
                UNION
               SELECT l.id, c.no, c.merged_into FROM led l
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c)
           SELECT id AS "id!", no AS "no!" FROM led WHERE merged_into IS NULL"#,
        repository.uuid(),
        ids,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.id, row.no)).collect())
}

/// These concepts and those that were merged into them, each with the one of these that it belongs to.
pub(crate) async fn members(
    conn: &mut PgConnection,
    repository: RepositoryId,
    roots: &[i64],
) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query!(
        r#"WITH RECURSIVE members AS (
               SELECT n AS no, n AS root FROM unnest($2::bigint[]) AS n
                UNION
               SELECT c.no, m.root FROM members m
                CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                                     WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
           SELECT no AS "no!", root AS "root!" FROM members"#,
        repository.uuid(),
        roots,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.no, row.root)).collect())
}
