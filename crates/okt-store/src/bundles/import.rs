//! A bundle that becomes a part of a repository, in one transaction: until it is committed nobody sees any of it.
//!
//! The rows are copied into temporary tables (`t_…`), and from there into the tables of the repository, in the order in which they refer to
//! each other. What is there already is kept, and what refers to it is led to it (`m_…`: the numbers of the bundle and those
//! here). New rows have ids made of the job and of their number in the bundle, so a job that is run again names them the same
//! and finds them.

use okt_interchange::bundle::{
    AliasRow, AnnotationRow, BodyRow, ConceptRow, CurationRow, FactConceptRow, FactRow, FactSourceRow,
    ImageRow, InvestigationRow, InvestigationSourceRow, ReferenceRow, ReportRow, SourceRow, SummaryRow,
    SynthesisRow,
};
use okt_model::{Blob, ConceptId, ContentHash, Error, JobId, MOST_CONTEXTS, RepositoryId, SourceId};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::citations;
use super::import_rows::{SourceNames, Staging, TABLES};
use crate::report_sentences::NewSentence;
use crate::repository_locks::{self, RepositoryLock};
use crate::{concept_relations, concepts, contexts, counters, fact_merges, fact_vectors};
use okt_pg::Result;

/// So many changed facts are counted one by one; more are less work all at once.
const MANY: i64 = 100_000;
/// Names that are looked for at once.
const NAMES: i64 = 5_000;

/// What an id is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Source,
    Image,
    Fact,
    Concept,
    Summary,
    Investigation,
    Report,
}

/// The id of what an import makes of a row: later rows have greater ones.
pub fn derived(job: JobId, kind: Kind, idx: u32) -> Uuid {
    let hash: [u8; 32] = Sha256::digest(job.uuid().as_bytes()).into();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&job.uuid().as_bytes()[..6]);
    bytes[6] = kind as u8;
    bytes[7..12].copy_from_slice(&hash[..5]);
    bytes[12..].copy_from_slice(&idx.to_be_bytes());
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// How much of a kind came in, and how much was there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    pub added: i64,
    pub linked: i64,
}

/// What an import came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TakenIn {
    pub sources: Taken,
    pub facts: Taken,
    pub fact_sources: Taken,
    pub concepts: Taken,
    pub aliases: Taken,
    pub fact_concepts: Taken,
    /// Slices of concepts that have some here are passed over, and so are definitions.
    pub summaries: Taken,
    pub syntheses: Taken,
    pub investigations: Taken,
    pub reports: Taken,
    pub annotations: Taken,
    pub citations_lost: u64,
    /// Sources that say other facts than before: their words are to be listed.
    #[serde(skip)]
    pub touched: Vec<SourceId>,
}

/// Where a bundle came from.
#[derive(Clone, Debug)]
pub struct BundleOrigin {
    /// The registry, and what it calls the bundle; `None` for one that somebody uploaded.
    pub registry: Option<(String, String)>,
    /// The hash of the graph.
    pub sha256: ContentHash,
    /// Who signed it.
    pub key_id: Option<String>,
    /// Who gave it to the registry, as the registry says.
    pub pushed_by: Option<String>,
}

/// A bundle on its way into a repository.
pub struct Intake<'c> {
    conn: &'c mut PgConnection,
    repository: RepositoryId,
    job: JobId,
    staging: Staging,
}

