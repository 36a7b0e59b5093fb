//! Whether the words of facts bear out a name.

use std::collections::HashMap;

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
}

impl<'f> Facts<'f> {
    pub fn of(texts: &'f [&'f str], known: &[(&'f str, &'f str)]) -> Self {
        let mut aliases: HashMap<String, Vec<&str>> = HashMap::new();
        for (name, alias) in known {
            aliases.entry(key(name)).or_default().push(alias);
        }
        Self { texts, words: texts.iter().map(|text| tokens(text)).collect(), known: aliases }
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

    /// The forms of known aliases in a fact.
    pub fn known(&self, name: &str, at: usize) -> Vec<String> {
        let aliases = self.known.get(&key(name)).into_iter().flatten();
        aliases.filter_map(|alias| self.form(alias, at)).collect()
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
        let run = |words: &[Token<'_>]| {
            let starts = 0..(fact.len() + 1).saturating_sub(words.len());
            starts
                .into_iter()
                .find(|start| words.iter().zip(&fact[*start..]).all(|(word, token)| is_same(token, word)))
        };
        let (Some(first), Some(second)) = (run(name), run(alias)) else { return false };
        let end = first + name.len();
        end <= second && short::says_alias(&fact[end..second])
    }
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
