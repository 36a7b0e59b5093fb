//! Rows of `okt_repository.concept_syntheses`: what a name means, over all its contexts, in a text that cites facts. Each new one
//! is a version; the latest holds, and a few before it are kept.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use okt_model::{ConceptId, ContentHash, FactId, ImageId, RepositoryId, SourceId, SubjectKind, SummaryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::concept_summaries::SliceFact;
use crate::facts::hash;
use crate::repository_locks::{self, RepositoryLock};
use okt_pg::Result;

/// Versions of a name that are kept.
pub const VERSIONS: i32 = 20;

/// A version as it is written.
#[derive(Clone, Debug)]
pub struct NewSynthesis {
    pub name: String,
    pub content: String,
    pub model: String,
    pub promptset_hash: ContentHash,
    pub question: ContentHash,
    pub inputs: ContentHash,
    pub dropped: i32,
    pub summaries: Vec<SummaryId>,
    pub concepts: Vec<ConceptId>,
    pub facts: Vec<FactId>,
    pub images: Vec<(SourceId, ImageId)>,
}

/// A version as it is read.
#[derive(Clone, Debug)]
pub struct Synthesis {
    pub version: i32,
    pub name: String,
    pub content: String,
    pub model: String,
    pub promptset_hash: ContentHash,
    pub inputs: ContentHash,
    pub dropped: i32,
    pub summaries: Vec<SummaryId>,
    pub concepts: Vec<ConceptId>,
    pub facts: Vec<FactId>,
    /// Those that are there by now.
    pub images: Vec<(SourceId, ImageId)>,
    pub created_at: DateTime<Utc>,
    pub checked_at: DateTime<Utc>,
}

/// A version without its text.
#[derive(Clone, Debug)]
pub struct SynthesisVersion {
    pub version: i32,
    pub model: String,
    pub created_at: DateTime<Utc>,
}

/// A version that cites facts or shows images which are deleted, with those that are left.
#[derive(Clone, Debug)]
pub struct TornSynthesis {
    pub version: i32,
    pub content: String,
    pub facts: Vec<FactId>,
    pub images: Vec<(SourceId, ImageId)>,
}

/// An image that a covered fact rests on.
#[derive(Clone, Debug)]
pub struct CoveredImage {
    pub fact: i64,
    pub fact_text: String,
    pub source: SourceId,
    pub source_title: Option<String>,
    pub image: ImageId,
    pub alt_text: Option<String>,
    pub page: Option<i32>,
}

/// A version of a name, or the latest one.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.find", skip_all)]
pub async fn find(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    version: Option<i32>,
) -> Result<Option<Synthesis>> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT s.version, s.canonical_name, s.content, s.model, s.promptset_hash, s.inputs, s.dropped, s.summaries,
                  s.concepts, s.facts, n.images AS "images!", n.sources AS "image_sources!", s.created_at, s.checked_at
             FROM okt_repository.concept_syntheses s
            CROSS JOIN LATERAL (SELECT coalesce(array_agg(i.id ORDER BY w.at), '{}') AS images,
                                       coalesce(array_agg(i.source_id ORDER BY w.at), '{}') AS sources
                                  FROM unnest(s.image_sources, s.images) WITH ORDINALITY AS w (source, id, at)
                                  JOIN okt_repository.source_images i
                                    ON i.repository_id = $1 AND i.source_id = w.source AND i.id = w.id) AS n
            WHERE s.repository_id = $1 AND s.name_key = $2 AND ($3::integer IS NULL OR s.version = $3)
            ORDER BY s.version DESC LIMIT 1"#,
        repository.uuid(),
        name,
        version,
    );
    row.fetch_optional(conn).await?.map(TryInto::try_into).transpose()
}

