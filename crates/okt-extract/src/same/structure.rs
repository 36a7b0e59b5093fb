//! Phrases that are built in two ways: whose, which, in what order.

use super::canon::Canon;
use super::lexicon::list;
use super::token::{Kind, Token, pause};
use super::{Move, Pair, PermittedDifference};

pub fn offers(pair: &Pair, i: usize, j: usize, out: &mut Vec<Move>) {
    let (Some(x), Some(y)) = (pair.a.get(i), pair.b.get(j)) else { return };
    if x.pause != y.pause && (i > 0 || j > 0) {
        return;
    }
    let found = [
        genitive(pair, i, j),
        relative(pair, i, j),
        that_or_which(pair, i, j),
        running(pair, i, j),
        river(pair, i, j),
        province(pair, i, j),
        opened(pair, i, j),
        list_order(pair, i, j),
    ];
    out.extend(found.into_iter().flatten());
}

fn step(a: usize, b: usize, by: PermittedDifference) -> Move {
    Move { a, b, by: vec![by] }
}

/// Whether two stretches are written alike, with no pause inside of them.
fn alike(one: Option<&[Token]>, other: Option<&[Token]>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let calm = |tokens: &[Token]| tokens.iter().skip(1).all(|token| token.pause == 0);
    let same = |(x, y): (&Token, &Token)| {
        let capital = x.has_capital() == y.has_capital() || x.opens || y.opens;
        (x.kind, &x.text, x.quoted, x.joined) == (y.kind, &y.text, y.quoted, y.joined) && capital
    };
    one.len() == other.len() && calm(one) && calm(other) && one.iter().zip(other).all(same)
}

/// `the mayor of Lyon`, `Lyon's mayor`: only what there is one of, and only where the owner ends for certain.
fn genitive(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (a, b) = (pair.a, pair.b);
    a.get(i).filter(|x| x.is("the"))?;
    let led =
        a.get(i + 1).is_some_and(|token| token.is_in(list::BEFORE_OFFICE) || token.kind == Kind::Ordinal);
    let words = 1 + usize::from(led && a.get(i + 2).is_some_and(|token| token.is_in(list::SINGLE)));
    let owned = a.tokens.get(i + 1..i + 1 + words)?;
    let single = owned.last().is_some_and(|noun| noun.is_in(list::SINGLE));
    let calm = owned.iter().all(|token| token.pause == 0 && !token.is_name() && !token.joined);
    let of = i + 1 + words;
    if !single || !calm || !a.get(of)?.is("of") || a.get(of)?.pause != 0 {
        return None;
    }
    let the = usize::from(a.get(of + 1)?.is("the"));
    let place = of + 1 + the;
    let end = if a.get(place)?.has_capital() { a.name_end(place) } else { place + usize::from(the == 1) };
    let length = end.checked_sub(place).filter(|length| *length > 0)?;
    let times = ["year", "month", "week", "day", "season", "century"];
    if a.get(place)?.is_one_of(&times) {
        return None;
    }
    let is_noun = |token: &Token| token.is_word() && !token.may_be_verb() && !token.is_in(list::PREPOSITIONS);
    if !a.tokens[place..end].iter().all(|token| is_noun(token) || token.is("of")) || !ends_owner(a, end) {
        return None;
    }
    // On the other side: the owner, 's, and what is owned.
    let start = j + the;
    let article = the == 0 || b.get(j).is_some_and(|token| token.is("the"));
    let mark = b.get(start + length)?.kind == Kind::Owner;
    let after = start + length + 1;
    let same = alike(a.tokens.get(place..end), b.tokens.get(start..start + length))
        && alike(a.tokens.get(i + 1..of), b.tokens.get(after..after + words));
    let calm =
        a.tokens[place].pause == 0 && b.get(after)?.pause == 0 && (the == 0 || b.get(start)?.pause == 0);
    let free = b.back(j).is_none_or(|token| token.kind != Kind::Owner && !token.is_in(list::OWNERS));
    let fits = article && mark && same && calm && free && ends_owner(b, after + words);
    fits.then(|| step(end - i, after + words - j, PermittedDifference::Genitive))
}

/// Nothing follows that may belong to what stands before.
fn ends_owner(text: &Canon, at: usize) -> bool {
    text.get(at).is_none_or(|token| {
        let verb = token.is_in(list::AUXILIARIES | list::PAST | list::REPORT | list::PUNCTUAL | list::DONE);
        let stop = token.pause & (pause::STOP | pause::CLOSE) != 0;
        (verb && token.pause == 0) || stop || text.is_when(at)
    })
}

