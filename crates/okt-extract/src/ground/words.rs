//! Words as far as they can be compared without knowing the language.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// So many letters stand for a word in all its forms.
const STEM: usize = 5;
/// And so many where the word is hardly longer: `bird`, `birds`.
const SHORT_STEM: usize = 4;

/// A text without its case and accents.
pub struct Folded(String);

/// A word of one, or two neighbours of a script that puts no space between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    letters: &'t str,
    pair: bool,
}

impl Folded {
    pub fn new(text: &str) -> Self {
        // Most texts have nothing to fold but their case, and every answer of a model comes this way.
        if text.is_ascii() { Self(text.to_ascii_lowercase()) } else { Self(fold(text)) }
    }

    /// Numbers are none.
    pub fn words(&self) -> impl Iterator<Item = Word<'_>> {
        let mut rest = self.0.as_str();
        let runs = std::iter::from_fn(move || {
            let kind = Kind::of(rest.chars().next()?);
            let end = rest.find(|c| Kind::of(c) != kind).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            Some((kind, run))
        });
        runs.flat_map(|(kind, run)| {
            let whole = kind == Kind::Word && run.contains(char::is_alphabetic);
            let word = whole.then_some(Word { letters: run, pair: false });
            word.into_iter().chain(pairs(if kind == Kind::Unspaced { run } else { "" }))
        })
    }
}

impl Word<'_> {
    /// What it may be found by.
    pub fn stems(&self) -> impl Iterator<Item = &str> {
        let (long, short) = (self.stem(STEM), self.stem(SHORT_STEM));
        [Some(long), (short != long).then_some(short)].into_iter().flatten()
    }

    pub fn is_among(&self, stems: &HashSet<String>) -> bool {
        let short = self.letters.chars().nth(STEM).is_none();
        stems.contains(self.stem(STEM)) || (short && stems.contains(self.stem(SHORT_STEM)))
    }

    /// Short words mostly hold a sentence together; in alphabets that write no vowels less is short.
    pub fn has_content(&self) -> bool {
        let alphabet = |c: char| c < '\u{590}' || ('\u{1100}'..='\u{11ff}').contains(&c);
        let least = if self.letters.starts_with(alphabet) { 4 } else { 2 };
        self.pair || self.letters.chars().nth(least - 1).is_some()
    }

    fn stem(&self, length: usize) -> &str {
        let end = self.letters.char_indices().nth(length).map_or(self.letters.len(), |(at, _)| at);
        &self.letters[..end]
    }
}

/// What runs of characters are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Unspaced,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        if !c.is_ascii() && is_unspaced(c) {
            Self::Unspaced
        } else if c.is_alphanumeric() {
            Self::Word
        } else {
            Self::Other
        }
    }
}

fn fold(text: &str) -> String {
    text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
}

/// Every two neighbours, or the only one.
fn pairs(run: &str) -> impl Iterator<Item = Word<'_>> {
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8());
    let alone = run.chars().nth(1).is_none();
    run.char_indices()
        .zip(ends.skip(usize::from(!alone)))
        .map(|((from, _), to)| Word { letters: &run[from..to], pair: true })
}

/// Thai, Lao, Tibetan, Burmese, Khmer, kana and ideographs.
pub fn is_unspaced(c: char) -> bool {
    let script = matches!(c, '\u{e00}'..='\u{eff}' | '\u{f00}'..='\u{fff}' | '\u{1000}'..='\u{109f}')
        || matches!(c, '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}')
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{20000}'..='\u{3ffff}');
    script && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(String, bool)> {
        let folded = Folded::new(text);
        folded.words().map(|word| (word.letters.to_owned(), word.pair)).collect()
    }

    #[test]
    fn ascii_is_folded_like_everything_else() {
        let every: String = (0..=127_u8).map(char::from).collect();
        for text in ["", " ", "The 2nd Vole-trap (1,200.5 kg) costs X9!", &every] {
            assert_eq!(Folded::new(text).0, fold(text), "{text:?}");
        }
    }

    #[test]
    fn a_text_has_words_and_neighbours() {
        for (text, expected) in [
            ("", &[][..]),
            ("42 The 2nd Vole-trap", &[("the", false), ("2nd", false), ("vole", false), ("trap", false)]),
            ("Élan", &[("elan", false)]),
            ("地球は青い", &[("地球", true), ("球は", true), ("は青", true), ("青い", true)]),
            ("x水y", &[("x", false), ("水", true), ("y", false)]),
        ] {
            let found = words(text);
            let found: Vec<(&str, bool)> = found.iter().map(|(word, pair)| (word.as_str(), *pair)).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
