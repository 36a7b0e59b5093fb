//! Answers to questions: what a model is told and asked, what of its sentences is believed, and what is said without a model.
//!
//! A model sees facts under keys without an order, and writes sentences with keys; it never sees or writes an id. A sentence is read as
//! soon as it is complete, while the next one is written. What it says is data: a key that was not given is struck out, and
//! [`check`] holds the sentence against the facts of the others.
//!
//! The instructions are no phases of a promptset; [`okt_model::ASK_VERSION`] names them.

mod check;
mod choose;
mod extractive;
mod lines;
mod pieces;
mod write;

pub use check::{Checked, Part, check, is_about, is_missing, parts_of};
pub use choose::{read_scores, scores_question};
pub use extractive::{Candidate, distinct, extractive, is_near_question};
pub use lines::{Line, Lines, Written, read_answer};
pub use write::{Asked, Flawed, read_repaired, repair_question, write_question};

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// A piece of evidence as a model is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<'g> {
    pub key: &'g str,
    pub text: &'g str,
    /// The words of the source that it rests on, where they say more.
    pub quote: Option<&'g str>,
    /// These with their neighbours: they help to understand the fact, and are no part of what it says.
    pub around: Option<&'g str>,
    pub title: Option<&'g str>,
    pub year: Option<i32>,
}

impl Given<'_> {
    /// All that it says.
    pub fn says(&self) -> String {
        match self.quote.filter(|quote| *quote != self.text) {
            Some(quote) => format!("{} {quote}", self.text),
            None => self.text.to_owned(),
        }
    }
}

/// Letters of keys: none that makes a word with the others.
const LETTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
const KEY: usize = 4;

/// A key for each of some texts: the same for the same question and text, whatever their order, so that the same is asked in the same
/// words; and nothing that whoever wrote the texts could have known.
pub fn keys(question: &str, texts: &[&str]) -> Vec<String> {
    let mut taken = HashSet::new();
    let keys = texts.iter().map(|text| {
        let mut round = 0_u32;
        loop {
            let hash = Sha256::new().chain_update(question).chain_update([0]).chain_update(text);
            let hash = hash.chain_update(round.to_be_bytes()).finalize();
            let key: String = hash[..KEY]
                .iter()
                .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
                .collect();
            if taken.insert(key.clone()) {
                return key;
            }
            round += 1;
        }
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_for_the_same_and_have_no_order() {
        let texts = ["Gulls nest.", "Terns left.", "Auks stay.", "Gulls nest."];
        let made = keys("Who nests?", &texts);
        assert_eq!(made, keys("Who nests?", &texts));
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), texts.len(), "{made:?}");
        assert!(made.iter().all(|key| key.len() == KEY && key.bytes().all(|byte| LETTERS.contains(&byte))));
        let turned = keys("Who nests?", &["Auks stay.", "Terns left."]);
        assert_eq!(turned, [made[2].clone(), made[1].clone()]);
        assert_ne!(keys("Who left?", &texts)[..3], made[..3]);
        let many: Vec<String> = (0..500).map(|at| format!("fact {at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(keys("?", &many).into_iter().collect::<HashSet<_>>().len(), 500);
    }
}
