//! Rows of `okt_repository.report_facts`: facts that changed since reports were compared with them. The database notes them itself
//! (migration 0034), whoever changes a fact.

use std::collections::{BTreeMap, HashSet};

use okt_model::{FactId, FactStatus, RepositoryId, UnitKind};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::repository_locks::{self, RepositoryLock};
use crate::words::word;
use okt_pg::Result;

/// A fact that changed, and how it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedFact {
    pub no: i64,
    /// `None` if it is gone.
    pub now: Option<FactNow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FactNow {
    pub id: FactId,
    pub text: String,
    pub status: FactStatus,
    /// Of its first source.
    pub language: Option<String>,
}

/// Whether any fact changed.
#[tracing::instrument(level = "debug", name = "db.report_facts.is_any", skip_all)]
pub async fn is_any(conn: &mut PgConnection, repository: RepositoryId) -> Result<bool> {
    let any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.report_facts WHERE repository_id = $1) AS "is!""#,
        repository.uuid(),
    );
    Ok(any.fetch_one(conn).await?)
}

/// The facts of the oldest entries, each once, and the entries.
#[tracing::instrument(level = "debug", name = "db.report_facts.list", skip_all)]
pub async fn list(
    conn: &mut PgConnection,
    repository: RepositoryId,
    limit: i64,
) -> Result<(Vec<ChangedFact>, Vec<i64>)> {
    let rows = sqlx::query!(
        r#"SELECT c.no AS "entry!", c.fact_no AS "no!", f.id AS "id?", f.text AS "text?", f.status AS "status?",
                  -- As in search, where claims look for facts.
                  (SELECT coalesce(u.language, s.language) FROM okt_repository.fact_sources l
                     JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
                     LEFT JOIN okt_repository.search_units u
                            ON u.repository_id = $1 AND u.kind = $3 AND u.no = l.source_no
                    WHERE l.repository_id = $1 AND l.fact_no = f.no ORDER BY l.source_no LIMIT 1) AS language
             FROM (SELECT no, fact_no FROM okt_repository.report_facts
                    WHERE repository_id = $1 ORDER BY no LIMIT $2) AS c
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = c.fact_no
            ORDER BY c.no"#,
        repository.uuid(),
        limit,
        UnitKind::Source.number(),
    );
    let (mut changed, mut entries) = (BTreeMap::new(), Vec::new());
    for row in rows.fetch_all(conn).await? {
        entries.push(row.entry);
        let now = match (row.id, row.text, row.status) {
            (Some(id), Some(text), Some(status)) => {
                let status = word("facts.status", &status)?;
                Some(FactNow { id: Uuid::into(id), text, status, language: row.language })
            }
            _ => None,
        };
        changed.entry(row.no).or_insert(ChangedFact { no: row.no, now });
    }
    Ok((changed.into_values().collect(), entries))
}

/// Notes the facts of a source once more, if there are reports: they are found by their words only now.
#[tracing::instrument(level = "debug", name = "db.report_facts.note_source", skip_all)]
pub async fn note_source(conn: &mut PgConnection, repository: RepositoryId, source: i64) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_repository.report_facts (repository_id, fact_no)
         SELECT $1, l.fact_no FROM okt_repository.fact_sources l
          WHERE l.repository_id = $1 AND l.source_no = $2
            AND EXISTS (SELECT FROM okt_repository.reports r WHERE r.repository_id = $1)",
        repository.uuid(),
        source,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Until the end of the transaction no claim is settled by what was known of facts before.
#[tracing::instrument(level = "debug", name = "db.report_facts.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::hold(conn, repository, RepositoryLock::Claims).await
}

/// Until the end of the transaction nobody marks the claims that changed facts concern: what a claim is settled by is marked later, if
/// it changes after it was looked at. Before a report is held.
#[tracing::instrument(level = "debug", name = "db.report_facts.share", skip_all)]
pub async fn share(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    repository_locks::share(conn, repository, RepositoryLock::Claims).await
}

/// Those of these facts that do not stand by themselves.
#[tracing::instrument(level = "debug", name = "db.report_facts.list_gone", skip_all)]
pub async fn list_gone(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
) -> Result<HashSet<i64>> {
    let gone = sqlx::query_scalar!(
        r#"SELECT n.no AS "no!" FROM unnest($2::bigint[]) AS n (no)
             LEFT JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.no
            WHERE f.no IS NULL OR f.status NOT IN ('new', 'stable')"#,
        repository.uuid(),
        facts,
    );
    Ok(gone.fetch_all(conn).await?.into_iter().collect())
}

/// These entries were seen to.
#[tracing::instrument(level = "debug", name = "db.report_facts.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, entries: &[i64]) -> Result<()> {
    sqlx::query!(
        "DELETE FROM okt_repository.report_facts WHERE repository_id = $1 AND no = ANY ($2)",
        repository.uuid(),
        entries,
    )
    .execute(conn)
    .await?;
    Ok(())
}
