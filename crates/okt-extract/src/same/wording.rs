//! Words that may stand for each other or be left out, each only between what was found to be safe.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::canon::{Canon, read};
use super::lexicon::list;
use super::surface::content;
use super::token::{Kind, Token, pause};
use super::{Move, Pair, PermittedDifference};

/// What may stand beside a wording.
#[derive(Debug, PartialEq)]
enum Neighbour {
    Anything,
    /// Nothing: a sentence begins here.
    Opens,
    /// Nothing more in the text.
    End,
    /// Any word that has not this form: `no_be`, `no_of`, `no_name`.
    No(Box<Neighbour>),
    /// `is` or `was` behind a word of a list.
    Being(u64),
    /// A number with what it counts.
    Measure,
    /// A noun in the plural.
    Plural,
    Article,
    /// A word with a capital.
    Name,
    /// `'s`.
    Owner,
    Number,
    /// A number, with or without what it counts.
    Amount,
    /// The same, but no year and no time.
    Count,
    /// `by 5 %`, `to $30`.
    Rate,
    Verb,
    /// `in 2019`, `on Monday`.
    When,
    /// `2019`, `May`.
    Time,
    /// `(the) war`.
    Event,
    /// `the site`: what is bought for money.
    Goods,
    /// A word of a list.
    Listed(u64),
    Word(String),
}

impl Neighbour {
    fn read(name: &str) -> Self {
        let listed = |name: &str| list::ALL.iter().find(|(text, _)| *text == name).map(|(_, list)| *list);
        if let Some(name) = name.strip_prefix("no_") {
            return Self::No(Box::new(Self::read(name)));
        }
        if let Some(list) = name.strip_prefix("being:").and_then(listed) {
            return Self::Being(list);
        }
        match name {
            "*" => Self::Anything,
            "opens" => Self::Opens,
            "end_of_text" => Self::End,
            "article" => Self::Article,
            "name" => Self::Name,
            "'s" => Self::Owner,
            "number" => Self::Number,
            "amount" => Self::Amount,
            "measure" => Self::Measure,
            "count" => Self::Count,
            "plural" => Self::Plural,
            "rate" => Self::Rate,
            "verb" => Self::Verb,
            "when" => Self::When,
            "time" => Self::Time,
            "event" => Self::Event,
            "goods" => Self::Goods,
            "auxiliary" => Self::Listed(list::AUXILIARIES),
            name => listed(name).map_or_else(|| Self::Word(name.to_owned()), Self::Listed),
        }
    }

    /// What every place may have, before and behind a wording.
    fn fits(&self, token: &Token) -> bool {
        match self {
            Self::Article => token.kind == Kind::Article,
            Self::Name => token.is_word() && token.has_capital(),
            Self::Owner => token.kind == Kind::Owner,
            Self::Number => token.kind == Kind::Number,
            Self::Amount => token.is_number(),
            Self::Measure => token.kind == Kind::Amount,
            Self::Plural => {
                let noun = token.is_word() && !token.has_capital() && !token.may_be_verb();
                noun && token.text.ends_with('s') && !token.text.ends_with("ss")
            }
            Self::Count => {
                let times = ["second", "day", "week", "month", "year"];
                token.is_number() && !token.is_time() && !times.iter().any(|time| token.text.ends_with(time))
            }
            Self::Verb => token.may_be_verb(),
            Self::Listed(list) => token.is_in(*list),
            Self::Word(word) => token.is(word),
            _ => false,
        }
    }

    fn stands_before(&self, text: &Canon, at: usize) -> bool {
        let pause = text.get(at).is_some_and(|token| token.pause != 0);
        match self {
            Self::Anything => true,
            Self::Opens => text.get(at).is_some_and(|token| token.opens),
            Self::No(other) => !other.stands_before(text, at),
            Self::Being(list) => {
                let be = text.back(at).is_some_and(|token| token.is_in(list::BE));
                !pause && be && at > 1 && text.tokens[at - 2].is_in(*list)
            }
            _ => !pause && text.back(at).is_some_and(|token| self.fits(token)),
        }
    }

