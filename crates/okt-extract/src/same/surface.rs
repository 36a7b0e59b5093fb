//! What is written differently and means the same: case, commas, quotation marks, hyphens, articles.

use super::canon::Canon;
use super::lexicon::{lexicon, list};
use super::token::{Kind, Token, pause};
use super::{Move, Pair, PermittedDifference};

/// Whether both go on with the same, and what was permitted for it.
pub fn equal(pair: &Pair, i: usize, j: usize) -> Option<Vec<PermittedDifference>> {
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    let mut by = content(pair, i, j)?;
    // What opens a text has no pause before it.
    let paused = (i > 0 || j > 0) && x.pause != y.pause;
    if paused {
        by.push(pauses(pair, i, j)?);
    }
    Some(by)
}

/// The same but for the punctuation before it.
pub fn content(pair: &Pair, i: usize, j: usize) -> Option<Vec<PermittedDifference>> {
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    if x.kind != y.kind || x.text != y.text {
        return None;
    }
    let mut by = Vec::new();
    let hyphen = |token: &Token| token.kind == Kind::Amount && token.raw.contains('-');
    if x.joined != y.joined || hyphen(x) != hyphen(y) {
        if !(is_measured(pair.a, i) && is_measured(pair.b, j)) {
            return None;
        }
        by.push(PermittedDifference::Hyphen);
    }
    if x.quoted != y.quoted {
        let (text, at) = if x.quoted { (pair.a, i) } else { (pair.b, j) };
        let small = x.is_one_of(&["of", "the", "and", "for", "a", "in", "on", "to", "at"]) && x.raw == y.raw;
        let title = small || (x.is_word() && x.has_capital() && y.has_capital());
        if !title || !is_title(text, at) {
            return None;
        }
        by.push(PermittedDifference::Quotes);
    }
    if !matches!(x.kind, Kind::Word | Kind::Article) && titled(x) != titled(y) {
        return None;
    }
    match x.kind {
        Kind::Number | Kind::Ordinal if x.raw != y.raw => by.push(PermittedDifference::Number),
        Kind::Amount if x.raw != y.raw => by.push(PermittedDifference::Amount),
        Kind::Date | Kind::Clock if x.raw != y.raw => by.push(PermittedDifference::Date),
        Kind::Word | Kind::Article if x.raw != y.raw => by.extend(word(pair, i, j)?),
        _ => {}
    }
    if x.contracted != y.contracted {
        by.push(PermittedDifference::Contraction);
    }
    Some(by)
}

/// `a 5-year-old`: one thing, so that the number can't count such things.
fn is_measured(text: &Canon, at: usize) -> bool {
    let amount = if text.tokens[at].kind == Kind::Amount { at } else { at.saturating_sub(1) };
    let fits = amount == at || text.tokens[at].is_in(list::MEASURES);
    fits && text.tokens[amount].kind == Kind::Amount && text.back(amount).is_some_and(|token| token.is("a"))
}

/// Whether the quotation marks around this are those of a title, and do not call in doubt what is between them.
fn is_title(text: &Canon, at: usize) -> bool {
    let start = (0..=at).rev().find(|place| !text.tokens[*place].quoted);
    let named = |token: &Token| {
        token.is_in(list::WORKS) || token.is_one_of(&["called", "named", "titled", "entitled"])
    };
    start.is_some_and(|start| named(&text.tokens[start]))
}

/// Whether a number is written with the capital of a name: the Second Division is not the second division.
fn titled(token: &Token) -> bool {
    let parts = token.raw.split(' ').skip(usize::from(token.opens));
    let is = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    let month = token.kind == Kind::Date;
    parts.into_iter().any(is) && !month
}

