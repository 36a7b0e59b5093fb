//! What the words alone say of a sentence and the evidence that it cites. Needs no model, and binds every model: what is refused here is
//! not shown, whatever a model says of it.

use okt_model::{Difference, DropReason, Posture};

use super::Given;
use super::pieces::{clauses, has_all, has_alone, own_name, pieces, points_back, stretches};
use crate::ground::Ground;
use crate::guard::Statements;
use crate::line::one_line;
use crate::posture;
use crate::summaries::claims::sentences;
use crate::summaries::markdown::has_address;
use crate::summaries::support::{Flaw, all_names, flaw};

/// A longer sentence is several, in characters.
const LONGEST: usize = 500;
/// Who cites more for one sentence has not told which of them say so.
const MOST_CITED: usize = 8;

/// What the words say of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// One sentence of one fact says the whole of it, or of each of its clauses.
    Supported,
    /// One of them says so, and another one says otherwise.
    Contradicted,
    /// Nothing stands against it, and the words alone do not prove it.
    Open,
    /// Why, for people.
    Refused(DropReason, String),
}

/// Holds a sentence against all that it cites, together and each alone. Each piece of it has to be in one fact alone: what two facts say
/// of two things is not said of one. It is supported only where what it says was said as it stands: words of a fact in another order, or
/// without those between them, may say anything.
pub fn check(sentence: &str, cited: &[Given<'_>], language: Option<&str>) -> Checked {
    let sentence = one_line(sentence);
    let sentence = sentence.as_str();
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
    let whole = texts.join(" ");
    let pieces = pieces(sentence);
    let comparable = Statements::are_of_one_language(sentence, &whole);
    let proved = is_proved(sentence, cited, language);
    let denied = cited.iter().any(|fact| {
        let against =
            |said: &str| posture::rule(said, fact.text, None, language).posture == Some(Posture::Contradicts);
        against(sentence) || (pieces.len() > 1 && pieces.iter().any(|piece| against(piece)))
    });
    if denied {
        return if proved {
            Checked::Contradicted
        } else {
            refused(DropReason::Contradicted, "a fact that it cites says otherwise")
        };
    }
    if proved {
        let disputed = cited.iter().any(|fact| disputes(fact, &pieces));
        return if disputed { Checked::Open } else { Checked::Supported };
    }
    if !each_is_alone(&pieces, &texts) {
        let (code, reason) = said(Flaw::Join, sentence, &texts);
        return Checked::Refused(code, reason);
    }
    let Some(statements) = Statements::of(sentence, &whole).filter(|_| comparable) else {
        return Checked::Open;
    };
    if let [_] = cited {
        if let Some(difference) = statements.unborne() {
            let (code, reason) = differs(difference);
            return refused(code, reason);
        }
    } else if let Some((code, reason)) = differs_from_all(sentence, &texts, &statements) {
        return refused(code, reason);
    }
    Checked::Open
}

/// How each of some facts stands to a sentence that cites it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It has a piece of the sentence.
    Bears,
    /// It says nearly the same with another number, date or name, or denies it.
    Disputes,
    /// Neither: it is cited for show.
    None,
}

/// Which of some facts bear a piece of a sentence, and which say nearly the same and not the same.
pub fn parts_of(sentence: &str, cited: &[Given<'_>]) -> Vec<Part> {
    let pieces = pieces(&one_line(sentence));
    let says: Vec<String> = cited.iter().map(|fact| one_line(&fact.says())).collect();
    let all = Ground::of(says.iter().map(String::as_str));
    let part = |(fact, text): (&Given<'_>, &String)| {
        if pieces.iter().any(|piece| has_alone(piece, text, &all)) {
            Part::Bears
        } else if disputes(fact, &pieces) {
            Part::Disputes
        } else {
            Part::None
        }
    };
    cited.iter().zip(&says).map(part).collect()
}

/// Whether a sentence that did not hold speaks of what was asked and found, so that people may see what was left out: not an address, nor
/// words of somebody else's.
pub fn is_about(sentence: &str, question: &str, evidence: &[Given<'_>]) -> bool {
    let texts = evidence.iter().flat_map(|one| [Some(one.text), one.quote]).flatten();
    let short = sentence.chars().count() <= LONGEST;
    short && !has_address(sentence) && Ground::of(texts.chain([question])).has_half(sentence)
}

/// Whether words for what is missing only say what was asked, and state nothing that nobody has checked: every word of it but small ones
/// is one of the question.
pub fn is_missing(missing: &str, question: &str) -> bool {
    let ground = Ground::of(std::iter::once(question));
    let named = all_names(missing, "").into_iter().all(|name| ground.has_word(name));
    named && !has_address(missing) && ground.has_numbers(missing) && has_all(&ground, missing)
}

/// Whether one sentence of one of some facts says a sentence in its words, or each of its clauses. That it says it among other things is not
/// enough: what follows may be "in the film", or "on paper".
fn is_proved(sentence: &str, cited: &[Given<'_>], language: Option<&str>) -> bool {
    let known: Vec<String> = cited.iter().flat_map(statements).collect();
    let has = |said: &str| {
        let proves = |fact: &String| {
            let judged = posture::rule(said, fact, None, language);
            judged.posture == Some(Posture::Supports) && judged.confidence >= posture::CERTAIN
        };
        !points_back(said) && known.iter().any(proves)
    };
    has(sentence) || clauses(sentence).is_some_and(|clauses| clauses.iter().all(|clause| has(clause)))
}

/// What a fact and its quote say, sentence by sentence. What somebody asks is said by nobody; and of what is in quotation marks nobody
/// knows who says it.
fn statements(fact: &Given<'_>) -> Vec<String> {
    let mut all = vec![one_line(fact.text)];
    for text in [Some(fact.text), fact.quote].into_iter().flatten() {
        let text = one_line(text);
        if !text.contains(['"', '“', '”', '„', '«', '»']) {
            all.extend(sentences(&text));
        }
    }
    all.retain(|said| !said.ends_with('?'));
    all
}

/// Whether each piece is in one text alone, as far as any of them has it: in what it says of one thing, if it speaks of several.
fn each_is_alone(pieces: &[String], texts: &[&str]) -> bool {
    let all = Ground::of(texts.iter().copied());
    let of_one: Vec<String> = texts.iter().flat_map(|text| stretches(text)).collect();
    of_one.len() < 2 || pieces.iter().all(|piece| of_one.iter().any(|text| has_alone(piece, text, &all)))
}

/// So much of the words of a piece is in what says nearly the same.
const NEARLY: f32 = 0.75;

/// Whether a sentence of a fact says nearly what one of some pieces says, of the same, and not the same.
fn disputes(fact: &Given<'_>, pieces: &[String]) -> bool {
    let known = Ground::of(std::iter::once(fact.text));
    let all = sentences(&one_line(fact.text));
    pieces.iter().any(|piece| {
        let of_another = !known.has_word(&own_name(piece));
        let differs = |said: &String| {
            Statements::of(piece, said)
                .is_some_and(|both| both.shared().of_sentence >= NEARLY && both.unborne().is_some())
        };
        !of_another && all.iter().any(differs)
    })
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
mod tests;
