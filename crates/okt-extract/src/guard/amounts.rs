//! Numbers with what they count: `at least 5 mg/dL`, `$1.5 million`, `between 5 and 10 km`.

use super::tables::{Language, Unit, common, list};
use super::words::{Kind, Number, Token};

/// How much of what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amount {
    pub value: f64,
    /// Empty where nothing is measured.
    pub unit: String,
    pub bound: Bound,
    lead: Lead,
    /// In a sentence about a daily or yearly amount, which need not be said again with the unit.
    regular: bool,
    /// Need not be said: `one`, `both`, `first`.
    pub soft: bool,
    /// `the 18th`: one of them.
    pub ordinal: bool,
    /// What it is counted per, where the text says so elsewhere: `5 t of wheat per hectare`.
    per: Option<Unit>,
    /// How many of the unit's base one is.
    factor: f64,
    /// The million of five million; nought where there is none.
    scale: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    #[default]
    None,
    More,
    AtLeast,
    Less,
    AtMost,
    /// `over five years` is longer than that, or as long.
    Unclear,
    /// In a sentence about a maximum: at most, or just that.
    Ceiling,
    /// In a sentence about a minimum.
    Floor,
}

/// Rose by it, rose to it, rose from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lead {
    #[default]
    None,
    By,
    To,
    From,
}

impl Lead {
    fn of(word: &str) -> Self {
        match word {
            "by" | "um" => Self::By,
            "to" | "auf" => Self::To,
            "from" => Self::From,
            _ => Self::None,
        }
    }

    fn fits(self, other: Self) -> bool {
        self == other || self == Self::None || other == Self::None
    }
}

impl Amount {
    /// The same for the same amount.
    pub fn key(&self) -> String {
        format!("#{} {}", self.value, self.unit)
    }

    pub fn has_value_of(&self, other: &Self) -> bool {
        is_near(self.value, other.value)
    }

    pub fn has_unit_of(&self, other: &Self) -> bool {
        // `aged 65` is 65 years old, and 0.5 a half.
        let unsaid = |a: &Self, b: &Self| {
            a.unit.is_empty() && (b.unit == "month" || b.unit == "ratio" && b.value < 1.0)
        };
        self.unit == other.unit || unsaid(self, other) || unsaid(other, self)
    }

    /// `5 mg` and `5 g`.
    pub fn is_as_many_of_another_unit(&self, other: &Self) -> bool {
        let unit = self.unit != other.unit || !is_near(self.factor, other.factor);
        unit && is_near(self.value / self.factor, other.value / other.factor)
    }

    pub fn fits(&self, other: &Self) -> bool {
        let years =
            |a: &Self, b: &Self| a.unit.is_empty() && b.unit == "month" && is_near(a.value * 12.0, b.value);
        // A daily dose of 5 mg is 5 mg per day.
        let rates = |a: &Self, b: &Self| {
            let time = b
                .unit
                .strip_prefix(a.unit.as_str())
                .is_some_and(|rest| rest == "/second" || rest == "/month");
            time && a.regular && !a.unit.is_empty()
        };
        let apart = |a: &Self, b: &Self| {
            a.per.as_ref().is_some_and(|per| {
                format!("{}/{}", a.unit, per.base) == b.unit && is_near(a.value / per.factor, b.value)
            })
        };
        if (apart(self, other) || apart(other, self)) && self.bound.fits(other.bound) {
            return true;
        }
        let per_time = rates(self, other) || rates(other, self);
        if per_time && self.bound.fits(other.bound) {
            let ratio = (self.value / other.value).abs();
            let times = [1.0, 60.0, 3600.0, 86_400.0, 604_800.0, 12.0];
            return times.iter().any(|time| is_near(ratio, *time) || is_near(1.0 / ratio, *time));
        }
        let value = self.has_value_of(other) || years(self, other) || years(other, self);
        value && self.has_unit_of(other) && self.bound.fits(other.bound) && self.lead.fits(other.lead)
    }
}

