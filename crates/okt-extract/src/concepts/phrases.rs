//! Common nouns and phrases of them, in English.

use std::ops::Range;

use okt_model::FoundBy;

use super::Mention;
use super::kinds;
use super::nouns::{self, Class, Noun};
use super::stop;
use super::tokens::{Gap, Token};

/// The longest phrase, in words.
const LONGEST: usize = 4;

/// What a word may do in a phrase.
enum Part {
    /// It may be the last word.
    Head(Noun),
    /// It may stand before others.
    Modifier,
}

/// The phrases of a fact, from left to right; `taken` are the names in it.
pub fn phrases(tokens: &[Token<'_>], taken: &[Mention]) -> Vec<Mention> {
    let is_taken = |at: usize| taken.iter().any(|name| name.tokens.contains(&at));
    let mut phrases = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_taken(at) {
            at += 1;
            continue;
        }
        if let Some(found) = listed(tokens, at, &is_taken).or_else(|| chain(tokens, at, &is_taken)) {
            at = found.tokens.end;
            phrases.extend(found.name.contains(char::is_alphabetic).then_some(found));
        } else {
            at += 1;
        }
    }
    phrases
}

/// The longest phrase of several words that the table has and that begins here.
fn listed(tokens: &[Token<'_>], start: usize, is_taken: &impl Fn(usize) -> bool) -> Option<Mention> {
    if tokens[start].is_stop()
        && !matches!(tokens[start].lower.as_str(), "new" | "full" | "low" | "high" | "long" | "great")
    {
        return None;
    }
    let mut words = tokens[start].lower.clone();
    let mut found = None;
    for end in start + 1..(start + LONGEST).min(tokens.len()) {
        if tokens[end].gap != Gap::None
            || is_taken(end)
            || tokens[end - 1].possessive
            || !nouns::goes_on(&words)
        {
            break;
        }
        let last = tokens[end].lower.as_str();
        let one = nouns::singular(last).map_or_else(|| last.to_owned(), |(one, _)| one);
        for last in [last, &one] {
            let phrase = format!("{words} {last}");
            let noun = nouns::find(&phrase);
            let noun = noun.and_then(|noun| {
                noun.means.and_then(|means| nouns::find(&means.to_lowercase())).or(Some(noun))
            });
            if let Some(class) = noun.and_then(|noun| noun.common)
                && !matches!(tokens[end].lower.as_str(), "in" | "on" | "up" | "off" | "out")
            {
                found = Some((
                    end + 1,
                    nouns::find(&phrase).and_then(|noun| noun.means).map_or(phrase, str::to_owned),
                    class,
                ));
            }
        }
        words.push(' ');
        words.push_str(last);
    }
    let (end, name, class) = found?;
    // A chain of nouns may be longer than what is listed: `tidal power station`.
    if let Some(longer) = chain(tokens, start, is_taken).filter(|longer| longer.tokens.end > end) {
        return Some(longer);
    }
    // Its last word may belong to what follows: `low water content`.
    if chain(tokens, end - 1, is_taken).is_some_and(|next| next.tokens.end > end) {
        return None;
    }
    let mention = made(tokens, start..end, name, class);
    // Never a concept, but it is passed over as one.
    Some(if class == Class::Never { Mention { name: String::new(), ..mention } } else { mention })
}

/// Nouns in a row, with what belongs before them.
fn chain(tokens: &[Token<'_>], start: usize, is_taken: &impl Fn(usize) -> bool) -> Option<Mention> {
    let mut heads: Vec<(usize, Noun)> = Vec::new();
    let mut end = start;
    while end < tokens.len()
        && !is_taken(end)
        && (end == start || (tokens[end].gap == Gap::None && !tokens[end - 1].possessive))
    {
        match part(tokens, end, end > start) {
            Some(Part::Head(noun)) => heads.push((end, noun)),
            Some(Part::Modifier) => {}
            None => break,
        }
        end += 1;
        // A plural seldom stands before another noun: what follows is a verb.
        if is_plural(&tokens[end - 1].lower) {
            break;
        }
    }
    let (mut last, mut noun) = heads.pop()?;
    // `the water rises`, `bee numbers`: what comes before is the thing.
    while noun.common == Some(Class::Never)
        && let Some(before) = heads.pop()
    {
        (last, noun) = before;
    }
    let class = noun.common?;
    // What is never a concept makes none more precise, and a kind of thing before its name is no part of it.
    let label = class.label().map(str::to_lowercase);
    let spare = heads.iter().filter(|(at, before)| {
        before.common == Some(Class::Never) || label.as_deref() == Some(tokens[*at].lower.as_str())
    });
    let from = spare.map(|(at, _)| at + 1).max().unwrap_or(start);
    let range = from.max((last + 1).saturating_sub(LONGEST))..last + 1;
    let (name, listed) = named(tokens, &range)?;
    let several = range.len() > 1;
    let class = listed.unwrap_or(class);
    // A general word is made precise by what is not general itself.
    let precise = several
        && heads.iter().filter(|(at, _)| range.contains(at)).all(|(_, before)| {
            before
                .common
                .is_some_and(|class| class.label().is_some() && (!before.general || kinds::is_named(class)))
        });
    let counts = match class {
        Class::Never => false,
        Class::Untyped => precise,
        Class::Label(_) => {
            // What people do is told by a word that could stand in any text: `researcher`.
            let bare = noun.general || (!several && kinds::is_person(class));
            precise || listed_whole(&name) || !bare || (!several && is_explained(tokens, last))
        }
    } && !(range.len() == 1 && is_doing(tokens, last));
    let mention = made(tokens, range, name, class);
    Some(if counts { mention } else { Mention { name: String::new(), ..mention } })
}

/// The name of a phrase: its words as they are, the last in the singular, each in its usual spelling; and its context,
/// where the table has the whole or the end of it.
fn named(tokens: &[Token<'_>], range: &Range<usize>) -> Option<(String, Option<Class>)> {
    let last = range.end - 1;
    let usual = |word: &str| {
        nouns::find(word).and_then(|noun| noun.means).map_or_else(|| word.to_owned(), str::to_owned)
    };
    let mut words: Vec<String> = tokens[range.start..last].iter().map(|token| usual(&token.lower)).collect();
    words.push(nouns::singular(&tokens[last].lower)?.0);
    let whole = words.join(" ");
    // `fog horn` is `foghorn`.
    let joined = (words.len() > 1).then(|| words[words.len() - 2..].concat());
    if let Some(one) =
        joined.filter(|one| nouns::find(one).is_some_and(|noun| noun.common.and_then(Class::label).is_some()))
    {
        let class = nouns::find(&one).and_then(|noun| noun.common);
        words.truncate(words.len() - 2);
        words.push(one);
        return Some((words.join(" "), class));
    }
    let class = (0..words.len() - 1)
        .find_map(|from| nouns::find(&words[from..].join(" ")).and_then(|noun| noun.common));
    let means = nouns::find(&whole).and_then(|noun| noun.means);
    Some((means.map_or(whole, str::to_owned), class))
}

fn part(tokens: &[Token<'_>], at: usize, inside: bool) -> Option<Part> {
    let token = &tokens[at];
    if token.is_stop() || token.is_number() || (token.is_capital() && !token.first) {
        return None;
    }
    let next_is_noun = || {
        tokens.get(at + 1).is_some_and(|next| {
            next.gap == Gap::None
                && !next.is_stop()
                && nouns::singular(&next.lower).is_some_and(|(_, noun)| !noun.verb)
        })
    };
    if token.lower.contains('-') && nouns::singular(&token.lower).is_none() {
        // `tide-predicting machine`.
        let compound = token
            .lower
            .split('-')
            .all(|part| part.chars().count() > 2 && part.chars().all(char::is_alphabetic));
        // `long-rumored` tells nothing of a thing.
        let plain = token.lower.ends_with("ly") || token.lower.ends_with("ed");
        return (compound && next_is_noun() && !plain).then_some(Part::Modifier);
    }
    let own = nouns::find(&token.lower);
    if own.is_none() && is_learned(&token.lower) && next_is_noun() {
        return Some(Part::Modifier);
    }
    let Some((_, noun)) = nouns::singular(&token.lower) else {
        return own.filter(|noun| noun.relational && next_is_noun()).map(|_| Part::Modifier);
    };
    let before = at.checked_sub(1).map(|before| &tokens[before]).filter(|_| token.gap == Gap::None);
    if noun.adjective || own.is_some_and(|own| own.adjective) {
        let belongs =
            noun.relational || own.is_some_and(|own| own.relational) || is_colour_of_living(tokens, at);
        if next_is_noun() {
            return belongs.then_some(Part::Modifier);
        }
        let article =
            before.is_some_and(|before| matches!(before.lower.as_str(), "a" | "an" | "the" | "this"));
        return (article && noun.common.and_then(Class::label).is_some()).then_some(Part::Head(noun));
    }
    if token.lower.ends_with("ing") && next_is_noun() && noun.common != Some(Class::Label("Activity")) {
        return None;
    }
    let announced = before.is_some_and(|before| {
        before.possessive
            || stop::announces_noun(&before.lower)
            || (inside && !is_noun(&before.lower))
            || is_plain_adjective(&before.lower)
    });
    if (noun.verb || matches!(token.lower.as_str(), "lives" | "leaves")) && !announced {
        return None;
    }
    // `peatlands store about a third`: a verb after its subject.
    let subject =
        before.is_some_and(|before| is_noun(&before.lower) || (before.is_capital() && !before.is_stop()));
    let goes_on = tokens.get(at + 1).is_some_and(|next| {
        next.gap == Gap::None && (next.is_stop() || next.is_number() || next.lower.ends_with("ly"))
    });
    if noun.verb_too && subject && goes_on && !announced {
        return None;
    }
    Some(Part::Head(noun))
}

/// A learned adjective that the table does not have: `amphidromic`. Shorter ones, and most with these endings, only tell how
/// something is: `erratic`, `pessimistic`.
fn is_learned(word: &str) -> bool {
    let plain = ["stic", "etic", "matic", "fic"].iter().any(|end| word.ends_with(end));
    word.len() > 8 && word.ends_with("ic") && !plain
}

/// A form in -ing that says what somebody does, instead of naming it: `making a boat`.
fn is_doing(tokens: &[Token<'_>], at: usize) -> bool {
    let named = |next: &Token<'_>| {
        next.gap != Gap::None || matches!(next.lower.as_str(), "is" | "was" | "has" | "of" | "and" | "or")
    };
    tokens[at].lower.ends_with("ing") && tokens[at].lower.len() > 5 && !tokens.get(at + 1).is_none_or(named)
}

/// The subject of a definition: `A planet is a body that …`.
fn is_explained(tokens: &[Token<'_>], at: usize) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.lower.as_str());
    let opens = at == 0 || (at == 1 && matches!(word(0), "a" | "an"));
    opens && matches!(word(at + 1), "is" | "are") && matches!(word(at + 2), "a" | "an" | "any" | "the")
}

fn listed_whole(name: &str) -> bool {
    name.contains(' ') && nouns::find(name).is_some_and(|noun| noun.common.and_then(Class::label).is_some())
}

fn is_plural(word: &str) -> bool {
    word.ends_with('s') && nouns::singular(word).is_some_and(|(one, _)| one != word && !one.ends_with('s'))
}

fn is_noun(word: &str) -> bool {
    nouns::singular(word).is_some_and(|(_, noun)| !noun.adjective && !noun.verb)
}

fn is_plain_adjective(word: &str) -> bool {
    nouns::find(word).is_some_and(|noun| noun.adjective || noun.relational)
}

/// What kinds of animals and plants are told apart by: `gray heron`.
fn is_colour_of_living(tokens: &[Token<'_>], at: usize) -> bool {
    let colour = matches!(
        tokens[at].lower.as_str(),
        "gray"
            | "grey"
            | "red"
            | "black"
            | "white"
            | "brown"
            | "green"
            | "blue"
            | "yellow"
            | "golden"
            | "common"
            | "western"
            | "eastern"
            | "northern"
            | "southern"
            | "giant"
            | "spotted"
            | "wild"
    );
    let living = |token: &Token<'_>| {
        let noun = nouns::singular(&token.lower).and_then(|(_, noun)| noun.common);
        matches!(noun, Some(Class::Label("Animal" | "Plant" | "Fungus")))
    };
    colour && tokens.iter().skip(at + 1).take(2).any(living)
}

fn made(tokens: &[Token<'_>], range: Range<usize>, name: String, class: Class) -> Mention {
    // A word for what people do is no person.
    let class = if matches!(class, Class::Label("Person" | "Scientist" | "Artist" | "Politician")) {
        Class::Label("Profession")
    } else {
        class
    };
    let form = super::names::written(tokens, &range);
    Mention { name, class: Some(class), sure: true, found_by: FoundBy::Phrase, form, tokens: range }
}