impl<'c> Intake<'c> {
    /// Begins it in a transaction. `None` while another bundle is being taken in.
    #[tracing::instrument(level = "debug", name = "db.bundles.begin", skip_all, fields(repository.id = %repository))]
    pub async fn begin(
        conn: &'c mut PgConnection,
        repository: RepositoryId,
        job: JobId,
    ) -> Result<Option<Intake<'c>>> {
        sqlx::query("SET LOCAL statement_timeout = 0").execute(&mut *conn).await?;
        sqlx::query("SET LOCAL idle_in_transaction_session_timeout = 0").execute(&mut *conn).await?;
        if !repository_locks::try_hold(conn, repository, RepositoryLock::Import).await? {
            return Ok(None);
        }
        for table in TABLES {
            let create = format!("CREATE TEMPORARY TABLE {table} ON COMMIT DROP");
            sqlx::query(AssertSqlSafe(create)).execute(&mut *conn).await?;
        }
        Ok(Some(Self { conn, repository, job, staging: Staging::new(job) }))
    }

    /// Sends rows that were put, if there are enough of them.
    pub async fn send(&mut self) -> Result<()> {
        self.staging.send(self.conn, false).await
    }

    pub fn source(&mut self, row: &SourceRow) -> okt_model::Result<()> {
        self.staging.source(row)
    }

    pub fn body(&mut self, row: &BodyRow, blob: Blob) {
        self.staging.body(row, blob);
    }

    pub fn image(&mut self, row: &ImageRow, blob: Option<Blob>) {
        self.staging.image(row, blob);
    }

    pub fn fact(&mut self, row: &FactRow) {
        self.staging.fact(row);
    }

    pub fn fact_source(&mut self, row: &FactSourceRow) {
        self.staging.fact_source(row);
    }

    pub fn reference(&mut self, row: &ReferenceRow) {
        self.staging.reference(row);
    }

    pub fn concept(&mut self, row: &ConceptRow) {
        self.staging.concept(row);
    }

    pub fn alias(&mut self, row: &AliasRow) {
        self.staging.alias(row);
    }

    pub fn fact_concept(&mut self, row: &FactConceptRow) {
        self.staging.fact_concept(row);
    }

    pub fn summary(&mut self, row: &SummaryRow) {
        self.staging.summary(row);
    }

    pub fn synthesis(&mut self, row: &SynthesisRow) {
        self.staging.synthesis(row);
    }

    pub fn investigation(&mut self, row: &InvestigationRow) {
        self.staging.investigation(row);
    }

    pub fn investigation_source(&mut self, row: &InvestigationSourceRow) {
        self.staging.investigation_source(row);
    }

    /// With its sentences, and the words of its title (place -1) and of each sentence.
    pub fn report(
        &mut self,
        row: &ReportRow,
        sentences: &[NewSentence],
        words: &[(i32, Vec<String>)],
        language: Option<&str>,
    ) {
        self.staging.report(row, sentences, words, language);
    }

    pub fn annotation(&mut self, row: &AnnotationRow) {
        self.staging.annotation(row);
    }

    pub fn curation(&mut self, row: &CurationRow) {
        self.staging.curation(row);
    }

    /// Takes in all that was sent. `floor` is how many facts a concept has at least to be summed up; `most_sources` how many sources the
    /// repository may have, 0 for any number; `space` whose vectors are searched here; `origin` where it came from.
    #[tracing::instrument(level = "debug", name = "db.bundles.take_in", skip_all, fields(repository.id = %self.repository))]
    pub async fn take_in(
        mut self,
        floor: i64,
        most_sources: u64,
        space: Option<i16>,
        origin: &BundleOrigin,
    ) -> Result<TakenIn> {
        self.staging.send(self.conn, true).await?;
        self.note(origin).await?;
        for index in [
            "CREATE INDEX ON t_facts (idx)",
            "CREATE INDEX ON t_facts (uuid)",
            "CREATE INDEX ON t_concepts (idx)",
            "CREATE INDEX ON t_summaries (idx)",
            "ANALYZE t_sources, t_images, t_facts, t_fact_sources, t_references, t_concepts, t_fact_concepts, t_summary_facts",
        ] {
            self.run(index).await?;
        }
        let mut taken = TakenIn::default();
        let noted = self.last("report_facts").await?;
        let unchecked = self.last("unchecked_facts").await?;
        self.sources(&mut taken, most_sources).await?;
        self.facts(&mut taken).await?;
        self.concepts(&mut taken).await?;
        self.relations(floor, unchecked).await?;
        self.summaries(&mut taken).await?;
        self.investigations(&mut taken).await?;
        self.reports(&mut taken, space).await?;
        self.curation_rows().await?;
        // Reports were not checked against these facts where they come from, and are not here before somebody asks for it.
        let forget = sqlx::query(
            "DELETE FROM okt_repository.report_facts
              WHERE repository_id = $1 AND no > $2 AND fact_no IN (SELECT no FROM m_facts)",
        );
        forget.bind(self.repository.uuid()).bind(noted).execute(&mut *self.conn).await?;
        counters::add(self.conn, self.repository, "facts", taken.facts.added).await?;
        counters::add(self.conn, self.repository, "concepts", taken.concepts.added).await?;
        counters::add(self.conn, self.repository, "investigations", taken.investigations.added).await?;
        counters::add(self.conn, self.repository, "reports", taken.reports.added).await?;
        self.run(
            "UPDATE okt_repository.imports i
                SET facts = i.facts + (SELECT count(*) FROM m_facts WHERE is_new)
              WHERE i.repository_id = $1 AND i.no = (SELECT no FROM n_import)",
        )
        .await?;
        Ok(taken)
    }

    /// Says where the bundle came from; once, however often the job runs.
    async fn note(&mut self, origin: &BundleOrigin) -> Result<()> {
        let note = sqlx::query(
            "INSERT INTO okt_repository.imports
                    (repository_id, kind, job_id, registry, registry_item, sha256, key_id, pushed_by, facts)
             SELECT $1, 'bundle', $2, $3, $4, $5, $6, $7, 0
              WHERE NOT EXISTS (SELECT FROM okt_repository.imports i
                                 WHERE i.repository_id = $1 AND i.job_id = $2 AND i.kind = 'bundle')",
        );
        let (registry, item) = origin.registry.clone().unzip();
        note.bind(self.repository.uuid())
            .bind(self.job.uuid())
            .bind(registry)
            .bind(item)
            .bind(origin.sha256.0.to_vec())
            .bind(&origin.key_id)
            .bind(&origin.pushed_by)
            .execute(&mut *self.conn)
            .await?;
        self.run("CREATE TEMPORARY TABLE n_import (no bigint) ON COMMIT DROP").await?;
        self.run(
            "INSERT INTO n_import
             SELECT no FROM okt_repository.imports WHERE repository_id = $1 AND job_id = $2 AND kind = 'bundle'",
        )
        .await?;
        Ok(())
    }

    /// A statement that may name the repository as `$1`.
    async fn run(&mut self, statement: &'static str) -> Result<i64> {
        let query = sqlx::query(statement);
        let query = if statement.contains("$1") { query.bind(self.repository.uuid()) } else { query };
        let query = if statement.contains("$2") { query.bind(self.job.uuid()) } else { query };
        let done = query.execute(&mut *self.conn).await?;
        Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
    }

    async fn count(&mut self, statement: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(statement).fetch_one(&mut *self.conn).await?)
    }

    async fn last(&mut self, table: &str) -> Result<i64> {
        let last =
            format!("SELECT coalesce(max(no), 0) FROM okt_repository.{table} WHERE repository_id = $1");
        let last = sqlx::query_scalar(AssertSqlSafe(last)).bind(self.repository.uuid());
        Ok(last.fetch_one(&mut *self.conn).await?)
    }

    async fn sources(&mut self, taken: &mut TakenIn, most: u64) -> Result<()> {
        // First of all, as everybody who adds sources does.
        counters::add(self.conn, self.repository, "sources", 0).await?;
        self.run(INSERT_SOURCES).await?;
        self.run(MAP_SOURCES).await?;
        let added = self.count("SELECT count(*) FROM m_sources WHERE is_new").await?;
        let all = self.count("SELECT count(*) FROM t_sources").await?;
        let mapped = self.count("SELECT count(*) FROM m_sources").await?;
        if mapped != all {
            return Err(Error::Overloaded("a source of the bundle is just being deleted").into());
        }
        let used = counters::add(self.conn, self.repository, "sources", added).await?;
        if added > 0 {
            let (used, added) = (used - added, added);
            Error::check_quota(
                ("the repository has", "sources"),
                (used.unsigned_abs(), added.unsigned_abs()),
                ("limits.sources_per_repository", most),
            )?;
        }
        taken.sources = Taken { added, linked: all - added };
        self.run(INSERT_TEXTS).await?;
        self.run(INSERT_IMAGES).await?;
        self.run(SAID_MARKS).await?;
        self.run("CREATE INDEX ON n_marks (by_no)").await?;
        self.run("ANALYZE n_marks").await?;
        self.run(INSERT_MARKS).await?;
        self.run(
            "CREATE TEMPORARY TABLE m_images ON COMMIT DROP AS
             SELECT t.idx, s.no AS source_no, s.id AS source_id, t.id
               FROM t_images t JOIN m_sources s ON s.idx = t.source_idx AND s.is_new",
        )
        .await?;
        self.run("CREATE INDEX ON m_images (idx)").await?;
        Ok(())
    }

    async fn facts(&mut self, taken: &mut TakenIn) -> Result<()> {
        // Those that are here stay until the end of the transaction.
        let held = sqlx::query(
            "SELECT f.no FROM okt_repository.facts f
              WHERE f.repository_id = $1 AND f.content_hash IN (SELECT hash FROM t_facts)
              ORDER BY f.content_hash FOR UPDATE",
        );
        held.bind(self.repository.uuid()).execute(&mut *self.conn).await?;
        self.run(INSERT_FACTS).await?;
        self.run(
            "CREATE TEMPORARY TABLE m_facts ON COMMIT DROP AS
             SELECT t.idx, f.no, f.id, f.id = t.id AS is_new
               FROM t_facts t JOIN okt_repository.facts f ON f.repository_id = $1 AND f.content_hash = t.hash",
        )
        .await?;
        self.run("CREATE INDEX ON m_facts (idx)").await?;
        self.run("CREATE INDEX ON m_facts (no)").await?;
        self.run("ANALYZE m_facts, m_sources").await?;
        let (all, mapped, added) = (
            self.count("SELECT count(*) FROM t_facts").await?,
            self.count("SELECT count(*) FROM m_facts").await?,
            self.count("SELECT count(*) FROM m_facts WHERE is_new").await?,
        );
        if all != mapped {
            return Err(Error::Overloaded("a fact of the bundle is just being deleted").into());
        }
        taken.facts = Taken { added, linked: all - added };
        self.run(LINKS).await?;
        self.run(INSERT_LINKS).await?;
        taken.fact_sources.added = self.count("SELECT count(*) FROM n_links").await?;
        let links = self
            .count("SELECT count(*) FROM (SELECT DISTINCT fact_idx, source_idx FROM t_fact_sources) AS l")
            .await?;
        taken.fact_sources.linked = links - taken.fact_sources.added;
        self.run(
            "UPDATE okt_repository.sources s SET fact_count = s.fact_count + n.facts
               FROM (SELECT source_no, count(*) AS facts FROM n_links GROUP BY source_no) AS n
              WHERE s.repository_id = $1 AND s.no = n.source_no",
        )
        .await?;
        self.run(
            "UPDATE okt_repository.facts f SET source_count = n.sources
               FROM (SELECT l.fact_no, count(*) AS sources
                       FROM okt_repository.fact_sources l
                      WHERE l.repository_id = $1 AND l.fact_no IN (SELECT fact_no FROM n_links)
                      GROUP BY l.fact_no) AS n
              WHERE f.repository_id = $1 AND f.no = n.fact_no AND f.source_count <> n.sources",
        )
        .await?;
        self.run(MERGE_DUPLICATES).await?;
        let canonical = sqlx::query_scalar(
            "SELECT DISTINCT coalesce(f.merged_into, f.no) FROM okt_repository.facts f
              WHERE f.repository_id = $1 AND f.no IN (SELECT fact_no FROM n_links)
                AND (f.merged_into IS NOT NULL
                     OR EXISTS (SELECT FROM okt_repository.facts m WHERE m.repository_id = $1 AND m.merged_into = f.no))",
        );
        let canonical: Vec<i64> = canonical.bind(self.repository.uuid()).fetch_all(&mut *self.conn).await?;
        for some in canonical.chunks(1_000) {
            fact_merges::recount(self.conn, self.repository, some).await?;
        }
        let touched = sqlx::query_scalar(
            "SELECT id FROM m_sources WHERE is_new UNION SELECT s.id FROM m_sources s JOIN n_links l ON l.source_no = s.no",
        );
        let touched: Vec<Uuid> = touched.fetch_all(&mut *self.conn).await?;
        taken.touched = touched.into_iter().map(SourceId::from).collect();
        Ok(())
    }

    async fn concepts(&mut self, taken: &mut TakenIn) -> Result<()> {
        let labels = sqlx::query_scalar(
            "SELECT DISTINCT ON (lower(context)) context FROM t_concepts ORDER BY lower(context), context",
        );
        let labels: Vec<String> = labels.fetch_all(&mut *self.conn).await?;
        let added = self.run(INSERT_CONTEXTS).await?;
        if added > 0 && contexts::count(self.conn, self.repository).await? > MOST_CONTEXTS {
            let reason = format!("has contexts that the repository has not, and it may have {MOST_CONTEXTS}");
            return Err(Error::invalid("bundle", reason).into());
        }
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        contexts::hold(self.conn, self.repository, &labels).await?;
        self.run(FIND_CONCEPTS).await?;
        self.find_otherwise().await?;
        self.run(INSERT_CONCEPTS).await?;
        self.run(MAP_CONCEPTS).await?;
        self.run("CREATE INDEX ON m_concepts (idx)").await?;
        self.run("CREATE INDEX ON m_concepts (no)").await?;
        self.run("ANALYZE m_concepts").await?;
        let (all, mapped, added) = (
            self.count("SELECT count(*) FROM t_concepts").await?,
            self.count("SELECT count(*) FROM m_concepts").await?,
            self.count("SELECT count(*) FROM m_concepts WHERE is_new").await?,
        );
        if all != mapped {
            return Err(Error::Overloaded("a concept of the bundle is just being changed").into());
        }
        taken.concepts = Taken { added, linked: all - added };
        self.run(
            "UPDATE okt_repository.contexts x SET concept_count = x.concept_count + n.concepts
               FROM (SELECT c.context_no, count(*) AS concepts
                       FROM m_concepts m JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = m.no
                      WHERE m.is_new GROUP BY c.context_no) AS n
              WHERE x.repository_id = $1 AND x.no = n.context_no",
        )
        .await?;
        self.run(
            "INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
             SELECT DISTINCT $1::uuid, w.word, m.no FROM t_words w JOIN m_concepts m ON m.idx = w.concept_idx AND m.is_new
             ON CONFLICT DO NOTHING",
        )
        .await?;
        taken.aliases.added = self.run(INSERT_ALIASES).await?;
        taken.aliases.linked = self.count("SELECT count(*) FROM t_aliases").await? - taken.aliases.added;
        taken.fact_concepts.added = self.run(INSERT_FACT_CONCEPTS).await?;
        taken.fact_concepts.linked =
            self.count("SELECT count(*) FROM t_fact_concepts").await? - taken.fact_concepts.added;
        Ok(())
    }

    /// Concepts that are called otherwise here: by an alias, or by the name of one that was merged.
    async fn find_otherwise(&mut self) -> Result<()> {
        let mut after = -1;
        loop {
            let missing = sqlx::query_as(
                "SELECT t.idx, t.name, t.context FROM t_concepts t
                  WHERE t.idx > $1 AND NOT EXISTS (SELECT FROM f_concepts f WHERE f.idx = t.idx) ORDER BY t.idx LIMIT $2",
            );
            let missing: Vec<(i32, String, String)> =
                missing.bind(after).bind(NAMES).fetch_all(&mut *self.conn).await?;
            let Some((last, ..)) = missing.last() else { return Ok(()) };
            after = *last;
            let names: Vec<(&str, &str)> =
                missing.iter().map(|(_, name, context)| (name.as_str(), context.as_str())).collect();
            let found = concepts::find(self.conn, self.repository, &names).await?;
            let (places, ids): (Vec<i32>, Vec<Uuid>) = missing
                .iter()
                .zip(found)
                .filter_map(|((idx, ..), found)| Some((*idx, found.map(ConceptId::uuid)?)))
                .unzip();
            let insert = sqlx::query(
                "INSERT INTO f_concepts (idx, no)
                 SELECT n.idx, c.no FROM unnest($2::integer[], $3::uuid[]) AS n (idx, id)
                   JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.id = n.id",
            );
            insert.bind(self.repository.uuid()).bind(&places).bind(&ids).execute(&mut *self.conn).await?;
        }
    }

    /// Counts what concepts have and share now. Nobody sums them up anew for that: what is known of them came with them.
    async fn relations(&mut self, floor: i64, unchecked: i64) -> Result<()> {
        concept_relations::hold(self.conn, self.repository).await?;
        self.run(
            "CREATE TEMPORARY TABLE n_waiting ON COMMIT DROP AS
             SELECT concept_no FROM okt_repository.summary_states WHERE repository_id = $1 AND changed > seen",
        )
        .await?;
        if concept_relations::count_changes(self.conn, self.repository, MANY).await? >= MANY {
            concept_relations::recompute(self.conn, self.repository).await?;
        } else {
            while concept_relations::fold(self.conn, self.repository, 5_000).await?.changes > 0 {}
        }
        self.run(
            "UPDATE okt_repository.summary_states s SET seen = s.changed
              WHERE s.repository_id = $1 AND s.changed > s.seen
                AND s.concept_no IN (SELECT no FROM m_concepts)
                AND NOT EXISTS (SELECT FROM n_waiting w WHERE w.concept_no = s.concept_no)",
        )
        .await?;
        let known = sqlx::query(
            "INSERT INTO okt_repository.summary_states (repository_id, concept_no, changed, seen)
             SELECT DISTINCT $1::uuid, c.no, 1, 1
               FROM m_concepts m JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = m.no
              WHERE c.fact_count >= $2
             ON CONFLICT DO NOTHING",
        );
        known.bind(self.repository.uuid()).bind(floor).execute(&mut *self.conn).await?;
        let checked = sqlx::query(
            "DELETE FROM okt_repository.unchecked_facts
              WHERE repository_id = $1 AND no > $2 AND fact_no IN (SELECT no FROM m_facts)",
        );
        checked.bind(self.repository.uuid()).bind(unchecked).execute(&mut *self.conn).await?;
        Ok(())
    }

    async fn summaries(&mut self, taken: &mut TakenIn) -> Result<()> {
        let all = self.count("SELECT count(*) FROM t_summaries").await?;
        taken.citations_lost += citations::rewrite(self.conn, "t_summaries", "idx", "content", false).await?;
        self.run(SELECT_SUMMARIES).await?;
        self.run(INSERT_SUMMARIES).await?;
        self.run(MAP_SUMMARIES).await?;
        let added = self.count("SELECT count(*) FROM m_summaries WHERE is_new").await?;
        self.run(INSERT_SUMMARY_FACTS).await?;
        taken.summaries = Taken { added, linked: all - added };
        let all = self.count("SELECT count(*) FROM t_syntheses").await?;
        taken.citations_lost += citations::rewrite(self.conn, "t_syntheses", "n", "content", false).await?;
        let added = self.run(INSERT_SYNTHESES).await?;
        taken.syntheses = Taken { added, linked: all - added };
        Ok(())
    }

    async fn investigations(&mut self, taken: &mut TakenIn) -> Result<()> {
        self.run(
            "INSERT INTO okt_repository.investigations (repository_id, id, title, topic, import_no)
             SELECT $1, t.id, t.title, t.topic, (SELECT no FROM n_import) FROM t_investigations t
              WHERE NOT EXISTS (SELECT FROM okt_repository.investigations i
                                 WHERE i.repository_id = $1 AND i.title = t.title AND i.topic IS NOT DISTINCT FROM t.topic)
              ORDER BY t.idx
             ON CONFLICT DO NOTHING",
        )
        .await?;
        self.run(
            "CREATE TEMPORARY TABLE m_investigations ON COMMIT DROP AS
             SELECT DISTINCT ON (t.idx) t.idx, i.no, i.id = t.id AS is_new
               FROM t_investigations t
               JOIN okt_repository.investigations i
                 ON i.repository_id = $1 AND i.title = t.title AND i.topic IS NOT DISTINCT FROM t.topic
              ORDER BY t.idx, i.id = t.id DESC, i.no",
        )
        .await?;
        // Whoever adds one holds its investigation.
        self.run(
            "WITH held AS (SELECT i.no FROM okt_repository.investigations i
                            WHERE i.repository_id = $1 AND i.no IN (SELECT no FROM m_investigations) ORDER BY i.no FOR UPDATE),
                  added AS (
                      INSERT INTO okt_repository.investigation_sources (repository_id, investigation_no, source_no)
                      SELECT DISTINCT $1::uuid, m.no, s.no
                        FROM t_investigation_sources t
                        JOIN m_investigations m ON m.idx = t.investigation_idx
                        JOIN held h ON h.no = m.no
                        JOIN m_sources s ON s.idx = t.source_idx
                      ON CONFLICT DO NOTHING RETURNING investigation_no)
             UPDATE okt_repository.investigations i SET source_count = i.source_count + n.sources
               FROM (SELECT investigation_no, count(*) AS sources FROM added GROUP BY investigation_no) AS n
              WHERE i.repository_id = $1 AND i.no = n.investigation_no",
        )
        .await?;
        let all = self.count("SELECT count(*) FROM t_investigations").await?;
        let added = self.count("SELECT count(*) FROM m_investigations WHERE is_new").await?;
        taken.investigations = Taken { added, linked: all - added };
        Ok(())
    }

    async fn reports(&mut self, taken: &mut TakenIn, space: Option<i16>) -> Result<()> {
        self.run("CREATE INDEX ON t_reports (idx)").await?;
        // A citation is as long as before, so the sentences stay where they are.
        citations::rewrite(self.conn, "t_reports", "idx", "body", true).await?;
        self.run(INSERT_REPORTS).await?;
        self.run(MAP_REPORTS).await?;
        self.run(
            "UPDATE okt_repository.reports r SET parent_no = p.no
               FROM t_reports t JOIN m_reports m ON m.idx = t.idx AND m.is_new JOIN m_reports p ON p.idx = t.parent
              WHERE r.repository_id = $1 AND r.no = m.no AND p.no <> m.no AND r.parent_no IS DISTINCT FROM p.no",
        )
        .await?;
        self.run(INSERT_SENTENCES).await?;
        // As if they had been compared by the model in use: nobody has them checked anew for lack of a vector.
        let current = sqlx::query(
            "UPDATE okt_repository.report_sentences s SET embedded_in = $2
               FROM m_reports m WHERE m.is_new AND s.repository_id = $1 AND s.report_no = m.no AND s.embedded_in IS NULL",
        );
        current.bind(self.repository.uuid()).bind(space).execute(&mut *self.conn).await?;
        self.run(
            "INSERT INTO okt_repository.report_words (repository_id, word, report_no, sentence_no)
             SELECT DISTINCT $1::uuid, w.word, m.no, coalesce(s.no, 0)
               FROM t_report_words w
               JOIN m_reports m ON m.idx = w.report_idx AND m.is_new
               LEFT JOIN okt_repository.report_sentences s ON s.repository_id = $1 AND s.report_no = m.no AND s.place = w.place
              WHERE w.place < 0 OR s.no IS NOT NULL
             ON CONFLICT DO NOTHING",
        )
        .await?;
        let added = self.run(INSERT_ANNOTATIONS).await?;
        taken.annotations =
            Taken { added, linked: self.count("SELECT count(*) FROM t_annotations").await? - added };
        self.run(SET_STATES).await?;
        let all = self.count("SELECT count(*) FROM t_reports").await?;
        let added = self.count("SELECT count(*) FROM m_reports WHERE is_new").await?;
        taken.reports = Taken { added, linked: all - added };
        Ok(())
    }

    /// What people rejected elsewhere holds for what is new here; contradictions that were found elsewhere are shown here.
    async fn curation_rows(&mut self) -> Result<()> {
        self.run(
            "INSERT INTO okt_repository.rejected_facts (repository_id, content_hash)
             SELECT DISTINCT $1::uuid, t.hash FROM t_curation t
              WHERE t.kind = 'rejected_fact' AND t.hash IS NOT NULL
                AND NOT EXISTS (SELECT FROM okt_repository.facts f
                                 WHERE f.repository_id = $1 AND f.content_hash = t.hash AND f.status <> 'rejected')
             ON CONFLICT DO NOTHING",
        )
        .await?;
        self.run(
            "INSERT INTO okt_repository.rejected_links (repository_id, content_hash, concept_no)
             SELECT DISTINCT $1::uuid, t.hash, m.no FROM t_curation t JOIN m_concepts m ON m.idx = t.concept_idx AND m.is_new
              WHERE t.kind = 'rejected_link' AND t.hash IS NOT NULL
             ON CONFLICT DO NOTHING",
        )
        .await?;
        self.run(
            "INSERT INTO okt_repository.rejected_aliases (repository_id, alias_key, concept_no)
             SELECT DISTINCT $1::uuid, t.text, m.no FROM t_curation t JOIN m_concepts m ON m.idx = t.concept_idx AND m.is_new
              WHERE t.kind = 'rejected_alias' AND t.text <> ''
             ON CONFLICT DO NOTHING",
        )
        .await?;
        self.run(
            "INSERT INTO okt_repository.fact_contradictions
                    (repository_id, fact_no, other_no, difference, cosine, found_by, judged_by, confidence)
             SELECT DISTINCT ON (least(one.no, other.no), greatest(one.no, other.no))
                    $1::uuid, least(one.no, other.no), greatest(one.no, other.no), t.text, t.cosine, t.found_by,
                    t.judged_by, t.confidence
               FROM t_curation t
               JOIN t_facts a ON a.hash = t.hash JOIN m_facts one ON one.idx = a.idx
               JOIN t_facts b ON b.hash = t.other JOIN m_facts other ON other.idx = b.idx
              WHERE t.kind = 'found_contradiction' AND one.no <> other.no
              ORDER BY 2, 3, t.text
             ON CONFLICT DO NOTHING",
        )
        .await?;
        // What people say here holds. Who said it elsewhere has no account here.
        self.run(
            "INSERT INTO okt_repository.contradiction_states (repository_id, content_hash, other_hash, state, note, person)
             SELECT DISTINCT ON (least(t.hash, t.other), greatest(t.hash, t.other))
                    $1::uuid, least(t.hash, t.other), greatest(t.hash, t.other), t.text, t.note, NULL::uuid
               FROM t_curation t
              WHERE t.kind = 'contradiction' AND t.hash <> t.other
                AND t.hash IN (SELECT hash FROM t_facts) AND t.other IN (SELECT hash FROM t_facts)
              ORDER BY 2, 3, t.text
             ON CONFLICT DO NOTHING",
        )
        .await?;
        Ok(())
    }
}

