//! Names in a text, told by their capitals. They lead from one text to another that speaks of the same, whatever was
//! stated of either; scripts without capitals have none.

use std::collections::HashMap;

use crate::hop::without_parentheses;
use crate::language::Language;
use crate::words::{Script, Token, tokens};

/// A text has no more names than this: of a longer one, those that it says most often.
const MOST: usize = 64;
/// So many words make a name at most.
const LONGEST: usize = 8;
/// Small words inside of a name.
const INSIDE: [&str; 24] = [
    "of", "de", "la", "le", "les", "von", "van", "der", "den", "del", "della", "di", "da", "du", "dos",
    "das", "the", "for", "on", "y", "e", "al", "el", "bin",
];
/// Words that are written with a capital at the beginning of a sentence more often than in a name, beside the stop words of a
/// language, and what is written with one and names nothing by itself.
const NONE_ALONE: [&str; 74] = [
    "he",
    "she",
    "they",
    "it",
    "we",
    "i",
    "you",
    "his",
    "her",
    "hers",
    "their",
    "its",
    "our",
    "my",
    "your",
    "who",
    "whose",
    "when",
    "while",
    "where",
    "after",
    "before",
    "during",
    "since",
    "although",
    "though",
    "however",
    "both",
    "each",
    "many",
    "most",
    "several",
    "some",
    "all",
    "another",
    "other",
    "here",
    "there",
    "then",
    "thus",
    "also",
    "from",
    "with",
    "one",
    "two",
    "three",
    "first",
    "despite",
    "because",
    "under",
    "over",
    "upon",
    "until",
    "once",
    "only",
    "about",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];
const ARTICLES: [&str; 3] = ["the", "a", "an"];
/// After these a full stop ends no sentence.
const SHORT: [&str; 10] = ["st", "dr", "mr", "mrs", "ms", "jr", "sr", "no", "vs", "prof"];

/// The names of a text in a language, folded, each once, those that it says most often first.
pub fn names(text: &str, language: Option<&str>) -> Vec<String> {
    let language = language.and_then(Language::find);
    let is_none = |token: &Token| {
        let written = text.get(token.range.clone()).unwrap_or_default();
        let is_short_form = written.chars().count() > 1 && written.chars().all(char::is_uppercase);
        !is_short_form && (NONE_ALONE.contains(&&*token.lower) || token.is_stop(language))
    };
    let is_number = |token: &Token| token.lower.chars().all(|c| c.is_ascii_digit());
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (at, span) in spans(text).into_iter().enumerate() {
        let (begins, mut words) = (span.begins_sentence, &*span.words);
        while let Some((first, rest)) = words.split_first() {
            // Also what is left of `The of` and of `In 1969`.
            if !is_none(first) && !is_number(first) && !INSIDE.contains(&&*first.lower) {
                break;
            }
            words = rest;
        }
        // A word at the beginning of a sentence has its capital from there.
        let lone = words.len() == 1 && begins && words.len() == span.words.len();
        let lexemes: Vec<String> = words.iter().map(|token| token.lexeme(None)).collect();
        let name = lexemes.join(" ");
        if !lone && is_name(&name) {
            counts.entry(name).or_insert((0, at)).0 += 1;
        }
    }
    let mut names: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    names.sort_by(|(_, (one, first)), (_, (other, second))| other.cmp(one).then(first.cmp(second)));
    names.truncate(MOST);
    names.into_iter().map(|(name, _)| name).collect()
}

/// What a title names: `mercury` of `Mercury (planet)`.
pub fn title_name(title: &str) -> Option<String> {
    let words = tokens(&without_parentheses(title));
    // As in texts: `The Silent Harbour` is called `the Silent Harbour` there.
    let from = usize::from(words.len() > 1 && ARTICLES.contains(&&*words[0].lower));
    let name = words[from..].iter().map(|token| token.lexeme(None)).collect::<Vec<_>>().join(" ");
    (words.len() <= LONGEST && is_name(&name)).then_some(name)
}

/// Longer than a letter, and no number.
fn is_name(name: &str) -> bool {
    name.chars().filter(|c| c.is_alphabetic()).count() > 1
}

/// Words in a row that may be a name.
struct Span {
    words: Vec<Token>,
    begins_sentence: bool,
}

