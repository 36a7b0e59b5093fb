//! Rows of bundles.

use chrono::{DateTime, Utc};
use okt_interchange::origin;
use okt_model::Error;
use okt_pg::Result;
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(crate) struct GraphRow {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub sha256: String,
    pub schema_version: i32,
    pub source_count: i64,
    pub fact_count: i64,
    pub concept_count: i64,
    pub file_sha256: Vec<u8>,
    pub bytes: i64,
    pub owner: String,
    pub signature: Option<String>,
    pub created_at: DateTime<Utc>,
    pub withdrawn_why: Option<String>,
}

/// Adds it unless one of this name, hash and signer is there, or nobody signed it and the same file is there: its id, and whether it is
/// new.
#[tracing::instrument(level = "debug", name = "db.registry.insert_graph", skip_all)]
pub(crate) async fn insert_graph(conn: &mut PgConnection, graph: &GraphRow) -> Result<(Uuid, bool)> {
    let withdrawn = sqlx::query_scalar!(
        // The file also under another name. Another file of the same graph is bad only where its owner gave it that name, too.
        r#"SELECT EXISTS (SELECT FROM okt_registry.graphs WHERE file_sha256 = $1 AND withdrawn_at IS NOT NULL)
               OR EXISTS (SELECT FROM okt_registry.graphs
                           WHERE sha256 = $2 AND name = $3 AND owner = $4 AND withdrawn_at IS NOT NULL) AS "withdrawn!""#,
        graph.file_sha256,
        graph.sha256,
        graph.name,
        graph.owner,
    );
    if withdrawn.fetch_one(&mut *conn).await? {
        return Err(Error::Conflict("this bundle was withdrawn, and can't be pushed again").into());
    }
    let key_id = graph.signature.as_deref().and_then(origin::named);
    let row = sqlx::query!(
        r#"WITH known AS (
               SELECT id FROM okt_registry.graphs
                WHERE name = $2 AND sha256 = $5 AND withdrawn_at IS NULL
                  AND (coalesce(key_id, '') = coalesce($14::text, '') OR ($14::text IS NULL AND file_sha256 = $10))
                ORDER BY id LIMIT 1),
           added AS (
               INSERT INTO okt_registry.graphs
                      (id, name, description, tags, sha256, schema_version, source_count, fact_count, concept_count,
                       file_sha256, bytes, owner, signature, key_id)
               SELECT $1::uuid, $2::text, $3::text, $4::text[], $5::text, $6::integer, $7::bigint, $8::bigint, $9::bigint,
                      $10::bytea, $11::bigint, $12::text, $13::text, $14::text
                WHERE NOT EXISTS (SELECT FROM known)
               ON CONFLICT (name, sha256, coalesce(key_id, '')) WHERE withdrawn_at IS NULL DO NOTHING RETURNING id)
           SELECT id AS "id!", true AS "new!" FROM added
            UNION ALL
           SELECT id, false FROM known LIMIT 1"#,
        graph.id,
        graph.name,
        graph.description,
        &graph.tags,
        graph.sha256,
        graph.schema_version,
        graph.source_count,
        graph.fact_count,
        graph.concept_count,
        graph.file_sha256,
        graph.bytes,
        graph.owner,
        graph.signature,
        key_id,
    );
    let row =
        row.fetch_optional(conn).await?.ok_or(Error::Overloaded("the same bundle is just being pushed"))?;
    Ok((row.id, row.new))
}

/// The newest first, from before one on.
#[tracing::instrument(level = "debug", name = "db.registry.list_graphs", skip_all)]
pub(crate) async fn list_graphs(
    conn: &mut PgConnection,
    text: Option<&str>,
    tag: Option<&str>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<GraphRow>> {
    let rows = sqlx::query_as!(
        GraphRow,
        "SELECT id, name, description, tags, sha256, schema_version, source_count, fact_count, concept_count, file_sha256, bytes,
                owner, signature, created_at, withdrawn_why
           FROM okt_registry.graphs
          WHERE withdrawn_at IS NULL AND ($1::text IS NULL OR strpos(lower(name || ' ' || description), lower($1)) > 0)
            AND ($2::text IS NULL OR tags @> ARRAY[$2]) AND ($3::uuid IS NULL OR id < $3)
          ORDER BY id DESC LIMIT $4",
        text,
        tag,
        before,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry.get_graph", skip_all)]
pub(crate) async fn get_graph(conn: &mut PgConnection, id: Uuid) -> Result<Option<GraphRow>> {
    let row = sqlx::query_as!(
        GraphRow,
        "SELECT id, name, description, tags, sha256, schema_version, source_count, fact_count, concept_count, file_sha256, bytes,
                owner, signature, created_at, withdrawn_why
           FROM okt_registry.graphs WHERE id = $1",
        id,
    );
    Ok(row.fetch_optional(conn).await?)
}

/// Whether it was this owner's; its file stays for now.
#[tracing::instrument(level = "debug", name = "db.registry.delete_graph", skip_all)]
pub(crate) async fn delete_graph(conn: &mut PgConnection, id: Uuid, owner: &str) -> Result<bool> {
    let gone = sqlx::query!("DELETE FROM okt_registry.graphs WHERE id = $1 AND owner = $2", id, owner);
    Ok(gone.execute(conn).await?.rows_affected() == 1)
}

/// A bundle.
#[tracing::instrument(level = "debug", name = "db.registry.withdraw_graph", skip_all)]
pub(crate) async fn withdraw_graph(conn: &mut PgConnection, id: Uuid, why: &str) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_registry.graphs SET withdrawn_at = clock_timestamp(), withdrawn_why = $2
          WHERE id = $1 AND withdrawn_at IS NULL",
        id,
        why,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}