/// Which of these are in the repository already, by their place in the list.
#[tracing::instrument(level = "debug", name = "db.bundles.find_sources", skip_all)]
pub async fn find_sources(
    conn: &mut PgConnection,
    repository: RepositoryId,
    sources: &[SourceNames],
) -> Result<Vec<bool>> {
    let locators: Vec<Option<Vec<u8>>> = sources.iter().map(|names| names.locator_hash.clone()).collect();
    let dois: Vec<Option<Vec<u8>>> = sources.iter().map(|names| names.doi_hash.clone()).collect();
    let hashes: Vec<Option<Vec<u8>>> = sources.iter().map(|names| names.sha256.clone()).collect();
    let there = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM okt_repository.sources s WHERE s.repository_id = $1 AND s.locator_hash = n.locator)
             OR EXISTS (SELECT FROM okt_repository.sources s WHERE s.repository_id = $1 AND s.doi_hash = n.doi)
             OR (n.locator IS NULL
                 AND EXISTS (SELECT FROM okt_repository.sources s
                              WHERE s.repository_id = $1 AND s.locator_hash IS NULL
                                AND coalesce(s.body_sha256, s.stated_sha256) = n.sha))
           FROM unnest($2::bytea[], $3::bytea[], $4::bytea[]) WITH ORDINALITY AS n (locator, doi, sha, at)
          ORDER BY n.at",
    );
    Ok(there.bind(repository.uuid()).bind(locators).bind(dois).bind(hashes).fetch_all(conn).await?)
}

