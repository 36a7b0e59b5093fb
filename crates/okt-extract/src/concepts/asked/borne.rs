//! Whether the words of facts bear out a name.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::refused::Refused;
use crate::concepts::nouns::{self, Class};
use crate::concepts::resolve::key;
use crate::concepts::short;
use crate::concepts::stop;
use crate::concepts::tokens::{Token, tokens};
use crate::ground::is_unspaced;

/// Letters that tell an inflected word, where its language has no rules here.
const STEM: usize = 5;

/// The facts of a question as their words, and the aliases that are known.
pub struct Facts<'f> {
    texts: &'f [&'f str],
    words: Vec<Vec<Token<'f>>>,
    /// Aliases by the key of a name.
    known: HashMap<String, Vec<&'f str>>,
    /// Where each fact has the names of the answer: the key of a name and its words.
    named: Vec<Vec<(String, Range<usize>)>>,
    /// Keys of aliases that the answer gives to more than one name.
    shared: HashSet<String>,
}

impl<'f> Facts<'f> {
    pub fn of(texts: &'f [&'f str], known: &[(&'f str, &'f str)]) -> Self {
        let mut aliases: HashMap<String, Vec<&str>> = HashMap::new();
        for (name, alias) in known {
            aliases.entry(key(name)).or_default().push(alias);
        }
        let words: Vec<Vec<Token<'f>>> = texts.iter().map(|text| tokens(text)).collect();
        Self { texts, named: vec![Vec::new(); words.len()], words, known: aliases, shared: HashSet::new() }
    }

    /// Notes the names and aliases of an answer, so that `Curie` is not taken for Marie Curie where Pierre Curie stands.
    pub fn note<'n>(&mut self, claims: impl Iterator<Item = (&'n str, &'n [String])>) {
        let mut owners: HashMap<String, String> = HashMap::new();
        for (name, aliases) in claims {
            let (own, words) = (key(name), tokens(name));
            for alias in aliases.iter().map(|alias| key(alias)).filter(|alias| *alias != own) {
                if *owners.entry(alias.clone()).or_insert_with(|| own.clone()) != own {
                    self.shared.insert(alias);
                }
            }
            for (fact, named) in self.words.iter().zip(&mut self.named) {
                named.extend(runs(fact, &words).map(|run| (own.clone(), run)));
            }
        }
    }

    pub const fn len(&self) -> usize {
        self.texts.len()
    }

    /// The name that the facts bear out: the one stated where a fact has it or it is known, else an alias that one has.
    pub fn name<'n>(&self, stated: &'n str, aliases: &'n [String]) -> Option<&'n str> {
        let named = self.known.contains_key(&key(stated))
            || (0..self.len()).any(|at| self.form(stated, at).is_some());
        if named { Some(stated) } else { aliases.first().map(String::as_str) }
    }

    /// How a fact writes a name, if it does: all words of it that say something, as the fact has them.
    pub fn form(&self, name: &str, at: usize) -> Option<String> {
        if name.contains(is_unspaced) {
            return self.texts[at].contains(name).then(|| name.to_owned());
        }
        let fact = &self.words[at];
        let words = tokens(name);
        let content: Vec<&Token<'_>> =
            words.iter().filter(|word| !stop::is_stop(&word.lower) || word.is_short_form()).collect();
        let content = if content.is_empty() { words.iter().collect() } else { content };
        let place = |word: &Token<'_>| fact.iter().position(|token| is_same(token, word));
        let places: Vec<usize> = content.iter().map(|word| place(word)).collect::<Option<_>>()?;
        let (first, last) = (places.iter().min()?, places.iter().max()?);
        // Words that stand together are a form of the name; scattered ones only bear it out.
        let together = last - first < words.len();
        Some(if together {
            self.texts[at][fact[*first].start..fact[*last].end].to_owned()
        } else {
            name.to_owned()
        })
    }

    /// How a fact writes an alias of a name, if it does where no longer name of something else stands, and the answer gives
    /// the alias to no other name.
    pub fn alias(&self, alias: &str, name: &str, at: usize) -> Option<String> {
        let own = key(name);
        if key(alias) == own {
            return self.form(alias, at);
        }
        if self.shared.contains(&key(alias)) {
            return None;
        }
        let within = |run: &Range<usize>| {
            self.named[at].iter().any(|(other, longer)| {
                *other != own
                    && longer.len() > run.len()
                    && longer.start <= run.start
                    && run.end <= longer.end
            })
        };
        let words = tokens(alias);
        let mut places = runs(&self.words[at], &words).peekable();
        let elsewhere = places.peek().is_some() && places.all(|run| within(&run));
        if elsewhere { None } else { self.form(alias, at) }
    }

    /// The forms of known aliases in a fact.
    pub fn known(&self, name: &str, at: usize) -> Vec<String> {
        let aliases = self.known.get(&key(name)).into_iter().flatten();
        aliases.filter_map(|alias| self.alias(alias, name, at)).collect()
    }

    /// Whether an alias belongs to a name: it shortens it, shares a word with it that says something, is known, or a fact
    /// says so.
    pub fn is_alias(&self, alias: &str, name: &str, cited: &[usize]) -> bool {
        if key(alias) == key(name) || short::abbreviates(alias, name) || short::abbreviates(name, alias) {
            return true;
        }
        if self.known.get(&key(name)).is_some_and(|known| known.iter().any(|other| key(other) == key(alias)))
        {
            return true;
        }
        let (one, other) = (tokens(alias), tokens(name));
        let shared = one.iter().any(|word| {
            word.lower.len() > 2 && !word.is_stop() && other.iter().any(|token| is_same(token, word))
        });
        shared || cited.iter().any(|at| self.is_called(*at, &one, &other))
    }

    /// `William Thomson, later Lord Kelvin`.
    fn is_called(&self, at: usize, alias: &[Token<'_>], name: &[Token<'_>]) -> bool {
        let fact = &self.words[at];
        let (Some(first), Some(second)) = (runs(fact, name).next(), runs(fact, alias).next()) else {
            return false;
        };
        first.end <= second.start && short::says_alias(&fact[first.end..second.start])
    }
}

