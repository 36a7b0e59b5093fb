//! An answer as it is shown.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::AskFilters;
use crate::vocabulary::schema;

/// An answer, with its evidence and how each sentence was checked.
#[derive(Serialize, ToSchema)]
#[schema(as = Answer)]
pub struct AnswerView {
    #[serde(flatten)]
    pub row: AnswerRowOfView,
    #[schema(example = "How long does a kingfisher live?")]
    pub question_as_searched: String,
    /// As it was asked for.
    #[schema(value_type = schema::AnswerMode)]
    pub mode_asked: &'static str,
    /// Why no model has written it; null if one has.
    #[schema(required, value_type = Option<schema::WhyExtractive>)]
    pub extractive_reason: Option<&'static str>,
    #[schema(required)]
    pub model: Option<String>,
    /// Who has checked the sentences. `builtin-posture-1` is no model but rules.
    #[schema(required, example = "builtin-posture-1")]
    pub check_model: Option<String>,
    pub ask_version: i16,
    pub asked_by: Uuid,
    /// What the question names.
    pub concepts: Vec<NamedConceptView>,
    pub filters: AskFilters,
    /// The evidence, best first.
    pub facts: Vec<EvidenceView>,
    /// The evidence is near the question, and no answer to it.
    pub near_only: bool,
    /// Why facts were not looked for by all means; null if they were.
    #[schema(required, example = json!(null))]
    pub degraded_reason: Option<String>,
    pub sentences: Vec<SentenceView>,
    /// What was written and is not shown as part of the answer, with the reason.
    pub dropped: Vec<DroppedView>,
    pub disagreeing: Vec<DisagreeingView>,
    /// What the question asks for and the facts do not say.
    #[schema(required, example = "when they are highest")]
    pub missing: Option<String>,
    pub coverage: CoverageView,
    pub cost: CostView,
    /// Whether it was there already, and so cost nothing.
    pub cached: bool,
    #[schema(required, example = 2100)]
    pub took_ms: Option<i64>,
    /// Facts that it cites and that are not what they were.
    pub evidence_changed: Vec<EvidenceChangeView>,
    /// What you have said of it.
    pub feedback: Vec<FeedbackView>,
    /// Why it failed; null if it did not.
    #[schema(required)]
    pub problem: Option<ProblemView>,
    #[schema(required)]
    pub job_id: Option<Uuid>,
    /// With `explain=true`: where each piece of evidence came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<TraceView>>,
}

/// What an answer has in common with its row in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerHead)]
pub struct AnswerRowOfView {
    pub id: Uuid,
    #[schema(example = "How high are the tides in the Bay of Fundy?")]
    pub question: String,
    /// `running`; `answered`: all that was written is shown and supported; `partly`: something was left out, is contradicted or could
    /// not be checked; `abstained`: there is no sentence, and the evidence is only near; `extractive`: the facts themselves;
    /// `cancelled`; `failed`.
    #[schema(value_type = schema::AnswerStatus)]
    pub status: &'static str,
    /// `model` or `extractive`.
    #[schema(value_type = schema::AnswerMode)]
    pub mode: &'static str,
    #[schema(required)]
    pub conversation_id: Option<Uuid>,
    pub is_own: bool,
    pub shared: bool,
    pub created_at: DateTime<Utc>,
    #[schema(required)]
    pub finished_at: Option<DateTime<Utc>>,
    /// Of the page that shows it.
    #[schema(example = "/r/tides/answers/019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub url: String,
}

/// A concept by its name.
#[derive(Serialize, ToSchema)]
#[schema(as = NamedConcept)]
pub struct NamedConceptView {
    pub id: Uuid,
    #[schema(example = "Bay of Fundy")]
    pub name: String,
}

/// A fact, or a part of a source that none of the facts beside it quotes, as it was when it was found.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerEvidence)]
pub struct EvidenceView {
    /// By which sentences cite it, within this answer.
    #[schema(example = "kqzb")]
    pub key: String,
    /// `fact` or `passage`.
    #[schema(value_type = schema::EvidenceKind)]
    pub kind: &'static str,
    /// Of the fact; null for a passage.
    #[schema(required)]
    pub id: Option<Uuid>,
    #[schema(example = "The Bay of Fundy has the highest tides of the world.")]
    pub text: String,
    /// The words of the source.
    #[schema(required)]
    pub quote: Option<String>,
    #[schema(required)]
    pub source: Option<EvidenceSourceView>,
    /// Comparable within one answer only.
    #[schema(example = 0.87)]
    pub score: f64,
    /// `lexical`, `vector`, `anchor` (the question names the source) and `hop` (reached over a name).
    #[schema(value_type = Vec<schema::FoundThrough>)]
    pub found_by: Vec<&'static str>,
    /// What led to it; null unless `found_by` has `hop`.
    #[schema(required)]
    pub via: Option<ViaView>,
    /// Of the page that shows it.
    #[schema(example = "/r/tides/facts/019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub url: String,
    /// Always false: what was retracted is no evidence.
    pub retracted: bool,
    /// Whether all its sources are superseded.
    pub superseded: bool,
}

/// Where a piece of evidence stands.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerEvidenceSource)]
pub struct EvidenceSourceView {
    pub id: Uuid,
    #[schema(required, example = "Tides")]
    pub title: Option<String>,
    #[schema(required, example = 2019)]
    pub year: Option<i32>,
    /// The page of a PDF, from 1.
    #[schema(required, example = 3)]
    pub page: Option<i32>,
    /// Of the page that shows the words in the source.
    #[schema(example = "/r/tides/sources/019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub url: String,
}

