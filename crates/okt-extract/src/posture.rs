//! How a fact stands to a sentence of a report: whether it supports it, contradicts it, or only speaks of the same.
//!
//! Without a model, [`rule`] decides by the words alone, with the guard and the rule of duplicates. It calls little by name: a
//! sentence is supported only where the fact says the whole of it in its words, and contradicted only where one difference of
//! a known kind keeps the two apart. All else is related, which is no judgement.
//!
//! A model is asked by [`question`]. What it says is [`believed`] as far as the words allow.

mod asked;
mod cores;

use okt_model::{Difference, Posture};

pub use asked::{MODEL_PAIRS as PAIRS_PER_QUESTION, TOKENS_PER_PAIR, question, question_of, read};

use crate::guard::{Shared, Statements};
use crate::line::one_line;
use crate::same::same_fact;

/// Name and version of [`rule`], as a model in our own process.
pub const MODEL: &str = "builtin-posture-1";

/// How a fact stands to a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// `None`: it is irrelevant.
    pub posture: Option<Posture>,
    /// From 0 to 1, as whoever judged puts it.
    pub confidence: f32,
}

impl Judgement {
    const fn of(posture: Posture, confidence: f32) -> Self {
        Self { posture: Some(posture), confidence }
    }

    const fn irrelevant(confidence: f32) -> Self {
        Self { posture: None, confidence }
    }
}

/// How sure the words are: of one text, of a permitted difference or a part, and of what is not judged.
pub(crate) const CERTAIN: f32 = 0.98;
const SURE: f32 = 0.9;
const OPEN: f32 = 0.5;

/// From here on, vectors say that texts are about one thing.
const NEAR: f32 = 0.75;
/// And from here on, even where no word is shared: another language.
const VERY_NEAR: f32 = 0.85;

/// Languages with tables of negations, numbers and opposites.
const LANGUAGES: [&str; 7] = ["en", "de", "fr", "es", "it", "pt", "nl"];

/// Judges by the words alone. `cosine` is that of the vectors of both, where it is known; `language` is that of the report.
pub fn rule(sentence: &str, fact: &str, cosine: Option<f32>, language: Option<&str>) -> Judgement {
    let (sentence, fact) = (one_line(sentence), one_line(fact));
    if let Some(certain) = certain(&sentence, &fact, language) {
        return certain;
    }
    let Some(statements) = Statements::of(&sentence, &fact) else {
        return Judgement::of(Posture::Related, OPEN);
    };
    if is_about_the_same(statements.shared(), cosine) {
        Judgement::of(Posture::Related, OPEN)
    } else {
        Judgement::irrelevant(OPEN)
    }
}

/// What a model's judgement is worth against the words: where they decide, they do, and what they forbid is only related.
pub fn believed(sentence: &str, fact: &str, judgement: Judgement, language: Option<&str>) -> Judgement {
    let (sentence, fact) = (one_line(sentence), one_line(fact));
    if let Some(certain) = certain(&sentence, &fact, language) {
        return certain;
    }
    let comparable = has_tables(language) && Statements::are_of_one_language(&sentence, &fact);
    let Some(statements) = Statements::of(&sentence, &fact).filter(|_| comparable) else { return judgement };
    let forbidden = match judgement.posture {
        Some(Posture::Supports) => statements.unborne().is_some(),
        Some(Posture::Contradicts) => statements.shared().words == 0 || statements.speak_of_others(),
        Some(Posture::Related) | None => false,
    };
    if forbidden { Judgement::of(Posture::Related, judgement.confidence.min(OPEN)) } else { judgement }
}

/// What the words decide by themselves.
fn certain(sentence: &str, fact: &str, language: Option<&str>) -> Option<Judgement> {
    let words = |text: &str| text.trim_end_matches(['.', '。', '।', '!', '！']).trim_end().to_owned();
    if words(sentence) == words(fact) {
        return sentence.contains(char::is_alphanumeric).then_some(Judgement::of(Posture::Supports, CERTAIN));
    }
    if !has_tables(language) {
        return opposed(sentence, fact);
    }
    if same_fact(sentence, fact).is_some() || Statements::of(sentence, fact)?.are_one_wording() {
        return Some(Judgement::of(Posture::Supports, CERTAIN));
    }
    let found = opposed(sentence, fact);
    if found.is_some() {
        return found;
    }
    if cores::is_kind_of(sentence, fact) {
        return Some(Judgement::of(Posture::Supports, SURE));
    }
    let mut cores = cores::of(fact).into_iter();
    cores.find_map(|core| {
        let same = same_fact(sentence, &core).is_some().then_some(Judgement::of(Posture::Supports, SURE));
        same.or_else(|| opposed(sentence, &core))
    })
}

fn opposed(sentence: &str, fact: &str) -> Option<Judgement> {
    let difference: Difference = Statements::of(sentence, fact)?.contradiction()?;
    // The same number of something else may be a slip of the pen.
    let confidence = if difference == Difference::Unit { 0.8 } else { SURE };
    Some(Judgement::of(Posture::Contradicts, confidence))
}

/// `en` of `en-GB`. Where nobody says which language it is, the words themselves tell.
pub(crate) fn has_tables(language: Option<&str>) -> bool {
    language.is_none_or(|language| {
        let code = language.split(['-', '_']).next().unwrap_or_default();
        LANGUAGES.iter().any(|known| code.eq_ignore_ascii_case(known))
    })
}

fn is_about_the_same(shared: Shared, cosine: Option<f32>) -> bool {
    let near = |least: f32| cosine.is_some_and(|cosine| cosine >= least);
    (shared.words > 1 && shared.share >= 0.2)
        || (shared.words > 0 && (shared.share >= 0.34 || near(NEAR)))
        || near(VERY_NEAR)
}

#[cfg(test)]
mod tests;