/// `which was released in`, `released in`; `who is the head`, `the head`.
fn relative(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, verb, done) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.a.get(i + 2)?);
    let y = pair.b.get(j)?;
    let after_noun = |text: &Canon, at: usize| {
        text.back(at).is_some_and(|token| {
            let other = token.may_be_verb() || token.is_in(list::PREPOSITIONS) || token.is_and();
            token.is_word() && !other
        })
    };
    let calm = verb.pause | done.pause == 0 && after_noun(pair.a, i) && after_noun(pair.b, j);
    if !x.is_one_of(&["which", "that", "who"])
        || !calm
        || y.text != done.text
        || y.kind != done.kind
        || y.is_name()
    {
        return None;
    }
    let follows =
        pair.a.get(i + 3).is_some_and(|token| token.pause == 0 && token.is_one_of(&["in", "on", "by", "at"]));
    // What can also be done by itself would be the verb of the sentence: the shop opened.
    let alone = done.is_one_of(&["opened", "formed", "launched"]);
    let past = verb.is_one_of(&["was", "were"]) && done.is_in(list::DONE) && !alone;
    let placed = verb.is_one_of(&["is", "are"]) && done.is_one_of(&["located", "situated"]);
    let links = pair.a.links + pair.b.links;
    let office = x.is("who") && x.pause == pause::COMMA && verb.is("is") && done.is("the") && links == 0;
    ((follows && (past || placed)) || office).then(|| step(3, 1, PermittedDifference::Relative))
}

/// `the bridge that collapsed`, `the bridge which collapsed`.
fn that_or_which(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    let stands = |text: &Canon, at: usize| {
        let noun = text.back(at).is_some_and(|token| {
            token.is_word() && !token.may_be_verb() && !token.is_in(list::PREPOSITIONS) && !token.is_and()
        });
        let verb = text
            .get(at + 1)
            .is_some_and(|token| token.pause == 0 && token.may_be_verb() && !token.text.ends_with("ing"));
        noun && verb && text.tokens[at].pause == 0
    };
    let fits = x.is("that") && y.is("which") && stands(pair.a, i) && stands(pair.b, j);
    fits.then(|| step(1, 1, PermittedDifference::Relative))
}

/// `the line that runs between`, `the line running between`: of what always does.
fn running(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    const FORMS: [(&str, &str); 4] =
        [("runs", "running"), ("connects", "connecting"), ("links", "linking"), ("contains", "containing")];
    let (x, verb, y) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.b.get(j)?);
    let form = FORMS.iter().any(|(verb_form, ing)| verb.is(verb_form) && y.is(ing));
    let noun = |text: &Canon, at: usize| {
        text.back(at).is_some_and(|token| {
            token.is_one_of(&["line", "road", "railway", "route", "canal", "bridge", "tunnel"])
        })
    };
    let fits =
        x.is_one_of(&["that", "which"]) && form && verb.pause == 0 && noun(pair.a, i) && noun(pair.b, j);
    fits.then(|| step(2, 1, PermittedDifference::Relative))
}

/// `the River Exe`, `the Exe River`; `the family Felidae`, `the Felidae family`.
fn river(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (kind, name) = (pair.a.get(i)?, pair.a.get(i + 1)?);
    let (other, noun) = (pair.b.get(j)?, pair.b.get(j + 1)?);
    let fits = match kind.text.as_str() {
        "river" | "genus" => true,
        "family" => name.text.ends_with("idae") || name.text.ends_with("aceae"),
        _ => false,
    };
    let named =
        name.is_name() && other.raw == name.raw && noun.text == kind.text && name.pause | noun.pause == 0;
    let plain = ![kind, name, other, noun].iter().any(|token| token.quoted || token.joined);
    let the = |text: &Canon, at: usize| text.back(at).is_some_and(|token| token.is("the"));
    let ends = |text: &Canon, at: usize| {
        text.get(at).is_none_or(|token| {
            token.pause != 0 || !(token.has_capital() || token.joined || token.kind == Kind::Owner)
        })
    };
    let whole = the(pair.a, i) && the(pair.b, j) && ends(pair.a, i + 2) && ends(pair.b, j + 2);
    (fits && named && plain && whole).then(|| step(2, 2, PermittedDifference::NameOrder))
}

/// `the province of Buenos Aires`, `(the) Buenos Aires Province`.
fn province(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (a, b) = (pair.a, pair.b);
    let kind = a.get(i + 1).filter(|kind| kind.is_one_of(&["province", "municipality"]))?;
    let start = i + 3;
    let end = a.name_end(start);
    let length = end.checked_sub(start).filter(|length| (1..=3).contains(length))?;
    let place = j + usize::from(b.get(j)?.is("the"));
    let noun = b.get(place + length)?;
    let words = a.get(i)?.is("the") && a.get(i + 2)?.is("of") && noun.text == kind.text;
    let calm = kind.pause | a.tokens[i + 2].pause | a.tokens[start].pause | noun.pause == 0;
    let names = alike(a.tokens.get(start..end), b.tokens.get(place..place + length))
        && !a.tokens[start..end].iter().any(|token| token.is("of"));
    let before = b.back(j).is_none_or(|token| !token.has_capital() || token.opens);
    let ends = |text: &Canon, at: usize| {
        text.get(at).is_none_or(|token| {
            !token.is_and() && token.kind != Kind::Owner && (token.pause != 0 || !token.has_capital())
        })
    };
    let inner = place == j || b.tokens[place].pause == 0;
    let fits = words && calm && names && before && inner && ends(a, end) && ends(b, place + length + 1);
    fits.then(|| step(end - i, place + length + 1 - j, PermittedDifference::NameOrder))
}

