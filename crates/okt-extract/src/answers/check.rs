//! What the words alone say of a sentence and the evidence that it cites. Needs no model, and binds every model: what is refused here is
//! not shown, whatever a model says of it.

use okt_model::{Difference, DropReason, Posture};

use super::Given;
use crate::ground::Ground;
use crate::guard::Statements;
use crate::line::one_line;
use crate::posture;
use crate::summaries::markdown::has_address;
use crate::summaries::support::{Flaw, flaw, parts};

/// A longer sentence is several, in characters.
const LONGEST: usize = 500;
/// Who cites more for one sentence has not told which of them say so.
const MOST_CITED: usize = 8;
/// So much of the words of a sentence has to be in its facts, where no model says that they support it.
const COVERED: f32 = 0.8;

/// What the words say of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The facts say the whole of it.
    Supported,
    /// Nothing stands against it, and it is not certain.
    Open,
    /// Why, for people.
    Refused(DropReason, String),
}

/// Holds a sentence against all that it cites, together and each alone.
pub fn check(sentence: &str, cited: &[Given<'_>], language: Option<&str>) -> Checked {
    let sentence = &one_line(sentence);
    let refused = |code, reason: &str| Checked::Refused(code, reason.to_owned());
    if cited.is_empty() {
        return refused(DropReason::NoKeys, "it cites nothing that was found");
    }
    if sentence.chars().count() > LONGEST || cited.len() > MOST_CITED {
        return refused(DropReason::Unsupported, "it says too much at once to be checked");
    }
    if has_address(sentence) {
        return refused(DropReason::Unsupported, "it has an address, which is no part of an answer");
    }
    let says: Vec<String> = cited.iter().map(|fact| one_line(&fact.says())).collect();
    let texts: Vec<&str> = says.iter().map(String::as_str).collect();
    if let Some(flaw) = flaw(sentence, &texts, &[]) {
        let (code, reason) = said(flaw, sentence, &texts);
        return Checked::Refused(code, reason);
    }
    let alone = |text: &str| posture::rule(sentence, text, None, language);
    if cited.iter().any(|fact| alone(fact.text).posture == Some(Posture::Contradicts)) {
        let others = cited.iter().any(|fact| alone(fact.text).posture == Some(Posture::Supports));
        if !others {
            return refused(DropReason::Contradicted, "the fact that it cites says otherwise");
        }
    }
    if cited.iter().any(|fact| alone(fact.text).posture == Some(Posture::Supports)) {
        return Checked::Supported;
    }
    let whole = texts.join(" ");
    let Some(statements) = Statements::of(sentence, &whole) else { return Checked::Open };
    let comparable = Statements::are_of_one_language(sentence, &whole);
    if !comparable {
        return Checked::Open;
    }
    if let [_] = cited {
        if let Some(difference) = statements.unborne() {
            let (code, reason) = differs(difference);
            return refused(code, reason);
        }
    } else if let Some((code, reason)) = differs_from_all(sentence, &texts, &statements) {
        return refused(code, reason);
    }
    let covered = statements.shared().of_sentence >= COVERED;
    let each = cited.len() == 1 || parts(sentence).all(|part| texts.iter().any(|text| bears(text, part)));
    if covered && each && posture::has_tables(language) { Checked::Supported } else { Checked::Open }
}

/// Of several facts: what no one of them and not all together bear out. What one of them denies says nothing of the others.
fn differs_from_all(
    sentence: &str,
    texts: &[&str],
    whole: &Statements,
) -> Option<(DropReason, &'static str)> {
    let found = whole.unborne().filter(|difference| {
        matches!(difference, Difference::Number | Difference::Date | Difference::Name | Difference::Certainty)
    });
    let told: Vec<Statements> = texts
        .iter()
        .filter_map(|text| Statements::of(sentence, text))
        .filter(|pair| pair.shared().share >= 0.6)
        .collect();
    let denied = told.iter().any(Statements::sentence_denies);
    let known = told.iter().any(Statements::fact_denies);
    if let Some(difference) = found {
        Some(differs(difference))
    } else if !told.is_empty() && denied != known {
        Some(differs(Difference::Negation))
    } else {
        None
    }
}

/// Whether one fact has the numbers of a part of a sentence, and half of its words.
fn bears(text: &str, part: &str) -> bool {
    let ground = Ground::of(std::iter::once(text));
    ground.has_numbers(part) && (!part.contains(char::is_alphabetic) || ground.has_half(part))
}

fn said(flaw: Flaw, sentence: &str, texts: &[&str]) -> (DropReason, String) {
    let plain = |code, reason: &str| (code, reason.to_owned());
    match flaw {
        Flaw::Number => {
            let ground = Ground::of(texts.iter().copied());
            let mut words =
                sentence.split_whitespace().filter(|word| word.contains(|c: char| c.is_numeric()));
            let number = words.find(|word| !ground.has_numbers(word)).unwrap_or("a number of it");
            let number =
                number.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '%' | '$' | '€' | '£'));
            (DropReason::Number, format!("{number} is in none of the cited facts"))
        }
        Flaw::Words => plain(DropReason::Unsupported, "the cited facts speak of something else"),
        Flaw::Name => plain(DropReason::Name, "it has a name that is in none of the cited facts"),
        Flaw::Join => plain(DropReason::Join, "it ties together what none of the cited facts ties together"),
        Flaw::Speech => plain(DropReason::Quantifier, "the cited facts only say that somebody says so"),
        Flaw::Negation => {
            plain(DropReason::Negation, "it denies what the cited fact says, or turns it around")
        }
    }
}

