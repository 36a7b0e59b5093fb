//! Proper names: runs of words with capitals.

use std::collections::HashMap;
use std::ops::Range;

use okt_model::FoundBy;

use super::evidence;
use super::kinds::{self, Kind};
use super::nouns::{self, Class};
use super::stop;
use super::tokens::{Gap, Token};
use super::{Language, Mention};

/// The longest name, in words. What is longer is a heading.
const LONGEST: usize = 8;

/// How often each word of a source is written with and without a capital, where nothing asks for one.
#[derive(Default)]
pub struct Seen(HashMap<String, (u32, u32)>);

impl Seen {
    pub fn add(&mut self, tokens: &[Token<'_>]) {
        for token in tokens.iter().filter(|token| !token.first) {
            let (capital, small) = self.0.entry(token.lower.clone()).or_default();
            *(if token.is_capital() { capital } else { small }) += 1;
        }
    }

    fn is_name(&self, word: &str) -> bool {
        self.0.get(word).is_some_and(|(capital, small)| capital > small)
    }

    fn is_common(&self, word: &str) -> bool {
        self.0.get(word).is_some_and(|(capital, small)| small >= capital)
    }
}

/// The names of a fact, from left to right.
pub fn names(tokens: &[Token<'_>], seen: &Seen, language: Language) -> Vec<Mention> {
    let capitals = tokens.iter().filter(|token| token.is_capital() && !token.is_initial()).count();
    // A heading in capitals says nothing about names.
    if capitals > 6 && capitals * 4 > tokens.len() * 3 {
        return Vec::new();
    }
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(range) = span(tokens, at, language) else {
            at += 1;
            continue;
        };
        at = range.end;
        names.extend(mention(tokens, range, seen, language));
    }
    names
}

/// The run of capitals that begins at a word.
fn span(tokens: &[Token<'_>], start: usize, language: Language) -> Option<Range<usize>> {
    // `Boston-based`, but neither `Wi-Fi` nor `X-ray`.
    let compound = |token: &Token<'_>| {
        token
            .text
            .rsplit_once('-')
            .is_some_and(|(begin, end)| begin.len() > 1 && end.starts_with(char::is_lowercase))
    };
    let opens = |token: &Token<'_>| {
        token.is_capital() && !compound(token) && !token.is_number() && !stop::is_calendar(&token.lower)
    };
    let first = &tokens[start];
    // `May` and `March` may begin a name, but a date is likelier.
    if !opens(first) || (language == Language::English && ends_name(first) && !first.is_short_form()) {
        return None;
    }
    let mut end = start + 1;
    // A Latin name in brackets: `(Cornu aspersum)`.
    let closes = tokens.get(start + 2).is_none_or(|after| after.gap != Gap::None);
    if first.gap == Gap::Open
        && closes
        && tokens.get(end).is_some_and(|next| {
            next.gap == Gap::None
                && !next.is_capital()
                && !next.is_stop()
                && nouns::singular(&next.lower).is_none()
        })
    {
        return Some(start..end + 1);
    }
    while end < tokens.len() && !tokens[end - 1].possessive && end - start < LONGEST {
        let next = &tokens[end];
        if next.gap != Gap::None {
            break;
        }
        let in_number = next.is_number() && next.text.len() <= 3 && !is_measured(tokens.get(end + 1));
        let joined =
            opens(next) && !(language == Language::English && ends_name(next) && next.lower.len() > 2);
        if joined || in_number {
            end += 1;
            continue;
        }
        match bridge(tokens, start, end) {
            Some(after) => end = after + 1,
            None => break,
        }
    }
    Some(start..end)
}

/// No name has it, not even with a capital.
fn ends_name(token: &Token<'_>) -> bool {
    token.is_stop() && !stop::is_quality(&token.lower)
}

