//! The posture of facts as a model sees it: the question about pairs, and what is read of the answer.

use std::collections::HashMap;

use okt_model::Posture;
use serde::Deserialize;
use serde_json::{Number, Value};

use super::Judgement;
use crate::answer::{Misfit, malformed, object};
use crate::judge::place;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{POSTURES, Prompt, Question};

/// So many pairs are asked about at once.
pub const MODEL_PAIRS: usize = 20;

/// Room for what is said of a pair, written with spaces and line breaks.
pub const TOKENS_PER_PAIR: u32 = 100;

/// Asks how the second text of each pair, a fact, stands to the first, with the built-in prompt.
pub fn question(pairs: &[(&str, &str)]) -> Question {
    question_of(&Promptset::builtin(), pairs)
}

/// The same with the prompt of a promptset.
///
/// Each line of the question begins with a number in brackets or a word of ours. Texts of others have no line breaks left, so
/// none of them can pass for another.
pub fn question_of(promptset: &Promptset, pairs: &[(&str, &str)]) -> Question {
    let numbered = pairs.iter().enumerate();
    let user = numbered.map(|(at, (sentence, fact))| {
        format!("[{}]\nStatement: {}\nFact: {}\n", at + 1, shown(sentence), shown(fact))
    });
    let pairs = u32::try_from(pairs.len()).unwrap_or(u32::MAX).max(1);
    let room = pairs.saturating_mul(TOKENS_PER_PAIR);
    Prompt::with_max_tokens(promptset.text(Phase::Posture), &POSTURES, room).ask(user.collect())
}

/// Reads the answer to [`question`]: a judgement of each of so many pairs, `None` where nothing can be used: no entry,
/// several that do not agree, a word that was not asked for. An answer without any is a misfit.
pub fn read(answer: &str, pairs: usize) -> Result<Vec<Option<Judgement>>, Misfit> {
    let mut said: HashMap<usize, Option<Judgement>> = HashMap::new();
    for entry in object::<Answer>(answer, &POSTURES)?.pairs {
        let Some(at) = entry.place(pairs) else { continue };
        let judgement = entry.judgement();
        let first = said.entry(at).or_insert(judgement);
        if first.map(|first| first.posture) != judgement.map(|other| other.posture) {
            *first = None;
        }
    }
    if said.values().all(Option::is_none) {
        return Err(malformed("has no posture for any of the pairs", &POSTURES));
    }
    Ok((0..pairs).map(|at| said.get(&at).copied().flatten()).collect())
}

#[derive(Deserialize)]
struct Answer {
    pairs: Vec<Entry>,
}

/// One that is of another form makes no other of them unreadable.
#[derive(Deserialize)]
#[serde(transparent)]
struct Entry(Value);

impl Entry {
    fn place(&self, pairs: usize) -> Option<usize> {
        place(&Number::from(self.0.get("pair")?.as_u64()?), pairs)
    }

    /// Whether it is of the same subject is said first, and holds: small models call what is unrelated a contradiction.
    fn judgement(&self) -> Option<Judgement> {
        let posture = match self.0.get("posture")?.as_str()? {
            "supports" => Some(Posture::Supports),
            "contradicts" => Some(Posture::Contradicts),
            "related" => Some(Posture::Related),
            "irrelevant" => None,
            _ => return None,
        };
        let same_subject = match self.0.get("same_subject") {
            None => true,
            Some(said) => said.as_bool()?,
        };
        // Prompts of others need not ask for it.
        let percent = match self.0.get("confidence") {
            None => 50,
            Some(said) => said.as_u64().filter(|percent| *percent <= 100)?,
        };
        let confidence = f32::from(u8::try_from(percent).ok()?) / 100.0;
        Some(Judgement { posture: posture.filter(|_| same_subject), confidence })
    }
}
