//! What somebody typed into a search box, read without ever refusing it.
//!
//! `dark matter "rotation curve" -lensing year:2019 concept:"Vera Rubin"`: words, a phrase, a word that must
//! not occur, and filters. What can't be read as one of these is words.

use crate::language::Language;
use crate::words::{Token, tokens};

/// Further words are not looked for.
const MOST_TERMS: usize = 32;
const MOST_FILTERS: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub terms: Vec<Term>,
    /// Each has to occur.
    pub phrases: Vec<Phrase>,
    /// None may occur; a word is a phrase of one.
    pub without: Vec<Phrase>,
    pub filters: Vec<Filter>,
    /// What is left to embed: words and phrases without operators.
    pub text: String,
}

/// Terms and how far each stands behind the first: a stop word between two leaves a gap.
pub type Phrase = Vec<(u32, Term)>;

/// A word that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Lexemes: as written, and one for each language that stems the word differently.
    pub alternatives: Vec<String>,
    /// Whether longer lexemes count too. A lexeme is a stem: `gravit` finds `gravity`, but `gravitati` does
    /// not find `gravitation`, whose stem is shorter.
    pub prefix: bool,
    /// A stop word of one of the languages but not of all. Texts in that language don't have it, so it can't
    /// be required.
    pub optional: bool,
}

impl Term {
    /// Whether a lexeme of a text is what is looked for.
    pub fn matches(&self, lexeme: &str) -> bool {
        self.alternatives.iter().any(|alternative| {
            if self.prefix { lexeme.starts_with(alternative.as_str()) } else { lexeme == alternative }
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub field: Field,
    /// As written; never empty.
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Concept,
    Context,
    Source,
    Language,
    Year,
    Kind,
}

impl Field {
    fn find(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "concept" => Self::Concept,
            "context" => Self::Context,
            "source" => Self::Source,
            "language" => Self::Language,
            "year" => Self::Year,
            "kind" => Self::Kind,
            _ => return None,
        })
    }
}

/// Years that a filter names: `2019`, `2019..2021`, `2019..` or `..2021`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Years {
    pub first: i32,
    pub last: i32,
}

impl Years {
    pub fn parse(text: &str) -> Option<Self> {
        let year = |text: &str| -> Option<i32> {
            let is_year = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_year)
        };
        let Some((first, last)) = text.split_once("..") else {
            return year(text).map(|year| Self { first: year, last: year });
        };
        if first.is_empty() && last.is_empty() {
            return None;
        }
        let first = if first.is_empty() { i32::MIN } else { year(first)? };
        let last = if last.is_empty() { i32::MAX } else { year(last)? };
        Some(Self { first, last })
    }

    pub const fn contains(self, year: i32) -> bool {
        self.first <= year && year <= self.last
    }
}

/// Whether the last word may still be growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Never,
    /// The last word also finds longer ones, unless a space, a quote or another operator ends it.
    LastWord,
}

impl Query {
    /// Reads any text. `languages` are those of the texts that are searched; English is always tried, and so
    /// is every word as it is written.
    pub fn parse(text: &str, languages: &[&str], prefix: Prefix) -> Self {
        let text = printable(text);
        let known = Known::new(languages);
        let mut query = Self::default();
        let mut dropped = Vec::new();
        let mut left = MOST_TERMS;
        let parts = parts(&text);
        for (at, part) in parts.iter().enumerate() {
            let grows = prefix == Prefix::LastWord && at + 1 == parts.len() && !text.ends_with(' ');
            match part {
                Part::Words(words) => {
                    query.add_text(words);
                    query.add_words(words, &known, grows, &mut left, &mut dropped);
                }
                Part::Phrase(words) => {
                    query.add_text(words);
                    let mut phrase = known.phrase(words);
                    phrase.truncate(left);
                    left -= phrase.len();
                    if phrase.is_empty() {
                        dropped.extend(tokens(words).iter().map(|token| known.term(token)));
                    }
                    query.phrases.extend(Some(phrase).filter(|phrase| !phrase.is_empty()));
                }
                Part::Without(words) => {
                    let held: usize = query.without.iter().map(Vec::len).sum();
                    let phrase = known.phrase(words);
                    let fits = !phrase.is_empty() && held + phrase.len() <= MOST_TERMS;
                    query.without.extend(Some(phrase).filter(|_| fits));
                }
                Part::Filter(field, value) if query.filters.len() < MOST_FILTERS => {
                    query.filters.push(Filter { field: *field, value: (*value).to_owned() });
                }
                Part::Filter(..) => {}
            }
        }
        if query.terms.is_empty() && query.phrases.is_empty() {
            // Only stop words: better than nothing.
            for term in dropped.into_iter().filter(|term| !term.alternatives.is_empty()).take(MOST_TERMS) {
                query.add(term);
            }
        }
        query
    }

