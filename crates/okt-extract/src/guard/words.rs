//! A text as words, numbers and marks.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::amounts::Amount;
use super::dates::Date;
use super::numerals;
use super::tables::Language;
use crate::ground::is_unspaced;

/// A piece of a text.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about how it was written")]
pub struct Token {
    /// Without case and accents.
    pub text: String,
    /// What all forms of the word have in common.
    pub stem: String,
    /// As it was written.
    pub raw: String,
    pub kind: Kind,
    pub capital: bool,
    /// The first of a sentence: its capital says nothing.
    pub opens: bool,
    /// Whose.
    pub owner: bool,
    /// Written together with the one before: `5-year`.
    pub glued: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    #[default]
    Word,
    Mark,
    /// Letters and digits: the name of something.
    Code,
    Number(Number),
    Amount(Amount),
    Date(Date),
}

/// A number without what it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about how it was written")]
pub struct Number {
    pub value: f64,
    pub ordinal: bool,
    /// Four digits and nothing between them: may be a year.
    pub plain: bool,
    /// A half, two thirds.
    pub part: bool,
    /// `one`, `first`, `both`: need not be said.
    pub soft: bool,
    /// Twice, tenfold.
    pub times: bool,
    /// The 1990s.
    pub decade: bool,
    /// The million of five million; nought where there is none.
    pub scale: f64,
}

impl Token {
    pub fn word(text: &str, language: &Language) -> Self {
        let text = fold(text);
        Self { stem: stem(&text, language), raw: text.clone(), text, ..Self::default() }
    }

    /// Moves the words and leaves what kind it was, for those behind that look back.
    pub fn take(&mut self) -> Self {
        let kind = self.kind.clone();
        Self { kind, ..std::mem::replace(self, Self { kind: self.kind.clone(), ..Self::default() }) }
    }

    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    pub fn number(&self) -> Option<Number> {
        if let Kind::Number(number) = self.kind { Some(number) } else { None }
    }
}

/// Without case and accents.
pub fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    word.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
}

/// The words of a text, its numbers, and the marks that matter.
pub fn tokens(text: &str, language: &'static Language) -> Vec<Token> {
    let chars = if text.is_ascii() { text.chars().collect() } else { text.nfc().collect() };
    let mut cutter = Cutter { chars, at: 0, tokens: Vec::new(), language, opens: true };
    cutter.cut();
    cutter.tokens
}

struct Cutter {
    chars: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    language: &'static Language,
    opens: bool,
}

impl Cutter {
    fn cut(&mut self) {
        while let Some(&c) = self.chars.get(self.at) {
            if numerals::digit(c).is_some() {
                let (token, next) = numerals::read(&self.chars, self.at, self.language.english);
                self.at = next;
                let glued = self.is_glued(token.raw.chars().count());
                self.push(Token { glued, ..token });
            } else if is_unspaced(c) {
                self.at += 1;
                self.push(Token {
                    text: c.to_string(),
                    stem: c.to_string(),
                    raw: c.to_string(),
                    ..Token::default()
                });
            } else if c.is_alphabetic() {
                self.word();
            } else {
                self.mark(c);
                self.at += 1;
            }
        }
    }

    fn push(&mut self, token: Token) {
        let opens = std::mem::replace(&mut self.opens, false);
        self.tokens.push(Token { opens, ..token });
    }

    /// Whether a hyphen stands before the last so many characters.
    fn is_glued(&self, length: usize) -> bool {
        let start = self.at.saturating_sub(length);
        start > 1
            && matches!(self.chars[start - 1], '-' | '‐' | '‑')
            && self.chars[start - 2].is_alphanumeric()
    }

    fn word(&mut self) {
        let start = self.at;
        let mut digits = false;
        while let Some(&c) = self.chars.get(self.at) {
            let next = self.chars.get(self.at + 1).copied().unwrap_or(' ');
            let letter = c.is_alphabetic() && !is_unspaced(c);
            let initials = c == '.' && next.is_alphabetic() && self.is_initial(start);
            // `CO₂` is a name, `km²` a unit.
            let raised = numerals::raised(c).is_some();
            let number = self.is_name(start)
                && (c.is_ascii_digit() || (matches!(c, '-' | '‑') && next.is_ascii_digit()));
            let below = matches!(c, '₀'..='₉');
            if !(letter || is_combining_mark(c) || initials || number || below || raised) {
                break;
            }
            digits |= number || below;
            self.at += 1;
        }
        let raw: String =
            self.chars[start..self.at].iter().map(|c| numerals::raised(*c).unwrap_or(*c)).collect();
        if digits {
            let text: String = fold(&raw).chars().filter(|c| c.is_alphanumeric()).collect();
            self.push(Token {
                stem: text.clone(),
                text,
                raw,
                kind: Kind::Code,
                capital: true,
                ..Token::default()
            });
            return;
        }
        let raw = raw.replace('.', "");
        self.apostrophe(raw, start);
    }

