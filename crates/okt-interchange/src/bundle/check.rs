//! What a row must be for it to be taken in: its references lead somewhere, its texts are not longer than what is stored, and
//! its words are known.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::Refused;
use super::read::{Known, is_hash_of, new_row, optional, reference, short};
use super::rows::{
    AliasRow, AnnotationRow, BodyRow, ConceptRow, CurationRow, FactConceptRow, FactRow, FactSourceRow,
    ImageRow, InvestigationRow, InvestigationSourceRow, Metadata, ReferenceRow, ReportRow, SourceRow,
    SummaryRow, SynthesisRow,
};

/// Of the text of a report, as the HTTP API takes it; and of one sentence, which may be all of it.
const MOST_REPORT_BYTES: usize = 8 << 20;
/// Of a summary and a definition, in characters: far more than a model writes.
const LONGEST_CONTENT: usize = 1_000_000;

type Checked = Result<(), String>;

pub(super) fn metadata(metadata: &Metadata) -> Result<(), Refused> {
    length("metadata.name", &metadata.name, 1..=300)
        .and_then(|()| length("metadata.description", &metadata.description, 0..=10_000))
        .and_then(|()| {
            if metadata.tags.len() <= 100 { Ok(()) } else { Err("metadata.tags: more than 100".to_owned()) }
        })
        .and_then(|()| {
            let is_time = chrono::DateTime::parse_from_rfc3339(&metadata.exported_at).is_ok();
            if is_time { Ok(()) } else { Err("metadata.exported_at: is no time as in RFC 3339".to_owned()) }
        })
        .map_err(|reason| Refused::new("metadata", reason))
}

pub(super) fn source(row: &SourceRow, known: &mut Known) -> Checked {
    new_row(&mut known.sources, row.idx)?;
    length("url", &row.url, 0..=4_096)?;
    length("doi", &row.doi, 0..=4_096)?;
    for (name, value) in [
        ("kind", &row.kind),
        ("language", &row.language),
        ("content_type", &row.content_type),
        ("segmenter", &row.segmenter),
        ("segmenter_hash", &row.segmenter_hash),
    ] {
        length(name, value, 0..=200)?;
    }
    for (name, value) in [
        ("parsed_title", &row.parsed_title),
        ("author", &row.author),
        ("site_name", &row.site_name),
        ("license", &row.license),
    ] {
        length(name, value, 0..=5_000)?;
    }
    hex("sha256", &row.sha256)?;
    if !row.published_at.is_empty() && date(&row.published_at).is_none() {
        return Err("published_at is no date".to_owned());
    }
    let mut end = 0;
    for (first, behind) in &row.sentence_offsets {
        if *first < end || behind < first {
            return Err("sentence_offsets are not in order".to_owned());
        }
        end = *behind;
    }
    let end = usize::try_from(end).unwrap_or(0);
    if end > row.parsed_text.len() || (end > 0 && end > row.parsed_text.chars().count()) {
        return Err("sentence_offsets go beyond the text".to_owned());
    }
    if let Some(boxes) = &row.sentence_boxes {
        serde_json::from_str::<Option<Vec<Vec<f32>>>>(boxes.get())
            .map_err(|error| format!("sentence_boxes: {error}"))?;
    }
    Ok(())
}

/// A day, in a year of four digits: the date of a time as well.
fn date(text: &str) -> Option<chrono::NaiveDate> {
    let day: chrono::NaiveDate = text.get(..10)?.parse().ok()?;
    // The parser also takes signs, other widths, and the year 0.
    (day.to_string() == text.get(..10)? && !text.starts_with("0000")).then_some(day)
}

pub(super) fn source_image(row: &ImageRow, known: &mut Known) -> Checked {
    new_row(&mut known.source_images, row.idx)?;
    reference(&known.sources, row.source_idx, "source_idx")?;
    if !["inline", "page"].contains(&&*row.kind) {
        return Err(format!("kind is {:.40?}, which is neither inline nor page", row.kind));
    }
    length("url", &row.url, 0..=5_000)?;
    length("alt_text", &row.alt_text, 0..=10_000)?;
    length("content_type", &row.content_type, 0..=200)?;
    if !row.image_ref.is_empty() && known.has_images && !known.image_refs.contains(&short(&row.image_ref)) {
        return Err(format!("image_ref {:.80?} is not in images", row.image_ref));
    }
    Ok(())
}

pub(super) fn source_body(row: &BodyRow, known: &mut Known) -> Checked {
    reference(&known.sources, row.source_idx, "source_idx")?;
    length("content_type", &row.content_type, 0..=200)?;
    length("file_name", &row.file_name, 0..=500)?;
    if !known.has_bodies || !known.body_refs.contains(&short(&row.body_ref)) {
        return Err(format!("body_ref {:.80?} is not in bodies", row.body_ref));
    }
    Ok(())
}

