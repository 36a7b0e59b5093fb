//! One way to write what has several: contractions, spelling, numbers, amounts and dates.

use super::lexicon::{lexicon, list};
use super::token::{Kind, Token, cut};
use super::{amounts, dates, numbers};

/// More words than a fact has.
pub const MOST_TOKENS: usize = 200;

/// A text as it is compared.
#[derive(Clone, Debug)]
pub struct Canon {
    pub tokens: Vec<Token>,
    /// Nothing is denied, limited, reported or made conditional in it: what is said in any part of it is simply so.
    pub plain: bool,
    /// How often `and` and `or` stand in it.
    pub links: usize,
    /// The order in which things are said may say something.
    pub ordered: bool,
    /// Something goes on or is said of a time without end, so that a perfect is no past.
    pub ongoing: bool,
}

impl Canon {
    /// `None` for texts that are too long, not in Latin letters, or not known to be English.
    pub fn of(text: &str) -> Option<Self> {
        let tokens = read(text)?;
        let english = tokens.iter().any(is_english);
        if !english || tokens.len() > MOST_TOKENS {
            return None;
        }
        let has = |list| tokens.iter().any(|token: &Token| token.is_in(list));
        let plain = !has(list::SCOPE | list::REPORT);
        let links = tokens.iter().filter(|token| token.is_and()).count();
        let ordered = has(list::ORDERED) || tokens.iter().any(|token| token.kind == Kind::Ordinal);
        let ongoing = has(list::ONGOING);
        Some(Self { tokens, plain, links, ordered, ongoing })
    }

    pub fn get(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    /// The one before.
    pub fn back(&self, at: usize) -> Option<&Token> {
        at.checked_sub(1).and_then(|at| self.tokens.get(at))
    }

    /// Where a name that begins here ends: words with capitals, of which `of` may join two.
    pub fn name_end(&self, at: usize) -> usize {
        let is = |at: usize| self.get(at).is_some_and(|token| token.is_word() && token.has_capital());
        let mut end = at;
        while is(end) && (end == at || self.tokens[end].pause == 0) {
            end += 1;
            let of = self.get(end).is_some_and(|token| token.is("of") && token.pause == 0);
            if of && is(end + 1) {
                end += 1;
            }
        }
        end
    }

    /// Whether a time is said here: `in 2019`, `on 5 May`, `in the 12th century`, `Monday`.
    pub fn is_when(&self, at: usize) -> bool {
        let preposition = self.get(at).is_some_and(|token| token.is_one_of(&["in", "on", "at"]));
        let near =
            |at: usize| self.get(at).is_some_and(|token| token.is_one_of(&["early", "late", "mid", "the"]));
        let mut place = at + usize::from(preposition);
        while preposition && place < at + 3 && near(place) {
            place += 1;
        }
        self.is_time(place) && self.get(at).is_some_and(|token| token.pause == 0)
    }

    /// A year, a date, a month, a day, a century.
    pub fn is_time(&self, at: usize) -> bool {
        let Some(token) = self.get(at) else { return false };
        let month = token.has_capital() && token.is_word() && lexicon().months.contains_key(&token.text);
        let century = token.kind == Kind::Ordinal && self.get(at + 1).is_some_and(|next| next.is("century"));
        token.is_time() || century || (month && self.closes(at + 1))
    }

    /// Whether what stands before this place is complete: nothing here can be a noun that it belongs to.
    pub fn closes(&self, at: usize) -> bool {
        self.get(at).is_none_or(|token| {
            token.pause != 0
                || token.kind == Kind::Owner
                || token.is_in(list::PREPOSITIONS | list::AUXILIARIES)
                || token.is_in(list::PAST | list::REPORT | list::PUNCTUAL)
        })
    }
}

/// Whether a word is one that no other language has; beside those that are listed, `visited`, but not Danish `frihed`.
fn is_english(token: &Token) -> bool {
    let past = token.text.len() > 5 && token.text.ends_with("ed") && !token.text.ends_with("hed");
    token.is_in(list::ENGLISH) || (past && token.is_word() && !token.has_capital())
}

/// The tokens of a text, written one way.
pub fn read(text: &str) -> Option<Vec<Token>> {
    let tokens = write_out(cut(text, MOST_TOKENS)?);
    Some(amounts::join(&dates::join(&numbers::join(&tokens))))
}

/// Contractions become the words that they stand for, and words are spelled as in America.
fn write_out(tokens: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let before = out.len();
        if token.is_word() && token.raw.contains('\'') {
            let next = rest.peek().map(|next| next.text.clone()).unwrap_or_default();
            contraction(&token, &next, &mut out);
        } else if token.is("cannot") {
            split(&token, &["can", "not"], &mut out);
        }
        if out.len() == before {
            out.push(spelled(token));
        }
    }
    out
}