/// Where a name goes on behind a small word: `Bay of Fundy`, `Karl von Frisch`.
fn bridge(tokens: &[Token<'_>], start: usize, at: usize) -> Option<usize> {
    const PARTICLES: [&str; 22] = [
        "de", "la", "von", "van", "der", "den", "du", "del", "di", "da", "al", "bin", "ibn", "le", "dos",
        "das", "ten", "ter", "zu", "des", "&", "el",
    ];
    let goes_on = |at: usize| {
        tokens
            .get(at)
            .is_some_and(|next| next.gap == Gap::None && next.is_capital() && !stop::is_calendar(&next.lower))
    };
    let word = tokens[at].lower.as_str();
    if PARTICLES.contains(&word) {
        let second = tokens
            .get(at + 1)
            .is_some_and(|next| PARTICLES.contains(&next.lower.as_str()) && next.gap == Gap::None);
        let after = at + 1 + usize::from(second);
        return goes_on(after).then_some(after);
    }
    // `Securities and Exchange Commission`.
    if word == "and" {
        let begin = written(tokens, &(start..at + 1)).to_lowercase();
        return (goes_on(at + 1) && nouns::goes_on(&begin)).then_some(at + 1);
    }
    if word != "of" {
        return None;
    }
    let head = &tokens[at - 1].lower;
    let common = nouns::singular(head)
        .is_some_and(|(_, noun)| noun.common.is_some() && noun.name.and_then(Class::label).is_none());
    let the = tokens.get(at + 1).is_some_and(|next| next.lower == "the" && next.gap == Gap::None);
    let after = at + 1 + usize::from(the);
    // `Bank of England` and `Pytheas of Massalia`, but neither `Solberg of the Line` nor `Ann Lee of Leeds`.
    let unknown =
        at - start == 1 && !the && nouns::find(head).is_none_or(|noun| noun.name.is_none() && !noun.given);
    ((common || unknown) && goes_on(after)).then_some(after)
}

/// `Apollo 11 landed`, but not `Reading 40 milligrams`.
fn is_measured(next: Option<&Token<'_>>) -> bool {
    next.is_some_and(|next| {
        let unit = next.lower.chars().count() < 4;
        let many = nouns::singular(&next.lower).is_some_and(|(one, _)| one != next.lower);
        next.gap == Gap::None && !next.is_capital() && !next.is_stop() && (unit || many)
    })
}

/// `General Motors` and `General Assembly` are no generals.
fn is_general_thing(tokens: &[Token<'_>], range: &Range<usize>) -> bool {
    let last = &tokens[range.end - 1].lower;
    tokens[range.start].lower == "general"
        && nouns::find(last).is_none_or(|noun| !noun.given && !noun.name.is_some_and(kinds::is_person))
        && (nouns::singular(last).is_some() || last == "electric")
}

fn mention(
    tokens: &[Token<'_>],
    mut range: Range<usize>,
    seen: &Seen,
    language: Language,
) -> Option<Mention> {
    let mut titled = None;
    while range.len() > 1
        && let Some(kind) = kinds::title(&tokens[range.start].lower)
        && !is_general_thing(tokens, &range)
    {
        titled = Some(kind);
        range.start += 1;
    }
    let offices = &tokens[range.start..range.end.saturating_sub(1).max(range.start)];
    if let Some(last) =
        offices.iter().rposition(|token| kinds::is_office(&token.lower)).filter(|last| range.len() - last > 2)
    {
        titled = Some(Class::Label("Person"));
        range.start += last + 1;
    }
    // The first word of a sentence has a capital anyway.
    if tokens[range.start].first && !leads(tokens, &range, seen, language) {
        range.start += 1;
        if range.is_empty() || !tokens[range.start].is_capital() {
            return None;
        }
    }
    let mut end = range.end;
    while range.len() > 1 && kinds::is_company_ending(&tokens[range.end - 1].lower) {
        titled = titled.or(Some(Class::Label("Company")));
        range.end -= 1;
    }
    if range.len() == 1 && !stands_alone(tokens, &range, language) {
        return None;
    }
    let tail = tail(tokens, end, range.start);
    if let Some((after, _)) = tail {
        (range.end, end) = (after, after);
    }
    let text = written(tokens, &range);
    let kind = tail
        .map(|(_, class)| class)
        .or(titled)
        .map_or_else(|| kinds::of_name(tokens, &range), |class| Kind { class: Some(class), sure: true });
    let noun = nouns::find(&text.to_lowercase());
    if noun.is_some_and(|noun| noun.name == Some(Class::Never)) && tokens[range.start].is_short_form() {
        return None;
    }
    let known = noun.and_then(|noun| noun.means);
    // `it` is no `IT`, and `us` no `US`.
    let means = known.filter(|_| text.len() > 3 || tokens[range.start].is_short_form());
    // `APIs` are more than one `API`, and `Americans` more than one of them.
    let one =
        text.strip_suffix('s').filter(|one| one.chars().count() > 1 && one.chars().all(char::is_uppercase));
    let many = kinds::one_of(&text);
    if one.is_some_and(|one| {
        nouns::find(&one.to_lowercase()).is_some_and(|noun| noun.name == Some(Class::Never))
    }) {
        return None;
    }
    Some(Mention {
        name: means.or(one).or(many.map(|(one, _)| one)).map_or_else(|| text.clone(), str::to_owned),
        class: many.map(|(_, class)| class).or(kind.class),
        sure: kind.sure || many.is_some(),
        found_by: FoundBy::Name,
        form: text,
        tokens: range.start..end,
    })
}

/// Whether the first word of a sentence belongs to the name that it begins.
fn leads(tokens: &[Token<'_>], range: &Range<usize>, seen: &Seen, language: Language) -> bool {
    let first = &tokens[range.start];
    if first.is_short_form() || first.is_initial() || first.has_digit() {
        return true;
    }
    let word = first.lower.as_str();
    // `BlockFi`.
    if first.text.chars().skip(1).any(char::is_uppercase) && first.text.contains(char::is_lowercase) {
        return true;
    }
    if range.len() > 1 {
        let whole = written(tokens, range).to_lowercase();
        let known = nouns::find(&whole).is_some_and(|noun| noun.name.is_some());
        // An article of another language is short.
        let article = language != Language::English && word.chars().count() <= 3;
        let begin = written(tokens, &(range.start..range.start + 2)).to_lowercase();
        let begin_known = nouns::find(&begin).is_some();
        let ordinary = seen.is_common(word) && !seen.is_name(word) && nouns::singular(word).is_none();
        return known || !(article || ordinary || (stop::is_quality(word) && !begin_known));
    }
    let known = nouns::find(word).is_some_and(|noun| noun.name.and_then(Class::label).is_some());
    if seen.is_name(word) || (known && evidence::is_named_thing(tokens, range.end)) {
        return true;
    }
    if seen.is_common(word) || language != Language::English {
        return false;
    }
    nouns::find(word).is_some_and(|noun| {
        let common =
            noun.common.is_some_and(|class| class.label().is_some()) || noun.adjective || noun.verb_too;
        noun.name.and_then(Class::label).is_some() && !common
    })
}

/// Whether one word is a name by itself.
fn stands_alone(tokens: &[Token<'_>], range: &Range<usize>, language: Language) -> bool {
    let token = &tokens[range.start];
    if token.text.chars().filter(|c| c.is_alphanumeric()).count() < 2 || token.is_initial() {
        return false;
    }
    if language == Language::English && stop::is_quality(&token.lower) {
        return false;
    }
    let noun = nouns::find(&token.lower);
    let named = noun.is_some_and(|noun| noun.name.and_then(Class::label).is_some());
    if language == Language::German {
        // Every noun has a capital there.
        return named || token.is_short_form() || (token.has_digit() && token.text.len() > 2);
    }
    if language != Language::English {
        return true;
    }
    // People and languages by the name of a country, before what they do: `British engineers`.
    let next = tokens.get(range.end).filter(|next| next.gap == Gap::None && !token.possessive);
    let before_noun = next.is_some_and(|next| {
        !next.is_capital()
            && !next.is_stop()
            && nouns::singular(&next.lower).is_some_and(|(_, noun)| !noun.verb)
    });
    let demonym = noun.is_some_and(|noun| {
        noun.adjective || matches!(noun.name, Some(Class::Label("Ethnic group" | "Language")))
    });
    let adjective = next.is_some_and(|next| {
        !next.is_capital()
            && !next.is_stop()
            && !next.has_digit()
            && !["s", "ed"].iter().any(|end| next.lower.ends_with(end))
    });
    let ending = ["ian", "ish", "ese", "ean", "ican"].iter().any(|end| token.lower.ends_with(end));
    if ((before_noun || adjective) && demonym)
        || (ending && next.is_some_and(|next| !next.is_capital() && !next.is_stop()))
    {
        return false;
    }
    // A word that could stand in any text is no name because somebody gave it a capital.
    let generic = !named
        && noun.and_then(|noun| noun.common).or_else(|| nouns::singular(&token.lower)?.1.common).is_some_and(
            |class| class.label().is_none() || kinds::is_named(class) || kinds::is_person(class),
        );
    !generic || token.is_short_form() || kinds::beside(tokens, range).is_some()
}

/// What a name with an article takes in of the common nouns behind it: `the Rance tidal power station`.
fn tail(tokens: &[Token<'_>], at: usize, start: usize) -> Option<(usize, Class)> {
    let article = start.checked_sub(1).is_some_and(|before| tokens[before].lower == "the");
    if !article || tokens[at - 1].possessive {
        return None;
    }
    let run = tokens[at..].iter().take_while(|token| {
        token.gap == Gap::None && !token.is_capital() && !token.is_number() && !token.is_stop()
    });
    let run = run.count().min(4);
    (1..=run).rev().find_map(|length| {
        let words: Vec<&str> = tokens[at..at + length].iter().map(|token| token.lower.as_str()).collect();
        let known = |from: usize| {
            nouns::find(&words[from..].join(" ")).filter(|noun| !noun.verb_too).and_then(|noun| noun.common)
        };
        let class = (0..length).find_map(known).filter(|class| kinds::takes_in(*class))?;
        let modifiers = words[..length - 1]
            .iter()
            .all(|word| nouns::find(word).is_some_and(|noun| noun.common.is_some() || noun.relational));
        modifiers.then_some((at + length, class))
    })
}

/// The words of a range with one space between them.
pub fn written(tokens: &[Token<'_>], range: &Range<usize>) -> String {
    tokens[range.clone()].iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}
