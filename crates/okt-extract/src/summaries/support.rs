//! Whether the facts that a sentence cites bear it out.
//!
//! Its numbers have to be in the facts that it cites, and so have the names, as far as they can be told from other words, and
//! half of its words, where both are in one language. It may tie two things together by a reason, an equality or a comparison only
//! where one of its facts ties these two together, and a number to a name only where they may stand in one fact; what the facts tell
//! as somebody's words stays so. Small models like to end every sentence with a reason, and forget who said it. A sentence that rests
//! on one fact may not deny what the fact says, nor turn it around.

use okt_model::Difference;

use super::Known;
use super::claims::ends_sentence;
use crate::ground::Ground;
use crate::guard::{Sameness, compare, language};

/// Words that say that one thing comes of another.
const REASONS: [&str; 28] = [
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
    "weil",
    "deshalb",
    "folglich",
    "parce que",
    "par conséquent",
    "porque",
    "por lo tanto",
    "perché",
    "omdat",
];

/// Words that say that two things are the same.
const EQUALITIES: [&str; 14] = [
    "amounting to",
    "amounts to",
    "corresponding to",
    "corresponds to",
    "equal to",
    "equals",
    "equivalent to",
    "i e",
    "in other words",
    "that is to say",
    "which means",
    "entspricht",
    "équivaut à",
    "equivale a",
];

/// Words that compare two things.
const COMPARISONS: [&str; 7] =
    ["than", "compared to", "compared with", "in contrast to", "twice as", "times as", "versus"];

/// Each list is one kind of tie; a fact ties things together by any word of it.
const TIES: [&[&str]; 3] = [&REASONS, &EQUALITIES, &COMPARISONS];
/// What follows on `more than` where that is a bound.
const COUNTS: [&str; 12] =
    ["half", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twenty"];
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

/// What a sentence says that its facts do not bear out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    Number,
    /// Less than half of its words are in the facts.
    Words,
    Name,
    /// It ties together what no fact ties together.
    Join,
    /// The facts have it from somebody, and the sentence does not say so.
    Speech,
    /// It denies what the fact says, or turns it around.
    Negation,
}

/// Whether the cited facts have what a sentence says. Names may also be those of what the text is about.
pub fn is_supported(sentence: &str, cited: &[usize], facts: &[Known], about: &[&str]) -> bool {
    let texts: Vec<&str> = cited.iter().filter_map(|at| facts.get(*at)).map(|fact| fact.text).collect();
    flaw(sentence, &texts, about).is_none()
}

/// What the facts of a sentence do not bear out, if there is anything.
pub fn flaw(sentence: &str, texts: &[&str], about: &[&str]) -> Option<Flaw> {
    let ground = Ground::of(texts.iter().chain(about).copied());
    let said = language(sentence, "");
    let translated = texts.iter().all(|text| !std::ptr::eq(said, language(text, "")));
    let told_by_others = !texts.is_empty() && texts.iter().all(|text| has_one(text, &SPEECH));
    if !ground.has_numbers(sentence) {
        Some(Flaw::Number)
    } else if !translated && !ground.has_half(sentence) {
        Some(Flaw::Words)
    } else if said.english && !names(sentence).into_iter().all(|name| ground.has_word(name)) {
        Some(Flaw::Name)
    } else if ties_anew(sentence, texts, translated) || (said.english && gives_to_another(sentence, texts)) {
        Some(Flaw::Join)
    } else if told_by_others && !has_one(sentence, &SPEECH) {
        Some(Flaw::Speech)
    } else if texts.first().is_some_and(|fact| texts.len() == 1 && denies(sentence, fact)) {
        Some(Flaw::Negation)
    } else {
        None
    }
}

/// Whether a sentence ties two things together by a reason, an equality or a comparison, and no fact has a word of that kind and both
/// things: their numbers, and half of their words where the fact is in the language of the sentence.
fn ties_anew(sentence: &str, texts: &[&str], translated: bool) -> bool {
    let lower = sentence.to_lowercase();
    let words: Vec<(usize, &str)> = placed_words(&lower).collect();
    TIES.iter().any(|kind| {
        let tied = |(at, length): (usize, usize)| {
            let (begin, end) = (words[at].0, words[at + length - 1].0 + words[at + length - 1].1.len());
            let before = last_clause(&lower[..begin]);
            let behind = first_clause(&lower[end..]);
            // More than 200 is a bound.
            let count = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) || COUNTS.contains(&word);
            let bound = *kind == COMPARISONS && words.get(at + length).is_some_and(|(_, word)| count(word));
            let bears = |text: &&str| {
                let ground = Ground::of(std::iter::once(*text));
                let has = |side: &str| {
                    let wordless = !side.contains(char::is_alphabetic);
                    ground.has_numbers(side) && (translated || wordless || ground.has_half(side))
                };
                has_one(text, kind) && has(before) && has(behind)
            };
            bound || texts.iter().any(bears)
        };
        places(&words, kind).any(|place| !tied(place))
    })
}

/// Where words of a list stand, and how many words each of them has.
fn places<'w>(
    words: &'w [(usize, &'w str)],
    list: &'w [&'w str],
) -> impl Iterator<Item = (usize, usize)> + 'w {
    list.iter().flat_map(move |phrase| {
        let length = phrase.split(' ').count();
        (0..words.len()).filter_map(move |at| {
            let found = words.get(at..at + length)?.iter().map(|(_, word)| *word).eq(phrase.split(' '));
            found.then_some((at, length))
        })
    })
}

