//! Dates, however they are written: days, months, years, decades, centuries.

use super::amounts::is_near;
use super::tables::{Language, list};
use super::words::{Kind, Number, Token};

/// A day, or as much of it as is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Date {
    year: Option<i32>,
    month: Option<u16>,
    day: Option<u16>,
    span: Span,
    /// Day and month may be meant the other way round: `3/4/2020`.
    either: bool,
    when: When,
}

/// How what happened lies to the date.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum When {
    #[default]
    In,
    Before,
    After,
    Since,
    Until,
}

impl When {
    fn of(word: &str) -> Self {
        match word {
            "before" | "vor" | "avant" | "voor" | "antes" | "prima" => Self::Before,
            "after" | "nach" | "apres" | "na" | "despues" | "dopo" | "apos" | "following" => Self::After,
            "since" | "seit" | "depuis" | "desde" | "sinds" => Self::Since,
            "until" | "till" | "bis" | "jusqu" | "hasta" | "tot" | "ate" => Self::Until,
            _ => Self::In,
        }
    }

    /// Who has ruled since a year began in it, and who ruled until then ended in it.
    fn fits(self, other: Self) -> bool {
        let loose =
            |a, b| matches!((a, b), (Self::In, Self::Since | Self::Until) | (Self::Since, Self::After));
        self == other || loose(self, other) || loose(other, self)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Span {
    #[default]
    Day,
    Decade,
    Century,
}

impl Date {
    pub fn of(year: u16, month: u16, day: u16, either: bool) -> Option<Self> {
        let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
        let date =
            Self { year: Some(year.into()), month: Some(month), day: Some(day), either, ..Self::default() };
        is_date.then_some(date)
    }

    /// Whether both may be the same.
    pub fn fits(&self, other: &Self) -> bool {
        let same = |month, day| {
            self.year == other.year && self.span == other.span && (month, day) == (other.month, other.day)
        };
        self.when.fits(other.when)
            && (same(self.month, self.day) || ((self.either || other.either) && same(self.day, self.month)))
    }

    /// A day without its year, of which the year is said elsewhere.
    pub fn is_part_of(&self, other: &Self) -> bool {
        let day = self.day.is_some() && self.year.is_none() && other.year.is_some();
        day && (self.month, self.day) == (other.month, other.day)
    }

    /// Whether what happened then did not happen at the other date.
    pub fn excludes(&self, other: &Self) -> bool {
        let plain = |date: &Self| date.when == When::In && date.span == Span::Day && !date.either;
        let differ =
            |one: Option<u16>, other: Option<u16>| one.zip(other).is_some_and(|(one, other)| one != other);
        plain(self)
            && plain(other)
            && self.year.is_some()
            && other.year.is_some()
            && (self.year != other.year || differ(self.month, other.month) || differ(self.day, other.day))
    }

    /// Whether it says as much as another date, and maybe which month or day of it.
    pub fn tells(&self, other: &Self) -> bool {
        let within = |one: Option<u16>, other: Option<u16>| other.is_none() || one == other;
        // Which years are of a decade is not counted here.
        other.span != Span::Day
            || (self.when.fits(other.when)
                && within(self.month, other.month)
                && within(self.day, other.day)
                && self.year == other.year)
    }

    /// A bare year, which may also be a count of something.
    pub fn count(&self) -> Option<f64> {
        let bare = self.month.is_none() && self.day.is_none() && self.span == Span::Day;
        self.year.filter(|_| bare).map(f64::from)
    }

    /// The same for the same date.
    pub fn key(&self) -> String {
        let part = |part: Option<u16>| part.unwrap_or(0);
        let (mut month, mut day) = (part(self.month), part(self.day));
        if self.either {
            (month, day) = (month.min(day), month.max(day));
        }
        format!("{}-{month}-{day}", self.year.unwrap_or(0))
    }
}

/// Each date becomes one token.
pub fn join(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let parser = Parser { tokens: &tokens, at, language };
        let Some((date, next)) = parser.date(out.last()) else {
            out.push(tokens[at].take());
            at += 1;
            continue;
        };
        if out.last().is_some_and(|token| language.has(list::AD, &token.text) && token.capital) {
            out.pop();
        }
        let when =
            out.iter().rev().map(|token| token.text.as_str()).find(|word| *word != "the" && *word != "year");
        let date = Date { when: when.map_or(When::In, When::of), ..date };
        out.push(Token { kind: Kind::Date(date), capital: false, ..tokens[at].take() });
        at = next;
    }
    out
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    language: &'a Language,
}

impl Parser<'_> {
    fn date(&self, before: Option<&Token>) -> Option<(Date, usize)> {
        match self.tokens[self.at].kind {
            Kind::Date(date) => Some((date, self.at + 1)),
            Kind::Number(number) => {
                self.day_first(number).or_else(|| self.century(number)).or_else(|| self.year(number, before))
            }
            Kind::Word => self.month_first().or_else(|| self.century_first()),
            _ => None,
        }
    }

    fn number(&self, at: usize) -> Option<Number> {
        self.tokens.get(at).and_then(Token::number)
    }

    /// `3 March 2020`, `3rd of March, 2020`, `3. März 2020`, `3 de marzo de 2020`.
    fn day_first(&self, number: Number) -> Option<(Date, usize)> {
        let day = day(number)?;
        let mut at = self.skip(self.at + 1, &["of", "de", "."]);
        let month = self.month(at)?;
        at += 1;
        let (year, next) = self.year_after(at);
        Some((Date { year, month: Some(month), day: Some(day), ..Date::default() }, next))
    }