/// Those of these facts that are there without a vector, with their numbers.
#[tracing::instrument(level = "debug", name = "db.bundles.find_new_facts", skip_all)]
pub async fn find_new_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, i64)>> {
    let rows = sqlx::query_as(
        "SELECT f.id, f.no FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.facts f ON f.repository_id = $1 AND f.id = n.id
          WHERE f.embedded_in IS NULL AND f.status IN ('new', 'stable')",
    );
    Ok(rows.bind(repository.uuid()).bind(ids).fetch_all(conn).await?)
}

/// These facts have vectors in a space now, which came with them: reports are not compared with them for that.
#[tracing::instrument(level = "debug", name = "db.bundles.mark_facts", skip_all)]
pub async fn mark_facts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    facts: &[i64],
    space: i16,
) -> Result<u64> {
    let noted = sqlx::query_scalar(
        "SELECT coalesce(max(no), 0) FROM okt_repository.report_facts WHERE repository_id = $1",
    );
    let noted: i64 = noted.bind(repository.uuid()).fetch_one(&mut *conn).await?;
    let marked = fact_vectors::mark(conn, repository, facts, Some(space)).await?;
    let forget = sqlx::query(
        "DELETE FROM okt_repository.report_facts WHERE repository_id = $1 AND no > $2 AND fact_no = ANY ($3)",
    );
    forget.bind(repository.uuid()).bind(noted).bind(facts).execute(conn).await?;
    Ok(marked)
}