/// Whether one is the other with fewer digits: 1.2 million of 1,234,567.
pub fn are_rounded(one: &Amount, other: &Amount) -> bool {
    let rounds = |one: &Amount, other: &Amount| {
        let (value, exact) = (one.value / one.factor, other.value / one.factor);
        let digits =
            format!("{value:e}").chars().take_while(|c| *c != 'e').filter(char::is_ascii_digit).count();
        // Half is rounded up, as people do: 40 is not 45.
        format!("{:.*e}", digits.saturating_sub(1), exact * (1.0 + 8.0 * f64::EPSILON))
            .parse()
            .is_ok_and(|rounded: f64| is_near(rounded, value))
    };
    let same = one.unit == other.unit && one.factor > 0.0 && other.factor > 0.0;
    same && (rounds(one, other) || rounds(other, one))
}

impl Bound {
    pub fn fits(self, other: Self) -> bool {
        let loose = |a, b| match a {
            Self::Unclear => matches!(b, Self::None | Self::More | Self::AtLeast),
            Self::Ceiling => matches!(b, Self::None | Self::AtMost),
            Self::Floor => matches!(b, Self::None | Self::AtLeast),
            _ => false,
        };
        self == other || loose(self, other) || loose(other, self)
    }

    /// Whether one is a floor and the other a ceiling.
    pub fn opposes(self, other: Self) -> bool {
        let low = |bound| matches!(bound, Self::More | Self::AtLeast);
        let high = |bound| matches!(bound, Self::Less | Self::AtMost);
        (low(self) && high(other)) || (high(self) && low(other))
    }
}

/// Equal, but for what calculating takes away.
pub fn is_near(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

const REGULAR: [&str; 9] =
    ["daily", "hourly", "weekly", "monthly", "yearly", "annual", "annually", "quarterly", "nightly"];

/// Each number becomes an amount.
pub fn join(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let Some(number) = tokens[at].number() else {
            out.push(tokens[at].take());
            at += 1;
            continue;
        };
        let mut parser = Parser { tokens: &tokens, at: at + 1, language };
        let amount = parser.amount(number, &mut out);
        let next = parser.at;
        out.push(Token { kind: Kind::Amount(amount), ..tokens[at].take() });
        at = next;
    }
    share(&mut out);
    if let Some(per) = divisors(&out, language).into_iter().find_map(|divisor| divisor.unit) {
        for token in &mut out {
            if let Kind::Amount(amount) = &mut token.kind {
                amount.per = Some(per.clone());
            }
        }
    }
    if out.iter().any(|token| REGULAR.contains(&token.text.as_str())) {
        for token in &mut out {
            if let Kind::Amount(amount) = &mut token.kind {
                amount.regular = true;
            }
        }
    }
    out
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    language: &'a Language,
}

