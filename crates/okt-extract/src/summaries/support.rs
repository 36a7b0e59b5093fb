//! Whether the facts that a sentence cites bear it out.
//!
//! It may be said in other words: that is what a text is written for. But its numbers have to be in the facts that it cites,
//! and so have the names, as far as they can be told from other words.

use super::Known;
use crate::atomic::ends_sentence;
use crate::ground::Ground;
use crate::guard::language;

/// Whether every number of a sentence is in one of its facts, and every name in them or in what the text is about.
pub fn is_supported(sentence: &str, cited: &[usize], facts: &[Known], about: &[&str]) -> bool {
    let texts: Vec<&str> = cited.iter().filter_map(|at| facts.get(*at)).map(|fact| fact.text).collect();
    let ground = Ground::of(texts.into_iter().chain(about.iter().copied()));
    ground.has_numbers(sentence) && names(sentence).into_iter().all(|name| ground.has_word(name))
}

/// Words with a capital inside of a sentence. Where every noun has one, they tell nothing, and none are given: languages whose
/// words are known and that are not English are left alone.
fn names(sentence: &str) -> Vec<&str> {
    if !language(sentence, "").english {
        return Vec::new();
    }
    let mut begins = true;
    let mut names = Vec::new();
    for word in sentence.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let first = std::mem::replace(&mut begins, ends_sentence(word) || word.ends_with([':', '"', '“']));
        let quoted = word.starts_with(['"', '“', '‘', '\'']);
        if !first && !quoted && bare.starts_with(char::is_uppercase) && bare != "I" {
            names.push(bare.trim_end_matches("'s").trim_end_matches("’s"));
        }
    }
    names
}
