//! The rows of a bundle on their way into the temporary tables of an import.

use okt_interchange::bundle::hash::rewrite_facts;
use okt_interchange::bundle::rows::NONE;
use okt_interchange::bundle::{
    AliasRow, AnnotationRow, BodyRow, ConceptRow, CurationRow, FactConceptRow, FactRow, FactSourceRow,
    ImageRow, InvestigationRow, InvestigationSourceRow, ReferenceRow, ReportRow, SourceRow, SummaryRow,
    SynthesisRow,
};
use okt_model::{
    Blob, ContradictionFoundBy, ContradictionState, Difference, Error, FoundBy, JobId, Locator, MarkKind,
    MarkOrigin, Result as ModelResult, name_key, word_keys,
};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::copying::Lines;
use super::import::{Kind, derived};
use crate::report_sentences::NewSentence;
use okt_pg::Result;

pub(super) const TABLES: [&str; 20] = [
    "t_sources (idx integer, id uuid, locator_hash bytea, doi_hash bytea, url text, doi text, kind text, status text, title text,
                author text, site_name text, language text, license text, content_type text, published_at date, sha bytea,
                stated_body boolean, text text, markdown text, sentences integer[], boxes text, segmenter text,
                segmenter_hash text, pages text)",
    "t_bodies (source_idx integer, sha bytea, size bigint, content_type text, file_name text)",
    "t_images (idx integer, id uuid, source_idx integer, kind text, page_number integer, position integer, url text,
               width integer, height integer, alt_text text, content_type text, sha bytea, size bigint)",
    "t_facts (idx integer, id uuid, uuid uuid, text text, hash bytea, kind text, status text, model text, promptset bytea,
              image_idx integer, duplicate_of integer)",
    "t_fact_sources (fact_idx integer, source_idx integer, chunk integer)",
    "t_references (n bigint, fact_idx integer, source_idx integer, sentence integer)",
    "t_concepts (idx integer, id uuid, name text, name_key text COLLATE \"C\", context text, class text, description text)",
    "t_words (concept_idx integer, word text COLLATE \"C\")",
    "t_aliases (concept_idx integer, key text COLLATE \"C\", alias text, added_by text)",
    "t_fact_concepts (fact_idx integer, concept_idx integer, found_by smallint)",
    "t_summaries (idx integer, id uuid, concept_idx integer, number integer, is_open boolean, fact_count integer, content text,
                  model text, promptset bytea)",
    "t_summary_facts (summary_idx integer, fact_idx integer)",
    "t_syntheses (n integer, key text COLLATE \"C\", name text, content text, model text, promptset bytea, summaries integer[],
                  concepts integer[], images integer[], image_uuids uuid[], facts uuid[])",
    "t_investigations (idx integer, id uuid, title text, topic text)",
    "t_investigation_sources (investigation_idx integer, source_idx integer)",
    "t_reports (idx integer, id uuid, title text, topic text, body text, status text, parent integer, language text,
                sentence_count integer, claim_count integer)",
    "t_sentences (report_idx integer, place integer, first_char integer, end_char integer, text text, is_claim boolean)",
    "t_report_words (report_idx integer, place integer, word text)",
    "t_annotations (report_idx integer, place integer, text text, fact_idx integer, score real, posture text, confidence real,
                    judged_by text)",
    "t_curation (kind text, hash bytea, other bytea, concept_idx integer, text text, note text, found_by text, cosine real,
                 judged_by text, confidence real, source_idx integer, by_idx integer)",
];

/// Rows that wait to be sent.
pub(super) struct Staging {
    job: JobId,
    tables: [Lines; 20],
    synthesis: i32,
}

const SOURCES: usize = 0;
const BODIES: usize = 1;
const IMAGES: usize = 2;
const FACTS: usize = 3;
const FACT_SOURCES: usize = 4;
const REFERENCES: usize = 5;
const CONCEPTS: usize = 6;
const WORDS: usize = 7;
const ALIASES: usize = 8;
const FACT_CONCEPTS: usize = 9;
const SUMMARIES: usize = 10;
const SUMMARY_FACTS: usize = 11;
const SYNTHESES: usize = 12;
const INVESTIGATIONS: usize = 13;
const INVESTIGATION_SOURCES: usize = 14;
const REPORTS: usize = 15;
const SENTENCES: usize = 16;
const REPORT_WORDS: usize = 17;
const ANNOTATIONS: usize = 18;
const CURATION: usize = 19;

