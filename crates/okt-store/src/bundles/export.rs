//! A repository as it is at one moment.

use std::collections::HashSet;

use futures_util::TryStreamExt as _;
use okt_interchange::bundle::hash::{Cited, rewrite_facts, rewrite_images};
use okt_interchange::bundle::{
    AliasRow, AnnotationRow, BodyRow, ConceptRow, CurationRow, Decimal, FactConceptRow, FactRow,
    FactSourceRow, ImageRow, InvestigationRow, InvestigationSourceRow, OwnedRow, ReferenceRow, ReportRow,
    SourceRow, SummaryRow, SynthesisRow,
};
use okt_model::{BlobHash, Error, FoundBy, RepositoryId, SourceFile, SourceId};
use serde_json::value::RawValue;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, FromRow, Row as _};
use uuid::Uuid;

use crate::databases::Databases;
use okt_pg::{Result, Tx};

/// Rows that go out together.
const BATCH: usize = 500;

/// Numbers of all rows that others refer to. The order is the same wherever the same graph is.
const NUMBERED: [&str; 7] = [
    r#"CREATE TEMPORARY TABLE x_sources ON COMMIT DROP AS
       SELECT no, id, (row_number() OVER (ORDER BY CASE WHEN locator_hash IS NULL THEN '' ELSE url END COLLATE "C",
                                                   coalesce(doi, '') COLLATE "C",
                                                   coalesce(body_sha256, stated_sha256), no) - 1)::integer AS idx
         FROM okt_repository.sources WHERE repository_id = $1"#,
    r#"CREATE TEMPORARY TABLE x_images ON COMMIT DROP AS
       SELECT i.source_id, i.id,
              (row_number() OVER (ORDER BY x.idx, i.kind COLLATE "C", i.page_number NULLS FIRST, i.position,
                                           coalesce(i.url, '') COLLATE "C", i.id) - 1)::integer AS idx
         FROM okt_repository.source_images i JOIN x_sources x ON x.id = i.source_id WHERE i.repository_id = $1"#,
    "CREATE TEMPORARY TABLE x_facts ON COMMIT DROP AS
     SELECT no, id, (row_number() OVER (ORDER BY content_hash) - 1)::integer AS idx
       FROM okt_repository.facts WHERE repository_id = $1 AND status <> 'removed'",
    r#"CREATE TEMPORARY TABLE x_concepts ON COMMIT DROP AS
       WITH RECURSIVE members AS (
           SELECT c.no, c.id, c.no AS root FROM okt_repository.concepts c
            WHERE c.repository_id = $1 AND c.merged_into IS NULL
            UNION ALL
           SELECT c.no, c.id, m.root FROM members m
             JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.merged_into = m.no),
       numbered AS (
           SELECT c.no, (row_number() OVER (ORDER BY c.name_key COLLATE "C",
                                                     lower(coalesce(c.unmapped_label, x.label)) COLLATE "C", c.no) - 1)::integer AS idx
             FROM okt_repository.concepts c
             JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
            WHERE c.repository_id = $1 AND c.merged_into IS NULL)
       SELECT m.no, m.id, n.idx, m.no = m.root AS is_root FROM members m JOIN numbered n ON n.no = m.root"#,
    "CREATE TEMPORARY TABLE x_summaries ON COMMIT DROP AS
     SELECT s.id, s.concept_no, s.slice_number, (row_number() OVER (ORDER BY x.idx, s.slice_number) - 1)::integer AS idx
       FROM okt_repository.concept_summaries s JOIN x_concepts x ON x.no = s.concept_no AND x.is_root
      WHERE s.repository_id = $1 AND s.written > 0",
    r#"CREATE TEMPORARY TABLE x_investigations ON COMMIT DROP AS
       SELECT no, (row_number() OVER (ORDER BY title COLLATE "C", coalesce(topic, '') COLLATE "C", no) - 1)::integer AS idx
         FROM okt_repository.investigations WHERE repository_id = $1"#,
    r#"CREATE TEMPORARY TABLE x_reports ON COMMIT DROP AS
       SELECT no, (row_number() OVER (ORDER BY title COLLATE "C", coalesce(topic, '') COLLATE "C", md5(body), no) - 1)::integer AS idx
         FROM okt_repository.reports WHERE repository_id = $1"#,
];

const INDEXED: [&str; 6] = [
    "CREATE UNIQUE INDEX ON x_sources (no)",
    "CREATE UNIQUE INDEX ON x_sources (id)",
    "CREATE UNIQUE INDEX ON x_images (source_id, id)",
    "CREATE UNIQUE INDEX ON x_facts (no)",
    "CREATE INDEX ON x_facts (id)",
    "CREATE UNIQUE INDEX ON x_concepts (no)",
];

