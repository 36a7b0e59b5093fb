//! What a bundle is called by: the SHA-256 of its compact JSON in one canonical form.
//!
//! Left out of that form are files, vectors, all optional additions, and of `metadata` what says where and when the bundle was
//! written; `source_images` is an empty list, and `exported_at` year 1. A citation names its fact by the number that it has in
//! the bundle. So two bundles of the same graph have the same hash, with or without files and whoever wrote them.

use std::collections::HashMap;
use std::io;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::rows::{
    AliasRow, AnnotationRow, ConceptRow, FactConceptRow, FactRow, Metadata, ReportRow, SourceRow, SummaryRow,
    SynthesisRow,
};
use super::{SCHEMA_VERSION, Section};

const NO_TIME: &str = "0001-01-01T00:00:00Z";
const FACT: &str = "](<fact:";
const IMAGE: &str = "](<image:";

/// Computes the hash of a bundle from its rows, section by section.
pub struct Hash {
    out: Sha,
    section: Option<Section>,
    rows: u64,
    /// What citations name facts by, and their numbers.
    facts: HashMap<Uuid, u32>,
}

struct Sha(Sha256);

impl io::Write for Sha {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Hash {
    pub fn new(metadata: &Metadata) -> Self {
        let mut out = Sha(Sha256::new());
        let metadata = Metadata {
            sha256: String::new(),
            exported_at: NO_TIME.to_owned(),
            okt_version: String::new(),
            owner: String::new(),
            embedding_model: String::new(),
            embedding_dimensions: 0,
            ..metadata.clone()
        };
        out.0.update(format!("{{\"schema_version\":{SCHEMA_VERSION},\"metadata\":"));
        put(&mut out, &metadata);
        Self { out, section: None, rows: 0, facts: HashMap::new() }
    }

    pub fn source(&mut self, mut row: SourceRow) {
        row.language.clear();
        row.author.clear();
        row.site_name.clear();
        row.license.clear();
        row.content_type.clear();
        row.sentence_offsets.clear();
        row.segmenter.clear();
        row.segmenter_hash.clear();
        row.sentence_boxes = None;
        row.pages = None;
        self.row(Section::Sources, &row);
    }

    pub fn fact(&mut self, mut row: FactRow) {
        if let Ok(uuid) = row.uuid.parse() {
            self.facts.insert(uuid, row.idx);
        }
        row.uuid.clear();
        row.model.clear();
        row.duplicate_of_idx = None;
        self.row(Section::Facts, &row);
    }

    pub fn concept(&mut self, mut row: ConceptRow) {
        row.uuid.clear();
        self.row(Section::Concepts, &row);
    }

    pub fn alias(&mut self, mut row: AliasRow) {
        row.added_by.clear();
        self.row(Section::ConceptAliases, &row);
    }

    pub fn fact_concept(&mut self, mut row: FactConceptRow) {
        row.found_by.clear();
        self.row(Section::FactConcepts, &row);
    }

    pub fn summary(&mut self, mut row: SummaryRow) {
        row.promptset_hash.clear();
        row.content = self.canonical(&row.content, &HashMap::new());
        self.row(Section::ConceptSummaries, &row);
    }

    pub fn synthesis(&mut self, mut row: SynthesisRow) {
        row.promptset_hash.clear();
        let images = row.image_uuids.iter().zip(&row.embedded_image_idxs);
        let images = images.filter_map(|(uuid, idx)| Some((uuid.parse().ok()?, *idx))).collect();
        row.image_uuids.clear();
        row.content = self.canonical(&row.content, &images);
        self.row(Section::ConceptSyntheses, &row);
    }

    pub fn report(&mut self, mut row: ReportRow) {
        row.language.clear();
        row.body_md = self.canonical(&row.body_md, &HashMap::new());
        self.row(Section::Reports, &row);
    }

    pub fn annotation(&mut self, mut row: AnnotationRow) {
        row.confidence = None;
        row.judged_by.clear();
        self.row(Section::ReportAnnotations, &row);
    }

