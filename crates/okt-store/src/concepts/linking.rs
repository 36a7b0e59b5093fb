//! Which facts speak of which concepts.

use std::collections::{BTreeSet, HashMap, HashSet};

use okt_model::{ConceptId, Error, FoundBy, RepositoryId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::roots;
use crate::concept_relations;
use okt_pg::Result;

/// How often what was split off is followed.
const SPLITS: u32 = 8;

/// A fact that speaks of a concept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLink {
    pub concept: ConceptId,
    pub fact: i64,
    pub found_by: FoundBy,
}

/// Links facts to concepts, or to those that they were merged into; returns how many links are new. One that is there already
/// keeps the more trusted finding, and a fact that is gone gets none. Unless a person says so, a fact is not linked to a concept
/// that a person parted it from, but to what was split off with it, and not to one that it is linked to through a part of it. The facts stay until the end of the transaction. A
/// concept that is merged meanwhile keeps its link, which is read as that of the other.
#[tracing::instrument(level = "debug", name = "db.fact_concepts.link", skip_all)]
pub async fn link(conn: &mut PgConnection, repository: RepositoryId, links: &[NewLink]) -> Result<u64> {
    let facts: Vec<i64> = links.iter().map(|link| link.fact).collect();
    // In the order of everybody.
    let there = sqlx::query_scalar!(
        "SELECT f.no FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.no = ANY ($2)
          ORDER BY f.content_hash
            FOR KEY SHARE OF f",
        repository.uuid(),
        &facts,
    );
    let there: HashSet<i64> = there.fetch_all(&mut *conn).await?.into_iter().collect();
    let links: Vec<NewLink> = links.iter().copied().filter(|link| there.contains(&link.fact)).collect();
    let links = as_decided(conn, repository, links).await?;
    if links.is_empty() {
        return Ok(0);
    }
    let concepts: Vec<Uuid> = links.iter().map(|link| link.concept.uuid()).collect();
    let facts: Vec<i64> = links.iter().map(|link| link.fact).collect();
    let found_by: Vec<i16> = links.iter().map(|link| link.found_by.number()).collect();
    let row = sqlx::query_file!(
        "src/sql/link_facts.sql",
        repository.uuid(),
        &concepts,
        &facts,
        &found_by,
        None::<i64>
    );
    let row = row.fetch_one(&mut *conn).await?;
    if !row.all_there {
        return Err(Error::NotFound("concept").into());
    }
    if row.inserted < row.wanted {
        sqlx::query_file!("src/sql/raise_findings.sql", repository.uuid(), &concepts, &facts, &found_by)
            .execute(conn)
            .await?;
    }
    Ok(u64::try_from(row.inserted).map_err(Error::internal)?)
}

/// As [`link`], for facts that are held, and that an import brings. One that is linked already keeps the finding that it has.
pub(crate) async fn link_held(
    conn: &mut PgConnection,
    repository: RepositoryId,
    links: Vec<NewLink>,
    import: i64,
) -> Result<i64> {
    let links = as_decided(conn, repository, links).await?;
    if links.is_empty() {
        return Ok(0);
    }
    let concepts: Vec<Uuid> = links.iter().map(|link| link.concept.uuid()).collect();
    let facts: Vec<i64> = links.iter().map(|link| link.fact).collect();
    let found_by: Vec<i16> = links.iter().map(|link| link.found_by.number()).collect();
    let row =
        sqlx::query_file!("src/sql/link_facts.sql", repository.uuid(), &concepts, &facts, &found_by, import);
    let row = row.fetch_one(conn).await?;
    if !row.all_there {
        return Err(Error::NotFound("concept").into());
    }
    Ok(row.inserted)
}

/// Without the links that a person rejected, of facts that are held: whoever rejects one holds its fact.
async fn as_decided(
    conn: &mut PgConnection,
    repository: RepositoryId,
    links: Vec<NewLink>,
) -> Result<Vec<NewLink>> {
    let (mut kept, mut open): (Vec<NewLink>, Vec<NewLink>) =
        links.into_iter().partition(|link| link.found_by == FoundBy::Person);
    // What was split off may have been split itself.
    for _ in 0..SPLITS {
        if open.is_empty() {
            break;
        }
        let facts: Vec<i64> = open.iter().map(|link| link.fact).collect();
        let rows = sqlx::query_file!("src/sql/decided_links.sql", repository.uuid(), &facts);
        let rows = rows.fetch_all(&mut *conn).await?;
        if rows.is_empty() {
            break;
        }
        let decided: HashMap<(i64, i64), Option<Uuid>> =
            rows.into_iter().map(|row| ((row.fact_no, row.root), row.instead)).collect();
        let ids: Vec<Uuid> = open.iter().map(|link| link.concept.uuid()).collect();
        let roots = roots(conn, repository, &ids).await?;
        let mut again = Vec::new();
        for link in open {
            let root = roots.get(&link.concept.uuid());
            match root.and_then(|root| decided.get(&(link.fact, *root))) {
                None => kept.push(link),
                Some(None) => {}
                Some(Some(instead)) => again.push(NewLink { concept: (*instead).into(), ..link }),
            }
        }
        open = again;
    }
    kept.extend(open);
    Ok(kept)
}

/// Takes facts away from a concept and from all that were merged into it; returns those that were linked.
#[tracing::instrument(level = "debug", name = "db.fact_concepts.unlink", skip_all)]
pub async fn unlink(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: ConceptId,
    facts: &[i64],
) -> Result<Vec<i64>> {
    let root = roots(conn, repository, &[concept.uuid()]).await?.get(&concept.uuid()).copied();
    let Some(root) = root else { return Ok(Vec::new()) };
    Ok(sqlx::query_file_scalar!("src/sql/unlink_facts.sql", repository.uuid(), root, facts)
        .fetch_all(conn)
        .await?)
}

/// Takes away what rules or a model found in facts, before another one says what it finds. What a person linked stays.
#[tracing::instrument(level = "debug", name = "db.fact_concepts.unlink_found", skip_all)]
pub async fn unlink_found(conn: &mut PgConnection, repository: RepositoryId, facts: &[i64]) -> Result<u64> {
    let gone = sqlx::query_scalar!(
        "DELETE FROM okt_repository.fact_concepts WHERE repository_id = $1 AND fact_no = ANY ($2) AND found_by <> $3
         RETURNING fact_no",
        repository.uuid(),
        facts,
        FoundBy::Person.number(),
    );
    let gone = gone.fetch_all(&mut *conn).await?;
    let of: BTreeSet<i64> = gone.iter().copied().collect();
    concept_relations::mark(conn, repository, &of.into_iter().collect::<Vec<i64>>()).await?;
    Ok(u64::try_from(gone.len()).map_err(Error::internal)?)
}

/// Moves the links of facts from one concept to another, as somebody says who splits one in two; returns how many facts.
#[tracing::instrument(level = "debug", name = "db.fact_concepts.relink", skip_all)]
pub async fn relink(
    conn: &mut PgConnection,
    repository: RepositoryId,
    from: ConceptId,
    to: ConceptId,
    facts: &[i64],
) -> Result<u64> {
    let moved = unlink(conn, repository, from, facts).await?;
    let links: Vec<NewLink> =
        moved.iter().map(|fact| NewLink { concept: to, fact: *fact, found_by: FoundBy::Person }).collect();
    link(conn, repository, &links).await
}
