//! The pieces of a sentence of which each says something of its own. One fact alone has to bear each of them: what stands in two facts is
//! not thereby said of one thing.

use std::sync::LazyLock;

use crate::ground::Ground;
use crate::guard::language;
use crate::summaries::claims::sentences;
use crate::summaries::support::{STARTS, all_names, is_clause, parts};

/// Words that go between others.
const JOINTS: [&str; 8] = ["and", "but", "while", "whereas", "or", "so", "yet", "then"];
const ARTICLES: [&str; 6] = ["the", "a", "an", "le", "la", "der"];
/// With one of these and without a subject a part says when or where what follows is so.
const OPENINGS: [&str; 24] = [
    "as",
    "at",
    "by",
    "for",
    "if",
    "in",
    "of",
    "off",
    "on",
    "to",
    "up",
    "since",
    "until",
    "under",
    "unlike",
    "like",
    "within",
    "without",
    "despite",
    "according",
    "between",
    "near",
    "through",
    "from",
];
/// Words of more than three letters that hold a sentence together.
const SMALL: &str = "about after along also although among another around because been before being below between both called does \
                     during each either ever every from further have having however into itself just less like made many more most \
                     much near only other over same several should since some still such than that their them then there these they \
                     this those through thus time toward under until upon used very well were what when where whether which while \
                     whom whose will with within without would aber auch dass dies eine einem einen einer haben nach oder sein sich \
                     sind über unter waren wird wurde wurden";

/// What stands between clauses of which each is a statement.
const BETWEEN: [&str; 5] = ["; ", ", and ", ", but ", ", while ", ", whereas "];
/// With one of these in it, the clauses of a sentence are no statements of their own.
const BOUND: [&str; 9] = ["or", "nor", "either", "neither", "if", "unless", "so", "then", "whether"];
/// Words that stand for what was spoken of before.
const PRONOUNS: [&str; 40] = [
    "it", "its", "he", "him", "his", "she", "her", "hers", "they", "them", "their", "theirs", "this", "that",
    "these", "those", "such", "both", "former", "latter", "es", "er", "sie", "dies", "dieser", "diese",
    "dieses", "il", "elle", "ils", "elles", "ce", "cette", "este", "esta", "questo", "questa", "isso", "hij",
    "zij",
];
/// Words of questions and those that hold them together.
const LINKING: &str = "a an and are as at be been by did do does for from had has have how if in is it its of on or since that the \
                       their them they this to was were what when where whether which who whom whose why with der die das dem den \
                       ein eine einer ist sind hat haben von und oder ob wer wann wo warum wie le la les un une est sont et ou de du \
                       des que qui quand el los las una es son y en del il lo gli di da";

static SMALL_WORDS: LazyLock<Ground> = LazyLock::new(|| Ground::of(std::iter::once(SMALL)));

/// The pieces of a sentence, each with the names of what it is said of. A part without a subject of its own is said of that of the part
/// before it; one that only leads to what follows goes with that; and where nothing is named, all is one piece.
pub(super) fn pieces(sentence: &str) -> Vec<String> {
    let (mut pieces, mut subject, mut open) = (Vec::new(), String::new(), String::new());
    for part in parts(sentence) {
        let part = without_joint(part);
        let own = if pieces.is_empty() { first_subject(part) } else { subject_of(part) };
        match own.filter(|_| is_clause(part)) {
            Some(names) => {
                pieces.push(std::mem::take(&mut open) + part);
                subject = names;
            }
            None if pieces.is_empty() => open.extend([part, " "]),
            None => pieces.push(format!("{subject} {part}")),
        }
    }
    if pieces.is_empty() { vec![sentence.to_owned()] } else { pieces }
}

/// The clauses of a sentence, where each of them is a statement of its own.
pub(super) fn clauses(sentence: &str) -> Option<Vec<&str>> {
    let mut words = sentence.split_whitespace().map(|word| bare(word).to_lowercase()).peekable();
    let opens = words.peek().is_some_and(|first| {
        let first = first.as_str();
        OPENINGS.contains(&first) || STARTS.contains(&first) || JOINTS.contains(&first)
    });
    if opens || words.any(|word| BOUND.contains(&word.as_str())) {
        return None;
    }
    let all = BETWEEN.iter().fold(vec![sentence], |clauses, between| {
        clauses.into_iter().flat_map(|clause| clause.split(between)).collect()
    });
    (all.len() > 1).then_some(all)
}

/// Whether a sentence begins with a word for what was spoken of before it: nobody knows by itself what it is said of.
pub(super) fn points_back(sentence: &str) -> bool {
    let first = sentence.split_whitespace().next().map(|word| bare(word).to_lowercase());
    first.is_some_and(|first| PRONOUNS.contains(&first.as_str()))
}

/// What an English text says of one thing after the other: a sentence that begins with another name, and points to nothing before it, speaks
/// of another thing. A text in another language is one stretch, since a capital says less there.
pub(super) fn stretches(text: &str) -> Vec<String> {
    if !language(text, "").english {
        return vec![text.to_owned()];
    }
    let mut all: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        match all.last_mut().filter(|last| !begins_anew(&sentence, last)) {
            Some(last) => last.extend([" ", &sentence]),
            None => all.push(sentence),
        }
    }
    all
}