    /// Reads the words of a statement: nothing in it is an operator.
    pub fn plain(text: &str, languages: &[&str]) -> Self {
        let text = printable(text);
        let mut query = Self::default();
        let mut left = MOST_TERMS;
        query.add_text(&text);
        query.add_words(&text, &Known::new(languages), false, &mut left, &mut Vec::new());
        query
    }

    /// The terms that texts are ranked by: those of the words, then those of the phrases; each once.
    pub fn ranking(&self) -> Vec<&Term> {
        let mut terms: Vec<&Term> = Vec::new();
        for term in self.terms.iter().chain(self.phrases.iter().flatten().map(|(_, term)| term)) {
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        terms
    }

    /// Whether a text has to be looked at before it is an answer, where phrases are required or not.
    pub fn asks_for_a_look(&self, phrases_required: bool) -> bool {
        phrases_required && !self.phrases.is_empty() || !self.without.is_empty()
    }

    fn add_text(&mut self, words: &str) {
        if !self.text.is_empty() && !words.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(words);
    }

    fn add_words(
        &mut self,
        words: &str,
        known: &Known,
        grows: bool,
        left: &mut usize,
        dropped: &mut Vec<Term>,
    ) {
        let tokens = tokens(words);
        for (at, token) in tokens.iter().enumerate() {
            let is_dropped = known.is_dropped(token);
            let is_full = if is_dropped { dropped.len() >= MOST_TERMS } else { *left == 0 };
            if is_full {
                continue;
            }
            let mut term = known.term(token);
            // A sign behind the last word ends it, as a space does.
            let ends = at + 1 == tokens.len() && token.range.end == words.len();
            term.prefix |= grows && ends;
            if is_dropped {
                dropped.push(term);
            } else if self.add(term) {
                *left -= 1;
            }
        }
    }

    /// Whether the term is new.
    fn add(&mut self, term: Term) -> bool {
        let twin = self.terms.iter_mut().find(|known| known.alternatives == term.alternatives);
        if let Some(twin) = twin {
            twin.prefix |= term.prefix;
            return false;
        }
        let says_something = !term.alternatives.is_empty();
        self.terms.extend(Some(term).filter(|_| says_something));
        says_something
    }
}

/// The languages of the texts that are searched.
struct Known {
    given: Vec<&'static Language>,
    /// The same and English.
    tried: Vec<&'static Language>,
}

impl Known {
    fn new(languages: &[&str]) -> Self {
        let mut given: Vec<&'static Language> = Vec::new();
        for language in languages.iter().filter_map(|code| Language::find(code)) {
            if !given.iter().any(|known| std::ptr::eq(*known, language)) {
                given.push(language);
            }
        }
        let mut tried = given.clone();
        if !tried.iter().any(|known| std::ptr::eq(*known, Language::english())) {
            tried.push(Language::english());
        }
        if given.is_empty() {
            given.push(Language::english());
        }
        Self { given, tried }
    }

    /// Whether no text in any of the languages has the word.
    fn is_dropped(&self, token: &Token) -> bool {
        self.given.iter().all(|language| token.is_stop(Some(language)))
    }

    fn is_optional(&self, token: &Token) -> bool {
        self.tried.iter().any(|language| token.is_stop(Some(language)))
    }

    fn term(&self, token: &Token) -> Term {
        let mut alternatives: Vec<String> = Vec::new();
        let forms = std::iter::once(token.lexeme(None))
            .chain(self.tried.iter().map(|language| token.lexeme(Some(language))));
        for lexeme in forms.filter(|lexeme| !lexeme.is_empty()) {
            if !alternatives.contains(&lexeme) {
                alternatives.push(lexeme);
            }
        }
        // One character of a script that is indexed in pairs begins a pair, wherever it is not the last of
        // its run.
        Term { alternatives, prefix: token.is_single(), optional: self.is_optional(token) }
    }