/// A repository as it was when this was opened.
pub struct Snapshot {
    tx: Tx,
    repository: RepositoryId,
    pub counts: SnapshotCounts,
    pub promptset_hashes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotCounts {
    pub sources: u64,
    pub images: u64,
    pub facts: u64,
    pub concepts: u64,
    pub summaries: u64,
    pub syntheses: u64,
    pub investigations: u64,
    pub reports: u64,
}

/// A file that goes into a bundle: by which reference, and where it is.
#[derive(Clone, Debug)]
pub struct ImageFile {
    pub reference: String,
    pub content_type: String,
    pub file: SourceFile,
}

impl Snapshot {
    #[tracing::instrument(level = "debug", name = "db.bundles.open", skip_all, fields(repository.id = %repository))]
    pub async fn open(databases: &Databases, database: &str, repository: RepositoryId) -> Result<Self> {
        let mut tx = databases.begin_snapshot(database, repository).await?;
        tx.handle_with_care();
        for statement in NUMBERED {
            sqlx::query(statement).bind(repository.uuid()).execute(&mut *tx).await?;
        }
        for statement in INDEXED {
            sqlx::query(statement).execute(&mut *tx).await?;
        }
        sqlx::query("ANALYZE x_sources, x_images, x_facts, x_concepts, x_summaries")
            .execute(&mut *tx)
            .await?;
        let mut snapshot =
            Self { tx, repository, counts: SnapshotCounts::default(), promptset_hashes: Vec::new() };
        snapshot.counts = SnapshotCounts {
            sources: snapshot.count("x_sources").await?,
            images: snapshot.count("x_images").await?,
            facts: snapshot.count("x_facts").await?,
            concepts: snapshot.count("x_concepts WHERE is_root").await?,
            summaries: snapshot.count("x_summaries").await?,
            syntheses: snapshot.count("(SELECT DISTINCT name_key FROM okt_repository.concept_syntheses WHERE repository_id = okt_repository.current_repository()) AS s").await?,
            investigations: snapshot.count("x_investigations").await?,
            reports: snapshot.count("x_reports").await?,
        };
        let hashes = sqlx::query_scalar(
            "SELECT DISTINCT encode(promptset_hash, 'hex') COLLATE \"C\" FROM okt_repository.facts
              WHERE repository_id = $1 AND promptset_hash IS NOT NULL AND status <> 'removed' ORDER BY 1",
        );
        snapshot.promptset_hashes = hashes.bind(repository.uuid()).fetch_all(&mut *snapshot.tx).await?;
        Ok(snapshot)
    }

    async fn count(&mut self, of: &str) -> Result<u64> {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {of}"));
        let count: i64 = sqlx::query_scalar(count).fetch_one(&mut *self.tx).await?;
        Ok(count.unsigned_abs())
    }

    /// Ends it.
    pub async fn close(self) -> Result<()> {
        self.tx.commit().await
    }

    /// The images or the originals that there are.
    pub async fn files(&mut self, bodies: bool) -> Result<Vec<ImageFile>> {
        let statement = if bodies {
            "SELECT s.id, s.body_sha256, coalesce(s.content_type, '') FROM okt_repository.sources s
               JOIN x_sources x ON x.no = s.no
              WHERE s.repository_id = $1 AND s.body_sha256 IS NOT NULL ORDER BY x.idx"
        } else {
            "SELECT i.source_id, i.sha256, coalesce(i.content_type, '') FROM okt_repository.source_images i
               JOIN x_images x ON x.source_id = i.source_id AND x.id = i.id
              WHERE i.repository_id = $1 AND i.sha256 IS NOT NULL ORDER BY x.idx"
        };
        let rows = sqlx::query(statement).bind(self.repository.uuid()).fetch_all(&mut *self.tx).await?;
        let mut files = Vec::with_capacity(rows.len());
        let mut seen = HashSet::new();
        for row in rows {
            let (source, hash): (Uuid, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
            let hash = BlobHash(hash.try_into().map_err(|_| Error::internal("a hash of another length"))?);
            let reference = hash.to_string();
            // The same picture may be in many sources.
            if seen.insert(reference.clone()) {
                let file = SourceFile { repository: self.repository, source: SourceId::from(source), hash };
                files.push(ImageFile { reference, content_type: row.try_get(2)?, file });
            }
        }
        Ok(files)
    }

    /// The facts that have a vector in a space, by their numbers here.
    pub async fn embedded_facts(&mut self, space: i16) -> Result<Vec<(u32, Uuid)>> {
        let rows: Vec<(i32, Uuid)> = sqlx::query_as(
            "SELECT x.idx, x.id FROM x_facts x JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = x.no
              WHERE f.embedded_in = $2 ORDER BY x.idx",
        )
        .bind(self.repository.uuid())
        .bind(space)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(|(idx, id)| (idx.unsigned_abs(), id)).collect())
    }

