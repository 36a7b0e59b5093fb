//! A report in sentences.

use okt_store::report_sentences::NewSentence;

/// A text and its sentences.
pub struct Cut {
    pub language: Option<String>,
    pub sentences: Vec<NewSentence>,
}

impl Cut {
    /// In `language`, or in that which the text is found to be in. A sentence with fewer characters than `least` claims nothing.
    #[must_use]
    pub fn new(body: &str, language: Option<String>, least: usize) -> Self {
        let language = language.or_else(|| okt_parse::language_of(body, None));
        let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let sentences = okt_parse::report_sentences(body, language.as_deref()).into_iter().map(|sentence| {
            let is_claim = sentence.is_claim && sentence.text.chars().count() >= least;
            NewSentence {
                start: number(sentence.start),
                end: number(sentence.end),
                text: sentence.text,
                is_claim,
            }
        });
        Self { sentences: sentences.collect(), language }
    }
}