const fn differs(difference: Difference) -> (DropReason, &'static str) {
    match difference {
        Difference::Number | Difference::Unit => {
            (DropReason::Number, "it has an amount that the cited facts do not have")
        }
        Difference::Date => (DropReason::Number, "it has a date that the cited facts do not have"),
        Difference::Negation => {
            (DropReason::Negation, "it denies what the cited facts say, or the other way round")
        }
        Difference::Direction => (DropReason::Negation, "it turns around what the cited facts say"),
        Difference::Roles => (DropReason::Name, "it says of one what the cited facts say of another"),
        Difference::Name => (DropReason::Name, "it has a name that the cited facts do not have"),
        Difference::Quantifier | Difference::Certainty => {
            (DropReason::Quantifier, "it is surer than the cited facts are, or says it of more")
        }
        Difference::Wording | Difference::Judged => {
            (DropReason::Unsupported, "the cited facts say something else")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: [&str; 7] = [
        "The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.",
        "The Sihwa tidal power station has 10 turbines.",
        "Aspirin reduces the risk of heart attack in men over 50.",
        "Aspirin does not reduce the risk of cancer in women.",
        "Mia Berg founded the Aldra Line in 1962.",
        "The Aldra Line may be sold to Norge Ferries.",
        "Die Fähre fährt seit 1998 nach Aldra.",
    ];

    fn checked(sentence: &str, cited: &[usize]) -> Checked {
        let given =
            |at: &usize| Given { key: "kqzb", text: FACTS[*at], quote: None, title: None, year: None };
        check(sentence, &cited.iter().map(given).collect::<Vec<_>>(), Some("en"))
    }

    #[test]
    fn what_the_facts_say_is_supported() {
        for (sentence, cited) in [
            ("The Rance tidal power station has 24 turbines.", &[0][..]),
            ("The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.", &[0]),
            ("The Rance station has 24 turbines, and the Sihwa station has 10 turbines.", &[0, 1]),
            ("Mia Berg founded the Aldra Line in 1962.", &[4]),
            ("Aspirin reduces the risk of heart attack in men over 50.", &[2]),
            ("Aspirin does not reduce the risk of cancer in women.", &[3]),
            ("The Aldra Line may be sold to Norge Ferries.", &[5]),
        ] {
            assert_eq!(checked(sentence, cited), Checked::Supported, "{sentence}");
        }
    }

    #[test]
    fn what_they_do_not_say_is_refused_with_its_reason() {
        use DropReason::{Contradicted, Join, Name, Negation, NoKeys, Number, Quantifier, Unsupported};
        for (sentence, cited, codes) in [
            ("The Rance tidal power station has 25 turbines.", &[0][..], &[Number, Contradicted][..]),
            ("The Rance tidal power station has 24 turbines.", &[1], &[Number]),
            ("The Sihwa tidal power station has 24 turbines.", &[0, 1], &[Join]),
            ("The Kislaya tidal power station has 24 turbines.", &[0], &[Name]),
            (
                "Aspirin does not reduce the risk of heart attack in men over 50.",
                &[2],
                &[Negation, Contradicted],
            ),
            ("Aspirin reduces the risk of cancer in women.", &[3], &[Negation, Contradicted]),
            ("Aspirin increases the risk of heart attack in men over 50.", &[2], &[Negation, Contradicted]),
            ("Mia Berg founded the Aldra Line in 1963.", &[4], &[Number, Contradicted]),
            ("Nils Holm founded the Aldra Line in 1962.", &[4], &[Name]),
            ("The Aldra Line will be sold to Norge Ferries.", &[5], &[Quantifier]),
            ("Rance has 24 turbines because Sihwa has 10 turbines.", &[0, 1], &[Join]),
            (
                "The Rance tidal power station has 24 turbines, see https://evil.example.",
                &[0],
                &[Unsupported],
            ),
            ("Ferries are painted red every spring by their crews.", &[4], &[Unsupported]),
            ("The Rance tidal power station has 24 turbines.", &[], &[NoKeys]),
        ] {
            match checked(sentence, cited) {
                Checked::Refused(code, reason) => {
                    assert!(codes.contains(&code), "{sentence}: {code:?} {reason}");
                    assert!(!reason.is_empty());
                }
                other => panic!("{sentence}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_number_that_is_nowhere_is_named() {
        let Checked::Refused(DropReason::Number, reason) =
            checked("It has 24 turbines and 41% of the power.", &[0])
        else {
            panic!("41 is nowhere");
        };
        assert_eq!(reason, "41% is in none of the cited facts");
    }

    #[test]
    fn another_language_is_left_to_a_model() {
        assert_eq!(checked("The ferry sails to Aldra since 1998.", &[6]), Checked::Open);
        assert!(matches!(checked("The ferry sails to Aldra since 1999.", &[6]), Checked::Refused(..)));
    }

    #[test]
    fn a_quote_counts_with_its_fact() {
        let mut given =
            Given { key: "kqzb", text: "It has 24 turbines.", quote: None, title: None, year: None };
        let sentence = "The Rance station has 24 turbines.";
        assert!(matches!(check(sentence, &[given], Some("en")), Checked::Refused(DropReason::Name, _)));
        given.quote = Some("The Rance station was opened in 1966. It has 24 turbines.");
        assert_eq!(check(sentence, &[given], Some("en")), Checked::Supported);
    }
}