/// A source by its names: those that it is found by here, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceNames {
    pub locator_hash: Option<Vec<u8>>,
    pub doi_hash: Option<Vec<u8>>,
    pub sha256: Option<Vec<u8>>,
}

impl SourceNames {
    /// An error where it has none that is believed.
    pub fn of(row: &SourceRow) -> ModelResult<Self> {
        let sha256 = hex(&row.sha256);
        let name = if row.url.is_empty() { &row.doi } else { &row.url };
        if name.is_empty() {
            return match sha256 {
                Some(_) => Ok(Self { locator_hash: None, doi_hash: None, sha256 }),
                None => Err(Error::invalid("sources", "one has neither url, nor doi, nor sha256")),
            };
        }
        let locator = Locator::parse(name)?;
        let hashed = |text: &str| Sha256::digest(text).to_vec();
        Ok(Self {
            locator_hash: Some(hashed(&locator.normalized)),
            doi_hash: locator.doi.as_deref().map(hashed),
            sha256,
        })
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> =
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes.filter(|bytes| bytes.len() == 32)
}

impl Staging {
    pub(super) fn new(job: JobId) -> Self {
        let mut names = TABLES.iter().map(|table| table.split(' ').next().unwrap_or_default());
        let tables = std::array::from_fn(|_| Lines::new(names.next().unwrap_or_default()));
        Self { job, tables, synthesis: 0 }
    }

    /// Sends what is worth it.
    pub(super) async fn send(&mut self, conn: &mut PgConnection, all: bool) -> Result<()> {
        for table in &mut self.tables {
            if all || table.is_full() {
                table.send(conn).await?;
            }
        }
        Ok(())
    }

    fn id(&self, kind: Kind, idx: u32) -> Uuid {
        derived(self.job, kind, idx)
    }

    pub(super) fn source(&mut self, row: &SourceRow) -> ModelResult<()> {
        let names = SourceNames::of(row)?;
        let id = self.id(Kind::Source, row.idx);
        let status = match &*row.status {
            "processed" => "processed",
            "fetched" | "processing" => "fetched",
            _ => "failed",
        };
        let sentences = row.sentence_offsets.iter().flat_map(|(start, end)| [*start, *end]);
        let raw =
            |text: &Option<Box<serde_json::value::RawValue>>| text.as_ref().map(|text| text.get().to_owned());
        let line = &mut self.tables[SOURCES];
        line.value(row.idx)
            .uuid(id)
            .bytes(names.locator_hash.as_deref())
            .bytes(names.doi_hash.as_deref())
            .text(&row.url)
            .filled(&row.doi)
            .filled(&row.kind)
            .text(status)
            .filled(&row.parsed_title)
            .filled(&row.author)
            .filled(&row.site_name)
            .filled(&row.language)
            .filled(&row.license)
            .filled(&row.content_type)
            .filled(row.published_at.get(..10).unwrap_or_default())
            .hex(&row.sha256)
            .value(row.has_stored_body)
            .text(&row.parsed_text)
            .text(&row.parsed_markdown)
            .list(sentences)
            .optional_text(raw(&row.sentence_boxes).as_deref())
            .text(&row.segmenter)
            .text(&row.segmenter_hash)
            .optional_text(raw(&row.pages).as_deref());
        line.end();
        Ok(())
    }

    pub(super) fn body(&mut self, row: &BodyRow, blob: Blob) {
        let line = &mut self.tables[BODIES];
        line.value(row.source_idx)
            .bytes(Some(&blob.hash.0))
            .value(blob.size)
            .filled(&row.content_type)
            .filled(&row.file_name);
        line.end();
    }

