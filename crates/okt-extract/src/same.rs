//! When two English texts are one fact.
//!
//! Two texts are one fact only when every difference between them is a permitted difference: one of a kind that is known to
//! keep the meaning. Any other difference keeps them two. A merge that is missed costs a line in a list; a wrong one destroys
//! knowledge. So a permitted difference that was ever shown to merge two facts is removed or narrowed, not weighed.
//!
//! Both texts are brought to one way of writing (`canon`: contractions, spelling, numbers, dates, amounts), and then read side
//! by side from left to right (`search`). Each step is a word that both have, or a permitted difference: in how
//! words are written (`surface`), in which words are used (`wording`), or in how a phrase is built (`structure`). The guard
//! must find no difference either.
//!
//! To permit more: a line in `same/en.txt` or `same/wordings.txt`, or an offer in one of the three; then pairs that attack it
//! in `tests/differ.tsv`.

mod amounts;
pub(crate) mod canon;
mod dates;
mod decimal;
pub(crate) mod lexicon;
mod measure;
mod numbers;
mod search;
mod structure;
mod surface;
pub(crate) mod token;
mod wording;

use crate::guard::{self, Sameness};
use canon::Canon;
pub use measure::{Measured, Pairs, measure};
use search::Search;

/// A kind of difference that keeps the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PermittedDifference {
    /// `Prime Minister`, `prime minister`.
    Case,
    /// `centre`, `center`; `São`, `Sao`.
    Spelling,
    /// `don't`, `do not`.
    Contraction,
    /// `12`, `twelve`.
    Number,
    /// `2.4 km`, `2,400 metres`; `$5`, `5 dollars`.
    Amount,
    /// `5 May 2021`, `2021-05-05`; `8 pm`, `20:00`.
    Date,
    /// `In 2019, sales rose`, `In 2019 sales rose`.
    Comma,
    /// `the film "Alder"`, `the film Alder`.
    Quotes,
    /// `start-up`, `startup`.
    Hyphen,
    /// `the Home Office`, `Home Office`.
    Article,
    /// `was built in`, `was constructed in`.
    Wording,
    /// `also`, `however`.
    Filler,
    /// `said that it`, `said it`.
    That,
    /// `is located in`, `is in`.
    Located,
    /// `the team is`, `the team are`.
    Agreement,
    /// `has announced`, `announced`.
    Perfect,
    /// `in Oslo and in Bergen`, `in Oslo and Bergen`.
    Preposition,
    /// `the mayor of Lyon`, `Lyon's mayor`.
    Genitive,
    /// `which was released in`, `released in`.
    Relative,
    /// `the River Exe`, `the Exe River`; `the province of Lugo`, `Lugo Province`.
    NameOrder,
    /// `was opened in`, `opened in`.
    Opened,
    /// `Germany and France`, `France and Germany`.
    ListOrder,
}

impl PermittedDifference {
    /// All of them, in the order of the texts' layers: signs first, then words, then phrases.
    pub const ALL: [Self; 22] = [
        Self::Case,
        Self::Spelling,
        Self::Contraction,
        Self::Number,
        Self::Amount,
        Self::Date,
        Self::Comma,
        Self::Quotes,
        Self::Hyphen,
        Self::Article,
        Self::Wording,
        Self::Filler,
        Self::That,
        Self::Located,
        Self::Agreement,
        Self::Perfect,
        Self::Preposition,
        Self::Genitive,
        Self::Relative,
        Self::NameOrder,
        Self::Opened,
        Self::ListOrder,
    ];

    /// Its name in the tests' tables. It is not stored: the journal of merges has no column for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Spelling => "spelling",
            Self::Contraction => "contraction",
            Self::Number => "number",
            Self::Amount => "amount",
            Self::Date => "date",
            Self::Comma => "comma",
            Self::Quotes => "quotes",
            Self::Hyphen => "hyphen",
            Self::Article => "article",
            Self::Wording => "wording",
            Self::Filler => "filler",
            Self::That => "that",
            Self::Located => "located",
            Self::Agreement => "agreement",
            Self::Perfect => "perfect",
            Self::Preposition => "preposition",
            Self::Genitive => "genitive",
            Self::Relative => "relative",
            Self::NameOrder => "name_order",
            Self::Opened => "opened",
            Self::ListOrder => "list_order",
        }
    }

    /// Whether other words are used, and not only other signs.
    const fn is_wording(self) -> bool {
        self as u8 >= Self::Wording as u8
    }
}

/// Two texts side by side.
#[derive(Clone, Copy)]
struct Pair<'a> {
    a: &'a Canon,
    b: &'a Canon,
}

impl Pair<'_> {
    fn turned(&self) -> Self {
        Self { a: self.b, b: self.a }
    }
}

/// So many words further in each text, and what permits it.
struct Move {
    a: usize,
    b: usize,
    by: Vec<PermittedDifference>,
}

/// Longer texts are no facts.
const MOST_BYTES: usize = 4_000;

/// Whether two texts are one fact, and which permitted differences there are between them. It does not matter which of them comes first.
///
/// For texts that are not English, only the same text is the same fact.
pub fn same_fact(a: &str, b: &str) -> Option<Vec<PermittedDifference>> {
    if a == b {
        return Some(Vec::new());
    }
    let by = permitted(a, b)?;
    (guard::compare(a, b) == Sameness::Same).then_some(by)
}

/// What the rule says by itself.
fn permitted(a: &str, b: &str) -> Option<Vec<PermittedDifference>> {
    if a.len().max(b.len()) > MOST_BYTES || !guard::language(a, b).english {
        return None;
    }
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let (a, b) = (Canon::of(a)?, Canon::of(b)?);
    let pair = Pair { a: &a, b: &b };
    Search::run(pair.turned())?;
    Search::run(pair)
}

#[cfg(test)]
mod tests;