/// The numbers of those of these concepts that are there without a vector.
#[tracing::instrument(level = "debug", name = "db.bundles.find_new_concepts", skip_all)]
pub async fn find_new_concepts(
    conn: &mut PgConnection,
    repository: RepositoryId,
    ids: &[Uuid],
) -> Result<Vec<i64>> {
    let rows = sqlx::query_scalar(
        "SELECT c.no FROM unnest($2::uuid[]) AS n (id)
           JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.id = n.id
          WHERE c.embedded_in IS NULL AND c.merged_into IS NULL",
    );
    Ok(rows.bind(repository.uuid()).bind(ids).fetch_all(conn).await?)
}

const INSERT_SOURCES: &str = r#"
    INSERT INTO okt_repository.sources
           (repository_id, id, job_id, locator_hash, url, doi, doi_hash, status, failure, kind, content_type, title, author,
            site_name, published_at, language, license, body_sha256, body_size, file_name, stated_sha256, stated_body,
            fetched_at, processed_at, import_no)
    SELECT $1, t.id, $2, t.locator_hash,
           CASE WHEN t.locator_hash IS NULL THEN 'upload://' || t.id WHEN t.url = '' THEN 'https://doi.org/' || t.doi ELSE t.url END,
           t.doi, t.doi_hash, t.status,
           CASE WHEN t.status = 'failed'
                THEN '{"stage": "fetch", "code": "imported", "message": "it had not been read where it was imported from", "retryable": true}'::jsonb
           END,
           t.kind, coalesce(b.content_type, t.content_type), t.title, t.author, t.site_name, t.published_at, t.language, t.license,
           b.sha, b.size, b.file_name, t.sha, t.stated_body, clock_timestamp(),
           CASE WHEN t.status = 'processed' THEN clock_timestamp() END, (SELECT no FROM n_import)
      FROM t_sources t
      LEFT JOIN (SELECT DISTINCT ON (source_idx) * FROM t_bodies ORDER BY source_idx) AS b ON b.source_idx = t.idx
     WHERE NOT EXISTS (SELECT FROM okt_repository.sources s WHERE s.repository_id = $1 AND s.locator_hash = t.locator_hash)
       AND NOT EXISTS (SELECT FROM okt_repository.sources s WHERE s.repository_id = $1 AND s.doi_hash = t.doi_hash)
       AND (t.locator_hash IS NOT NULL
            OR NOT EXISTS (SELECT FROM okt_repository.sources s
                            WHERE s.repository_id = $1 AND s.locator_hash IS NULL
                              AND coalesce(s.body_sha256, s.stated_sha256) = t.sha))
     ORDER BY t.idx
    ON CONFLICT DO NOTHING"#;

