//! A text cut into words, numbers and signs, with everything kept that could make a difference.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::lexicon::{lexicon, list};

/// A piece of a text.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about how it was written")]
pub struct Token {
    /// The same for what means the same.
    pub text: String,
    /// As it was written.
    pub raw: String,
    pub kind: Kind,
    /// The punctuation before it, one bit for each of [`pause`].
    pub pause: u8,
    /// Written together with the one before: `start-up`.
    pub joined: bool,
    /// Between quotation marks.
    pub quoted: bool,
    /// The first of a sentence: its capital says nothing.
    pub opens: bool,
    /// Part of another word until it was written out: the `not` of `don't`.
    pub contracted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Word,
    /// `a`, `an`, `the`.
    Article,
    /// A number by itself.
    Number,
    /// `third`, `3rd`.
    Ordinal,
    /// A number with what it counts.
    Amount,
    /// A day, a month of a year, a decade.
    Date,
    Clock,
    /// The `'s` of an owner.
    Owner,
    /// Anything that is neither letter, digit nor punctuation.
    Sign,
}

/// What stands between two words.
pub mod pause {
    pub const COMMA: u8 = 1;
    pub const DASH: u8 = 2;
    pub const COLON: u8 = 4;
    pub const STOP: u8 = 8;
    pub const OPEN: u8 = 16;
    pub const CLOSE: u8 = 32;
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub fn is_one_of(&self, texts: &[&str]) -> bool {
        texts.contains(&self.text.as_str())
    }

    /// Whether it is a word of a list.
    pub fn is_in(&self, list: u64) -> bool {
        matches!(self.kind, Kind::Word | Kind::Article) && lexicon().has(list, &self.text)
    }

    pub fn has_capital(&self) -> bool {
        self.raw.starts_with(char::is_uppercase)
    }

    /// A word with a capital that it does not have from its place.
    pub fn is_name(&self) -> bool {
        self.kind == Kind::Word && self.has_capital() && !self.opens
    }

    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number | Kind::Amount)
    }

    /// A year, a date, a day of the week, a time of day.
    pub fn is_time(&self) -> bool {
        // With a comma in it, it counts something.
        let year = self.kind == Kind::Number && is_year(&self.raw);
        let weekday = self.is_word() && self.has_capital() && self.is_in(list::WEEKDAYS);
        matches!(self.kind, Kind::Date | Kind::Clock) || year || weekday
    }

    pub fn is_and(&self) -> bool {
        self.is_word() && matches!(self.text.as_str(), "and" | "or" | "&")
    }

    /// Whether it may be a verb. In doubt it may.
    pub fn may_be_verb(&self) -> bool {
        if !self.is_word() || self.is_name() {
            return false;
        }
        let ending = self.text.len() > 4 && (self.text.ends_with("ed") || self.text.ends_with("ing"));
        let listed = list::AUXILIARIES | list::PAST | list::PRESENT | list::REPORT | list::DONE;
        self.is_in(listed) || (ending && !self.is_in(list::ING_NOUNS))
    }
}

pub fn is_year(text: &str) -> bool {
    text.len() == 4 && matches!(text.as_bytes()[0], b'1' | b'2') && text.bytes().all(|c| c.is_ascii_digit())
}

/// Without accents, where the letter has any.
pub fn plain(word: &str) -> String {
    let fold = |c| match c {
        'ø' => 'o',
        'ł' => 'l',
        'đ' => 'd',
        c => c,
    };
    word.nfd().filter(|c| !is_combining_mark(*c)).map(fold).collect()
}

/// The tokens of a text. `None` for letters that are neither Latin nor Greek: what an accent means there is not known here.
pub fn cut(text: &str, most: usize) -> Option<Vec<Token>> {
    let chars: Vec<char> = text.nfc().map(unify).collect();
    if chars.iter().any(|c| c.is_alphabetic() && !is_known_letter(*c)) {
        return None;
    }
    let mut cutter =
        Cutter { chars, at: 0, tokens: Vec::new(), pause: 0, joined: false, quoted: false, opens: true };
    while cutter.at < cutter.chars.len() {
        cutter.step();
        if cutter.tokens.len() > most {
            return None;
        }
    }
    Some(cutter.tokens)
}

/// One way to write marks that look alike.
fn unify(c: char) -> char {
    match c {
        '’' | 'ʼ' | '‘' | '`' | '´' => '\'',
        '“' | '”' | '„' | '«' | '»' | '‟' => '"',
        '‐' | '‑' | '−' => '-',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        c => c,
    }
}

