//! Answers to questions, their events, and conversations.

use chrono::{DateTime, Datelike as _, Utc};
use okt_app::{AskEstimate, AskRequest, ListedAnswer, SeenAnswer};
use okt_model::{
    AnswerEvent, AnswerFilters, AnswerMode, AnswerSentence, AnswerStatus, Conversation, Cost, Coverage,
    DisagreeingFact, DropReason, DroppedSentence, Error, Evidence, EvidenceKind, Feedback, FoundThrough,
    Money, NamedConcept, WhyExtractive,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read, read_if_given, schema};

/// A question.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AskRequest)]
pub struct AskBody {
    #[schema(min_length = 3, max_length = 2000, example = "How high are the tides in the Bay of Fundy?")]
    pub question: String,
    /// `auto` (the default): by a model, if one is set up and you may have it asked; `extractive`: the facts themselves; `model`.
    #[schema(value_type = Option<schema::AnswerMode>)]
    pub mode: Option<String>,
    /// A conversation of yours that the question belongs to.
    pub conversation_id: Option<Uuid>,
    #[serde(default)]
    pub filters: AskFilters,
    /// The most that the answer may cost, in US dollars; what is checked by then is shown.
    #[schema(exclusive_minimum = 0, example = 0.05)]
    pub max_cost_usd: Option<f64>,
    /// The language that a model answers in (ISO 639-1); otherwise that of the question.
    #[schema(example = "en")]
    pub answer_language: Option<String>,
    /// Whether everybody who may read facts of the repository sees the answer.
    pub shared: Option<bool>,
    /// Whether the answer has its `trace`.
    pub explain: Option<bool>,
}

/// What evidence is looked for.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AskFilters {
    /// Only what is in one of these sources, at most 20.
    #[schema(example = json!([]))]
    pub source_ids: Vec<Uuid>,
    /// Only what speaks of all of these concepts, at most 8.
    #[schema(example = json!([]))]
    pub concept_ids: Vec<Uuid>,
    /// Only what speaks of a concept in this context.
    #[schema(required, example = json!(null))]
    pub context: Option<String>,
    /// Only what is in a source that was published in this year or later.
    #[schema(required, example = json!(null))]
    pub published_from: Option<i32>,
    /// Only what is in a source that was published in this year or before.
    #[schema(required, example = json!(null))]
    pub published_to: Option<i32>,
}

impl AskBody {
    /// With the Idempotency-Key that came along.
    pub fn parsed(self, key: Option<String>) -> Result<AskRequest, Error> {
        Ok(AskRequest {
            key,
            question: self.question,
            mode: read_if_given("mode", self.mode.as_deref())?,
            conversation: self.conversation_id.map(Into::into),
            filters: AnswerFilters {
                source_ids: self.filters.source_ids.into_iter().map(Into::into).collect(),
                concept_ids: self.filters.concept_ids.into_iter().map(Into::into).collect(),
                context: self.filters.context,
                published_from: self.filters.published_from,
                published_to: self.filters.published_to,
            },
            max_cost_usd: self.max_cost_usd,
            language: self.answer_language,
            shared: self.shared.unwrap_or(false),
        })
    }
}

/// An answer that is being written.
#[derive(Serialize, ToSchema)]
pub struct AnswerAccepted {
    pub answer_id: Uuid,
    pub job_id: Option<Uuid>,
}

/// What an answer would cost.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateRequest {
    /// As in a question.
    #[schema(value_type = Option<schema::AnswerMode>)]
    pub mode: Option<String>,
}

impl EstimateRequest {
    pub fn mode(&self) -> Result<AnswerMode, Error> {
        Ok(read_if_given("mode", self.mode.as_deref())?.unwrap_or(AnswerMode::Auto))
    }
}

