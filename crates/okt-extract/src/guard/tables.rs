//! The tables in `guard/`: one file per language, and three that hold for all.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{fold, stem};

/// What is known of a language. What is not listed is not looked for.
#[derive(Default)]
pub struct Language {
    /// The lists that each word is in.
    words: HashMap<String, u32>,
    pub numbers: HashMap<String, f64>,
    pub scales: HashMap<String, f64>,
    pub ordinals: HashMap<String, f64>,
    /// The third and the quarter: what one is divided by.
    pub parts: HashMap<String, f64>,
    pub times: HashMap<String, f64>,
    pub months: HashMap<String, f64>,
    /// The seventies.
    pub decades: HashMap<String, f64>,
    /// `al`, which is `a`: the preposition in a word that holds an article too.
    pub contractions: HashMap<String, String>,
    /// All, most, some: the word, and which of these it is.
    pub quantifiers: HashMap<String, &'static str>,
    /// By their first word, the longest first: the words, and what they are read as.
    pub phrases: HashMap<String, Vec<Phrase>>,
    /// Forms that no rule gives, with the word they are forms of.
    pub irregular: HashMap<String, String>,
    /// Two negations of one clause are one.
    pub concord: bool,
    pub english: bool,
}

/// Words, and what they are read as.
pub type Phrase = (Vec<String>, Vec<String>);

impl Language {
    pub fn has(&self, list: u32, word: &str) -> bool {
        self.words.get(word).is_some_and(|lists| lists & list != 0)
    }
}

/// The lists of words of a language.
pub mod list {
    pub const MARKS: u32 = 1 << 0;
    pub const NEGATIONS: u32 = 1 << 1;
    pub const SMALL: u32 = 1 << 2;
    pub const PREPOSITIONS: u32 = 1 << 3;
    pub const CIRCUMSTANCE: u32 = 1 << 4;
    pub const BE: u32 = 1 << 5;
    pub const LINKS: u32 = 1 << 6;
    pub const MUTUAL: u32 = 1 << 7;
    pub const ABOUT: u32 = 1 << 8;
    pub const OVER: u32 = 1 << 9;
    pub const UNDER: u32 = 1 << 10;
    pub const YEAR_AFTER: u32 = 1 << 11;
    pub const CENTURY: u32 = 1 << 12;
    pub const BC: u32 = 1 << 13;
    pub const AD: u32 = 1 << 14;
    pub const MAYBE: u32 = 1 << 15;
    pub const HEDGED: u32 = 1 << 16;
    pub const MUST: u32 = 1 << 17;
    pub const SHOULD: u32 = 1 << 18;
    pub const HALVES: u32 = 1 << 19;
    /// Deny only where one of the next list stands before.
    pub const HALF_NOT: u32 = 1 << 20;
    pub const BEFORE_NOT: u32 = 1 << 21;
    /// More, less, better.
    pub const DEGREES: u32 = 1 << 22;

    pub const ALL: [(&str, u32); 23] = [
        ("marks", MARKS),
        ("negations", NEGATIONS),
        ("small", SMALL),
        ("prepositions", PREPOSITIONS),
        ("circumstance", CIRCUMSTANCE),
        ("be", BE),
        ("links", LINKS),
        ("mutual", MUTUAL),
        ("about", ABOUT),
        ("over", OVER),
        ("under", UNDER),
        ("year_after", YEAR_AFTER),
        ("century", CENTURY),
        ("bc", BC),
        ("ad", AD),
        ("maybe", MAYBE),
        ("hedged", HEDGED),
        ("must", MUST),
        ("should", SHOULD),
        ("halves", HALVES),
        ("half_not", HALF_NOT),
        ("before_not", BEFORE_NOT),
        ("degrees", DEGREES),
    ];
}

/// One of the two ends of an opposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub axis: usize,
    pub high: bool,
}

/// What kind of opposition it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Axis {
    /// There is nothing between the ends.
    pub complete: bool,
    /// The same deed, seen from either end.
    pub converse: bool,
}

/// What one is measured in.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    pub base: String,
    pub factor: f64,
}

