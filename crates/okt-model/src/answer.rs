//! Answers: what was asked, the evidence that was found, and each sentence with what it rests on and how it was checked.
//!
//! An answer is the list of its events, in the order in which they happened: a reader who comes later, or again, is told the same.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{
    AnswerId, ConceptId, ConversationId, Cost, FactId, FoundThrough, JobId, Payload, SourceId, Subject,
    SubjectKind, UserId,
};

/// Changes with the instructions that a model is given, and with what is made of its answers.
pub const ASK_VERSION: i16 = 1;

words! {
    /// How an answer is wanted.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    AnswerMode {
        /// By a model, if one may be asked; else extractive.
        Auto = "auto",
        /// The facts themselves; nobody is asked.
        Extractive = "extractive",
        Model = "model",
    }
}

words! {
    /// Where an answer stands.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    AnswerStatus {
        Running = "running",
        /// All that was written is shown, and supported.
        Answered = "answered",
        /// Something was left out, is contradicted, or could not be checked.
        Partly = "partly",
        /// Nothing is known; there is no sentence.
        Abstained = "abstained",
        Extractive = "extractive",
        /// Somebody stopped it; what was there stays.
        Cancelled = "cancelled",
        Failed = "failed",
    }
}

impl AnswerStatus {
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Running)
    }
}

words! {
    /// Why no model has written an answer.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    WhyExtractive {
        Asked = "asked",
        NoModel = "no_model",
        NotPermitted = "not_permitted",
        /// The person has spent what they may today.
        DailyLimit = "daily_limit",
        /// The repository or the installation has spent what it may.
        OverBudget = "over_budget",
        /// The answer could cost more than it may.
        MaxCost = "max_cost",
        ModelFailed = "model_failed",
    }
}

words! {
    /// How a sentence stands to what it cites.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Verdict {
        Supported = "supported",
        /// One of the facts that it cites says otherwise.
        Contradicted = "contradicted",
        /// Rules found nothing against it and too little for it, and no model was asked.
        Unverified = "unverified",
    }
}

words! {
    /// Who has checked a sentence.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    CheckMethod {
        Model = "model",
        Rule = "rule",
    }
}

words! {
    /// Why a sentence is not shown.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    DropReason {
        /// It cites nothing that was given.
        NoKeys = "no_keys",
        /// A number, a unit or a date that is in none of the cited facts.
        Number = "number",
        Negation = "negation",
        Name = "name",
        /// It is surer, or says it of more, than its facts.
        Quantifier = "quantifier",
        /// It ties together what no single fact ties together.
        Join = "join",
        Unsupported = "unsupported",
        Contradicted = "contradicted",
        /// One more than an answer has.
        TooMany = "too_many",
    }
}

words! {
    /// What people say of answers.
    FeedbackVerdict {
        Right = "right",
        Wrong = "wrong",
        Missing = "missing",
    }
}

words! {
    /// What became of a fact or a passage that an answer cites.
    EvidenceChange {
        Rejected = "rejected",
        Removed = "removed",
        /// All its sources were retracted; of a passage, its source.
        Retracted = "retracted",
        /// Another fact was found that says otherwise.
        Contradicted = "contradicted",
    }
}

words! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    EvidenceKind {
        Fact = "fact",
        /// A part of a source whose words none of the facts beside it quotes.
        Passage = "passage",
    }
}

/// A question, with what it is to be answered from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerFilters {
    #[serde(default)]
    pub source_ids: Vec<SourceId>,
    #[serde(default)]
    pub concept_ids: Vec<ConceptId>,
    #[serde(default)]
    pub context: Option<String>,
    /// Years.
    #[serde(default)]
    pub published_from: Option<i32>,
    #[serde(default)]
    pub published_to: Option<i32>,
}

/// A concept by its name, as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedConcept {
    pub id: ConceptId,
    pub name: String,
}

/// The source of a piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceSource {
    pub id: SourceId,
    pub title: Option<String>,
    pub published_at: Option<NaiveDate>,
    pub page: Option<i32>,
}