    pub(super) fn image(&mut self, row: &ImageRow, blob: Option<Blob>) {
        let id = self.id(Kind::Image, row.idx);
        let line = &mut self.tables[IMAGES];
        line.value(row.idx)
            .uuid(id)
            .value(row.source_idx)
            .text(&row.kind)
            .optional(row.page_number)
            .value(row.position)
            .filled(&row.url)
            .optional(row.width)
            .optional(row.height)
            .filled(&row.alt_text)
            .filled(&row.content_type)
            .bytes(blob.as_ref().map(|blob| blob.hash.0.as_slice()))
            .optional(blob.map(|blob| blob.size));
        line.end();
    }

    pub(super) fn fact(&mut self, row: &FactRow) {
        let id = self.id(Kind::Fact, row.idx);
        let status = if row.status == "rejected" { "rejected" } else { "stable" };
        let line = &mut self.tables[FACTS];
        line.value(row.idx)
            .uuid(id)
            .filled(&row.uuid)
            .text(&row.text)
            .hex(&row.content_hash)
            .text(&row.fact_kind)
            .text(status)
            .text(if row.model.is_empty() { "imported" } else { &row.model })
            .hex(&row.promptset_hash)
            .optional(Some(row.source_image_idx).filter(|idx| *idx != NONE))
            .optional(row.duplicate_of_idx);
        line.end();
    }

    pub(super) fn fact_source(&mut self, row: &FactSourceRow) {
        let line = &mut self.tables[FACT_SOURCES];
        line.value(row.fact_idx)
            .value(row.source_idx)
            .optional(Some(row.chunk_index).filter(|chunk| *chunk >= 0));
        line.end();
    }

    pub(super) fn reference(&mut self, row: &ReferenceRow) {
        let line = &mut self.tables[REFERENCES];
        line.value(line.rows).value(row.fact_idx).value(row.source_idx).value(row.sentence_index);
        line.end();
    }

    pub(super) fn concept(&mut self, row: &ConceptRow) {
        let (id, key) = (self.id(Kind::Concept, row.idx), name_key(&row.canonical_name));
        let line = &mut self.tables[CONCEPTS];
        line.value(row.idx)
            .uuid(id)
            .text(&row.canonical_name)
            .text(&key)
            .text(&row.context)
            .filled(&row.ontology_class)
            .filled(&row.description);
        line.end();
        for word in word_keys(&key) {
            let line = &mut self.tables[WORDS];
            line.value(row.idx).text(&word);
            line.end();
        }
    }

    pub(super) fn alias(&mut self, row: &AliasRow) {
        let added_by =
            if ["builtin", "model", "person"].contains(&&*row.added_by) { &row.added_by } else { "model" };
        let line = &mut self.tables[ALIASES];
        line.value(row.concept_idx).text(&name_key(&row.alias_text)).text(&row.alias_text).text(added_by);
        line.end();
    }

    pub(super) fn fact_concept(&mut self, row: &FactConceptRow) {
        let found_by = FoundBy::ALL.iter().copied().find(|found_by| found_by.as_str() == row.found_by);
        let line = &mut self.tables[FACT_CONCEPTS];
        line.value(row.fact_idx).value(row.concept_idx).value(found_by.unwrap_or(FoundBy::Model).number());
        line.end();
    }

    pub(super) fn summary(&mut self, row: &SummaryRow) {
        let id = self.id(Kind::Summary, row.idx);
        let line = &mut self.tables[SUMMARIES];
        line.value(row.idx)
            .uuid(id)
            .value(row.concept_idx)
            .value(row.sequence_num)
            .value(!row.is_complete)
            .value(row.fact_count.max(1))
            .text(&row.content)
            .text(if row.model.is_empty() { "imported" } else { &row.model })
            .hex(&row.promptset_hash);
        line.end();
        for fact in &row.covered_fact_idxs {
            let line = &mut self.tables[SUMMARY_FACTS];
            line.value(row.idx).value(fact);
            line.end();
        }
    }

    pub(super) fn synthesis(&mut self, row: &SynthesisRow) {
        let n = self.synthesis;
        self.synthesis += 1;
        let mut facts = Vec::new();
        drop(rewrite_facts(&row.content, |id| {
            facts.push(id);
            okt_interchange::bundle::hash::Cited::Left
        }));
        let line = &mut self.tables[SYNTHESES];
        line.value(n)
            .text(&name_key(&row.canonical_name))
            .text(&row.canonical_name)
            .text(&row.content)
            .text(if row.model.is_empty() { "imported" } else { &row.model })
            .hex(&row.promptset_hash)
            .list(&row.covered_summary_idxs)
            .list(&row.covered_concept_idxs)
            .list(&row.embedded_image_idxs)
            .list(&row.image_uuids)
            .list(&facts);
        line.end();
    }