    /// Words in their order. What a text in one of the languages may lack is a gap.
    fn phrase(&self, words: &str) -> Phrase {
        let tokens = tokens(words);
        let kept = tokens.iter().filter(|token| !self.is_optional(token)).take(MOST_TERMS);
        let terms = kept.map(|token| (token.position, self.term(token)));
        let terms: Phrase = terms.filter(|(_, term)| !term.alternatives.is_empty()).collect();
        let first = terms.first().map_or(0, |(position, _)| *position);
        terms.into_iter().map(|(position, term)| (position - first, term)).collect()
    }
}

/// What operators make of a piece of the query.
#[derive(Debug)]
enum Part<'a> {
    Words(&'a str),
    Phrase(&'a str),
    Without(&'a str),
    Filter(Field, &'a str),
}

/// With spaces for what can't be seen, and none twice.
fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_whitespace()
            || c.is_control()
            // Marks of direction and byte order, which come along with copied text.
            || matches!(c, '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' |
                '\u{2066}'..='\u{2069}' | '\u{FEFF}')
    };
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if !hidden(c) {
            clean.push(c);
        } else if !clean.ends_with(' ') && !clean.is_empty() {
            clean.push(' ');
        }
    }
    clean
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (part, after) = part(rest);
        parts.extend(part);
        rest = after.trim_start();
    }
    parts
}

/// The part that a text begins with, if it is one, and what follows.
fn part(text: &str) -> (Option<Part<'_>>, &str) {
    if let Some((phrase, after)) = quoted(text) {
        return (Some(Part::Phrase(phrase)), after);
    }
    let bare = text.trim_start_matches('-');
    if bare.len() < text.len() {
        let (words, after) = quoted(bare).unwrap_or_else(|| word(bare));
        return (Some(Part::Without(words)).filter(|_| !words.is_empty()), after);
    }
    if let Some((field, value, after)) = filter(text) {
        return (Some(Part::Filter(field, value)), after);
    }
    let (words, after) = word(text);
    (Some(Part::Words(words)), after)
}

/// A field, its value and what follows.
fn filter(text: &str) -> Option<(Field, &str, &str)> {
    let (name, value) = text.split_once(':')?;
    let field = Field::find(name)?;
    let (value, after) = quoted(value).unwrap_or_else(|| word(value));
    let value = value.trim_matches(|c: char| is_quote(c) || c == ' ');
    // `year:soon` is about no year.
    let names = !value.is_empty() && (field != Field::Year || Years::parse(value).is_some());
    names.then_some((field, value, after))
}

/// What stands between two quotes at the beginning, and what follows them. A quote that nobody closes is none.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix(is_quote)?;
    let end = inside.find(is_quote)?;
    let after = inside[end..].trim_start_matches(is_quote);
    Some((inside[..end].trim(), after))
}