/// The versions of a name that are kept, the latest first.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.list_versions", skip_all)]
pub async fn list_versions(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
) -> Result<Vec<SynthesisVersion>> {
    let rows = sqlx::query_as!(
        SynthesisVersion,
        "SELECT version, model, created_at FROM okt_repository.concept_syntheses
          WHERE repository_id = $1 AND name_key = $2 ORDER BY version DESC",
        repository.uuid(),
        name,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// The latest texts of names, which are given as names are compared.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.list_latest", skip_all)]
pub async fn list_latest(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[String],
) -> Result<HashMap<String, String>> {
    let rows = sqlx::query!(
        r#"SELECT n.key AS "key!", s.content
             FROM (SELECT DISTINCT unnest($2::text[]) AS key) AS n
            CROSS JOIN LATERAL (SELECT o.content FROM okt_repository.concept_syntheses o
                                 WHERE o.repository_id = $1 AND o.name_key = n.key
                                 ORDER BY o.version DESC LIMIT 1) AS s"#,
        repository.uuid(),
        names,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.key, row.content)).collect())
}

/// Whether a slice of a name was written after its latest version was last looked at.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.is_stale", skip_all)]
pub async fn is_stale(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    checked_at: DateTime<Utc>,
) -> Result<bool> {
    let stale = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM okt_repository.concepts c
                            JOIN okt_repository.concept_summaries s ON s.repository_id = $1 AND s.concept_no = c.no
                           WHERE c.repository_id = $1 AND c.name_key = $2 AND c.merged_into IS NULL
                             AND (s.written < s.revision OR s.written_at > $3)) AS "stale!""#,
        repository.uuid(),
        name,
        checked_at,
    );
    Ok(stale.fetch_one(conn).await?)
}

/// Adds a version and removes those that are too old; returns its number. Nobody else adds one of this name meanwhile.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    key: &str,
    new: &NewSynthesis,
) -> Result<i32> {
    hold(conn, repository, key).await?;
    let version = sqlx::query_scalar!(
        "INSERT INTO okt_repository.concept_syntheses
                (repository_id, name_key, version, canonical_name, content, model, promptset_hash, question, inputs, dropped,
                 summaries, concepts, facts, images, image_sources)
         SELECT $1, $2, 1 + coalesce(max(o.version), 0), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
           FROM okt_repository.concept_syntheses o WHERE o.repository_id = $1 AND o.name_key = $2
         RETURNING version",
        repository.uuid(),
        key,
        new.name,
        new.content,
        new.model,
        new.promptset_hash.0.as_slice(),
        new.question.0.as_slice(),
        new.inputs.0.as_slice(),
        new.dropped,
        &new.summaries.iter().map(|id| id.uuid()).collect::<Vec<Uuid>>(),
        &new.concepts.iter().map(|id| id.uuid()).collect::<Vec<Uuid>>(),
        &new.facts.iter().map(|id| id.uuid()).collect::<Vec<Uuid>>(),
        &new.images.iter().map(|(_, id)| id.uuid()).collect::<Vec<Uuid>>(),
        &new.images.iter().map(|(source, _)| source.uuid()).collect::<Vec<Uuid>>(),
    );
    let version = version.fetch_one(&mut *conn).await?;
    sqlx::query!(
        "DELETE FROM okt_repository.concept_syntheses WHERE repository_id = $1 AND name_key = $2 AND version <= $3",
        repository.uuid(),
        key,
        version - VERSIONS,
    )
    .execute(conn)
    .await?;
    Ok(version)
}

/// What the latest version was made of is still the same.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.note_unchanged", skip_all)]
pub async fn note_unchanged(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    version: i32,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE okt_repository.concept_syntheses SET checked_at = clock_timestamp()
          WHERE repository_id = $1 AND name_key = $2 AND version = $3",
        repository.uuid(),
        name,
        version,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// The versions of a name that cite facts or show images which are deleted.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.list_torn", skip_all)]
pub async fn list_torn(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
) -> Result<Vec<TornSynthesis>> {
    let rows = sqlx::query!(
        r#"SELECT s.version, s.content, n.facts AS "facts!: Vec<Uuid>", m.images AS "images!", m.sources AS "sources!"
             FROM okt_repository.concept_syntheses s
            CROSS JOIN LATERAL (SELECT ARRAY(SELECT f.id FROM unnest(s.facts) AS w (id)
                                               JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = w.id)
                                       AS facts) AS n
            CROSS JOIN LATERAL (SELECT coalesce(array_agg(i.id ORDER BY w.at), '{}') AS images,
                                       coalesce(array_agg(i.source_id ORDER BY w.at), '{}') AS sources
                                  FROM unnest(s.image_sources, s.images) WITH ORDINALITY AS w (source, id, at)
                                  JOIN okt_repository.source_images i
                                    ON i.repository_id = $1 AND i.source_id = w.source AND i.id = w.id) AS m
            WHERE s.repository_id = $1 AND s.name_key = $2
              AND (cardinality(n.facts) < cardinality(s.facts) OR cardinality(m.images) < cardinality(s.images))"#,
        repository.uuid(),
        name,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| TornSynthesis {
            version: row.version,
            content: row.content,
            facts: row.facts.into_iter().map(FactId::from).collect(),
            images: pairs(row.sources, row.images),
        })
        .collect())
}

