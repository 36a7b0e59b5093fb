//! Rows of the registry.

use chrono::{DateTime, NaiveDate, Utc};
use okt_model::Error;
use okt_pg::Result;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::keys::Key;

/// How long a nonce is remembered: longer than a signature is accepted.
const REMEMBERED: f64 = 600.0;

pub(crate) struct KeyRow {
    pub id: String,
    pub name: String,
    pub hash: Vec<u8>,
    pub sealed: Vec<u8>,
    pub may_write: bool,
    pub daily_pushes: Option<i32>,
}

/// A key that lets somebody in.
pub(crate) struct LiveKey {
    pub id: String,
    pub hash: Vec<u8>,
    pub sealed: Vec<u8>,
    pub may_write: bool,
    pub daily_pushes: Option<i32>,
}

#[tracing::instrument(level = "debug", name = "db.registry.insert_key", skip_all)]
pub(crate) async fn insert_key(conn: &mut PgConnection, key: &KeyRow, days: Option<i32>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_registry.keys (id, name, hash, sealed, may_write, daily_pushes, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(days => $7))",
        key.id,
        key.name,
        key.hash,
        key.sealed,
        key.may_write,
        key.daily_pushes,
        days,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.registry.list_keys", skip_all)]
pub(crate) async fn list_keys(conn: &mut PgConnection) -> Result<Vec<Key>> {
    Ok(sqlx::query_as!(
        Key,
        "SELECT id, name, may_write, daily_pushes, created_at, expires_at, revoked_at FROM okt_registry.keys ORDER BY created_at, id",
    )
    .fetch_all(conn)
    .await?)
}

/// With the time that it is, in seconds since 1970. `None` if it lets nobody in.
#[tracing::instrument(level = "debug", name = "db.registry.find_key", skip_all)]
pub(crate) async fn find_key(conn: &mut PgConnection, id: &str) -> Result<Option<(LiveKey, i64)>> {
    let row = sqlx::query!(
        r#"SELECT id, hash, sealed, may_write, daily_pushes, extract(epoch FROM clock_timestamp())::bigint AS "now!"
             FROM okt_registry.keys
            WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())"#,
        id,
    );
    Ok(row.fetch_optional(conn).await?.map(|row| {
        let key = LiveKey {
            id: row.id,
            hash: row.hash,
            sealed: row.sealed,
            may_write: row.may_write,
            daily_pushes: row.daily_pushes,
        };
        (key, row.now)
    }))
}

#[tracing::instrument(level = "debug", name = "db.registry.revoke_key", skip_all)]
pub(crate) async fn revoke_key(conn: &mut PgConnection, id: &str) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_registry.keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1",
        id,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// False if it was used before.
#[tracing::instrument(level = "debug", name = "db.registry.remember_nonce", skip_all)]
pub(crate) async fn remember_nonce(conn: &mut PgConnection, key: &str, nonce: &str) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_registry.nonces (key_id, nonce, expires_at)
         VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
         ON CONFLICT (key_id, nonce) DO NOTHING",
        key,
        nonce,
        REMEMBERED,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

#[tracing::instrument(level = "debug", name = "db.registry.forget_nonces", skip_all)]
pub(crate) async fn forget_nonces(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("DELETE FROM okt_registry.nonces WHERE expires_at < clock_timestamp()")
        .execute(conn)
        .await?;
    Ok(())
}

/// Counts a push of today; false if the key has no more.
#[tracing::instrument(level = "debug", name = "db.registry.count_push", skip_all)]
pub(crate) async fn count_push(
    conn: &mut PgConnection,
    key: &str,
    bytes: i64,
    most: Option<i32>,
) -> Result<bool> {
    let counted = sqlx::query_scalar!(
        "INSERT INTO okt_registry.pushes AS p (key_id, day, count, bytes)
         SELECT $1, (clock_timestamp() AT TIME ZONE 'UTC')::date, 1, $2 WHERE $3::integer IS NULL OR $3 > 0
         ON CONFLICT (key_id, day) DO UPDATE SET count = p.count + 1, bytes = p.bytes + excluded.bytes
          WHERE $3::integer IS NULL OR p.count < $3
         RETURNING count",
        key,
        bytes,
        most,
    );
    Ok(counted.fetch_optional(conn).await?.is_some())
}