impl Parser<'_> {
    fn amount(&mut self, number: Number, out: &mut Vec<Token>) -> Amount {
        let mut value = number.value;
        if out.last().is_some_and(|token| matches!(token.text.as_str(), "minus" | "negative")) {
            out.pop();
            value = -value;
        }
        self.ratio(&mut value, number);
        self.power(&mut value);
        let currency = currency_before(out);
        let scale = self.letter_scale(currency.is_some());
        value *= scale.unwrap_or(1.0);
        // Half a litre.
        let article = number.part && matches!(self.text(0), "a" | "an");
        self.at += usize::from(article && unit_at(self.tokens, self.at + 1).is_some());
        // The third day is no three days.
        let after = if number.ordinal { None } else { self.unit() };
        let mut unit = currency.or(after);
        if unit.is_none() && number.times {
            unit = Some(Unit { base: "times".to_owned(), factor: 1.0 });
        }
        if unit.is_none() && (number.part || (!is_near(value, number.value) && value.abs() < 1.0)) {
            unit = Some(Unit { base: "ratio".to_owned(), factor: 1.0 });
        }
        let Unit { base, factor } = unit.unwrap_or(Unit { base: String::new(), factor: 1.0 });
        let mut bound = self.bound_before(out, base == "month" || base == "second");
        if let Some(after) = self.bound_after() {
            bound = after;
        } else if bound == Bound::None {
            bound = extreme(out);
        }
        let lead = out.last().map_or(Lead::None, |token| Lead::of(&token.text));
        let scale = if scale.is_some() { 1.0 } else { number.scale };
        let soft = number.soft && (base.is_empty() || base == "times" || number.value < 2.0);
        Amount {
            value: value * factor,
            unit: base,
            bound,
            lead,
            per: None,
            regular: false,
            soft,
            ordinal: number.ordinal,
            factor,
            scale,
        }
    }

    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text.as_str())
    }

    /// `three out of four`, `one in five`.
    fn ratio(&mut self, value: &mut f64, number: Number) {
        let (words, out_of) = match self.text(0) {
            "outof" => (1, true),
            "in" | "of" => (1, false),
            _ => return,
        };
        let Some(under) = self.tokens.get(self.at + words).and_then(Token::number) else { return };
        let counted = self.tokens.get(self.at + words + 1).is_some_and(is_unit);
        let plain = !number.ordinal && !number.part && !under.ordinal && !under.plain && !number.plain;
        if plain && !counted && number.value < under.value && (out_of || under.value <= 1000.0) {
            *value /= under.value;
            self.at += words + 1;
        }
    }

    /// `1.5 × 10⁶`.
    fn power(&mut self, value: &mut f64) {
        let times = matches!(self.text(0), "×" | "x" | "*");
        if let (true, Some(power)) = (times, self.tokens.get(self.at + 1).and_then(Token::number)) {
            *value *= power.value;
            self.at += 2;
        }
    }

    /// `$5m`, `5bn`.
    fn letter_scale(&mut self, currency: bool) -> Option<f64> {
        let token = self.tokens.get(self.at).filter(|token| token.is_word())?;
        let scale = match token.raw.as_str() {
            "k" | "K" if currency => 1e3,
            "m" | "M" if currency => 1e6,
            "b" | "B" if currency => 1e9,
            _ => return None,
        };
        self.at += 1;
        Some(scale)
    }

    /// What follows the number, if it is a unit: `km`, `square miles`, `mg per day`.
    fn unit(&mut self) -> Option<Unit> {
        let (unit, length) = unit_at(self.tokens, self.at)?;
        self.at += length;
        if let Some(under) = self.per() {
            return Some(Unit {
                base: format!("{}/{}", unit.base, under.base),
                factor: unit.factor / under.factor,
            });
        }
        Some(unit)
    }

    /// `/h`, `per hour`, `an hour`.
    fn per(&mut self) -> Option<Unit> {
        let article = matches!(self.text(0), "a" | "an" | "each" | "every");
        if !article && !matches!(self.text(0), "/" | "per") {
            return None;
        }
        let (under, length) = unit_at(self.tokens, self.at + 1)?;
        let time = under.base == "second" || under.base == "month";
        if article && !time {
            return None;
        }
        self.at += 1 + length;
        Some(under)
    }

    fn bound_after(&mut self) -> Option<Bound> {
        let bound = match self.text(0) {
            "+>=" | "+" => Bound::AtLeast,
            "+<=" => Bound::AtMost,
            _ => return None,
        };
        self.at += 1;
        Some(bound)
    }

    /// Takes away what stands before a number and says whether it is a limit.
    fn bound_before(&self, out: &mut Vec<Token>, time: bool) -> Bound {
        while out.last().is_some_and(|token| token.is_word() && self.language.has(list::ABOUT, &token.text)) {
            out.pop();
        }
        let Some(last) = out.last() else { return Bound::None };
        let bound = match last.text.as_str() {
            ">" => Bound::More,
            ">=" => Bound::AtLeast,
            "<" => Bound::Less,
            "<=" => Bound::AtMost,
            "than" => return bound_of_comparison(out),
            word if self.language.has(list::OVER, word) && time => Bound::Unclear,
            word if self.language.has(list::OVER, word) => Bound::More,
            word if self.language.has(list::UNDER, word) => Bound::Less,
            _ => return Bound::None,
        };
        out.pop();
        bound
    }
}

/// Whether both count per the same where it stands apart from the number: tonnes of wheat per hectare.
pub fn are_per_same(a: &[Token], b: &[Token], language: &Language) -> bool {
    let (mut of_a, mut of_b) = (divisors(a, language), divisors(b, language));
    if of_a.is_empty() || of_b.is_empty() {
        return true;
    }
    super::take_pairs(&mut of_a, &mut of_b, Divisor::fits);
    of_a.is_empty() || of_b.is_empty()
}

/// What something is counted per.
struct Divisor {
    unit: Option<Unit>,
    stem: String,
}

impl Divisor {
    fn fits(&self, other: &Self) -> bool {
        let groups = |stem: &String| common().synonyms.get(stem);
        let synonyms = groups(&self.stem)
            .zip(groups(&other.stem))
            .is_some_and(|(one, other)| one.iter().any(|group| other.contains(group)));
        (self.unit.is_some() && self.unit == other.unit)
            || self.stem == other.stem
            || (self.unit.is_none() && synonyms)
    }
}

