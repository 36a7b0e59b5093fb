//! What happens to one thing once: a person is born on one day, a bridge is opened in one year.
//!
//! Two dates of such an event exclude each other only where both statements are about one thing. Climbers die every year, and a
//! company releases one album after the other, so the subject and what is done to it have to be definite or named.

use super::reading::Reading;
use super::tables::{Language, list};
use super::words::{Kind, Token};

/// Words for it, without accents.
const ENGLISH: [&str; 25] = [
    "born",
    "died",
    "founded",
    "established",
    "built",
    "opened",
    "inaugurated",
    "released",
    "published",
    "premiered",
    "launched",
    "invented",
    "discovered",
    "assassinated",
    "demolished",
    "incorporated",
    "abolished",
    "completed",
    "directed",
    "designed",
    "debuted",
    "christened",
    "baptised",
    "baptized",
    "unveiled",
];
const OTHERS: &str = " geboren gestorben starb gegrundet erbaut eroffnet veroffentlicht \
                      nee mort morte fonde fondee construit construite ouvert ouverte inaugure publie \
                      nacio murio nacido fundado fundada construido inaugurado publicado \
                      nato nata morto morta fondato fondata costruito inaugurato pubblicato \
                      nasceu morreu aberta aberto \
                      overleden opgericht gebouwd geopend ";

/// Whether an English word says that something happens to one thing once.
pub(crate) fn happens_once(word: &str) -> bool {
    ENGLISH.contains(&word)
}

pub(super) fn is_once(token: &Token) -> bool {
    token.kind == Kind::Word && (happens_once(&token.text) || OTHERS.contains(&format!(" {} ", token.text)))
}

/// Whether what a text says before its date is said of one thing that is definite or named, and of no number of things.
pub(super) fn is_of_one(text: &Reading, date: usize, language: &Language) -> bool {
    const INDEFINITE: [&str; 14] = [
        "ein", "eine", "einen", "einem", "einer", "un", "une", "des", "uno", "una", "um", "uma", "een",
        "unos",
    ];
    let before = &text.tokens[..date];
    // Apollo 11 is one thing, and twelve climbers are not.
    let counted = before.iter().enumerate().any(|(at, token)| {
        let named = at.checked_sub(1).is_some_and(|before| text.tokens[before].capital);
        matches!(token.kind, Kind::Amount(_)) && !named
    });
    let indefinite = |token: &Token| {
        let word = token.text.as_str();
        let article = if language.english { matches!(word, "a" | "an") } else { INDEFINITE.contains(&word) };
        token.is_word() && article && (!token.capital || token.opens)
    };
    if counted || before.iter().any(indefinite) {
        return false;
    }
    if !language.english {
        return true;
    }
    let Some(verb) = before.iter().position(is_once) else { return false };
    let passive = before[..verb].iter().any(|token| language.has(list::BE, &token.text));
    is_one_subject(&before[..verb], language) && (passive || is_one_object(&before[verb + 1..], language))
}

/// `The bridge`, `Ann Moe`, `Halden`; but not `Climbers`, `Wooden bridges`, `Residents of Oslo`, and not `She`, whoever that is.
fn is_one_subject(words: &[Token], language: &Language) -> bool {
    let helps = |token: &&Token| {
        language.has(list::BE, &token.text) || matches!(token.text.as_str(), "has" | "have" | "had" | "been")
    };
    let subject: Vec<&Token> = words.iter().take_while(|token| !helps(token)).collect();
    let Some(first) = subject.iter().find(|token| token.kind != Kind::Mark) else { return false };
    let word = first.text.as_str();
    if word == "the" {
        return true;
    }
    let named = subject.iter().any(|token| token.capital && !token.opens);
    if refers(word) {
        return false;
    }
    let next = subject.iter().find(|token| !token.opens && token.kind != Kind::Mark);
    let goes_on_named = next.is_some_and(|next| next.capital);
    if is_many(word) && !goes_on_named {
        return false;
    }
    // Apollo 11.
    let numbered = first.capital && subject.iter().skip(1).all(|token| matches!(token.kind, Kind::Amount(_)));
    named || numbered
}

/// What was released, founded or built, if that is said: nothing, `the bridge`, `Moby Dick`; but not `albums`, `its report`.
fn is_one_object(words: &[Token], language: &Language) -> bool {
    let object: Vec<&Token> = words
        .iter()
        .take_while(|token| !(token.is_word() && language.has(list::PREPOSITIONS, &token.text)))
        .filter(|token| token.kind != Kind::Mark)
        .collect();
    let Some(first) = object.first() else { return true };
    first.text == "the" || (!refers(&first.text) && object.iter().any(|token| token.capital))
}

/// Words that mean something that was said before, which may be another thing in another text.
fn refers(word: &str) -> bool {
    const WORDS: [&str; 22] = [
        "he", "she", "it", "they", "we", "you", "i", "this", "that", "these", "those", "his", "her", "its",
        "their", "our", "my", "your", "who", "which", "another", "other",
    ];
    WORDS.contains(&word)
}

/// What an English text is about is one of many, and nothing says which: `It`, `The study`, `These patients`. Another text that
/// begins alike is about another one.
pub(super) fn is_of_any(text: &Reading) -> bool {
    const OF_A_TEXT: [&str; 36] = [
        "study",
        "studies",
        "trial",
        "trials",
        "survey",
        "surveys",
        "experiment",
        "experiments",
        "sample",
        "samples",
        "cohort",
        "cohorts",
        "analysis",
        "review",
        "paper",
        "article",
        "report",
        "dataset",
        "questionnaire",
        "authors",
        "author",
        "researchers",
        "scientists",
        "investigators",
        "team",
        "group",
        "groups",
        "patients",
        "participants",
        "subjects",
        "respondents",
        "volunteers",
        "controls",
        "results",
        "findings",
        "data",
    ];
    let words: Vec<&Token> = text.tokens.iter().filter(|token| token.kind != Kind::Mark).collect();
    let Some(first) = words.first() else { return false };
    if refers(&first.text) {
        return true;
    }
    // As far as what is said of it, which begins with a verb; a name says which it is.
    let article = usize::from(matches!(first.text.as_str(), "the" | "a" | "an"));
    let Some(at) = words.iter().take(article + 3).position(|token| OF_A_TEXT.contains(&token.text.as_str()))
    else {
        return false;
    };
    let names = words[..at].iter().any(|token| token.capital && !token.opens);
    // The study of Halden, the team from Osk.
    let behind = words[at + 1..].iter().take(4).take_while(|token| !token.text.ends_with("ed"));
    !names && !behind.into_iter().any(|token| token.capital)
}

fn is_many(word: &str) -> bool {
    matches!(word, "people" | "men" | "women" | "children" | "police")
        || (word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)))
}
