//! Relations of several concepts at once, for drawing a graph and for finding a way through it. Concepts are given by their
//! numbers.

use okt_model::RepositoryId;
use sqlx::PgConnection;

use okt_pg::Result;

/// A relation: of which concept, to which one, and how many facts they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: i64,
    pub to: i64,
    pub shared: i64,
}

/// Of each of these concepts the strongest relations, so many of each.
#[tracing::instrument(level = "debug", name = "db.concept_graph.list_neighbours", skip_all)]
pub async fn list_neighbours(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
    each: i64,
) -> Result<Vec<Edge>> {
    let rows = sqlx::query_file!("src/sql/list_neighbours.sql", repository.uuid(), concepts, each);
    let edges = rows.fetch_all(conn).await?.into_iter();
    Ok(edges.map(|row| Edge { from: row.no, to: row.other_no, shared: row.shared_fact_count }).collect())
}

/// All relations among these concepts, each from the lower number to the higher one, the strongest first.
#[tracing::instrument(level = "debug", name = "db.concept_graph.list_among", skip_all)]
pub async fn list_among(
    conn: &mut PgConnection,
    repository: RepositoryId,
    concepts: &[i64],
) -> Result<Vec<Edge>> {
    let rows = sqlx::query!(
        "SELECT concept_no, other_no, shared_fact_count FROM okt_repository.concept_relations
          WHERE repository_id = $1 AND concept_no = ANY ($2) AND other_no = ANY ($2) AND concept_no < other_no
          ORDER BY shared_fact_count DESC, concept_no, other_no",
        repository.uuid(),
        concepts,
    );
    let edges = rows.fetch_all(conn).await?.into_iter();
    Ok(edges
        .map(|row| Edge { from: row.concept_no, to: row.other_no, shared: row.shared_fact_count })
        .collect())
}