    /// The concepts that have a vector in a space, by their numbers here, and what their vectors are called.
    pub async fn embedded_concepts(&mut self, space: i16) -> Result<Vec<(u32, Uuid)>> {
        let rows: Vec<(i32, Uuid)> = sqlx::query_as(
            "SELECT x.idx, c.vector_id FROM x_concepts x
               JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = x.no
              WHERE x.is_root AND c.embedded_in = $2 AND c.vector_id IS NOT NULL ORDER BY x.idx",
        )
        .bind(self.repository.uuid())
        .bind(space)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(|(idx, id)| (idx.unsigned_abs(), id)).collect())
    }

    /// All rows, section by section, in batches.
    pub async fn rows<F>(
        &mut self,
        images: bool,
        bodies: bool,
        mut out: impl FnMut(Vec<OwnedRow>) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        // One by one: a source may be as large as a book.
        self.each(SOURCES, 1, |row| Ok(OwnedRow::Source(source(row)?)), &mut out).await?;
        self.each(IMAGES, BATCH, |row| Ok(OwnedRow::SourceImage(image(row, images)?)), &mut out).await?;
        if bodies {
            self.each(BODIES, BATCH, |row| Ok(OwnedRow::SourceBody(body(row)?)), &mut out).await?;
        }
        self.each(FACTS, BATCH, |row| Ok(OwnedRow::Fact(fact(row)?)), &mut out).await?;
        let link = |row: &PgRow| {
            Ok(OwnedRow::FactSource(FactSourceRow {
                fact_idx: number(row, 0)?,
                source_idx: number(row, 1)?,
                chunk_index: row.try_get(2)?,
            }))
        };
        self.each(FACT_SOURCES, BATCH, link, &mut out).await?;
        let reference = |row: &PgRow| {
            Ok(OwnedRow::Reference(ReferenceRow {
                fact_idx: number(row, 0)?,
                source_idx: number(row, 1)?,
                sentence_index: row.try_get(2)?,
            }))
        };
        self.each(REFERENCES, BATCH, reference, &mut out).await?;
        self.each(CONCEPTS, BATCH, |row| Ok(OwnedRow::Concept(concept(row)?)), &mut out).await?;
        let alias = |row: &PgRow| {
            Ok(OwnedRow::Alias(AliasRow {
                concept_idx: number(row, 0)?,
                alias_text: row.try_get(1)?,
                added_by: row.try_get(2)?,
            }))
        };
        self.each(ALIASES, BATCH, alias, &mut out).await?;
        let fact_concept = |row: &PgRow| {
            let found_by = FoundBy::from_number(row.try_get(2)?);
            Ok(OwnedRow::FactConcept(FactConceptRow {
                fact_idx: number(row, 0)?,
                concept_idx: number(row, 1)?,
                promptset_hash: String::new(),
                found_by: found_by.map(|found_by| found_by.as_str().to_owned()).unwrap_or_default(),
            }))
        };
        self.each(FACT_CONCEPTS, BATCH, fact_concept, &mut out).await?;
        self.cited(SUMMARIES, |row| Ok(OwnedRow::Summary(summary(row)?)), &mut out).await?;
        self.cited(SYNTHESES, |row| Ok(OwnedRow::Synthesis(synthesis(row)?)), &mut out).await?;
        let investigation = |row: &PgRow| {
            Ok(OwnedRow::Investigation(InvestigationRow {
                idx: number(row, 0)?,
                title: row.try_get(1)?,
                topic: text(row, 2)?,
            }))
        };
        self.each(INVESTIGATIONS, BATCH, investigation, &mut out).await?;
        let investigation_source = |row: &PgRow| {
            Ok(OwnedRow::InvestigationSource(InvestigationSourceRow {
                investigation_idx: number(row, 0)?,
                source_idx: number(row, 1)?,
            }))
        };
        self.each(INVESTIGATION_SOURCES, BATCH, investigation_source, &mut out).await?;
        self.each(REPORTS, 1, |row| Ok(OwnedRow::Report(report(row)?)), &mut out).await?;
        self.each(ANNOTATIONS, BATCH, |row| Ok(OwnedRow::Annotation(annotation(row)?)), &mut out).await?;
        self.each(CURATION, BATCH, |row| Ok(OwnedRow::Curation(curation(row)?)), &mut out).await?;
        self.each(MARKS, BATCH, |row| Ok(OwnedRow::Curation(mark(row)?)), &mut out).await
    }