/// `was opened in 1962`, `opened in 1962`. Not `closed`: on Monday the shop was closed, and did not close.
fn opened(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let (x, verb, y) = (pair.a.get(i)?, pair.a.get(i + 1)?, pair.b.get(j)?);
    let same = verb.is_one_of(&["opened", "formed"]) && y.text == verb.text && verb.pause == 0;
    let when = pair.a.is_when(i + 2) && pair.b.is_when(j + 1);
    let subject = |text: &Canon, at: usize| {
        text.back(at).is_some_and(|token| token.is_in(list::STRUCTURES | list::ORGANISATIONS))
    };
    let when = when && subject(pair.a, i) && subject(pair.b, j);
    (x.is_one_of(&["was", "were"]) && same && when).then(|| step(2, 1, PermittedDifference::Opened))
}

/// What stands side by side in any order. One list in the text, and nothing that counts or ranks.
fn list_order(pair: &Pair, i: usize, j: usize) -> Option<Move> {
    let loose = [pair.a, pair.b].iter().all(|text| text.links == 1 && !text.ordered);
    let (one, other) = (List::read(pair.a, i).filter(|_| loose)?, List::read(pair.b, j)?);
    let sorted = |list: &List| {
        let mut items = list.items.clone();
        items.sort();
        items
    };
    let fits = one.link == other.link && one.items != other.items && sorted(&one) == sorted(&other);
    fits.then(|| step(one.end - i, other.end - j, PermittedDifference::ListOrder))
}

struct List {
    items: Vec<String>,
    link: String,
    end: usize,
}

impl List {
    fn read(text: &Canon, at: usize) -> Option<Self> {
        let names = text.get(at)?.has_capital();
        let mut items = Vec::new();
        let mut lengths = Vec::new();
        let mut place = at;
        let link = loop {
            let end = Self::item(text, place, names)?;
            items.push(
                text.tokens[place..end].iter().map(|token| token.raw.as_str()).collect::<Vec<_>>().join(" "),
            );
            lengths.push(end - place);
            place = end;
            let next = text.get(place)?;
            if next.is("and") || next.is("or") {
                // `A, and B` may be two clauses.
                let calm = next.pause == 0 || (next.pause == pause::COMMA && items.len() > 1);
                if !calm {
                    return None;
                }
                break next.text.clone();
            }
            if next.pause != pause::COMMA || items.len() > 8 {
                return None;
            }
        };
        let start = place + 1;
        let end = Self::item(text, start, names).filter(|_| text.tokens[start].pause == 0)?;
        items.push(
            text.tokens[start..end].iter().map(|token| token.raw.as_str()).collect::<Vec<_>>().join(" "),
        );
        lengths.push(end - start);
        // `Tom and Ann Lee`: whose name is Lee?
        let even = lengths.iter().all(|length| *length == 1) || lengths.iter().all(|length| *length > 1);
        (even && Self::stands(text, at, end, names)).then_some(Self { items, link, end })
    }

    /// Where the item that begins here ends.
    fn item(text: &Canon, at: usize, names: bool) -> Option<usize> {
        let first = text.get(at)?;
        if names {
            let end = text.name_end(at);
            let tokens = text.tokens.get(at..end).filter(|tokens| (1..=4).contains(&tokens.len()))?;
            let calm = tokens.iter().all(|token| !token.is("of") && !token.quoted && !token.joined);
            return calm.then_some(end);
        }
        let small = list::PREPOSITIONS | list::PRONOUNS | list::OWNERS | list::SCOPE;
        let noun = first.is_word() && !first.has_capital() && !first.may_be_verb() && !first.is_in(small);
        (noun && !first.is_and() && !first.quoted && !first.joined).then_some(at + 1)
    }

    /// Whether what stands around it leaves the order open.
    fn stands(text: &Canon, at: usize, end: usize, names: bool) -> bool {
        let ends = text.get(end).is_none();
        let joined = text.get(end).is_some_and(|token| token.joined || token.kind == Kind::Owner);
        let linked = text.back(at).is_some_and(|token| token.is_in(list::LINKING) || token.is("between"));
        let by = text.back(at).is_some_and(|token| token.is_one_of(&["by", "with"]));
        let opens = text.tokens[at].opens;
        let verb = text.get(end).is_some_and(|token| token.is_in(list::TOGETHER) && token.pause == 0);
        let calm = text.tokens[at].pause == 0 && !joined;
        // `Ann and Bob were 5, 6`: what follows may be a list in the same order.
        if text.tokens[end..].iter().any(|token| token.pause != 0) {
            return false;
        }
        if !names {
            return calm && linked && ends;
        }
        (opens && verb) || (calm && (linked || by) && (ends || text.is_when(end)))
    }
}
