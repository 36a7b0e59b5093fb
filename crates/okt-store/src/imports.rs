//! Rows of `okt_repository.imports`: what came from elsewhere, and from whom. They are written by whoever takes it in.

mod revoking;

use chrono::{DateTime, Utc};
use okt_model::{ContentHash, ImportOrigin, RepositoryId, SourceId};
use sqlx::PgConnection;

use crate::facts::hash;
use crate::words::word;
use okt_pg::Result;

pub use revoking::{AT_ONCE, Part, Revocable, SOURCES, list_of_key, revoke, revoke_all};

/// As a query has it; without a kind, it is no import's.
pub(crate) struct OriginRow {
    pub kind: Option<String>,
    pub registry: Option<String>,
    pub key_id: Option<String>,
    pub pushed_by: Option<String>,
    pub sha256: Option<Vec<u8>>,
    pub imported_at: Option<DateTime<Utc>>,
    pub withdrawn_at: Option<DateTime<Utc>>,
    pub withdrawn_why: Option<String>,
}

impl OriginRow {
    pub(crate) fn read(self) -> Result<Option<ImportOrigin>> {
        let (Some(kind), Some(sha256), Some(imported_at)) = (self.kind, self.sha256, self.imported_at) else {
            return Ok(None);
        };
        Ok(Some(ImportOrigin {
            kind: word("imports.kind", &kind)?,
            registry: self.registry,
            key_id: self.key_id,
            pushed_by: self.pushed_by,
            sha256: hash(&sha256)?,
            imported_at,
            withdrawn: self.withdrawn_at.map(|at| (at, self.withdrawn_why.unwrap_or_default())),
        }))
    }
}

/// Where a source, or what it says, came from; `None` if it was read here.
#[tracing::instrument(level = "debug", name = "db.imports.find_of_source", skip_all, fields(source.id = %source))]
pub async fn find_of_source(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: SourceId,
) -> Result<Option<ImportOrigin>> {
    let row = sqlx::query_as!(
        OriginRow,
        r#"SELECT i.kind AS "kind?", i.registry, i.key_id, i.pushed_by, i.sha256 AS "sha256?", i.imported_at AS "imported_at?",
                  i.withdrawn_at, i.withdrawn_why
             FROM okt_repository.sources s
             JOIN okt_repository.imports i ON i.repository_id = $1 AND i.no = s.import_no
            WHERE s.repository_id = $1 AND s.id = $2"#,
        repository.uuid(),
        source.uuid(),
    );
    match row.fetch_optional(conn).await? {
        Some(row) => row.read(),
        None => Ok(None),
    }
}

/// What a registry does not hand out any more.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    /// What the registry calls the source or the bundle.
    pub item: String,
    /// Of a package.
    pub model: Option<String>,
    pub sha256: ContentHash,
    pub at: DateTime<Utc>,
    pub why: String,
}

/// Notes that these were withdrawn, where they were imported from this registry; how many imports.
#[tracing::instrument(level = "debug", name = "db.imports.mark_withdrawn", skip_all)]
pub async fn mark_withdrawn(
    conn: &mut PgConnection,
    repository: RepositoryId,
    registry: &str,
    withdrawn: &[Withdrawal],
) -> Result<u64> {
    let hashes: Vec<Vec<u8>> = withdrawn.iter().map(|one| one.sha256.0.to_vec()).collect();
    let items: Vec<String> = withdrawn.iter().map(|one| one.item.clone()).collect();
    let models: Vec<Option<String>> = withdrawn.iter().map(|one| one.model.clone()).collect();
    let times: Vec<DateTime<Utc>> = withdrawn.iter().map(|one| one.at).collect();
    let reasons: Vec<String> = withdrawn.iter().map(|one| one.why.clone()).collect();
    let done = sqlx::query!(
        // The same bytes may stand for another source, and the same graph under another name: these were not withdrawn.
        "UPDATE okt_repository.imports i SET withdrawn_at = n.at, withdrawn_why = n.why
           FROM (SELECT DISTINCT ON (hash, item, model) hash, item, model, at, why
                   FROM unnest($3::bytea[], $4::text[], $5::text[], $6::timestamptz[], $7::text[]) AS n (hash, item, model, at, why)
                  ORDER BY hash, item, model, at) AS n
          WHERE i.repository_id = $1 AND i.registry = $2 AND i.sha256 = n.hash AND i.registry_item = n.item
            AND (i.kind = 'bundle' OR i.model = n.model) AND i.withdrawn_at IS NULL",
        repository.uuid(),
        registry,
        &hashes,
        &items,
        &models as &[Option<String>],
        &times,
        &reasons,
    );
    Ok(done.execute(conn).await?.rows_affected())
}
