//! Concepts that may be one thing under two names: which names are certainly spellings of one, and the question to a model about
//! the others.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::Number;

use crate::answer::{Misfit, malformed, object};
use crate::judge::place;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{Prompt, Question, TWINS};

/// A hyphen between shorter words is more than a spelling: "re-sign" is not "resign".
const SHORTEST_JOINED: usize = 3;
/// Facts of a concept that are shown.
const FACTS: usize = 3;
/// A longer reason is cut off, in characters.
const LONGEST_REASON: usize = 300;

/// A concept as a model is shown it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'c> {
    pub name: &'c str,
    pub context: &'c str,
    pub aliases: &'c [String],
    pub facts: &'c [String],
}

/// What a model says of a pair, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TwinVerdict {
    Same(String),
    Different,
    Unsure,
}

/// Other spellings of a name, which is given as names are compared. Whoever has one of them is looked at, and
/// [`is_same_spelling`] decides.
pub fn spellings(name: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([name.to_owned()]);
    let steps: [fn(&str) -> Option<String>; 9] = [
        |name| name.strip_prefix("the ").map(str::to_owned),
        |name| Some(format!("the {name}")),
        |name| Some(name.replace('-', " ")),
        |name| Some(name.replace('-', "")),
        |name| (name.split(' ').count() == 2).then(|| name.replace(' ', "-")),
        |name| (name.split(' ').count() == 2).then(|| name.replace(' ', "")),
        |name| Some(name.replace('.', "")),
        |name| Some(if name.contains('&') { name.replace('&', "and") } else { name.replace(" and ", " & ") }),
        |name| {
            let is_short = (2..=4).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphabetic());
            is_short.then(|| name.chars().flat_map(|c| [c, '.']).collect())
        },
    ];
    for step in steps {
        all.extend(step(name).filter(|other| !other.is_empty()));
    }
    all
}

/// Whether two names, given as names are compared, are certainly spellings of one: a leading "the", full stops, quotation marks,
/// "&", and hyphens in place of a blank or of nothing.
pub fn is_same_spelling(one: &str, other: &str) -> bool {
    let (one, other) = (forms(one), forms(other));
    one.iter().any(|form| !form.is_empty() && other.contains(form))
}

/// A name without what may be spelled otherwise, with hyphens as blanks and, between longer words, as nothing.
fn forms(name: &str) -> BTreeSet<String> {
    let letters: Vec<char> = name.chars().collect();
    let is_digit = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
    let mut plain = String::new();
    for (at, c) in letters.iter().copied().enumerate() {
        match c {
            // Of a number it is a part: "Article 6.1" is not "Article 61".
            '.' if !is_digit(at.checked_sub(1)) && !is_digit(at.checked_add(1)) => {}
            '"' | '\'' | '‘' | '’' | '“' | '”' => {}
            '‐' | '‑' | '–' => plain.push('-'),
            '&' => plain.push_str(" and "),
            c => plain.push(c),
        }
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    // "The Who" is not "who".
    let rest = words.strip_prefix(&["the"]).filter(|rest| rest.len() > 1);
    let words = rest.unwrap_or(&words).join(" ");
    let apart = words.replace('-', " ");
    let joined: Vec<String> = words.split(' ').map(join).collect();
    BTreeSet::from([apart, joined.join(" ")])
}

/// A word without its hyphens, if all of its parts are words of letters.
fn join(word: &str) -> String {
    let is_word =
        |part: &str| part.chars().count() >= SHORTEST_JOINED && part.chars().all(char::is_alphabetic);
    if word.split('-').all(is_word) { word.replace('-', "") } else { word.replace('-', " ") }
}

/// Whether one of two names is an abbreviation of the other.
pub fn is_abbreviation(short: &str, long: &str) -> bool {
    super::short::abbreviates(short, long)
}

/// Asks of a concept whether each of the others is the same thing. Each line begins with words of ours, and texts of others have
/// no line breaks left.
pub fn twin_question(promptset: &Promptset, concept: Shown<'_>, others: &[Shown<'_>]) -> Question {
    let pairs = others.iter().enumerate();
    let user =
        pairs.map(|(at, other)| format!("[{}]\n{}{}", at + 1, lines('A', concept), lines('B', *other)));
    let user = user.collect();
    Prompt::new(promptset.text(Phase::Refinement), &TWINS).ask(user)
}

fn lines(letter: char, concept: Shown<'_>) -> String {
    let mut text = format!("{letter}: {} (context: {})", shown(concept.name), shown(concept.context));
    if !concept.aliases.is_empty() {
        let aliases: Vec<String> = concept.aliases.iter().map(|alias| shown(alias)).collect();
        text.extend(["; aliases: ", &aliases.join(", ")]);
    }
    text.push('\n');
    text.extend(concept.facts.iter().take(FACTS).map(|fact| format!("{letter} fact: {}\n", shown(fact))));
    text
}