/// What an answer would cost, from the last 50 that a model has written in the repository.
#[derive(Serialize, ToSchema)]
#[schema(as = AskEstimate)]
pub struct EstimateView {
    /// `model` or `extractive`.
    #[schema(value_type = schema::AnswerMode)]
    pub mode: &'static str,
    /// Why no model would be asked; null if one would.
    #[schema(required, value_type = Option<schema::WhyExtractive>)]
    pub extractive_reason: Option<&'static str>,
    #[schema(required)]
    pub model: Option<String>,
    /// Calls of models: half of the answers took no more. Null without earlier answers.
    #[schema(required, example = 6.0)]
    pub calls: Option<f64>,
    /// US dollars: half of the answers cost no more.
    #[schema(required, example = 0.0015)]
    pub usd: Option<f64>,
    /// 19 of 20 answers cost no more.
    #[schema(required, example = 0.004)]
    pub usd_most: Option<f64>,
    /// How many earlier answers this rests on.
    #[schema(example = 37)]
    pub based_on: i64,
    /// What an answer may cost unless its question says otherwise.
    #[schema(example = 0.05)]
    pub max_cost_usd: f64,
    /// What you may still spend on answers here today (UTC); null for no limit.
    #[schema(required, example = 0.42)]
    pub left_today_usd: Option<f64>,
}

impl From<AskEstimate> for EstimateView {
    fn from(estimate: AskEstimate) -> Self {
        let known = estimate.model.is_some() && estimate.costs.answers > 0;
        Self {
            mode: estimate.mode.as_str(),
            extractive_reason: estimate.why_extractive.map(WhyExtractive::as_str),
            model: estimate.model,
            calls: estimate.costs.calls.filter(|_| known),
            usd: estimate.costs.median.filter(|_| known).map(Money::to_usd),
            usd_most: estimate.costs.most.filter(|_| known).map(Money::to_usd),
            based_on: estimate.costs.answers,
            max_cost_usd: estimate.max_cost.to_usd(),
            left_today_usd: estimate.left_today.map(Money::to_usd),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AnswerListQuery {
    /// Only those of this conversation.
    pub conversation_id: Option<Uuid>,
    /// `true`: only shared ones; `false`: only your own.
    pub shared: Option<bool>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AnswerQuery {
    /// `true` to show what the answer was made from.
    #[param(default = false)]
    pub explain: Option<bool>,
}

/// Who sees an answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerUpdate {
    /// Whether everybody who may read facts of the repository sees it.
    pub shared: bool,
}

/// How an answer is written down as a report.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerReport {
    /// The question, if left out.
    #[schema(max_length = 300, example = "Tides in the Bay of Fundy")]
    pub title: Option<String>,
    #[schema(max_length = 4000, example = "Tides")]
    pub topic: Option<String>,
}

/// What you say of an answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewAnswerFeedback)]
pub struct FeedbackBody {
    /// The index of a sentence; left out: the answer as a whole.
    pub sentence: Option<i32>,
    /// `right`, `wrong` or `missing`.
    #[schema(value_type = schema::FeedbackVerdict)]
    pub verdict: String,
    #[schema(max_length = 4000, example = "It speaks of another bay")]
    pub note: Option<String>,
}

impl FeedbackBody {
    pub fn parsed(self) -> Result<Feedback, Error> {
        Ok(Feedback { sentence: self.sentence, verdict: read("verdict", &self.verdict)?, note: self.note })
    }
}

/// A new conversation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversation {
    /// Its first question, if left out.
    #[schema(max_length = 300, example = "Tides")]
    pub title: Option<String>,
}

/// Questions that follow on each other.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub struct ConversationView {
    pub id: Uuid,
    /// Null until there is a question.
    #[schema(required, example = "Tides")]
    pub title: Option<String>,
    #[schema(example = 3)]
    pub answer_count: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A conversation with its answers.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationWithAnswers)]
pub struct FullConversation {
    #[serde(flatten)]
    pub conversation: ConversationView,
    /// The oldest first, at most the newest 200.
    pub answers: Vec<AnswerRow>,
}

impl From<Conversation> for ConversationView {
    fn from(conversation: Conversation) -> Self {
        Self {
            id: conversation.id.uuid(),
            title: conversation.title,
            answer_count: conversation.answer_count,
            created_at: conversation.created_at,
            updated_at: conversation.updated_at,
        }
    }
}

