//! Answers to questions, their events, and conversations.

mod shown;
mod view;

use chrono::{DateTime, Utc};
use okt_app::{AskEstimate, AskRequest, ListedAnswer};
use okt_model::{AnswerFilters, AnswerMode, Conversation, Error, Feedback, Money, WhyExtractive};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read, read_if_given, schema};

pub use shown::Shown;
pub use view::{AnswerView, EventView};

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
