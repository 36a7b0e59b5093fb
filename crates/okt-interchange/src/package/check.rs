//! What a package must be for it to be used: its references lead somewhere, its hashes are those of its texts, and nothing is
//! longer than what can be stored.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use okt_model::{content_hash, name_key};
use uuid::Uuid;

use super::{EmbeddingData, Package};
use crate::bundle::Refused;

type Checked = Result<(), Refused>;

const MOST_DIMENSIONS: u32 = 65_535;
/// Calls and tokens of one source: so few that a sum of many is a number still.
const MOST_COUNTED: u64 = 1_000_000_000;
/// A concept has no more names than that.
pub(super) const MOST_ALIASES: usize = 1_000;
/// Facts of one source, and concepts: so few that they are taken in within the time that a statement has.
const MOST_ROWS: usize = 20_000;

pub(super) fn package(package: &Package) -> Checked {
    if package.schema_version == 0 {
        return refuse("schema_version", "is 0; the first version is 1");
    }
    text("model_id", &package.model_id, 1..=300)?;
    text("decomposed_by", package.decomposed_by.as_deref().unwrap_or_default(), 0..=300)?;
    if chrono::DateTime::parse_from_rfc3339(&package.decomposed_at).is_err() {
        return refuse("decomposed_at", "is no time as in RFC 3339");
    }
    if !package.promptset_hash.is_empty() && !is_sha256(&package.promptset_hash) {
        return refuse("promptset_hash", "is no SHA-256 in hexadecimal");
    }
    if let Some(cost) = package.cost {
        if !(cost.usd.is_finite() && (0.0..=1e6).contains(&cost.usd)) {
            return refuse("cost.usd", "is no amount of dollars");
        }
        for (place, number) in [
            ("cost.calls", u64::from(cost.calls)),
            ("cost.tokens_in", cost.tokens_in),
            ("cost.tokens_out", cost.tokens_out),
        ] {
            if number > MOST_COUNTED {
                return refuse(place, "is more than any source takes");
            }
        }
    }
    if let Some(source) = &package.source {
        text("source.url", source.url.as_deref().unwrap_or_default(), 0..=4_096)?;
        text("source.doi", source.doi.as_deref().unwrap_or_default(), 0..=4_096)?;
    }
    for (place, rows) in [("facts", package.facts.len()), ("concepts", package.concepts.len())] {
        if rows > MOST_ROWS {
            return Err(Refused::new(place, format!("are more than {MOST_ROWS}")));
        }
    }
    let concepts = concepts(package)?;
    let facts = facts(package, &concepts)?;
    summaries(package, &concepts, &facts)?;
    embeddings("embeddings", package.embeddings.as_ref(), &facts)?;
    embeddings("concept_embeddings", package.concept_embeddings.as_ref(), &concepts)
}

fn concepts(package: &Package) -> Result<HashSet<Uuid>, Refused> {
    let mut ids = HashSet::new();
    for (at, concept) in package.concepts.iter().enumerate() {
        let place = |field: &str| format!("concepts[{at}].{field}");
        if !ids.insert(concept.id) {
            return Err(Refused::new(place("id"), "is the id of an earlier concept"));
        }
        text(&place("canonical_name"), &concept.canonical_name, 1..=500)?;
        if name_key(&concept.canonical_name).is_empty() {
            return Err(Refused::new(place("canonical_name"), "has no visible character"));
        }
        text(&place("context"), &concept.context, 1..=100)?;
        if concept.context.trim().is_empty() {
            return Err(Refused::new(place("context"), "has no visible character"));
        }
        text(&place("ontology_class"), &concept.ontology_class, 0..=500)?;
        if concept.aliases.len() > MOST_ALIASES {
            return Err(Refused::new(place("aliases"), format!("are more than {MOST_ALIASES}")));
        }
        for (n, alias) in concept.aliases.iter().enumerate() {
            text(&place(&format!("aliases[{n}]")), alias, 1..=500)?;
        }
    }
    Ok(ids)
}

