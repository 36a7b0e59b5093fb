//! Concepts: what facts speak of, and how strongly two of them belong together.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::text::plain;
use crate::{ConceptId, Fact, JobId, NoFacts, Payload, SourceId, SourceMark, Subject, SubjectKind, UserId};

/// Stands where the name of a model would, where concepts are found by rules and no model is asked. Another name when its
/// rules change.
pub const CONCEPT_MODEL: &str = "builtin-concepts-1";

/// The context that takes what no other fits.
pub const CATCH_ALL_CONTEXT: &str = "Concept";

/// A name as names are compared: without hidden characters, with single blanks, in Normalization Form C and lower case. It
/// is made here and not by the database, where it would depend on the server's locale.
pub fn name_key(name: &str) -> String {
    plain(name).to_lowercase()
}

/// What stands between two words beside blanks. `list_concepts_by_facts.sql` and `list_concepts_of_context.sql` of `okt-store`
/// say the same.
const BETWEEN_WORDS: &str = "-/()[],.:;\"";
/// More characters of a name are not looked for.
pub const MAX_WORD_KEY: usize = 100;
/// Words of a name that it is found by.
const MAX_WORDS: usize = 16;

/// What is looked for, as [`word_keys`] are made.
pub fn word_key(text: &str) -> String {
    let key: String = apart(&name_key(text)).collect();
    key.trim().to_owned()
}

/// What a name is found by: itself from the beginning of each of its words on.
pub fn word_keys(name_key: &str) -> Vec<String> {
    let letters: Vec<char> = apart(name_key).collect();
    let begins = |at: usize| letters[at] != ' ' && (at == 0 || letters[at - 1] == ' ');
    let words = (0..letters.len()).filter(|at| begins(*at)).take(MAX_WORDS);
    let mut keys: Vec<String> = words.map(|at| letters[at..].iter().take(MAX_WORD_KEY).collect()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn apart(name_key: &str) -> impl Iterator<Item = char> {
    name_key.chars().map(|letter| if BETWEEN_WORDS.contains(letter) { ' ' } else { letter })
}

words! {
    /// How it was found that a fact speaks of a concept. In the order of trust: of two findings the later one is kept.
    FoundBy {
        /// A common phrase. It leads from one fact to the next poorly.
        Phrase = "phrase",
        /// The title of the fact's source.
        Title = "title",
        /// A proper name.
        Name = "name",
        Model = "model",
        Person = "person",
    }
}

impl FoundBy {
    /// As it is stored.
    pub const fn number(self) -> i16 {
        match self {
            Self::Phrase => 1,
            Self::Title => 2,
            Self::Name => 3,
            Self::Model => 4,
            Self::Person => 5,
        }
    }

    /// `None` for a number that another release has written.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|found_by| found_by.number() == number)
    }
}

words! {
    /// Who said that a concept has another name.
    AliasBy {
        /// The rules that need no model.
        Builtin = "builtin",
        Model = "model",
        Person = "person",
    }
}

words! {
    /// Who found that two concepts are one thing.
    ConceptMergedBy {
        /// Spelling or an abbreviation.
        Rule = "rule",
        /// A model.
        Judge = "judge",
        Person = "person",
    }
}

words! {
    /// How strongly two concepts belong together.
    Strength {
        Insignificant = "insignificant",
        Weak = "weak",
        Stable = "stable",
    }
}

/// From how many shared facts on a relation is weak, and from how many on it is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationBands {
    pub weak: i64,
    pub stable: i64,
}

impl RelationBands {
    pub const fn strength(self, shared_fact_count: i64) -> Strength {
        if shared_fact_count >= self.stable {
            Strength::Stable
        } else if shared_fact_count >= self.weak {
            Strength::Weak
        } else {
            Strength::Insignificant
        }
    }
}