/// The places where words stand one after the other.
fn runs<'w>(fact: &'w [Token<'_>], words: &'w [Token<'_>]) -> impl Iterator<Item = Range<usize>> + 'w {
    let starts = if words.is_empty() { 0..0 } else { 0..(fact.len() + 1).saturating_sub(words.len()) };
    starts
        .filter(|start| words.iter().zip(&fact[*start..]).all(|(word, token)| is_same(token, word)))
        .map(|start| start..start + words.len())
}

/// The same word, maybe in the plural or with another ending.
fn is_same(token: &Token<'_>, word: &Token<'_>) -> bool {
    if token.lower == word.lower {
        return true;
    }
    // Numbers and abbreviations are what they are.
    if word.has_digit() || token.has_digit() || word.is_short_form() || token.is_short_form() {
        return key(token.text) == key(word.text) && token.has_digit() == word.has_digit();
    }
    if let (Some((one, _)), Some((other, _))) = (nouns::singular(&token.lower), nouns::singular(&word.lower))
    {
        return one == other;
    }
    let shared = token.lower.chars().zip(word.lower.chars()).take_while(|(one, other)| one == other).count();
    let longest = token.lower.chars().count().max(word.lower.chars().count());
    shared >= STEM && longest - shared <= 3
}

/// Whether a text can be the name of something.
pub fn is_name(name: &str) -> Result<(), Refused> {
    let words = tokens(name);
    if words.is_empty() {
        return Err(Refused::Empty);
    }
    let dated =
        |word: &Token<'_>| word.is_number() || stop::is_calendar(&word.lower) || is_measure(&word.lower);
    if words.iter().all(|word| dated(word) || word.is_stop()) && words.iter().any(dated)
        || !name.contains(char::is_alphabetic)
    {
        return Err(Refused::DateOrNumber);
    }
    if words.iter().all(|word| word.is_stop() && !word.is_short_form()) {
        return Err(Refused::Pronoun);
    }
    if let [word] = &words[..]
        && nouns::singular(&word.lower)
            .is_some_and(|(_, noun)| noun.common == Some(Class::Never) && noun.name.is_none())
    {
        return Err(Refused::Generic);
    }
    Ok(())
}

/// Units and spans of time, which with a number are nothing but an amount.
fn is_measure(word: &str) -> bool {
    let word = word.strip_suffix('s').unwrap_or(word);
    matches!(
        word,
        "year"
            | "month"
            | "week"
            | "day"
            | "hour"
            | "minute"
            | "second"
            | "century"
            | "decade"
            | "percent"
            | "metre"
            | "meter"
            | "km"
            | "kilometre"
            | "kilometer"
            | "cm"
            | "mm"
            | "kg"
            | "g"
            | "mg"
            | "kilogram"
            | "gram"
            | "ton"
            | "tonne"
            | "mile"
            | "foot"
            | "feet"
            | "inch"
            | "litre"
            | "liter"
            | "watt"
            | "megawatt"
            | "degree"
            | "dollar"
            | "euro"
            | "pound"
            | "°c"
            | "mw"
            | "kw"
    )
}