/// An answer in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = AnswerSummary)]
pub struct AnswerRow {
    pub id: Uuid,
    #[schema(example = "How high are the tides in the Bay of Fundy?")]
    pub question: String,
    /// `running`, `answered`, `partly`, `abstained`, `extractive`, `cancelled` or `failed`.
    #[schema(value_type = schema::AnswerStatus)]
    pub status: &'static str,
    /// `model` or `extractive`.
    #[schema(value_type = schema::AnswerMode)]
    pub mode: &'static str,
    #[schema(required)]
    pub conversation_id: Option<Uuid>,
    pub is_own: bool,
    pub shared: bool,
    #[schema(example = 3)]
    pub sentence_count: i32,
    /// Whether facts that it cites are not what they were.
    pub evidence_changed: bool,
    #[schema(example = 0.0015)]
    pub cost_usd: f64,
    pub created_at: DateTime<Utc>,
    #[schema(required)]
    pub finished_at: Option<DateTime<Utc>>,
    /// Of the page that shows it.
    #[schema(example = "/r/tides/answers/019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub url: String,
}

impl AnswerRow {
    pub fn new(listed: ListedAnswer, slug: &str) -> Self {
        let answer = listed.answer;
        Self {
            id: answer.id.uuid(),
            url: format!("/r/{slug}/answers/{}", answer.id),
            question: answer.question,
            status: answer.status.as_str(),
            mode: answer.mode.as_str(),
            conversation_id: answer.conversation.map(okt_model::ConversationId::uuid),
            is_own: listed.is_own,
            shared: answer.shared,
            sentence_count: answer.sentence_count,
            evidence_changed: listed.changed,
            cost_usd: answer.cost.usd.to_usd(),
            created_at: answer.created_at,
            finished_at: answer.finished_at,
        }
    }
}

/// An answer, with its evidence and how each sentence was checked.
#[derive(Serialize, ToSchema)]
#[schema(as = Answer)]
pub struct AnswerView {
    #[serde(flatten)]
    pub row: AnswerRowOfView,
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
    #[schema(required, value_type = Option<Object>, example = json!(null))]
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

/// A fact, or a part of a source that no fact rests on, as it was when it was found.
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
    #[schema(example = "The tides reach 41 metres.")]
    pub text: String,
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

/// A fact that is not what it was when it was cited.
#[derive(Serialize, ToSchema)]
#[schema(as = EvidenceChange)]
pub struct EvidenceChangeView {
    pub fact_id: Uuid,
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
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
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

/// Turns what is stored into what is shown. `slug` is that of the repository.
pub struct Shown<'s> {
    pub slug: &'s str,
}

impl Shown<'_> {
    fn evidence(&self, one: Evidence) -> EvidenceView {
        let Self { slug } = self;
        let fact = one.fact.map(okt_model::FactId::uuid);
        let source = one.source.map(|source| {
            let mut url = format!("/r/{slug}/sources/{}", source.id);
            let mut sign = '?';
            if let Some(fact) = fact {
                url.push_str(&format!("{sign}fact={fact}"));
                sign = '&';
            }
            if let Some(page) = source.page {
                url.push_str(&format!("{sign}page={page}"));
            }
            EvidenceSourceView {
                id: source.id.uuid(),
                title: source.title,
                year: source.published_at.map(|day| day.year()),
                page: source.page,
                url,
            }
        });
        let of_source = source.as_ref().map(|source| source.url.clone()).unwrap_or_default();
        EvidenceView {
            key: one.key,
            kind: one.kind.as_str(),
            id: fact,
            text: one.text,
            quote: one.quote,
            url: match (one.kind, fact) {
                (EvidenceKind::Fact, Some(fact)) => format!("/r/{slug}/facts/{fact}"),
                _ => of_source,
            },
            source,
            score: one.score,
            found_by: one.found_by.into_iter().map(FoundThrough::as_str).collect(),
            via: one.via.map(|via| ViaView {
                concept_id: via.concept.map(okt_model::ConceptId::uuid),
                name: via.name,
            }),
            retracted: false,
            superseded: one.superseded,
        }
    }

    fn disagreeing(&self, one: DisagreeingFact) -> DisagreeingFactView {
        DisagreeingFactView {
            evidence: self.evidence(one.evidence),
            against: one.against.uuid(),
            confidence: one.confidence,
            judged_by: one.judged_by,
        }
    }

