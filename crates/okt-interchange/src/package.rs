//! The Decomposition Package of one source: what one chat model made of it, as one JSON document without text or images.
//!
//! A package is read whole or refused whole, with the place and the reason ([`Package::parse`]). What is unknown is ignored:
//! later versions of the service may add optional fields without a new `schema_version`.

mod check;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use okt_model::{Locator, PushLevel};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::bundle::Refused;
pub use rule::{Accepted, is_allowed_model};

/// The version that is written, and the highest that is read.
pub const SCHEMA_VERSION: u32 = 1;

/// Brackets within brackets, as in every body of JSON.
const DEPTH: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Package {
    pub schema_version: u32,
    /// The chat model that made it.
    pub model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decomposed_by: Option<String>,
    /// As in RFC 3339.
    pub decomposed_at: String,
    /// Empty for one that is older than promptset hashes.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub promptset_hash: String,
    pub facts: Vec<FactData>,
    pub concepts: Vec<ConceptData>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summaries: Option<Vec<SummaryData>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingData>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concept_embeddings: Option<EmbeddingData>,
    /// What the models were paid for it. An optional addition to version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostData>,
    /// The source that it is of, so that this is signed, too. An optional addition to version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceData>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactData {
    pub id: Uuid,
    pub content: String,
    pub content_hash: String,
    /// The quoted sentences, one on each line.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub source_text: String,
    /// Empty for facts that rest on text.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub image_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub concept_ids: Vec<Uuid>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConceptData {
    pub id: Uuid,
    pub canonical_name: String,
    pub context: String,
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub ontology_class: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "aliases")]
    pub aliases: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SummaryData {
    pub id: Uuid,
    pub concept_id: Uuid,
    pub slice_number: i32,
    pub is_open: bool,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub fact_ids: Vec<Uuid>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingData {
    pub model: String,
    pub dimensions: u32,
    #[serde(deserialize_with = "vectors")]
    pub vectors: BTreeMap<Uuid, Vec<f32>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostData {
    pub calls: u32,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub usd: f64,
}

/// A source by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceData {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
}

impl SourceData {
    /// Whether it shares a name with the source of this address or DOI, as these are compared everywhere.
    pub fn is(&self, url: Option<&str>, doi: Option<&str>) -> bool {
        let names = |url: Option<&str>, doi: Option<&str>| -> BTreeSet<String> {
            let read = [url, doi].into_iter().flatten().filter_map(|name| Locator::parse(name).ok());
            read.flat_map(|found| [Some(found.normalized), found.doi]).flatten().collect()
        };
        !names(self.url.as_deref(), self.doi.as_deref()).is_disjoint(&names(url, doi))
    }
}

impl Package {
    /// Reads one that somebody sent, and that was read into memory within the limits of whoever asks.
    ///
    /// # Errors
    ///
    /// Where it is wrong, and why. Nothing of it may be used then.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let refused = |error: serde_json::Error| Refused::new("", error.to_string());
        if is_deeper(bytes, DEPTH) {
            return Err(Refused::new("", format!("has more than {DEPTH} levels of nesting")));
        }
        // Before the rest, whose form a later version may have changed.
        let Version { schema_version } = serde_json::from_slice(bytes).map_err(refused)?;
        if schema_version > SCHEMA_VERSION {
            let reason = format!("is {schema_version}, and this version of okt reads up to {SCHEMA_VERSION}");
            return Err(Refused::new("schema_version", reason));
        }
        let package: Self = serde_json::from_slice(bytes).map_err(refused)?;
        check::package(&package)?;
        Ok(package)
    }

    /// As it is sent, in at most so many bytes. What makes it too large is left out: vectors can be made anew.
    ///
    /// # Errors
    ///
    /// If it is too large without them, or is not what [`Self::parse`] would take.
    pub fn write(mut self, most: u64) -> Result<Vec<u8>, Refused> {
        check::package(&self)?;
        for left_out in [false, true] {
            if left_out {
                self.embeddings = None;
                self.concept_embeddings = None;
            }
            let bytes = serde_json::to_vec(&self).map_err(|error| Refused::new("", error.to_string()))?;
            if bytes.len() as u64 <= most {
                return Ok(bytes);
            }
        }
        Err(Refused::new("", format!("has more than {most} bytes")))
    }

    /// As much of it as a repository gives away.
    #[must_use]
    pub fn at(mut self, level: PushLevel) -> Self {
        if level == PushLevel::Facts {
            self.concepts.clear();
            self.summaries = None;
            self.concept_embeddings = None;
            for fact in &mut self.facts {
                fact.concept_ids.clear();
            }
        }
        self
    }

    pub fn summaries(&self) -> &[SummaryData] {
        self.summaries.as_deref().unwrap_or_default()
    }
}

/// Looks at bytes only, so hostile depth costs no stack.
fn is_deeper(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

/// Optional fields may be `null` as well.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// No more names than a concept has: many short ones take far more memory than they are long.
fn aliases<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Aliases;

    impl<'de> Visitor<'de> for Aliases {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("aliases")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut aliases = Vec::new();
            while let Some(alias) = seq.next_element()? {
                if aliases.len() == check::MOST_ALIASES {
                    let most = check::MOST_ALIASES;
                    return Err(A::Error::custom(format_args!(
                        "the aliases of a concept are more than {most}"
                    )));
                }
                aliases.push(alias);
            }
            Ok(aliases)
        }
    }

    deserializer.deserialize_any(Aliases)
}

/// No vector twice, and none that is longer than any model's.
fn vectors<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Uuid, Vec<f32>>, D::Error> {
    struct Vectors;

    impl<'de> Visitor<'de> for Vectors {
        type Value = BTreeMap<Uuid, Vec<f32>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("vectors by UUID")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut vectors = BTreeMap::new();
            while let Some((id, vector)) = map.next_entry::<Uuid, Vec<f32>>()? {
                if vectors.insert(id, vector).is_some() {
                    return Err(A::Error::custom(format_args!("the vector {id} is there twice")));
                }
            }
            Ok(vectors)
        }
    }

    deserializer.deserialize_map(Vectors)
}
