//! Whether the facts that a sentence cites bear it out.
//!
//! Its numbers have to be in the facts that it cites, and so have the names, as far as they can be told from other words, and
//! half of its words, where both are in one language. It may give a reason only where one of its facts does, and what the facts
//! tell as somebody's words stays so: small models like to end every sentence with a reason, and forget who said it. A sentence
//! that rests on one fact may not deny what the fact says, nor turn it around.

use okt_model::Difference;

use super::Known;
use super::claims::ends_sentence;
use crate::ground::Ground;
use crate::guard::{Sameness, compare, language};

/// Words that say that one thing comes of another.
const REASONS: [&str; 19] = [
    "as a result",
    "because",
    "cause",
    "caused",
    "causes",
    "causing",
    "consequently",
    "due to",
    "hence",
    "lead to",
    "leading to",
    "leads to",
    "led to",
    "owing to",
    "resulting",
    "thanks to",
    "therefore",
    "thus",
    "why",
];

/// Words that say that somebody says so.
const SPEECH: [&str; 16] = [
    "according to",
    "alleged",
    "allegedly",
    "alleges",
    "argued",
    "argues",
    "believe",
    "believes",
    "claimed",
    "claims",
    "reportedly",
    "said",
    "say",
    "says",
    "stated",
    "states that",
];

/// Whether the cited facts have what a sentence says. Names may also be those of what the text is about.
pub fn is_supported(sentence: &str, cited: &[usize], facts: &[Known], about: &[&str]) -> bool {
    let texts: Vec<&str> = cited.iter().filter_map(|at| facts.get(*at)).map(|fact| fact.text).collect();
    let ground = Ground::of(texts.iter().chain(about).copied());
    let said = language(sentence, "");
    let translated = texts.iter().all(|text| !std::ptr::eq(said, language(text, "")));
    let told_by_others = !texts.is_empty() && texts.iter().all(|text| has_one(text, &SPEECH));
    ground.has_numbers(sentence)
        && (translated || ground.has_half(sentence))
        && (!said.english || names(sentence).into_iter().all(|name| ground.has_word(name)))
        && (!has_one(sentence, &REASONS) || texts.iter().any(|text| has_one(text, &REASONS)))
        && (!told_by_others || has_one(sentence, &SPEECH))
        && !texts.first().is_some_and(|fact| texts.len() == 1 && denies(sentence, fact))
}

fn has_one(text: &str, words: &[&str]) -> bool {
    let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let all = format!(" {} ", all.collect::<Vec<_>>().join(" ").to_lowercase());
    words.iter().any(|word| all.contains(&format!(" {word} ")))
}

fn denies(sentence: &str, fact: &str) -> bool {
    matches!(compare(sentence, fact), Sameness::Differs(Difference::Negation | Difference::Direction))
}

/// Of the facts that are cited for several sentences at once, or of many that are cited for one: those that a sentence tells, at
/// least half of their words. Small models write a paragraph and cite all they were given.
pub fn told<'c>(sentence: &str, cited: &'c [usize], facts: &'c [Known]) -> impl Iterator<Item = usize> + 'c {
    let ground = Ground::of(std::iter::once(sentence));
    let text = |at: usize| facts.get(at).map_or("", |fact| fact.text);
    cited.iter().copied().filter(move |at| ground.has_half(text(*at)))
}

/// Words with a capital inside of a sentence. They tell nothing where every noun has one.
fn names(sentence: &str) -> Vec<&str> {
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
            "Die Fähre fährt seit 1998 nach Aldra und von dort nach Oslo.",
            "It failed because the rope was wrong.",
            "Dana Okafor said that the bridge was built for the traffic of old.",
            "The herons of the lake do not migrate.",
        ];
        let id = "0197a3c0-0000-7000-8000-00000000000a".parse().unwrap();
        let facts = texts.map(|text| Known { id, text, sources: 1 });
        let supported =
            |sentence: &str, cited: &[usize]| is_supported(sentence, cited, &facts, &["Brittany (Place)"]);
        for (sentence, cited) in [
            ("It has 24 turbines.", &[0][..]),
            ("In Brittany, the Rance station makes 240 megawatts.", &[0]),
            ("Kelvin’s machine of 1872 cost 1200 dollars, while Rance has 24 turbines.", &[0, 1]),
            ("The station has power. Turbines have capacity.", &[0]),
            ("Die Fähre der Reederei fährt seit 1998 nach Aldra.", &[2]),
            ("The ferry sails to Aldra since 1998.", &[2]),
            ("The machine cost $1,200 because Lord Kelvin built the first.", &[1, 3]),
            ("Lord Kelvin said: \"The first machine.\"", &[1]),
            ("According to Dana Okafor, the bridge was built for old traffic.", &[4]),
            ("The bridge was built for the traffic of old, and herons do not migrate.", &[4, 5]),
            ("Herons of the lake do not migrate.", &[5]),
        ] {
            assert!(supported(sentence, cited), "{sentence}");
        }
        let tells = |sentence: &str| told(sentence, &[0, 1, 2, 9], &facts).collect::<Vec<_>>();
        assert_eq!(tells("The Rance tidal power station has 24 turbines."), [0]);
        assert_eq!(
            tells("Lord Kelvin built the first machine; Rance is a tidal power station with a capacity."),
            [0, 1]
        );
        assert!(tells("Ferries sail.").is_empty());
        for (sentence, cited) in [
            ("It has 25 turbines.", &[0][..]),
            ("It has 24 turbines.", &[1]),
            ("The station of Sihwa has 24 turbines.", &[0]),
            ("It was built by Lord Kelvin.", &[0]),
            ("It has 24 turbines, which is why the station has power.", &[0]),
            ("The bridge was built for the traffic of old.", &[4]),
            ("The herons of the lake migrate.", &[5]),
            ("Turbines of old ships were mostly sold abroad quickly.", &[0]),
            ("Turbines of old ships were mostly sold abroad quickly.", &[0, 2]),
            ("It has 24 turbines.", &[9]),
        ] {
            assert!(!supported(sentence, cited), "{sentence}");
        }
    }
}