    /// An event as it is streamed.
    pub fn event(&self, answer: &okt_model::Answer, event: AnswerEvent) -> EventView {
        let data = |name, data: serde_json::Result<serde_json::Value>| EventView {
            name,
            data: data.unwrap_or_default(),
        };
        match event {
            AnswerEvent::Understood { searched, mode, why_extractive, concepts } => {
                let view = Understood {
                    answer_id: answer.id.uuid(),
                    question: answer.question.clone(),
                    question_as_searched: searched,
                    mode: mode.as_str(),
                    extractive_reason: why_extractive.map(WhyExtractive::as_str),
                    concepts: concepts.into_iter().map(NamedConceptView::from).collect(),
                    conversation_id: answer.conversation.map(okt_model::ConversationId::uuid),
                };
                data("understood", serde_json::to_value(view))
            }
            AnswerEvent::Evidence { facts, near_only, degraded } => {
                let facts: Vec<EvidenceView> = facts.into_iter().map(|one| self.evidence(one)).collect();
                let view = serde_json::json!({
                    "facts": facts, "near_only": near_only, "degraded_reason": degraded,
                });
                data("evidence", Ok(view))
            }
            AnswerEvent::Sentence(sentence) => {
                data("sentence", serde_json::to_value(SentenceView::from(sentence)))
            }
            AnswerEvent::Dropped(dropped) => {
                data("dropped", serde_json::to_value(DroppedView::from(dropped)))
            }
            AnswerEvent::Disagreeing { index, facts } => {
                let facts = facts.into_iter().map(|one| self.disagreeing(one)).collect();
                data("disagreeing", serde_json::to_value(DisagreeingView { index, facts }))
            }
            AnswerEvent::Cost { cost, calls } => {
                data("cost", serde_json::to_value(CostView::new(cost, calls)))
            }
            AnswerEvent::Turned { why } => {
                let view = serde_json::json!({
                    "mode": AnswerMode::Extractive.as_str(), "extractive_reason": why.as_str(),
                });
                data("turned", Ok(view))
            }
            AnswerEvent::Done { status, coverage, missing, model, cached, took_ms, why_extractive } => {
                let view = serde_json::json!({
                    "answer_id": answer.id.uuid(), "status": status.as_str(),
                    "coverage": CoverageView::from(coverage), "missing": missing, "model": model,
                    "cached": cached, "took_ms": took_ms,
                    "extractive_reason": why_extractive.map(WhyExtractive::as_str),
                });
                data("done", Ok(view))
            }
            AnswerEvent::Error { code, message } => {
                data("error", serde_json::to_value(problem(code, message)))
            }
        }
    }