    /// The rows of a section, as they come.
    async fn each<F>(
        &mut self,
        statement: &'static str,
        batch: usize,
        made: impl Fn(&PgRow) -> Result<OwnedRow>,
        out: &mut impl FnMut(Vec<OwnedRow>) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let mut rows = sqlx::query(statement).bind(self.repository.uuid()).fetch(&mut *self.tx);
        let mut together = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(okt_pg::Error::from)? {
            together.push(made(&row)?);
            if together.len() >= batch {
                out(std::mem::take(&mut together)).await?;
            }
        }
        if !together.is_empty() {
            out(together).await?;
        }
        Ok(())
    }

    /// As [`Self::each`], for texts that cite facts: what they cite is in the bundle, or they lose the link.
    async fn cited<F>(
        &mut self,
        statement: &'static str,
        made: impl Fn(&PgRow) -> Result<OwnedRow>,
        out: &mut impl FnMut(Vec<OwnedRow>) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        // Asked for in pages, because what each cites is looked up on the same connection.
        let mut offset = 0_i64;
        let statement = format!("{statement} LIMIT 200 OFFSET $2");
        loop {
            let page =
                sqlx::query(AssertSqlSafe(statement.clone())).bind(self.repository.uuid()).bind(offset);
            let page = page.fetch_all(&mut *self.tx).await.map_err(okt_pg::Error::from)?;
            if page.is_empty() {
                return Ok(());
            }
            offset += i64::try_from(page.len()).map_err(Error::internal)?;
            let mut rows = page.iter().map(&made).collect::<Result<Vec<_>>>()?;
            let mut wanted = HashSet::new();
            for row in &mut rows {
                let (content, _) = content_of(row);
                rewrite_facts(content, |id| {
                    wanted.insert(id);
                    Cited::Left
                });
            }
            let wanted: Vec<Uuid> = wanted.into_iter().collect();
            let there = sqlx::query_scalar("SELECT id FROM x_facts WHERE id = ANY ($1)").bind(&wanted);
            let there: Vec<Uuid> = there.fetch_all(&mut *self.tx).await.map_err(okt_pg::Error::from)?;
            let there: HashSet<Uuid> = there.into_iter().collect();
            for row in &mut rows {
                let (content, images) = content_of(row);
                let left = |known: bool| if known { Cited::Left } else { Cited::Lost };
                let text = rewrite_facts(content, |id| left(there.contains(&id)));
                *content = rewrite_images(&text, |id| left(images.contains(&id.to_string())));
            }
            out(rows).await?;
        }
    }
}

/// The text of a row, and what the images in it may be called.
fn content_of(row: &mut OwnedRow) -> (&mut String, &[String]) {
    match row {
        OwnedRow::Synthesis(row) => (&mut row.content, &row.image_uuids),
        OwnedRow::Summary(row) => (&mut row.content, &[]),
        _ => unreachable!("only summaries and syntheses are read this way"),
    }
}

const SOURCES: &str = "
    SELECT x.idx, CASE WHEN s.locator_hash IS NULL THEN '' ELSE s.url END AS url, coalesce(s.doi, '') AS doi,
           coalesce(s.kind, '') AS kind,
           CASE s.status WHEN 'processed' THEN 'processed' WHEN 'fetched' THEN 'fetched' WHEN 'processing' THEN 'fetched'
                ELSE 'failed' END AS status,
           coalesce(s.title, '') AS title, coalesce(t.text, '') AS text, coalesce(t.markdown, '') AS markdown,
           CASE WHEN s.published_at BETWEEN '0001-01-01' AND '9999-12-31' THEN s.published_at::text ELSE '' END AS published_at,
           coalesce(encode(coalesce(s.body_sha256, s.stated_sha256), 'hex'), '') AS sha256,
           s.body_sha256 IS NOT NULL OR s.stated_body AS has_body,
           coalesce(s.language, '') AS language, coalesce(s.author, '') AS author, coalesce(s.site_name, '') AS site_name,
           coalesce(s.license, '') AS license, coalesce(s.content_type, '') AS content_type,
           coalesce(t.sentences, '{}') AS sentences, coalesce(t.segmenter, '') AS segmenter,
           coalesce(t.segmenter_hash, '') AS segmenter_hash, t.boxes, t.pages
      FROM x_sources x
      JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = x.no
      LEFT JOIN okt_repository.source_texts t ON t.repository_id = $1 AND t.source_id = x.id
     ORDER BY x.idx";