/// Stores what is left of a version.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.mend", skip_all)]
pub async fn mend(
    conn: &mut PgConnection,
    repository: RepositoryId,
    name: &str,
    left: &TornSynthesis,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_repository.concept_syntheses SET content = $4, facts = $5, images = $6, image_sources = $7
          WHERE repository_id = $1 AND name_key = $2 AND version = $3",
        repository.uuid(),
        name,
        left.version,
        left.content,
        &left.facts.iter().map(|id| id.uuid()).collect::<Vec<Uuid>>(),
        &left.images.iter().map(|(_, id)| id.uuid()).collect::<Vec<Uuid>>(),
        &left.images.iter().map(|(source, _)| source.uuid()).collect::<Vec<Uuid>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Those of these facts that are there and that nobody has rejected, in the order of their numbers.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.list_facts", skip_all)]
pub async fn list_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[FactId],
) -> Result<Vec<SliceFact>> {
    let facts: Vec<Uuid> = facts.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        "SELECT f.no, f.id, f.text, f.source_count
           FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
          WHERE f.status <> 'rejected'
          ORDER BY f.no",
        repository.uuid(),
        &facts,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| SliceFact {
            no: row.no,
            id: row.id.into(),
            text: row.text,
            source_count: row.source_count,
        })
        .collect())
}

/// Forgets all that models have answered about the concepts of a name; returns how much.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.forget_answers", skip_all)]
pub async fn forget_answers(conn: &mut PgConnection, repository: RepositoryId, name: &str) -> Result<u64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.model_answers a USING okt_repository.concepts c
          WHERE c.repository_id = $1 AND c.name_key = $2
            AND a.repository_id = $1 AND a.subject_id = c.id AND a.subject_kind = $3",
        repository.uuid(),
        name,
        SubjectKind::Concept.as_str(),
    );
    Ok(gone.execute(conn).await?.rows_affected())
}

/// Keeps a name from being given up until the end of the transaction: nobody renames or merges a concept that has it. False if
/// there is none. Before facts are held.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.hold_name", skip_all)]
pub async fn hold_name(conn: &mut PgConnection, repository: RepositoryId, name: &str) -> Result<bool> {
    let held = sqlx::query_scalar!(
        "SELECT no FROM okt_repository.concepts
          WHERE repository_id = $1 AND name_key = $2 AND merged_into IS NULL ORDER BY no LIMIT 1 FOR KEY SHARE",
        repository.uuid(),
        name,
    );
    Ok(held.fetch_optional(conn).await?.is_some())
}

/// Holds facts that are about to be cited; false if one of them is gone or was rejected.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.hold_cited", skip_all)]
pub async fn hold_cited(conn: &mut PgConnection, repository: RepositoryId, facts: &[FactId]) -> Result<bool> {
    let facts: Vec<Uuid> = facts.iter().map(|id| id.uuid()).collect();
    let there = sqlx::query_scalar!(
        "SELECT f.no FROM okt_repository.facts f
          WHERE f.repository_id = $1 AND f.id = ANY ($2) AND f.status <> 'rejected'
          ORDER BY f.content_hash
            FOR KEY SHARE OF f",
        repository.uuid(),
        &facts,
    );
    Ok(there.fetch_all(conn).await?.len() == facts.len())
}

