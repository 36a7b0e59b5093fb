//! Which facts an answer is written from, as a model says: all are scored in one call, because facts are short.

use std::collections::HashMap;

use serde::Deserialize;

use super::write::line;
use super::{Asked, Given};
use crate::answer::{Misfit, malformed, object};
use crate::line::shown;
use crate::question::{Prompt, Question, SCORES};

const PROMPT: &str = include_str!("../../prompts/evidence_scores.md");
const TOKENS_PER_SCORE: u32 = 30;

/// Asks how much each fact helps.
pub fn scores_question(asked: &Asked<'_>, facts: &[Given<'_>]) -> Question {
    let mut user = String::new();
    for earlier in asked.earlier {
        user.extend(["Asked before: ", &shown(earlier), "\n"]);
    }
    user.extend(["Question: ", &shown(asked.question), "\nFacts:\n"]);
    user.extend(facts.iter().map(line));
    let count = u32::try_from(facts.len()).unwrap_or(u32::MAX);
    let room = count.max(1).saturating_mul(TOKENS_PER_SCORE).saturating_add(100);
    Prompt::with_max_tokens(PROMPT.trim_end(), &SCORES, room).ask(user)
}

/// Reads the scores by keys, from 0 to 10. What is not scored is missing; an answer that scores less than half of the facts is a misfit.
pub fn read_scores(answer: &str, facts: &[Given<'_>]) -> Result<HashMap<String, u8>, Misfit> {
    let mut scores = HashMap::new();
    for entry in object::<Answer>(answer, &SCORES)?.scores {
        let key = entry.k.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        if facts.iter().any(|fact| fact.key == key) {
            scores.entry(key).or_insert(u8::try_from(entry.n.min(10)).unwrap_or(10));
        }
    }
    if scores.len() * 2 < facts.len() {
        return Err(malformed("has no score for most of the facts", &SCORES));
    }
    Ok(scores)
}

#[derive(Deserialize)]
struct Answer {
    scores: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    k: String,
    n: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_by_key() {
        let given = |key, text| Given { key, text, quote: None, around: None, title: None, year: None };
        let facts = [given("kqzb", "Gulls nest."), given("bcdf", "Terns left."), given("wxyz", "Auks stay.")];
        let read = |answer: &str| read_scores(answer, &facts);
        let scores = read(
            r#"{"scores":[{"k":"bcdf","n":99},{"k":"[KQZB]","n":3},{"k":"kqzb","n":9},{"k":"qqqq","n":9}]}"#,
        );
        assert_eq!(scores.unwrap(), HashMap::from([("bcdf".to_owned(), 10), ("kqzb".to_owned(), 3)]));
        assert!(read(r#"{"scores":[{"k":"bcdf","n":9}]}"#).is_err());
    }
}
