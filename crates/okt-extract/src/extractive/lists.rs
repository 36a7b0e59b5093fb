//! The lists of words in `words/`: one file per language, one key per kind, `|` between phrases.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The words of a language, by kind. What is not listed is not looked for.
#[derive(Debug, Default)]
pub struct Lists(HashMap<&'static str, HashSet<String>>);

const FILES: [(&str, &str); 18] = [
    ("en", include_str!("../../words/en.txt")),
    ("de", include_str!("../../words/de.txt")),
    ("fr", include_str!("../../words/fr.txt")),
    ("es", include_str!("../../words/es.txt")),
    ("it", include_str!("../../words/it.txt")),
    ("pt", include_str!("../../words/pt.txt")),
    ("nl", include_str!("../../words/nl.txt")),
    ("ru", include_str!("../../words/ru.txt")),
    ("zh", include_str!("../../words/zh.txt")),
    ("ja", include_str!("../../words/ja.txt")),
    ("ar", include_str!("../../words/ar.txt")),
    ("fa", include_str!("../../words/fa.txt")),
    ("hi", include_str!("../../words/hi.txt")),
    ("he", include_str!("../../words/he.txt")),
    ("ko", include_str!("../../words/ko.txt")),
    ("pl", include_str!("../../words/pl.txt")),
    ("tr", include_str!("../../words/tr.txt")),
    ("sv", include_str!("../../words/sv.txt")),
];

static LANGUAGES: LazyLock<HashMap<&str, Lists>> =
    LazyLock::new(|| FILES.into_iter().map(|(language, text)| (language, Lists::read(text))).collect());

/// What is the same in every language.
pub static ALL: LazyLock<Lists> = LazyLock::new(|| Lists::read(include_str!("../../words/all.txt")));

static NONE: LazyLock<Lists> = LazyLock::new(Lists::default);

impl Lists {
    /// Those of `en-GB` are those of `en`.
    pub fn of(language: &str) -> &'static Self {
        Self::find(language).unwrap_or(&NONE)
    }

    pub fn find(language: &str) -> Option<&'static Self> {
        let code = language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        LANGUAGES.get(code.as_str())
    }

    /// The languages that there are lists of.
    pub fn languages() -> String {
        FILES.map(|(language, _)| language).join(", ")
    }

    pub fn has(&self, kind: &str, word: &str) -> bool {
        self.0.get(kind).is_some_and(|words| words.contains(word))
    }

    pub fn lists_anything(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn lists(&self, kind: &str) -> bool {
        self.0.contains_key(kind)
    }

    pub fn phrases(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.0.get(kind).into_iter().flatten().map(String::as_str)
    }

    fn read(text: &'static str) -> Self {
        let mut kinds: Vec<(&'static str, String)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match (line.strip_prefix("  "), line.split_once(": "), kinds.last_mut()) {
                (Some(more), _, Some((_, words))) => words.extend([" ", more]),
                (_, Some((kind, words)), _) => kinds.push((kind, words.to_owned())),
                _ => {}
            }
        }
        let cut = |words: &str| {
            let mark = if words.contains('|') { '|' } else { ' ' };
            words.split(mark).map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        };
        Self(kinds.into_iter().map(|(kind, words)| (kind, cut(&words))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind that somebody looks for.
    const KINDS: &str = "openers opening_phrases persons pointing pointing_phrases days subjects lead_ins links articles vague \
                         of stubs numbers quantifiers trailing imperatives past verbs starts holds boilerplate notices labels endings \
                         abbreviations function calendar anaphors kind_anaphors credits offers verb_endings noun_marks speech \
                         before_that times degrees which_one ranks known fields modals inside moves clauses continues roles persons_only relatives needs heads auxiliaries saying idioms given particles occupations titles no_family no_given episodes loose_openers seasonal";

    #[test]
    fn every_list_is_looked_for_and_every_word_can_be_met() {
        for (language, text) in FILES.into_iter().chain([("all", include_str!("../../words/all.txt"))]) {
            let lists = Lists::read(text);
            assert!(lists.0.len() >= 2, "{language}");
            for (kind, words) in &lists.0 {
                assert!(KINDS.split(' ').any(|known| known == *kind), "{language}: {kind}");
                for word in words {
                    let plain = word.chars().all(|c| c == ' ' || (c.is_alphanumeric() && !c.is_uppercase()));
                    assert!(plain && word.trim() == word, "{language}, {kind}: {word:?}");
                }
            }
        }
    }

    #[test]
    fn a_language_is_found_by_its_first_part() {
        assert!(Lists::of("en-GB").has("openers", "however"));
        assert!(Lists::of("DE_at").has("openers", "jedoch"));
        assert!(!Lists::of("tlh").lists("openers"));
        assert!(Lists::of("en").phrases("opening_phrases").any(|phrase| phrase == "in other words"));
    }
}
