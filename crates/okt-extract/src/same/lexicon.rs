//! The words that the rule knows, from `same/en.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::decimal::Decimal;
use crate::guard::entries;

/// What is not here, nothing is permitted for.
#[derive(Default)]
pub struct Lexicon {
    words: HashMap<String, u64>,
    pub spelling: HashMap<String, String>,
    pub months: HashMap<String, u32>,
    pub numbers: HashMap<String, u32>,
    pub ordinals: HashMap<String, u32>,
    pub scales: HashMap<String, u32>,
    pub currencies: HashMap<String, String>,
    /// What it is measured in, and how many of those it is.
    pub units: HashMap<String, (String, Decimal)>,
    pub our: Vec<String>,
    pub doubled: Vec<String>,
}

/// Declares the lists by name, each with a bit of its own.
macro_rules! lists {
    ($($name:ident = $text:literal,)*) => {
        /// Which list a word is in.
        pub mod list {
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named like the constants")]
            enum Bit { $($name,)* }
            $(pub const $name: u64 = 1 << Bit::$name as u64;)*
            pub const ALL: &[(&str, u64)] = &[$(($text, $name),)*];
        }
    };
}

lists! {
    ENGLISH = "english",
    ACCENTED = "accented",
    ABBREVIATIONS = "abbreviations",
    ACRONYMS = "acronyms",
    ACRONYMS_WITH_THE = "acronyms_with_the",
    INSTITUTIONS = "institutions",
    CLOSED = "closed",
    PRONOUNS = "pronouns",
    OWNERS = "owners",
    AFTER_IS = "after_is",
    BE = "be",
    BECOME = "become",
    AUXILIARIES = "auxiliaries",
    PREPOSITIONS = "prepositions",
    SCOPE = "scope",
    ONGOING = "ongoing",
    REPORT = "report",
    CLAUSE = "clause",
    PAST = "past",
    PRESENT = "present",
    ING_NOUNS = "ing_nouns",
    OFFICES = "offices",
    KIN = "kin",
    THAT = "that",
    SINGLE = "single",
    BEFORE_OFFICE = "before_office",
    CALLINGS = "callings",
    WORKS = "works",
    KINDS = "kinds",
    OFFICES_CASE = "offices_case",
    PLACES = "places",
    COLLECTIVE = "collective",
    DONE = "done",
    PUNCTUAL = "punctual",
    TOGETHER = "together",
    LINKING = "linking",
    GOODS = "goods",
    EVENTS = "events",
    BEGUN = "begun",
    STRUCTURES = "structures",
    ORGANISATIONS = "organisations",
    CINEMA = "cinema",
    MEASURES = "measures",
    ORDERED = "ordered",
    BEFORE_OVER = "before_over",
    SPELLING_OF_NAMES = "spelling_of_names",
    WEEKDAYS = "weekdays",
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("../../same/en.txt")));

pub fn lexicon() -> &'static Lexicon {
    &LEXICON
}

impl Lexicon {
    pub fn has(&self, lists: u64, word: &str) -> bool {
        self.words.get(word).is_some_and(|of| of & lists != 0)
    }

    fn read(text: &'static str) -> Self {
        let mut lexicon = Self::default();
        for (name, words) in entries(text) {
            let pairs = || words.split_whitespace().filter_map(|pair| pair.split_once('='));
            let numbers =
                || pairs().filter_map(|(word, n)| Some((word.to_owned(), n.parse().ok()?))).collect();
            let texts = || pairs().map(|(word, other)| (word.to_owned(), other.to_owned())).collect();
            match name {
                "spelling" => lexicon.spelling = texts(),
                "months" => lexicon.months = numbers(),
                "numbers" => lexicon.numbers = numbers(),
                "ordinals" => lexicon.ordinals = numbers(),
                "scales" => lexicon.scales = numbers(),
                "currencies" => lexicon.currencies = texts(),
                "our" => lexicon.our = words.split_whitespace().map(str::to_owned).collect(),
                "doubled" => lexicon.doubled = words.split_whitespace().map(str::to_owned).collect(),
                "units" => {
                    let unit = |(word, unit): (&str, &str)| {
                        let (base, factor) = unit.split_once('*')?;
                        Some((word.to_owned(), (base.to_owned(), Decimal::read(factor)?)))
                    };
                    lexicon.units = pairs().filter_map(unit).collect();
                }
                _ => {
                    let list = list::ALL.iter().find(|(text, _)| *text == name).map_or(0, |(_, list)| *list);
                    for word in words.split_whitespace() {
                        *lexicon.words.entry(word.to_owned()).or_default() |= list;
                    }
                }
            }
        }
        lexicon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_words_is_read() {
        let others = "spelling months numbers ordinals scales currencies our doubled units";
        for (name, words) in entries(include_str!("../../same/en.txt")) {
            let known =
                others.split(' ').chain(list::ALL.iter().map(|(text, _)| *text)).any(|text| text == name);
            assert!(known && !words.is_empty(), "{name}: {words}");
        }
        let lexicon = lexicon();
        for (_, list) in list::ALL {
            assert!(lexicon.words.values().any(|of| of & list != 0), "{list:b}");
        }
        assert_eq!(lexicon.months["sept"], 9);
        assert_eq!(lexicon.units["km"].0, "metre");
        assert!(lexicon.units.len() > 90 && lexicon.spelling.len() > 60, "{}", lexicon.units.len());
        assert!(list::ALL.len() <= 64);
    }
}
