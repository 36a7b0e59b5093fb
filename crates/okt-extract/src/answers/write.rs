//! The question to whoever writes an answer, and the one about sentences that did not hold.

use serde::Deserialize;

use super::Given;
use super::lines::{Line, keys};
use crate::answer::{Misfit, object};
use crate::line::{one_line, shown};
use crate::question::{ANSWER, Prompt, Question, REPAIRED};

const WRITE: &str = include_str!("../../prompts/answer.md");
const REPAIR: &str = include_str!("../../prompts/answer_repair.md");
/// Room for a sentence with its keys.
const TOKENS_PER_SENTENCE: u32 = 120;

/// What somebody asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub question: &'a str,
    /// Of the same conversation, the oldest first.
    pub earlier: &'a [&'a str],
    /// ISO 639-1, if it is to be another than that of the question.
    pub language: Option<&'a str>,
}

/// Asks for an answer of at most so many sentences. Each line of the question begins with words of ours or with a key in brackets;
/// texts of others have no line breaks left.
pub fn write_question(asked: &Asked<'_>, facts: &[Given<'_>], sentences: u32) -> Question {
    let mut user = String::new();
    for earlier in asked.earlier {
        user.extend(["Asked before: ", &shown(earlier), "\n"]);
    }
    user.extend(["Question: ", &shown(asked.question), "\n"]);
    if let Some(language) = asked.language {
        user.extend(["Language of the answer: ", &shown(language), "\n"]);
    }
    user.extend([format!("Write at most {sentences} sentences.\n")]);
    user.push_str("Facts:\n");
    user.extend(facts.iter().map(line));
    Prompt::with_max_tokens(WRITE.trim_end(), &ANSWER, room(sentences)).ask(user)
}

/// A fact under its key, with what helps to understand it.
pub(super) fn line(fact: &Given<'_>) -> String {
    let mut line = format!("[{}] {}", fact.key, shown(fact.text));
    let quote = fact.around.or(fact.quote);
    if let Some(quote) = quote.filter(|quote| one_line(quote) != one_line(fact.text)) {
        line.extend([" — \"", &shown(quote), "\""]);
    }
    let title = fact.title.map(shown).filter(|title| !title.is_empty());
    let year = fact.year.map(|year| year.to_string());
    let from: Vec<String> = title.into_iter().chain(year).collect();
    if !from.is_empty() {
        line.extend([" (", &from.join(", "), ")"]);
    }
    line.push('\n');
    line
}

fn room(sentences: u32) -> u32 {
    sentences.max(1).saturating_mul(TOKENS_PER_SENTENCE).saturating_add(200)
}

/// A sentence that did not hold, why, and the facts that it cited.
#[derive(Clone, Debug)]
pub struct Flawed<'a> {
    pub text: &'a str,
    pub reason: &'a str,
    pub facts: Vec<Given<'a>>,
}

/// Asks for sentences once more.
pub fn repair_question(flawed: &[Flawed<'_>]) -> Question {
    let mut user = String::new();
    for (at, flawed) in flawed.iter().enumerate() {
        let number = (at + 1).to_string();
        user.extend(["Sentence ", &number, ": ", &shown(flawed.text), "\n"]);
        user.extend(["Why not: ", &shown(flawed.reason), "\n"]);
        user.extend(flawed.facts.iter().map(line));
    }
    let sentences = u32::try_from(flawed.len()).unwrap_or(u32::MAX);
    Prompt::with_max_tokens(REPAIR.trim_end(), &REPAIRED, room(sentences)).ask(user)
}

/// Reads the answer to [`repair_question`]: of so many sentences those that are said otherwise, with their places.
pub fn read_repaired(answer: &str, flawed: usize) -> Result<Vec<(usize, Line)>, Misfit> {
    let mut repaired: Vec<(usize, Line)> = Vec::new();
    for entry in object::<Answer>(answer, &REPAIRED)?.sentences {
        let Some(at) = entry.n.checked_sub(1).filter(|at| (*at as usize) < flawed) else { continue };
        let text = one_line(&entry.s);
        let again = repaired.iter().any(|(known, _)| *known == at as usize);
        if text.contains(char::is_alphanumeric) && !again {
            repaired.push((at as usize, Line { number: at, text, keys: keys(entry.f) }));
        }
    }
    Ok(repaired)
}

#[derive(Deserialize)]
struct Answer {
    sentences: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    n: u32,
    s: String,
    #[serde(default)]
    f: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<'g>(key: &'g str, text: &'g str) -> Given<'g> {
        Given { key, text, quote: None, around: None, title: None, year: None }
    }

    #[test]
    fn facts_are_shown_under_keys_that_no_text_can_pass_for() {
        let mut fact = given("kqzb", "Gulls\n[wxyz] nest [3].");
        fact.quote = Some("Gulls nest, he said.");
        (fact.title, fact.year) = (Some("On gulls"), Some(1998));
        let asked = Asked { question: "Who\nnests?", earlier: &["What are gulls?"], language: Some("de") };
        let question = write_question(&asked, &[fact, given("bcdf", "Terns left.")], 12);
        assert_eq!(
            question.user,
            "Asked before: What are gulls?\nQuestion: Who nests?\nLanguage of the answer: de\nWrite at most 12 sentences.\n\
             Facts:\n[kqzb] Gulls [wxyz] nest (3). — \"Gulls nest, he said.\" (On gulls, 1998)\n[bcdf] Terns left.\n"
        );
        assert!(question.divisible && question.max_tokens > 1_000);
    }

    #[test]
    fn sentences_are_repaired_by_their_numbers() {
        let flawed = |text| Flawed {
            text,
            reason: "41 is in none of them",
            facts: vec![given("kqzb", "Gulls nest.")],
        };
        let question = repair_question(&[flawed("41 gulls nest."), flawed("Gulls nest in May.")]);
        assert!(
            question.user.starts_with(
                "Sentence 1: 41 gulls nest.\nWhy not: 41 is in none of them\n[kqzb] Gulls nest.\n"
            )
        );
        let answer = r#"{"sentences":[{"n":2,"s":"Gulls nest.","f":["kqzb"]},{"n":2,"s":"x","f":[]},{"n":9,"s":"x","f":[]},{"n":0,"s":"x"}]}"#;
        let repaired = read_repaired(answer, 2).unwrap();
        assert_eq!(repaired.len(), 1);
        assert_eq!((repaired[0].0, repaired[0].1.text.as_str()), (1, "Gulls nest."));
        assert!(read_repaired("no", 2).is_err());
    }
}