fn contraction(token: &Token, next: &str, out: &mut Vec<Token>) {
    let Some((front, tail)) = token.text.rsplit_once('\'') else { return };
    let pronoun = lexicon().has(list::PRONOUNS, front);
    let verb = match tail {
        "t" => {
            match (front, out.last_mut()) {
                ("can", _) => split(token, &["can", "not"], out),
                ("won", _) => split(token, &["will", "not"], out),
                // `do n't`, as some write it.
                ("n", Some(_)) => split(token, &["not"], out),
                (front, _) => {
                    let plain = front.strip_suffix('n').filter(|verb| lexicon().has(list::AUXILIARIES, verb));
                    if let Some(verb) = plain {
                        split(token, &[verb, "not"], out);
                    }
                }
            }
            return;
        }
        "re" if pronoun => "are",
        "ve" if pronoun => "have",
        "ll" if pronoun => "will",
        "m" if front == "i" => "am",
        "s" if pronoun && lexicon().has(list::AFTER_IS, next) => "is",
        "s" if pronoun && next == "been" => "has",
        // It may be `is` or `has`, and `had` or `would`.
        "s" if !pronoun => {
            let raw = &token.raw[..token.raw.len() - 2];
            out.push(spelled(Token { text: front.to_owned(), raw: raw.to_owned(), ..token.clone() }));
            out.push(Token {
                text: "'s".to_owned(),
                raw: "'s".to_owned(),
                kind: Kind::Owner,
                ..Token::default()
            });
            mark_like(token, out);
            return;
        }
        _ => return,
    };
    split(token, &[front, verb], out);
}

/// Puts words in the place of one.
fn split(token: &Token, words: &[&str], out: &mut Vec<Token>) {
    for (at, word) in words.iter().enumerate() {
        let mut raw = (*word).to_owned();
        if at == 0 && token.has_capital() {
            raw = raw[..1].to_uppercase() + &raw[1..];
        }
        let first = at == 0;
        out.push(Token {
            text: (*word).to_owned(),
            raw,
            pause: if first { token.pause } else { 0 },
            joined: first && token.joined,
            opens: first && token.opens,
            contracted: !first || words.len() == 1,
            ..token.clone()
        });
    }
}

fn mark_like(token: &Token, out: &mut [Token]) {
    if let Some(last) = out.last_mut() {
        last.quoted = token.quoted;
    }
}

/// As it is spelled in America. Names keep their spelling: Mr Grey is not Mr Gray.
fn spelled(mut token: Token) -> Token {
    if token.is_word()
        && let Some(text) = spelling(&token.text, token.has_capital())
    {
        token.text = text;
    }
    token
}

fn spelling(word: &str, capital: bool) -> Option<String> {
    let lexicon = lexicon();
    if !word.is_ascii() {
        return None;
    }
    if (!capital || lexicon.has(list::SPELLING_OF_NAMES, word))
        && let Some(other) = lexicon.spelling.get(word)
    {
        return Some(other.clone());
    }
    for (ise, ize) in [("isation", "ization"), ("isations", "izations")] {
        if let Some(front) = word.strip_suffix(ise).filter(|front| front.len() > 2) {
            return Some(format!("{front}{ize}"));
        }
    }
    if capital {
        return None;
    }
    if let Some(rest) =
        lexicon.our.iter().find_map(|stem| word.strip_prefix(stem.as_str()).map(|rest| (stem, rest)))
    {
        return Some(format!("{}or{}", &rest.0[..rest.0.len() - 3], rest.1));
    }
    for stem in &lexicon.doubled {
        let end = word.strip_prefix(stem.as_str()).and_then(|rest| rest.strip_prefix('l'));
        if let Some(end @ ("ed" | "ing" | "er" | "ers")) = end {
            return Some(format!("{stem}{end}"));
        }
    }
    for end in ["e", "es", "ed", "ing", "er", "ers"] {
        let front = word.strip_suffix(end).and_then(|front| front.strip_suffix("is"));
        if let Some(front) = front.filter(|front| front.len() > 3 && word.len() > 6) {
            return Some(format!("{front}iz{end}"));
        }
    }
    None
}