const MAP_SOURCES: &str = "
    CREATE TEMPORARY TABLE m_sources ON COMMIT DROP AS
    SELECT DISTINCT ON (n.idx) n.idx, n.no, n.id, n.is_new,
           n.is_new OR EXISTS (SELECT FROM okt_repository.source_texts x
                                WHERE x.repository_id = $1 AND x.source_id = n.id AND x.text = n.text) AS same_text
      FROM (SELECT t.idx, s.no, s.id, s.id = t.id AS is_new, t.text, 1 AS rank
              FROM t_sources t JOIN okt_repository.sources s ON s.repository_id = $1 AND s.id = t.id
             UNION ALL
            SELECT t.idx, s.no, s.id, false, t.text, 2
              FROM t_sources t JOIN okt_repository.sources s ON s.repository_id = $1 AND s.locator_hash = t.locator_hash
             UNION ALL
            SELECT t.idx, s.no, s.id, false, t.text, 3
              FROM t_sources t JOIN okt_repository.sources s ON s.repository_id = $1 AND s.doi_hash = t.doi_hash
             UNION ALL
            SELECT t.idx, s.no, s.id, false, t.text, 4
              FROM t_sources t
              JOIN okt_repository.sources s
                ON s.repository_id = $1 AND s.locator_hash IS NULL AND coalesce(s.body_sha256, s.stated_sha256) = t.sha
             WHERE t.locator_hash IS NULL) AS n
     ORDER BY n.idx, n.rank, n.no";

const INSERT_TEXTS: &str = "
    INSERT INTO okt_repository.source_texts
           (repository_id, source_id, text, markdown, sentences, boxes, segmenter, segmenter_hash, pages)
    SELECT $1, m.id, t.text, t.markdown, t.sentences, t.boxes, t.segmenter, t.segmenter_hash, coalesce(t.pages, '[]')
      FROM t_sources t JOIN m_sources m ON m.idx = t.idx AND m.is_new
     WHERE t.text <> '' OR t.markdown <> ''
    ON CONFLICT DO NOTHING";

const INSERT_IMAGES: &str = "
    INSERT INTO okt_repository.source_images
           (repository_id, source_id, id, kind, page_number, position, url, width, height, alt_text, content_type, sha256, size)
    SELECT $1, m.id, t.id, t.kind, t.page_number, t.position, t.url, t.width, t.height, t.alt_text, t.content_type, t.sha, t.size
      FROM t_images t JOIN m_sources m ON m.idx = t.source_idx AND m.is_new
    ON CONFLICT DO NOTHING";

const INSERT_FACTS: &str = "
    INSERT INTO okt_repository.facts
           (repository_id, id, text, content_hash, kind, status, model, promptset_hash, source_count)
    SELECT $1, n.id, n.text, n.hash, n.kind,
           CASE WHEN EXISTS (SELECT FROM okt_repository.rejected_facts r WHERE r.repository_id = $1 AND r.content_hash = n.hash)
                THEN 'rejected' ELSE n.status END,
           n.model, n.promptset, 0
      FROM (SELECT DISTINCT ON (t.hash) t.* FROM t_facts t ORDER BY t.hash, t.idx) AS n
     WHERE NOT EXISTS (SELECT FROM okt_repository.facts f WHERE f.repository_id = $1 AND f.content_hash = n.hash)
     ORDER BY n.hash
    ON CONFLICT DO NOTHING";

/// Links that are not there. Sentences are of a text, so they count only where it is the same here.
const LINKS: &str = "
    CREATE TEMPORARY TABLE n_links ON COMMIT DROP AS
    SELECT DISTINCT ON (s.no, f.no) s.no AS source_no, f.no AS fact_no, l.chunk,
           CASE WHEN s.same_text THEN coalesce(r.sentences, '{}') ELSE '{}' END AS sentences, i.id AS image_id
      FROM t_fact_sources l
      JOIN m_facts f ON f.idx = l.fact_idx
      JOIN m_sources s ON s.idx = l.source_idx
      JOIN t_facts t ON t.idx = l.fact_idx
      LEFT JOIN (SELECT x.fact_idx, x.source_idx, array_agg(x.sentence ORDER BY x.n) AS sentences
                   FROM t_references x JOIN t_sources y ON y.idx = x.source_idx
                  WHERE x.sentence < cardinality(y.sentences) / 2
                  GROUP BY x.fact_idx, x.source_idx) AS r
        ON r.fact_idx = l.fact_idx AND r.source_idx = l.source_idx
      LEFT JOIN m_images i ON i.idx = t.image_idx AND i.source_no = s.no
     WHERE NOT EXISTS (SELECT FROM okt_repository.fact_sources o
                        WHERE o.repository_id = $1 AND o.source_no = s.no AND o.fact_no = f.no)
     ORDER BY s.no, f.no, l.fact_idx, l.source_idx";

const INSERT_LINKS: &str = "
    INSERT INTO okt_repository.fact_sources (repository_id, source_no, fact_no, chunk_no, sentences, image_id, import_no)
    SELECT $1, source_no, fact_no, chunk, sentences, image_id, (SELECT no FROM n_import) FROM n_links
    ON CONFLICT DO NOTHING";

/// New facts that are duplicates of a fact which is not one itself.
const MERGE_DUPLICATES: &str = "
    WITH merged AS (
        UPDATE okt_repository.facts f SET status = 'duplicate', merged_into = c.no
          FROM t_facts t
          JOIN m_facts m ON m.idx = t.idx AND m.is_new
          JOIN t_facts k ON k.idx = t.duplicate_of AND k.duplicate_of IS NULL
          JOIN m_facts c ON c.idx = k.idx
          JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = c.no AND o.merged_into IS NULL
         WHERE f.repository_id = $1 AND f.no = m.no AND f.status = 'stable' AND c.no <> m.no
        RETURNING f.no, f.merged_into)
    INSERT INTO okt_repository.fact_merges (repository_id, fact_no, into_no, cosine, job_id)
    SELECT $1, no, merged_into, 1, $2 FROM merged";

const INSERT_CONTEXTS: &str = "
    INSERT INTO okt_repository.contexts (repository_id, label, description, ontology_class)
    SELECT $1, min(t.context), '', max(t.class) FROM t_concepts t GROUP BY lower(t.context) ORDER BY lower(t.context)
    ON CONFLICT (repository_id, lower(label)) DO NOTHING";