/// A word that is written in two ways.
fn word(pair: &Pair, i: usize, j: usize) -> Option<Vec<PermittedDifference>> {
    let (x, y) = (&pair.a.tokens[i], &pair.b.tokens[j]);
    let mut by = Vec::new();
    let (small, other) = (x.raw.to_lowercase(), y.raw.to_lowercase());
    if small != other {
        // Of a short name, or one that a sentence begins with, an accent may be all there is: Rosé and Rose.
        let name = x.has_capital() && !(small.is_ascii() && other.is_ascii());
        if name && (x.opens || y.opens || x.text.len() < 5) {
            return None;
        }
        by.push(PermittedDifference::Spelling);
    }
    let all_capitals = |token: &Token| {
        token.raw.chars().count() > 1 && !token.raw.chars().any(char::is_lowercase) && token.has_capital()
    };
    if x.has_capital() == y.has_capital() && all_capitals(x) == all_capitals(y) {
        return Some(by);
    }
    by.push(PermittedDifference::Case);
    if all_capitals(x) != all_capitals(y) {
        let acronym = x.is_in(list::ACRONYMS) && x.has_capital() && y.has_capital();
        return acronym.then_some(by);
    }
    let (large, small) =
        if x.has_capital() { ((pair.a, i), (pair.b, j)) } else { ((pair.b, j), (pair.a, i)) };
    case_is_free(large, small).then_some(by)
}

/// Whether the capital of one of the two says nothing.
fn case_is_free((text, at): (&Canon, usize), (other, place): (&Canon, usize)) -> bool {
    let token = &text.tokens[at];
    if token.opens {
        let common = list::PREPOSITIONS | list::PRONOUNS | list::OWNERS | list::AUXILIARIES | list::OFFICES;
        return token.kind == Kind::Article
            || token.is_in(common | list::BEFORE_OFFICE | list::CALLINGS | list::WORKS)
            || token.is_one_of(&["police", "parliament", "this", "these", "some", "all", "both"]);
    }
    if token.is_in(list::OFFICES_CASE) {
        return !token.is("prime") || text.get(at + 1).is_some_and(|next| next.is("minister"));
    }
    // `Balkan Province`, `Lake Orta`, `Republic of Dagestan`: the name is beside it in both.
    let beside = |text: &Canon, at: usize| {
        let of = usize::from(text.get(at + 1).is_some_and(|next| next.is("of")));
        let name = |token: Option<&Token>| {
            token.filter(|token| token.is_word() && token.has_capital()).map(|token| token.raw.clone())
        };
        (name(text.back(at)), name(text.get(at + 1 + of)))
    };
    let ((before, after), (other_before, other_after)) = (beside(text, at), beside(other, place));
    let named = (before.is_some() && before == other_before) || (after.is_some() && after == other_after);
    let article = [text.back(at), other.back(place)].into_iter().flatten().any(|token| token.is("a"));
    token.is_in(list::KINDS) && named && !article
}

/// Punctuation that one text has and the other has not.
fn pauses(pair: &Pair, i: usize, j: usize) -> Option<PermittedDifference> {
    let (x, y) = (pair.a.get(i)?, pair.b.get(j)?);
    let links = pair.a.links + pair.b.links;
    match x.pause ^ y.pause {
        // A dash for a comma, where no list can come of it.
        both if both == pause::COMMA | pause::DASH && links == 0 => {
            (x.pause & both != 0 && y.pause & both != 0).then_some(PermittedDifference::Comma)
        }
        pause::COMMA => comma_is_free(pair, i, j).then_some(PermittedDifference::Comma),
        _ => None,
    }
}

fn comma_is_free(pair: &Pair, i: usize, j: usize) -> bool {
    let plain = pair.a.plain && pair.b.plain;
    [(pair.a, i), (pair.b, j)].into_iter().all(|(text, at)| {
        let (Some(token), Some(before)) = (text.get(at), text.back(at)) else { return false };
        if token.is_in(list::CLAUSE | list::REPORT)
            || before.is_in(list::REPORT)
            || token.is_one_of(&["no", "yes"])
        {
            return false;
        }
        if token.is_and() {
            return ends_list(text, at) || (plain && joins_clauses(text, at));
        }
        let leads = |token: &Token| {
            token.is_in(list::PREPOSITIONS) || token.is_one_of(&["and", "early", "late", "year"])
        };
        let led = at > 1 && leads(&text.tokens[at - 2]);
        (led && around_time(before, token)) || ends_lead(text, at) || names_office(text, at, pair)
    })
}

/// `In 2019, sales rose`; `in Leeds, 5 May 2021`. Before a number a comma may say what it counts.
fn around_time(before: &Token, token: &Token) -> bool {
    // `On Sunday Times reporters`.
    let weekday = before.is_word() && token.has_capital();
    let after = before.is_time() && !token.is_and() && !token.may_be_verb() && !weekday;
    let at = token.kind == Kind::Date && before.is_name();
    (after || at) && !token.is_number()
}