/// What holds in all languages.
#[derive(Default)]
pub struct Common {
    pub axes: Vec<Axis>,
    pub ends: HashMap<String, Vec<End>>,
    pub kinds: HashMap<String, Vec<usize>>,
    pub synonyms: HashMap<String, Vec<usize>>,
    pub units: HashMap<&'static str, Unit>,
}

static ENGLISH: LazyLock<Language> =
    LazyLock::new(|| Language { english: true, ..Language::read(include_str!("../../guard/en.txt")) });

static OTHERS: LazyLock<[Language; 6]> = LazyLock::new(|| {
    [
        include_str!("../../guard/de.txt"),
        include_str!("../../guard/fr.txt"),
        include_str!("../../guard/es.txt"),
        include_str!("../../guard/it.txt"),
        include_str!("../../guard/pt.txt"),
        include_str!("../../guard/nl.txt"),
    ]
    .map(Language::read)
});

static COMMON: LazyLock<Common> = LazyLock::new(Common::read);

/// What holds in all languages.
pub fn common() -> &'static Common {
    &COMMON
}

/// How much each word speaks for each of the languages, English first.
static EVIDENCE: LazyLock<HashMap<&'static str, [u32; 7]>> = LazyLock::new(|| {
    let mut evidence: HashMap<&'static str, [u32; 7]> = HashMap::new();
    for (at, language) in std::iter::once(&*ENGLISH).chain(OTHERS.iter()).enumerate() {
        for (word, lists) in &language.words {
            let marks = 10 * u32::from(lists & list::MARKS != 0);
            let small = u32::from(*lists != 0);
            evidence.entry(word).or_default()[at] += marks + small;
        }
        for word in language.numbers.keys().chain(language.months.keys()).chain(language.scales.keys()) {
            evidence.entry(word).or_default()[at] += 1;
        }
    }
    evidence
});

/// The language that two texts share most words with; English where there is nothing to go by.
pub fn language(a: &str, b: &str) -> &'static Language {
    let mut found = [0; 7];
    for text in [a, b] {
        let words =
            text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty() && word.len() <= 12);
        for word in words.take(200) {
            if let Some(evidence) = EVIDENCE.get(fold(word).as_str()) {
                found.iter_mut().zip(evidence).for_each(|(sum, more)| *sum += more);
            }
        }
    }
    let best = (1..found.len()).rev().fold(0, |best, at| {
        if found[at] > found[0] && (best == 0 || found[at] >= found[best]) { at } else { best }
    });
    best.checked_sub(1).map_or(&ENGLISH, |other| &OTHERS[other])
}

const QUANTIFIERS: [&str; 9] = ["all", "most", "some", "several", "many", "few", "only", "must", "should"];

impl Language {
    fn read(text: &'static str) -> Self {
        let mut language = Self::default();
        for (kind, words) in entries(text) {
            let pairs = || words.split_whitespace().filter_map(|pair| pair.split_once('='));
            let numbers =
                || pairs().filter_map(|(word, value)| Some((fold(word), value.parse().ok()?))).collect();
            match kind {
                "numbers" => language.numbers = numbers(),
                "scales" => language.scales = numbers(),
                "ordinals" => language.ordinals = numbers(),
                "parts" => language.parts = numbers(),
                "times" => language.times = numbers(),
                "months" => language.months = numbers(),
                "decades" => language.decades = numbers(),
                "contractions" => {
                    language.contractions = pairs().map(|(word, plain)| (fold(word), fold(plain))).collect();
                }
                "concord" => language.concord = true,
                "irregular" => {
                    for (word, forms) in pairs() {
                        let forms = forms.split(',').map(|form| (form.to_owned(), word.to_owned()));
                        language.irregular.extend(forms);
                    }
                }
                "phrases" => language.read_phrases(&words),
                _ => {
                    let list = list::ALL.iter().find(|(name, _)| *name == kind).map_or(0, |(_, list)| *list);
                    for word in words.split_whitespace().map(fold) {
                        *language.words.entry(word.clone()).or_default() |= list;
                        if QUANTIFIERS.contains(&kind) {
                            language.quantifiers.insert(word, kind);
                        }
                    }
                }
            }
        }
        language
    }