#[derive(FromRow)]
struct SourceRecord {
    idx: i32,
    url: String,
    doi: String,
    kind: String,
    status: String,
    title: String,
    text: String,
    markdown: String,
    published_at: String,
    sha256: String,
    has_body: bool,
    language: String,
    author: String,
    site_name: String,
    license: String,
    content_type: String,
    sentences: Vec<i32>,
    segmenter: String,
    segmenter_hash: String,
    boxes: Option<String>,
    pages: Option<String>,
}

fn source(row: &PgRow) -> Result<SourceRow> {
    let row = SourceRecord::from_row(row)?;
    let raw = |text: Option<String>| {
        let text = text.filter(|text| text != "[]");
        text.map(RawValue::from_string).transpose().map_err(Error::internal)
    };
    Ok(SourceRow {
        idx: row.idx.unsigned_abs(),
        url: row.url,
        doi: row.doi,
        kind: row.kind,
        status: row.status,
        parsed_title: row.title,
        parsed_text: row.text,
        parsed_markdown: row.markdown,
        published_at: row.published_at,
        sha256: row.sha256,
        has_stored_body: row.has_body,
        language: row.language,
        author: row.author,
        site_name: row.site_name,
        license: row.license,
        content_type: row.content_type,
        sentence_offsets: row.sentences.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        segmenter: row.segmenter,
        segmenter_hash: row.segmenter_hash,
        sentence_boxes: raw(row.boxes)?,
        pages: raw(row.pages)?,
    })
}

const IMAGES: &str = "
    SELECT x.idx, s.idx AS source_idx, i.kind, i.page_number, i.position, coalesce(i.url, '') AS url, i.width, i.height, i.size,
           coalesce(i.alt_text, '') AS alt_text, coalesce(i.content_type, '') AS content_type, encode(i.sha256, 'hex') AS sha256
      FROM x_images x
      JOIN x_sources s ON s.id = x.source_id
      JOIN okt_repository.source_images i ON i.repository_id = $1 AND i.source_id = x.source_id AND i.id = x.id
     ORDER BY x.idx";

fn image(row: &PgRow, with_files: bool) -> Result<ImageRow> {
    let reference: Option<String> = row.try_get("sha256")?;
    Ok(ImageRow {
        idx: number(row, 0)?,
        source_idx: number(row, 1)?,
        kind: row.try_get("kind")?,
        page_number: row.try_get("page_number")?,
        position: row.try_get("position")?,
        url: row.try_get("url")?,
        width: row.try_get("width")?,
        height: row.try_get("height")?,
        bytes: row.try_get("size")?,
        alt_text: row.try_get("alt_text")?,
        content_type: row.try_get("content_type")?,
        image_ref: reference.filter(|_| with_files).unwrap_or_default(),
    })
}

const BODIES: &str = "
    SELECT x.idx, encode(s.body_sha256, 'hex'), coalesce(s.content_type, ''), coalesce(s.file_name, '')
      FROM x_sources x JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = x.no
     WHERE s.body_sha256 IS NOT NULL
     ORDER BY x.idx";

fn body(row: &PgRow) -> Result<BodyRow> {
    Ok(BodyRow {
        source_idx: number(row, 0)?,
        body_ref: row.try_get(1)?,
        content_type: row.try_get(2)?,
        file_name: row.try_get(3)?,
    })
}

const FACTS: &str = "
    SELECT x.idx, f.text, f.kind, coalesce(i.url, '') AS image_url, encode(f.content_hash, 'hex') AS content_hash,
           coalesce(encode(f.promptset_hash, 'hex'), '') AS promptset_hash,
           CASE f.status WHEN 'new' THEN 'stable' ELSE f.status END AS status, coalesce(p.idx, -1) AS image_idx,
           f.id, f.model, m.idx AS duplicate_of
      FROM x_facts x
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = x.no
      LEFT JOIN x_facts m ON m.no = f.merged_into
      LEFT JOIN (SELECT l.fact_no, min(i.idx) AS idx
                   FROM okt_repository.fact_sources l
                   JOIN x_sources s ON s.no = l.source_no
                   JOIN x_images i ON i.source_id = s.id AND i.id = l.image_id
                  WHERE l.repository_id = $1 AND l.image_id IS NOT NULL
                  GROUP BY l.fact_no) AS p ON p.fact_no = x.no
      LEFT JOIN x_images n ON n.idx = p.idx
      LEFT JOIN okt_repository.source_images i ON i.repository_id = $1 AND i.source_id = n.source_id AND i.id = n.id
     ORDER BY x.idx";

