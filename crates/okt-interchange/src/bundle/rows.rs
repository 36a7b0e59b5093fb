//! The rows, field by field as they are written. Behind the fields of the format come those that are optional additions, which
//! other producers leave out and other readers pass over.
//!
//! An empty field is left out, and one that is missing or null is empty, but for numbers that refer to other rows: those are
//! always there, and `-1` refers to none.

use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// No row.
pub const NONE: i64 = -1;

/// What a bundle says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    pub name: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub owner: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub okt_version: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub promptset_hashes: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub embedding_model: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_zero")]
    pub embedding_dimensions: u32,
    pub source_count: u64,
    pub fact_count: u64,
    pub concept_count: u64,
    pub summary_count: u64,
    pub synthesis_count: u64,
    pub report_count: u64,
    pub investigation_count: u64,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// RFC 3339.
    pub exported_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceRow {
    pub idx: u32,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub doi: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub parsed_title: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub parsed_text: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub parsed_markdown: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub published_at: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    #[serde(default, deserialize_with = "or_default")]
    pub has_stored_body: bool,
    // Additions.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub language: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub author: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub site_name: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// Code points of the text.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub sentence_offsets: Vec<(i32, i32)>,
    /// What cut them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub segmenter: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub segmenter_hash: String,
    /// `[[page, x0, y0, x1, y1, …], …]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence_boxes: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ImageRow {
    pub idx: u32,
    pub source_idx: u32,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_number: Option<i32>,
    pub position: i32,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub alt_text: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image_ref: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BodyRow {
    pub source_idx: u32,
    pub body_ref: String,
    #[serde(default, deserialize_with = "or_default")]
    pub content_type: String,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub file_name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FactRow {
    pub idx: u32,
    pub text: String,
    pub fact_kind: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image_url: String,
    pub content_hash: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub promptset_hash: String,
    pub status: String,
    #[serde(default = "none")]
    pub source_image_idx: i64,
    // Additions.
    /// What citations name it by.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Of a duplicate: the fact that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of_idx: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactSourceRow {
    pub fact_idx: u32,
    pub source_idx: u32,
    #[serde(default = "none_small")]
    pub chunk_index: i32,
}

/// The sentence of a source that a fact rests on. The whole section is an addition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceRow {
    pub fact_idx: u32,
    pub source_idx: u32,
    pub sentence_index: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConceptRow {
    pub idx: u32,
    pub canonical_name: String,
    pub context: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub ontology_class: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub promptset_hash: String,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub uuid: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AliasRow {
    pub concept_idx: u32,
    pub alias_text: String,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub added_by: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FactConceptRow {
    pub fact_idx: u32,
    pub concept_idx: u32,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub promptset_hash: String,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub found_by: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SummaryRow {
    pub idx: u32,
    pub concept_idx: u32,
    pub sequence_num: i32,
    pub is_complete: bool,
    pub fact_count: i32,
    pub content: String,
    #[serde(default, deserialize_with = "or_default")]
    pub covered_fact_idxs: Vec<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub model: String,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub promptset_hash: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SynthesisRow {
    pub canonical_name: String,
    pub content: String,
    #[serde(default, deserialize_with = "or_default")]
    pub covered_summary_idxs: Vec<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub covered_concept_idxs: Vec<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub embedded_image_idxs: Vec<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub model: String,
    // Additions.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub promptset_hash: String,
    /// What its images are called in the text, in the order of `embedded_image_idxs`.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub image_uuids: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InvestigationRow {
    pub idx: u32,
    pub title: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub topic: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InvestigationSourceRow {
    pub investigation_idx: u32,
    pub source_idx: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReportRow {
    pub idx: u32,
    pub title: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub topic: String,
    pub body_md: String,
    pub status: String,
    #[serde(default = "none")]
    pub parent_idx: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity_threshold: Option<Decimal>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub embedded_model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence_count: Option<i64>,
    // An addition.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub language: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AnnotationRow {
    pub report_idx: u32,
    pub sentence_index: i32,
    pub sentence_text: String,
    pub fact_idx: u32,
    pub score: Decimal,
    pub posture: String,
    // Additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Decimal>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub judged_by: String,
}

/// What people decided, and the contradictions that they decide about. The whole section is an addition; kinds that a reader does not know are passed over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CurationRow {
    /// `rejected_fact` (`content_hash`), `rejected_link` (`content_hash`, `concept_idx`), `rejected_alias` (`concept_idx`,
    /// `text`), `found_contradiction` (`content_hash`, `other_hash`, `text`: how the facts differ, `found_by`, `cosine`, `judged_by`,
    /// `confidence`), `contradiction` (`content_hash`, `other_hash`, `text`: what was said of them, `note`), `marked_source`
    /// (`source_idx`, `by_idx`: which supersedes it, `text`: `retracted` or `superseded`, `note`: the reason, `found_by`: who says so).
    pub kind: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub content_hash: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub other_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concept_idx: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_idx: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_idx: Option<u32>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub found_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosine: Option<Decimal>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub judged_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Decimal>,
}

/// A row as it is read, or a piece of what is no list of rows.
#[derive(Debug)]
pub enum Row<'a> {
    Metadata(&'a Metadata),
    Source(&'a SourceRow),
    /// An image, by its reference; base64.
    Image(&'a str, &'a str),
    /// The original of a source, by its reference; base64.
    Body(&'a str, &'a str),
    SourceImage(&'a ImageRow),
    SourceBody(&'a BodyRow),
    Fact(&'a FactRow),
    FactSource(&'a FactSourceRow),
    Reference(&'a ReferenceRow),
    Concept(&'a ConceptRow),
    Alias(&'a AliasRow),
    FactConcept(&'a FactConceptRow),
    Summary(&'a SummaryRow),
    Synthesis(&'a SynthesisRow),
    Investigation(&'a InvestigationRow),
    InvestigationSource(&'a InvestigationSourceRow),
    Report(&'a ReportRow),
    Annotation(&'a AnnotationRow),
    Curation(&'a CurationRow),
    /// Comes before the vectors.
    Vectors {
        model: &'a str,
        dimensions: u32,
    },
    FactVector(u32, &'a [f32]),
    ConceptVector(u32, &'a [f32]),
}

/// A number that is written as briefly as it can be read back, always with a point or an exponent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decimal(pub f64);

impl Decimal {
    /// The shortest number that this one is the nearest to.
    pub fn of_single(number: f32) -> Self {
        Self(number.to_string().parse().unwrap_or_default())
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = RawValue::from_string(format!("{:?}", self.0)).map_err(S::Error::custom)?;
        text.serialize(serializer)
    }
}

/// Digit by digit: what the format's parser makes of a number may be the next one to it.
impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let is_number = text.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = Some(text.get()).filter(|_| is_number && text.get().len() < 64);
        let number = number.and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite());
        number.map(Self).ok_or_else(|| D::Error::custom("expected a number"))
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

const fn none() -> i64 {
    NONE
}

const fn none_small() -> i32 {
    -1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A row on its way into a bundle.
#[expect(
    clippy::large_enum_variant,
    reason = "a source is rare beside its facts, and rows live in short batches"
)]
#[derive(Debug)]
pub enum OwnedRow {
    Source(SourceRow),
    SourceImage(ImageRow),
    SourceBody(BodyRow),
    Fact(FactRow),
    FactSource(FactSourceRow),
    Reference(ReferenceRow),
    Concept(ConceptRow),
    Alias(AliasRow),
    FactConcept(FactConceptRow),
    Summary(SummaryRow),
    Synthesis(SynthesisRow),
    Investigation(InvestigationRow),
    InvestigationSource(InvestigationSourceRow),
    Report(ReportRow),
    Annotation(AnnotationRow),
    Curation(CurationRow),
}

impl OwnedRow {
    pub const fn as_row(&self) -> Row<'_> {
        match self {
            Self::Source(row) => Row::Source(row),
            Self::SourceImage(row) => Row::SourceImage(row),
            Self::SourceBody(row) => Row::SourceBody(row),
            Self::Fact(row) => Row::Fact(row),
            Self::FactSource(row) => Row::FactSource(row),
            Self::Reference(row) => Row::Reference(row),
            Self::Concept(row) => Row::Concept(row),
            Self::Alias(row) => Row::Alias(row),
            Self::FactConcept(row) => Row::FactConcept(row),
            Self::Summary(row) => Row::Summary(row),
            Self::Synthesis(row) => Row::Synthesis(row),
            Self::Investigation(row) => Row::Investigation(row),
            Self::InvestigationSource(row) => Row::InvestigationSource(row),
            Self::Report(row) => Row::Report(row),
            Self::Annotation(row) => Row::Annotation(row),
            Self::Curation(row) => Row::Curation(row),
        }
    }
}