    fn stands_behind(&self, text: &Canon, at: usize) -> bool {
        let token = text.get(at).filter(|token| token.pause == 0);
        let is = |at: usize, list: u64| text.get(at).is_some_and(|token| token.is_in(list));
        match self {
            Self::Anything => true,
            Self::End => text.get(at).is_none(),
            Self::No(other) => !other.stands_behind(text, at),
            Self::When => text.is_when(at),
            Self::Time => text.is_time(at),
            Self::Rate => token.is_some_and(|token| {
                let led = token.is_one_of(&["by", "to", "from"]);
                let share = |token: &Token| {
                    let units = [" percent", " usd", " eur", " gbp", " jpy"];
                    token.kind == Kind::Amount && units.iter().any(|unit| token.text.ends_with(unit))
                };
                share(token) || (led && text.get(at + 1).is_some_and(share))
            }),
            Self::Event => {
                let the = usize::from(token.is_some_and(|token| token.is("the")));
                is(at + the, list::EVENTS) && text.closes(at + the + 1)
            }
            Self::Goods => {
                let article = token.is_some_and(|token| token.kind == Kind::Article);
                article && (1..3).any(|ahead| is(at + ahead, list::GOODS) && text.closes(at + ahead + 1))
            }
            _ => token.is_some_and(|token| self.fits(token)),
        }
    }
}

/// Ways to say one thing.
struct Wording {
    before: Vec<Neighbour>,
    forms: Vec<Vec<Token>>,
    after: Vec<Neighbour>,
}

/// The wordings, and by the first word of each form where it is.
struct Wordings {
    all: Vec<Wording>,
    first: HashMap<String, Vec<(usize, usize)>>,
}

static WORDINGS: LazyLock<Wordings> =
    LazyLock::new(|| Wordings::read(include_str!("../../same/wordings.txt")));

impl Wordings {
    fn read(text: &str) -> Self {
        let mut wordings = Self { all: Vec::new(), first: HashMap::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut parts = line.split(" ; ");
            let (Some(before), Some(forms), Some(after)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let neighbours = |names: &str| names.split_whitespace().map(Neighbour::read).collect();
            let forms: Vec<Vec<Token>> = forms.split('|').filter_map(|form| read(form.trim())).collect();
            for (at, form) in forms.iter().enumerate() {
                if let Some(first) = form.first() {
                    let entry = wordings.first.entry(first.text.clone()).or_default();
                    entry.push((wordings.all.len(), at));
                }
            }
            wordings.all.push(Wording { before: neighbours(before), forms, after: neighbours(after) });
        }
        wordings
    }
}

impl Wording {
    /// Whether this form stands here, between what it may stand between.
    fn stands(&self, form: &[Token], text: &Canon, at: usize) -> bool {
        let Some(tokens) = text.tokens.get(at..at + form.len()) else { return false };
        let same = tokens.iter().zip(form).enumerate().all(|(place, (token, word))| {
            let case = if word.has_capital() { token.raw == word.raw } else { !token.is_name() };
            let number = word.kind == Kind::Number || word.kind == Kind::Ordinal;
            let whole = place == 0 || (token.pause == 0 && !token.joined);
            token.kind == word.kind && token.text == word.text && (case || number) && whole && !token.quoted
        });
        let next = text.get(at + form.len()).is_some_and(|token| token.joined);
        same && !next
            && !tokens[0].joined
            && self.before.iter().any(|neighbour| neighbour.stands_before(text, at))
            && self.after.iter().any(|neighbour| neighbour.stands_behind(text, at + form.len()))
    }
}

/// Moves that change or leave out words.
pub fn offers(pair: &Pair, i: usize, j: usize, out: &mut Vec<Move>) {
    let Some(x) = pair.a.get(i) else { return };
    let paused = |y: &Token| x.pause != y.pause && (i > 0 || j > 0);
    if let Some(y) = pair.b.get(j).filter(|y| !paused(y)) {
        for (line, at) in WORDINGS.first.get(&x.text).into_iter().flatten() {
            let wording = &WORDINGS.all[*line];
            let form = &wording.forms[*at];
            if !wording.stands(form, pair.a, i) {
                continue;
            }
            let others = wording
                .forms
                .iter()
                .filter(|other| *other != form && other.first().is_some_and(|first| first.text == y.text));
            let fitting = others.filter(|other| wording.stands(other, pair.b, j));
            out.extend(fitting.map(|other| Move {
                a: form.len(),
                b: other.len(),
                by: vec![PermittedDifference::Wording],
            }));
        }
        let small = [located(pair, i, j), lies(pair, i, j), agreement(pair, i, j), perfect(pair, i, j)];
        out.extend(small.into_iter().flatten());
    }
    out.extend([filler(pair, i, j), that(pair, i, j), repeated_in(pair, i, j)].into_iter().flatten());
}

/// `also`, `however`: they say how a fact goes with others, and nothing about it. Not where something is denied or limited.
fn filler(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, next) = (pair.a.get(i)?, pair.a.get(i + 1));
    let comma = next.is_some_and(|next| next.pause & pause::COMMA != 0);
    let plain = pair.a.plain && pair.b.plain;
    let free = match x.text.as_str() {
        "also" => plain && !next.is_some_and(Token::is_and),
        "however" => comma,
        "moreover" | "furthermore" | "additionally" => x.opens && comma,
        "too" => plain && next.is_none() && x.pause == pause::COMMA,
        _ => false,
    };
    if !free || x.quoted || x.joined {
        return None;
    }
    let Some(next) = next else {
        return (j == pair.b.tokens.len()).then(|| Move {
            a: 1,
            b: 0,
            by: vec![PermittedDifference::Filler],
        });
    };
    let y = pair.b.get(j)?;
    let mut by = content(pair, i + 1, j)?;
    // Commas around it come and go with it.
    let mut different = (x.pause | next.pause) ^ y.pause;
    if (x.pause | next.pause) & pause::COMMA != 0 {
        different &= !pause::COMMA;
    }
    by.push(PermittedDifference::Filler);
    (different == 0 || j == 0).then_some(Move { a: 2, b: 1, by })
}