/// Removes all versions of a name.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.remove", skip_all)]
pub async fn remove(conn: &mut PgConnection, repository: RepositoryId, name: &str) -> Result<u64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.concept_syntheses WHERE repository_id = $1 AND name_key = $2",
        repository.uuid(),
        name,
    );
    Ok(gone.execute(conn).await?.rows_affected())
}

/// Removes all versions of those of these names that no concept has any more.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.remove_unnamed", skip_all)]
pub async fn remove_unnamed(
    conn: &mut PgConnection,
    repository: RepositoryId,
    names: &[&str],
) -> Result<u64> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.concept_syntheses s
          WHERE s.repository_id = $1 AND s.name_key = ANY ($2)
            AND NOT EXISTS (SELECT FROM okt_repository.concepts c
                             WHERE c.repository_id = $1 AND c.name_key = s.name_key AND c.merged_into IS NULL)",
        repository.uuid(),
        &names,
    );
    Ok(gone.execute(conn).await?.rows_affected())
}

/// The images that facts rest on, which are given by their numbers; each once, those of facts that come first first.
#[tracing::instrument(level = "debug", name = "db.concept_syntheses.list_images", skip_all)]
pub async fn list_images(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    limit: i64,
) -> Result<Vec<CoveredImage>> {
    let rows = sqlx::query!(
        r#"SELECT n.no AS "no!", n.text AS "text!", n.source AS "source!", n.title, n.image AS "image!", n.alt_text,
                  n.page_number
             FROM (SELECT DISTINCT ON (i.id) f.no, f.text, s.id AS source, s.title, i.id AS image, i.alt_text, i.page_number
                     FROM okt_repository.facts f
                     JOIN okt_repository.fact_sources l
                       ON l.repository_id = $1 AND l.fact_no = f.no AND l.image_id IS NOT NULL
                     JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
                     JOIN okt_repository.source_images i
                       ON i.repository_id = $1 AND i.source_id = s.id AND i.id = l.image_id AND i.sha256 IS NOT NULL
                    WHERE f.repository_id = $1 AND f.no = ANY ($2) AND f.kind = 'image'
                    ORDER BY i.id, f.no) AS n
            ORDER BY n.no, n.image
            LIMIT $3"#,
        repository.uuid(),
        facts,
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| CoveredImage {
            fact: row.no,
            fact_text: row.text,
            source: row.source.into(),
            source_title: row.title,
            image: row.image.into(),
            alt_text: row.alt_text,
            page: row.page_number,
        })
        .collect())
}

/// Nobody else writes a version of this name until the end of the transaction.
async fn hold(conn: &mut PgConnection, repository: RepositoryId, key: &str) -> Result<()> {
    repository_locks::hold_of(conn, repository, RepositoryLock::Syntheses, key).await
}

fn pairs(sources: Vec<Uuid>, images: Vec<Uuid>) -> Vec<(SourceId, ImageId)> {
    sources.into_iter().map(Into::into).zip(images.into_iter().map(Into::into)).collect()
}

struct Row {
    version: i32,
    canonical_name: String,
    content: String,
    model: String,
    promptset_hash: Vec<u8>,
    inputs: Vec<u8>,
    dropped: i32,
    summaries: Vec<Uuid>,
    concepts: Vec<Uuid>,
    facts: Vec<Uuid>,
    images: Vec<Uuid>,
    image_sources: Vec<Uuid>,
    created_at: DateTime<Utc>,
    checked_at: DateTime<Utc>,
}

impl TryFrom<Row> for Synthesis {
    type Error = okt_pg::Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            version: row.version,
            name: row.canonical_name,
            content: row.content,
            model: row.model,
            promptset_hash: hash(&row.promptset_hash)?,
            inputs: hash(&row.inputs)?,
            dropped: row.dropped,
            summaries: row.summaries.into_iter().map(Into::into).collect(),
            concepts: row.concepts.into_iter().map(Into::into).collect(),
            facts: row.facts.into_iter().map(Into::into).collect(),
            images: pairs(row.image_sources, row.images),
            created_at: row.created_at,
            checked_at: row.checked_at,
        })
    }
}