fn fact(row: &PgRow) -> Result<FactRow> {
    let (image, duplicate): (i32, Option<i32>) = (row.try_get("image_idx")?, row.try_get("duplicate_of")?);
    Ok(FactRow {
        idx: number(row, 0)?,
        text: row.try_get("text")?,
        fact_kind: row.try_get("kind")?,
        image_url: row.try_get("image_url")?,
        content_hash: row.try_get("content_hash")?,
        promptset_hash: row.try_get("promptset_hash")?,
        status: row.try_get("status")?,
        source_image_idx: image.into(),
        uuid: row.try_get::<Uuid, _>("id")?.to_string(),
        model: row.try_get("model")?,
        duplicate_of_idx: duplicate.map(i32::unsigned_abs),
    })
}

const FACT_SOURCES: &str = "
    SELECT f.idx, s.idx, coalesce(l.chunk_no, -1)
      FROM okt_repository.fact_sources l
      JOIN x_facts f ON f.no = l.fact_no
      JOIN x_sources s ON s.no = l.source_no
     WHERE l.repository_id = $1
     ORDER BY f.idx, s.idx";

const REFERENCES: &str = "
    SELECT f.idx, s.idx, n.sentence
      FROM okt_repository.fact_sources l
      JOIN x_facts f ON f.no = l.fact_no
      JOIN x_sources s ON s.no = l.source_no
     CROSS JOIN LATERAL unnest(l.sentences) WITH ORDINALITY AS n (sentence, place)
     WHERE l.repository_id = $1
     ORDER BY f.idx, s.idx, n.place";

const CONCEPTS: &str = "
    SELECT x.idx, c.canonical_name, coalesce(c.unmapped_label, t.label) AS context,
           coalesce(CASE WHEN c.unmapped_label IS NULL THEN t.ontology_class END, '') AS class,
           coalesce(c.description, '') AS description, c.id
      FROM x_concepts x
      JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = x.no
      JOIN okt_repository.contexts t ON t.repository_id = $1 AND t.no = c.context_no
     WHERE x.is_root
     ORDER BY x.idx";

fn concept(row: &PgRow) -> Result<ConceptRow> {
    Ok(ConceptRow {
        idx: number(row, 0)?,
        canonical_name: row.try_get("canonical_name")?,
        context: row.try_get("context")?,
        ontology_class: row.try_get("class")?,
        description: row.try_get("description")?,
        promptset_hash: String::new(),
        uuid: row.try_get::<Uuid, _>("id")?.to_string(),
    })
}

/// Also the names of concepts that were merged: what is filed under them goes to the one that they are part of.
const ALIASES: &str = r#"
    SELECT idx, alias, added_by
      FROM (SELECT DISTINCT ON (n.idx, n.key) n.idx, n.key, n.alias, n.added_by
              FROM (SELECT x.idx, a.alias_key AS key, a.alias, a.added_by, 1 AS rank
                      FROM okt_repository.concept_aliases a JOIN x_concepts x ON x.no = a.concept_no
                     WHERE a.repository_id = $1
                     UNION ALL
                    SELECT x.idx, c.name_key, c.canonical_name, 'builtin', 2
                      FROM okt_repository.concepts c JOIN x_concepts x ON x.no = c.no AND NOT x.is_root
                     WHERE c.repository_id = $1) AS n
              JOIN x_concepts r ON r.idx = n.idx AND r.is_root
              JOIN okt_repository.concepts o ON o.repository_id = $1 AND o.no = r.no
             WHERE o.name_key <> n.key
             ORDER BY n.idx, n.key, n.rank, n.alias COLLATE "C") AS a
     ORDER BY idx, key COLLATE "C""#;

const FACT_CONCEPTS: &str = "
    SELECT f.idx, c.idx, max(l.found_by)
      FROM okt_repository.fact_concepts l
      JOIN x_facts f ON f.no = l.fact_no
      JOIN x_concepts c ON c.no = l.concept_no
     WHERE l.repository_id = $1
     GROUP BY f.idx, c.idx
     ORDER BY f.idx, c.idx";

const SUMMARIES: &str = "
    SELECT x.idx, c.idx AS concept_idx, s.slice_number, s.is_open, s.fact_count, s.content, coalesce(s.model, '') AS model,
           coalesce(encode(s.promptset_hash, 'hex'), '') AS promptset_hash,
           ARRAY(SELECT f.idx FROM okt_repository.summary_facts l JOIN x_facts f ON f.no = l.fact_no
                  WHERE l.repository_id = $1 AND l.concept_no = s.concept_no AND l.slice_number = s.slice_number
                  ORDER BY f.idx) AS facts
      FROM x_summaries x
      JOIN x_concepts c ON c.no = x.concept_no
      JOIN okt_repository.concept_summaries s
        ON s.repository_id = $1 AND s.concept_no = x.concept_no AND s.slice_number = x.slice_number
     ORDER BY x.idx";