/// The words of a text in small letters, each with its place.
fn placed_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr() as usize;
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(move |word| (word.as_ptr() as usize - base, word))
}

/// From the last comma on that leaves more than a word or two.
fn last_clause(text: &str) -> &str {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut borders = text.rmatch_indices([',', ';']).map(|(at, _)| &text[at + 1..]);
    borders.find(|clause| clause.starts_with(' ') && is_clause(clause)).unwrap_or(text)
}

/// Up to the first comma that leaves more than a word or two.
fn first_clause(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut borders = text.match_indices([',', ';']).filter(|(at, _)| text[at + 1..].starts_with(' '));
    borders.find(|(at, _)| is_clause(&text[..*at])).map_or(text, |(at, _)| &text[..at])
}

pub(crate) fn is_clause(text: &str) -> bool {
    text.split_whitespace().count() > 2
}

/// Whether a part of a sentence has a number, and every fact with that number names others than that part does: the number of one
/// fact was given to what another one speaks of.
fn gives_to_another(sentence: &str, texts: &[&str]) -> bool {
    if texts.len() < 2 {
        return false;
    }
    let known: Vec<(&str, Vec<&str>)> = texts.iter().map(|text| (*text, all_names(text, sentence))).collect();
    parts(sentence).any(|part| {
        let own = all_names(part, "");
        if own.is_empty() {
            return false;
        }
        numbers(part).any(|number| {
            let mut having = known
                .iter()
                .filter(|(text, _)| Ground::of(std::iter::once(*text)).has_numbers(number))
                .peekable();
            having.peek().is_some()
                && having.all(|(_, names)| !names.is_empty() && !names.iter().any(|name| own.contains(name)))
        })
    })
}

/// What stands between commas, semicolons and words that only go on.
pub(crate) fn parts(sentence: &str) -> impl Iterator<Item = &str> {
    // With a blank, so that `3,500` stays one number.
    const BORDERS: [&str; 9] = [", ", "; ", ": ", " (", ") ", " and ", " but ", " while ", " whereas "];
    let all = BORDERS.iter().fold(vec![sentence], |parts, border| {
        parts.into_iter().flat_map(|part| part.split(border)).collect()
    });
    all.into_iter().filter(|part| !part.trim().is_empty())
}

/// The words with digits of a text.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// Words with a capital, the first one too unless `beside` has it in small letters.
pub(crate) fn all_names<'t>(text: &'t str, beside: &str) -> Vec<&'t str> {
    let mut all = names(text);
    let first = text.split_whitespace().next().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let first = first.map(|word| word.trim_end_matches("'s").trim_end_matches("’s"));
    all.extend(first.filter(|word| {
        word.starts_with(char::is_uppercase)
            && word.chars().count() > 3
            && !STARTS.contains(&word.to_lowercase().as_str())
            && !beside.split_whitespace().any(|other| *other == word.to_lowercase())
    }));
    all
}

/// Words of more than three letters with which sentences begin and that are no names.
pub(crate) const STARTS: [&str; 24] = [
    "after", "although", "another", "around", "because", "before", "both", "during", "each", "every", "from",
    "however", "many", "most", "only", "over", "several", "some", "there", "these", "they", "this", "when",
    "with",
];

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
            ("The rope was wrong, and because of the rope it failed.", &[1, 3]),
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

    #[test]
    fn two_facts_are_tied_together_by_none_but_a_fact() {
        let texts = [
            "The Rance tidal power station has a capacity of 240 megawatts.",
            "The Rance tidal power station has 24 turbines.",
            "The dam of Rance was built in 1966 because the town needed power.",
            "The capacity of 240 megawatts is equivalent to the demand of 225,000 homes.",
            "The Sihwa station has 10 turbines, and is larger than the Rance station.",
            "The town lost money.",
        ];
        let of = |cited: &[usize]| cited.iter().map(|at| texts[*at]).collect::<Vec<&str>>();
        for (sentence, cited) in [
            ("The capacity of 240 megawatts is equivalent to the demand of 225,000 homes.", &[3][..]),
            (
                "The station has a capacity of 240 megawatts, equivalent to the demand of 225,000 homes.",
                &[0, 3],
            ),
            ("The dam was built because the town needed power, and the station has 24 turbines.", &[1, 2]),
            ("The Sihwa station is larger than the Rance station, which has 24 turbines.", &[1, 4]),
            ("The Rance station has 24 turbines and the Sihwa station has 10 turbines.", &[1, 4]),
            ("The station has more than 20 turbines, 24 of them.", &[1]),
        ] {
            let found = flaw(sentence, &of(cited), &[]).filter(|flaw| *flaw == Flaw::Join);
            assert_eq!(found, None, "{sentence}");
        }
        for (sentence, cited) in [
            ("The capacity of 240 megawatts is equivalent to 24 turbines.", &[0, 1][..]),
            ("The station has 24 turbines because it has a capacity of 240 megawatts.", &[0, 1]),
            ("The station has 24 turbines; therefore its capacity is 240 megawatts.", &[0, 1]),
            ("The dam was built in 1966 because the town lost money.", &[2, 5]),
            ("The capacity of 240 megawatts is larger than that of 10 turbines.", &[0, 4]),
            ("The Sihwa station has 24 turbines.", &[1, 4]),
        ] {
            assert_eq!(flaw(sentence, &of(cited), &[]), Some(Flaw::Join), "{sentence}");
        }
    }
}
