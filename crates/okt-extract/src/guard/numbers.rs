//! Numbers written with words, alone or beside digits: `twenty-five`, `1.5 million`, `two thirds`, `twice`, `World War II`.

use super::amounts::is_near;
use super::tables::{Language, list};
use super::words::{Kind, Number, Token};

/// Each number becomes one token.
pub fn join(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let before = out.last();
        let found = roman(&tokens[at], before, language)
            .map(|number| (number, at + 1))
            .or_else(|| quarter(&tokens[at]).map(|number| (number, at + 1)))
            .or_else(|| Parser { tokens: &tokens, at, language }.number(before));
        let Some((number, next)) = found else {
            out.push(tokens[at].take());
            at += 1;
            continue;
        };
        let first = tokens[at].take();
        let code = first.kind == Kind::Code;
        out.push(Token { kind: Kind::Number(number), ..first });
        if code {
            out.push(Token::word("quarter", language));
        }
        at = next;
    }
    out
}

/// `Q1` is the first quarter.
fn quarter(token: &Token) -> Option<Number> {
    let digit = token.text.strip_prefix('q').filter(|_| token.kind == Kind::Code)?;
    let value = digit.parse().ok().filter(|value| (1.0..=4.0).contains(value))?;
    Some(Number { value, ordinal: true, ..Number::default() })
}

/// After a name or a century: `Louis XIV`, `siglo XIX`, `type II`.
fn roman(token: &Token, before: Option<&Token>, language: &Language) -> Option<Number> {
    let before = before?;
    let letters = token.raw.as_str();
    let numbered = ["war", "type", "phase", "stage", "class", "grade", "part", "article", "section", "level"];
    let expected = numbered.contains(&before.text.as_str()) || language.has(list::CENTURY, &before.text);
    let named = before.capital && before.is_word() && letters.len() > 1;
    if !token.is_word() || letters.is_empty() || letters.len() > 7 || !(expected || named) {
        return None;
    }
    let mut value = 0.0;
    let mut last = 0.0;
    for letter in letters.chars().rev() {
        let digit = match letter {
            'I' => 1.0,
            'V' => 5.0,
            'X' => 10.0,
            'L' if letters.len() > 1 => 50.0,
            _ => return None,
        };
        value += if digit < last { -digit } else { digit };
        last = digit;
    }
    Some(Number { value, ordinal: language.has(list::CENTURY, &before.text), ..Number::default() })
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    language: &'a Language,
}

