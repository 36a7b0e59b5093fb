//! Whether two facts that sound alike may become one.
//!
//! A model that turns texts into vectors puts "reduces" and "does not reduce" side by side. Merged, the contradiction would
//! be gone, and it is what people come for. So before two facts become one, they are read for what vectors overlook:
//! negations, numbers, units, dates, directions, names, and who did it to whom. It is no proof that two facts say the same:
//! only that nothing of this kind stands against it. In doubt they stay two, and nothing is lost.
//!
//! To teach it words: the tables in `guard/`.

mod amounts;
mod dates;
mod direction;
mod names;
mod numbers;
mod numerals;
mod once;
mod pairs;
mod phrases;
mod polarity;
mod quantifiers;
mod reading;
mod roles;
mod stance;
mod substitution;
mod tables;
mod words;

use okt_model::Difference;

use amounts::Amount;
use dates::Date;
pub(crate) use once::happens_once;
use polarity::Negations;
use reading::Reading;
pub(crate) use stance::{Shared, Statements};
use tables::Language;
pub(crate) use tables::{entries, language};

/// Whether two facts may become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// Nothing was found that they differ in.
    Same,
    Differs(Difference),
}

/// Longer texts are no facts, and comparing every word with every other takes its time.
const MOST_TOKENS: usize = 300;
/// No word takes more bytes than these on average.
const MOST_BYTES: usize = MOST_TOKENS * 40;

/// Compares two facts whose meanings are near each other. It does not matter which of them comes first.
pub fn compare(a: &str, b: &str) -> Sameness {
    if a == b {
        return Sameness::Same;
    }
    let language = tables::language(a, b);
    if a.len().max(b.len()) > MOST_BYTES {
        return Sameness::Differs(Difference::Wording);
    }
    // The same way round every time, so that the order can't matter.
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let (one, other) = (Reading::of(a, language), Reading::of(b, language));
    if one.tokens.len().max(other.tokens.len()) > MOST_TOKENS {
        return Sameness::Differs(Difference::Wording);
    }
    let markers = polarity::markers(a) == polarity::markers(b);
    let found = amounts_differ(&one, &other, language)
        .or_else(|| (!markers).then_some(Difference::Negation))
        .or_else(|| meaning_differs(&one, &other, language));
    found.map_or(Sameness::Same, Sameness::Differs)
}

/// Negation, direction and roles: two of them may cancel each other.
fn meaning_differs(a: &Reading, b: &Reading, language: &Language) -> Option<Difference> {
    let denied = (Negations::of(a, b, language), Negations::of(b, a, language));
    let mut negation = !denied.0.fits(&denied.1);
    let conflicts = direction::conflicts(a, b);
    let mut direction = !conflicts.is_empty();
    let mut roles = roles::are_swapped(a, b, language);
    if let [conflict] = &conflicts[..] {
        let axis = tables::common().axes[conflict.axis];
        let around = axis.converse && roles::change_around(a, b, conflict.at);
        let compared = a.has("than") && b.has("than") && roles;
        if !negation && (around || compared) {
            // The sun is larger than the earth: the earth is smaller than the sun.
            (direction, roles) = (false, false);
        } else if axis.complete && !roles && denied.0.count.abs_diff(denied.1.count) == 1 {
            // Not guilty: innocent.
            (direction, negation) = (false, false);
        }
    }
    let (only_a, only_b) = (a.only(b), b.only(a));
    let opposite = only_a
        .iter()
        .any(|one| only_b.iter().any(|other| direction::are_made_opposite(&one.text, &other.text)));
    if negation || polarity::deny_different_things(a, b, (&denied.0, &denied.1)) {
        Some(Difference::Negation)
    } else if direction || opposite {
        Some(Difference::Direction)
    } else if !quantifiers::fit(a, b, language, denied.0.count + denied.1.count > 0) {
        Some(Difference::Quantifier)
    } else if !quantifiers::are_as_sure(a, b, language) {
        Some(Difference::Certainty)
    } else if !names::fit(a, b, language) {
        Some(Difference::Name)
    } else if roles {
        Some(Difference::Roles)
    } else {
        substitution::difference(a, b, language)
    }
}

/// Numbers, units and dates: what is left when all that both have is taken away.
fn amounts_differ(a: &Reading, b: &Reading, language: &Language) -> Option<Difference> {
    let (mut dates_a, mut dates_b) = (whole_dates(a), whole_dates(b));
    let (mut of_a, mut of_b) = (a.amounts(), b.amounts());
    take_pairs(&mut dates_a, &mut dates_b, Date::fits);
    take_pairs(&mut of_a, &mut of_b, Amount::fits);
    // What looks like a year in one text may be a count in the other.
    let counts = |date: &Date, amount: &Amount| date.count() == Some(amount.value) && amount.unit.is_empty();
    take_pairs(&mut dates_a, &mut of_b, counts);
    take_pairs(&mut of_a, &mut dates_b, |amount, date| counts(date, amount));
    if !dates_a.is_empty() || !dates_b.is_empty() {
        return Some(Difference::Date);
    }
    let must_be_said = |amounts: &[Amount]| amounts.iter().any(|amount| !amount.soft);
    if of_a.is_empty() && !must_be_said(&of_b) || of_b.is_empty() && !must_be_said(&of_a) {
        return (!amounts::are_per_same(&a.tokens, &b.tokens, language)).then_some(Difference::Unit);
    }
    let any = |test: &dyn Fn(&Amount, &Amount) -> bool| {
        of_a.iter().any(|one| of_b.iter().any(|other| test(one, other)))
    };
    if any(&|one, other| one.has_unit_of(other) && one.has_value_of(other) && one.bound.opposes(other.bound))
    {
        return Some(Difference::Direction);
    }
    let unit = any(&Amount::is_as_many_of_another_unit);
    Some(if unit { Difference::Unit } else { Difference::Number })
}

/// The dates of a text, without those that it says twice: on Christmas Day, 25 December 2021.
fn whole_dates(text: &Reading) -> Vec<Date> {
    let dates = text.dates();
    dates.iter().filter(|one| !dates.iter().any(|other| one.is_part_of(other))).copied().collect()
}

/// Takes away what fits from both.
fn take_pairs<A, B>(a: &mut Vec<A>, b: &mut Vec<B>, fits: impl Fn(&A, &B) -> bool) {
    a.retain(|one| match b.iter().position(|other| fits(one, other)) {
        Some(at) => {
            b.remove(at);
            false
        }
        None => true,
    });
}

#[cfg(test)]
mod tests;