/// After a phrase that opens the text, if what follows can't be part of it: `During the storm, two bridges`.
fn ends_lead(text: &Canon, at: usize) -> bool {
    let first = text.get(0).is_some_and(|first| {
        first.is_one_of(&[
            "in", "on", "at", "during", "since", "by", "from", "for", "under", "within", "despite",
        ])
    });
    let follows = text.get(at).is_some_and(|token| {
        token.kind == Kind::Article
            || token.is_one_of(&["he", "she", "it", "they", "we", "there"])
            || token.is_in(list::OWNERS)
    });
    let simple = |token: &Token| !token.may_be_verb() && !token.is_and() && token.pause == 0;
    let whole = text.back(at).is_some_and(|token| !token.is_in(list::PREPOSITIONS));
    first && whole && follows && (2..=7).contains(&at) && text.tokens[1..at].iter().all(simple)
}

/// The comma before the last of at least three: `wolves, bears(,) and lynx`. All must be of a kind, so that the first can't be
/// what the others are: `his teachers, Ann and Bob`.
fn ends_list(text: &Canon, at: usize) -> bool {
    let found = (at.saturating_sub(4)..at).rev().find(|place| text.tokens[*place].pause != 0);
    let Some(start) = found.filter(|start| *start > 0) else { return false };
    let (Some(first), Some(next)) = (text.back(start), text.get(at + 1)) else { return false };
    let items = [first, &text.tokens[start], next];
    let comma = text.tokens[start].pause == pause::COMMA;
    let words = items.iter().all(|item| item.is_word() && !item.is_in(list::OWNERS | list::PREPOSITIONS));
    let names = items.iter().filter(|item| item.has_capital()).count();
    let verbs = text.tokens[start..at].iter().any(Token::may_be_verb) || next.may_be_verb();
    // `his sons, lawyers and bankers`.
    let bare = first.has_capital()
        || text.back(start - 1).is_none_or(|token| token.may_be_verb() || token.is_in(list::PREPOSITIONS));
    comma && bare && words && !verbs && (names == 0 || names == 3) && next.pause == 0
}

/// `… launched the probe, and the probe reached Mars`.
fn joins_clauses(text: &Canon, at: usize) -> bool {
    let next = text
        .get(at + 1)
        .is_some_and(|next| next.kind == Kind::Article || next.is_one_of(&["he", "she", "it", "they", "we"]));
    let verb = |tokens: &[Token]| tokens.iter().any(Token::may_be_verb);
    let calm = text.tokens.iter().enumerate().all(|(place, token)| place == at || token.pause == 0);
    next && calm && text.links == 1 && verb(&text.tokens[..at]) && verb(&text.tokens[at..])
}

/// `the prime minister, Ida Holm, visited`: around the name of who holds an office.
fn names_office(text: &Canon, at: usize, pair: &Pair) -> bool {
    let links = pair.a.links + pair.b.links;
    let is_office = |token: &Token| token.is_in(list::CALLINGS) && token.is_word();
    let name = |at: usize| text.get(at).is_some_and(Token::is_name);
    // A comma before the name has its like behind it.
    let comma = |at: usize| text.get(at).is_some_and(|token| token.pause & pause::COMMA != 0);
    let paired = comma(at) == comma(text.name_end(at));
    let opens = text.back(at).is_some_and(is_office) && name(at) && paired;
    let mut start = at;
    while start > 0 && name(start - 1) && (start == at || text.tokens[start].pause == 0) {
        start -= 1;
    }
    // The closing comma: before it a name, and before that the office.
    let closes =
        start < at && text.back(start).is_some_and(is_office) && text.get(at).is_some_and(Token::may_be_verb);
    links == 0 && (opens || closes)
}

/// Moves that leave out an article or close up a word.
pub fn offers(pair: &Pair, i: usize, j: usize, out: &mut Vec<Move>) {
    let Some(x) = pair.a.get(i) else { return };
    if x.is("the")
        && x.kind == Kind::Article
        && let Some(by) = without_article(pair, i, j)
    {
        out.push(Move { a: 2, b: 1, by });
    }
    let (Some(next), Some(y)) = (pair.a.get(i + 1), pair.b.get(j)) else { return };
    let joined = next.joined
        && x.is_word()
        && next.is_word()
        && y.is_word()
        && x.pause == y.pause
        && x.quoted == y.quoted;
    let closed =
        joined && lexicon().has(list::CLOSED, &y.text) && format!("{}{}", x.text, next.text) == y.text;
    if closed && !next.has_capital() && (x.has_capital() == y.has_capital()) {
        out.push(Move { a: 2, b: 1, by: vec![PermittedDifference::Hyphen] });
    }
}

