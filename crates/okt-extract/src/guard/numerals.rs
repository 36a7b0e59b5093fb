//! Numbers written with digits: `1,500`, `1.5`, `3/4`, `10⁶`, `2020-03-03`, `21st`, `1990s`.

use super::dates::Date;
use super::tables::common;
use super::words::{Kind, Number, Token, fold};

/// The digit, on the line.
pub fn digit(c: char) -> Option<char> {
    match c {
        '0'..='9' | '½' | '¼' | '¾' | '⅓' | '⅔' | '⅛' => Some(c),
        '０'..='９' => char::from_u32(u32::from(c) - 0xff10 + 0x30),
        '٠'..='٩' => char::from_u32(u32::from(c) - 0x660 + 0x30),
        '۰'..='۹' => char::from_u32(u32::from(c) - 0x6f0 + 0x30),
        '०'..='९' => char::from_u32(u32::from(c) - 0x966 + 0x30),
        _ => None,
    }
}

/// The digit above or below the line.
pub fn raised(c: char) -> Option<char> {
    let digit = match c {
        '²' => 2,
        '³' => 3,
        '¹' => 1,
        '⁰' | '⁴'..='⁹' => u32::from(c) - 0x2070,
        '₀'..='₉' => u32::from(c) - 0x2080,
        _ => return None,
    };
    char::from_digit(digit, 10)
}

/// The number that begins here, and where it ends.
pub fn read(chars: &[char], start: usize, english: bool) -> (Token, usize) {
    let mut reader = Reader { chars, at: start, english };
    let kind = reader.kind(start);
    let raw: String = chars[start..reader.at].iter().collect();
    let text = fold(&raw);
    (Token { stem: text.clone(), text, raw, kind, ..Token::default() }, reader.at)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    english: bool,
}

/// Longer runs are no numbers that anybody counts with.
const MOST_DIGITS: usize = 40;