pub(super) fn fact(row: &FactRow, known: &mut Known) -> Checked {
    new_row(&mut known.facts, row.idx)?;
    length("text", &row.text, 1..=4_000)?;
    if !["text", "image"].contains(&&*row.fact_kind) {
        return Err(format!("fact_kind is {:.40?}, which is neither text nor image", row.fact_kind));
    }
    if !is_hash_of(&row.content_hash, &row.text) {
        return Err("content_hash is not the hash of the text".to_owned());
    }
    hex("promptset_hash", &row.promptset_hash)?;
    length("model", &row.model, 0..=300)?;
    uuid("uuid", &row.uuid)?;
    if let Some(image) = optional(row.source_image_idx, "source_image_idx")? {
        known.wanted_images.add(image);
    }
    if let Some(canonical) = row.duplicate_of_idx {
        if canonical == row.idx {
            return Err("duplicate_of_idx is the fact itself".to_owned());
        }
        optional(canonical.into(), "duplicate_of_idx")?;
        known.wanted_facts.add(canonical);
    }
    Ok(())
}

pub(super) fn fact_source(row: &FactSourceRow, known: &mut Known) -> Checked {
    reference(&known.facts, row.fact_idx, "fact_idx")?;
    reference(&known.sources, row.source_idx, "source_idx")
}

pub(super) fn reference_row(row: &ReferenceRow, known: &mut Known) -> Checked {
    reference(&known.facts, row.fact_idx, "fact_idx")?;
    reference(&known.sources, row.source_idx, "source_idx")?;
    if row.sentence_index < 0 { Err("sentence_index is below 0".to_owned()) } else { Ok(()) }
}

pub(super) fn concept(row: &ConceptRow, known: &mut Known) -> Checked {
    new_row(&mut known.concepts, row.idx)?;
    length("canonical_name", &row.canonical_name, 1..=500)?;
    length("context", &row.context, 1..=100)?;
    length("ontology_class", &row.ontology_class, 0..=500)?;
    length("description", &row.description, 0..=20_000)?;
    hex("promptset_hash", &row.promptset_hash)?;
    uuid("uuid", &row.uuid)
}

pub(super) fn alias(row: &AliasRow, known: &mut Known) -> Checked {
    reference(&known.concepts, row.concept_idx, "concept_idx")?;
    length("alias_text", &row.alias_text, 1..=500)
}

pub(super) fn fact_concept(row: &FactConceptRow, known: &mut Known) -> Checked {
    reference(&known.facts, row.fact_idx, "fact_idx")?;
    reference(&known.concepts, row.concept_idx, "concept_idx")?;
    hex("promptset_hash", &row.promptset_hash)
}

pub(super) fn summary(row: &SummaryRow, known: &mut Known) -> Checked {
    new_row(&mut known.summaries, row.idx)?;
    reference(&known.concepts, row.concept_idx, "concept_idx")?;
    if row.sequence_num < 1 {
        return Err("sequence_num is below 1".to_owned());
    }
    length("content", &row.content, 0..=LONGEST_CONTENT)?;
    length("model", &row.model, 0..=300)?;
    hex("promptset_hash", &row.promptset_hash)?;
    row.covered_fact_idxs.iter().try_for_each(|idx| reference(&known.facts, *idx, "covered_fact_idxs"))
}

pub(super) fn synthesis(row: &SynthesisRow, known: &mut Known) -> Checked {
    known.syntheses += 1;
    length("canonical_name", &row.canonical_name, 1..=500)?;
    length("content", &row.content, 0..=LONGEST_CONTENT)?;
    length("model", &row.model, 0..=300)?;
    hex("promptset_hash", &row.promptset_hash)?;
    let summaries = &known.summaries;
    row.covered_summary_idxs.iter().try_for_each(|idx| reference(summaries, *idx, "covered_summary_idxs"))?;
    let concepts = &known.concepts;
    row.covered_concept_idxs.iter().try_for_each(|idx| reference(concepts, *idx, "covered_concept_idxs"))?;
    let images = &known.source_images;
    row.embedded_image_idxs.iter().try_for_each(|idx| reference(images, *idx, "embedded_image_idxs"))?;
    row.image_uuids.iter().try_for_each(|id| uuid("image_uuids", id))
}

pub(super) fn investigation(row: &InvestigationRow, known: &mut Known) -> Checked {
    new_row(&mut known.investigations, row.idx)?;
    length("title", &row.title, 1..=300)?;
    length("topic", &row.topic, 0..=4_000)
}

