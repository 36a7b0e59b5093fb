//! Words as far as they can be compared without knowing the language.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// So many letters stand for a word in all its forms.
const STEM: usize = 5;
/// And so many where the word is hardly longer: `bird`, `birds`.
const SHORT_STEM: usize = 4;

/// The first letters of a word, side by side in one number: every answer of a model is read with the text that it is about,
/// and a copy of every word of that would be most of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stem(u128);

impl Stem {
    /// Characters have 21 bits, and none of a word is zero.
    const fn push(&mut self, c: char) {
        self.0 = (self.0 << 21) | c as u128;
    }
}

/// A word, or two neighbours of a script that puts no space between words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    long: Stem,
    short: Stem,
    first: char,
    length: usize,
    pair: bool,
}

impl Word {
    /// What it may be found by.
    pub fn stems(&self) -> impl Iterator<Item = Stem> {
        [Some(self.long), (self.short != self.long).then_some(self.short)].into_iter().flatten()
    }

    /// What it is counted by: the same for `nest` and `nests`.
    pub const fn stem(&self) -> Stem {
        if self.length <= STEM { self.short } else { self.long }
    }

    pub fn is_among(&self, stems: &HashSet<Stem>) -> bool {
        stems.contains(&self.long) || (self.length <= STEM && stems.contains(&self.short))
    }

    /// Short words mostly hold a sentence together; in alphabets that write no vowels less is short.
    pub fn has_content(&self) -> bool {
        let vowels = self.first < '\u{590}' || ('\u{1100}'..='\u{11ff}').contains(&self.first);
        self.pair || self.length >= if vowels { 4 } else { 2 }
    }

    fn pair(letters: &[char]) -> Self {
        let mut word = Self { pair: true, ..Self::default() };
        for c in letters {
            word.push(*c);
        }
        word
    }

    fn push(&mut self, c: char) {
        if self.length == 0 {
            self.first = c;
        }
        if self.length < SHORT_STEM {
            self.short.push(c);
        }
        if self.length < STEM {
            self.long.push(c);
        }
        self.length += 1;
    }
}

/// The words of a text, without their case and accents. Numbers are none.
pub fn each_word(text: &str, found: impl FnMut(Word)) {
    // Most texts have nothing to fold but their case.
    if text.is_ascii() {
        each(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())), found);
    } else {
        each(fold(text), found);
    }
}

fn each(chars: impl Iterator<Item = char>, mut found: impl FnMut(Word)) {
    let (mut kind, mut word, mut letters, mut last) = (Kind::Other, Word::default(), false, '\0');
    for c in chars.map(Some).chain([None]) {
        let next = c.map_or(Kind::Other, Kind::of);
        if next != kind {
            match kind {
                Kind::Word if letters => found(word),
                // The only one, without a neighbour.
                Kind::Unspaced if word.length == 1 => found(Word::pair(&[last])),
                _ => {}
            }
            (kind, word, letters) = (next, Word::default(), false);
        }
        let Some(c) = c.filter(|_| kind != Kind::Other) else { continue };
        if kind == Kind::Unspaced && word.length > 0 {
            found(Word::pair(&[last, c]));
        }
        word.push(c);
        letters |= c.is_alphabetic();
        last = c;
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
        if is_unspaced(c) {
            Self::Unspaced
        } else if c.is_alphanumeric() {
            Self::Word
        } else {
            Self::Other
        }
    }
}

fn fold(text: &str) -> impl Iterator<Item = char> {
    text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase)
}

/// Thai, Lao, Tibetan, Burmese, Khmer, kana and ideographs.
pub fn is_unspaced(c: char) -> bool {
    if c < '\u{e00}' {
        return false;
    }
    let script = matches!(c, '\u{e00}'..='\u{eff}' | '\u{f00}'..='\u{fff}' | '\u{1000}'..='\u{109f}')
        || matches!(c, '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}')
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{20000}'..='\u{3ffff}');
    script && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word));
        words
    }

    /// As it is written here, letter by letter.
    fn word(letters: &str, pair: bool) -> Word {
        let mut word = Word { pair, ..Word::default() };
        for c in letters.chars() {
            word.push(c);
        }
        word
    }

    #[test]
    fn ascii_is_read_like_everything_else() {
        let every: String = (0..=127_u8).map(char::from).collect();
        for text in ["", " ", "The 2nd Vole-trap (1,200.5 kg) costs X9!", &every] {
            let mut folded = Vec::new();
            each(fold(text), |word| folded.push(word));
            assert_eq!(words(text), folded, "{text:?}");
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
            ("水 42 水", &[("水", true), ("水", true)]),
        ] {
            let expected: Vec<Word> = expected.iter().map(|(letters, pair)| word(letters, *pair)).collect();
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_told_apart_by_their_first_letters() {
        let stems = |text: &str| words(text).iter().flat_map(Word::stems).collect::<HashSet<Stem>>();
        let among = |one: &str, text: &str| words(one)[0].is_among(&stems(text));
        assert!(among("Birds", "a bird") && among("bird", "birds") && among("surveys", "the surveyor"));
        assert_eq!(words("nest")[0].stem(), words("Nests")[0].stem());
        assert_ne!(words("survey")[0].stem(), words("surge")[0].stem());
        assert!(!among("bird", "a bid") && !among("survey", "surge") && !among("ab", "ba abc"));
        // Nothing is shifted out, however high a letter is.
        assert!(!among("\u{1e922}bcde", "bcde") && !among("\u{1e922}bcde", "\u{1e923}bcde"));
    }
}
