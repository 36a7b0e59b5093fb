//! `okt_repository.facts.similar_to`: facts that say something alike and stay as they are, shown as one line.
//!
//! A group is a star. Its representative is named by the others and names nobody; it is there to be seen, and so are they.
//! Whoever makes a fact join holds it and the representative. Whoever takes a fact away (merged, rejected, without a source)
//! holds it, and lets it leave in the same transaction.

use std::collections::{BTreeMap, HashMap};

use okt_model::{Fact, FactGroup, FactId, FactStatus, RepositoryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::facts::Row;
use okt_pg::Result;

/// Facts join groups, by their numbers and those of the representatives. All are held by [`crate::fact_merges::hold`], no fact
/// is on both sides, no representative is a member, and no fact that joins has members.
#[tracing::instrument(level = "debug", name = "db.fact_groups.join", skip_all)]
pub async fn join(conn: &mut PgConnection, repository: RepositoryId, joins: &[(i64, i64)]) -> Result<()> {
    if joins.is_empty() {
        return Ok(());
    }
    let (facts, representatives): (Vec<i64>, Vec<i64>) = joins.iter().copied().unzip();
    sqlx::query!(
        "UPDATE okt_repository.facts f SET similar_to = n.representative
           FROM unnest($2::bigint[], $3::bigint[]) AS n (fact, representative)
          WHERE f.repository_id = $1 AND f.no = n.fact",
        repository.uuid(),
        &facts,
        &representatives,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Holds a fact and the members of its group until the end of the transaction, in the order of everybody.
pub(crate) async fn hold(conn: &mut PgConnection, repository: RepositoryId, id: FactId) -> Result<()> {
    sqlx::query!(
        "SELECT FROM okt_repository.facts f
          WHERE f.repository_id = $1
            AND (f.id = $2 OR f.similar_to = (SELECT o.no FROM okt_repository.facts o
                                               WHERE o.repository_id = $1 AND o.id = $2))
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Facts that are held leave their groups; of those that they represented the oldest represents the others now.
pub(crate) async fn leave(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    // Who came while we waited for the representative, and who is about to leave. In a statement of its own, so that the next
    // one sees them as they are then.
    let held = sqlx::query!(
        "SELECT f.no FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND (f.similar_to = ANY ($2) OR (f.no = ANY ($2) AND f.similar_to IS NOT NULL))
          ORDER BY f.content_hash
            FOR UPDATE OF f",
        repository.uuid(),
        facts,
    );
    if held.fetch_all(&mut *conn).await?.is_empty() {
        return Ok(());
    }
    sqlx::query_file!("src/sql/leave_groups.sql", repository.uuid(), facts).execute(conn).await?;
    Ok(())
}

/// The representative of the group that a fact is in, by its number: the fact itself where it is alone. A duplicate is in the
/// group of its canonical fact.
#[tracing::instrument(level = "debug", name = "db.fact_groups.find", skip_all, fields(fact.id = %id))]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId, id: FactId) -> Result<Option<i64>> {
    let no = sqlx::query_scalar!(
        r#"SELECT coalesce(r.similar_to, r.no) AS "no!" FROM okt_repository.facts f
             JOIN okt_repository.facts r ON r.repository_id = f.repository_id AND r.no = coalesce(f.merged_into, f.no)
            WHERE f.repository_id = $1 AND f.id = $2"#,
        repository.uuid(),
        id.uuid(),
    );
    Ok(no.fetch_optional(conn).await?)
}

/// The facts of a group, from after a number on, the oldest first.
#[tracing::instrument(level = "debug", name = "db.fact_groups.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    representative: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<Fact>> {
    let rows =
        sqlx::query_file_as!(Row, "src/sql/list_group.sql", repository.uuid(), representative, after, limit,);
    rows.fetch_all(conn).await?.into_iter().map(Fact::try_from).collect()
}

/// Says of facts which group they are in, where they are in one.
#[tracing::instrument(level = "debug", name = "db.fact_groups.describe", skip_all)]
pub async fn describe(conn: &mut PgConnection, repository: RepositoryId, facts: &mut [Fact]) -> Result<()> {
    let seen = |fact: &&mut Fact| matches!(fact.status, FactStatus::New | FactStatus::Stable);
    let representatives: Vec<i64> =
        facts.iter_mut().filter(seen).map(|fact| fact.similar_to.unwrap_or(fact.no)).collect();
    if representatives.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query!(
        r#"SELECT no, similar_to AS "similar_to!" FROM okt_repository.facts
            WHERE repository_id = $1 AND similar_to = ANY ($2)"#,
        repository.uuid(),
        &representatives,
    );
    let mut members: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in rows.fetch_all(&mut *conn).await? {
        members.entry(row.similar_to).or_insert_with(|| vec![row.similar_to]).push(row.no);
    }
    // Most facts are alone.
    if members.is_empty() {
        return Ok(());
    }
    let groups = count(conn, repository, &members).await?;
    for fact in facts.iter_mut().filter(seen) {
        fact.group = groups.get(&fact.similar_to.unwrap_or(fact.no)).copied();
    }
    Ok(())
}

/// The groups with these members, by the numbers of their representatives. A source that says it in two ways counts once, and
/// so do the sources of duplicates.
async fn count(
    conn: &mut PgConnection,
    repository: RepositoryId,
    members: &BTreeMap<i64, Vec<i64>>,
) -> Result<HashMap<i64, FactGroup>> {
    let (mut facts, mut representatives) = (Vec::new(), Vec::new());
    for (representative, members) in members {
        facts.extend(members);
        representatives.extend(members.iter().map(|_| *representative));
    }
    let rows =
        sqlx::query_file!("src/sql/count_group_sources.sql", repository.uuid(), &facts, &representatives);
    let rows = rows.fetch_all(conn).await?;
    let groups = rows.into_iter().map(|row| {
        let size = members.get(&row.no).map_or(0, |members| i64::try_from(members.len()).unwrap_or(i64::MAX));
        (row.no, FactGroup { id: Uuid::into(row.id), size, sources: row.sources })
    });
    Ok(groups.collect())
}
