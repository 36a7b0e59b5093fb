//! Whether a text has the phrases of a query, and nothing that the query excludes.

use std::collections::HashMap;

use crate::query::{Phrase, Query};
use crate::words::Word;

/// Whether the words of a text allow it as an answer. Single words that are looked for are not asked for here, and phrases only
/// where they are required.
pub fn fits(query: &Query, words: &[Word], phrases_required: bool) -> bool {
    if (query.phrases.is_empty() || !phrases_required) && query.without.is_empty() {
        return true;
    }
    let mut at: HashMap<u32, &str> = HashMap::with_capacity(words.len());
    for word in words {
        at.insert(word.position, &word.lexeme);
    }
    let stands = |phrase: &Phrase| {
        words.iter().any(|first| {
            phrase.iter().all(|(behind, term)| {
                let place = first.position.checked_add(*behind);
                place.and_then(|place| at.get(&place)).is_some_and(|lexeme| term.matches(lexeme))
            })
        })
    };
    (!phrases_required || query.phrases.iter().all(stands)) && !query.without.iter().any(stands)
}
