//! Where the quoted sentences of a package stand.

use std::collections::{BTreeSet, HashMap};

use okt_extract::Text;
use okt_model::SourceText;

/// The quoted sentences of a source as a text of their own: one on each line, each once. Where the source was read here, its text
/// stays, and there is no other: what is not one of its sentences has no place.
#[derive(Default)]
pub(super) struct Quotes {
    pub text: String,
    /// In code points.
    length: i32,
    pub places: Vec<(i32, i32)>,
    known: HashMap<String, i32>,
    is_read: bool,
}

impl Quotes {
    pub(super) fn of(text: &SourceText) -> Self {
        let sentences = Text::new(&text.text, &text.sentences);
        let known = (0_i32..).zip(0..sentences.len());
        let known = known.map(|(place, at)| (in_one_line(sentences.sentence(at)), place)).collect();
        Self { known, is_read: true, ..Self::default() }
    }

    /// The places of these lines.
    pub(super) fn add(&mut self, lines: &str) -> Vec<i32> {
        let sentences: BTreeSet<i32> = lines
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .filter_map(|line| self.place(line))
            .collect();
        sentences.into_iter().collect()
    }

    fn place(&mut self, sentence: &str) -> Option<i32> {
        if self.is_read {
            return self.known.get(&in_one_line(sentence)).copied();
        }
        if let Some(place) = self.known.get(sentence) {
            return Some(*place);
        }
        let place = i32::try_from(self.places.len()).unwrap_or(i32::MAX);
        if place > 0 {
            self.text.push('\n');
            self.length += 1;
        }
        let start = self.length;
        self.text.push_str(sentence);
        self.length += i32::try_from(sentence.chars().count()).unwrap_or(i32::MAX);
        self.places.push((start, self.length));
        self.known.insert(sentence.to_owned(), place);
        Some(place)
    }
}

/// As packages quote it.
fn in_one_line(sentence: &str) -> String {
    sentence.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_sentences_become_a_text_with_each_of_them_once() {
        let mut quotes = Quotes::default();
        assert_eq!(quotes.add("Möwen nisten.\n Terns too. \n"), [0, 1]);
        assert_eq!(quotes.add("Terns too.\n\nBoth fly."), [1, 2]);
        assert_eq!(quotes.add(""), [] as [i32; 0]);
        assert_eq!(quotes.text, "Möwen nisten.\nTerns too.\nBoth fly.");
        assert_eq!(quotes.places, [(0, 13), (14, 24), (25, 34)]);
    }

    #[test]
    fn where_the_text_is_here_quotes_are_found_in_it() {
        let text = SourceText {
            text: "Möwen\nnisten. Terns too.".to_owned(),
            sentences: vec![(0, 13), (14, 24)],
            ..SourceText::default()
        };
        let mut quotes = Quotes::of(&text);
        assert_eq!(quotes.add("Terns too.\nMöwen nisten.\nBoth fly."), [0, 1]);
        assert_eq!((&*quotes.text, quotes.places.len()), ("", 0), "the text stays as it is");
    }
}
