//! Words as far as they can be compared without knowing the language.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// So many letters stand for a word in all its forms.
const STEM: usize = 5;
/// And so many where the word is hardly longer: `bird`, `birds`.
const SHORT_STEM: usize = 4;

/// A word without its case and accents, or two neighbours of a script that puts no space between words.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    letters: String,
    pair: bool,
}

impl Word {
    /// What it may be found by.
    pub fn stems(&self) -> impl Iterator<Item = String> {
        [STEM, SHORT_STEM].into_iter().map(|length| self.stem(length))
    }

    pub fn is_among(&self, stems: &HashSet<String>) -> bool {
        let short = self.letters.chars().nth(STEM).is_none();
        stems.contains(&self.stem(STEM)) || (short && stems.contains(&self.stem(SHORT_STEM)))
    }

    /// Short words mostly hold a sentence together; in alphabets that write no vowels less is short.
    pub fn has_content(&self) -> bool {
        let alphabet = |c: char| c < '\u{590}' || ('\u{1100}'..='\u{11ff}').contains(&c);
        let least = if self.letters.starts_with(alphabet) { 4 } else { 2 };
        self.pair || self.letters.chars().nth(least - 1).is_some()
    }

    fn stem(&self, length: usize) -> String {
        self.letters.chars().take(length).collect()
    }
}

/// The words of a text; numbers are none.
pub fn words(text: &str) -> Vec<Word> {
    let folded = text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase);
    let mut words = Vec::new();
    let (mut word, mut run) = (String::new(), Vec::new());
    for c in folded.chain([' ']) {
        if !is_unspaced(c) {
            pairs(&mut run, &mut words);
        }
        if is_unspaced(c) || !c.is_alphanumeric() {
            let letters = std::mem::take(&mut word);
            if letters.contains(char::is_alphabetic) {
                words.push(Word { letters, pair: false });
            }
        }
        if is_unspaced(c) {
            run.push(c);
        } else if c.is_alphanumeric() {
            word.push(c);
        }
    }
    words
}

fn pairs(run: &mut Vec<char>, words: &mut Vec<Word>) {
    if run.len() == 1 {
        words.push(Word { letters: run[0].into(), pair: true });
    }
    words.extend(run.windows(2).map(|pair| Word { letters: pair.iter().collect(), pair: true }));
    run.clear();
}

/// Thai, Lao, Tibetan, Burmese, Khmer, kana and ideographs.
pub fn is_unspaced(c: char) -> bool {
    let script = matches!(c, '\u{e00}'..='\u{eff}' | '\u{f00}'..='\u{fff}' | '\u{1000}'..='\u{109f}')
        || matches!(c, '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}')
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{20000}'..='\u{3ffff}');
    script && c.is_alphabetic()
}
