//! A question as it comes in.

use okt_model::{ASK_VERSION, AnswerFilters, AnswerMode, ConversationId, Error, Result, is_hidden, plain};
use sha2::{Digest, Sha256};

use super::gather::Gathered;

const SHORTEST: usize = 3;
const LONGEST: usize = 2_000;
const MOST_SOURCES: usize = 20;
const MOST_CONCEPTS: usize = 8;

/// What somebody asks.
#[derive(Clone, Debug, Default)]
pub struct AskRequest {
    pub question: String,
    pub mode: Option<AnswerMode>,
    pub conversation: Option<ConversationId>,
    pub filters: AnswerFilters,
    pub max_cost_usd: Option<f64>,
    /// ISO 639-1.
    pub language: Option<String>,
    pub shared: bool,
    /// An Idempotency-Key: with the same one the same question is answered once.
    pub key: Option<String>,
}

impl AskRequest {
    pub(super) fn hashes(&self) -> Result<Option<([u8; 32], [u8; 32])>> {
        let Some(key) = &self.key else { return Ok(None) };
        let parts = (
            (&self.question, self.mode, self.conversation, &self.filters),
            (self.max_cost_usd, &self.language, self.shared),
        );
        let request = serde_json::to_vec(&parts).map_err(Error::internal)?;
        Ok(Some((Sha256::digest(key).into(), Sha256::digest(request).into())))
    }
}

pub(super) fn checked_question(question: &str) -> Result<String> {
    let question = plain(question);
    let length = question.chars().count();
    let says = question.chars().any(char::is_alphanumeric);
    if !(SHORTEST..=LONGEST).contains(&length) || !says || question.chars().any(is_hidden) {
        return Err(Error::invalid("question", "must have 3 to 2000 characters, and a word"));
    }
    Ok(question)
}

pub(super) fn check_filters(filters: &AnswerFilters) -> Result<()> {
    if filters.source_ids.len() > MOST_SOURCES {
        return Err(Error::invalid("filters.source_ids", "must be at most 20"));
    }
    if filters.concept_ids.len() > MOST_CONCEPTS {
        return Err(Error::invalid("filters.concept_ids", "must be at most 8"));
    }
    let context = filters.context.as_deref();
    if context.is_some_and(|context| {
        context.is_empty() || context.chars().count() > 200 || context.contains(char::is_control)
    }) {
        return Err(Error::invalid(
            "filters.context",
            "must be 1 to 200 characters without control characters",
        ));
    }
    for (name, year) in
        [("filters.published_from", filters.published_from), ("filters.published_to", filters.published_to)]
    {
        if year.is_some_and(|year| !(0..=9_999).contains(&year)) {
            return Err(Error::invalid(name, "must be a year, 0 to 9999"));
        }
    }
    Ok(())
}

pub(super) fn checked_language(language: &str) -> Result<String> {
    if language.len() == 2 && language.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(language.to_owned());
    }
    Err(Error::invalid("answer_language", "must be two small letters (ISO 639-1), such as de"))
}

/// What makes two questions the same.
pub(super) struct Print<'a> {
    pub question: &'a str,
    pub earlier: &'a [String],
    pub language: Option<&'a str>,
    pub filters: &'a AnswerFilters,
    pub models: [&'a str; 2],
    /// What the checker is told, where it is a model.
    pub checker_prompt: &'a str,
    pub sentences: u32,
    pub choose: bool,
    pub gathered: &'a Gathered,
}

pub(super) fn fingerprint(asked: &Print<'_>) -> Result<[u8; 32]> {
    // Signs count: C++ is not C#, and -5 is not 5.
    let normal = |text: &str| {
        let words = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        words.trim_end_matches(['?', ' ']).to_owned()
    };
    let evidence: Vec<_> =
        asked.gathered.evidence.iter().map(|one| (one.fact, &one.text, &one.quote, one.superseded)).collect();
    let earlier: Vec<String> = asked.earlier.iter().map(|text| normal(text)).collect();
    let parts = serde_json::to_vec(&(
        (ASK_VERSION, normal(asked.question), earlier, asked.language),
        (
            asked.filters,
            asked.models,
            (asked.sentences, asked.choose),
            asked.gathered.near_only,
            asked.checker_prompt,
        ),
        evidence,
    ));
    Ok(Sha256::digest(parts.map_err(Error::internal)?).into())
}