pub(super) fn investigation_source(row: &InvestigationSourceRow, known: &mut Known) -> Checked {
    reference(&known.investigations, row.investigation_idx, "investigation_idx")?;
    reference(&known.sources, row.source_idx, "source_idx")
}

pub(super) fn report(row: &ReportRow, known: &mut Known) -> Checked {
    new_row(&mut known.reports, row.idx)?;
    length("title", &row.title, 1..=300)?;
    length("topic", &row.topic, 0..=4_000)?;
    length("language", &row.language, 0..=20)?;
    bytes("body_md", &row.body_md, MOST_REPORT_BYTES)?;
    if let Some(parent) = optional(row.parent_idx, "parent_idx")? {
        known.parents.push((row.idx, parent));
    }
    Ok(())
}

/// Whether each parent is there, and no report is its own ancestor.
pub(super) fn parents(known: &Known) -> Result<(), Refused> {
    let parents: HashMap<u32, u32> = known.parents.iter().copied().collect();
    // Those from which it is known that the way ends.
    let mut ends = HashSet::new();
    for (idx, parent) in &known.parents {
        reference(&known.reports, *parent, "parent_idx").map_err(|reason| Refused::new("reports", reason))?;
        let (mut at, mut way) = (*idx, HashSet::new());
        while !ends.contains(&at) {
            if !way.insert(at) {
                return Err(Refused::new("reports", format!("report {at} is its own ancestor")));
            }
            let Some(next) = parents.get(&at) else { break };
            at = *next;
        }
        ends.extend(way);
    }
    Ok(())
}

pub(super) fn annotation(row: &AnnotationRow, known: &mut Known) -> Checked {
    reference(&known.reports, row.report_idx, "report_idx")?;
    reference(&known.facts, row.fact_idx, "fact_idx")?;
    if row.sentence_index < 0 {
        return Err("sentence_index is below 0".to_owned());
    }
    if !["related", "supports", "contradicts"].contains(&&*row.posture) {
        return Err(format!(
            "posture is {:.40?}, which is none of related, supports, contradicts",
            row.posture
        ));
    }
    bytes("sentence_text", &row.sentence_text, MOST_REPORT_BYTES)?;
    length("judged_by", &row.judged_by, 0..=300)?;
    match row.confidence {
        Some(confidence) if !(0.0..=1.0).contains(&confidence.0) => {
            Err("confidence is not from 0 to 1".to_owned())
        }
        _ if row.score.0.abs() > 1e6 => Err("score is not a score".to_owned()),
        _ => Ok(()),
    }
}

pub(super) fn curation(row: &CurationRow, known: &mut Known) -> Checked {
    hex("content_hash", &row.content_hash)?;
    hex("other_hash", &row.other_hash)?;
    for (name, value, most) in [
        ("text", &row.text, 1_000),
        ("note", &row.note, 1_000),
        ("found_by", &row.found_by, 100),
        ("judged_by", &row.judged_by, 300),
    ] {
        length(name, value, 0..=most)?;
    }
    for (name, value) in [("cosine", row.cosine), ("confidence", row.confidence)] {
        if value.is_some_and(|value| !(-1.0..=1.0).contains(&value.0)) {
            return Err(format!("{name} is not from -1 to 1"));
        }
    }
    for (name, idx) in [("source_idx", row.source_idx), ("by_idx", row.by_idx)] {
        idx.map_or(Ok(()), |idx| reference(&known.sources, idx, name))?;
    }
    row.concept_idx.map_or(Ok(()), |idx| reference(&known.concepts, idx, "concept_idx"))
}

/// In characters.
fn length(name: &str, value: &str, range: RangeInclusive<usize>) -> Checked {
    if value.is_empty() {
        return if range.contains(&0) { Ok(()) } else { Err(format!("{name} is empty")) };
    }
    // Characters are never more than bytes.
    if value.len() > *range.end() && value.chars().count() > *range.end() {
        return Err(format!("{name} has more than {} characters", range.end()));
    }
    Ok(())
}

fn bytes(name: &str, value: &str, most: usize) -> Checked {
    if value.len() > most { Err(format!("{name} has more than {most} bytes")) } else { Ok(()) }
}

fn hex(name: &str, value: &str) -> Checked {
    let is_one = value.len() == 64 && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if value.is_empty() || is_one {
        Ok(())
    } else {
        Err(format!("{name} is no SHA-256 in lower-case hexadecimal"))
    }
}

fn uuid(name: &str, value: &str) -> Checked {
    if value.is_empty() || value.parse::<uuid::Uuid>().is_ok() {
        Ok(())
    } else {
        Err(format!("{name} is no UUID"))
    }
}