    pub(super) fn investigation(&mut self, row: &InvestigationRow) {
        let id = self.id(Kind::Investigation, row.idx);
        let line = &mut self.tables[INVESTIGATIONS];
        line.value(row.idx).uuid(id).text(&row.title).filled(&row.topic);
        line.end();
    }

    pub(super) fn investigation_source(&mut self, row: &InvestigationSourceRow) {
        let line = &mut self.tables[INVESTIGATION_SOURCES];
        line.value(row.investigation_idx).value(row.source_idx);
        line.end();
    }

    pub(super) fn report(
        &mut self,
        row: &ReportRow,
        sentences: &[NewSentence],
        words: &[(i32, Vec<String>)],
        language: Option<&str>,
    ) {
        let id = self.id(Kind::Report, row.idx);
        let status = match &*row.status {
            status @ ("annotated" | "failed") => status,
            _ => "pending",
        };
        let line = &mut self.tables[REPORTS];
        line.value(row.idx)
            .uuid(id)
            .text(&row.title)
            .filled(&row.topic)
            .text(&row.body_md)
            .text(status)
            .optional(Some(row.parent_idx).filter(|idx| *idx != NONE))
            .optional_text(language)
            .value(sentences.len())
            .value(sentences.iter().filter(|sentence| sentence.is_claim).count());
        line.end();
        for (place, sentence) in sentences.iter().enumerate() {
            let line = &mut self.tables[SENTENCES];
            line.value(row.idx)
                .value(place)
                .value(sentence.start)
                .value(sentence.end)
                .text(&sentence.text)
                .value(sentence.is_claim);
            line.end();
        }
        for (place, words) in words {
            for word in words {
                let line = &mut self.tables[REPORT_WORDS];
                line.value(row.idx).value(place).text(word);
                line.end();
            }
        }
    }

    pub(super) fn annotation(&mut self, row: &AnnotationRow) {
        // A person's judgement belongs to an account of another instance.
        let judged_by =
            if row.judged_by.is_empty() || row.judged_by == "person" { "imported" } else { &row.judged_by };
        let line = &mut self.tables[ANNOTATIONS];
        line.value(row.report_idx)
            .value(row.sentence_index)
            .text(&row.sentence_text)
            .value(row.fact_idx)
            .value(row.score.0)
            .text(&row.posture)
            .value(row.confidence.map_or(1.0, |confidence| confidence.0))
            .text(judged_by);
        line.end();
    }

    pub(super) fn curation(&mut self, row: &CurationRow) {
        let is_known = match row.kind.as_str() {
            "found_contradiction" => {
                row.text.parse::<Difference>().is_ok() && row.found_by.parse::<ContradictionFoundBy>().is_ok()
            }
            "contradiction" => {
                row.text.parse::<ContradictionState>().is_ok_and(|state| state != ContradictionState::Open)
            }
            // That a person removed a mark elsewhere keeps no list from setting it here.
            "marked_source" => {
                row.text.parse::<MarkKind>().is_ok() && row.found_by.parse::<MarkOrigin>().is_ok()
            }
            _ => true,
        };
        if !is_known {
            return;
        }
        // A person of another instance decides nothing for good here: lists and providers may say otherwise.
        let is_persons = row.kind == "marked_source" && row.found_by == MarkOrigin::Person.as_str();
        let found_by = if is_persons { MarkOrigin::List.as_str() } else { &row.found_by };
        let line = &mut self.tables[CURATION];
        line.text(&row.kind)
            .hex(&row.content_hash)
            .hex(&row.other_hash)
            .optional(row.concept_idx)
            .text(&row.text)
            .filled(&row.note)
            .text(found_by)
            .value(row.cosine.map_or(0.0, |cosine| cosine.0))
            .filled(&row.judged_by)
            .optional(row.confidence.map(|confidence| confidence.0))
            .optional(row.source_idx)
            .optional(row.by_idx);
        line.end();
    }
}
