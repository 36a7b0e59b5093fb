//! How much of their words two statements share.

use std::collections::{BTreeSet, HashMap};

use okt_search::words;

/// Statements that share fewer words are told apart by chance.
const FEWEST: usize = 3;
/// From so much on two statements are about the same. Of the shorter one's words, so that a fact which is a part of a long
/// sentence is found.
pub const NEAR: f32 = 0.6;

/// The words of a statement, in each language that the other may be in.
#[derive(Debug, Default)]
pub struct SharedWords(HashMap<Option<String>, BTreeSet<String>>);

/// How much is shared, from 0 to 1.
pub type Shared = f32;

impl SharedWords {
    /// The part of the words of the shorter one that the longer one has too.
    pub fn with(&mut self, text: &str, other: &str, language: Option<&str>) -> Shared {
        let own = self.0.entry(language.map(str::to_owned)).or_insert_with(|| lexemes(text, language));
        let others = lexemes(other, language);
        share(own.intersection(&others).count(), own.len(), others.len())
    }
}

/// The words of a statement, each once.
pub fn lexemes(text: &str, language: Option<&str>) -> BTreeSet<String> {
    words(text, language).into_iter().map(|word| word.lexeme).collect()
}

/// The part that is shared, of the words of the shorter one.
pub fn share(shared: usize, one: usize, other: usize) -> Shared {
    let fewer = one.min(other);
    if shared < FEWEST || fewer == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "statements have few words")]
    let share = shared as f32 / fewer as f32;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(one: &str, other: &str) -> Shared {
        SharedWords::default().with(one, other, Some("en"))
    }

    #[test]
    fn a_part_of_a_sentence_is_shared_whole() {
        let sentence = "According to the survey, the varroa mite killed two thirds of all colonies in 2006.";
        assert!(shared(sentence, "The varroa mite killed two thirds of colonies.") > 0.99);
        assert!(shared(sentence, "The moon is far away from the earth.") < NEAR);
    }

    #[test]
    fn two_words_are_no_statement() {
        assert!(shared("Bees fly.", "Bees fly to flowers in spring.").abs() < f32::EPSILON);
    }
}
