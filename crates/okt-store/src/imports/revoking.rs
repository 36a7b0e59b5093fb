//! Taking out again what came from a key.
//!
//! Rows say which import they came with, so what others have added since stays: a fact goes when no other source says it, a concept
//! when nothing else speaks of it. Names that were given to concepts which were here stay.

use std::collections::BTreeMap;

use okt_model::{
    CheckReports, CleanupFacts, Error, ImportKind, IndexSource, InvestigationId, JobId,
    RefreshConceptRelations, ReportId, RepositoryId, Revoked, SourceFailure, SourceId, SourceStage, Subject,
    SubjectKind,
};
use sqlx::PgConnection;

use crate::outbox::{self, When};
use crate::words::word;
use crate::{
    Databases, concept_relations, concept_syntheses, concepts, counters, facts, investigations,
    model_answers, report_annotations, report_facts, reports, sources as stored_sources, summary_states,
};
use okt_pg::Result;

/// Imports that are taken out together: what each of them brought to other sources is found by reading all that the repository has.
pub const AT_ONCE: usize = 100;
/// Sources that are taken out in one transaction.
pub const SOURCES: i64 = 100;

/// An import of which something may be here.
#[derive(Clone, Copy, Debug)]
pub struct Revocable {
    pub no: i64,
    pub kind: ImportKind,
}

/// Imports that a key signed, or pushed to a registry, of which something may be here.
#[tracing::instrument(level = "debug", name = "db.imports.list_of_key", skip_all)]
pub async fn list_of_key(
    conn: &mut PgConnection,
    repository: RepositoryId,
    key: &str,
) -> Result<Vec<Revocable>> {
    let rows = sqlx::query!(
        "SELECT no, kind FROM okt_repository.imports
          WHERE repository_id = $1 AND (key_id = $2 OR pushed_by = $2) AND revoked_at IS NULL
          ORDER BY no",
        repository.uuid(),
        key,
    );
    let rows = rows.fetch_all(conn).await?;
    rows.into_iter().map(|row| Ok(Revocable { no: row.no, kind: word("imports.kind", &row.kind)? })).collect()
}

/// What is taken out in a transaction of its own: reading all that a repository has takes long, and whoever adds something waits for the
/// counters that another part holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// So many of the sources; the same again while there are more.
    #[default]
    Sources,
    /// What other sources were made to say.
    Links,
    /// Definitions, reports and investigations.
    Writings,
    /// What facts that stay were made to speak of, and summaries.
    Findings,
    /// Concepts that nothing speaks of then.
    Concepts,
}

/// Takes out all that came from a key, in transactions of a part each; what that was.
pub async fn revoke_all(
    databases: &Databases,
    database: &str,
    repository: RepositoryId,
    key: &str,
) -> Result<Revoked> {
    let mut tx = databases.begin(database, repository).await?;
    let found = list_of_key(&mut tx, repository, key).await?;
    tx.commit().await?;
    let mut revoked = Revoked::default();
    for imports in found.chunks(AT_ONCE) {
        let mut next = Some(Part::Sources);
        while let Some(part) = next {
            let mut tx = databases.begin(database, repository).await?;
            let (some, then) = revoke(&mut tx, repository, imports, part, SOURCES).await?;
            revoked += some;
            next = then;
            if next.is_none() {
                follow_up(&mut tx, repository).await?;
            }
            tx.commit().await?;
        }
    }
    Ok(revoked)
}

/// What has to be looked at again where facts are gone.
async fn follow_up(conn: &mut PgConnection, repository: RepositoryId) -> Result<()> {
    // It has nothing to do where facts have no vectors.
    outbox::push(conn, repository, JobId::mint(), &CleanupFacts { soon: true }, When::default()).await?;
    outbox::push(conn, repository, JobId::mint(), &RefreshConceptRelations {}, When::default()).await?;
    if report_facts::is_any(conn, repository).await? {
        outbox::push(conn, repository, JobId::mint(), &CheckReports {}, When::default()).await?;
    }
    Ok(())
}