    /// An answer as a whole.
    pub fn answer(&self, seen: SeenAnswer, explain: bool) -> AnswerView {
        let SeenAnswer { answer, is_own, events, changes, feedback } = seen;
        let mut view = AnswerView {
            row: AnswerRowOfView {
                id: answer.id.uuid(),
                url: format!("/r/{}/answers/{}", self.slug, answer.id),
                question: answer.question,
                status: answer.status.as_str(),
                mode: answer.mode.as_str(),
                conversation_id: answer.conversation.map(okt_model::ConversationId::uuid),
                is_own,
                shared: answer.shared,
                created_at: answer.created_at,
                finished_at: answer.finished_at,
            },
            question_as_searched: answer.searched,
            mode_asked: answer.mode_asked.as_str(),
            extractive_reason: answer.why_extractive.map(WhyExtractive::as_str),
            model: answer.model,
            check_model: answer.check_model,
            ask_version: answer.ask_version,
            asked_by: answer.asked_by.uuid(),
            concepts: Vec::new(),
            filters: answer.filters.into(),
            facts: Vec::new(),
            near_only: false,
            degraded_reason: None,
            sentences: Vec::new(),
            dropped: Vec::new(),
            disagreeing: Vec::new(),
            missing: None,
            coverage: Coverage::of(&events).into(),
            cost: CostView::default(),
            cached: answer.cached,
            took_ms: answer.finished_at.map(|end| (end - answer.created_at).num_milliseconds()),
            evidence_changed: changes
                .into_iter()
                .map(|(fact, change)| EvidenceChangeView { fact_id: fact.uuid(), change: change.as_str() })
                .collect(),
            feedback: feedback.into_iter().map(FeedbackView::from).collect(),
            problem: None,
            job_id: answer.job.map(okt_model::JobId::uuid),
            trace: None,
        };
        let mut lines: Vec<(u32, Vec<String>)> = Vec::new();
        for event in events {
            match event {
                AnswerEvent::Understood { concepts, .. } => {
                    view.concepts = concepts.into_iter().map(NamedConceptView::from).collect();
                }
                AnswerEvent::Evidence { facts, near_only, degraded } => {
                    view.facts = facts.into_iter().map(|one| self.evidence(one)).collect();
                    (view.near_only, view.degraded_reason) = (near_only, degraded);
                }
                AnswerEvent::Sentence(sentence) => {
                    lines.push((sentence.line, sentence.keys.clone()));
                    view.sentences.push(sentence.into());
                }
                AnswerEvent::Dropped(dropped) => view.dropped.push(dropped.into()),
                AnswerEvent::Disagreeing { index, facts } => {
                    let facts = facts.into_iter().map(|one| self.disagreeing(one)).collect();
                    view.disagreeing.push(DisagreeingView { index, facts });
                }
                AnswerEvent::Cost { cost, calls } => view.cost = CostView::new(cost, calls),
                AnswerEvent::Turned { .. } => {}
                AnswerEvent::Done { missing, .. } => view.missing = missing,
                AnswerEvent::Error { code, message } => view.problem = Some(problem(code, message)),
            }
        }
        // What is shown under "I don't know" is no citation.
        view.near_only |= answer.status == AnswerStatus::Abstained;
        if explain {
            let traced = view.facts.iter().enumerate().map(|(at, fact)| TraceView {
                key: fact.key.clone(),
                rank: at + 1,
                score: fact.score,
                found_by: fact.found_by.clone(),
                lines: lines
                    .iter()
                    .filter(|(_, keys)| keys.contains(&fact.key))
                    .map(|(line, _)| *line)
                    .collect(),
            });
            view.trace = Some(traced.collect());
        }
        view
    }
}

fn problem(code: String, detail: String) -> ProblemView {
    ProblemView { kind: "about:blank", title: "The answer failed", status: 500, detail, code }
}

impl From<AnswerFilters> for AskFilters {
    fn from(filters: AnswerFilters) -> Self {
        Self {
            source_ids: filters.source_ids.into_iter().map(okt_model::SourceId::uuid).collect(),
            concept_ids: filters.concept_ids.into_iter().map(okt_model::ConceptId::uuid).collect(),
            context: filters.context,
            published_from: filters.published_from,
            published_to: filters.published_to,
        }
    }
}

impl From<NamedConcept> for NamedConceptView {
    fn from(concept: NamedConcept) -> Self {
        Self { id: concept.id.uuid(), name: concept.name }
    }
}

impl From<AnswerSentence> for SentenceView {
    fn from(sentence: AnswerSentence) -> Self {
        Self {
            index: sentence.index,
            text: sentence.text,
            fact_ids: sentence.facts.into_iter().map(okt_model::FactId::uuid).collect(),
            keys: sentence.keys,
            verdict: sentence.verdict.as_str(),
            confidence: sentence.confidence,
            method: sentence.method.as_str(),
            group: sentence.group.map(|group| GroupView { concept_id: group.id.uuid(), name: group.name }),
        }
    }
}

impl From<DroppedSentence> for DroppedView {
    fn from(dropped: DroppedSentence) -> Self {
        Self { text: dropped.text, code: DropReason::as_str(dropped.code), reason: dropped.reason }
    }
}

impl From<Coverage> for CoverageView {
    fn from(coverage: Coverage) -> Self {
        let Coverage { written, shown, supported, contradicted, unverified, dropped } = coverage;
        Self { written, shown, supported, contradicted, unverified, dropped }
    }
}

impl CostView {
    fn new(cost: Cost, calls: u32) -> Self {
        Self { usd: cost.usd.to_usd(), tokens_in: cost.tokens_in, tokens_out: cost.tokens_out, calls }
    }
}

impl From<Feedback> for FeedbackView {
    fn from(feedback: Feedback) -> Self {
        Self { sentence: feedback.sentence, verdict: feedback.verdict.as_str(), note: feedback.note }
    }
}
