//! What a source says, in place of what it said before.

use std::collections::{BTreeMap, BTreeSet};

use okt_model::{
    ContentHash, Error, ExtractConcepts, FactId, FactStatus, ImageId, JobId, NewFact, RepositoryId, SourceId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::hash;
use crate::fact_merges::{recount, remove_bare};
use crate::outbox::{self, When};
use crate::{concept_readings, counters};
use okt_pg::Result;

const COUNTER: &str = "facts";

/// What facts that nobody has made before are like.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub promptset: Option<ContentHash>,
    /// `new` where they are going to be compared with others.
    pub status: FactStatus,
}

/// Makes these the facts of a source, in place of those that it made before, or beside them where `keep` says so; returns
/// how many it has. What no source makes any more is gone.
#[tracing::instrument(level = "debug", name = "db.facts.replace", skip_all, fields(source.id = %source))]
pub async fn replace(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    facts: &[NewFact],
    keep: bool,
    made: Made,
) -> Result<i64> {
    let (no, so_far) = hold_source(conn, repository, source).await?;
    let before = linked(conn, repository, no, so_far).await?;
    let (added, numbers) = add(conn, repository, &before, facts, made).await?;
    let added: BTreeSet<i64> = added.into_values().collect();
    let now: BTreeSet<i64> = numbers.values().copied().collect();
    let replaced: Vec<i64> = before.iter().copied().filter(|no| !keep || now.contains(no)).collect();
    let_go(conn, repository, no, &replaced).await?;
    link(conn, repository, no, facts, &numbers).await?;
    let gained: Vec<i64> =
        now.iter().copied().filter(|no| !before.contains(no) && !added.contains(no)).collect();
    let lost: Vec<i64> = replaced.into_iter().filter(|no| !now.contains(no)).collect();
    let removed = settle(conn, repository, &gained, &lost).await?;
    let count = if keep { before.union(&now).count() } else { now.len() };
    let count = i64::try_from(count).map_err(Error::internal)?;
    if count != so_far {
        tell_source(conn, repository, source, count).await?;
    }
    let change = i64::try_from(added.len()).map_err(Error::internal)? - removed;
    if change != 0 {
        counters::add(conn, repository, COUNTER, change).await?;
    }
    Ok(count)
}

/// Takes away what a source says. What no other source says is gone.
#[tracing::instrument(level = "debug", name = "db.facts.forget_source", skip_all, fields(source.id = %source))]
pub async fn forget_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<()> {
    let (no, so_far) = hold_source(conn, repository, source).await?;
    let before = linked(conn, repository, no, so_far).await?;
    hold(conn, repository, &before, &[]).await?;
    let lost: Vec<i64> = before.into_iter().collect();
    let_go(conn, repository, no, &lost).await?;
    if so_far != 0 {
        tell_source(conn, repository, source, 0).await?;
    }
    let removed = settle(conn, repository, &[], &lost).await?;
    if removed != 0 {
        counters::add(conn, repository, COUNTER, -removed).await?;
    }
    Ok(())
}

/// Takes away that a source says these facts. What no other source says is gone.
#[tracing::instrument(level = "debug", name = "db.facts.forget_links", skip_all, fields(source.id = %source))]
pub async fn forget_links(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    facts: &[i64],
) -> Result<i64> {
    let (no, so_far) = hold_source(conn, repository, source).await?;
    let mut lost = linked(conn, repository, no, so_far).await?;
    let wanted: BTreeSet<i64> = facts.iter().copied().collect();
    lost.retain(|fact| wanted.contains(fact));
    hold(conn, repository, &lost, &[]).await?;
    let lost: Vec<i64> = lost.into_iter().collect();
    let_go(conn, repository, no, &lost).await?;
    let count = i64::try_from(lost.len()).map_err(Error::internal)?;
    tell_source(conn, repository, source, so_far - count).await?;
    let removed = settle(conn, repository, &[], &lost).await?;
    if removed != 0 {
        counters::add(conn, repository, COUNTER, -removed).await?;
    }
    Ok(count)
}