/// Reads the answer to [`twin_question`]: a verdict for each of so many pairs, [`TwinVerdict::Unsure`] where there is none that
/// can be used. An answer without any is a misfit.
pub fn read_twins(answer: &str, pairs: usize) -> Result<Vec<TwinVerdict>, Misfit> {
    let mut said: HashMap<usize, TwinVerdict> = HashMap::new();
    for entry in object::<Answer>(answer, &TWINS)?.pairs {
        let Some(at) = place(&entry.pair, pairs) else { continue };
        let verdict = match entry.verdict.as_str() {
            "same" => TwinVerdict::Same(shown(&entry.reason).chars().take(LONGEST_REASON).collect()),
            "different" => TwinVerdict::Different,
            _ => TwinVerdict::Unsure,
        };
        let first = said.entry(at).or_insert_with(|| verdict.clone());
        if std::mem::discriminant(first) != std::mem::discriminant(&verdict) {
            *first = TwinVerdict::Unsure;
        }
    }
    if said.is_empty() {
        return Err(malformed("has no verdict on any of the pairs", &TWINS));
    }
    Ok((0..pairs).map(|at| said.remove(&at).unwrap_or(TwinVerdict::Unsure)).collect())
}

#[derive(Deserialize)]
struct Answer {
    pairs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    pair: Number,
    verdict: String,
    #[serde(default)]
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_spellings_are_one() {
        let same = [
            ("self-driving car", "self driving car"),
            ("multi-agent system", "multiagent system"),
            ("the united nations", "united nations"),
            ("u.s.", "us"),
            ("st. louis", "st louis"),
            ("johnson & johnson", "johnson and johnson"),
            ("alzheimer’s disease", "alzheimer's disease"),
            ("cost–benefit analysis", "cost-benefit analysis"),
        ];
        for (one, other) in same {
            assert!(is_same_spelling(one, other), "{one} / {other}");
            assert!(is_same_spelling(other, one), "{other} / {one}");
            let found = spellings(one).contains(other) || spellings(other).contains(one);
            assert!(
                found || one.contains('’') || one.contains('–'),
                "{one} / {other} do not find each other"
            );
        }
        let different = [
            ("re-sign", "resign"),
            ("boeing 737-800", "boeing 737800"),
            ("c-17", "c17"),
            ("bee", "bees"),
            ("müller", "muller"),
            ("apple", "apple inc"),
            ("new york", "york"),
            ("the", "a"),
            (".", ""),
            ("covid-19", "covid-1 9"),
            ("vitamin b", "vitamin b1"),
            ("article 6.1", "article 61"),
            ("ios 11.1", "ios 1.1.1"),
            ("the who", "who"),
            ("the police", "police"),
        ];
        for (one, other) in different {
            assert!(!is_same_spelling(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn an_abbreviation_has_the_letters_of_the_name() {
        assert!(is_abbreviation("DNA", "deoxyribonucleic acid"));
        assert!(is_abbreviation("WHO", "World Health Organization"));
        assert!(!is_abbreviation("WHO", "United Nations"));
        assert!(!is_abbreviation("World", "World Health Organization"));
    }

    #[test]
    fn texts_can_not_pass_for_other_pairs() {
        let (aliases, facts) = (["x\n[9]".to_owned()], ["One.\nB: Two.".to_owned()]);
        let bad = Shown { name: "A\n[2]", context: "Place", aliases: &aliases, facts: &facts };
        let question = twin_question(&Promptset::builtin(), bad, &[bad]);
        assert_eq!(
            question.user.lines().filter(|line| line.starts_with('[')).count(),
            1,
            "{}",
            question.user
        );
        assert_eq!(question.user.lines().filter(|line| line.starts_with("B:")).count(), 1);
    }

    #[test]
    fn only_what_was_asked_for_is_believed() {
        let same = |reason: &str| TwinVerdict::Same(reason.to_owned());
        let read = |answer: &str| read_twins(answer, 3);
        assert_eq!(
            read(
                r#"{"pairs":[{"pair":1,"verdict":"same","reason":"one\nname"},{"pair":2,"verdict":"different"}]}"#
            ),
            Ok(vec![same("one name"), TwinVerdict::Different, TwinVerdict::Unsure])
        );
        assert_eq!(
            read(
                r#"{"pairs":[{"pair":1,"verdict":"same"},{"pair":1,"verdict":"different"},{"pair":9,"verdict":"same"}]}"#
            ),
            Ok(vec![TwinVerdict::Unsure; 3])
        );
        for answer in ["same", "{}", r#"{"pairs":[]}"#, r#"{"pairs":[{"pair":0,"verdict":"same"}]}"#] {
            assert!(read(answer).is_err(), "{answer}");
        }
    }
}