/// What led to a piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceVia {
    pub concept: Option<ConceptId>,
    pub name: String,
}

/// A fact or a passage, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// By which a model cites it: letters without an order.
    pub key: String,
    pub kind: EvidenceKind,
    /// Missing of a passage.
    pub fact: Option<FactId>,
    pub fact_no: Option<i64>,
    pub text: String,
    /// The words of the source that it rests on.
    pub quote: Option<String>,
    /// Short ones with their neighbours, for whoever has to understand them: they are no part of what it says.
    #[serde(default)]
    pub around: Option<String>,
    pub source: Option<EvidenceSource>,
    pub score: f64,
    pub found_by: Vec<FoundThrough>,
    pub via: Option<EvidenceVia>,
    pub superseded: bool,
    /// What it speaks of, the concept with the most facts first.
    #[serde(default)]
    pub concepts: Vec<NamedConcept>,
    #[serde(default)]
    pub language: Option<String>,
}

/// A sentence that is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerSentence {
    /// From 0, in the order of the answer.
    pub index: u32,
    /// The number of the line that the model wrote; also of those that are not shown.
    pub line: u32,
    pub text: String,
    pub keys: Vec<String>,
    pub facts: Vec<FactId>,
    pub verdict: Verdict,
    pub confidence: f32,
    pub method: CheckMethod,
    /// Of an extractive answer: what the sentences around it speak of.
    pub group: Option<NamedConcept>,
    /// What the model wrote first, and did not hold. Not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// A sentence that is not shown as part of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedSentence {
    pub line: u32,
    pub text: String,
    pub code: DropReason,
    /// For people.
    pub reason: String,
    /// Whether people may see its words: nobody has checked them, so they are those of the question and the evidence at least.
    #[serde(default)]
    pub is_shown: bool,
}

/// A fact that says otherwise than one that is cited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisagreeingFact {
    #[serde(flatten)]
    pub evidence: Evidence,
    pub against: FactId,
    pub confidence: f32,
    pub judged_by: String,
}

/// How much of what was written is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub written: u32,
    pub shown: u32,
    pub supported: u32,
    pub contradicted: u32,
    pub unverified: u32,
    pub dropped: u32,
}

impl Coverage {
    /// Of what has happened so far.
    pub fn of(events: &[AnswerEvent]) -> Self {
        let mut coverage = Self::default();
        for event in events {
            match event {
                AnswerEvent::Sentence(sentence) => {
                    coverage.shown += 1;
                    match sentence.verdict {
                        Verdict::Supported => coverage.supported += 1,
                        Verdict::Contradicted => coverage.contradicted += 1,
                        Verdict::Unverified => coverage.unverified += 1,
                    }
                }
                AnswerEvent::Dropped(_) => coverage.dropped += 1,
                _ => {}
            }
        }
        coverage.written = coverage.shown + coverage.dropped;
        coverage
    }
}

/// What happened to an answer. Stored as it is; a variant or a field is never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AnswerEvent {
    Understood {
        searched: String,
        mode: AnswerMode,
        why_extractive: Option<WhyExtractive>,
        concepts: Vec<NamedConcept>,
    },
    /// All that there is so far.
    Evidence {
        facts: Vec<Evidence>,
        near_only: bool,
        degraded: Option<String>,
    },
    Sentence(AnswerSentence),
    Dropped(DroppedSentence),
    Disagreeing {
        index: u32,
        facts: Vec<DisagreeingFact>,
    },
    Cost {
        cost: Cost,
        calls: u32,
    },
    /// A model was to write it and could not.
    Turned {
        why: WhyExtractive,
    },
    Done {
        status: AnswerStatus,
        coverage: Coverage,
        missing: Option<String>,
        model: Option<String>,
        cached: bool,
        took_ms: u64,
        why_extractive: Option<WhyExtractive>,
    },
    /// It ended without an answer.
    Error {
        code: String,
        message: String,
    },
}

impl AnswerEvent {
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Error { .. })
    }
}

