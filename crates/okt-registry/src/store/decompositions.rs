//! Rows of packages.

use chrono::{DateTime, Utc};
use okt_model::Error;
use okt_pg::Result;
use sqlx::PgConnection;
use uuid::Uuid;

/// Packages of a source in a list.
const MOST_LISTED: i64 = 200;
/// Versions that a key may push in a day, of a source and a model.
const MOST_VERSIONS: i64 = 20;

#[derive(Clone, Debug)]
pub(crate) struct DecompositionRow {
    pub model_id: String,
    pub version: i32,
    pub package_sha256: Vec<u8>,
    pub bytes: i64,
    pub fact_count: i32,
    pub concept_count: i32,
    pub promptset_hash: Option<String>,
    pub embedding_model: Option<String>,
    pub decomposed_by: Option<String>,
    pub decomposed_at: DateTime<Utc>,
    pub pushed_by: String,
    pub pushed_at: DateTime<Utc>,
    pub signature: Option<String>,
    /// Whose signature it is.
    pub key_id: Option<String>,
}

/// The latest of each model, signer and key that pushed it that was not withdrawn: nobody hides what others have given. First of each
/// key what is there for the longest, so that nobody pushes others off the list.
#[tracing::instrument(level = "debug", name = "db.registry.list_decompositions", skip_all)]
pub(crate) async fn list_decompositions(
    conn: &mut PgConnection,
    source: Uuid,
) -> Result<Vec<DecompositionRow>> {
    let rows = sqlx::query_as!(
        DecompositionRow,
        r#"SELECT n.model_id AS "model_id!", n.version AS "version!", n.package_sha256 AS "package_sha256!", n.bytes AS "bytes!",
                n.fact_count AS "fact_count!", n.concept_count AS "concept_count!", n.promptset_hash, n.embedding_model,
                n.decomposed_by, n.decomposed_at AS "decomposed_at!", n.pushed_by AS "pushed_by!", n.pushed_at AS "pushed_at!",
                n.signature, n.key_id
           FROM (SELECT DISTINCT ON (d.model_id, d.key_id, d.pushed_by) d.*,
                        min(d.pushed_at) OVER (PARTITION BY d.model_id, d.key_id, d.pushed_by) AS since
                   FROM okt_registry.decompositions d WHERE d.source_id = $1 AND d.withdrawn_at IS NULL
                  ORDER BY d.model_id, d.key_id, d.pushed_by, d.version DESC) AS n
          ORDER BY row_number() OVER (PARTITION BY n.pushed_by ORDER BY n.since), n.since, n.model_id, n.version LIMIT $2"#,
        source,
        MOST_LISTED,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The latest of a model, or one version of it; and why it was withdrawn if none is left.
#[tracing::instrument(level = "debug", name = "db.registry.find_decomposition", skip_all)]
pub(crate) async fn find_decomposition(
    conn: &mut PgConnection,
    source: Uuid,
    model: &str,
    version: Option<i32>,
) -> Result<Option<(DecompositionRow, Option<String>)>> {
    let row = sqlx::query!(
        "SELECT model_id, version, package_sha256, bytes, fact_count, concept_count, promptset_hash, embedding_model,
                decomposed_by, decomposed_at, pushed_by, pushed_at, signature, key_id, withdrawn_why
           FROM okt_registry.decompositions WHERE source_id = $1 AND model_id = $2 AND ($3::integer IS NULL OR version = $3)
          ORDER BY withdrawn_at IS NOT NULL, version DESC LIMIT 1",
        source,
        model,
        version,
    );
    Ok(row.fetch_optional(conn).await?.map(|row| {
        let found = DecompositionRow {
            model_id: row.model_id,
            version: row.version,
            package_sha256: row.package_sha256,
            bytes: row.bytes,
            fact_count: row.fact_count,
            concept_count: row.concept_count,
            promptset_hash: row.promptset_hash,
            embedding_model: row.embedding_model,
            decomposed_by: row.decomposed_by,
            decomposed_at: row.decomposed_at,
            pushed_by: row.pushed_by,
            pushed_at: row.pushed_at,
            signature: row.signature,
            key_id: row.key_id,
        };
        (found, row.withdrawn_why)
    }))
}

/// What came of a push.
pub(crate) struct Kept {
    pub facts_new: i64,
    pub facts_linked: i64,
}

/// Adds the next version, unless the latest is the same package. `None` if there is no such source.
#[tracing::instrument(level = "debug", name = "db.registry.insert_decomposition", skip_all)]
pub(crate) async fn insert_decomposition(
    conn: &mut PgConnection,
    source: Uuid,
    new: &DecompositionRow,
    facts: &[i64],
) -> Result<Option<Kept>> {
    // One at a time for each source.
    let held = sqlx::query_scalar!("SELECT id FROM okt_registry.sources WHERE id = $1 FOR UPDATE", source);
    if held.fetch_optional(&mut *conn).await?.is_none() {
        return Ok(None);
    }
    let before = sqlx::query!(
        // Whoever pushes without a signature what somebody has signed adds nothing.
        r#"SELECT max(version) AS version,
                  count(*) FILTER (WHERE pushed_by = $5 AND pushed_at > clock_timestamp() - interval '1 day') AS "recent!",
                  coalesce(bool_or(package_sha256 = $3 AND withdrawn_at IS NOT NULL)
                           AND NOT bool_or(package_sha256 = $3 AND withdrawn_at IS NULL), false) AS "withdrawn!",
                  coalesce(bool_or(package_sha256 = $3 AND is_latest AND ($4::text IS NULL OR key_id = $4)), false) AS "same!"
             FROM (SELECT version, package_sha256, withdrawn_at, key_id, pushed_by, pushed_at, withdrawn_at IS NULL
                          AND version = max(version) FILTER (WHERE withdrawn_at IS NULL) OVER (PARTITION BY key_id, pushed_by) AS is_latest
                     FROM okt_registry.decompositions WHERE source_id = $1 AND model_id = $2) AS d"#,
        source,
        new.model_id,
        new.package_sha256,
        new.key_id,
        new.pushed_by,
    );
    let before = before.fetch_one(&mut *conn).await?;
    if before.withdrawn {
        return Err(Error::Conflict("this package was withdrawn, and can't be pushed again").into());
    }
    let all = i64::try_from(facts.len()).map_err(Error::internal)?;
    // Before its facts are compared with those of all others.
    if before.same {
        return Ok(Some(Kept { facts_new: 0, facts_linked: all }));
    }
    if before.recent >= MOST_VERSIONS {
        return Err(Error::Conflict("there are too many versions of this package today").into());
    }
    // With the latest of everybody: there is no bound to all that ever were.
    let known = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM unnest($2::bigint[]) AS n (key)
            WHERE n.key IN (SELECT unnest(l.fact_keys)
                              FROM (SELECT DISTINCT ON (d.model_id, d.key_id, d.pushed_by) d.fact_keys
                                      FROM okt_registry.decompositions d WHERE d.source_id = $1 AND d.withdrawn_at IS NULL
                                     ORDER BY d.model_id, d.key_id, d.pushed_by, d.version DESC) AS l)"#,
        source,
        facts,
    );
    let known = known.fetch_one(&mut *conn).await?;
    let kept = Kept { facts_new: all - known, facts_linked: known };
    sqlx::query!(
        "INSERT INTO okt_registry.decompositions
                (source_id, model_id, version, package_sha256, bytes, fact_count, concept_count, promptset_hash, embedding_model,
                 decomposed_by, decomposed_at, pushed_by, signature, key_id, fact_keys)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        source,
        new.model_id,
        before.version.unwrap_or(0) + 1,
        new.package_sha256,
        new.bytes,
        new.fact_count,
        new.concept_count,
        new.promptset_hash,
        new.embedding_model,
        new.decomposed_by,
        new.decomposed_at,
        new.pushed_by,
        new.signature,
        new.key_id,
        facts,
    )
    .execute(conn)
    .await?;
    Ok(Some(kept))
}

/// One version of a model with all that have the same bytes, whoever pushed them, or all versions; how many that are.
#[tracing::instrument(level = "debug", name = "db.registry.withdraw", skip_all)]
pub(crate) async fn withdraw(
    conn: &mut PgConnection,
    source: Uuid,
    model: &str,
    version: Option<i32>,
    why: &str,
) -> Result<u64> {
    let done = sqlx::query!(
        "UPDATE okt_registry.decompositions SET withdrawn_at = clock_timestamp(), withdrawn_why = $4
          WHERE source_id = $1 AND model_id = $2 AND withdrawn_at IS NULL
            AND ($3::integer IS NULL
                 OR package_sha256 = (SELECT v.package_sha256 FROM okt_registry.decompositions v
                                       WHERE v.source_id = $1 AND v.model_id = $2 AND v.version = $3))",
        source,
        model,
        version,
        why,
    );
    Ok(done.execute(conn).await?.rows_affected())
}
