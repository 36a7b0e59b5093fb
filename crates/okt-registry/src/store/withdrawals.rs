//! What is not handed out any more, of packages and bundles alike.

use chrono::{DateTime, Utc};
use okt_pg::Result;
use sqlx::PgConnection;
use uuid::Uuid;

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

/// From a time on, or from after a place on, the oldest first. Consumers know a package by its bytes: one that is still handed out as
/// another one's is good, however many who pushed the same bytes were moderated.
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
                      FROM okt_registry.decompositions d
                     WHERE withdrawn_at IS NOT NULL AND ($1::timestamptz IS NULL OR withdrawn_at >= $1)
                       AND ($2::uuid IS NULL OR (withdrawn_at, source_id, model_id, version) > ($1, $2, $3, $4))
                       AND NOT EXISTS (SELECT FROM okt_registry.decompositions l
                                        WHERE l.package_sha256 = d.package_sha256 AND l.source_id = d.source_id
                                          AND l.model_id = d.model_id AND l.withdrawn_at IS NULL)
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
