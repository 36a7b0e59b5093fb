//! Facts without a model: the sentences of a source that stand on their own, in its words. Two things only are changed: a
//! family name becomes the whole name that the text has given before, and a loose `also` is left out.
//!
//! Rather none than one that leans on what was said before: who reads a fact sees nothing else. First the shape of a
//! sentence is looked at, which works in every script; then its words, for languages with a list in `words/`. What is left
//! out is counted by its reason.
//!
//! To teach it something: a word in `words/`, or a rule in the file that gives the reason, with a line in `tests.rs`.

mod english;
mod lists;
mod restated;
mod shape;
mod wording;
mod words;

use std::collections::HashMap;

use okt_model::{ContentHash, NoFacts, content_hash};
use sha2::{Digest, Sha256};

use crate::chunks::Text;
use crate::facts::{Extracted, Grounded};
use crate::reason::{Counts, Reason};
use lists::Lists;
use restated::Persons;
use wording::Wording;
use words::Seen;

/// What stands where the name of a model stands.
pub const MODEL: &str = okt_model::EXTRACTIVE_MODEL;

/// The rules and lists of this folder. Raise the number when one of them changes.
const RULES: &str = "builtin-extractive-1, rules 5";

/// What stands where the hash of a promptset stands: the SHA-256 of the name of the rules.
pub fn promptset_hash() -> ContentHash {
    ContentHash(Sha256::digest(RULES).into())
}

/// The statements that stand on their own, with white space collapsed. Each cites its sentence; one that occurs again cites every
/// place. Where the language is not known, it is taken for English.
pub fn extract(text: &Text, language: Option<&str>) -> Extracted {
    let mut facts: Vec<Grounded> = Vec::new();
    let mut counts = Counts::default();
    let mut places: HashMap<ContentHash, usize> = HashMap::new();
    for (no, statement) in statements(text, language).into_iter().enumerate() {
        let Ok(cited) = i32::try_from(no) else { break };
        let statement = match statement {
            Ok(statement) => statement,
            Err(reason) => {
                counts.add(reason, 1);
                continue;
            }
        };
        let hash = content_hash(&statement);
        let place = *places.entry(hash).or_insert(facts.len());
        match facts.get_mut(place) {
            Some(same) => same.sentences.push(cited),
            None => facts.push(Grounded { text: statement, hash, sentences: vec![cited] }),
        }
    }
    Extracted { facts, dropped: counts.dropped() }
}

/// What each sentence says by itself, or why it is no fact.
pub fn statements(text: &Text, language: Option<&str>) -> Vec<Result<String, Reason>> {
    let (alone, sections) = (Alone::of(text, language), Sections::of(text));
    let persons = Persons::of(text, alone.lists, &alone.seen);
    let statement = |no: usize| {
        sections.check(text, no)?;
        let sentence = one_line(text.sentence(no));
        let restated = persons.restate(&sentence, alone.lists, &alone.seen);
        // What else is wrong with it says more than that a name is open.
        alone.check(restated.as_ref().unwrap_or(&sentence))?;
        restated
    };
    (0..text.len()).map(statement).collect()
}

/// Whether a statement about what a text tells can be understood by who sees nothing else.
pub struct Alone {
    lists: &'static Lists,
    seen: Seen,
}

impl Alone {
    pub fn of(text: &Text, language: Option<&str>) -> Self {
        Self { lists: Lists::of(language.unwrap_or("en")), seen: Seen::of(text) }
    }

    /// Why it can't.
    pub fn check(&self, statement: &str) -> Result<(), Reason> {
        let statement = one_line(statement);
        shape::check(&statement)?;
        // Its words come last: they are the most work.
        Wording::of(&statement, self.lists, &self.seen).check()
    }
}

/// Why [`extract`] found nothing in a text.
pub fn why_nothing(text: &Text, language: Option<&str>) -> NoFacts {
    let sentences = || (0..text.len()).map(|no| text.sentence(no));
    if !sentences().any(|sentence| sentence.contains(char::is_alphabetic)) {
        return NoFacts::new("no_sentences", "There are no sentences in it.");
    }
    let known = match language {
        Some(language) => Lists::find(language).is_some(),
        // Taken for English, unless it is written in other letters.
        None => sentences().flat_map(str::chars).filter(|c| c.is_alphabetic()).any(is_latin),
    };
    if !known {
        let which =
            language.map_or_else(|| "its language".to_owned(), |code| format!("its language ({code})"));
        return NoFacts::new(
            "no_language_rules",
            format!(
                "Without a model, facts are sentences that stand on their own, and for {which} there are no rules \
                 that could tell (there are for {}). A model reads it: see providers.decomposition.fact_extraction.model.",
                Lists::languages()
            ),
        );
    }
    if sentences().any(|sentence| shape::check(&one_line(sentence)).is_ok()) {
        NoFacts::new(
            "nothing_stands_alone",
            "None of its sentences can be understood without the others: each points to what was said before, asks, \
             instructs, or is a reference. `dropped` counts why.",
        )
    } else {
        NoFacts::new(
            "no_statements",
            "Nothing in it has the form of a whole sentence: it seems to be made of headings, lists, tables or code.",
        )
    }
}

fn one_line(sentence: &str) -> String {
    sentence.split_whitespace().collect::<Vec<_>>().join(" ")
}

const fn is_latin(c: char) -> bool {
    matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

/// Where in the text a sentence stands.
struct Sections {
    /// Headings of references and the like, and where each ends.
    endings: Vec<(usize, usize)>,
}

/// So many sentences in a row that are no entries of a list of references: the text goes on.
const GOES_ON: usize = 8;

/// So many sentences may an entry of a ticker have.
const MINUTE: usize = 20;

impl Sections {
    fn of(text: &Text) -> Self {
        let mut endings: Vec<(usize, usize)> = Vec::new();
        let half = text.len().div_ceil(2);
        for no in (0..text.len()).filter(|no| wording::is_ending(text.sentence(*no))) {
            if endings.last().is_some_and(|(_, end)| no < *end) {
                continue;
            }
            // In the first half it may be an entry of the contents, or an appendix follows.
            let end = if no >= half { text.len() } else { end_of_references(text, no) };
            endings.push((no, end));
        }
        Self { endings }
    }

    fn check(&self, text: &Text, no: usize) -> Result<(), Reason> {
        if self.endings.iter().any(|(start, end)| (*start..*end).contains(&no)) {
            return Err(Reason::Reference);
        }
        // A caption has more than one sentence, and the second speaks of what is seen; who took the picture is named last.
        let before = no.checked_sub(1).map_or("", |before| text.sentence(before));
        if wording::is_label(text.sentence(no)) || wording::is_label(before) {
            return Err(Reason::Caption);
        }
        let credited = !text.begins_line(no + 1) && wording::is_credit(text.sentence(no + 1));
        if credited || wording::is_credit(text.sentence(no)) {
            return Err(Reason::Caption);
        }
        // What a ticker goes on to say belongs to the minute that it began with.
        let first = (0..=no).rev().take(MINUTE).find(|no| text.begins_line(*no)).unwrap_or(no);
        if shape::is_ticker(text.sentence(first)) {
            return Err(Reason::Boilerplate);
        }
        Ok(())
    }
}

/// Where a list of references ends that begins at a heading: before the first of many sentences without the marks of one.
fn end_of_references(text: &Text, heading: usize) -> usize {
    let mut last = heading;
    for no in heading + 1..text.len() {
        if shape::is_like_reference(text.sentence(no)) {
            last = no;
        } else if no - last >= GOES_ON {
            break;
        }
    }
    last + 1
}

#[cfg(test)]
mod tests;
