//! A short text about some facts of a concept: the question, and what is kept of the answer.

use super::kept::{Given, read};
use super::{Attempt, Known, Written};
use crate::answer::Misfit;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{Prompt, Question, SENTENCES};

/// Tokens that a sentence takes with its facts, and so how many are asked for.
pub(super) const TOKENS_PER_SENTENCE: u32 = 60;
const MOST_SENTENCES: u32 = 12;

/// What a slice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic<'t> {
    pub name: &'t str,
    /// The label of its context.
    pub context: &'t str,
}

/// Asks for a text about a concept from the facts of a slice. Each line begins with words of ours: the concept, or the number
/// of a fact in brackets. Texts of others have no line breaks left and no numbers in brackets.
pub fn slice_question(promptset: &Promptset, topic: &Topic, facts: &[Known], max_tokens: u32) -> Question {
    let mut user = format!("Concept: {} ({})\nFacts:\n", shown(topic.name), shown(topic.context));
    user.extend(facts.iter().enumerate().map(|(at, fact)| line(at, fact)));
    let most = (max_tokens / TOKENS_PER_SENTENCE).clamp(1, MOST_SENTENCES);
    user.push_str(&format!("Write at most {most} sentences.\n"));
    Prompt::with_max_tokens(promptset.text(Phase::Summarization), &SENTENCES, max_tokens).ask(user)
}

/// A fact with its number and, where several sources state it, how many.
pub(super) fn line(at: usize, fact: &Known) -> String {
    let sources = if fact.sources > 1 { format!("({} sources) ", fact.sources) } else { String::new() };
    format!("[{}] {sources}{}\n", at + 1, shown(fact.text))
}

/// Reads the answer to [`slice_question`]. A sentence is kept if it cites facts of the slice, and these have its numbers and
/// names.
pub fn read_slice(answer: &str, topic: &Topic, facts: &[Known], attempt: Attempt) -> Result<Written, Misfit> {
    read(answer, &SENTENCES, &Given { facts, about: &[topic.name, topic.context], images: &[] }, attempt)
}