/// `the` and what follows it, and the same without `the`.
fn without_article(pair: &Pair, i: usize, j: usize) -> Option<Vec<PermittedDifference>> {
    let (article, y) = (pair.a.get(i)?, pair.b.get(j)?);
    let mut by = content(pair, i + 1, j)?;
    if pair.a.get(i + 1)?.pause != 0 || (article.pause != y.pause && (i > 0 || j > 0)) {
        return None;
    }
    by.push(PermittedDifference::Article);
    let free = is_named(pair.a, i + 1)
        || is_office_of(pair.a, i)
        || is_called(pair.a, i + 1)
        || is_institution(pair.a, i);
    // Two of a kind: with the article before each they are two, without it may be one.
    let linked = pair.a.back(i).is_some_and(Token::is_and);
    (free && !linked).then_some(by)
}

/// The name of an institution or of a region: `the Home Office`, `the Bank of England`, `the EU`, `the Balkan province`.
fn is_named(text: &Canon, at: usize) -> bool {
    let mut end = text.name_end(at);
    let kind = |at: usize| text.get(at).is_some_and(|token| token.is_in(list::KINDS) && token.pause == 0);
    if end > at && kind(end) {
        end += 1;
    }
    let Some((last, name)) = text.tokens[at..end].split_last() else { return false };
    let institution = |token: &Token| token.is_in(list::KINDS | list::INSTITUTIONS);
    let of = name.windows(2).any(|pair| institution(&pair[0]) && pair[1].is("of"));
    let several = !name.is_empty() && (institution(last) || of);
    let acronym = name.is_empty()
        && last.is_in(list::ACRONYMS_WITH_THE)
        && last.raw.bytes().all(|c| c.is_ascii_uppercase());
    (several || acronym) && text.closes(end)
}

/// `the` may be left out of `he is (the) mayor of Lyon` and of `Ann, (the) daughter of Bob`.
fn is_office_of(text: &Canon, at: usize) -> bool {
    let first = usize::from(text.get(at + 1).is_some_and(|token| token.is_in(list::BEFORE_OFFICE)));
    let (Some(noun), Some(of)) = (text.get(at + 1 + first), text.get(at + 2 + first)) else { return false };
    let apposed = text.get(at).is_some_and(|token| token.pause == pause::COMMA)
        && text.back(at).is_some_and(Token::is_name);
    let held = text.back(at).is_some_and(|token| token.is_in(list::BE | list::BECOME));
    of.is("of") && ((noun.is_in(list::OFFICES) && (apposed || held)) || (noun.is_in(list::KIN) && apposed))
}

/// `the singer Ann Lee`, `the song "Ann"`.
fn is_called(text: &Canon, at: usize) -> bool {
    let before = (at..at + 4).find(|place| {
        text.get(*place).is_some_and(|token| token.is_in(list::CALLINGS | list::WORKS) && !token.is_name())
    });
    let Some(before) = before else { return false };
    let word = |token: &Token| {
        token.is_word() && token.pause == 0 && !token.may_be_verb() && !token.is_in(list::PREPOSITIONS)
    };
    let described = text.tokens[at..before].iter().all(word);
    let name = before + 1;
    let end = text.name_end(name);
    let whole = text.get(name).is_some_and(|token| token.pause & !pause::COMMA == 0);
    // `The president Ann met`.
    let long = end > name + 1 || text.get(name).is_some_and(|token| token.quoted);
    described
        && whole
        && long
        && text.closes(end)
        && !text.get(end).is_some_and(|token| token.kind == Kind::Owner)
}

/// `(the) police said`; `to (the) hospital`.
fn is_institution(text: &Canon, at: usize) -> bool {
    let Some(noun) = text.get(at + 1) else { return false };
    let to = text.back(at).is_some_and(|token| token.is("to"))
        && at > 1
        && text.tokens[at - 2].is_one_of(&["taken", "rushed", "brought", "admitted"]);
    let free = noun.is_one_of(&["police", "parliament"]) || (noun.is("hospital") && to);
    free && !noun.is_name() && text.closes(at + 2)
}
