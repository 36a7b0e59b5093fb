//! What a fact says among other things: the statement without what is only added to it.
//!
//! English only, and only of facts in which nothing is denied, limited, reported or made conditional. Nothing is left out that
//! may be a condition: who rose in May need not have risen.

use crate::guard::happens_once;
use crate::same::canon::Canon;
use crate::same::lexicon::{lexicon, list};

/// So many shorter forms of a fact are looked at.
const MOST: usize = 8;

/// Shorter statements that are true where the fact is.
pub fn of(fact: &str) -> Vec<String> {
    if !Canon::of(fact).is_some_and(|fact| fact.plain) || is_hedged(fact) {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    let mut add = |core: String| {
        if core != fact && !found.contains(&core) && found.len() < MOST {
            found.push(core);
        }
    };
    let bare = without_brackets(fact);
    let words = words(&bare);
    let relative = words.iter().position(|word| {
        bare[..word.start].trim_end().ends_with(',')
            && matches!(word.text.as_str(), "which" | "who" | "whose" | "where")
    });
    let until = |at: usize| words.get(at).map_or(bare.as_str(), |word| &bare[..word.start]);
    let whole = relative.map_or(words.len(), |at| at);
    add(ended(until(whole)));
    for at in ends(&words[..whole]) {
        add(ended(until(at)));
    }
    found
}

/// Where a statement of what was once done may end: before when, where and by whom, and before what was done then.
fn ends(words: &[Word]) -> Vec<usize> {
    let Some(done) = words.iter().position(|word| happens_once(&word.text)) else {
        return Vec::new();
    };
    // A film released in May is not a film released.
    let is_verb = done.checked_sub(1).is_some_and(|before| {
        let before = &words[before];
        lexicon().has(list::AUXILIARIES, &before.text)
            || before.capital
            || matches!(words[done].text.as_str(), "died")
    });
    let begins =
        |word: &Word| matches!(word.text.as_str(), "in" | "on" | "at" | "by" | "near" | "with" | "as");
    let goes_on = |at: usize| {
        words[at].text == "and"
            && words
                .get(at + 1)
                .is_some_and(|next| lexicon().has(list::PAST | list::PUNCTUAL | list::DONE, &next.text))
    };
    let found = (done + 1..words.len()).filter(|at| begins(&words[*at]) || goes_on(*at));
    // From the longest to the shortest; nothing shorter than what was done.
    if is_verb { found.collect::<Vec<_>>().into_iter().rev().collect() } else { Vec::new() }
}

/// Whether the sentence says what something is, and the fact says the same with more words before the noun, or behind it:
/// a French film, a French action film by Luc Besson.
pub fn is_kind_of(sentence: &str, fact: &str) -> bool {
    let bound =
        |text: &str| words(text).iter().any(|word| lexicon().has(list::SCOPE | list::REPORT, &word.text));
    let plain = |text: &str| !bound(text) && !is_hedged(text);
    if !plain(sentence) || !plain(fact) {
        return false;
    }
    let fact = without_brackets(fact);
    let (of_sentence, of_fact) = (words(sentence), words(&fact));
    let Some((said, known)) = Kind::of(sentence, &of_sentence).zip(Kind::of(&fact, &of_fact)) else {
        return false;
    };
    let same_subject =
        said.subject.len() == known.subject.len()
            && said.subject.iter().zip(known.subject).enumerate().all(|(at, (one, other))| {
                one.text == other.text && (at == 0 || one.capital == other.capital)
            });
    if !same_subject || said.verb != known.verb || said.rest > 0 {
        return false;
    }
    // The noun is the last of them; what stands before it is left out or kept in its order.
    let (Some((noun, said)), Some((other, known))) = (said.noun.split_last(), known.noun.split_last()) else {
        return false;
    };
    let mut left_out = Vec::new();
    let mut kept = said.iter().peekable();
    for word in known {
        if kept.peek().is_some_and(|next| next.text == word.text && next.capital == word.capital) {
            kept.next();
        } else {
            left_out.push(word);
        }
    }
    noun.text == other.text
        && noun.capital == other.capital
        && kept.next().is_none()
        && !left_out.iter().any(|word| {
            CHANGING.contains(&word.text.as_str()) || word.text.contains('-') && is_changing_part(&word.text)
        })
}

/// `Colombiana` `is` a `2011 French action film` `co-written by…`.
struct Kind<'a> {
    subject: &'a [Word],
    verb: &'a str,
    noun: &'a [Word],
    /// How many words stand behind it.
    rest: usize,
}