impl Parser<'_> {
    fn word(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).filter(|token| token.is_word()).map_or("", |token| &token.text)
    }

    fn number(mut self, before: Option<&Token>) -> Option<(Number, usize)> {
        if let Some(number) = self.fixed(before) {
            return Some((number, self.at));
        }
        let start = self.at;
        let mut sum = Sum::default();
        while self.goes_on(&mut sum, start) {}
        (self.at > start).then(|| (sum.number(), self.at))
    }

    /// `twice`, `half a million`, `a third of`, `the second`.
    fn fixed(&mut self, before: Option<&Token>) -> Option<Number> {
        if let Some(number) = self.spelled_year(before) {
            return Some(number);
        }
        let language = self.language;
        let word = self.word(0);
        if let Some(&value) = language.times.get(word) {
            self.at += 1;
            return Some(Number { value, times: true, soft: value < 2.0, ..Number::default() });
        }
        if word == "both" {
            self.at += 1;
            return Some(Number { value: 2.0, soft: true, ..Number::default() });
        }
        let half = language.parts.get(word) == Some(&2.0) || language.has(list::HALVES, word);
        if half {
            self.at += 1;
            let article = usize::from(matches!(self.word(0), "a" | "an"));
            let scale = language.scales.get(self.word(article)).copied();
            if scale.is_some() {
                self.at += article + 1;
            }
            let value = 0.5 * scale.unwrap_or(1.0);
            return Some(Number { value, part: scale.is_none(), ..Number::default() });
        }
        let article = matches!(word, "a" | "an" | "un" | "une" | "ein" | "una" | "um" | "uma" | "een");
        if let Some(under) = language.parts.get(self.word(1)).filter(|_| article).copied() {
            let of = matches!(self.word(2), "of" | "de" | "der" | "des" | "di" | "van" | "do" | "da" | "del");
            let by = before.is_some_and(|token| matches!(token.text.as_str(), "by" | "to"));
            if of || by || under <= 2.0 {
                self.at += 2;
                return Some(Number { value: 1.0 / under, part: true, ..Number::default() });
            }
        }
        let &value = language.ordinals.get(word)?;
        // Seconds of time are none.
        let time = word == "second"
            && before.is_some_and(|token| matches!(token.text.as_str(), "per" | "/" | "a" | "every"));
        if time {
            return None;
        }
        self.at += 1;
        Some(Number { value, ordinal: true, soft: value < 2.0, ..Number::default() })
    }

    /// `nineteen-seventies`, `the seventies`, `nineteen eighty-four`; but not `in her seventies`.
    fn spelled_year(&mut self, before: Option<&Token>) -> Option<Number> {
        let language = self.language;
        let number = |word: &str| language.numbers.get(word).copied();
        let decade = |word: &str| language.decades.get(word).copied();
        let century = number(self.word(0)).filter(|value| (11.0..=20.0).contains(value) && language.english);
        if let (Some(century), Some(tens)) = (century, decade(self.word(1))) {
            self.at += 2;
            return Some(Number { value: century * 100.0 + tens, decade: true, ..Number::default() });
        }
        let aged =
            before.is_some_and(|token| matches!(token.text.as_str(), "his" | "her" | "their" | "my" | "our"));
        if let (Some(tens), false) = (decade(self.word(0)), aged) {
            self.at += 1;
            return Some(Number { value: tens, decade: true, ..Number::default() });
        }
        let century = century?;
        let tens = number(self.word(1)).filter(|tens| (20.0..=90.0).contains(tens))?;
        let ones = number(self.word(2)).filter(|ones| (1.0..=9.0).contains(ones));
        self.at += 2 + usize::from(ones.is_some());
        let value = century * 100.0 + tens + ones.unwrap_or(0.0);
        Some(Number { value, plain: true, ..Number::default() })
    }

    /// Takes the next word, if it belongs to the number.
    fn goes_on(&mut self, sum: &mut Sum, start: usize) -> bool {
        let Some(token) = self.tokens.get(self.at) else { return false };
        if let Some(number) = token.number() {
            let fits = self.at == start || (number.part && sum.current.is_some() && !sum.closed);
            if fits {
                sum.digits(number);
                self.at += 1;
            }
            return fits;
        }
        if !token.is_word() || sum.closed {
            return false;
        }
        let language = self.language;
        let word = token.text.as_str();
        let part = language.parts.get(word).copied().filter(|_| word != "second");
        if let (Some(under), Some(over)) = (part, sum.current) {
            let many = word.ends_with('s') || !language.english;
            if (is_near(over, 1.0) || (many && over < 20.0)) && sum.total == 0.0 {
                sum.part(over / under);
                self.at += 1;
                return true;
            }
        }
        let belongs = if let Some(&value) = language.numbers.get(word) {
            sum.add(value, word)
        } else if let Some(&scale) = language.scales.get(word) {
            sum.multiply(scale)
        } else if let Some(&value) = language.ordinals.get(word) {
            sum.end(value)
        } else {
            return matches!(word, "and" | "und" | "et" | "y" | "e" | "en") && self.and(sum);
        };
        self.at += usize::from(belongs);
        belongs
    }

    /// `two hundred and five`, `one and a half`.
    fn and(&mut self, sum: &mut Sum) -> bool {
        if sum.is_empty() {
            return false;
        }
        let part = self.language.parts.get(self.word(2)).copied();
        if let (Some(under), true) = (part, self.word(1) == "a") {
            sum.current = Some(sum.current.unwrap_or(0.0) + 1.0 / under);
            self.at += 3;
            return true;
        }
        let after = self.language.numbers.get(self.word(1)).copied();
        let round = sum.spelled && sum.current.is_none_or(|value| value % 100.0 == 0.0 && value >= 100.0);
        let fits = round && after.is_some_and(|value| value < 100.0);
        self.at += usize::from(fits);
        fits
    }
}

/// A number as far as it was read.
#[derive(Default)]
struct Sum {
    total: f64,
    current: Option<f64>,
    read: Number,
    spelled: bool,
    soft: bool,
    closed: bool,
    scale: f64,
}

impl Sum {
    fn is_empty(&self) -> bool {
        self.current.is_none() && self.total == 0.0
    }

    fn digits(&mut self, number: Number) {
        if let Some(current) = self.current {
            self.current = Some(current + number.value);
            self.closed = true;
            return;
        }
        self.current = Some(number.value);
        self.read = number;
        self.closed = number.ordinal || number.decade || number.times;
    }

    fn part(&mut self, value: f64) {
        self.current = Some(value);
        self.read.part = true;
        self.soft = false;
        self.closed = true;
    }

    fn add(&mut self, value: f64, word: &str) -> bool {
        let fits = match self.current {
            None => true,
            Some(current) => {
                let tens =
                    (20.0..100.0).contains(&(current % 100.0)) && current % 10.0 == 0.0 && value < 10.0;
                self.spelled && (tens || (current >= 100.0 && current % 100.0 == 0.0 && value < 100.0))
            }
        };
        if fits {
            self.soft = self.is_empty() && is_near(value, 1.0) && word != "1";
            self.current = Some(self.current.unwrap_or(0.0) + value);
            self.spelled = true;
        }
        fits
    }

    fn multiply(&mut self, scale: f64) -> bool {
        let current = self.current.take().unwrap_or(1.0);
        if is_near(scale, 100.0) {
            self.current = Some(current * 100.0);
        } else {
            self.total += current * scale;
        }
        self.scale = scale;
        self.spelled = true;
        self.soft = false;
        self.read = Number::default();
        true
    }

    /// `twenty-first`.
    fn end(&mut self, value: f64) -> bool {
        let fits =
            self.current.is_some_and(|current| current >= 20.0 && current % 10.0 == 0.0) && self.spelled;
        if fits {
            self.current = self.current.map(|current| current + value);
            self.read.ordinal = true;
            self.closed = true;
        }
        fits
    }

    fn number(&self) -> Number {
        Number {
            value: self.total + self.current.unwrap_or(0.0),
            soft: self.soft,
            scale: self.scale,
            ..self.read
        }
    }
}