/// `said (that) the`: not where `that` may point at something, as in `said that boy`.
fn that(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, next, y) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.b.get(j)?);
    let said = |text: &Canon, at: usize| text.back(at).is_some_and(|verb| verb.is_in(list::THAT));
    let clause = next.kind == Kind::Article
        || next.is_in(list::OWNERS)
        || next.is_one_of(&["he", "she", "it", "they", "we", "there"])
        || next.is_name();
    let calm = x.pause | next.pause | y.pause == 0;
    let mut by = content(pair, i + 1, j).filter(|_| x.is("that") && clause && calm)?;
    by.push(PermittedDifference::That);
    (said(pair.a, i) && said(pair.b, j)).then_some(Move { a: 2, b: 1, by })
}

/// Where something is, and not when it was found.
fn is_placed(text: &Canon, at: usize) -> bool {
    let preposition = text
        .get(at)
        .is_some_and(|token| token.is_one_of(&["in", "on", "at", "near", "between"]) && token.pause == 0);
    // Not `at war`, `in trouble`.
    let place = text.get(at + 1).is_some_and(|token| {
        let side = token.is_one_of(&["northern", "southern", "eastern", "western", "central"]);
        token.is_name() || token.kind == Kind::Article || side
    });
    preposition && place && !text.is_when(at)
}

/// `is (located) in`, `a village (located) in`.
fn located(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let x = pair.a.get(i).filter(|x| x.is_one_of(&["located", "situated"]) && x.pause == 0)?;
    let stands = |token: &Token| token.is_one_of(&["is", "are"]) || token.is_in(list::PLACES);
    let before = pair.a.back(i).is_some_and(stands) && pair.b.back(j).is_some_and(stands);
    let mut by = content(pair, i + 1, j).filter(|_| before && !x.quoted)?;
    by.push(PermittedDifference::Located);
    (is_placed(pair.a, i + 1) && is_placed(pair.b, j)).then_some(Move { a: 2, b: 1, by })
}