    /// `U.S.`: all before is single letters with full stops.
    fn is_initial(&self, start: usize) -> bool {
        self.chars[start..self.at].iter().rev().take(2).filter(|c| c.is_alphabetic()).count() == 1
            && (self.at - start == 1 || self.chars[self.at - 2] == '.')
    }

    /// `IL-6` and `B12`, but not `omega-3`.
    fn is_name(&self, start: usize) -> bool {
        self.chars[start..self.at].iter().any(|c| c.is_uppercase()) && self.chars[start..self.at].len() <= 6
            || self.chars[start..self.at].iter().any(char::is_ascii_digit)
            || (self.at == start + 1 && self.chars.get(self.at).is_some_and(char::is_ascii_digit))
    }

    /// What follows an apostrophe: `'s`, `n't`, `l'eau`.
    fn apostrophe(&mut self, mut raw: String, start: usize) {
        let is_mark = |c: Option<&char>| c.is_some_and(|c| matches!(c, '\'' | '’' | 'ʼ'));
        let glued = self.is_glued(self.at - start);
        let mut tail = String::new();
        if is_mark(self.chars.get(self.at)) {
            tail = self.chars[self.at + 1..].iter().take_while(|c| c.is_alphabetic()).take(3).collect();
            tail = fold(&tail);
        }
        let mut owner = false;
        let mut negated = false;
        match tail.as_str() {
            "t" if raw.ends_with(['n', 'N']) => {
                raw.pop();
                negated = true;
                if fold(&raw) == "wo" {
                    "will".clone_into(&mut raw);
                } else if fold(&raw) == "ca" {
                    "can".clone_into(&mut raw);
                }
                self.at += 2;
            }
            "s" => {
                owner = true;
                self.at += 2;
            }
            "re" | "ve" | "ll" | "d" | "m" => self.at += 1 + tail.len(),
            // `Users' data`.
            "" if is_mark(self.chars.get(self.at)) && raw.ends_with('s') => owner = true,
            _ => {}
        }
        if fold(&raw) == "cannot" {
            "can".clone_into(&mut raw);
            negated = true;
        }
        let capital = raw.starts_with(char::is_uppercase);
        let mut text = fold(&raw);
        if let Some(name) = greek(&text) {
            name.clone_into(&mut text);
        }
        let token =
            Token { stem: stem(&text, self.language), text, raw, capital, owner, glued, ..Token::default() };
        self.push(token);
        if negated {
            self.push(Token::word("not", self.language));
        }
    }

    fn mark(&mut self, c: char) {
        let text = match c {
            '%' | '$' | '€' | '£' | '¥' | '₹' | '‰' | '°' | '+' | '±' | '<' | '>' | '/' | '=' | ';' | ','
            | '(' | ')' | '.' | '×' | ':' => c.to_string(),
            '≥' | '⩾' => ">=".to_owned(),
            '≤' | '⩽' => "<=".to_owned(),
            '~' | '≈' | '∼' => "about".to_owned(),
            '–' | '—' | '‐' | '‑' | '-' | '−' => match self.dash() {
                Some(mark) => mark.to_owned(),
                None => return,
            },
            '!' | '?' | '。' | '！' | '？' => ".".to_owned(),
            _ => return,
        };
        let after = self.chars.get(self.at + 1).copied().unwrap_or(' ');
        // Only a full stop at the end of a word ends anything.
        if matches!(text.as_str(), "." | ":") {
            let short =
                self.tokens.last().is_some_and(|token| token.raw.chars().count() <= 2 && token.capital);
            self.opens |= !short && after.is_whitespace();
        }
        let kind = if text == "about" { Kind::Word } else { Kind::Mark };
        let opens = self.opens;
        self.tokens.push(Token { raw: text.clone(), stem: text.clone(), text, kind, ..Token::default() });
        self.opens = opens;
    }
}

impl Cutter {
    /// Between numbers a dash says from where to where, among spaces it is a comma, inside of a word it is nothing.
    fn dash(&self) -> Option<&'static str> {
        let side = |at: Option<usize>| at.and_then(|at| self.chars.get(at)).copied().unwrap_or(' ');
        let (before, after) = (side(self.at.checked_sub(1)), side(Some(self.at + 1)));
        if self.chars[self.at] == '—' || (before.is_whitespace() && after.is_whitespace()) {
            return Some(",");
        }
        (!before.is_alphabetic() && !after.is_alphabetic() && !before.is_whitespace()).then_some("-")
    }
}