/// An answer without what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub id: AnswerId,
    pub no: i64,
    pub asked_by: UserId,
    pub conversation: Option<ConversationId>,
    pub job: Option<JobId>,
    pub question: String,
    pub searched: String,
    pub filters: AnswerFilters,
    /// ISO 639-1; `None` is that of the question.
    pub language: Option<String>,
    pub mode_asked: AnswerMode,
    pub mode: AnswerMode,
    pub why_extractive: Option<WhyExtractive>,
    pub model: Option<String>,
    pub check_model: Option<String>,
    pub ask_version: i16,
    pub status: AnswerStatus,
    pub shared: bool,
    pub cached: bool,
    /// The most that it may cost.
    pub max_cost: crate::Money,
    pub cost: Cost,
    pub calls: i32,
    pub sentence_count: i32,
    pub evidence_changed_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Questions that follow on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    pub id: ConversationId,
    pub no: i64,
    pub asked_by: UserId,
    pub title: Option<String>,
    pub answer_count: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What somebody says of an answer, or of one of its sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    pub sentence: Option<i32>,
    pub verdict: FeedbackVerdict,
    pub note: Option<String>,
}

/// What answers by models have cost lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerCosts {
    pub answers: i64,
    pub calls: Option<f64>,
    pub median: Option<crate::Money>,
    /// All but one in twenty cost no more.
    pub most: Option<crate::Money>,
}

/// What an answer cites: a fact, or a passage by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cited {
    Fact(FactId),
    Passage(String),
}

/// What became of what answers cite, by the numbers of the answers.
pub type EvidenceChanges = BTreeMap<i64, Vec<(Cited, EvidenceChange)>>;

/// Writes and checks an answer whose evidence has been found.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    pub answer: AnswerId,
}

impl Payload for AnswerQuestion {
    const KIND: &'static str = "answer_question";

    fn subject(&self) -> Option<Subject> {
        Some(Subject::new(SubjectKind::Question, self.answer.uuid()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_stored_by_names_that_stay() {
        let sentence = AnswerSentence {
            index: 0,
            line: 2,
            text: "Gulls nest.".to_owned(),
            keys: vec!["kqzb".to_owned()],
            facts: Vec::new(),
            verdict: Verdict::Supported,
            confidence: 0.5,
            method: CheckMethod::Rule,
            group: None,
            instead_of: None,
        };
        let stored = r#"{"event":"sentence","index":0,"line":2,"text":"Gulls nest.","keys":["kqzb"],"facts":[],"verdict":"supported","confidence":0.5,"method":"rule","group":null}"#;
        let event = AnswerEvent::Sentence(sentence);
        assert_eq!(serde_json::to_string(&event).unwrap(), stored);
        assert_eq!(serde_json::from_str::<AnswerEvent>(stored).unwrap(), event);
        let cost = AnswerEvent::Cost { cost: Cost::default(), calls: 3 };
        let stored = serde_json::to_string(&cost).unwrap();
        assert_eq!(serde_json::from_str::<AnswerEvent>(&stored).unwrap(), cost);
        let last = |event: &AnswerEvent| event.is_last();
        assert!(!last(&cost) && last(&AnswerEvent::Error { code: String::new(), message: String::new() }));
    }

    #[test]
    fn words_are_stored_as_they_are_shown() {
        fn same<T: Serialize + Copy>(all: &[T], text: impl Fn(T) -> &'static str) {
            for one in all {
                assert_eq!(serde_json::to_value(one).unwrap(), text(*one));
            }
        }
        same(AnswerMode::ALL, AnswerMode::as_str);
        same(AnswerStatus::ALL, AnswerStatus::as_str);
        same(WhyExtractive::ALL, WhyExtractive::as_str);
        same(Verdict::ALL, Verdict::as_str);
        same(CheckMethod::ALL, CheckMethod::as_str);
        same(DropReason::ALL, DropReason::as_str);
        same(EvidenceKind::ALL, EvidenceKind::as_str);
        same(FoundThrough::ALL, FoundThrough::as_str);
    }
}
