//! A sentence as its words, and what the whole text tells about a word.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use crate::chunks::Text;

/// A run of letters and digits.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a rule looks at")]
pub struct Word {
    /// In small letters.
    pub text: String,
    /// It begins with a capital.
    pub capital: bool,
    /// It has more than one letter, and all of them are capitals.
    pub shouted: bool,
    /// A comma, a dash or the like stands before it.
    pub paused: bool,
    /// An apostrophe or a hyphen ties it to the word before.
    pub tied: bool,
    /// It begins a quotation, or what follows a colon.
    pub begins: bool,
}

impl Word {
    pub fn has_digit(&self) -> bool {
        self.text.contains(char::is_numeric)
    }

    pub fn is_year(&self) -> bool {
        self.text.len() == 4 && self.text.parse::<u16>().is_ok_and(|year| (1000..2100).contains(&year))
    }
}

pub fn words(sentence: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut between = String::new();
    let mut inside = false;
    for c in sentence.nfc() {
        if !c.is_alphanumeric() {
            inside = false;
            between.push(c);
            continue;
        }
        if !inside {
            let tie = matches!(between.as_str(), "'" | "’" | "-" | "‑" | "–" | "." | "&");
            words.push(Word {
                capital: c.is_uppercase(),
                shouted: true,
                paused: !tie
                    && (between.contains([',', ';', ':', '(', '–', '—', '、', '，'].as_slice())
                        || between.contains(" - ")
                        || between.contains("--")),
                tied: tie && !words.is_empty(),
                begins: between.contains([':', '"', '“', '„', '«', '‘'].as_slice()),
                text: String::new(),
            });
            between.clear();
        }
        inside = true;
        if let Some(word) = words.last_mut() {
            word.shouted &= c.is_uppercase() || c.is_numeric();
            word.text.extend(c.to_lowercase());
        }
    }
    for word in &mut words {
        word.shouted &= word.text.chars().nth(1).is_some() && word.text.contains(char::is_alphabetic);
    }
    words
}

/// How the words of a text are written where nothing asks for a capital.
#[derive(Debug, Default)]
pub struct Seen {
    words: HashMap<String, (u32, u32)>,
    /// Two of five of its sentences name somebody or something.
    names: bool,
}

/// Of fewer sentences nothing is said.
const FEWEST: usize = 10;

impl Seen {
    pub fn of(text: &Text) -> Self {
        let mut seen = Self::default();
        let (mut sentences, mut naming) = (0, 0);
        for no in 0..text.len() {
            let words = words(text.sentence(no));
            let inner = || words.iter().skip(1).filter(|word| !word.begins);
            if words.len() > 4 {
                sentences += 1;
                naming +=
                    usize::from(inner().any(|word| word.capital && !word.shouted && word.text.len() > 1));
            }
            for word in inner() {
                let (small, capital) = seen.words.entry(word.text.clone()).or_default();
                *(if word.capital { capital } else { small }) += 1;
            }
        }
        seen.names = sentences >= FEWEST && naming * 5 > sentences * 2;
        seen
    }

    /// Whether the text is about somebody or something with a name, as news are: what names nobody there is mostly said
    /// of whom it is about.
    pub const fn is_about_names(&self) -> bool {
        self.names
    }

    /// Mostly with a capital.
    pub fn is_name(&self, word: &str) -> bool {
        self.words.get(word).is_some_and(|(small, capital)| capital > small)
    }

    /// In small letters at least once.
    pub fn is_ever_small(&self, word: &str) -> bool {
        self.words.get(word).is_some_and(|(small, _)| *small > 0)
    }

    /// Mostly in small letters.
    pub fn is_common(&self, word: &str) -> bool {
        self.words.get(word).is_some_and(|(small, capital)| small > capital)
    }
}