/// A concept that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConcept {
    pub name: String,
    /// The label of its context, in any case.
    pub context: String,
    pub description: Option<String>,
    /// What its context was called, where the repository has no such context.
    pub unmapped_label: Option<String>,
}

impl NewConcept {
    pub fn new(name: impl Into<String>, context: impl Into<String>) -> Self {
        Self { name: name.into(), context: context.into(), description: None, unmapped_label: None }
    }
}

/// A concept that is not merged into another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concept {
    pub id: ConceptId,
    pub no: i64,
    pub canonical_name: String,
    pub name_key: String,
    pub context_no: i64,
    pub context: String,
    /// That of its context, unless that is the repository's own.
    pub ontology_class: Option<String>,
    pub description: Option<String>,
    pub unmapped_label: Option<String>,
    /// Facts that speak of it, each with its duplicates once.
    pub fact_count: i64,
    pub created_at: DateTime<Utc>,
}

/// Another name of a concept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub text: String,
    /// `None` for the name of a concept that was merged into it.
    pub by: Option<AliasBy>,
}

/// Which concepts are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConceptFilter {
    /// How the name, a word of it or an alias begins, in any case.
    pub q: Option<String>,
    pub context_no: Option<i64>,
    pub min_fact_count: i64,
}

/// One of the contexts in which there is a concept of some name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConceptContext {
    pub id: ConceptId,
    pub context: String,
    pub fact_count: i64,
}

/// A source that makes facts of a concept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConceptSource {
    pub id: SourceId,
    pub no: i64,
    pub title: Option<String>,
    pub url: String,
    pub published_at: Option<NaiveDate>,
    /// How many of the facts.
    pub fact_count: i64,
    /// Where its reader asked.
    pub mark: Option<SourceMark>,
}

words! {
    /// What the date of a fact is.
    DateKind {
        /// When a source that makes it was published, the first one that did so.
        Published = "published",
        /// When it was fetched, where none says when it was published.
        Fetched = "fetched",
    }
}

/// A fact with the earliest date at which a source made it.
#[derive(Clone, Debug)]
pub struct DatedFact {
    pub fact: Fact,
    pub date: NaiveDate,
    pub kind: DateKind,
    pub source: SourceId,
}

words! {
    /// Why there is no path from one concept to another.
    NoPath {
        /// There is none at all.
        NotConnected = "not_connected",
        /// There is none among as many concepts and relations as are looked at.
        NotWithinLimits = "not_within_limits",
    }
}

/// A concept that shares facts with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub id: ConceptId,
    pub no: i64,
    pub canonical_name: String,
    pub context: String,
    pub fact_count: i64,
    pub shared_fact_count: i64,
    pub strength: Strength,
}

/// One concept into another: who says so, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConceptMerge {
    pub concept: ConceptId,
    pub into: ConceptId,
    pub by: ConceptMergedBy,
    pub job: Option<JobId>,
    pub person: Option<UserId>,
    pub reason: Option<String>,
}

/// What came of looking for concepts in the facts of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConceptExtraction {
    /// Who was asked.
    pub model: String,
    pub promptset_hash: String,
    /// Facts of the source that were read, now or before.
    pub facts: u32,
    /// Links from these facts to concepts.
    pub links: u32,
    /// What was named in this run and not believed, by why.
    pub skipped: BTreeMap<String, u32>,
    /// Facts that were not read, because the model gave no usable answer.
    pub failed: u32,
    /// Why: the first reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<NoFacts>,
}

/// Finds the concepts of the facts that a source makes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractConcepts {
    pub source: SourceId,
}

impl Payload for ExtractConcepts {
    const KIND: &'static str = "extract_concepts";

    fn subject(&self) -> Option<Subject> {
        Some(self.source.into())
    }
}

/// Gives concepts their vectors: those that the facts of a source speak of, these, or without either all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedConcepts {
    pub source: Option<SourceId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<ConceptId>,
}

impl Payload for EmbedConcepts {
    const KIND: &'static str = "embed_concepts";

