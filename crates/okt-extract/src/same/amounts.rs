//! Money, percentages and measures: `$1.2 million` is `1.2 million dollars`, `2.4 km` is `2,400 metres`.
//!
//! Miles are never kilometres here: how far a number was rounded is not known.

use super::decimal::Decimal;
use super::lexicon::{lexicon, list};
use super::numbers::{is_shared, raw};
use super::token::{Kind, Token};

pub fn join(tokens: &[Token]) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if let Some((amount, next)) = money_sign(tokens, at).or_else(|| counted(tokens, at)) {
            out.push(Token { raw: raw(&tokens[at..next]), ..amount });
            at = next;
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

fn amount(token: &Token, of: &str, value: Decimal) -> Token {
    Token { text: format!("{value} {of}"), kind: Kind::Amount, ..token.clone() }
}

fn value(token: &Token) -> Option<Decimal> {
    if token.kind == Kind::Number { Decimal::read(&token.text) } else { None }
}

/// `$5`. Before the sign no letter may stand: `C$5`.
fn money_sign(tokens: &[Token], at: usize) -> Option<(Token, usize)> {
    let sign = tokens.get(at).filter(|token| token.kind == Kind::Sign)?;
    let currency = lexicon().currencies.get(&sign.text)?;
    let number = tokens.get(at + 1).filter(|number| number.pause == 0)?;
    Some((amount(sign, currency, value(number)?), at + 2))
}

/// A number and what it counts.
fn counted(tokens: &[Token], at: usize) -> Option<(Token, usize)> {
    let number = &tokens[at];
    let value = value(number)?;
    let unit = tokens.get(at + 1).filter(|unit| unit.pause == 0 && !unit.quoted)?;
    if unit.is("%") || unit.is("percent") {
        return Some((amount(number, "percent", value), at + 2));
    }
    let cent = tokens.get(at + 2).is_some_and(|token| token.is("cent") && token.pause == 0);
    if unit.is("per") && cent {
        return Some((amount(number, "percent", value), at + 3));
    }
    if !unit.is_word() {
        return None;
    }
    if let Some(currency) = lexicon().currencies.get(&unit.text).filter(|_| !unit.joined) {
        return Some((amount(number, currency, value), at + 2));
    }
    let second = tokens.get(at + 2).filter(|second| second.is_word() && second.pause == 0);
    let units = &lexicon().units;
    let double = second.and_then(|second| units.get(&format!("{}_{}", unit.text, second.text)));
    let (found, next) = match double {
        Some(found) => (found, at + 3),
        // The case of a short unit says which it is: MW and mW.
        None => {
            (units.get(&unit.raw).or_else(|| units.get(&unit.text).filter(|_| unit.text.len() > 2))?, at + 2)
        }
    };
    let raised = |token: &Token| {
        token.is_one_of(&["²", "³", "^", "squared", "cubed"]) || token.text.starts_with(['²', '³'])
    };
    // `5-year-old` is measured; `five year-old boys` are counted.
    let compound = |token: &Token| token.joined && !(unit.joined && token.is_in(list::MEASURES));
    let goes_on = |token: &Token| raised(token) || compound(token);
    if tokens.get(next).is_some_and(goes_on) {
        return None;
    }
    if is_shared(tokens, at) {
        // The unit as it is: whatever else is measured in it would change, too.
        return Some((amount(number, &format!("{} times {}", found.0, found.1), value), next));
    }
    Some((amount(number, &found.0, value.times(found.1)?), next))
}
