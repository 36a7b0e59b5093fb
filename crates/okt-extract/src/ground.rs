//! Whether a text bears out what is said to be in it.
//!
//! Not whether it is true, and not even whether the text says so: only whether its numbers and most of its words can have
//! come from there. That is cheap, needs no model, and catches what a model made up or knew from elsewhere.

mod numbers;
mod words;

use std::collections::HashSet;

use crate::reason::Reason;
use words::Word;
pub use words::{Stem, each_word, is_unspaced};

/// The numbers and words of a text.
#[derive(Default)]
pub struct Ground {
    numbers: HashSet<String>,
    words: HashSet<Stem>,
}

impl Ground {
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut ground = Self::default();
        for text in texts {
            numbers::meanings(text, &mut ground.numbers);
            each_word(text, |word| ground.words.extend(word.stems()));
        }
        ground
    }

    /// Every number of a fact has to be there, and at least half of its content words.
    pub fn bears(&self, fact: &str) -> Result<(), Reason> {
        if !self.has_half(fact) {
            return Err(Reason::NotInText);
        }
        if !numbers::are_among(fact, &self.numbers) {
            return Err(Reason::NumberNotInText);
        }
        Ok(())
    }

    /// Whether at least half of the content words of a text are there.
    pub fn has_half(&self, text: &str) -> bool {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word));
        let mut content: Vec<Word> = words.iter().copied().filter(Word::has_content).collect();
        if content.is_empty() {
            content = words;
        }
        let found = content.iter().filter(|word| word.is_among(&self.words)).count();
        !content.is_empty() && found * 2 >= content.len()
    }

    /// Whether every number of a text is there.
    pub fn has_numbers(&self, text: &str) -> bool {
        numbers::are_among(text, &self.numbers)
    }

    /// Whether every word of a text that `all` has is there too, but for short ones and those of `but`.
    pub fn has_words_of(&self, text: &str, all: &Self, but: &Self) -> bool {
        let mut has = true;
        each_word(text, |word| {
            let counts = word.has_content() && word.is_among(&all.words) && !word.is_among(&but.words);
            has &= !counts || word.is_among(&self.words);
        });
        has
    }

    /// Whether a word is there, in any of its forms; what is no word, is.
    pub fn has_word(&self, word: &str) -> bool {
        let mut all = true;
        each_word(word, |word| all &= word.is_among(&self.words));
        all
    }
}

#[cfg(test)]
mod tests;