impl Reader<'_> {
    fn kind(&mut self, start: usize) -> Kind {
        if let Some(part) = self.chars.get(start).and_then(|c| part(*c)) {
            self.at += 1;
            return Kind::Number(Number { value: part, part: true, ..Number::default() });
        }
        let mut groups = vec![self.digits()];
        let mut marks = Vec::new();
        while let Some(mark) = self.mark(&groups, &marks) {
            self.at += 1;
            marks.push(mark);
            groups.push(self.digits());
        }
        if let Some(date) = date(&groups, &marks) {
            return Kind::Date(date);
        }
        let Some(mut number) = self.value(&groups, &marks) else { return Kind::Code };
        if let Some(part) = self.chars.get(self.at).and_then(|c| part(*c)) {
            self.at += 1;
            number.value += part;
        }
        self.exponent(&mut number);
        if is_negative(&self.chars[..start]) {
            number.value = -number.value;
        }
        self.tail(number)
    }

    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or(' ')
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(digit) = digit(self.peek(0)).filter(char::is_ascii_digit) {
            digits.push(digit);
            self.at += 1;
        }
        digits
    }

    /// The mark before the next digits of the same number.
    fn mark(&self, groups: &[String], marks: &[char]) -> Option<char> {
        let mark = match self.peek(0) {
            '’' => '\'',
            '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
            '٫' => '.',
            c => c,
        };
        let run =
            (1..=4).take_while(|ahead| digit(self.peek(*ahead)).is_some_and(|c| c.is_ascii_digit())).count();
        let first = groups.first().map_or(0, String::len);
        let fits = match mark {
            '.' | ',' | ':' => run > 0,
            '\'' | ' ' => run == 3 && first <= 3 && groups.len() < 6 && marks.iter().all(|old| *old == mark),
            '/' => run > 0 && groups.len() < 3,
            // Only in a date: `2020-03-03`.
            '-' => (first == 4 && (1..=2).contains(&run) && groups.len() < 3) && self.is_iso(groups.len()),
            _ => false,
        };
        fits.then_some(mark)
    }

    /// Two more groups of two digits, or the second of them.
    fn is_iso(&self, groups: usize) -> bool {
        if groups == 2 {
            return true;
        }
        let digit = |ahead: usize| self.peek(ahead).is_ascii_digit();
        digit(1) && digit(2) && self.peek(3) == '-' && digit(4)
    }

    fn value(&self, groups: &[String], marks: &[char]) -> Option<Number> {
        let all = groups.concat();
        if all.len() > MOST_DIGITS {
            return None;
        }
        let number = |digits: &str| Some(Number { value: digits.parse().ok()?, ..Number::default() });
        let [first, rest @ ..] = groups else { return None };
        let (Some(&mark), Some(last)) = (marks.first(), rest.last()) else {
            let plain = first.len() == 4;
            return Some(Number { plain, ..number(first)? });
        };
        if marks.contains(&'/') || marks.contains(&':') {
            let [over, under] = groups else { return None };
            let (over, under): (f64, f64) = (over.parse().ok()?, under.parse().ok()?);
            let small = mark == '/' && under > over && under <= 100.0;
            return small.then(|| Number { value: over / under, part: true, ..Number::default() });
        }
        let thousands = |groups: &[String]| groups.iter().all(|group| group.len() == 3) && first.len() <= 3;
        let same = marks.iter().all(|other| *other == mark);
        let point = if self.english { '.' } else { ',' };
        let lone_point = mark == point && marks.len() == 1;
        if same && thousands(rest) && !lone_point && !first.starts_with('0') {
            return number(&all);
        }
        let (_, before) = groups.split_last()?;
        let tail = marks.last().copied()?;
        let inner = &marks[..marks.len() - 1];
        let whole = inner.is_empty()
            || (inner.iter().all(|m| *m == inner[0] && *m != tail) && thousands(&before[1..]));
        if matches!(tail, '.' | ',') && whole {
            return number(&format!("{}.{last}", before.concat()));
        }
        // 12,34,567
        let indian =
            same && mark == ',' && last.len() == 3 && rest[..rest.len() - 1].iter().all(|g| g.len() == 2);
        if indian { number(&all) } else { None }
    }

    /// `10⁶`, `10^6`, `1e6`.
    fn exponent(&mut self, number: &mut Number) {
        let caret = usize::from(self.peek(0) == '^');
        let minus =
            usize::from(matches!(self.peek(caret), '⁻' | '-' | '−') && (caret == 1 || self.peek(0) == '⁻'));
        let from = self.at + caret + minus;
        let read = |c: &char| if caret == 1 { c.to_digit(10).map(|_| *c) } else { raised(*c) };
        let digits: String =
            self.chars[from.min(self.chars.len())..].iter().map_while(read).take(3).collect();
        if let Ok(power) = digits.parse::<i32>() {
            self.at = from + digits.len();
            number.value = number.value.powi(if minus == 1 { -power } else { power });
            number.plain = false;
        }
    }

    /// Letters right after: `21st`, `1990s`, `5km`, `3D`.
    fn tail(&mut self, number: Number) -> Kind {
        let rest = &self.chars[self.at..];
        let letters: String = rest.iter().take_while(|c| c.is_alphanumeric()).take(12).collect();
        let quoted = matches!(rest, ['\'' | '’', 's', ..]);
        let years = number.plain || (number.value < 100.0 && number.value % 10.0 == 0.0);
        match letters.as_str() {
            "" if quoted && years => {
                self.at += 2;
                Kind::Number(Number { decade: true, ..number })
            }
            "er" if !self.english && years && number.value % 10.0 == 0.0 => {
                self.at += 2;
                Kind::Number(Number { decade: true, ..number })
            }
            "st" | "nd" | "rd" | "th" | "er" | "ème" | "e" | "º" | "ª" => {
                self.at += letters.chars().count();
                Kind::Number(Number { ordinal: true, plain: false, ..number })
            }
            "s" if years => {
                self.at += 1;
                Kind::Number(Number { decade: true, ..number })
            }
            "x" | "X" => {
                self.at += 1;
                Kind::Number(Number { times: true, plain: false, ..number })
            }
            "k" | "K" | "bn" | "M" | "mn" | "m" | "b" | "tn" | "" => Kind::Number(number),
            other if common().units.contains_key(other) || other.starts_with(crate::ground::is_unspaced) => {
                Kind::Number(number)
            }
            other => {
                self.at += other.chars().count();
                Kind::Code
            }
        }
    }
}

fn part(c: char) -> Option<f64> {
    Some(match c {
        '½' => 0.5,
        '¼' => 0.25,
        '¾' => 0.75,
        '⅓' => 1.0 / 3.0,
        '⅔' => 2.0 / 3.0,
        '⅛' => 0.125,
        _ => return None,
    })
}

/// `−5`, but neither `3−5` nor `COX-2`.
fn is_negative(before: &[char]) -> bool {
    match before {
        ['-' | '−' | '–'] => true,
        [.., last, '-' | '−' | '–'] => {
            last.is_whitespace() || matches!(last, '(' | '[' | '~' | '<' | '>' | '=')
        }
        _ => false,
    }
}

/// `2020-03-03`, `3.3.2020`, `3/3/2020`.
fn date(groups: &[String], marks: &[char]) -> Option<Date> {
    let [first, second, third] = groups else { return None };
    let [mark, other] = marks else { return None };
    if mark != other {
        return None;
    }
    let number = |digits: &String| digits.parse::<u16>().ok();
    let (one, two, three) = (number(first)?, number(second)?, number(third)?);
    if first.len() == 4 && matches!(mark, '-' | '/' | '.') {
        return Date::of(one, two, three, false);
    }
    if third.len() != 4 || first.len() > 2 || second.len() > 2 {
        return None;
    }
    match mark {
        '.' => Date::of(three, two, one, false),
        // The month may come first or second; where both can be, both are kept.
        '/' => Date::of(three, two, one, one <= 12 && two <= 12).or_else(|| Date::of(three, one, two, false)),
        _ => None,
    }
}