fn is_known_letter(c: char) -> bool {
    matches!(c, '\0'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1eff}')
}

struct Cutter {
    chars: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    pause: u8,
    joined: bool,
    quoted: bool,
    opens: bool,
}

impl Cutter {
    fn char(&self, at: usize) -> char {
        self.chars.get(at).copied().unwrap_or(' ')
    }

    fn before(&self) -> char {
        self.at.checked_sub(1).map_or(' ', |at| self.char(at))
    }

    fn step(&mut self) {
        let c = self.char(self.at);
        if c.is_ascii_digit() {
            self.number();
        } else if c.is_alphanumeric() {
            self.word();
        } else {
            self.mark(c);
        }
    }

    fn push(&mut self, raw: String, kind: Kind) {
        let text = if kind == Kind::Word { canonical(&raw) } else { raw.clone() };
        let kind = if matches!(text.as_str(), "a" | "an" | "the") { Kind::Article } else { kind };
        let first = self.tokens.is_empty();
        self.tokens.push(Token {
            text: if kind == Kind::Article && text == "an" { "a".to_owned() } else { text },
            raw,
            kind,
            pause: if first { 0 } else { self.pause },
            joined: self.joined,
            quoted: self.quoted,
            opens: self.opens,
            contracted: false,
        });
        (self.pause, self.joined, self.opens) = (0, false, false);
    }

    /// Letters, and digits behind them; apostrophes inside; `U.S.`; `AT&T`.
    fn word(&mut self) {
        let start = self.at;
        if let Some(end) = self.initials() {
            let raw: String = self.chars[start..end].iter().filter(|c| **c != '.').collect();
            self.at = end;
            self.push(raw, Kind::Word);
            // `in the U.S. The firm`: the stop may also end the sentence. Then the capitals must agree by themselves.
            return;
        }
        while self.at < self.chars.len() {
            let (c, next) = (self.char(self.at), self.char(self.at + 1));
            let inside = matches!(c, '\'' | '&') && next.is_alphanumeric();
            if !(c.is_alphanumeric() || is_combining_mark(c) || inside) {
                break;
            }
            self.at += 1;
        }
        let raw: String = self.chars[start..self.at].iter().collect();
        self.push(raw, Kind::Word);
        self.end_of_word();
    }

    /// What stands right behind a word and belongs to it: the apostrophe of `dogs'`, the stop of `Dr.` and `No. 5`.
    fn end_of_word(&mut self) {
        let (mark, next) = (self.char(self.at), self.char(self.at + 1));
        let Some(last) = self.tokens.last_mut() else { return };
        if mark == '\'' && next != '\'' && last.text.ends_with('s') {
            self.at += 1;
            self.push("'s".to_owned(), Kind::Owner);
        } else if mark == '.' {
            let initial = last.raw.chars().count() == 1 && last.has_capital();
            let after = self.chars[self.at + 1..].iter().find(|c| !c.is_whitespace());
            if last.text == "no" && after.is_some_and(char::is_ascii_digit) {
                "no.".clone_into(&mut last.text);
                self.at += 1;
            } else if after.is_some() && (initial || last.is_in(list::ABBREVIATIONS)) {
                self.at += 1;
            }
        }
    }

    /// Single letters with stops, at least two: where they end.
    fn initials(&self) -> Option<usize> {
        let mut end = self.at;
        while self.char(end).is_ascii_alphabetic() && self.char(end + 1) == '.' {
            end += 2;
        }
        (end >= self.at + 4 && !self.char(end).is_alphanumeric()).then_some(end)
    }

