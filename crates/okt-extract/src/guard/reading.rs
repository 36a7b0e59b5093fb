//! A fact as it is compared: its words, numbers and dates, and which of them stand together.

use super::amounts::{self, Amount};
use super::dates::{self, Date};
use super::tables::{Language, list};
use super::words::{self, Kind, Token};
use super::{direction, numbers, phrases};

pub struct Reading {
    pub tokens: Vec<Token>,
    /// Which part of the text a token is in: parts end at commas, at `and`, at `while`.
    pub segments: Vec<usize>,
    /// What each word with content is called when it is looked for in the other text; empty for those without.
    keys: Vec<String>,
}

impl Reading {
    pub fn of(text: &str, language: &'static Language) -> Self {
        let tokens = words::tokens(text, language);
        let tokens = phrases::join(tokens, language);
        let tokens = numbers::join(tokens, language);
        let tokens = dates::join(tokens, language);
        let tokens = amounts::join(tokens, language);
        let mut segment = 0;
        let segments = tokens
            .iter()
            .map(|token| {
                let mark = token.kind == Kind::Mark
                    && matches!(token.text.as_str(), "," | ";" | "." | ":" | "(" | ")");
                segment += usize::from(mark || (token.is_word() && language.has(list::LINKS, &token.text)));
                segment
            })
            .collect();
        let keys = tokens.iter().map(|token| key(token, language)).collect();
        Self { tokens, segments, keys }
    }

    pub fn has(&self, word: &str) -> bool {
        self.words().any(|token| token.text == word)
    }

    pub fn has_stem(&self, stem: &str) -> bool {
        self.words().any(|token| token.stem == stem)
    }

    fn words(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Code))
    }

    /// Where a word stands, if it stands there once.
    fn place(&self, key: &str) -> Option<usize> {
        let mut places = self.keys.iter().enumerate().filter(|(_, other)| *other == key).map(|(at, _)| at);
        places.next().filter(|_| places.next().is_none())
    }

    pub fn amounts(&self) -> Vec<Amount> {
        let amount =
            |token: &Token| if let Kind::Amount(amount) = &token.kind { Some(amount.clone()) } else { None };
        self.tokens.iter().filter_map(amount).collect()
    }

    pub fn dates(&self) -> Vec<Date> {
        let date = |token: &Token| if let Kind::Date(date) = token.kind { Some(date) } else { None };
        self.tokens.iter().filter_map(date).collect()
    }

    /// Words with content that the other text does not have.
    pub fn only(&self, other: &Self) -> Vec<&Token> {
        let is_only = |token: &&Token| token.kind == Kind::Word && !other.has_stem(&token.stem);
        self.tokens.iter().filter(is_only).collect()
    }

    /// What its words with content are called.
    pub fn content(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str).filter(|key| !key.is_empty())
    }

    /// How many words with content the other text does not have.
    pub fn content_only(&self, other: &Self) -> usize {
        self.keys.iter().filter(|key| !key.is_empty() && !other.keys.contains(key)).count()
    }

    /// Where that stands which stands once in both.
    pub fn shared(&self, other: &Self) -> Vec<(usize, usize)> {
        let keys = self.keys.iter().filter(|key| !key.is_empty());
        keys.filter_map(|key| self.place(key).zip(other.place(key))).collect()
    }

    /// All words with capitals, as in a headline or in German: capitals say nothing then.
    pub fn is_titled(&self) -> bool {
        let words =
            || self.tokens.iter().filter(|token| token.is_word() && !token.opens && token.raw.len() > 3);
        let capitals = words().filter(|token| token.capital).count();
        let all = words().count();
        all == 0 || (all > 3 && capitals * 10 > all * 7)
    }

    /// The first letters of its words, with and without the small ones.
    pub fn initials(&self, language: &Language) -> [String; 2] {
        let words = || self.tokens.iter().filter(|token| token.is_word());
        let first = |token: &Token| token.text.chars().next();
        let content = |token: &&Token| !language.has(list::SMALL, &token.text);
        [words().filter_map(first).collect(), words().filter(content).filter_map(first).collect()]
    }
}

fn key(token: &Token, language: &Language) -> String {
    match &token.kind {
        Kind::Amount(amount) => amount.key(),
        Kind::Date(date) => date.key(),
        Kind::Code => token.stem.clone(),
        // Group A is no article.
        Kind::Word if !language.has(list::SMALL, &token.text) || (token.capital && !token.opens) => {
            // More or less of it, in whatever words.
            match direction::look_up(token).iter().find(|end| end.axis == 0) {
                Some(end) => if end.high { "+" } else { "-" }.to_owned(),
                None => token.stem.clone(),
            }
        }
        _ => String::new(),
    }
}