    /// `March 3, 2020`, `March 2020`, `March`.
    fn month_first(&self) -> Option<(Date, usize)> {
        let month = self.month(self.at)?;
        let at = self.at + 1;
        if let Some(day) = self.number(at).and_then(day) {
            let (year, next) = self.year_after(at + 1);
            return Some((Date { year, month: Some(month), day: Some(day), ..Date::default() }, next));
        }
        let (year, next) = self.year_after(at);
        let token = &self.tokens[self.at];
        // At the start of a sentence `May` and `March` may be other words.
        let sure = year.is_some() || !token.opens || !matches!(token.text.as_str(), "may" | "march" | "mar");
        sure.then_some((Date { year, month: Some(month), ..Date::default() }, next))
    }

    fn month(&self, at: usize) -> Option<u16> {
        let token = self.tokens.get(at).filter(|token| token.is_word())?;
        let month = *self.language.months.get(&token.text)?;
        if self.language.english && !token.capital {
            return None;
        }
        (1..=12).find(|number| is_near(f64::from(*number), month))
    }

    /// The year behind a month, and where to go on.
    fn year_after(&self, at: usize) -> (Option<i32>, usize) {
        let start = self.skip(at, &[",", "of", "de", "."]);
        match self.number(start).filter(|number| number.plain && !number.decade).and_then(|n| whole(n.value))
        {
            Some(year) => (Some(year), start + 1),
            None => (None, at),
        }
    }

    fn skip(&self, at: usize, words: &[&str]) -> usize {
        let skipped = self.tokens.get(at).is_some_and(|token| words.contains(&token.text.as_str()));
        at + usize::from(skipped)
    }

    /// `19th century`.
    fn century(&self, number: Number) -> Option<(Date, usize)> {
        let next = self.skip(self.at + 1, &[".", "-"]);
        let word = self.tokens.get(next)?;
        let ordinal = number.ordinal || !self.language.english;
        if !ordinal || !self.language.has(list::CENTURY, &word.text) {
            return None;
        }
        Some(
            self.with_era(
                Date { year: whole(number.value), span: Span::Century, ..Date::default() },
                next + 1,
            ),
        )
    }

    /// `siglo XIX`.
    fn century_first(&self) -> Option<(Date, usize)> {
        let number = self.number(self.at + 1)?;
        let is_century = self.language.has(list::CENTURY, &self.tokens[self.at].text) && number.ordinal;
        let date = Date { year: whole(number.value), span: Span::Century, ..Date::default() };
        is_century.then(|| self.with_era(date, self.at + 2))
    }

    fn year(&self, number: Number, before: Option<&Token>) -> Option<(Date, usize)> {
        let year = whole(number.value)?;
        let next = self.tokens.get(self.at + 1);
        if number.decade {
            let year = if year < 100 { year + 1900 } else { year };
            let century = year % 100 == 0;
            let date = Date { year: Some(year), span: Span::Decade, ..Date::default() };
            let century_date = Date { year: Some(year / 100 + 1), span: Span::Century, ..Date::default() };
            return Some((if century { century_date } else { date }, self.at + 1));
        }
        let date = Date { year: Some(year), ..Date::default() };
        let era = |kind| next.is_some_and(|token| self.language.has(kind, &token.text) && token.capital);
        let after_ad = before.is_some_and(|token| self.language.has(list::AD, &token.text) && token.capital);
        if era(list::BC) || era(list::AD) || after_ad {
            return Some(self.with_era(date, self.at + 1));
        }
        if !number.plain {
            return self.short(number, before).map(|date| (date, self.at + 1));
        }
        let follows = match before {
            None => true,
            Some(token) => {
                self.language.has(list::YEAR_AFTER, &token.text)
                    || matches!(token.text.as_str(), "(" | "-" | "," | "/")
                    || matches!(token.kind, Kind::Date(_))
            }
        };
        let ends = next.is_none_or(|token| matches!(token.text.as_str(), "," | "." | ";" | ":" | ")" | "-"));
        ((1000..2200).contains(&year) && (follows || ends)).then_some((date, self.at + 1))
    }

    /// The second year of `1914–18`.
    fn short(&self, number: Number, before: Option<&Token>) -> Option<Date> {
        let first = self.at.checked_sub(2).and_then(|at| self.number(at)).filter(|first| first.plain)?;
        let (first, last) = (whole(first.value)?, whole(number.value)?);
        let is_range =
            before.is_some_and(|token| token.is("-")) && (10..100).contains(&last) && last > first % 100;
        let year = first / 100 * 100 + last;
        (is_range && (1000..2200).contains(&first)).then(|| Date { year: Some(year), ..Date::default() })
    }

    fn with_era(&self, date: Date, at: usize) -> (Date, usize) {
        let Some(token) = self.tokens.get(at) else { return (date, at) };
        if self.language.has(list::BC, &token.text) && token.capital {
            return (Date { year: date.year.map(|year| -year), ..date }, at + 1);
        }
        (date, at + usize::from(self.language.has(list::AD, &token.text) && token.capital))
    }
}

fn day(number: Number) -> Option<u16> {
    let whole = !number.part && !number.times && !number.decade;
    (1..=31).find(|day| whole && is_near(f64::from(*day), number.value))
}

fn whole(value: f64) -> Option<i32> {
    let is_whole = value.fract() == 0.0 && value.abs() < 100_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and small")]
    is_whole.then_some(value as i32)
}