/// Adds those that nobody has made before, and holds the others with those that the source made: the numbers of those that
/// were added, and of all that it makes now, by their hashes.
async fn add(
    conn: &mut PgConnection,
    repository: RepositoryId,
    before: &BTreeSet<i64>,
    facts: &[NewFact],
    made: Made,
) -> Result<(BTreeMap<ContentHash, i64>, BTreeMap<ContentHash, i64>)> {
    let mut added = BTreeMap::new();
    for _ in 0..5 {
        added.extend(insert(conn, repository, facts, made).await?);
        // Nobody else sees those that were just added, so nobody has to be kept from them.
        let others: Vec<Vec<u8>> = facts
            .iter()
            .filter(|fact| !added.contains_key(&fact.hash))
            .map(|fact| fact.hash.0.to_vec())
            .collect();
        let held = hold(conn, repository, before, &others).await?;
        // One that was there when we looked may be gone with its last source by the time that we hold it.
        let number = |hash| held.get(hash).or_else(|| added.get(hash)).copied();
        let numbers = facts.iter().map(|fact| Some((fact.hash, number(&fact.hash)?)));
        if let Some(numbers) = numbers.collect() {
            return Ok((added, numbers));
        }
    }
    Err(Error::Overloaded("the same facts are just being removed").into())
}

/// Adds those that nobody has made before; their numbers by their hashes.
async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[NewFact],
    made: Made,
) -> Result<BTreeMap<ContentHash, i64>> {
    if facts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<Uuid> = facts.iter().map(|_| FactId::mint().uuid()).collect();
    let texts: Vec<&str> = facts.iter().map(|fact| fact.text.as_str()).collect();
    let hashes: Vec<&[u8]> = facts.iter().map(|fact| fact.hash.0.as_slice()).collect();
    let kinds: Vec<&str> = facts.iter().map(|fact| fact.kind.as_str()).collect();
    let models: Vec<&str> = facts.iter().map(|fact| fact.model.as_str()).collect();
    let rows = sqlx::query_file!(
        "src/sql/insert_facts.sql",
        repository.uuid(),
        &ids,
        &texts as &[&str],
        &hashes as &[&[u8]],
        &kinds as &[&str],
        &models as &[&str],
        made.promptset.map(|hash| hash.0.to_vec()),
        made.status.as_str(),
    );
    let rows = rows.fetch_all(conn).await?;
    rows.into_iter().map(|row| Ok((hash(&row.content_hash)?, row.no))).collect()
}

/// Locks the facts with these numbers and these hashes, their canonical facts, and the members of the
/// similar groups that they represent, until the end of the transaction, in the
/// order of their hashes: the numbers by their hashes. In a statement of its own, so that what comes next sees them as they
/// are then.
async fn hold(
    conn: &mut PgConnection,
    repository: RepositoryId,
    numbers: &BTreeSet<i64>,
    hashes: &[Vec<u8>],
) -> Result<BTreeMap<ContentHash, i64>> {
    if numbers.is_empty() && hashes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let numbers: Vec<i64> = numbers.iter().copied().collect();
    for _ in 0..5 {
        let rows = sqlx::query!(
            "SELECT f.no, f.content_hash, f.merged_into FROM okt_repository.facts f
              WHERE f.repository_id = $1
                AND f.no IN (SELECT unnest(ARRAY[o.no, o.merged_into]) FROM unnest($2::bigint[]) AS n (no)
                               JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = n.no
                              UNION
                             SELECT unnest(ARRAY[o.no, o.merged_into]) FROM unnest($3::bytea[]) AS n (hash)
                               JOIN okt_repository.facts o ON o.repository_id = $1 AND o.content_hash = n.hash
                              UNION
                             -- What they represent, should they go.
                             SELECT o.no FROM okt_repository.facts o
                              WHERE o.repository_id = $1 AND o.similar_to = ANY ($2))
              ORDER BY f.content_hash
                FOR UPDATE OF f",
            repository.uuid(),
            &numbers,
            hashes,
        );
        let rows = rows.fetch_all(&mut *conn).await?;
        let held: BTreeSet<i64> = rows.iter().map(|row| row.no).collect();
        // While we waited for a lock, the fact may have been merged into another.
        if rows.iter().filter_map(|row| row.merged_into).all(|canonical| held.contains(&canonical)) {
            return rows.into_iter().map(|row| Ok((hash(&row.content_hash)?, row.no))).collect();
        }
    }
    Err(Error::Overloaded("the same facts are just being merged").into())
}

/// Holds a source until the end of the transaction: its number, and how many facts it makes.
async fn hold_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<(i64, i64)> {
    let row = sqlx::query!(
        "SELECT no, fact_count FROM okt_repository.sources WHERE repository_id = $1 AND id = $2 FOR UPDATE",
        repository.uuid(),
        source.uuid(),
    );
    let row = row.fetch_optional(conn).await?.ok_or(Error::NotFound("source"))?;
    Ok((row.no, row.fact_count))
}