fn begins_anew(sentence: &str, before: &str) -> bool {
    let known = Ground::of(std::iter::once(before));
    let mut words = sentence.split_whitespace().map(bare);
    if words.any(|word| PRONOUNS.contains(&word.to_lowercase().as_str())) {
        return false;
    }
    let subject = own_name(sentence);
    if subject.is_empty() {
        let names = all_names(sentence, "");
        !names.is_empty() && !names.iter().any(|name| known.has_word(name))
    } else {
        !known.has_word(&subject)
    }
}

/// The name with which a sentence begins, but for an article; empty if it begins with none.
pub(super) fn own_name(sentence: &str) -> String {
    let mut words = sentence.split_whitespace().map(bare).peekable();
    words.next_if(|word| ARTICLES.contains(&word.to_lowercase().as_str()));
    let first = words.peek().map(|word| word.to_lowercase()).unwrap_or_default();
    if OPENINGS.contains(&first.as_str()) || STARTS.contains(&first.as_str()) {
        return String::new();
    }
    words.take_while(|word| word.starts_with(char::is_uppercase)).collect::<Vec<_>>().join(" ")
}

/// Whether every word of a text but small ones is in another one.
pub(super) fn has_all(ground: &Ground, text: &str) -> bool {
    let linking = |word: &str| LINKING.split_whitespace().any(|known| known == word.to_lowercase());
    text.split(|c: char| !c.is_alphanumeric()).all(|word| ground.has_word(word) || linking(word))
}

/// Whether one of several texts has the numbers of a piece, and all of its names and words that any of them has.
pub(super) fn has_alone(piece: &str, text: &str, all: &Ground) -> bool {
    let own = Ground::of(std::iter::once(text));
    own.has_numbers(piece)
        && own.has_words_of(piece, all, &SMALL_WORDS)
        && all_names(piece, "").into_iter().all(|name| own.has_word(name) || !all.has_word(name))
}

fn without_joint(part: &str) -> &str {
    let part = part.trim();
    match part.split_once(' ') {
        Some((first, rest)) if JOINTS.contains(&first.to_lowercase().as_str()) => rest.trim_start(),
        _ => part,
    }
}

/// The first name of the first part, unless the part only leads to the next one.
fn first_subject(part: &str) -> Option<String> {
    let first = part.split_whitespace().next()?.to_lowercase();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    if OPENINGS.contains(&first) || STARTS.contains(&first) {
        return None;
    }
    let names = all_names(part, "");
    run(part, |word| names.contains(&word))
}

/// The name with which a later part begins.
fn subject_of(part: &str) -> Option<String> {
    let mut words = part.split_whitespace().map(bare);
    let first = words.next()?;
    let is_name = |word: &str| word.starts_with(char::is_uppercase);
    let near = ARTICLES.contains(&first.to_lowercase().as_str()) && words.take(2).any(is_name);
    if is_name(first) || near { run(part, is_name) } else { None }
}

/// The first words that are names, as far as they stand side by side.
fn run(part: &str, is_name: impl Fn(&str) -> bool) -> Option<String> {
    let words = part.split_whitespace().map(bare).skip_while(|word| !is_name(word));
    let names: Vec<&str> = words.take_while(|word| word.starts_with(char::is_uppercase)).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn bare(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.trim_end_matches("'s").trim_end_matches("’s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_subject_of_which_it_is_said() {
        for (sentence, expected) in [
            (
                "The Rance station has 24 turbines, and the Sihwa station has 10 turbines.",
                &["The Rance station has 24 turbines", "the Sihwa station has 10 turbines."][..],
            ),
            (
                "The Aldra Line was founded in 1962 and bought by Norge Ferries.",
                &["The Aldra Line was founded in 1962", "Aldra Line bought by Norge Ferries."],
            ),
            (
                "In the winter of 1966, the Sihwa station was opened.",
                &["In the winter of 1966 the Sihwa station was opened."],
            ),
            ("Mia Berg, Nils Holm and Bo Li founded it.", &["Mia Berg Nils Holm Bo Li founded it."]),
            (
                "It has 24 turbines, and its capacity is large.",
                &["It has 24 turbines, and its capacity is large."],
            ),
        ] {
            assert_eq!(pieces(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn what_two_texts_have_together_none_has_alone() {
        let texts = ["Mia Berg founded the Aldra Line.", "Nils Holm works for the Aldra Line."];
        let all = Ground::of(texts.into_iter());
        let has = |piece: &str| texts.map(|text| has_alone(piece, text, &all));
        assert_eq!(has("Mia Berg founded the Aldra Line"), [true, false]);
        assert_eq!(has("Nils Holm founded the Aldra Line"), [false, false]);
        assert_eq!(has("Nils Holm runs the Aldra Line"), [false, true], "no text has the verb");
    }
}