    /// Digits, with what may stand between and behind them.
    fn number(&mut self) {
        let start = self.at;
        if let Some(end) = self.iso_date() {
            let raw: String = self.chars[start..end].iter().collect();
            self.at = end;
            self.push(raw, Kind::Date);
            return;
        }
        while self.char(self.at).is_ascii_digit()
            || (matches!(self.char(self.at), ',' | '.' | ':') && self.char(self.at + 1).is_ascii_digit())
        {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        let mut end = self.at;
        while self.char(end).is_alphanumeric() {
            end += 1;
        }
        let tail: String = self.chars[self.at..end].iter().collect();
        self.at = end;
        if tail.is_empty() {
            self.push(digits, Kind::Number);
            let owner =
                self.char(end) == '\'' && self.char(end + 1) == 's' && !self.char(end + 2).is_alphanumeric();
            if owner {
                self.at += 2;
                self.push("'s".to_owned(), Kind::Owner);
            }
        } else if matches!(tail.as_str(), "st" | "nd" | "rd" | "th") && is_whole(&digits) {
            self.push(digits, Kind::Ordinal);
        } else if lexicon().units.contains_key(tail.as_str()) || matches!(tail.as_str(), "bn" | "am" | "pm") {
            self.push(digits, Kind::Number);
            self.push(tail, Kind::Word);
        } else {
            // `3D`, `737s`, `1990s`.
            self.push(format!("{digits}{tail}"), Kind::Word);
        }
    }

    /// `2021-05-17`.
    fn iso_date(&self) -> Option<usize> {
        let shape = [4, 2, 2];
        let mut at = self.at;
        for (part, length) in shape.into_iter().enumerate() {
            if part > 0 {
                if self.char(at) != '-' {
                    return None;
                }
                at += 1;
            }
            if !(0..length).all(|ahead| self.char(at + ahead).is_ascii_digit()) {
                return None;
            }
            at += length;
        }
        (!self.char(at).is_alphanumeric() && self.char(at) != '-').then_some(at)
    }

    fn mark(&mut self, c: char) {
        let (before, next) = (self.before(), self.char(self.at + 1));
        self.at += 1;
        match c {
            ',' => self.pause |= pause::COMMA,
            ';' | '!' => self.pause |= pause::STOP,
            '.' | '…' => {
                self.pause |= pause::STOP;
                self.opens = true;
            }
            ':' => self.pause |= pause::COLON,
            '(' | '[' | '{' => self.pause |= pause::OPEN,
            ')' | ']' | '}' => self.pause |= pause::CLOSE,
            '"' => self.quoted = !self.quoted,
            '\'' if next == '\'' => {
                self.at += 1;
                self.quoted = !self.quoted;
            }
            '\'' => self.apostrophe(next),
            '-' | '–' | '—' => self.dash(c, before),
            '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' => {}
            c if c.is_whitespace() || c.is_control() => {}
            c => self.push(c.to_string(), Kind::Sign),
        }
    }

    /// One that no letter stands before: `dog 's` as some write it, or a quotation mark, which is kept as it is.
    fn apostrophe(&mut self, next: char) {
        let tail: String = self.chars[self.at..].iter().take_while(|c| c.is_alphanumeric()).take(3).collect();
        let spaced = self.at > 1 && self.char(self.at - 2) == ' ';
        if spaced
            && matches!(tail.as_str(), "s" | "re" | "ve" | "ll" | "m" | "d")
            && let Some(last) = self.tokens.last_mut().filter(|last| last.is_word())
        {
            last.raw.push('\'');
            last.raw.push_str(&tail);
            last.text = canonical(&last.raw);
            self.at += tail.len();
            return;
        }
        if next.is_alphanumeric() {
            self.push("'".to_owned(), Kind::Sign);
        }
    }

    /// Inside of a word it joins, between numbers it is a range, before a number a minus; else it is a pause.
    fn dash(&mut self, c: char, before: char) {
        let mut double = false;
        while self.char(self.at) == c {
            self.at += 1;
            double = true;
        }
        let next = self.char(self.at);
        let number = self.tokens.last().is_some_and(|last| {
            last.pause & pause::CLOSE == 0 && last.raw.ends_with(|c: char| c.is_ascii_digit())
        });
        let ahead = self.chars[self.at..].iter().find(|c| !c.is_whitespace()).copied().unwrap_or(' ');
        let close = before.is_alphanumeric() && next.is_alphanumeric();
        if number && ahead.is_ascii_digit() && self.pause == 0 && (close || next == ' ') {
            self.push("-".to_owned(), Kind::Sign);
        } else if c != '—' && !double && close {
            self.joined = true;
        } else if c != '—' && !double && next.is_ascii_digit() {
            self.push("minus".to_owned(), Kind::Sign);
        } else {
            self.pause |= pause::DASH;
        }
    }
}

pub fn is_whole(digits: &str) -> bool {
    digits.bytes().all(|c| c.is_ascii_digit())
}

/// Small letters; without accents for names and for the words that are listed.
fn canonical(raw: &str) -> String {
    let small = raw.to_lowercase();
    if small.is_ascii() {
        return small;
    }
    let bare = plain(&small);
    let free = raw.starts_with(char::is_uppercase) || lexicon().has(list::ACCENTED, &bare);
    if free { bare } else { small }
}