impl<'a> Kind<'a> {
    fn of(text: &str, words: &'a [Word]) -> Option<Self> {
        let at = words.windows(2).position(|pair| {
            matches!(pair[0].text.as_str(), "is" | "was") && matches!(pair[1].text.as_str(), "a" | "an")
        })?;
        // Nothing else is said of the subject before.
        let subject = &words[..at];
        let simple = !subject.is_empty() && !subject.iter().any(|word| word.stop || is_small(&word.text));
        let rest = &words[at + 2..];
        let first = text.len().min(rest.first()?.start);
        let mut length = 0;
        for word in rest {
            let begins =
                length > 0 && (is_small(&word.text) || is_participle(&word.text) || word.text == "that");
            if begins {
                break;
            }
            length += 1;
            if word.stop {
                break;
            }
        }
        // A list of qualities: a cold, dark lake.
        let listed = text[first..].contains(',')
            && rest.get(length - 1).is_some_and(|word| word.stop)
            && length < rest.len();
        let next = rest.get(length).map_or("", |word| word.text.as_str());
        let ended =
            length == rest.len() || !listed || matches!(next, "which" | "who" | "whose" | "and" | "where");
        let joined = matches!(next, "and" | "or");
        (simple && ended && !joined).then(|| Self {
            subject,
            verb: &words[at].text,
            noun: &rest[..length],
            rest: rest.len() - length,
        })
    }
}

struct Word {
    start: usize,
    /// Without signs around it, in small letters.
    text: String,
    capital: bool,
    /// A sign behind it ends something.
    stop: bool,
}

fn words(text: &str) -> Vec<Word> {
    let mut at = 0;
    let mut found = Vec::new();
    for piece in text.split(' ') {
        let start = at;
        at += piece.len() + 1;
        let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if !bare.is_empty() {
            found.push(Word {
                start,
                text: bare.to_lowercase(),
                capital: bare.starts_with(char::is_uppercase),
                stop: piece.ends_with([',', ';', ':', '.', '—', '–']),
            });
        }
    }
    found
}

/// Without what stands in brackets.
fn without_brackets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ' ' if out.ends_with(' ') => {}
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.replace(" ,", ",").replace(" .", ".").trim().to_owned()
}

fn ended(text: &str) -> String {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, ')' | '"' | '%' | '”'));
    format!("{text}.")
}

fn is_small(word: &str) -> bool {
    lexicon().has(list::PREPOSITIONS | list::CLAUSE | list::AUXILIARIES | list::PRONOUNS, word)
        || matches!(word, "and" | "or")
}

fn is_participle(word: &str) -> bool {
    lexicon().has(list::DONE | list::PAST, word)
        || (word.len() > 4 && (word.ends_with("ed") || word.ends_with("ing")))
}

/// Maybe, or only as somebody sees it.
fn is_hedged(text: &str) -> bool {
    const HEDGES: [&str; 24] = [
        "may",
        "might",
        "could",
        "perhaps",
        "possibly",
        "probably",
        "likely",
        "allegedly",
        "reportedly",
        "apparently",
        "supposedly",
        "seems",
        "seemed",
        "appears",
        "appeared",
        "believed",
        "considered",
        "thought",
        "rumored",
        "rumoured",
        "planned",
        "scheduled",
        "expected",
        "would",
    ];
    words(text).iter().any(|word| HEDGES.contains(&word.text.as_str()))
}

/// Before a noun these say that it is none, or none any more.
const CHANGING: [&str; 66] = [
    "former",
    "fake",
    "false",
    "alleged",
    "supposed",
    "so-called",
    "self-proclaimed",
    "would-be",
    "potential",
    "possible",
    "probable",
    "proposed",
    "planned",
    "cancelled",
    "canceled",
    "unbuilt",
    "unfinished",
    "failed",
    "attempted",
    "suspected",
    "fictional",
    "fictitious",
    "imaginary",
    "mythical",
    "legendary",
    "hypothetical",
    "virtual",
    "artificial",
    "synthetic",
    "toy",
    "model",
    "replica",
    "honorary",
    "deputy",
    "vice",
    "assistant",
    "acting",
    "associate",
    "aspiring",
    "prospective",
    "retired",
    "late",
    "ex",
    "disused",
    "defunct",
    "extinct",
    "unofficial",
    "unrecognized",
    "unrecognised",
    "counterfeit",
    "imitation",
    "ruined",
    "demolished",
    "abandoned",
    "candidate",
    "onetime",
    "nominal",
    "apparent",
    "stone",
    "wooden",
    "plastic",
    "rubber",
    "paper",
    "bronze",
    "mock",
    "putative",
];

/// `semi-professional`, `non-alcoholic`.
fn is_changing_part(word: &str) -> bool {
    word.split('-').any(|part| {
        matches!(
            part,
            "semi"
                | "non"
                | "anti"
                | "quasi"
                | "pseudo"
                | "ex"
                | "near"
                | "half"
                | "mock"
                | "never"
                | "one"
                | "then"
        ) || CHANGING.contains(&part)
    })
}
