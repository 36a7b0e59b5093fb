//! Facts without a model: the sentences of a source that stand on their own, word for word.
//!
//! Rather none than one that leans on what was said before: who reads a fact sees nothing else. First the shape of a
//! sentence is looked at, which works in every script; then its words, for languages with a list in `words/`.

mod lists;
mod shape;
mod wording;

use std::collections::HashMap;

use okt_model::{ContentHash, content_hash};
use sha2::{Digest, Sha256};

use crate::chunks::Text;
use crate::facts::Grounded;
use lists::Lists;
use wording::Wording;

/// What stands where the name of a model stands. Raise the number when a rule or a list changes.
pub const MODEL: &str = okt_model::EXTRACTIVE_MODEL;

/// What stands where the hash of a promptset stands: the SHA-256 of [`MODEL`].
pub fn promptset_hash() -> ContentHash {
    ContentHash(Sha256::digest(MODEL).into())
}

/// The sentences that stand on their own, with white space collapsed. Each cites itself; one that occurs again cites every
/// place. Where the language is not known, it is taken for English.
pub fn extract(text: &Text, language: Option<&str>) -> Vec<Grounded> {
    let lists = Lists::of(language.unwrap_or("en"));
    let mut facts: Vec<Grounded> = Vec::new();
    let mut places: HashMap<ContentHash, usize> = HashMap::new();
    let mut after_caption = false;
    for no in 0..end(text) {
        let sentence = text.sentence(no).split_whitespace().collect::<Vec<_>>().join(" ");
        let wording = Wording::of(&sentence);
        // A caption has more than one sentence, and the second speaks of what is seen.
        let in_caption = std::mem::replace(&mut after_caption, wording.is_label());
        let Ok(cited) = i32::try_from(no) else { break };
        if in_caption || !shape::is_statement(&sentence) || !wording.stands_alone(lists) {
            continue;
        }
        let hash = content_hash(&sentence);
        let place = *places.entry(hash).or_insert(facts.len());
        match facts.get_mut(place) {
            Some(same) => same.sentences.push(cited),
            None => facts.push(Grounded { text: sentence, hash, sentences: vec![cited] }),
        }
    }
    facts
}

/// Where the text ends and its references, notes and thanks begin. A table of contents names them too, so only the second
/// half counts.
fn end(text: &Text) -> usize {
    let half = text.len().div_ceil(2);
    (half..text.len()).find(|no| Wording::of(text.sentence(*no)).is_ending()).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