fn facts(package: &Package, concepts: &HashSet<Uuid>) -> Result<HashSet<Uuid>, Refused> {
    let mut ids = HashSet::new();
    for (at, fact) in package.facts.iter().enumerate() {
        let place = |field: &str| format!("facts[{at}].{field}");
        if !ids.insert(fact.id) {
            return Err(Refused::new(place("id"), "is the id of an earlier fact"));
        }
        text(&place("content"), &fact.content, 1..=4_000)?;
        if fact.content.trim().is_empty() {
            return Err(Refused::new(place("content"), "has no visible character"));
        }
        if !content_hash(&fact.content).to_string().eq_ignore_ascii_case(&fact.content_hash) {
            return Err(Refused::new(place("content_hash"), "is not the hash of the content"));
        }
        text(&place("source_text"), &fact.source_text, 0..=100_000)?;
        text(&place("image_id"), &fact.image_id, 0..=200)?;
        for (n, concept) in fact.concept_ids.iter().enumerate() {
            if !concepts.contains(concept) {
                let reason = format!("{concept} is not in concepts");
                return Err(Refused::new(place(&format!("concept_ids[{n}]")), reason));
            }
        }
    }
    Ok(ids)
}

fn summaries(package: &Package, concepts: &HashSet<Uuid>, facts: &HashSet<Uuid>) -> Checked {
    let (mut ids, mut places) = (HashSet::new(), BTreeSet::new());
    for (at, summary) in package.summaries().iter().enumerate() {
        let place = |field: &str| format!("summaries[{at}].{field}");
        if !ids.insert(summary.id) {
            return Err(Refused::new(place("id"), "is the id of an earlier summary"));
        }
        if !concepts.contains(&summary.concept_id) {
            let reason = format!("{} is not in concepts", summary.concept_id);
            return Err(Refused::new(place("concept_id"), reason));
        }
        if summary.slice_number < 1 {
            return Err(Refused::new(place("slice_number"), "is below 1"));
        }
        if !places.insert((summary.concept_id, summary.slice_number)) {
            return Err(Refused::new(place("slice_number"), "is that of an earlier slice of the concept"));
        }
        text(&place("content"), &summary.content, 0..=200_000)?;
        // A slice of its producer may rest on facts of other sources as well; only one with none of these is useless.
        if !summary.fact_ids.is_empty() && !summary.fact_ids.iter().any(|id| facts.contains(id)) {
            return Err(Refused::new(place("fact_ids"), "has no fact of this package"));
        }
    }
    Ok(())
}

fn embeddings(name: &str, data: Option<&EmbeddingData>, of: &HashSet<Uuid>) -> Checked {
    let Some(data) = data else { return Ok(()) };
    text(&format!("{name}.model"), &data.model, 1..=300)?;
    if !(1..=MOST_DIMENSIONS).contains(&data.dimensions) {
        return Err(Refused::new(
            format!("{name}.dimensions"),
            format!("is not from 1 to {MOST_DIMENSIONS}"),
        ));
    }
    for (id, vector) in &data.vectors {
        let refused = |reason: String| Err(Refused::new(format!("{name}.vectors.{id}"), reason));
        if !of.contains(id) {
            return refused("is a vector of nothing in this package".to_owned());
        }
        if u32::try_from(vector.len()) != Ok(data.dimensions) {
            return refused(format!("has {} numbers instead of {}", vector.len(), data.dimensions));
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return refused("has a number that is not finite".to_owned());
        }
    }
    Ok(())
}

/// In characters, without U+0000, which no database stores.
fn text(place: &str, value: &str, range: RangeInclusive<usize>) -> Checked {
    if value.is_empty() && !range.contains(&0) {
        return refuse(place, "is empty");
    }
    // Characters are never more than bytes.
    if value.len() > *range.end() && value.chars().count() > *range.end() {
        return Err(Refused::new(place, format!("has more than {} characters", range.end())));
    }
    if value.contains('\0') {
        return refuse(place, "has the character U+0000");
    }
    Ok(())
}

fn refuse(place: &str, reason: &str) -> Checked {
    Err(Refused::new(place, reason))
}

pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
