//! Numbers: `twelve` is `12`, `1.2 million` is `1,200,000`, `twenty-first` is `21st`.
//!
//! `2.1` is not `2.10`, which may be versions; `twenty first graders` are not the 21st: only a hyphen joins.

use super::decimal::Decimal;
use super::lexicon::lexicon;
use super::token::{Kind, Token, is_whole};

pub fn join(tokens: &[Token]) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let (mut token, next) = number(tokens, at);
        token.raw = raw(&tokens[at..next]);
        out.push(token);
        at = next;
    }
    out
}

/// As all of them were written.
pub fn raw(tokens: &[Token]) -> String {
    let mut raw = String::new();
    for token in tokens {
        let between = if token.joined { "-" } else { " " };
        raw.push_str(if raw.is_empty() { "" } else { between });
        raw.push_str(&token.raw);
    }
    raw
}

/// Whether what follows this number may also belong to one before it: `1 to 2 million`, `2 x 3 m`.
pub fn is_shared(tokens: &[Token], at: usize) -> bool {
    let Some(before) = at.checked_sub(2).and_then(|before| tokens.get(before)) else { return false };
    let number = before.kind == Kind::Number || lexicon().numbers.contains_key(&before.text);
    number && tokens[at - 1].is_one_of(&["to", "or", "and", "by", "-", "x", "×", "*"])
}

fn number(tokens: &[Token], at: usize) -> (Token, usize) {
    let token = &tokens[at];
    if is_shared(tokens, at) && (token.kind == Kind::Number) {
        let text = digits(&token.text).unwrap_or_else(|| token.text.clone());
        return (Token { text, ..token.clone() }, at + 1);
    }
    let as_number = |text: String| Token { text, kind: Kind::Number, ..token.clone() };
    match token.kind {
        Kind::Number => match digits(&token.text) {
            Some(text) => {
                let (power, next) = scale(tokens, at + 1);
                let scaled =
                    Decimal::read(&text).filter(|_| power > 0).and_then(|value| value.times_ten_to(power));
                scaled.map_or((as_number(text), at + 1), |value| (as_number(value.to_string()), next))
            }
            // `10:30` may be a time; anything else is a word of its own.
            None => (token.clone(), at + 1),
        },
        Kind::Ordinal => (Token { text: format!("#{}", token.text), ..token.clone() }, at + 1),
        Kind::Article if token.is("a") && scale(tokens, at + 1).0 > 0 => {
            let (power, next) = scale(tokens, at + 1);
            let value = Decimal::whole(1).times_ten_to(power);
            value.map_or((token.clone(), at + 1), |value| (as_number(value.to_string()), next))
        }
        Kind::Word => {
            if let Some((value, next)) = ordinal(tokens, at) {
                return (Token { text: format!("#{value}"), kind: Kind::Ordinal, ..token.clone() }, next);
            }
            match Words::read(tokens, at) {
                Some((value, next)) => (as_number(value.to_string()), next),
                None => (token.clone(), at + 1),
            }
        }
        _ => (token.clone(), at + 1),
    }
}

/// Without the commas between thousands; a point stays as it is.
fn digits(text: &str) -> Option<String> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let grouped = rest.is_empty() || (first.len() <= 3 && rest.iter().all(|group| group.len() == 3));
    let all = is_whole(first) && rest.iter().all(|group| is_whole(group)) && part.is_none_or(is_whole);
    (grouped && all && text.len() <= 30).then(|| text.replace(',', ""))
}

/// The power of ten that stands here in words, and where they end.
fn scale(tokens: &[Token], at: usize) -> (u32, usize) {
    let is_word =
        |token: &&Token| token.is_word() && token.pause == 0 && !token.has_capital() && !token.joined;
    let Some(token) = tokens.get(at).filter(is_word) else { return (0, at) };
    match token.text.as_str() {
        "hundred" => {
            let (power, next) = scale(tokens, at + 1);
            (2 + power, next)
        }
        word => lexicon().scales.get(word).map_or((0, at), |power| (*power, at + 1)),
    }
}

