//! Why a concept of a model was not believed.

/// Why something that a model named did not become a concept of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// The number of a fact that it was not shown.
    UnknownFact,
    /// It cites no fact that it was shown.
    NoFact,
    /// The words of the fact do not bear out the name.
    NotInFact,
    /// The alias is not in the facts, or nothing says that it belongs to the name.
    Alias,
    /// No label, or one that can be none.
    NoContext,
    /// A pronoun or another word that stands for something else.
    Pronoun,
    /// A date or a number and nothing else.
    DateOrNumber,
    /// A word that could stand in any text.
    Generic,
    TooLong,
    /// It has neither letter nor digit.
    Empty,
    TooMany,
}

impl Refused {
    pub const ALL: [Self; 11] = [
        Self::UnknownFact,
        Self::NoFact,
        Self::NotInFact,
        Self::Alias,
        Self::NoContext,
        Self::Pronoun,
        Self::DateOrNumber,
        Self::Generic,
        Self::TooLong,
        Self::Empty,
        Self::TooMany,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownFact => "unknown_fact",
            Self::NoFact => "no_fact",
            Self::NotInFact => "not_in_fact",
            Self::Alias => "alias",
            Self::NoContext => "no_context",
            Self::Pronoun => "pronoun",
            Self::DateOrNumber => "date_or_number",
            Self::Generic => "generic",
            Self::TooLong => "too_long",
            Self::Empty => "empty",
            Self::TooMany => "too_many",
        }
    }

    /// In a few words for the model, after a count.
    pub(super) const fn complaint(self) -> &'static str {
        match self {
            Self::UnknownFact => "numbers of facts not shown",
            Self::NoFact => "without a fact",
            Self::NotInFact => "not named in the fact",
            Self::Alias => "aliases not in the facts",
            Self::NoContext => "without a context",
            Self::Pronoun => "pronouns",
            Self::DateOrNumber => "dates or numbers",
            Self::Generic => "too general",
            Self::TooLong => "too long",
            Self::Empty => "empty",
            Self::TooMany => "too many",
        }
    }
}

/// How many were left out for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub reason: Refused,
    pub count: usize,
}

#[derive(Debug, Default)]
pub(super) struct Counts([usize; Refused::ALL.len()]);

impl Counts {
    pub const fn add(&mut self, reason: Refused, count: usize) {
        self.0[reason as usize] += count;
    }

    /// Those that occurred.
    pub fn skipped(&self) -> Vec<Skipped> {
        let all = Refused::ALL.into_iter().zip(self.0);
        all.filter(|(_, count)| *count > 0).map(|(reason, count)| Skipped { reason, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_in_its_place_under_its_own_name() {
        let names: std::collections::BTreeSet<_> =
            Refused::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(names.len(), Refused::ALL.len());
        assert!(Refused::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    }
}
