//! Concepts as jobs write them, for tests that need one.

use okt_model::{ConceptId, FoundBy, NewConcept, RepositoryId};
use okt_store::concepts::{self, NewLink};
use sqlx::PgConnection;

/// One concept, which is made where there is none.
pub async fn file_concept(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    context: &str,
) -> okt_pg::Result<ConceptId> {
    let filed = concepts::file(conn, repository, &[NewConcept::new(name, context)]).await?;
    filed.count(conn, repository).await?;
    Ok(*filed.concepts.first().expect("one for each"))
}

/// Facts that speak of one concept, as a model says.
pub async fn link_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concept: ConceptId,
    facts: &[i64],
) -> okt_pg::Result<u64> {
    let links: Vec<NewLink> =
        facts.iter().map(|fact| NewLink { concept, fact: *fact, found_by: FoundBy::Model }).collect();
    concepts::link(conn, repository, &links).await
}