fn spans(text: &str) -> Vec<Span> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| token.script == Script::Spaced).collect();
    let written = |token: &Token| text.get(token.range.clone()).unwrap_or_default();
    let is_capital = |token: &Token| written(token).chars().next().is_some_and(char::is_uppercase);
    let is_number = |token: &Token| written(token).chars().all(|c| c.is_ascii_digit());
    let mut spans: Vec<Span> = Vec::new();
    let (mut at, mut begins_sentence) = (0, true);
    while at < all.len() {
        if !is_capital(&all[at]) {
            begins_sentence = at + 1 < all.len() && ends_sentence(text, &all[at], &all[at + 1]);
            at += 1;
            continue;
        }
        let start = at;
        let mut end = at + 1;
        let mut next = end;
        // Small words only count with a capital behind them.
        while next < all.len() && next - start < LONGEST && joins(text, &all[next - 1], &all[next]) {
            if is_capital(&all[next]) || is_number(&all[next]) && next == end {
                end = next + 1;
            } else if !INSIDE.contains(&&*all[next].lower) || next - end >= 2 {
                break;
            }
            next += 1;
        }
        spans.push(Span { words: all[start..end].to_vec(), begins_sentence });
        begins_sentence = end < all.len() && ends_sentence(text, &all[end - 1], &all[end]);
        at = end;
    }
    spans
}

fn between<'t>(text: &'t str, one: &Token, next: &Token) -> &'t str {
    text.get(one.range.end..next.range.start).unwrap_or_default()
}

/// Whether two words may be of one name.
fn joins(text: &str, one: &Token, next: &Token) -> bool {
    let gap = between(text, one, next);
    match gap.trim() {
        "" => !gap.contains('\n') || !gap.contains("\n\n"),
        "-" | "–" | "&" | "'" | "’" => true,
        "." => is_short(one),
        _ => false,
    }
}

fn ends_sentence(text: &str, one: &Token, next: &Token) -> bool {
    let gap = between(text, one, next);
    gap.contains(['!', '?', '…', '\n', ':', '"', '“', '•']) || gap.contains('.') && !is_short(one)
}

/// An initial or a title, after which a full stop ends nothing.
fn is_short(token: &Token) -> bool {
    token.lower.chars().count() == 1 || SHORT.contains(&&*token.lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut found = names(text, Some("en"));
        found.sort();
        found
    }

    #[test]
    fn names_are_words_with_capitals_and_small_ones_between() {
        assert_eq!(
            found(
                "The film was directed by Ole Brandt, who studied at the University of Oslo with J. R. R. Tolkien."
            ),
            ["j r r tolkien", "ole brandt", "university of oslo"]
        );
        assert_eq!(
            found("In 1969 Apollo 11 landed. AT&T paid Procter & Gamble."),
            ["apollo 11", "at t", "procter gamble"]
        );
        assert_eq!(found("A bridge in St. Louis stands."), ["st louis"]);
    }

    #[test]
    fn the_capital_of_a_sentence_is_none() {
        assert_eq!(found("Bridges are old. He crossed them. However they fell in March 1902."), [""; 0]);
        assert_eq!(found("The Ole Brandt prize is old. In Oslo it is given."), ["ole brandt", "oslo"]);
        // A name that stands elsewhere too.
        assert_eq!(found("Oslo is old. They saw Oslo."), ["oslo"]);
    }

    #[test]
    fn titles_are_names_without_what_tells_them_apart() {
        assert_eq!(title_name("Mercury (planet)").as_deref(), Some("mercury"));
        assert_eq!(title_name("The Silent Harbour").as_deref(), Some("silent harbour"));
        assert_eq!(title_name("北京大学").as_deref(), Some("北京 京大 大学"));
        assert_eq!(title_name("1984"), None);
        assert_eq!(title_name("Effects of a very long list of things on another list of things"), None);
    }

    #[test]
    fn of_a_long_text_the_most_frequent_are_kept() {
        let text =
            (0..500).map(|n| format!("They met Ann Berg and Per Number{n}.")).collect::<Vec<_>>().join(" ");
        let names = names(&text, None);
        assert_eq!((names.len(), &*names[0]), (MOST, "ann berg"));
    }
}