    fn read_phrases(&mut self, text: &str) {
        let cut = |words: &str| -> Vec<String> { words.split_whitespace().map(fold).collect() };
        for line in text.split('|') {
            // The right side may be a comparison: only the first mark parts the two.
            let Some((left, right)) = line.split_once('=') else { continue };
            let left = cut(left);
            let right = if right == "_" { Vec::new() } else { cut(right) };
            if let Some(first) = left.first() {
                self.phrases.entry(first.clone()).or_default().push((left, right));
            }
        }
        for phrases in self.phrases.values_mut() {
            phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        }
    }
}

impl Common {
    fn read() -> Self {
        let mut common = Self::default();
        for (name, words) in entries(include_str!("../../guard/opposites.txt")) {
            let axis = common.axes.len();
            common.axes.push(Axis { complete: name.ends_with('!'), converse: name.ends_with('~') });
            let (high, low) = words.split_once('/').unwrap_or((&words, ""));
            for (side, high) in [(high, true), (low, false)] {
                for word in side.split_whitespace() {
                    let ends = common.ends.entry(stem(&fold(word), &ENGLISH)).or_default();
                    if !ends.contains(&End { axis, high }) {
                        ends.push(End { axis, high });
                    }
                }
            }
        }
        common.kinds = groups(include_str!("../../guard/kinds.txt"));
        common.synonyms = groups(include_str!("../../guard/synonyms.txt"));
        for line in lines(include_str!("../../guard/units.txt")) {
            let Some((head, names)) = line.split_once(": ") else { continue };
            let Some((base, factor)) = head.split_once(' ') else { continue };
            let Ok(factor) = factor.parse() else { continue };
            let unit = Unit { base: base.to_owned(), factor };
            common.units.extend(names.split_whitespace().map(|name| (name, unit.clone())));
        }
        common
    }
}

/// The lines that each word is in.
fn groups(text: &'static str) -> HashMap<String, Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (group, words) in joined(text).iter().enumerate() {
        for word in words.split_whitespace() {
            groups.entry(stem(&fold(word), &ENGLISH)).or_default().push(group);
        }
    }
    groups
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// Lines that begin with a space go on with the one before.
fn joined(text: &'static str) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    for line in lines(text) {
        match whole.last_mut() {
            Some(last) if line.starts_with("  |") => last.push_str(line.trim_start()),
            Some(last) if line.starts_with(' ') => last.extend([" ", line.trim_start()]),
            _ => whole.push(line.to_owned()),
        }
    }
    whole
}

/// `kind: words`.
pub fn entries(text: &'static str) -> Vec<(&'static str, String)> {
    let kinds = lines(text).filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_once(": "));
    let bodies = joined(text);
    kinds
        .zip(bodies)
        .map(|((kind, _), body)| {
            (kind, body.split_once(": ").map_or(String::new(), |(_, words)| words.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        let read = "numbers scales ordinals parts times months decades contractions concord irregular phrases all most some several many few only";
        let known =
            |kind: &str| read.split(' ').chain(list::ALL.map(|(name, _)| name)).any(|name| name == kind);
        for text in [
            include_str!("../../guard/en.txt"),
            include_str!("../../guard/de.txt"),
            include_str!("../../guard/fr.txt"),
            include_str!("../../guard/es.txt"),
            include_str!("../../guard/it.txt"),
            include_str!("../../guard/pt.txt"),
            include_str!("../../guard/nl.txt"),
        ] {
            for (kind, words) in entries(text) {
                assert!(known(kind) && !words.is_empty(), "{kind}: {words}");
            }
            let language = Language::read(text);
            assert!(
                language.numbers.len() > 10 && language.months.len() > 11 && !language.phrases.is_empty()
            );
            for (word, months) in &language.months {
                assert!((1.0..=12.0).contains(months), "{word}");
            }
        }
        let common = common();
        assert!(
            common.axes.len() > 100
                && common.units["km"] == Unit { base: "metre".to_owned(), factor: 1000.0 }
        );
        for line in entries(include_str!("../../guard/opposites.txt")) {
            assert_eq!(line.1.matches('/').count(), 1, "{line:?}");
        }
    }

    #[test]
    fn no_word_is_its_own_opposite() {
        for (word, ends) in &common().ends {
            for end in ends {
                let other = End { high: !end.high, ..*end };
                assert!(!ends.contains(&other), "{word}");
            }
        }
    }
}
