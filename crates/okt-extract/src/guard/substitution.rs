//! Two facts that differ in a single word.
//!
//! People who say the same in other words seldom change just one of them. So one word that stands for another needs to be
//! known to mean the same, by the table of synonyms or by what both have in common.

use okt_model::Difference;

use super::Reading;
use super::direction::look_up;
use super::names::{are_aliases, are_of_one_place};
use super::tables::{Language, common, list};
use super::words::{Kind, Token};

/// What it is, if the texts differ in one word and nothing says that it means the same.
pub fn difference(a: &Reading, b: &Reading, language: &Language) -> Option<Difference> {
    let word = |token: &&Token| token.kind != Kind::Mark;
    let (a, b): (Vec<&Token>, Vec<&Token>) =
        (a.tokens.iter().filter(word).collect(), b.tokens.iter().filter(word).collect());
    if a.len() != b.len() || a.len() < 3 {
        return None;
    }
    let mut differing =
        a.iter().zip(&b).filter(|(one, other)| one.stem != other.stem || one.kind != other.kind);
    let (Some((one, other)), None) = (differing.next(), differing.next()) else { return None };
    let words = one.kind == Kind::Word && other.kind == Kind::Word;
    let names = one.capital && other.capital;
    let difference = if names { Difference::Name } else { Difference::Wording };
    (words && !are_alike(one, other, language)).then_some(difference)
}

fn are_alike(one: &Token, other: &Token, language: &Language) -> bool {
    let small = |token: &Token| {
        let lists = list::SMALL | list::PREPOSITIONS | list::HEDGED | list::MAYBE | list::MUST | list::ABOUT;
        language.has(lists, &token.text)
    };
    let group = |token: &Token| common().synonyms.get(&token.stem);
    let synonyms = group(one)
        .zip(group(other))
        .is_some_and(|(one, other)| one.iter().any(|group| other.contains(group)));
    let quantifier = |token: &Token| language.quantifiers.get(&token.text);
    let ends = look_up(other);
    small(one) && small(other)
        || synonyms
        || (quantifier(one).is_some() && quantifier(one) == quantifier(other))
        || look_up(one).iter().any(|end| ends.contains(end))
        || are_of_one_place(&one.text, &other.text)
        || are_aliases(&one.text, &other.text)
        || have_one_root(&one.text, &other.text)
}

/// `transport` and `transportation`.
fn have_one_root(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longest = one.chars().count().max(other.chars().count());
    common >= 4 && longest - common <= 5 && common * 2 >= longest
}