    fn subject(&self) -> Option<Subject> {
        self.source.map(Into::into)
    }
}

/// Compares concepts that are new with those that may be the same thing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefineConcepts {}

impl Payload for RefineConcepts {
    const KIND: &'static str = "refine_concepts";
    const INTERNAL: bool = true;

    /// It looks at how things are then.
    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

/// Counts the facts that concepts share, for what has changed since they were counted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshConceptRelations {}

impl Payload for RefreshConceptRelations {
    const KIND: &'static str = "refresh_concept_relations";
    const INTERNAL: bool = true;

    /// It looks at how things are then.
    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

words! {
    /// Who made a text about a concept.
    TextMethod {
        Model = "model",
        /// Nobody: it is made of the facts that say most.
        Extractive = "extractive",
    }
}

/// Sums up what the facts of concepts say, for those whose facts have changed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummarizeConcepts {}

impl Payload for SummarizeConcepts {
    const KIND: &'static str = "summarize_concepts";
    const INTERNAL: bool = true;

    /// It looks at how things are then.
    fn unique_key(&self) -> Option<String> {
        Some(String::new())
    }
}

/// Says what a name means, from the slices of all concepts of that name.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthesizeConcept {
    /// One of them.
    pub concept: ConceptId,
    /// Somebody wants it anew, also if nothing has changed.
    #[serde(default)]
    pub again: bool,
}

impl Payload for SynthesizeConcept {
    const KIND: &'static str = "synthesize_concept";

    fn subject(&self) -> Option<Subject> {
        Some(Subject::new(SubjectKind::Concept, self.concept.uuid()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_the_same_have_one_key() {
        for name in ["Varroa  Mite", " varroa mite", "VARROA MITE", "varroa\u{200b} mite"] {
            assert_eq!(name_key(name), "varroa mite");
        }
        assert_eq!(name_key("E\u{301}te\u{301}"), "\u{e9}t\u{e9}");
        assert_eq!(name_key("ΟΔΟΣ"), name_key("οδος"));
        assert_ne!(name_key("C"), name_key("C++"));
    }

    #[test]
    fn a_name_is_found_by_the_beginning_of_each_word() {
        assert_eq!(word_keys(&name_key("Varroa mite")), ["mite", "varroa mite"]);
        assert_eq!(
            word_keys(&name_key("COVID-19 (disease)")),
            ["19  disease ", "covid 19  disease ", "disease "]
        );
        assert_eq!(word_keys(&name_key("C++")), ["c++"]);
        assert_eq!(word_keys(&name_key("new new")), ["new", "new new"]);
        assert!(word_keys("-").is_empty());
        let long = word_keys(&"ab ".repeat(100));
        assert_eq!((long.len(), long[0].chars().count()), (1, MAX_WORD_KEY));
        for (q, name) in
            [("covid-19", "COVID-19"), (" Mite", "Varroa mite"), ("(dis", "Bee (disease)"), ("C++", "c++")]
        {
            assert!(word_keys(&name_key(name)).iter().any(|key| key.starts_with(&word_key(q))), "{q} {name}");
        }
    }

    #[test]
    fn how_a_link_was_found_reads_back_and_is_in_the_order_of_trust() {
        for found_by in FoundBy::ALL {
            assert_eq!(FoundBy::from_number(found_by.number()), Some(*found_by));
        }
        assert!(FoundBy::ALL.is_sorted_by_key(|found_by| found_by.number()));
        assert_eq!(FoundBy::from_number(0), None);
    }

    #[test]
    fn a_relation_is_in_one_of_three_bands() {
        let bands = RelationBands { weak: 3, stable: 6 };
        let strengths: Vec<_> = [1, 2, 3, 5, 6, 7].map(|shared| bands.strength(shared).as_str()).to_vec();
        assert_eq!(strengths, ["insignificant", "insignificant", "weak", "weak", "stable", "stable"]);
    }
}
