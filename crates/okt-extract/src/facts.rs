//! Facts from text: the question about a chunk, and what is believed of the answer.

use okt_model::ContentHash;
use serde_json::Number;

use crate::answer::{self, Coarse, Misfit, Weighed};
use crate::chunks::{Chunk, Text};
use crate::ground::Ground;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{FACTS, Prompt, Question};
use crate::reason::{Dropped, Reason};

/// More of a title is not shown, in characters: it goes out with each chunk.
pub const LONGEST_TITLE: usize = 300;

/// A fact that the source bears out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grounded {
    pub text: String,
    pub hash: ContentHash,
    /// The numbers of the sentences on which it rests, ascending.
    pub sentences: Vec<i32>,
}

impl Grounded {
    pub(crate) fn unite(&mut self, sentences: &[i32]) {
        self.sentences.extend_from_slice(sentences);
        self.sentences.sort_unstable();
        self.sentences.dedup();
    }
}

/// What an answer comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    pub facts: Vec<Grounded>,
    /// What was not believed, one entry per reason that occurred.
    pub dropped: Vec<Dropped>,
}

/// Asks for the facts of each chunk.
///
/// Each line of the question begins with words of ours: the title, the context, or the number of a sentence in brackets.
/// Texts of others have no line breaks left and no numbers in brackets, so none of them can pass for another sentence.
pub fn fact_questions<'q>(
    promptset: &'q Promptset,
    title: Option<&'q str>,
    text: &'q Text,
    chunks: &'q [Chunk],
) -> impl Iterator<Item = Question> + 'q {
    let prompt = Prompt::new(promptset.text(Phase::FactExtraction), &FACTS);
    chunks.iter().map(move |chunk| prompt.ask(asked(title, text, chunk)))
}

fn asked(title: Option<&str>, text: &Text, chunk: &Chunk) -> String {
    let mut user = titled(title);
    let context: Vec<_> = said(text, chunk.context.clone()).map(|no| shown(text.sentence(no))).collect();
    if !context.is_empty() {
        user.extend(["Context: ", &context.join(" "), "\n"]);
    }
    let numbered = said(text, chunk.sentences.clone());
    user.extend(numbered.map(|no| format!("[{no}] {}\n", shown(text.sentence(no)))));
    user
}

/// Reads the answer to [`fact_questions`]. A fact is believed if it cites a sentence of the chunk, its numbers are in the
/// text shown, and so are at least half of its content words; and if it does not lean on what was said before.
pub fn read_facts(
    answer: &str,
    title: Option<&str>,
    text: &Text,
    chunk: &Chunk,
    coarse: Coarse,
) -> Result<Extracted, Misfit> {
    answer::read(answer, &FACTS, coarse, borne_out(title, text, chunk))
}

/// What of an answer is believed, also where [`read_facts`] refuses the answer as a whole: for measuring.
pub fn weigh_facts(answer: &str, title: Option<&str>, text: &Text, chunk: &Chunk) -> Result<Weighed, Misfit> {
    answer::weigh(answer, &FACTS, borne_out(title, text, chunk))
}

fn borne_out(
    title: Option<&str>,
    text: &Text,
    chunk: &Chunk,
) -> impl Fn(&str, &[Number]) -> Result<Vec<i32>, Reason> {
    let seen = chunk.context.clone().chain(chunk.sentences.clone());
    let ground = Ground::of(seen.map(|no| text.sentence(no)).chain(title));
    let heading = title.map(letters).filter(|title| !title.is_empty());
    move |fact, cited| {
        let mut sentences: Vec<i32> =
            cited.iter().filter_map(|number| sentence(number, text, chunk)).collect();
        sentences.sort_unstable();
        sentences.dedup();
        if sentences.is_empty() {
            return Err(Reason::NoSentence);
        }
        // Small models give the title back as a fact.
        if heading.as_ref().is_some_and(|title| *title == letters(fact)) {
            return Err(Reason::NotASentence);
        }
        leans(fact)?;
        ground.bears(fact).map(|()| sentences)
    }
}

/// Words with which nothing begins that stands alone. None is a word of another language that facts begin with, as `I` is.
const PRONOUNS: [&str; 11] =
    ["he", "she", "it", "they", "this", "these", "those", "his", "their", "its", "it's"];
const SPEAKERS: [&str; 5] = ["we", "our", "you", "your", "we're"];

/// Whether a fact asks, or begins with a word for what only the text names: small models copy such sentences.
fn leans(fact: &str) -> Result<(), Reason> {
    if fact.trim_end().ends_with('?') {
        return Err(Reason::Question);
    }
    let first = fact.split_whitespace().next().unwrap_or_default().replace('’', "'");
    let first = first.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'');
    // `IT` and `US` are no pronouns.
    let first = if first.len() > 1 && first.chars().all(char::is_uppercase) { "" } else { first };
    let first = first.to_lowercase();
    let first = first.as_str();
    if PRONOUNS.contains(&first) {
        return Err(Reason::Pronoun);
    }
    if SPEAKERS.contains(&first) {
        return Err(Reason::FirstOrSecondPerson);
    }
    Ok(())
}

/// Its letters and digits, by which a title is known with or without its full stop.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The line with the title, where there is one.
pub fn titled(title: Option<&str>) -> String {
    labelled("Title", title)
}

/// A line of a text of others with a word of ours before it.
pub fn labelled(label: &str, text: Option<&str>) -> String {
    let line: String = shown(text.unwrap_or_default()).chars().take(LONGEST_TITLE).collect();
    if line.is_empty() { line } else { format!("{label}: {line}\n") }
}

/// The sentences that are shown.
fn said(text: &Text, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
    range.filter(|no| text.says_something(*no))
}

/// The sentence that a number means, if it was shown with its number.
fn sentence(number: &Number, text: &Text, chunk: &Chunk) -> Option<i32> {
    // Some models write 12.0.
    let decimal = || number.as_f64().filter(|value| value.fract() == 0.0).map(|value| format!("{value:.0}"));
    let no = number.as_u64().map(|no| no.to_string()).or_else(decimal)?.parse().ok()?;
    (chunk.sentences.contains(&no) && text.says_something(no)).then(|| i32::try_from(no).ok())?
}

#[cfg(test)]
mod tests;
