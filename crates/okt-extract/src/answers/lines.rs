//! The sentences of an answer, each as soon as it is complete.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Deserializer;

use crate::answer::{Misfit, malformed};
use crate::line::one_line;
use crate::question::ANSWER;

/// No more sentences are read of one answer.
const MOST_LINES: usize = 100;
/// A longer one is none, in characters.
const LONGEST: usize = 1_000;
/// Keys of a sentence that are looked at.
const MOST_KEYS: usize = 24;
/// What is missing is said in a few words, in characters.
const LONGEST_MISSING: usize = 300;

/// A sentence as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// From 0.
    pub number: u32,
    pub text: String,
    /// As written, each once. Some may never have been given.
    pub keys: Vec<String>,
}

/// An answer that is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub lines: Vec<Line>,
    pub missing: Option<String>,
}

/// Reads an answer while it comes.
#[derive(Debug, Default)]
pub struct Lines {
    /// Up to there it has been read, in bytes.
    at: usize,
    read: u32,
}

impl Lines {
    /// The lines that are complete in what has come so far, and were not before. A text that is shorter than what was read is another
    /// answer, from its beginning.
    pub fn read(&mut self, so_far: &str) -> Vec<Line> {
        if so_far.len() < self.at || !so_far.is_char_boundary(self.at) {
            *self = Self::default();
        }
        let mut lines = Vec::new();
        let mut from = self.at;
        while let Some(open) = so_far[from..].find('{').map(|open| from + open) {
            let mut values = Deserializer::from_str(&so_far[open..]).into_iter::<Entry>();
            match values.next() {
                Some(Ok(entry)) => {
                    from = open + values.byte_offset();
                    self.at = from;
                    lines.extend(self.line(entry));
                }
                // The object around the list, one that is not complete, or no sentence.
                _ => from = open + 1,
            }
        }
        lines
    }

    fn line(&mut self, entry: Entry) -> Option<Line> {
        if self.read as usize >= MOST_LINES {
            return None;
        }
        let number = self.read;
        self.read += 1;
        let text = one_line(&entry.s);
        let known = text.contains(char::is_alphanumeric) && text.chars().count() <= LONGEST;
        known.then(|| Line { number, text, keys: keys(entry.f) })
    }
}

/// Reads an answer as a whole. One without a sentence says at least that there is none.
pub fn read_answer(answer: &str) -> Result<Written, Misfit> {
    let lines = Lines::default().read(answer);
    let ending = ending(answer);
    if lines.is_empty() && !ending.is_there {
        return Err(malformed("has no sentence and does not say that there is none", &ANSWER));
    }
    let missing = ending.missing.map(|text| one_line(&text)).filter(|text| !text.is_empty());
    let missing = missing.map(|text| text.chars().take(LONGEST_MISSING).collect());
    Ok(Written { lines, missing })
}

/// How an answer ends.
#[derive(Default)]
struct Ended {
    /// It says that there are sentences, or that there are none.
    is_there: bool,
    missing: Option<String>,
}

fn ending(answer: &str) -> Ended {
    let mut ended = Ended::default();
    for (open, _) in answer.match_indices('{').take(2 * MOST_LINES) {
        let mut values = Deserializer::from_str(&answer[open..]).into_iter::<Ending>();
        let Some(Ok(ending)) = values.next() else { continue };
        ended.is_there |= ending.missing.is_some() || ending.none == Some(true) || ending.sentences.is_some();
        if ending.missing.as_ref().is_some_and(|text| !text.trim().is_empty()) {
            ended.missing = ending.missing;
            break;
        }
    }
    ended
}

/// Letters only: whatever is written around a key is not part of it.
pub(super) fn keys(written: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let keys = written.into_iter().take(MOST_KEYS).map(|key| {
        let key = key.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        key.to_ascii_lowercase()
    });
    keys.filter(|key| !key.is_empty() && seen.insert(key.clone())).collect()
}

#[derive(Deserialize)]
struct Entry {
    s: String,
    #[serde(default)]
    f: Vec<String>,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    missing: Option<String>,
    #[serde(default)]
    none: Option<bool>,
    #[serde(default)]
    sentences: Option<serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, text: &str, keys: &[&str]) -> Line {
        Line { number, text: text.to_owned(), keys: keys.iter().map(|key| (*key).to_owned()).collect() }
    }

    #[test]
    fn a_sentence_is_read_when_it_is_complete_and_once() {
        let whole = r#"{"sentences":[{"s":"Gulls {nest} \"here\".","f":["kqzb"]}, {"s":"Terns left.","f":["wxyz","wxyz","[BCDF]"]}],"missing":"when"}"#;
        let expected =
            [line(0, "Gulls {nest} \"here\".", &["kqzb"]), line(1, "Terns left.", &["wxyz", "bcdf"])];
        for step in [1, 3, 7, 1_000] {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for end in (0..whole.len()).step_by(step).chain([whole.len()]) {
                found.extend(lines.read(&whole[..end]));
            }
            assert_eq!(found, expected, "{step}");
        }
        let read = read_answer(whole).unwrap();
        assert_eq!((read.lines.as_slice(), read.missing.as_deref()), (&expected[..], Some("when")));
    }

    #[test]
    fn an_answer_begins_anew_after_a_request_that_failed() {
        let mut lines = Lines::default();
        assert_eq!(lines.read(r#"{"sentences":[{"s":"Gulls nest.","f":["kqzb"]},{"s":"Te"#).len(), 1);
        assert!(lines.read("").is_empty());
        assert_eq!(
            lines.read(r#"{"sentences":[{"s":"Gulls nested.","f":["kqzb"]}"#),
            [line(0, "Gulls nested.", &["kqzb"])]
        );
    }

    #[test]
    fn lines_of_json_and_prose_around_them_are_read_too() {
        let answer = "Sure!\n{\"s\":\"Gulls nest.\",\"f\":[\"kqzb\"]}\n{\"s\":\"…\"}\n{\"none\":true,\"missing\":\"how many\"}\n";
        let read = read_answer(answer).unwrap();
        assert_eq!(read.lines, [line(0, "Gulls nest.", &["kqzb"])], "one without a word is none");
        assert_eq!(read.missing.as_deref(), Some("how many"));
        let none = read_answer(r#"{"sentences":[],"missing":""}"#).unwrap();
        assert_eq!(none, Written::default());
        for answer in ["", "I don't know.", "{}", r#"{"sentences":"#] {
            assert!(read_answer(answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn no_number_of_sentences_takes_forever() {
        let many = r#"{"s":"Gulls nest.","f":["kqzb"]}"#.repeat(1_000);
        assert_eq!(read_answer(&many).unwrap().lines.len(), MOST_LINES);
        assert!(read_answer(&"{".repeat(10_000)).is_err());
    }
}