const FIND_CONCEPTS: &str = "
    CREATE TEMPORARY TABLE f_concepts ON COMMIT DROP AS
    SELECT t.idx, c.no
      FROM t_concepts t
      JOIN okt_repository.contexts x ON x.repository_id = $1 AND lower(x.label) = lower(t.context)
      JOIN okt_repository.concepts c
        ON c.repository_id = $1 AND c.name_key = t.name_key AND c.context_no = coalesce(x.merging_into, x.no)
       AND c.merged_into IS NULL";

/// They are described by what came with them: nobody compares them with others, or names them, anew.
const INSERT_CONCEPTS: &str = "
    INSERT INTO okt_repository.concepts
           (repository_id, id, canonical_name, context_no, name_key, description, refined, import_no)
    SELECT $1, n.id, n.name, n.context_no, n.name_key, n.description, true, (SELECT no FROM n_import)
      FROM (SELECT DISTINCT ON (t.name_key, coalesce(x.merging_into, x.no)) t.*, coalesce(x.merging_into, x.no) AS context_no
              FROM t_concepts t
              JOIN okt_repository.contexts x ON x.repository_id = $1 AND lower(x.label) = lower(t.context)
             WHERE NOT EXISTS (SELECT FROM f_concepts f WHERE f.idx = t.idx)
             ORDER BY t.name_key, coalesce(x.merging_into, x.no), t.idx) AS n
     ORDER BY n.idx
    ON CONFLICT DO NOTHING";

const MAP_CONCEPTS: &str = "
    CREATE TEMPORARY TABLE m_concepts ON COMMIT DROP AS
    SELECT DISTINCT ON (n.idx) n.idx, n.no, n.id, n.is_new
      FROM (SELECT f.idx, c.no, c.id, c.id = t.id AS is_new, 1 AS rank
              FROM f_concepts f
              JOIN t_concepts t ON t.idx = f.idx
              JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = f.no
             UNION ALL
            SELECT t.idx, c.no, c.id, c.id = t.id, 2
              FROM t_concepts t
              JOIN okt_repository.contexts x ON x.repository_id = $1 AND lower(x.label) = lower(t.context)
              JOIN okt_repository.concepts c
                ON c.repository_id = $1 AND c.name_key = t.name_key AND c.context_no = coalesce(x.merging_into, x.no)
               AND c.merged_into IS NULL) AS n
     ORDER BY n.idx, n.rank";

const INSERT_ALIASES: &str = "
    INSERT INTO okt_repository.concept_aliases (repository_id, concept_no, alias_key, alias, added_by)
    SELECT DISTINCT ON (m.no, t.key) $1::uuid, m.no, t.key, t.alias, t.added_by
      FROM t_aliases t
      JOIN m_concepts m ON m.idx = t.concept_idx
      JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = m.no AND c.name_key <> t.key
     WHERE NOT EXISTS (SELECT FROM okt_repository.rejected_aliases r
                        WHERE r.repository_id = $1 AND r.concept_no = m.no AND r.alias_key = t.key)
     ORDER BY m.no, t.key, t.concept_idx
    ON CONFLICT DO NOTHING";

const INSERT_FACT_CONCEPTS: &str = "
    WITH linked AS (
        INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no, found_by, import_no)
        SELECT $1, m.no, f.no, max(t.found_by), (SELECT no FROM n_import)
          FROM t_fact_concepts t
          JOIN m_concepts m ON m.idx = t.concept_idx
          JOIN m_facts f ON f.idx = t.fact_idx
          JOIN t_facts h ON h.idx = t.fact_idx
         WHERE NOT EXISTS (SELECT FROM okt_repository.rejected_links r
                            WHERE r.repository_id = $1 AND r.content_hash = h.hash AND r.concept_no = m.no)
         GROUP BY m.no, f.no
        ON CONFLICT DO NOTHING
        RETURNING fact_no),
    noted AS (
        INSERT INTO okt_repository.relation_changes (repository_id, fact_no) SELECT DISTINCT $1::uuid, fact_no FROM linked)
    SELECT FROM linked";

/// Slices of concepts that have none here; of two concepts of the bundle that are one here, those of the first.
const SELECT_SUMMARIES: &str = "
    CREATE TEMPORARY TABLE n_summaries ON COMMIT DROP AS
    SELECT t.*, m.no AS concept_no, t.is_open AND t.number = max(t.number) OVER (PARTITION BY t.concept_idx) AS open
      FROM t_summaries t
      JOIN (SELECT DISTINCT ON (m.no) m.no, m.idx
              FROM m_concepts m JOIN t_summaries s ON s.concept_idx = m.idx ORDER BY m.no, m.idx) AS m ON m.idx = t.concept_idx
     WHERE NOT EXISTS (SELECT FROM okt_repository.concept_summaries s
                        WHERE s.repository_id = $1 AND s.concept_no = m.no)";

const INSERT_SUMMARIES: &str = "
    INSERT INTO okt_repository.concept_summaries
           (repository_id, concept_no, slice_number, id, is_open, fact_count, revision, written, content, model,
            promptset_hash, written_at, import_no)
    SELECT $1, n.concept_no, n.number, n.id, n.open, n.fact_count, 1, 1, n.content, n.model, n.promptset, clock_timestamp(),
           (SELECT no FROM n_import)
      FROM n_summaries n
    ON CONFLICT DO NOTHING";

const MAP_SUMMARIES: &str = "
    CREATE TEMPORARY TABLE m_summaries ON COMMIT DROP AS
    SELECT DISTINCT ON (t.idx) t.idx, s.id, s.id = t.id AS is_new
      FROM t_summaries t
      JOIN m_concepts m ON m.idx = t.concept_idx
      JOIN okt_repository.concept_summaries s
        ON s.repository_id = $1 AND s.concept_no = m.no AND s.slice_number = t.number
     ORDER BY t.idx, s.id = t.id DESC";

const INSERT_SUMMARY_FACTS: &str = "
    INSERT INTO okt_repository.summary_facts (repository_id, concept_no, fact_no, slice_number)
    SELECT DISTINCT ON (n.concept_no, f.no) $1::uuid, n.concept_no, f.no, n.number
      FROM n_summaries n
      JOIN t_summary_facts t ON t.summary_idx = n.idx
      JOIN m_facts f ON f.idx = t.fact_idx
     ORDER BY n.concept_no, f.no, n.number
    ON CONFLICT DO NOTHING";

const INSERT_SYNTHESES: &str = r"
    INSERT INTO okt_repository.concept_syntheses
           (repository_id, name_key, version, canonical_name, content, model, promptset_hash, question, inputs, dropped,
            summaries, concepts, facts, images, image_sources, import_no)
    SELECT DISTINCT ON (t.key) $1::uuid, t.key, 1, t.name, t.content, t.model,
           coalesce(t.promptset, decode(repeat('00', 32), 'hex')), decode(repeat('00', 32), 'hex'),
           decode(repeat('00', 32), 'hex'), 0,
           ARRAY(SELECT s.id FROM unnest(t.summaries) WITH ORDINALITY AS n (idx, at) JOIN m_summaries s ON s.idx = n.idx ORDER BY n.at),
           ARRAY(SELECT c.id FROM unnest(t.concepts) WITH ORDINALITY AS n (idx, at) JOIN m_concepts c ON c.idx = n.idx ORDER BY n.at),
           ARRAY(SELECT f.id FROM unnest(t.facts) WITH ORDINALITY AS n (uuid, at)
                   JOIN t_facts x ON x.uuid = n.uuid JOIN m_facts f ON f.idx = x.idx GROUP BY f.id ORDER BY min(n.at)),
           ARRAY(SELECT i.id FROM unnest(t.images) WITH ORDINALITY AS n (idx, at) JOIN m_images i ON i.idx = n.idx ORDER BY n.at),
           ARRAY(SELECT i.source_id FROM unnest(t.images) WITH ORDINALITY AS n (idx, at) JOIN m_images i ON i.idx = n.idx ORDER BY n.at),
           (SELECT no FROM n_import)
      FROM t_syntheses t
     WHERE NOT EXISTS (SELECT FROM okt_repository.concept_syntheses s WHERE s.repository_id = $1 AND s.name_key = t.key)
     ORDER BY t.key, t.n
    ON CONFLICT DO NOTHING";

