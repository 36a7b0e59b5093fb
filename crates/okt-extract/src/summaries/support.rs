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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_have_to_be_in_the_facts_that_are_cited() {
        let texts = [
            "The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.",
            "Lord Kelvin built the first machine in 1872 for $1,200.",
            "Die Fähre fährt 1998 nach Aldra.",
        ];
        let id = "0197a3c0-0000-7000-8000-00000000000a".parse().unwrap();
        let facts = texts.map(|text| Known { id, text, sources: 1 });
        let supported =
            |sentence: &str, cited: &[usize]| is_supported(sentence, cited, &facts, &["Brittany (Place)"]);
        for (sentence, cited) in [
            ("It has 24 turbines.", &[0][..]),
            ("In Brittany, the Rance station makes 240 megawatts.", &[0]),
            ("Kelvin’s machine of 1872 cost 1200 dollars, while Rance has 24 turbines.", &[0, 1]),
            ("Nobody knows. Turbines turn. Others stand.", &[0]),
            ("Das Schiff der Reederei fährt seit 1998 und nicht im Winter.", &[2]),
            ("He said: \"Nobody wants it.\"", &[0]),
        ] {
            assert!(supported(sentence, cited), "{sentence}");
        }
        for (sentence, cited) in [
            ("It has 25 turbines.", &[0][..]),
            ("It has 24 turbines.", &[1]),
            ("The station of Sihwa has 24 turbines.", &[0]),
            ("It was built by Lord Kelvin.", &[0]),
            ("It has 24 turbines.", &[]),
            ("It has 24 turbines.", &[9]),
        ] {
            assert!(!supported(sentence, cited), "{sentence}");
        }
    }
}