    /// A row that has no additions.
    pub fn row<T: Serialize>(&mut self, section: Section, row: &T) {
        if self.section != Some(section) {
            self.close_before(section);
        }
        if self.rows > 0 {
            self.out.0.update(",");
        }
        self.rows += 1;
        put(&mut self.out, row);
    }

    /// The hash of what was given, which is all there is.
    pub fn finish(mut self) -> String {
        for section in Section::ALL {
            if self.section.is_none_or(|last| last < section) {
                self.close_before(section);
            }
        }
        self.out.0.update(if self.section.is_some() { "]}" } else { "}" });
        hex::encode(self.out.0.finalize())
    }

    /// The number that a fact has in the bundle, by what citations name it by.
    pub fn number_of(&self, fact: &Uuid) -> Option<u32> {
        self.facts.get(fact).copied()
    }

    fn close_before(&mut self, next: Section) {
        let from = self.section.map_or(0, |last| last as usize + 1);
        for section in &Section::ALL[from..=next as usize] {
            if !section.is_hashed() && *section != Section::SourceImages {
                continue;
            }
            if self.section.is_some() {
                self.out.0.update("]");
            }
            self.out.0.update(format!(",\"{}\":[", section.name()));
            self.section = Some(*section);
            self.rows = 0;
        }
    }

    fn canonical(&self, text: &str, images: &HashMap<Uuid, u32>) -> String {
        let text = rewrite(text, FACT, |id| match self.number_of(&id) {
            Some(idx) => Cited::As(format!("#{idx}")),
            None => Cited::Left,
        });
        rewrite(&text, IMAGE, |id| match images.get(&id) {
            Some(idx) => Cited::As(format!("#{idx}")),
            None => Cited::Left,
        })
    }
}

/// What becomes of a citation.
pub enum Cited {
    /// Its target is called this.
    As(String),
    /// It stays as it is.
    Left,
    /// Its text stays, and its link goes.
    Lost,
}

/// Rewrites the citations of facts, `[text](<fact:UUID>)`.
pub fn rewrite_facts(text: &str, target: impl FnMut(Uuid) -> Cited) -> String {
    rewrite(text, FACT, target)
}

/// Rewrites the images, `![text](<image:UUID>)`.
pub fn rewrite_images(text: &str, target: impl FnMut(Uuid) -> Cited) -> String {
    rewrite(text, IMAGE, target)
}

fn rewrite(text: &str, scheme: &str, mut target: impl FnMut(Uuid) -> Cited) -> String {
    if !text.contains(scheme) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(scheme) {
        let (before, link) = (&rest[..at], &rest[at + scheme.len()..]);
        let uuid = link.split_once(">)").map(|(id, _)| id).filter(|id| id.len() == 36);
        let Some((id, uuid)) = uuid.and_then(|id| Some((id, id.parse::<Uuid>().ok()?))) else {
            out.push_str(&rest[..at + scheme.len()]);
            rest = link;
            continue;
        };
        let behind = &link[id.len() + 2..];
        match target(uuid) {
            Cited::As(name) => {
                out.push_str(before);
                out.push_str(scheme);
                out.push_str(&name);
                out.push_str(">)");
            }
            Cited::Left => out.push_str(&rest[..rest.len() - behind.len()]),
            Cited::Lost => match opening(before) {
                Some(open) => {
                    out.push_str(before[..open].strip_suffix('!').unwrap_or(&before[..open]));
                    out.push_str(&before[open + 1..]);
                }
                None => out.push_str(before),
            },
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Where the bracket opens that closes behind this text.
fn opening(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_u32;
    for at in (0..bytes.len()).rev() {
        let escaped = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
        match bytes[at] {
            b']' if !escaped => depth += 1,
            b'[' if !escaped && depth == 0 => return Some(at),
            b'[' if !escaped => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Writing to a hash never fails, and no row has a key that is no text.
fn put<T: Serialize>(out: &mut Sha, value: &T) {
    drop(serde_json::to_writer(out, value));
}
