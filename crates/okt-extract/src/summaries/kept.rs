//! What of a model's sentences is kept, and how it is written.

use std::collections::HashSet;

use okt_model::ImageId;
use serde::Deserialize;
use serde_json::Number;

use super::citations::cite;
use super::claims::sentences;
use super::markdown::{escaped, has_address};
use super::support::{is_supported, told};
use super::{Attempt, Known, Written};
use crate::answer::{Firsts, Listed, Misfit, object};
use crate::line::one_line;
use crate::question::Form;

/// No more sentences are taken from one answer.
const MOST_SENTENCES: usize = 200;
/// A longer sentence is none, in characters.
const LONGEST_SENTENCE: usize = 500;
/// Who cites more facts for one sentence, or facts for several sentences at once, may not have told which of them say so.
const BELIEVED: usize = 3;
/// Who cites more has certainly not.
const MOST_CITED: usize = 8;
/// A paragraph has no more sentences.
const PARAGRAPH: usize = 5;

/// What was given to the model, as far as its answer is read with it.
pub struct Given<'g> {
    pub facts: &'g [Known<'g>],
    /// Names that need no citation: the concept, its contexts, what it is related to.
    pub about: &'g [&'g str],
    pub images: &'g [(ImageId, &'g str)],
}

/// Reads an answer of sentences. Headings are not asked for and not taken: they say something without a citation. See [`Attempt`]
/// for what is refused and what is left out.
pub fn read(answer: &str, form: &Form, given: &Given, attempt: Attempt) -> Result<Written, Misfit> {
    let Answer { sentences: Firsts { list, beyond }, truncated } = object(answer, form)?;
    let mut text =
        Text { given, written: Written { truncated, ..Written::default() }, run: 0, said: HashSet::new() };
    // Nobody can be asked again for a part of an answer.
    let first = attempt == Attempt::First && !truncated;
    let (mut stated, mut kept) = (0, 0);
    for sentence in &list {
        let (of, taken) = text.take(sentence);
        stated += of;
        kept += taken;
    }
    let mut written = text.written;
    written.dropped_sentences += number(stated - kept + beyond);
    written.cited.sort_unstable();
    written.cited.dedup();
    let facts = given.facts.len();
    if stated == 0 {
        return Err(Misfit::Ground(format!(
            "There is no sentence. Say what the facts (1 to {facts}) say, each sentence with their numbers in \"facts\"."
        )));
    }
    if kept == 0 {
        return Err(Misfit::Ground(format!(
            "None of the {stated} sentences can be used. Each has to give in \"facts\" the numbers (1 to {facts}) of the facts \
             that say so, and only names and numbers that these facts have."
        )));
    }
    if first && written.dropped_citations > 0 {
        return Err(Misfit::Ground(format!(
            "{} of the numbers in \"facts\" are not the number of a fact. The facts have the numbers 1 to {facts}: cite only \
             these, each where it says what the sentence says.",
            written.dropped_citations
        )));
    }
    if first && kept * 2 < stated {
        return Err(Misfit::Ground(format!(
            "{} of the {stated} sentences can't be used: they cite no fact, or have names or numbers that the cited facts do \
             not have. Say only what the facts say, and cite those that say it.",
            stated - kept
        )));
    }
    Ok(written)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

struct Text<'t> {
    given: &'t Given<'t>,
    written: Written,
    /// Sentences of the paragraph so far.
    run: usize,
    /// Nothing is said twice.
    said: HashSet<String>,
}

impl Text<'_> {
    /// How many sentences there are, and how many are kept.
    fn take(&mut self, sentence: &Sentence) -> (usize, usize) {
        let cited = self.cited(&sentence.facts);
        let statements = sentences(&without_marks(&one_line(&sentence.text)));
        let mut kept = 0;
        for statement in &statements {
            let believed = statements.len() == 1 && cited.len() <= BELIEVED;
            let narrow: Vec<usize> = told(statement, &cited, self.given.facts).collect();
            let cited = if believed || (statements.len() == 1 && !self.bears(statement, &narrow)) {
                cited.clone()
            } else {
                narrow
            };
            if cited.len() <= MOST_CITED
                && self.bears(statement, &cited)
                && self.said.insert(statement.clone())
            {
                let ids: Vec<_> = cited.iter().map(|at| self.given.facts[*at].id).collect();
                self.write(&cite(statement, &ids));
                self.written.cited.extend(cited);
                kept += 1;
            }
        }
        if kept > 0 {
            self.show(sentence.image.as_ref());
        }
        (statements.len().max(1), kept)
    }

    /// Whether a statement is one, and the facts bear it out.
    fn bears(&self, statement: &str, cited: &[usize]) -> bool {
        !cited.is_empty()
            && statement.chars().count() <= LONGEST_SENTENCE
            && !has_address(statement)
            && is_supported(statement, cited, self.given.facts, self.given.about)
    }

    /// The places of the facts that are cited.
    fn cited(&mut self, numbers: &[Number]) -> Vec<usize> {
        let mut cited = Vec::new();
        for number in numbers {
            match place(number, self.given.facts.len()) {
                Some(at) => cited.push(at),
                None => self.written.dropped_citations = self.written.dropped_citations.saturating_add(1),
            }
        }
        cited.sort_unstable();
        cited.dedup();
        cited
    }

    fn write(&mut self, sentence: &str) {
        let content = &mut self.written.content;
        if self.run == PARAGRAPH {
            self.run = 0;
        }
        if !content.is_empty() {
            content.push_str(if self.run == 0 { "\n\n" } else { " " });
        }
        content.push_str(sentence);
        self.run += 1;
    }

    /// An image stands behind the paragraph so far, with the words that it was offered with.
    fn show(&mut self, image: Option<&Number>) {
        let Some(at) = image.and_then(|image| place(image, self.given.images.len())) else { return };
        if self.written.images.contains(&at) {
            return;
        }
        let (id, description) = self.given.images[at];
        let line = format!("\n\n![{}](<image:{id}>)", escaped(&one_line(description)));
        self.written.content.push_str(&line);
        self.written.images.push(at);
        self.run = 0;
    }
}

/// Without numbers in brackets, as models write them behind what they say: their numbers are in a list of their own.
fn without_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        let mark = from[1..].find(']').map(|end| (&from[1..=end], &from[end + 2..]));
        if let Some((_, after)) = mark.filter(|(inside, _)| is_mark(inside)) {
            out.push_str(before.trim_end());
            rest = after;
        } else {
            out.push_str(before);
            out.push('[');
            rest = &from[1..];
        }
    }
    (out + rest).trim().to_owned()
}

fn is_mark(inside: &str) -> bool {
    inside.contains(char::is_numeric)
        && inside.chars().all(|c| c.is_numeric() || c.is_whitespace() || matches!(c, ',' | ';' | '-' | '–'))
}

/// A place from a number that counts from one. Some models write 1.0.
pub fn place(number: &Number, given: usize) -> Option<usize> {
    let decimal = || number.as_f64().filter(|value| value.fract() == 0.0).map(|value| format!("{value:.0}"));
    let number: usize = number.as_u64().map(|number| number.to_string()).or_else(decimal)?.parse().ok()?;
    number.checked_sub(1).filter(|at| *at < given)
}

#[derive(Deserialize)]
struct Answer {
    sentences: Firsts<Sentence>,
    /// See [`crate::Closed`].
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    #[serde(default)]
    facts: Vec<Number>,
    #[serde(default)]
    image: Option<Number>,
}

impl Listed for Sentence {
    const WHAT: &str = "a list of sentences";
    const MOST: usize = MOST_SENTENCES;
}