/// Takes a part out of what came with these imports, at most `limit` sources at a time; what that was, and which part is next.
#[tracing::instrument(level = "debug", name = "db.imports.revoke", skip_all)]
pub async fn revoke(
    conn: &mut PgConnection,
    repository: RepositoryId,
    imports: &[Revocable],
    part: Part,
    limit: i64,
) -> Result<(Revoked, Option<Part>)> {
    let mut revoked = Revoked::default();
    let kinds: BTreeMap<i64, ImportKind> = imports.iter().map(|import| (import.no, import.kind)).collect();
    let all: Vec<i64> = kinds.keys().copied().collect();
    // A package says nothing of other sources than its own.
    let bundles: Vec<i64> =
        (kinds.iter()).filter(|(_, kind)| **kind == ImportKind::Bundle).map(|(no, _)| *no).collect();
    // All of a repository takes as long as it takes.
    sqlx::query("SET LOCAL statement_timeout = 0").execute(&mut *conn).await?;
    let next = match part {
        Part::Sources => {
            let is_done = own_sources(conn, repository, &kinds, limit, &mut revoked).await?;
            let after = if bundles.is_empty() { Part::Findings } else { Part::Links };
            Some(if is_done { after } else { Part::Sources })
        }
        Part::Links => {
            revoked.facts = links(conn, repository, &bundles).await?;
            Some(Part::Writings)
        }
        Part::Writings => {
            revoked.definitions = definitions(conn, repository, &bundles).await?;
            revoked.reports = forget_reports(conn, repository, &bundles).await?;
            revoked.investigations = forget_investigations(conn, repository, &bundles).await?;
            Some(Part::Findings)
        }
        Part::Findings => {
            unlink(conn, repository, &all).await?;
            revoked.summaries = summaries(conn, repository, &all).await?;
            Some(Part::Concepts)
        }
        Part::Concepts => {
            revoked.concepts = forget_concepts(conn, repository, &all).await?;
            let done = sqlx::query!(
                "UPDATE okt_repository.imports SET revoked_at = clock_timestamp() WHERE repository_id = $1 AND no = ANY ($2)",
                repository.uuid(),
                &all,
            );
            let done = done.execute(conn).await?.rows_affected();
            revoked.imports = i64::try_from(done).map_err(Error::internal)?;
            None
        }
    };
    Ok((revoked, next))
}

/// Whether there are no more.
async fn own_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    kinds: &BTreeMap<i64, ImportKind>,
    limit: i64,
    revoked: &mut Revoked,
) -> Result<bool> {
    let all: Vec<i64> = kinds.keys().copied().collect();
    // First of all, as whoever adds sources does.
    counters::add(conn, repository, "sources", 0).await?;
    let own = sqlx::query!(
        r#"SELECT id, import_no AS "import_no!" FROM okt_repository.sources
            WHERE repository_id = $1 AND import_no = ANY ($2) ORDER BY id LIMIT $3"#,
        repository.uuid(),
        &all,
        limit,
    );
    let own = own.fetch_all(&mut *conn).await?;
    for row in &own {
        let source = SourceId::from(row.id);
        revoked.facts += count(conn, repository, source).await?;
        if kinds.get(&row.import_no) == Some(&ImportKind::Bundle) {
            stored_sources::delete(conn, repository, source).await?;
            revoked.sources += 1;
        } else {
            empty(conn, repository, source).await?;
            revoked.emptied += 1;
        }
    }
    counters::add(conn, repository, "sources", -revoked.sources).await?;
    Ok(i64::try_from(own.len()).map_err(Error::internal)? < limit)
}