fn summary(row: &PgRow) -> Result<SummaryRow> {
    Ok(SummaryRow {
        idx: number(row, 0)?,
        concept_idx: number(row, 1)?,
        sequence_num: row.try_get("slice_number")?,
        is_complete: !row.try_get::<bool, _>("is_open")?,
        fact_count: row.try_get("fact_count")?,
        content: row.try_get("content")?,
        covered_fact_idxs: numbers(row, "facts")?,
        model: row.try_get("model")?,
        promptset_hash: row.try_get("promptset_hash")?,
    })
}

const SYNTHESES: &str = r#"
    SELECT s.canonical_name, s.content, s.model, encode(s.promptset_hash, 'hex') AS promptset_hash,
           ARRAY(SELECT DISTINCT x.idx FROM unnest(s.summaries) AS n (id) JOIN x_summaries x ON x.id = n.id ORDER BY x.idx) AS summaries,
           ARRAY(SELECT DISTINCT x.idx FROM unnest(s.concepts) AS n (id) JOIN x_concepts x ON x.id = n.id ORDER BY x.idx) AS concepts,
           ARRAY(SELECT x.idx FROM unnest(s.images, s.image_sources) WITH ORDINALITY AS n (id, source, place)
                   JOIN x_images x ON x.source_id = n.source AND x.id = n.id ORDER BY n.place) AS images,
           ARRAY(SELECT x.id::text FROM unnest(s.images, s.image_sources) WITH ORDINALITY AS n (id, source, place)
                   JOIN x_images x ON x.source_id = n.source AND x.id = n.id ORDER BY n.place) AS image_ids
      FROM (SELECT DISTINCT ON (name_key) * FROM okt_repository.concept_syntheses
             WHERE repository_id = $1 ORDER BY name_key, version DESC) AS s
     ORDER BY s.name_key COLLATE "C""#;

fn synthesis(row: &PgRow) -> Result<SynthesisRow> {
    Ok(SynthesisRow {
        canonical_name: row.try_get("canonical_name")?,
        content: row.try_get("content")?,
        covered_summary_idxs: numbers(row, "summaries")?,
        covered_concept_idxs: numbers(row, "concepts")?,
        embedded_image_idxs: numbers(row, "images")?,
        model: row.try_get("model")?,
        promptset_hash: row.try_get("promptset_hash")?,
        image_uuids: row.try_get("image_ids")?,
    })
}

const INVESTIGATIONS: &str = "
    SELECT x.idx, i.title, i.topic FROM x_investigations x
      JOIN okt_repository.investigations i ON i.repository_id = $1 AND i.no = x.no ORDER BY x.idx";

const INVESTIGATION_SOURCES: &str = "
    SELECT i.idx, s.idx FROM okt_repository.investigation_sources l
      JOIN x_investigations i ON i.no = l.investigation_no
      JOIN x_sources s ON s.no = l.source_no
     WHERE l.repository_id = $1
     ORDER BY i.idx, s.idx";

const REPORTS: &str = "
    SELECT x.idx, r.title, coalesce(r.topic, '') AS topic, r.body,
           CASE r.status WHEN 'annotating' THEN 'pending' ELSE r.status END AS status,
           coalesce(p.idx, -1) AS parent_idx, coalesce(r.language, '') AS language
      FROM x_reports x
      JOIN okt_repository.reports r ON r.repository_id = $1 AND r.no = x.no
      LEFT JOIN x_reports p ON p.no = r.parent_no
     ORDER BY x.idx";

fn report(row: &PgRow) -> Result<ReportRow> {
    let parent: i32 = row.try_get("parent_idx")?;
    Ok(ReportRow {
        idx: number(row, 0)?,
        title: row.try_get("title")?,
        topic: row.try_get("topic")?,
        body_md: row.try_get("body")?,
        status: row.try_get("status")?,
        parent_idx: parent.into(),
        similarity_threshold: None,
        embedded_model: String::new(),
        sentence_count: None,
        language: row.try_get("language")?,
    })
}

const ANNOTATIONS: &str = "
    SELECT r.idx, s.place, s.text, f.idx AS fact_idx, a.score, a.posture, a.confidence, a.judged_by
      FROM okt_repository.report_annotations a
      JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.no = a.sentence_no
      JOIN x_reports r ON r.no = a.report_no
      JOIN x_facts f ON f.no = a.fact_no
     WHERE a.repository_id = $1 AND a.posture IS NOT NULL AND a.is_near
     ORDER BY r.idx, s.place, f.idx";