/// A source by what it is found by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub url: Option<String>,
    pub url_hash: Option<Vec<u8>>,
    pub doi: Option<String>,
    pub doi_hash: Option<Vec<u8>>,
    pub sha256: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceRow {
    pub id: Uuid,
    pub url: Option<String>,
    pub doi: Option<String>,
    pub sha256: Option<Vec<u8>>,
    pub title: Option<String>,
    pub author: Option<String>,
    pub kind: Option<String>,
    pub language: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
}

/// By the address first, then the DOI, then the hash: each is an index of its own.
#[tracing::instrument(level = "debug", name = "db.registry.find_source", skip_all)]
pub(crate) async fn find_source(conn: &mut PgConnection, names: &Names) -> Result<Option<SourceRow>> {
    let row = sqlx::query_as!(
        SourceRow,
        "SELECT s.id, s.url, s.doi, s.sha256, s.title, s.author, s.kind, s.language, s.published_at, s.created_at
           FROM (SELECT id, 1 AS rank FROM okt_registry.sources WHERE url_hash = $1
                  UNION ALL
                 SELECT id, 2 FROM okt_registry.sources WHERE doi_hash = $2
                  UNION ALL
                 SELECT id, 3 FROM okt_registry.sources WHERE sha256 = $3) AS n
           JOIN okt_registry.sources s ON s.id = n.id
          ORDER BY n.rank LIMIT 1",
        names.url_hash,
        names.doi_hash,
        names.sha256,
    );
    Ok(row.fetch_optional(conn).await?)
}

#[tracing::instrument(level = "debug", name = "db.registry.get_source", skip_all)]
pub(crate) async fn get_source(conn: &mut PgConnection, id: Uuid) -> Result<Option<SourceRow>> {
    let row = sqlx::query_as!(
        SourceRow,
        "SELECT id, url, doi, sha256, title, author, kind, language, published_at, created_at
           FROM okt_registry.sources WHERE id = $1",
        id,
    );
    Ok(row.fetch_optional(conn).await?)
}