async fn count(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<i64> {
    let facts = sqlx::query_scalar!(
        "SELECT fact_count FROM okt_repository.sources WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        source.uuid(),
    );
    Ok(facts.fetch_optional(conn).await?.unwrap_or(0))
}

/// A source that somebody added stays, without what the package made it say.
async fn empty(conn: &mut PgConnection, repository: RepositoryId, source: SourceId) -> Result<()> {
    let failure = SourceFailure::new(
        SourceStage::Fetch,
        "origin_revoked",
        "what the registry had for it was removed, because its origin is not trusted any more; retry it to have it fetched",
        true,
    );
    let told = serde_json::to_string(&failure).map_err(Error::internal)?;
    report_annotations::forget_source(conn, repository, source).await?;
    facts::forget_source(conn, repository, source).await?;
    sqlx::query!(
        "WITH texts AS (DELETE FROM okt_repository.source_texts WHERE repository_id = $1 AND source_id = $2)
         UPDATE okt_repository.sources
            SET status = 'failed', failure = $3::text::jsonb, extraction = NULL, import_no = NULL, processed_at = NULL
          WHERE repository_id = $1 AND id = $2",
        repository.uuid(),
        source.uuid(),
        told,
    )
    .execute(&mut *conn)
    .await?;
    stored_sources::announce_failed(conn, repository, source, &failure).await?;
    outbox::push(conn, repository, JobId::mint(), &IndexSource::of(source), When::default()).await?;
    Ok(())
}

/// What a bundle made sources say that were here before it.
async fn links(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<i64> {
    let rows = sqlx::query!(
        "SELECT s.id, l.fact_no
           FROM okt_repository.fact_sources l
           JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
          WHERE l.repository_id = $1 AND l.import_no = ANY ($2)",
        repository.uuid(),
        imports,
    );
    let mut of = BTreeMap::<SourceId, Vec<i64>>::new();
    for row in rows.fetch_all(&mut *conn).await? {
        of.entry(row.id.into()).or_default().push(row.fact_no);
    }
    let mut gone = 0;
    for (source, some) in of {
        gone += facts::forget_links(conn, repository, source, &some).await?;
        outbox::push(conn, repository, JobId::mint(), &IndexSource::of(source), When::default()).await?;
    }
    Ok(gone)
}

/// What it said that facts speak of which stay.
async fn unlink(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<()> {
    let gone = sqlx::query_scalar!(
        "WITH gone AS (
             DELETE FROM okt_repository.fact_concepts WHERE repository_id = $1 AND import_no = ANY ($2) RETURNING fact_no)
         SELECT DISTINCT fact_no FROM gone",
        repository.uuid(),
        imports,
    );
    let gone = gone.fetch_all(&mut *conn).await?;
    concept_relations::mark(conn, repository, &gone).await
}

async fn summaries(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<i64> {
    let gone = sqlx::query_scalar!(
        "WITH gone AS (
             DELETE FROM okt_repository.concept_summaries
              WHERE repository_id = $1 AND import_no = ANY ($2) RETURNING concept_no, slice_number),
         covered AS (
             DELETE FROM okt_repository.summary_facts f USING gone g
              WHERE f.repository_id = $1 AND f.concept_no = g.concept_no AND f.slice_number = g.slice_number)
         SELECT concept_no FROM gone",
        repository.uuid(),
        imports,
    );
    let gone = gone.fetch_all(&mut *conn).await?;
    summary_states::mark(conn, repository, Some(&gone)).await?;
    Ok(i64::try_from(gone.len()).map_err(Error::internal)?)
}

async fn definitions(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<i64> {
    let gone = sqlx::query!(
        "DELETE FROM okt_repository.concept_syntheses WHERE repository_id = $1 AND import_no = ANY ($2)",
        repository.uuid(),
        imports,
    );
    Ok(i64::try_from(gone.execute(conn).await?.rows_affected()).map_err(Error::internal)?)
}

async fn forget_reports(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<i64> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.reports WHERE repository_id = $1 AND import_no = ANY ($2) ORDER BY id",
        repository.uuid(),
        imports,
    );
    let mut gone = 0;
    for id in ids.fetch_all(&mut *conn).await? {
        gone += i64::from(reports::delete(conn, repository, ReportId::from(id)).await?);
    }
    counters::add(conn, repository, "reports", -gone).await?;
    Ok(gone)
}

async fn forget_investigations(
    conn: &mut PgConnection,
    repository: RepositoryId,
    imports: &[i64],
) -> Result<i64> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM okt_repository.investigations WHERE repository_id = $1 AND import_no = ANY ($2) ORDER BY id",
        repository.uuid(),
        imports,
    );
    let mut gone = 0;
    for id in ids.fetch_all(&mut *conn).await? {
        gone += i64::from(investigations::delete(conn, repository, InvestigationId::from(id)).await?);
    }
    counters::add(conn, repository, "investigations", -gone).await?;
    Ok(gone)
}

/// Those that nothing speaks of, and that nobody merged with others.
async fn forget_concepts(conn: &mut PgConnection, repository: RepositoryId, imports: &[i64]) -> Result<i64> {
    let rows = sqlx::query!(
        "SELECT c.no, c.id, c.name_key, c.context_no
           FROM okt_repository.concepts c
          WHERE c.repository_id = $1 AND c.import_no = ANY ($2) AND c.merged_into IS NULL
            AND NOT EXISTS (SELECT FROM okt_repository.fact_concepts l WHERE l.repository_id = $1 AND l.concept_no = c.no)
            AND NOT EXISTS (SELECT FROM okt_repository.concepts m WHERE m.repository_id = $1 AND m.merged_into = c.no)
          ORDER BY c.no
            FOR UPDATE OF c",
        repository.uuid(),
        imports,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let mut left = BTreeMap::<i64, i64>::new();
    for row in &rows {
        sqlx::query!(
            "DELETE FROM okt_repository.concept_aliases WHERE repository_id = $1 AND concept_no = $2",
            repository.uuid(),
            row.no,
        )
        .execute(&mut *conn)
        .await?;
        sqlx::query_file!("src/sql/delete_concept.sql", repository.uuid(), row.no)
            .execute(&mut *conn)
            .await?;
        concept_syntheses::remove_unnamed(conn, repository, &[&row.name_key]).await?;
        model_answers::forget(conn, repository, Subject::new(SubjectKind::Concept, row.id)).await?;
        *left.entry(row.context_no).or_default() -= 1;
    }
    let changes: Vec<(i64, i64)> = left.into_iter().collect();
    concepts::count(conn, repository, &changes).await?;
    let gone = i64::try_from(rows.len()).map_err(Error::internal)?;
    counters::add(conn, repository, concepts::COUNTER, -gone).await?;
    Ok(gone)
}