fn annotation(row: &PgRow) -> Result<AnnotationRow> {
    Ok(AnnotationRow {
        report_idx: number(row, 0)?,
        sentence_index: row.try_get("place")?,
        sentence_text: row.try_get("text")?,
        fact_idx: number(row, 3)?,
        score: Decimal::of_single(row.try_get("score")?),
        posture: row.try_get("posture")?,
        confidence: Some(Decimal::of_single(row.try_get("confidence")?)),
        judged_by: row.try_get("judged_by")?,
    })
}

const CURATION: &str = r#"
    SELECT kind, one, other, idx, text, note, found_by, cosine, judged_by, confidence
      FROM (SELECT 'rejected_fact' AS kind, encode(content_hash, 'hex') AS one, NULL AS other, NULL::integer AS idx, NULL AS text,
                   NULL AS note, NULL AS found_by, NULL::real AS cosine, NULL AS judged_by, NULL::real AS confidence
              FROM okt_repository.rejected_facts WHERE repository_id = $1
             UNION ALL
            SELECT 'rejected_link', encode(l.content_hash, 'hex'), NULL, x.idx, NULL, NULL, NULL, NULL, NULL, NULL
              FROM okt_repository.rejected_links l JOIN x_concepts x ON x.no = l.concept_no AND x.is_root
             WHERE l.repository_id = $1
             UNION ALL
            SELECT 'rejected_alias', NULL, NULL, x.idx, a.alias_key, NULL, NULL, NULL, NULL, NULL
              FROM okt_repository.rejected_aliases a JOIN x_concepts x ON x.no = a.concept_no AND x.is_root
             WHERE a.repository_id = $1
             UNION ALL
            SELECT 'contradiction', encode(content_hash, 'hex'), encode(other_hash, 'hex'), NULL, state, note, NULL, NULL, NULL, NULL
              FROM okt_repository.contradiction_states WHERE repository_id = $1
             UNION ALL
            SELECT 'found_contradiction', least(encode(a.content_hash, 'hex'), encode(b.content_hash, 'hex')),
                   greatest(encode(a.content_hash, 'hex'), encode(b.content_hash, 'hex')), NULL, n.difference, NULL, n.found_by, n.cosine,
                   n.judged_by, n.confidence
              FROM okt_repository.fact_contradictions n
              JOIN x_facts i ON i.no = n.fact_no
              JOIN x_facts o ON o.no = n.other_no
              JOIN okt_repository.facts a ON a.repository_id = $1 AND a.no = n.fact_no
              JOIN okt_repository.facts b ON b.repository_id = $1 AND b.no = n.other_no
             WHERE n.repository_id = $1) AS c
     ORDER BY kind COLLATE "C", one COLLATE "C", other COLLATE "C", idx, text COLLATE "C""#;

fn curation(row: &PgRow) -> Result<CurationRow> {
    let concept: Option<i32> = row.try_get(3)?;
    Ok(CurationRow {
        kind: row.try_get(0)?,
        content_hash: text(row, 1)?,
        other_hash: text(row, 2)?,
        concept_idx: concept.map(i32::unsigned_abs),
        text: text(row, 4)?,
        note: text(row, 5)?,
        found_by: text(row, 6)?,
        cosine: row.try_get::<Option<f32>, _>(7)?.map(Decimal::of_single),
        judged_by: text(row, 8)?,
        confidence: row.try_get::<Option<f32>, _>(9)?.map(Decimal::of_single),
        ..CurationRow::default()
    })
}

const MARKS: &str = "
    SELECT x.idx, b.idx, m.kind, m.reason, m.origin
      FROM okt_repository.source_marks m
      JOIN x_sources x ON x.no = m.source_no
      LEFT JOIN x_sources b ON b.no = m.by_no
     WHERE m.repository_id = $1 AND m.kind IS NOT NULL
     ORDER BY x.idx";

fn mark(row: &PgRow) -> Result<CurationRow> {
    let by: Option<i32> = row.try_get(1)?;
    Ok(CurationRow {
        kind: "marked_source".to_owned(),
        source_idx: Some(number(row, 0)?),
        by_idx: by.map(i32::unsigned_abs),
        text: text(row, 2)?,
        note: text(row, 3)?,
        found_by: text(row, 4)?,
        ..CurationRow::default()
    })
}

fn number(row: &PgRow, column: usize) -> Result<u32> {
    Ok(row.try_get::<i32, _>(column)?.unsigned_abs())
}

fn numbers(row: &PgRow, column: &str) -> Result<Vec<u32>> {
    let numbers: Vec<i32> = row.try_get(column)?;
    Ok(numbers.into_iter().map(i32::unsigned_abs).collect())
}

fn text(row: &PgRow, column: usize) -> Result<String> {
    Ok(row.try_get::<Option<String>, _>(column)?.unwrap_or_default())
}