/// `third`, `twenty-third`.
fn ordinal(tokens: &[Token], at: usize) -> Option<(u32, usize)> {
    let lexicon = lexicon();
    if let Some(value) = lexicon.ordinals.get(&tokens[at].text) {
        return Some((*value, at + 1));
    }
    let tens = lexicon.numbers.get(&tokens[at].text).filter(|tens| **tens >= 20)?;
    let last = tokens.get(at + 1).filter(|token| token.joined)?;
    let ones = lexicon.ordinals.get(&last.text).filter(|ones| **ones < 10)?;
    Some((tens + ones, at + 2))
}

/// A number in words: `two hundred and fifty`, `three thousand`, `twenty-four`.
struct Words<'a> {
    tokens: &'a [Token],
    at: usize,
    total: u64,
    current: u64,
}

impl<'a> Words<'a> {
    fn read(tokens: &'a [Token], at: usize) -> Option<(Decimal, usize)> {
        let mut words = Self { tokens, at, total: 0, current: 0 };
        words.current = words.small(at)?;
        words.at += if words.hyphenated(at) { 2 } else { 1 };
        while words.goes_on() {}
        Some((Decimal::whole(words.total.checked_add(words.current)?), words.at))
    }

    fn word(&self, at: usize) -> &str {
        let fits = |token: &&Token| token.is_word() && token.pause == 0;
        self.tokens.get(at).filter(fits).map_or("", |token| token.text.as_str())
    }

    fn hyphenated(&self, at: usize) -> bool {
        let value = |at: usize| self.tokens.get(at).and_then(|token| lexicon().numbers.get(&token.text));
        let joined = self.tokens.get(at + 1).is_some_and(|token| token.joined);
        let fits = value(at).is_some_and(|tens| *tens >= 20)
            && value(at + 1).is_some_and(|ones| (1..10).contains(ones));
        joined && fits
    }

    /// Less than a hundred.
    fn small(&self, at: usize) -> Option<u64> {
        let value = |at: usize| lexicon().numbers.get(&self.tokens.get(at)?.text).copied();
        let first = value(at)?;
        let last = if self.hyphenated(at) { value(at + 1)? } else { 0 };
        Some(u64::from(first + last))
    }

    fn goes_on(&mut self) -> bool {
        let word = self.word(self.at);
        if word == "hundred" && (1..20).contains(&self.current) {
            self.current *= 100;
            self.at += 1;
            return true;
        }
        if let Some(power) = lexicon().scales.get(word).filter(|_| self.current > 0) {
            let scaled = 10_u64.checked_pow(*power).and_then(|scale| scale.checked_mul(self.current));
            if let Some(sum) = scaled.and_then(|scaled| scaled.checked_add(self.total)) {
                (self.total, self.current) = (sum, 0);
                self.at += 1;
                return true;
            }
            return false;
        }
        self.rest()
    }

    /// `fifty` of `two hundred and fifty`; but not of `between two hundred and three hundred`.
    fn rest(&mut self) -> bool {
        let round =
            self.current >= 100 && self.current.is_multiple_of(100) || self.current == 0 && self.total > 0;
        let and = usize::from(self.word(self.at) == "and");
        let start = self.at + and;
        let Some(value) = self.small(start).filter(|value| *value > 0 && round) else { return false };
        let end = start + if self.hyphenated(start) { 2 } else { 1 };
        let scaled = self.word(end) == "hundred" || lexicon().scales.contains_key(self.word(end));
        let listed = and == 1 && (scaled || self.is_between());
        if self.word(start).is_empty()
            || listed
            || (scaled && self.current > 0 && self.word(end) == "hundred")
        {
            return false;
        }
        self.current += value;
        self.at = end;
        true
    }

    /// `between one hundred and fifty`.
    fn is_between(&self) -> bool {
        let start = self.at.saturating_sub(6);
        self.tokens[start..self.at]
            .iter()
            .any(|token| token.is("between") || token.is("from") || token.is("both"))
    }
}