const INSERT_REPORTS: &str = r#"
    INSERT INTO okt_repository.reports
           (repository_id, id, title, topic, body, language, status, failure, sentence_count, claim_count, checked_at, import_no)
    SELECT $1, t.id, t.title, t.topic, t.body, t.language, t.status,
           CASE WHEN t.status = 'failed'
                THEN '{"code": "imported", "message": "it had not been checked where it was imported from"}'::jsonb END,
           t.sentence_count, t.claim_count, CASE WHEN t.status = 'annotated' THEN clock_timestamp() END, (SELECT no FROM n_import)
      FROM t_reports t
     WHERE NOT EXISTS (SELECT FROM okt_repository.reports r
                        WHERE r.repository_id = $1 AND r.title = t.title AND r.topic IS NOT DISTINCT FROM t.topic
                          AND r.body = t.body)
     ORDER BY t.idx
    ON CONFLICT DO NOTHING"#;

const MAP_REPORTS: &str = "
    CREATE TEMPORARY TABLE m_reports ON COMMIT DROP AS
    SELECT DISTINCT ON (t.idx) t.idx, r.no, r.id = t.id AS is_new
      FROM t_reports t
      JOIN okt_repository.reports r
        ON r.repository_id = $1 AND r.title = t.title AND r.topic IS NOT DISTINCT FROM t.topic AND r.body = t.body
     ORDER BY t.idx, r.id = t.id DESC, r.no";

const INSERT_SENTENCES: &str = "
    INSERT INTO okt_repository.report_sentences
           (repository_id, report_no, place, first_char, end_char, text, is_claim, is_indexed, waiting)
    SELECT $1, m.no, t.place, t.first_char, t.end_char, t.text, t.is_claim, true, 0
      FROM t_sentences t JOIN m_reports m ON m.idx = t.report_idx AND m.is_new
     WHERE NOT EXISTS (SELECT FROM okt_repository.report_sentences s WHERE s.repository_id = $1 AND s.report_no = m.no)
     ORDER BY m.no, t.place";

const INSERT_ANNOTATIONS: &str = "
    INSERT INTO okt_repository.report_annotations
           (repository_id, report_no, sentence_no, fact_no, score, posture, confidence, judged_by, is_near)
    SELECT DISTINCT ON (s.no, f.no) $1::uuid, m.no, s.no, f.no, t.score, t.posture, t.confidence, t.judged_by, true
      FROM t_annotations t
      JOIN m_reports m ON m.idx = t.report_idx AND m.is_new
      JOIN okt_repository.report_sentences s
        ON s.repository_id = $1 AND s.report_no = m.no AND s.place = t.place AND s.text = t.text
      JOIN m_facts f ON f.idx = t.fact_idx
     ORDER BY s.no, f.no, t.fact_idx
    ON CONFLICT DO NOTHING";

/// What people and lists say elsewhere of sources that are new here. Who said it has no account here.
const SAID_MARKS: &str = "
    CREATE TEMPORARY TABLE n_marks ON COMMIT DROP AS
    SELECT DISTINCT ON (s.no) s.no, t.text AS kind, CASE WHEN t.text = 'superseded' AND b.no <> s.no THEN b.no END AS by_no,
           t.note, t.found_by
      FROM t_curation t
      JOIN m_sources s ON s.idx = t.source_idx AND s.is_new
      LEFT JOIN m_sources b ON b.idx = t.by_idx
     WHERE t.kind = 'marked_source'
     ORDER BY s.no, t.text, b.no";

/// Only those from which one comes to a source that no other one supersedes: not to one that supersedes itself through others.
/// Sources that were here before have no mark that names a new one.
const INSERT_MARKS: &str = "
    WITH RECURSIVE ending AS (
        SELECT n.no FROM n_marks n WHERE NOT EXISTS (SELECT FROM n_marks o WHERE o.no = n.by_no)
         UNION ALL
        SELECT n.no FROM ending e
         CROSS JOIN LATERAL (SELECT o.no FROM n_marks o WHERE o.by_no = e.no OFFSET 0) AS n)
    INSERT INTO okt_repository.source_marks (repository_id, source_no, kind, by_no, reason, origin)
    SELECT $1, n.no, n.kind, n.by_no, n.note, n.found_by
      FROM ending e JOIN n_marks n ON n.no = e.no
     ORDER BY n.no
    ON CONFLICT DO NOTHING";

/// As they stand by the facts that count: not by duplicates, rejected ones, and those that rest on retracted sources alone.
const SET_STATES: &str = "
    WITH retracted AS MATERIALIZED (
        SELECT c.no
          FROM (SELECT DISTINCT coalesce(f.merged_into, f.no) AS no
                  FROM okt_repository.source_marks k
                  JOIN okt_repository.fact_sources l ON l.repository_id = $1 AND l.source_no = k.source_no
                  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
                 WHERE k.repository_id = $1 AND k.kind = 'retracted') AS c
         -- By the facts: or all that sources state would be read for each of them.
         CROSS JOIN LATERAL (
               SELECT bool_and(EXISTS (SELECT FROM okt_repository.source_marks k
                                        WHERE k.repository_id = $1 AND k.source_no = l.source_no
                                          AND k.kind = 'retracted')) AS alone
                 FROM (SELECT c.no UNION ALL
                       SELECT d.no FROM okt_repository.facts d
                        WHERE d.repository_id = $1 AND d.merged_into = c.no) AS own (no)
                CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                                     WHERE o.repository_id = $1 AND o.fact_no = own.no OFFSET 0) AS l) AS x
         WHERE x.alone)
    UPDATE okt_repository.report_sentences s
       SET checked_at = clock_timestamp(),
           state = (SELECT CASE WHEN bool_or(a.posture = 'contradicts') THEN 'contradicted'
                                WHEN bool_or(a.posture = 'supports') THEN 'supported' ELSE 'unsupported' END
                      FROM okt_repository.report_annotations a
                      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = a.fact_no AND f.status IN ('new', 'stable')
                     WHERE a.repository_id = $1 AND a.sentence_no = s.no AND a.fact_no NOT IN (SELECT no FROM retracted))
      FROM m_reports m
      JOIN okt_repository.reports r ON r.repository_id = $1 AND r.no = m.no AND r.status = 'annotated'
     WHERE m.is_new AND s.repository_id = $1 AND s.report_no = m.no AND s.is_claim AND s.checked_at IS NULL";