/// How many facts it makes now.
async fn tell_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
    facts: i64,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.sources SET fact_count = $3 WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        source.uuid(),
        facts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The facts that a source makes. Nobody changes that but who holds the source, and nobody is asked about a new one: that
/// takes PostgreSQL longer to plan than to do.
async fn linked(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    so_far: i64,
) -> Result<BTreeSet<i64>> {
    if so_far == 0 {
        return Ok(BTreeSet::new());
    }
    let rows = sqlx::query_scalar!(
        "SELECT fact_no FROM okt_repository.fact_sources WHERE repository_id = $1 AND source_no = $2",
        repository.uuid(),
        source,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().collect())
}

/// Removes the links of a source to these facts. What its job was going to read of them, the jobs of others read.
async fn let_go(conn: &mut PgConnection, repository: RepositoryId, source: i64, facts: &[i64]) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    let unread = sqlx::query_scalar!(
        "WITH links AS (
             DELETE FROM okt_repository.fact_sources
              WHERE repository_id = $1 AND source_no = $2 AND fact_no = ANY ($3))
         DELETE FROM okt_repository.concept_readings
          WHERE repository_id = $1 AND source_no = $2 AND fact_no = ANY ($3) AND NOT done
         RETURNING fact_no",
        repository.uuid(),
        source,
        facts,
    );
    let unread = unread.fetch_all(&mut *conn).await?;
    for source in concept_readings::list_sources(conn, repository, &unread).await? {
        outbox::push(conn, repository, JobId::mint(), &ExtractConcepts { source }, When::default()).await?;
    }
    Ok(())
}

async fn link(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    facts: &[NewFact],
    numbers: &BTreeMap<ContentHash, i64>,
) -> Result<()> {
    let mut rows = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for fact in facts {
        let no =
            numbers.get(&fact.hash).ok_or_else(|| Error::internal("a fact was added and is not there"))?;
        rows.0.push(*no);
        rows.1.push(fact.chunk);
        rows.2.push(array(&fact.sentences));
        rows.3.push(fact.image.map(ImageId::uuid));
    }
    sqlx::query!(
        "INSERT INTO okt_repository.fact_sources (repository_id, source_no, fact_no, chunk_no, sentences, image_id)
         SELECT $1, $2, n.fact, n.chunk, n.sentences::integer[], n.image
           FROM unnest($3::bigint[], $4::integer[], $5::text[], $6::uuid[]) AS n (fact, chunk, sentences, image)",
        repository.uuid(),
        source,
        &rows.0,
        &rows.1 as &[Option<i32>],
        &rows.2,
        &rows.3 as &[Option<Uuid>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Counts a source more or less for these, which are held; returns how many are gone because they had no other.
async fn settle(
    conn: &mut PgConnection,
    repository: RepositoryId,
    gained: &[i64],
    lost: &[i64],
) -> Result<i64> {
    if gained.is_empty() && lost.is_empty() {
        return Ok(0);
    }
    let more = sqlx::query!(
        "UPDATE okt_repository.facts SET source_count = source_count + 1 WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        gained,
    );
    let less = sqlx::query!(
        "UPDATE okt_repository.facts SET source_count = source_count - 1
          WHERE repository_id = $1 AND no = ANY ($2) AND source_count > 1",
        repository.uuid(),
        lost,
    );
    more.execute(&mut *conn).await?;
    less.execute(&mut *conn).await?;
    let canonical = canonical(conn, repository, &[gained, lost].concat()).await?;
    // Duplicates first: a canonical fact can go only when it has none left.
    let mut gone = remove_bare(conn, repository, lost).await?;
    if !canonical.is_empty() {
        gone += remove_bare(conn, repository, &canonical).await?;
        recount(conn, repository, &canonical).await?;
    }
    Ok(gone)
}

/// The canonical facts of these, of those that were merged or that have duplicates.
async fn canonical(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar!(
        r#"SELECT DISTINCT coalesce(f.merged_into, f.no) AS "no!" FROM okt_repository.facts f
            WHERE f.repository_id = $1 AND f.no = ANY ($2)
              AND (f.merged_into IS NOT NULL
                   OR EXISTS (SELECT FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.merged_into = f.no))"#,
        repository.uuid(),
        facts,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// As PostgreSQL writes it.
fn array(numbers: &[i32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}