/// From after one on, in the order in which they were made known.
#[tracing::instrument(level = "debug", name = "db.registry.list_sources", skip_all)]
pub(crate) async fn list_sources(
    conn: &mut PgConnection,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<SourceRow>> {
    let rows = sqlx::query_as!(
        SourceRow,
        "SELECT id, url, doi, sha256, title, author, kind, language, published_at, created_at
           FROM okt_registry.sources WHERE id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
          ORDER BY id LIMIT $2",
        after,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Adds it unless one of its names is known; false then.
#[tracing::instrument(level = "debug", name = "db.registry.insert_source", skip_all)]
pub(crate) async fn insert_source(
    conn: &mut PgConnection,
    names: &Names,
    source: &SourceRow,
    by: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO okt_registry.sources
                (id, url, url_hash, doi, doi_hash, sha256, title, author, kind, language, published_at, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT DO NOTHING",
        source.id,
        names.url,
        names.url_hash,
        names.doi,
        names.doi_hash,
        names.sha256,
        source.title,
        source.author,
        source.kind,
        source.language,
        source.published_at,
        by,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

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
}

/// The latest of each model that was not withdrawn.
#[tracing::instrument(level = "debug", name = "db.registry.list_decompositions", skip_all)]
pub(crate) async fn list_decompositions(
    conn: &mut PgConnection,
    source: Uuid,
) -> Result<Vec<DecompositionRow>> {
    let rows = sqlx::query_as!(
        DecompositionRow,
        "SELECT DISTINCT ON (model_id) model_id, version, package_sha256, bytes, fact_count, concept_count, promptset_hash,
                embedding_model, decomposed_by, decomposed_at, pushed_by, pushed_at, signature
           FROM okt_registry.decompositions WHERE source_id = $1 AND withdrawn_at IS NULL
          ORDER BY model_id, version DESC",
        source,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The latest of a model, and why it was withdrawn if none is left.
#[tracing::instrument(level = "debug", name = "db.registry.find_decomposition", skip_all)]
pub(crate) async fn find_decomposition(
    conn: &mut PgConnection,
    source: Uuid,
    model: &str,
) -> Result<Option<(DecompositionRow, Option<String>)>> {
    let row = sqlx::query!(
        "SELECT model_id, version, package_sha256, bytes, fact_count, concept_count, promptset_hash, embedding_model,
                decomposed_by, decomposed_at, pushed_by, pushed_at, signature, withdrawn_why
           FROM okt_registry.decompositions WHERE source_id = $1 AND model_id = $2
          ORDER BY withdrawn_at IS NOT NULL, version DESC LIMIT 1",
        source,
        model,
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
    let known = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM unnest($2::bigint[]) AS n (key)
            WHERE EXISTS (SELECT FROM okt_registry.decompositions d
                           WHERE d.source_id = $1 AND d.withdrawn_at IS NULL AND n.key = ANY (d.fact_keys))"#,
        source,
        facts,
    );
    let known = known.fetch_one(&mut *conn).await?;
    let latest = sqlx::query!(
        "SELECT version, package_sha256, withdrawn_at FROM okt_registry.decompositions
          WHERE source_id = $1 AND model_id = $2 ORDER BY version DESC LIMIT 1",
        source,
        new.model_id,
    );
    let latest = latest.fetch_optional(&mut *conn).await?;
    let all = i64::try_from(facts.len()).map_err(Error::internal)?;
    let kept = Kept { facts_new: all - known, facts_linked: known };
    let same = latest.as_ref().is_some_and(|latest| latest.package_sha256 == new.package_sha256);
    if same && latest.as_ref().is_some_and(|latest| latest.withdrawn_at.is_some()) {
        return Err(Error::Conflict("this package was withdrawn, and can't be pushed again").into());
    }
    if same {
        return Ok(Some(kept));
    }
    sqlx::query!(
        "INSERT INTO okt_registry.decompositions
                (source_id, model_id, version, package_sha256, bytes, fact_count, concept_count, promptset_hash, embedding_model,
                 decomposed_by, decomposed_at, pushed_by, signature, fact_keys)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        source,
        new.model_id,
        latest.map_or(1, |latest| latest.version + 1),
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
        facts,
    )
    .execute(conn)
    .await?;
    Ok(Some(kept))
}

/// The latest of a model.
#[tracing::instrument(level = "debug", name = "db.registry.withdraw", skip_all)]
pub(crate) async fn withdraw(conn: &mut PgConnection, source: Uuid, model: &str, why: &str) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_registry.decompositions SET withdrawn_at = clock_timestamp(), withdrawn_why = $3
          WHERE source_id = $1 AND model_id = $2 AND withdrawn_at IS NULL
            AND version = (SELECT max(version) FROM okt_registry.decompositions
                            WHERE source_id = $1 AND model_id = $2 AND withdrawn_at IS NULL)",
        source,
        model,
        why,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// All that a key has pushed: how many packages and bundles.
#[tracing::instrument(level = "debug", name = "db.registry.withdraw_all_of", skip_all)]
pub(crate) async fn withdraw_all_of(conn: &mut PgConnection, key: &str, why: &str) -> Result<(u64, u64)> {
    let done = sqlx::query!(
        "UPDATE okt_registry.decompositions SET withdrawn_at = clock_timestamp(), withdrawn_why = $2
          WHERE pushed_by = $1 AND withdrawn_at IS NULL",
        key,
        why,
    );
    let packages = done.execute(&mut *conn).await?.rows_affected();
    let done = sqlx::query!(
        "UPDATE okt_registry.graphs SET withdrawn_at = clock_timestamp(), withdrawn_why = $2
          WHERE owner = $1 AND withdrawn_at IS NULL",
        key,
        why,
    );
    Ok((packages, done.execute(conn).await?.rows_affected()))
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

/// A package or a bundle that is not handed out any more.
pub(crate) struct WithdrawalRow {
    /// Of the source of a package, or of the bundle.
    pub id: Uuid,
    /// None for a bundle.
    pub model_id: Option<String>,
    pub version: Option<i32>,
    pub sha256: String,
    pub withdrawn_at: DateTime<Utc>,
    pub why: String,
}

/// A place in the list of withdrawals: when, of what, of which model, and in which version.
pub(crate) type WithdrawalPlace = (DateTime<Utc>, Uuid, String, i32);

/// From a time on, or from after a place on, the oldest first.
#[tracing::instrument(level = "debug", name = "db.registry.list_withdrawals", skip_all)]
pub(crate) async fn list_withdrawals(
    conn: &mut PgConnection,
    since: Option<DateTime<Utc>>,
    after: Option<WithdrawalPlace>,
    limit: i64,
) -> Result<Vec<WithdrawalRow>> {
    let from = after.as_ref().map(|after| after.0).max(since);
    let (id, model, version) = match after {
        Some((_, id, model, version)) => (Some(id), Some(model), Some(version)),
        None => (None, None, None),
    };
    let rows = sqlx::query_as!(
        WithdrawalRow,
        r#"SELECT n.id AS "id!", n.model_id, n.version, n.sha256 AS "sha256!", n.withdrawn_at AS "withdrawn_at!", n.why AS "why!"
             FROM ((SELECT source_id AS id, model_id, version, encode(package_sha256, 'hex') AS sha256, withdrawn_at,
                           coalesce(withdrawn_why, '') AS why
                      FROM okt_registry.decompositions
                     WHERE withdrawn_at IS NOT NULL AND ($1::timestamptz IS NULL OR withdrawn_at >= $1)
                       AND ($2::uuid IS NULL OR (withdrawn_at, source_id, model_id, version) > ($1, $2, $3, $4))
                     ORDER BY withdrawn_at, source_id, model_id, version LIMIT $5)
                    UNION ALL
                   (SELECT id, NULL, NULL, sha256, withdrawn_at, coalesce(withdrawn_why, '')
                      FROM okt_registry.graphs
                     WHERE withdrawn_at IS NOT NULL AND ($1::timestamptz IS NULL OR withdrawn_at >= $1)
                       AND ($2::uuid IS NULL OR (withdrawn_at, id, ''::text, 0) > ($1, $2, $3, $4))
                     ORDER BY withdrawn_at, id LIMIT $5)) AS n
            ORDER BY n.withdrawn_at, n.id, coalesce(n.model_id, ''), coalesce(n.version, 0) LIMIT $5"#,
        from,
        id,
        model,
        version,
        limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

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

/// Adds it unless one of this name and hash is there: its id, and whether it is new.
#[tracing::instrument(level = "debug", name = "db.registry.insert_graph", skip_all)]
pub(crate) async fn insert_graph(conn: &mut PgConnection, graph: &GraphRow) -> Result<(Uuid, bool)> {
    let row = sqlx::query!(
        r#"WITH added AS (
               INSERT INTO okt_registry.graphs
                      (id, name, description, tags, sha256, schema_version, source_count, fact_count, concept_count,
                       file_sha256, bytes, owner, signature)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
               ON CONFLICT (name, sha256) DO NOTHING RETURNING id)
           SELECT id AS "id!", true AS "new!", false AS "withdrawn!" FROM added
            UNION ALL
           SELECT id, false, withdrawn_at IS NOT NULL FROM okt_registry.graphs WHERE name = $2 AND sha256 = $5 LIMIT 1"#,
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
    );
    let row =
        row.fetch_optional(conn).await?.ok_or(Error::Overloaded("the same bundle is just being pushed"))?;
    if row.withdrawn {
        return Err(Error::Conflict("this bundle was withdrawn, and can't be pushed again").into());
    }
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

/// The hash of its file, and whether another bundle is the same file. `None` if it is not this owner's.
#[tracing::instrument(level = "debug", name = "db.registry.delete_graph", skip_all)]
pub(crate) async fn delete_graph(
    conn: &mut PgConnection,
    id: Uuid,
    owner: &str,
) -> Result<Option<(Vec<u8>, bool)>> {
    let gone = sqlx::query_scalar!(
        "DELETE FROM okt_registry.graphs WHERE id = $1 AND owner = $2 RETURNING file_sha256",
        id,
        owner,
    );
    let Some(file) = gone.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let used = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_registry.graphs WHERE file_sha256 = $1) AS "used!""#,
        file,
    );
    let used = used.fetch_one(conn).await?;
    Ok(Some((file, used)))
}