fn divisors(tokens: &[Token], language: &Language) -> Vec<Divisor> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(next) = tokens.get(at + 1).filter(|next| next.is_word()) else { continue };
        let unit = unit_at(tokens, at + 1).map(|(unit, _)| unit);
        // In other languages the word says much else.
        let per = matches!(token.text.as_str(), "per" | "pro" | "par" | "por");
        if token.is_word() && per && (unit.is_some() || (language.english && token.is("per"))) {
            found.push(Divisor { unit, stem: next.stem.clone() });
        }
    }
    found
}

/// `the maximum dose is`.
fn extreme(out: &[Token]) -> Bound {
    let word = out.iter().rev().map(|token| token.text.as_str()).find_map(|word| match word {
        "maximum" | "max" | "limit" | "cap" | "ceiling" => Some(Bound::Ceiling),
        "minimum" | "min" | "floor" => Some(Bound::Floor),
        _ => None,
    });
    word.unwrap_or_default()
}

/// `more than`, `older than`.
fn bound_of_comparison(out: &mut Vec<Token>) -> Bound {
    let Some(word) = out.len().checked_sub(2).and_then(|at| out.get(at)) else { return Bound::None };
    let Some(high) = super::direction::degree(word) else { return Bound::None };
    out.truncate(out.len() - 2);
    if high { Bound::More } else { Bound::Less }
}

fn is_unit(token: &Token) -> bool {
    common().units.contains_key(token.raw.as_str()) || common().units.contains_key(token.text.as_str())
}

fn unit_at(tokens: &[Token], at: usize) -> Option<(Unit, usize)> {
    let units = &common().units;
    let first = tokens.get(at)?;
    if let Some(second) = tokens.get(at + 1) {
        let joined = match (first.text.as_str(), second.raw.as_str()) {
            ("°" | "º", "C" | "F") => format!("°{}", second.raw),
            _ => format!("{}_{}", first.text, second.text),
        };
        if let Some(unit) = units.get(joined.as_str()) {
            return Some((unit.clone(), 2));
        }
    }
    // Single letters mean what they mean in their own case only; `in` and `a` are words.
    let exact = units.get(first.raw.as_str());
    let folded = || units.get(first.text.as_str()).filter(|_| first.text.len() > 1);
    exact.or_else(folded).map(|unit| (unit.clone(), 1))
}

/// `$`, `US$`, `USD`.
fn currency_before(out: &mut Vec<Token>) -> Option<Unit> {
    let last = out.last()?;
    let sign = matches!(last.text.as_str(), "$" | "€" | "£" | "¥" | "₹");
    let code = last.raw.len() == 3 && last.raw.chars().all(|c| c.is_ascii_uppercase());
    if !sign && !code {
        return None;
    }
    let unit = common().units.get(last.raw.as_str())?.clone();
    if !is_money(&unit.base) {
        return None;
    }
    out.pop();
    if out.last().is_some_and(|token| token.is("us")) {
        out.pop();
    }
    Some(unit)
}

fn is_money(base: &str) -> bool {
    ["usd", "eur", "pound", "yen", "yuan", "rupee", "franc", "ruble"].contains(&base)
}

/// In `5 to 10 million km` both are millions of kilometres, and in `$5–10` both are dollars.
fn share(tokens: &mut [Token]) {
    for at in (2..tokens.len()).rev() {
        let ranges = ["to", "-", "and", "or", "bis", "und", "a", "et", "y", "e", "tot", "en"];
        if !ranges.contains(&tokens[at - 1].text.as_str()) {
            continue;
        }
        let (front, back) = tokens.split_at_mut(at);
        let (Kind::Amount(first), Kind::Amount(last)) = (&mut front[at - 2].kind, &mut back[0].kind) else {
            continue;
        };
        if first.unit.is_empty() && !last.unit.is_empty() && last.unit != "times" {
            first.value *= last.factor;
            first.unit.clone_from(&last.unit);
        } else if last.unit.is_empty() && !first.unit.is_empty() && is_money(&first.unit) {
            last.unit.clone_from(&first.unit);
        }
        if first.unit != "times" && first.scale == 0.0 && last.scale >= 1000.0 && first.value < 1000.0 {
            first.value *= last.scale;
        }
    }
}