/// A name that led to a piece of evidence.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerEvidenceVia)]
pub struct ViaView {
    #[schema(required)]
    pub concept_id: Option<Uuid>,
    #[schema(example = "Minas Basin")]
    pub name: String,
}

/// A sentence of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerSentence)]
pub struct SentenceView {
    /// From 0.
    pub index: u32,
    #[schema(example = "The Bay of Fundy has the highest tides of the world.")]
    pub text: String,
    /// The facts that it rests on.
    pub fact_ids: Vec<Uuid>,
    /// All evidence that it rests on, by keys.
    #[schema(example = json!(["kqzb"]))]
    pub keys: Vec<String>,
    /// `supported`; `contradicted`: one of the facts that it cites says otherwise; `unverified`: nothing stands against it, and no model
    /// has confirmed it.
    #[schema(value_type = schema::Verdict)]
    pub verdict: &'static str,
    #[schema(example = 0.93)]
    pub confidence: f32,
    /// `model` or `rule`.
    #[schema(value_type = schema::CheckMethod)]
    pub method: &'static str,
    /// Of an extractive answer: what it speaks of.
    #[schema(required)]
    pub group: Option<GroupView>,
}

/// A concept that the sentences around speak of.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerGroup)]
pub struct GroupView {
    pub concept_id: Uuid,
    #[schema(example = "Bay of Fundy")]
    pub name: String,
}

/// A sentence that did not hold.
#[derive(Serialize, ToSchema)]
#[schema(as = DroppedSentence)]
pub struct DroppedView {
    /// Null where it speaks of something else than the question and the evidence, or has an address: nobody has checked it.
    #[schema(required, example = "The tides reach 41 metres.")]
    pub text: Option<String>,
    #[schema(value_type = schema::DropReason)]
    pub code: &'static str,
    #[schema(example = "41 is in none of the cited facts")]
    pub reason: String,
}

/// Facts that say otherwise than those that a sentence cites.
#[derive(Serialize, ToSchema)]
#[schema(as = DisagreeingFacts)]
pub struct DisagreeingView {
    /// The index of the sentence.
    pub index: u32,
    pub facts: Vec<DisagreeingFactView>,
}

/// A fact that says otherwise.
#[derive(Serialize, ToSchema)]
#[schema(as = DisagreeingFact)]
pub struct DisagreeingFactView {
    #[serde(flatten)]
    pub evidence: EvidenceView,
    /// The fact that is cited.
    pub against: Uuid,
    #[schema(example = 0.9)]
    pub confidence: f32,
    #[schema(example = "builtin-posture-1")]
    pub judged_by: String,
}

/// How much of what was written is shown.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = AnswerCoverage)]
pub struct CoverageView {
    #[schema(example = 4)]
    pub written: u32,
    #[schema(example = 3)]
    pub shown: u32,
    #[schema(example = 3)]
    pub supported: u32,
    pub contradicted: u32,
    pub unverified: u32,
    #[schema(example = 1)]
    pub dropped: u32,
}

/// What an answer has cost.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = AnswerCost)]
pub struct CostView {
    #[schema(example = 0.0012)]
    pub usd: f64,
    #[schema(example = 5900)]
    pub tokens_in: u64,
    #[schema(example = 800)]
    pub tokens_out: u64,
    /// Calls of models.
    #[schema(example = 6)]
    pub calls: u32,
}

/// A fact or a passage that is not what it was when it was cited.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedEvidence)]
pub struct EvidenceChangeView {
    /// Null of a passage.
    #[schema(required)]
    pub fact_id: Option<Uuid>,
    /// Of a passage: its key among `facts`.
    #[schema(required, example = json!(null))]
    pub key: Option<String>,
    /// `rejected`, `removed`, `retracted` (all its sources were) or `contradicted` (by a fact that was found since).
    #[schema(value_type = schema::EvidenceChange)]
    pub change: &'static str,
}

/// What you have said of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerFeedback)]
pub struct FeedbackView {
    /// The index of a sentence; null for the answer as a whole.
    #[schema(required)]
    pub sentence: Option<i32>,
    #[schema(value_type = schema::FeedbackVerdict)]
    pub verdict: &'static str,
    #[schema(required)]
    pub note: Option<String>,
}

/// Why an answer failed, as a problem.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = AnswerProblem)]
pub struct ProblemView {
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    pub kind: &'static str,
    #[schema(example = "The answer failed")]
    pub title: &'static str,
    #[schema(example = 500)]
    pub status: u16,
    #[schema(example = "the model did not answer within 30 s")]
    pub detail: String,
    #[schema(example = "unavailable")]
    pub code: String,
}

/// Where a piece of evidence came from.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerTrace)]
pub struct TraceView {
    #[schema(example = "kqzb")]
    pub key: String,
    /// Its place in the evidence, from 1.
    pub rank: usize,
    #[schema(example = 0.87)]
    pub score: f64,
    #[schema(value_type = Vec<schema::FoundThrough>)]
    pub found_by: Vec<&'static str>,
    /// The lines of the model that cite it, from 0; those that are not shown are not counted.
    pub lines: Vec<u32>,
}

/// What was understood of a question.
#[derive(Serialize, ToSchema)]
pub struct Understood {
    pub answer_id: Uuid,
    pub question: String,
    #[schema(example = "How long does a kingfisher live?")]
    pub question_as_searched: String,
    #[schema(value_type = schema::AnswerMode)]
    pub mode: &'static str,
    #[schema(required, value_type = Option<schema::WhyExtractive>)]
    pub extractive_reason: Option<&'static str>,
    pub concepts: Vec<NamedConceptView>,
    #[schema(required)]
    pub conversation_id: Option<Uuid>,
}

/// An event of an answer: its name and its data.
pub struct EventView {
    pub name: &'static str,
    pub data: serde_json::Value,
}
