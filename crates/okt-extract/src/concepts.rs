//! Concepts: what facts are about, found with and without a model.
//!
//! Without a model: proper names in any language that writes them with capitals, and in English common nouns and phrases of
//! them, which an embedded table knows. Rather none than one that could stand in any text. All facts of a source are looked
//! at together, so that `Curie` is `Marie Curie` and `DNA` is what it was said to stand for.
//!
//! With a model: the question about numbered facts, and what is believed of the answer.
//!
//! To teach it something: a word in `nouns/added.txt` (and build the table again, see `examples/noun_table`) or in
//! `nouns/stop.txt`, or a rule in the file of its kind with a line in `tests.rs`. Then raise the number of [`RULES`].

mod asked;
mod contexts;
mod evidence;
mod kinds;
mod names;
mod nouns;
mod phrases;
mod resolve;
mod short;
mod stop;
mod title;
mod tokens;
pub mod twins;

use std::ops::Range;

use okt_model::{ContentHash, Context, FoundBy};
use sha2::{Digest, Sha256};

pub use asked::{Named, Refused, Skipped, concept_question, read_concepts};
use contexts::Contexts;
pub use contexts::Place;
use names::Seen;
use nouns::Class;

/// What stands where the name of a model stands.
pub const MODEL: &str = okt_model::CONCEPT_MODEL;

/// The rules and lists of this folder. Raise the number when one of them changes.
const RULES: &str = "builtin-concepts-1, rules 3";

/// What stands where the hash of a promptset stands: the SHA-256 of the name of the rules.
pub fn promptset_hash() -> ContentHash {
    ContentHash(Sha256::digest(RULES).into())
}

/// A model and its instructions as one number: who has read a fact.
pub fn reader(model: &str, promptset: ContentHash) -> i64 {
    let digest = Sha256::new().chain_update(model).chain_update([0]).chain_update(promptset.0).finalize();
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte))
}

/// A concept of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub place: Place,
    /// How the fact itself writes it, each form once; none where only the title of the source names it.
    pub forms: Vec<String>,
    pub found_by: FoundBy,
}

impl Found {
    /// The label of its context, where the repository has no such context.
    pub fn unmapped(&self) -> Option<&str> {
        match &self.place {
            Place::Context(_) => None,
            Place::Unmapped(label) => Some(label),
        }
    }
}

/// The concepts of each fact of a source, in the order of the facts. Where the language is not known, it is taken for English.
pub fn extract(
    facts: &[&str],
    title: Option<&str>,
    language: Option<&str>,
    contexts: &[Context],
) -> Vec<Vec<Found>> {
    let language = Language::of(language);
    let tokens: Vec<_> = facts.iter().map(|fact| tokens::tokens(fact)).collect();
    let mut seen = Seen::default();
    for tokens in &tokens {
        seen.add(tokens);
    }
    let mentions = tokens.iter().map(|tokens| {
        let mut found = names::names(tokens, &seen, language);
        if language == Language::English {
            let phrases = phrases::phrases(tokens, &found);
            found.extend(phrases);
            found.sort_by_key(|mention| mention.tokens.start);
        }
        found
    });
    let mentions = mentions.collect();
    let title = title.and_then(|title| title::concept(title, &tokens, language));
    resolve::resolve(mentions, &tokens, title.as_ref(), &Contexts::of(contexts))
}

/// What the rules know about a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    English,
    /// All nouns have capitals.
    German,
    /// Only names, by their capitals.
    Other,
}

impl Language {
    fn of(code: Option<&str>) -> Self {
        match code.map(|code| code.split(['-', '_']).next().unwrap_or(code)) {
            None | Some("en") => Self::English,
            Some("de" | "lb") => Self::German,
            Some(_) => Self::Other,
        }
    }
}

/// A place in a fact that names something.
#[derive(Clone, Debug)]
struct Mention {
    name: String,
    class: Option<Class>,
    /// The class comes from the name itself.
    sure: bool,
    found_by: FoundBy,
    /// As it is written there.
    form: String,
    tokens: Range<usize>,
}

#[cfg(test)]
mod tests;
