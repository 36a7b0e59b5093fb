//! Dates and times of day: `5 May 2021` is `May 5, 2021` and `2021-05-05`; `8 p.m.` is `20:00`.
//!
//! `05/06/2021` stays as it is: nobody knows which is the month.

use super::lexicon::{lexicon, list};
use super::numbers::raw;
use super::token::{Kind, Token, is_whole, is_year, pause};

pub fn join(tokens: &[Token]) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let reader = Reader { tokens, at };
        let found = reader.days().or_else(|| reader.month_of_year()).or_else(|| reader.clock());
        if let Some((mut dates, next)) = found.or_else(|| reader.decade()) {
            if let [date] = &mut dates[..] {
                date.raw = raw(&tokens[at..next]);
            }
            out.extend(dates);
            at = next;
        } else {
            out.push(reader.iso().unwrap_or_else(|| tokens[at].clone()));
            at += 1;
        }
    }
    out
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

type Found = Option<(Vec<Token>, usize)>;

impl Reader<'_> {
    fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    /// The day of a month, in digits.
    fn day(&self, at: usize) -> Option<u32> {
        let token = self.token(at).filter(|token| !token.joined)?;
        let digits = match token.kind {
            Kind::Number => token.raw.as_str(),
            Kind::Ordinal if token.raw.starts_with(|c: char| c.is_ascii_digit()) => token.text.get(1..)?,
            _ => return None,
        };
        let fits = digits.len() <= 2 && is_whole(digits);
        digits.parse().ok().filter(|day| fits && (1..=31).contains(day))
    }

    fn month(&self, at: usize) -> Option<u32> {
        let token =
            self.token(at).filter(|token| token.is_word() && token.has_capital() && token.raw.len() > 2)?;
        lexicon().months.get(&token.text).copied()
    }

    /// The year behind a day, unless it counts what follows: `On May 5, 2000 people died`.
    fn year(&self, at: usize) -> Option<&Token> {
        let token = self.token(at).filter(|token| token.kind == Kind::Number && is_year(&token.raw))?;
        let counts = self.token(at + 1).is_some_and(|next| {
            let small = list::PREPOSITIONS | list::AUXILIARIES | list::PRONOUNS | list::OWNERS;
            next.pause == 0
                && !(next.is_in(small) || next.kind != Kind::Word || next.is_and() || next.has_capital())
        });
        (!counts && token.pause & !pause::COMMA == 0).then_some(token)
    }

    fn date(&self, at: usize, (year, month, day): (Option<&Token>, u32, Option<u32>)) -> Token {
        let first = &self.tokens[at];
        let year = year.map_or("", |token| token.raw.as_str());
        let day = day.map_or(String::new(), |day| day.to_string());
        Token { text: format!("{year}-{month}-{day}"), kind: Kind::Date, ..first.clone() }
    }

    /// `5 May 2021`, `May 5, 2021`, `the 5th of May`, `21 and 28 May`, `May 21–28`.
    fn days(&self) -> Found {
        let at = self.at;
        let between =
            |at: usize| self.token(at).filter(|token| token.is("and") || token.is("to") || token.is("-"));
        // The days, what stands between them, and the month before or behind them.
        let (first, second, link, month, mut next) = if let Some(month) = self.month(at) {
            let first = self.day(at + 1).filter(|_| self.tokens[at + 1].pause == 0)?;
            match (between(at + 2), self.day(at + 3)) {
                (Some(link), Some(second)) if self.month(at + 4).is_none() && self.ends(at + 4) => {
                    (first, Some(second), Some(link), month, at + 4)
                }
                _ => (first, None, None, month, at + 2),
            }
        } else {
            let first = self.day(at)?;
            let of = usize::from(self.token(at + 1).is_some_and(|token| token.is("of")));
            if let Some(month) = self.month(at + 1 + of).filter(|_| self.tokens[at + 1].pause == 0) {
                (first, None, None, month, at + 2 + of)
            } else {
                let link = between(at + 1)?;
                let second = self.day(at + 2)?;
                (first, Some(second), Some(link), self.month(at + 3)?, at + 4)
            }
        };
        let year = self.year(next);
        next += usize::from(year.is_some());
        let mut dates = vec![self.date(at, (year, month, Some(first)))];
        if let (Some(link), Some(second)) = (link, second) {
            dates.push(link.clone());
            let date =
                Token { pause: 0, joined: false, opens: false, ..self.date(at, (year, month, Some(second))) };
            dates.push(date);
        }
        Some((dates, next))
    }

    /// Whether a day can end here: `May 21 and 28 people` counts people.
    fn ends(&self, at: usize) -> bool {
        self.token(at).is_none_or(|token| token.pause != 0 || token.kind == Kind::Number)
    }

    /// `May 2021`, but not `May, 2021`, which may count what follows.
    fn month_of_year(&self) -> Found {
        let month = self.month(self.at)?;
        let year = self.year(self.at + 1).filter(|year| year.pause == 0)?;
        Some((vec![self.date(self.at, (Some(year), month, None))], self.at + 2))
    }

    fn iso(&self) -> Option<Token> {
        let token = &self.tokens[self.at];
        let mut parts = token.text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
        let fits = token.kind == Kind::Date && (1..=12).contains(&month) && (1..=31).contains(&day);
        fits.then(|| Token { text: format!("{year}-{month}-{day}"), ..token.clone() })
    }

    /// `8 p.m.`, `8:15 pm`, `20:15`, `06:00`; but not `8:15`, which may be half a day later, or a score.
    fn clock(&self) -> Found {
        let token = self.token(self.at).filter(|token| token.kind == Kind::Number)?;
        let (hour, minute) = token.raw.split_once(':').unwrap_or((token.raw.as_str(), "00"));
        let digits =
            |text: &str| (text.len() <= 2 && is_whole(text)).then(|| text.parse::<u32>().ok()).flatten();
        let (h, m) = (digits(hour)?, digits(minute).filter(|m| *m < 60 && minute.len() == 2)?);
        let half = self.token(self.at + 1).filter(|next| next.pause == 0 && (next.is("am") || next.is("pm")));
        let (h, next) = match half {
            Some(half) if (1..=12).contains(&h) => (h % 12 + 12 * u32::from(half.is("pm")), self.at + 2),
            None if token.raw.contains(':') && h < 24 && (h > 12 || hour.starts_with('0')) => {
                (h, self.at + 1)
            }
            _ => return None,
        };
        let clock = Token { text: format!("{h}:{m:02}"), kind: Kind::Clock, ..token.clone() };
        Some((vec![clock], next))
    }

    /// `1990s`, and `the 1990's`; but not `1990's winner`.
    fn decade(&self) -> Found {
        let token = &self.tokens[self.at];
        let of = |digits: &str| (is_year(digits) && digits.ends_with('0')).then(|| format!("{digits}s"));
        if let Some(text) = token.raw.strip_suffix('s').and_then(of).filter(|_| token.is_word()) {
            return Some((vec![Token { text, kind: Kind::Date, ..token.clone() }], self.at + 1));
        }
        let owner = self.token(self.at + 1).is_some_and(|next| next.kind == Kind::Owner && next.raw == "'s");
        let the = self.at.checked_sub(1).is_some_and(|before| self.tokens[before].is("the"));
        let text = of(&token.raw).filter(|_| owner && the && token.kind == Kind::Number)?;
        Some((vec![Token { text, kind: Kind::Date, ..token.clone() }], self.at + 2))
    }
}