/// Up to the next space.
fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '＂')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Query {
        Query::parse(text, &["en"], Prefix::Never)
    }

    fn firsts(terms: &[Term]) -> Vec<&str> {
        terms.iter().map(|term| term.alternatives[0].as_str()).collect()
    }

    fn phrase(phrase: &Phrase) -> Vec<(u32, &str)> {
        phrase.iter().map(|(at, term)| (*at, term.alternatives[0].as_str())).collect()
    }

    #[test]
    fn a_query_has_words_phrases_exceptions_and_filters() {
        let query = parse(
            r#"dark matter "speed of light" -lensing -"weak field" year:2019 Concept:"Vera Rubin" foo:bar kind:"#,
        );
        assert_eq!(firsts(&query.terms), ["dark", "matter", "foo", "bar", "kind"]);
        assert_eq!(query.phrases.iter().map(phrase).collect::<Vec<_>>(), [[(0, "speed"), (2, "light")]]);
        assert_eq!(
            query.without.iter().map(phrase).collect::<Vec<_>>(),
            [vec![(0, "lensing")], vec![(0, "weak"), (1, "field")]]
        );
        let filters: Vec<_> =
            query.filters.iter().map(|filter| (filter.field, filter.value.as_str())).collect();
        assert_eq!(filters, [(Field::Year, "2019"), (Field::Concept, "Vera Rubin")]);
        assert_eq!(query.text, "dark matter speed of light foo:bar kind:");
    }

    #[test]
    fn a_word_has_the_stems_of_all_languages() {
        let query = Query::parse("Galaxien", &["de", "ru", "xx"], Prefix::Never);
        assert_eq!(query.terms[0].alternatives, ["galaxien", "galaxi"]);
        let query = Query::parse("running", &[], Prefix::Never);
        assert_eq!(query.terms[0].alternatives, ["running", "run"]);
        assert_eq!(parse("run").terms[0].alternatives, ["run"]);
    }

    #[test]
    fn stop_words_are_dropped_where_no_text_has_them() {
        assert_eq!(firsts(&parse("the bridge of the river").terms), ["bridge", "river"]);
        assert_eq!(firsts(&parse("to be or not").terms), ["to", "be", "or", "not"]);
        assert_eq!(firsts(&parse("\"to be\" hamlet").terms), ["hamlet"]);
        assert!(parse("\"to be\" hamlet").phrases.is_empty());
        assert_eq!(firsts(&parse("\"to be\"").terms), ["to", "be"]);
        // War is a stop word in German only: it is looked for and not required.
        let mixed = Query::parse("the war in Europe", &["en", "de"], Prefix::Never);
        let terms: Vec<_> =
            mixed.terms.iter().map(|term| (term.alternatives[0].as_str(), term.optional)).collect();
        assert_eq!(terms, [("the", true), ("war", true), ("europe", false)]);
    }

    #[test]
    fn what_is_not_closed_is_words() {
        assert_eq!(firsts(&parse("\"dark matter").terms), ["dark", "matter"]);
        assert_eq!(firsts(&parse("5\" pipe").terms), ["5", "pipe"]);
        for nothing in ["", " ", "-", "--", "\"\"", "-\"\"", "\"", "- -", "\u{0}\u{7}", "…", "“”"] {
            let query = parse(nothing);
            assert!(
                query.terms.is_empty() && query.phrases.is_empty() && query.without.is_empty(),
                "{nothing:?}"
            );
        }
        assert_eq!(phrase(&parse("a -covid-19").without[0]), [(0, "covid"), (1, "19")]);
        assert_eq!(firsts(&parse("covid-19").terms), ["covid", "19"]);
        assert_eq!(parse("„dunkle Materie“").phrases.len(), 1);
        assert_eq!(parse("concept:\"Vera").filters[0].value, "Vera");
    }

    #[test]
    fn years_are_one_or_from_one_to_another() {
        let years = |first, last| Some(Years { first, last });
        for (text, read) in [
            ("2019", years(2019, 2019)),
            ("2019..2021", years(2019, 2021)),
            ("..2021", years(i32::MIN, 2021)),
            ("476..", years(476, i32::MAX)),
            ("..", None),
            ("soon", None),
            ("20190", None),
            ("2019-2021", None),
            ("+2019", None),
            ("", None),
        ] {
            assert_eq!(Years::parse(text), read, "{text}");
        }
        assert!(years(2019, 2021).is_some_and(|years| years.contains(2021) && !years.contains(2022)));
        assert_eq!(parse("war year:soon").filters, []);
        assert_eq!(firsts(&parse("war year:soon").terms), ["war", "year", "soon"]);
    }

    #[test]
    fn text_from_right_to_left_is_text() {
        let query = Query::parse("\u{202B}المدرسة\u{202C} -\"كتاب\"", &["ar"], Prefix::Never);
        assert_eq!((query.terms.len(), query.without.len()), (1, 1));
        assert_eq!(query.terms[0].alternatives.len(), 2);
        assert_eq!(query.text.trim(), "المدرسة");
    }

    #[test]
    fn only_the_last_word_grows() {
        let grows = |text: &str| {
            let query = Query::parse(text, &["en"], Prefix::LastWord);
            query.terms.iter().map(|term| term.prefix).collect::<Vec<_>>()
        };
        assert_eq!(grows("law gravit"), [false, true]);
        for ended in
            ["law gravit ", "law gravit.", "law gravit -x", "law gravit year:2019", "law gravit \"a b\""]
        {
            assert_eq!(grows(ended)[..2], [false, false], "{ended}");
        }
        assert!(parse("law gravit").terms.iter().all(|term| !term.prefix));
        // The last word is matched with what is indexed for the whole one.
        let query = Query::parse("gravit", &["en"], Prefix::LastWord);
        assert!(crate::words("gravity", Some("en")).iter().all(|word| query.terms[0].matches(&word.lexeme)));
    }

    #[test]
    fn one_character_begins_a_pair() {
        assert!(parse("猫").terms[0].prefix);
        assert!(!parse("黒猫").terms[0].prefix);
    }

    #[test]
    fn terms_are_few_and_different() {
        let many: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
        assert_eq!(parse(&many.join(" ")).terms.len(), MOST_TERMS);
        assert_eq!(parse(&many.join(" ")).terms[31].alternatives, ["w31"]);
        let phrases = parse(&format!("\"{}\" \"x y\" z", many.join(" ")));
        assert_eq!(phrases.phrases.iter().map(Vec::len).collect::<Vec<_>>(), [MOST_TERMS]);
        assert_eq!(firsts(&parse("cat Cat cats dog").terms), ["cat", "cats", "dog"]);
        assert_eq!(parse(&format!("-{}", many.join(" -"))).without.len(), MOST_TERMS);
    }
}
