//! Why something did not become a fact.

/// Why something did not become a fact: what a model said, or, without a model, a sentence of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A model cites no sentence that it was shown.
    NoSentence,
    /// Less than half of its words are in the text.
    NotInText,
    NumberNotInText,
    TooLong,
    /// Several claims in one: more than two sentences.
    NotAtomic,
    /// It has neither letter nor digit.
    Empty,
    TooMany,
    /// An answer was truncated: what stood behind its last complete fact is lost. Counted once for each answer.
    Truncated,
    /// A heading, an entry of a list or table, a formula, a piece of code, or half a sentence.
    NotASentence,
    /// A heading, a dateline or another sentence is run together with it.
    RunTogether,
    Question,
    /// Speech, or a sentence that needs the one who speaks.
    Quotation,
    /// An entry of a list of references, or anything below its heading.
    Reference,
    Caption,
    /// Notices, calls to do something on the page, prices and offers, entries of a ticker.
    Boilerplate,
    Instruction,
    /// I, we, you.
    FirstOrSecondPerson,
    /// It begins by pointing at what was said before.
    Connective,
    /// A pronoun, or a word like `such`, for what another sentence names.
    Pronoun,
    /// It does not say which one: `the company`.
    UnnamedSubject,
    /// A time that only the day of writing or another sentence tells.
    RelativeTime,
    /// There is no list of words for its language, and it has neither a name nor a number.
    NoLanguageRules,
}

impl Reason {
    pub const ALL: [Self; 22] = [
        Self::NoSentence,
        Self::NotInText,
        Self::NumberNotInText,
        Self::TooLong,
        Self::NotAtomic,
        Self::Empty,
        Self::TooMany,
        Self::Truncated,
        Self::NotASentence,
        Self::RunTogether,
        Self::Question,
        Self::Quotation,
        Self::Reference,
        Self::Caption,
        Self::Boilerplate,
        Self::Instruction,
        Self::FirstOrSecondPerson,
        Self::Connective,
        Self::Pronoun,
        Self::UnnamedSubject,
        Self::RelativeTime,
        Self::NoLanguageRules,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSentence => "no_sentence",
            Self::NotInText => "not_in_text",
            Self::NumberNotInText => "number_not_in_text",
            Self::TooLong => "too_long",
            Self::NotAtomic => "not_atomic",
            Self::Empty => "empty",
            Self::TooMany => "too_many",
            Self::Truncated => "truncated",
            Self::NotASentence => "not_a_sentence",
            Self::RunTogether => "run_together",
            Self::Question => "question",
            Self::Quotation => "quotation",
            Self::Reference => "reference",
            Self::Caption => "caption",
            Self::Boilerplate => "boilerplate",
            Self::Instruction => "instruction",
            Self::FirstOrSecondPerson => "first_or_second_person",
            Self::Connective => "connective",
            Self::Pronoun => "pronoun",
            Self::UnnamedSubject => "unnamed_subject",
            Self::RelativeTime => "relative_time",
            Self::NoLanguageRules => "no_language_rules",
        }
    }
}

/// How many were left out for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub reason: Reason,
    pub count: usize,
}

#[derive(Debug, Default)]
pub struct Counts([usize; Reason::ALL.len()]);

impl Counts {
    pub const fn add(&mut self, reason: Reason, count: usize) {
        self.0[reason as usize] += count;
    }

    /// Those that occurred.
    pub fn dropped(&self) -> Vec<Dropped> {
        let all = Reason::ALL.into_iter().zip(self.0);
        all.filter(|(_, count)| *count > 0).map(|(reason, count)| Dropped { reason, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_in_its_place_under_its_own_name() {
        let names: std::collections::BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        assert!(Reason::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    }
}