/// `the town lies in`, `the town is (located) in`.
fn lies(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    // `The town lies in`; but the fate of the town may lie in anything.
    let place =
        |text: &Canon, at: usize| at == 2 && text.tokens[0].is("the") && text.tokens[1].is_in(list::PLACES);
    let located = pair.b.get(j + 1).is_some_and(|token| token.is_one_of(&["located", "situated"]));
    let words = 1 + usize::from(located);
    let verbs = (x.is("lies") && y.is("is")) || (x.is("lie") && y.is("are"));
    let fits = verbs
        && place(pair.a, i)
        && place(pair.b, j)
        && is_placed(pair.a, i + 1)
        && is_placed(pair.b, j + words);
    fits.then(|| Move { a: 1, b: words, by: vec![PermittedDifference::Located] })
}

/// `the team is`, `the team are`. Of a word that is its own plural, it would say how many.
fn agreement(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    const FORMS: [(&str, &str); 3] = [("is", "are"), ("was", "were"), ("has", "have")];
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    let of_many = |text: &Canon, at: usize| text.back(at).is_some_and(|token| token.is_in(list::COLLECTIVE));
    let fits =
        FORMS.iter().any(|(one, many)| x.is(one) && y.is(many)) && of_many(pair.a, i) && of_many(pair.b, j);
    fits.then(|| Move { a: 1, b: 1, by: vec![PermittedDifference::Agreement] })
}

/// `has announced`, `announced`: what is done at one moment. Not with numbers, which may still grow.
fn perfect(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, verb, y) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.b.get(j)?);
    let calm = [pair.a, pair.b].iter().all(|text| text.plain && !text.ongoing);
    let counted = pair.a.tokens[i..].iter().any(|token| token.is_number() && !token.is_time());
    if !calm || counted || !x.is_one_of(&["has", "have"]) {
        return None;
    }
    let once =
        |token: Option<&Token>| token.is_some_and(|token| token.is_in(list::PUNCTUAL) && token.pause == 0);
    if once(Some(verb)) && y.text == verb.text {
        return Some(Move { a: 2, b: 1, by: vec![PermittedDifference::Perfect] });
    }
    let passive = verb.is("been") && once(pair.a.get(i + 2)) && y.is_one_of(&["was", "were"]);
    let same = passive
        && pair
            .b
            .get(j + 1)
            .is_some_and(|done| Some(&done.text) == pair.a.get(i + 2).map(|token| &token.text));
    same.then(|| Move { a: 3, b: 2, by: vec![PermittedDifference::Perfect] })
}

/// `in Oslo and (in) Bergen`, `in 1948 and (in) 1949`.
fn repeated_in(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, next, y) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.b.get(j)?);
    let same_kind = |one: &Token, other: &Token| {
        (one.is_name() && other.is_name()) || (one.is_time() && other.is_time() && one.kind == other.kind)
    };
    let first = i.checked_sub(2).and_then(|at| pair.a.get(at)).filter(|first| same_kind(first, next))?;
    let led = i.checked_sub(3).and_then(|at| pair.a.get(at)).is_some_and(|token| token.is("in"));
    let and =
        |text: &Canon, at: usize| text.back(at).is_some_and(|token| token.is("and") && token.pause == 0);
    let calm = x.pause | next.pause | y.pause | first.pause == 0;
    let fits = x.is("in")
        && led
        && calm
        && and(pair.a, i)
        && and(pair.b, j)
        && pair.a.links == 1
        && pair.a.closes(i + 2);
    let mut by = content(pair, i + 1, j).filter(|_| fits)?;
    by.push(PermittedDifference::Preposition);
    Some(Move { a: 2, b: 1, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_has_its_neighbours_and_at_least_two_forms() {
        let text = include_str!("../../same/wordings.txt");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(WORDINGS.all.len(), lines);
        for wording in &WORDINGS.all {
            assert!(wording.forms.len() > 1 && wording.forms.iter().all(|form| !form.is_empty()));
            assert!(!wording.before.is_empty() && !wording.after.is_empty());
        }
    }
}
