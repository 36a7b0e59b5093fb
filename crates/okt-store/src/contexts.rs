//! Rows of `okt_repository.contexts`: what concepts may be filed under.
//!
//! Whoever files a new concept counts it in the row of its context first. So whoever holds that row knows that nothing
//! comes in meanwhile: that is how a context is emptied into another one without losing what is just being written.

use okt_model::{Context, Error, RepositoryId};
use sqlx::PgConnection;

use okt_pg::Result;

/// A context that is to be.
#[derive(Clone, Debug)]
pub struct NewContext {
    pub label: String,
    pub description: String,
    pub ontology_class: Option<String>,
}

/// A context with its number.
#[derive(Clone, Debug)]
pub struct Numbered {
    pub no: i64,
    pub context: Context,
    /// Whether another one is becoming a part of it.
    pub receives: bool,
}

/// Adds those that are not there yet; returns how many.
#[tracing::instrument(level = "debug", name = "db.contexts.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    contexts: &[NewContext],
) -> Result<u64> {
    let labels: Vec<String> = contexts.iter().map(|context| context.label.clone()).collect();
    let descriptions: Vec<String> = contexts.iter().map(|context| context.description.clone()).collect();
    let classes: Vec<Option<String>> =
        contexts.iter().map(|context| context.ontology_class.clone()).collect();
    let done = sqlx::query!(
        "INSERT INTO okt_repository.contexts (repository_id, label, description, ontology_class)
         SELECT $1, c.label, c.description, c.ontology_class
           FROM unnest($2::text[], $3::text[], $4::text[]) AS c (label, description, ontology_class)
         ON CONFLICT (repository_id, lower(label)) DO NOTHING",
        repository.uuid(),
        &labels,
        &descriptions,
        &classes as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// All of a repository, by label.
#[tracing::instrument(level = "debug", name = "db.contexts.list", skip_all)]
pub async fn list(conn: &mut PgConnection, repository: RepositoryId) -> Result<Vec<Context>> {
    Ok(sqlx::query_as!(
        Context,
        r#"SELECT c.label, c.description, c.ontology_class, c.concept_count, t.label AS "merging_into?"
             FROM okt_repository.contexts c
             LEFT JOIN okt_repository.contexts t
               ON t.repository_id = c.repository_id AND t.no = c.merging_into
            WHERE c.repository_id = $1
            ORDER BY lower(c.label)"#,
        repository.uuid(),
    )
    .fetch_all(conn)
    .await?)
}

/// How many there are.
#[tracing::instrument(level = "debug", name = "db.contexts.count", skip_all)]
pub async fn count(conn: &mut PgConnection, repository: RepositoryId) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM okt_repository.contexts WHERE repository_id = $1"#,
        repository.uuid(),
    )
    .fetch_one(conn)
    .await?)
}

/// Nobody files anything new under these labels, whatever their case, until the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.contexts.hold", skip_all)]
pub async fn hold(conn: &mut PgConnection, repository: RepositoryId, labels: &[&str]) -> Result<()> {
    let keys: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    // In the one order in which they are held anywhere, or two would wait for each other.
    sqlx::query!(
        "SELECT no FROM okt_repository.contexts
          WHERE repository_id = $1 AND lower(label) = ANY (SELECT lower(l) FROM unnest($2::text[]) AS l)
          ORDER BY no FOR UPDATE",
        repository.uuid(),
        &keys,
    )
    .fetch_all(conn)
    .await?;
    Ok(())
}

/// The context of this label, whatever its case. Whoever wants to rely on it holds it first, by a statement of its own: only
/// the next one sees what was done by whom it waited for.
#[tracing::instrument(level = "debug", name = "db.contexts.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    label: &str,
) -> Result<Option<Numbered>> {
    let row = sqlx::query!(
        r#"SELECT c.no, c.label, c.description, c.ontology_class, c.concept_count,
                  (SELECT t.label FROM okt_repository.contexts t
                    WHERE t.repository_id = $1 AND t.no = c.merging_into) AS merging_into,
                  EXISTS (SELECT FROM okt_repository.contexts s
                           WHERE s.repository_id = $1 AND s.merging_into = c.no) AS "receives!"
             FROM okt_repository.contexts c
            WHERE c.repository_id = $1 AND lower(c.label) = lower($2)"#,
        repository.uuid(),
        label,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Numbered {
        no: row.no,
        context: Context {
            label: row.label,
            description: row.description,
            ontology_class: row.ontology_class,
            concept_count: row.concept_count,
            merging_into: row.merging_into,
        },
        receives: row.receives,
    }))
}

/// How many concepts are filed there; `None` when there is no such context.
#[tracing::instrument(level = "debug", name = "db.contexts.size", skip_all)]
pub async fn size(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<Option<i64>> {
    Ok(sqlx::query_scalar!(
        "SELECT concept_count FROM okt_repository.contexts WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
    )
    .fetch_optional(conn)
    .await?)
}

/// Changes what is given; false when there is no such context.
#[tracing::instrument(level = "debug", name = "db.contexts.update", skip_all)]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    no: i64,
    label: Option<&str>,
    description: Option<&str>,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.contexts
            SET label = coalesce($3, label), description = coalesce($4, description)
          WHERE repository_id = $1 AND no = $2",
        repository.uuid(),
        no,
        label,
        description,
    )
    .execute(conn)
    .await
    .map_err(|error| match error.as_database_error().and_then(|error| error.constraint()) {
        Some("contexts_label_key") => okt_pg::Error(Error::AlreadyExists("a context with this label")),
        _ => error.into(),
    })?;
    Ok(done.rows_affected() == 1)
}

/// Nothing new is filed there any more, but in the other one.
#[tracing::instrument(level = "debug", name = "db.contexts.mark_merging", skip_all)]
pub async fn mark_merging(
    conn: &mut PgConnection,
    repository: RepositoryId,
    source: i64,
    target: i64,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.contexts SET merging_into = $3
          WHERE repository_id = $1 AND no = $2 AND merging_into IS NULL",
        repository.uuid(),
        source,
        target,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// False when there is none, or concepts are filed there.
#[tracing::instrument(level = "debug", name = "db.contexts.delete", skip_all)]
pub async fn delete(conn: &mut PgConnection, repository: RepositoryId, no: i64) -> Result<bool> {
    let gone = sqlx::query_scalar!(
        "WITH gone AS (
             DELETE FROM okt_repository.contexts x
              WHERE x.repository_id = $1 AND x.no = $2 AND x.concept_count = 0
                -- One that was merged comes back to its context when the merge is undone.
                AND NOT EXISTS (SELECT FROM okt_repository.concepts c
                                 WHERE c.repository_id = $1 AND c.context_no = $2 AND c.merged_into IS NOT NULL)
              RETURNING x.no),
         -- Nobody files anything there any more.
         former AS (DELETE FROM okt_repository.former_names f USING gone g
                     WHERE f.repository_id = $1 AND f.context_no = g.no)
         SELECT no FROM gone",
        repository.uuid(),
        no,
    )
    .fetch_optional(conn)
    .await?;
    Ok(gone.is_some())
}