fn greek(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "α" => "alpha",
        "β" => "beta",
        "γ" => "gamma",
        "δ" => "delta",
        "ε" => "epsilon",
        "κ" => "kappa",
        "λ" => "lambda",
        "ω" => "omega",
        _ => return None,
    })
}

/// What the forms of a word have in common. Not a root: only the same for what is the same.
pub fn stem(word: &str, language: &Language) -> String {
    if let Some(word) = language.irregular.get(word) {
        return stem_regular(word);
    }
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    stem_regular(word)
}

fn stem_regular(word: &str) -> String {
    let mut stem = spelling(word);
    let ends = |stem: &str, end: &str, least: usize| stem.len() >= end.len() + least && stem.ends_with(end);
    let cut = |stem: &mut String, by: usize| stem.truncate(stem.len() - by);
    if ends(&stem, "ies", 2) || ends(&stem, "ied", 2) {
        cut(&mut stem, 3);
        stem.push('y');
    } else if ["sses", "xes", "ches", "shes", "zes"].iter().any(|end| ends(&stem, end, 1)) {
        cut(&mut stem, 2);
    } else if ends(&stem, "s", 3) && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        cut(&mut stem, 1);
    }
    for (end, least) in [("ing", 3), ("ed", 3)] {
        // Need, speed, exceed.
        let whole = end == "ed" && stem.ends_with("eed");
        if !whole
            && ends(&stem, end, least)
            && stem[..stem.len() - end.len()].contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            cut(&mut stem, end.len());
            break;
        }
    }
    if ends(&stem, "ly", 3) {
        cut(&mut stem, 2);
    }
    if ends(&stem, "e", 2) {
        cut(&mut stem, 1);
    }
    let last = stem.as_bytes().last().copied();
    let doubled = stem.len() > 3 && stem.as_bytes().get(stem.len() - 2).copied() == last;
    if doubled && last.is_some_and(|c| !b"aeiou".contains(&c)) {
        cut(&mut stem, 1);
    }
    stem
}

/// As it is spelled in America.
fn spelling(word: &str) -> String {
    const WHOLE: [(&str, &str); 20] = [
        ("grey", "gray"),
        ("programme", "program"),
        ("programmes", "programs"),
        ("aluminium", "aluminum"),
        ("defence", "defense"),
        ("offence", "offense"),
        ("licence", "license"),
        ("tyre", "tire"),
        ("plough", "plow"),
        ("sceptic", "skeptic"),
        ("cheque", "check"),
        ("mould", "mold"),
        ("catalogue", "catalog"),
        ("analogue", "analog"),
        ("dialogue", "dialog"),
        ("organisation", "organization"),
        ("tumours", "tumors"),
        ("artefact", "artifact"),
        ("ageing", "aging"),
        ("judgement", "judgment"),
    ];
    // Inside of words, and long enough to mean only this.
    const INSIDE: [(&str, &str); 26] = [
        ("isation", "ization"),
        ("ising", "izing"),
        ("ised", "ized"),
        ("ises", "izes"),
        ("ise", "ize"),
        ("yse", "yze"),
        ("ysing", "yzing"),
        ("sulph", "sulf"),
        ("haem", "hem"),
        ("anaem", "anem"),
        ("aemia", "emia"),
        ("oestr", "estr"),
        ("oede", "ede"),
        ("foet", "fet"),
        ("paed", "ped"),
        ("oesoph", "esoph"),
        ("diarrhoea", "diarrhea"),
        ("leukaem", "leukem"),
        ("colour", "color"),
        ("labour", "labor"),
        ("behaviour", "behavior"),
        ("tumour", "tumor"),
        ("favour", "favor"),
        ("neighbour", "neighbor"),
        ("harbour", "harbor"),
        ("vapour", "vapor"),
    ];
    if let Some((_, plain)) = WHOLE.iter().find(|(british, _)| *british == word) {
        return (*plain).to_owned();
    }
    let mut out = word.to_owned();
    let pairs = [*b"is", *b"ys", *b"ph", *b"ae", *b"oe", *b"ou", *b"re"];
    if word.len() > 3 && word.as_bytes().windows(2).any(|pair| pairs.iter().any(|known| known == pair)) {
        for (british, plain) in INSIDE {
            if out.contains(british) {
                out = out.replacen(british, plain, 1);
            }
        }
        for (british, plain) in [("re", "er"), ("res", "ers"), ("our", "or"), ("ours", "ors")] {
            let before = out.strip_suffix(british).and_then(|front| front.chars().last());
            let fits = if british.starts_with("re") { "tb" } else { "bmnvldr" };
            if word.len() > 5 && before.is_some_and(|before| fits.contains(before)) {
                let front = out.len() - british.len();
                out.truncate(front);
                out.push_str(plain);
                break;
            }
        }
    }
    out
}
