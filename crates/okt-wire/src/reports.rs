//! Reports: what somebody wrote, checked sentence by sentence against the facts.

use chrono::{DateTime, Utc};
use okt_app::{
    CheckedSentence, Evidence, EvidenceFact, ReportEdit, ReportHealth, ReportText, SeenReport, SourceHit,
};
use okt_model::{
    AnnotateReport, Annotation, Error, FactId, Job, JobId, JobState, Payload as _, Posture, Report,
    ReportChange, ReportCounts, ReportId, ReportSentence, Result, SentenceState, SourceId, UserId,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read, schema};

/// A report.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportSummary)]
pub struct ReportRow {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub id: Uuid,
    #[schema(example = "How bees find their way")]
    pub title: String,
    /// What it is about.
    #[schema(required, example = "Navigation of honey bees")]
    pub topic: Option<String>,
    /// The report that it is a part of.
    #[schema(required)]
    pub parent_id: Option<Uuid>,
    #[schema(value_type = schema::ReportStatus)]
    pub status: &'static str,
    /// Why its sentences could not all be checked; null unless `status` is `failed`.
    #[schema(required)]
    pub failure: Option<ReportFailure>,
    /// ISO 639; null if it can't be told.
    #[schema(required, example = "en")]
    pub language: Option<String>,
    #[schema(example = 31)]
    pub sentence_count: i32,
    /// Sentences that claim something: no headings, code, tables or questions, and none shorter than
    /// `providers.reports.min_sentence_runes`.
    #[schema(example = 24)]
    pub claim_count: i32,
    /// When all its claims were checked the last time.
    #[schema(required)]
    pub checked_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    /// When somebody changed it last.
    pub updated_at: DateTime<Utc>,
}

/// Why the sentences of a report could not all be checked.
#[derive(Serialize, ToSchema)]
pub struct ReportFailure {
    #[schema(example = "model_refused")]
    pub code: String,
    #[schema(example = "the model refused the request (401)")]
    pub message: String,
}

/// A report with how its claims stand.
#[derive(Serialize, ToSchema)]
#[schema(as = Report)]
pub struct ReportView {
    #[serde(flatten)]
    pub row: ReportRow,
    pub counts: ReportCountsView,
    /// With `include=body`: the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_markdown: Option<String>,
    /// The job that checks it, in the answer to a request that asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<Uuid>,
}

/// How many sentences stand how.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportCounts)]
pub struct ReportCountsView {
    /// Facts support them and none contradicts them.
    #[schema(example = 17)]
    pub supported: i64,
    /// At least one fact contradicts them.
    #[schema(example = 2)]
    pub contradicted: i64,
    /// No fact says anything for or against them.
    #[schema(example = 5)]
    pub unsupported: i64,
    /// To be checked, for the first time or again. Those that were checked before count above, too.
    #[schema(example = 0)]
    pub waiting: i64,
    #[schema(example = 7)]
    pub not_a_claim: i64,
}

/// A report to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReport {
    #[schema(example = "How bees find their way", min_length = 1, max_length = 300)]
    pub title: String,
    #[schema(example = "Navigation of honey bees", max_length = 4000)]
    pub topic: Option<String>,
    /// Markdown with at most 50,000 sentences.
    #[schema(
        example = "# Navigation\n\nHoney bees use the position of the sun to find their way back to the hive."
    )]
    pub body_markdown: String,
    /// The report that it is a part of.
    pub parent_id: Option<Uuid>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportUpdate {
    #[schema(example = "How bees navigate", min_length = 1, max_length = 300)]
    pub title: Option<String>,
    /// An empty one removes it.
    #[schema(max_length = 4000, example = "Navigation of honey bees")]
    pub topic: Option<String>,
    /// Sentences that stay keep what was said of them; the others are checked.
    #[schema(example = "Honey bees use the position of the sun to find their way back to the hive.")]
    pub body_markdown: Option<String>,
    /// An empty string takes the report out of the one that it is a part of.
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub parent_id: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReportListQuery {
    /// Only the parts of this report.
    pub parent_id: Option<Uuid>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReportQuery {
    /// `body` for the text of the report.
    #[param(example = "body")]
    pub include: Option<String>,
}

/// A sentence of a report.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportSentence)]
pub struct ReportSentenceView {
    /// From 0.
    #[schema(example = 3)]
    pub sentence_index: i32,
    /// The first code point of the report's Markdown, and the one after the last.
    #[schema(example = 120)]
    pub start: i32,
    #[schema(example = 194)]
    pub end: i32,
    /// Without markup.
    #[schema(example = "Honey bees use the position of the sun to find their way back to the hive.")]
    pub text: String,
    #[schema(value_type = schema::SentenceStanding)]
    pub state: &'static str,
    /// Whether it is to be checked again; until then it stands as it did.
    pub waiting: bool,
}

/// What was said of a sentence of a report and a fact.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportAnnotation)]
pub struct AnnotationView {
    /// What `PUT …/annotations/{n}` takes.
    #[schema(example = 412)]
    pub n: i64,
    #[schema(example = 3)]
    pub sentence_index: i32,
    #[schema(example = 120)]
    pub start: i32,
    #[schema(example = 194)]
    pub end: i32,
    #[schema(example = "Honey bees use the position of the sun to find their way back to the hive.")]
    pub sentence: String,
    pub fact_id: Uuid,
    #[schema(example = "Honey bees navigate by the position of the sun.")]
    pub fact_text: String,
    /// The cosine similarity of the two, or the part of their words that they share if that is more.
    #[schema(example = 0.87)]
    pub score: f32,
    /// `irrelevant` only where a person says so.
    #[schema(value_type = schema::JudgedPosture)]
    pub posture: &'static str,
    /// From 0 to 1, as whoever judged says.
    #[schema(example = 0.9)]
    pub confidence: f32,
    /// The model that judged, `builtin-posture-1` for our own rules, `person`, or `taken_back` until the pair is judged anew.
    #[schema(example = "builtin-posture-1")]
    pub judged_by: String,
    /// The person who judged.
    #[schema(required)]
    pub person: Option<Uuid>,
    pub judged_at: DateTime<Utc>,
    /// All sources of the fact were retracted, so it counts for nothing.
    pub retracted: bool,
    /// All sources of the fact are superseded. It counts all the same.
    pub superseded: bool,
}

/// How a person says that a fact stands to a sentence.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnnotationJudgement {
    /// `irrelevant` if the two have nothing to do with each other; null takes back what a person said, and the pair is judged anew.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, value_type = Option<schema::JudgedPosture>)]
    pub posture: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct HealthQuery {
    /// `false` leaves out the history: `changes` is empty.
    #[param(example = true)]
    pub history: Option<bool>,
}

/// How the claims of a report stand, and how they came to.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportHealth)]
pub struct HealthView {
    pub report_id: Uuid,
    #[schema(value_type = schema::ReportStatus)]
    pub status: &'static str,
    pub counts: ReportCountsView,
    #[schema(required)]
    pub checked_at: Option<DateTime<Utc>>,
    /// The newest first; none with `history=false`.
    pub changes: Vec<ReportChangeView>,
    /// Where older changes start; null if there are none.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// The standing of the claims of a report has changed: what the event `report.health_changed` tells.
#[derive(Serialize)]
pub struct HealthChangedView {
    pub report_id: Uuid,
    /// Claims that stand otherwise than when it was told the last time.
    pub changed: i64,
    pub counts: ReportCountsView,
}

/// A sentence that came to stand otherwise, or of which a person has judged.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportChange)]
pub struct ReportChangeView {
    pub at: DateTime<Utc>,
    /// Where the sentence is now; null if the report no longer has it.
    #[schema(required, example = 3)]
    pub sentence_index: Option<i32>,
    #[schema(
        required,
        example = "Honey bees use the position of the sun to find their way back to the hive."
    )]
    pub sentence: Option<String>,
    /// Null when it was checked for the first time.
    #[schema(required, value_type = Option<schema::SentenceStanding>)]
    pub before: Option<&'static str>,
    #[schema(value_type = schema::SentenceStanding)]
    pub after: &'static str,
    #[schema(value_type = schema::ChangeCause)]
    pub cause: &'static str,
    /// The fact that made the difference, while it is there.
    #[schema(required)]
    pub fact_id: Option<Uuid>,
    /// A source of it: the first one, or the one whose mark changed.
    #[schema(required)]
    pub source_id: Option<Uuid>,
    /// Its title or its address, also when it was deleted.
    #[schema(required, example = "The dance language of bees")]
    pub source_title: Option<String>,
    #[schema(required)]
    pub person: Option<Uuid>,
    /// Where a person has judged: what was said of the fact before.
    #[schema(required, value_type = Option<schema::JudgedPosture>)]
    pub posture_before: Option<String>,
    /// And what they say; null if they took back what a person had said.
    #[schema(required, value_type = Option<schema::JudgedPosture>)]
    pub posture_after: Option<String>,
    #[serde(skip)]
    pub place: i64,
}

/// A claim to find evidence for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRequest {
    #[schema(
        example = "Honey bees use the position of the sun to find their way.",
        min_length = 1,
        max_length = 4000
    )]
    pub claim: String,
}

/// A text to check.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Markdown with at most 200 sentences that claim something.
    #[schema(example = "Honey bees use the position of the sun to find their way back to the hive.")]
    pub text: String,
}

/// What the facts say of a claim.
#[derive(Serialize, ToSchema)]
#[schema(as = Evidence)]
pub struct EvidenceView {
    #[schema(value_type = schema::SentenceStanding)]
    pub state: &'static str,
    /// The nearest first.
    pub facts: Vec<EvidenceFactView>,
    /// Why vectors were not compared, so that only words were: `no_vectors`, `vectors_away`, `budget`, or
    /// `needs_report_write` where vectors cost money and you may not write reports. `words_slow` if words were not all compared.
    /// `model_away` if rules judged in place of the model, which did not answer in time or has no budget left.
    #[schema(required, example = "no_vectors")]
    pub degraded_reason: Option<&'static str>,
}

/// What the facts say of a text.
#[derive(Serialize, ToSchema)]
#[schema(as = CheckedText)]
pub struct CheckedTextView {
    pub counts: ReportCountsView,
    pub sentences: Vec<CheckedSentenceView>,
    /// Why vectors were not compared, so that only words were: `no_vectors`, `vectors_away`, `budget`, or
    /// `needs_report_write` where vectors cost money and you may not write reports. `words_slow` if words were not all compared.
    /// `model_away` if rules judged in place of the model, which did not answer in time or has no budget left.
    #[schema(required, example = "no_vectors")]
    pub degraded_reason: Option<&'static str>,
}

/// A sentence of a text with the facts near it.
#[derive(Serialize, ToSchema)]
#[schema(as = CheckedSentence)]
pub struct CheckedSentenceView {
    #[schema(example = 0)]
    pub sentence_index: usize,
    #[schema(example = 0)]
    pub start: i32,
    #[schema(example = 74)]
    pub end: i32,
    #[schema(example = "Honey bees use the position of the sun to find their way back to the hive.")]
    pub text: String,
    #[schema(value_type = schema::SentenceStanding)]
    pub state: &'static str,
    /// The nearest first.
    pub facts: Vec<EvidenceFactView>,
}

/// A fact that is near a sentence.
#[derive(Serialize, ToSchema)]
#[schema(as = EvidenceFact)]
pub struct EvidenceFactView {
    pub fact_id: Uuid,
    #[schema(example = "Honey bees navigate by the position of the sun.")]
    pub fact_text: String,
    #[schema(value_type = schema::Posture)]
    pub posture: &'static str,
    #[schema(example = 0.9)]
    pub confidence: f32,
    #[schema(example = "builtin-posture-1")]
    pub judged_by: String,
    #[schema(example = 0.87)]
    pub score: f32,
    /// All its sources were retracted, so it counts for nothing.
    pub retracted: bool,
    /// All its sources are superseded. It counts all the same.
    pub superseded: bool,
    /// At most 20.
    pub sources: Vec<EvidenceSource>,
}

/// A source that states a fact.
#[derive(Serialize, ToSchema)]
pub struct EvidenceSource {
    pub id: Uuid,
    #[schema(required, example = "The dance language of bees")]
    pub title: Option<String>,
    #[schema(example = "https://example.org/bees")]
    pub url: String,
}

impl NewReport {
    pub fn parsed(&self) -> ReportText<'_> {
        ReportText {
            title: &self.title,
            topic: self.topic.as_deref(),
            body: &self.body_markdown,
            parent: self.parent_id.map(ReportId::from),
        }
    }
}

impl ReportUpdate {
    pub fn parsed(&self) -> Result<ReportEdit<'_>> {
        let parent = match self.parent_id.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(id) => {
                let id: Uuid = id
                    .parse()
                    .map_err(|_| Error::invalid("parent_id", "must be the id of a report, or empty"))?;
                Some(Some(ReportId::from(id)))
            }
        };
        Ok(ReportEdit {
            title: self.title.as_deref(),
            topic: self.topic.as_deref(),
            body: self.body_markdown.as_deref(),
            parent,
        })
    }
}

impl ReportQuery {
    pub fn with_body(&self) -> Result<bool> {
        match self.include.as_deref() {
            None => Ok(false),
            Some("body") => Ok(true),
            Some(_) => Err(Error::invalid("include", "may be body")),
        }
    }
}

impl AnnotationJudgement {
    /// `None` to take back; `Some(None)` for a fact that has nothing to do with the sentence.
    pub fn parsed(&self) -> Result<Option<Option<Posture>>> {
        match self.posture.as_deref() {
            None => Ok(None),
            Some(IRRELEVANT) => Ok(Some(None)),
            Some(posture) => Ok(Some(Some(read("posture", posture)?))),
        }
    }
}

impl ReportView {
    pub fn new(seen: SeenReport, job: Option<JobId>) -> Self {
        Self {
            row: seen.report.into(),
            counts: seen.counts.into(),
            body_markdown: seen.body,
            job_id: job.map(JobId::uuid),
        }
    }
}

impl From<Report> for ReportRow {
    fn from(report: Report) -> Self {
        Self {
            id: report.id.uuid(),
            title: report.title,
            topic: report.topic,
            parent_id: report.parent.map(ReportId::uuid),
            status: report.status.as_str(),
            failure: report.failure.map(|(code, message)| ReportFailure { code, message }),
            language: report.language,
            sentence_count: report.sentence_count,
            claim_count: report.claim_count,
            checked_at: report.checked_at,
            created_at: report.created_at,
            updated_at: report.updated_at,
        }
    }
}

impl From<ReportCounts> for ReportCountsView {
    fn from(counts: ReportCounts) -> Self {
        let ReportCounts { supported, contradicted, unsupported, waiting, not_a_claim } = counts;
        Self { supported, contradicted, unsupported, waiting, not_a_claim }
    }
}

/// What has nothing to do with a sentence, as a posture.
const IRRELEVANT: &str = "irrelevant";

impl HealthChangedView {
    /// What there is to tell after a job.
    pub fn of(job: &Job) -> Option<Self> {
        let is_check = job.kind == AnnotateReport::KIND && job.state == JobState::Completed;
        let output = job.output.as_ref().filter(|_| is_check)?;
        let changed = output["changed"].as_i64().filter(|changed| *changed > 0)?;
        let counts: ReportCounts = serde_json::from_value(output["counts"].clone()).ok()?;
        Some(Self { report_id: job.subject?.id, changed, counts: counts.into() })
    }
}

/// A claim that was not checked waits, and what claims nothing is neither.
fn standing(is_claim: bool, state: Option<SentenceState>) -> &'static str {
    match state {
        Some(state) => state.as_str(),
        None if is_claim => "waiting",
        None => "not_a_claim",
    }
}

impl From<ReportSentence> for ReportSentenceView {
    fn from(sentence: ReportSentence) -> Self {
        Self {
            sentence_index: sentence.place,
            start: sentence.start,
            end: sentence.end,
            state: standing(sentence.is_claim, sentence.state),
            waiting: sentence.is_waiting,
            text: sentence.text,
        }
    }
}

impl From<Annotation> for AnnotationView {
    fn from(annotation: Annotation) -> Self {
        Self {
            n: annotation.no,
            sentence_index: annotation.sentence.place,
            start: annotation.sentence.start,
            end: annotation.sentence.end,
            sentence: annotation.sentence.text,
            fact_id: annotation.fact.uuid(),
            fact_text: annotation.fact_text,
            score: annotation.score,
            posture: annotation.posture.map_or(IRRELEVANT, Posture::as_str),
            confidence: annotation.confidence,
            judged_by: annotation.judged_by,
            person: annotation.person.map(UserId::uuid),
            judged_at: annotation.judged_at,
            retracted: annotation.retracted,
            superseded: annotation.superseded,
        }
    }
}

impl HealthView {
    pub fn new(health: ReportHealth, next_cursor: Option<String>, shown: usize) -> Self {
        Self {
            report_id: health.report.id.uuid(),
            status: health.report.status.as_str(),
            counts: health.counts.into(),
            checked_at: health.report.checked_at,
            changes: health.changes.into_iter().take(shown).map(Into::into).collect(),
            next_cursor,
        }
    }
}

impl From<ReportChange> for ReportChangeView {
    fn from(change: ReportChange) -> Self {
        let (sentence_index, sentence) = change.now.unzip();
        Self {
            at: change.changed_at,
            sentence_index,
            sentence,
            before: change.before.map(SentenceState::as_str),
            after: change.after.as_str(),
            cause: change.cause.as_str(),
            fact_id: change.fact.map(FactId::uuid),
            source_id: change.source.map(SourceId::uuid),
            source_title: change.source_title,
            person: change.person.map(UserId::uuid),
            posture_before: change.posture_before,
            posture_after: change.posture_after,
            place: change.no,
        }
    }
}

impl From<EvidenceFact> for EvidenceFactView {
    fn from(fact: EvidenceFact) -> Self {
        let source =
            |source: SourceHit| EvidenceSource { id: source.id.uuid(), title: source.title, url: source.url };
        Self {
            fact_id: fact.id.uuid(),
            fact_text: fact.text,
            posture: fact.posture.as_str(),
            confidence: fact.confidence,
            judged_by: fact.judged_by,
            score: fact.score,
            retracted: fact.retracted,
            superseded: fact.superseded,
            sources: fact.sources.into_iter().map(source).collect(),
        }
    }
}

impl From<Evidence> for EvidenceView {
    fn from(evidence: Evidence) -> Self {
        let degraded_reason = evidence.degraded;
        let found = evidence.sentences.into_iter().next();
        let state = standing(true, found.as_ref().and_then(|found| found.state));
        let facts = found.map(|found| found.facts).unwrap_or_default();
        Self { state, facts: facts.into_iter().map(Into::into).collect(), degraded_reason }
    }
}

impl From<Evidence> for CheckedTextView {
    fn from(evidence: Evidence) -> Self {
        let mut counts = ReportCounts::default();
        for CheckedSentence { state, .. } in &evidence.sentences {
            *match state {
                Some(SentenceState::Supported) => &mut counts.supported,
                Some(SentenceState::Contradicted) => &mut counts.contradicted,
                Some(SentenceState::Unsupported) => &mut counts.unsupported,
                None => &mut counts.not_a_claim,
            } += 1;
        }
        let view = |(sentence_index, checked): (usize, CheckedSentence)| CheckedSentenceView {
            sentence_index,
            start: checked.sentence.start,
            end: checked.sentence.end,
            state: standing(checked.sentence.is_claim, checked.state),
            text: checked.sentence.text,
            facts: checked.facts.into_iter().map(Into::into).collect(),
        };
        Self {
            counts: counts.into(),
            sentences: evidence.sentences.into_iter().enumerate().map(view).collect(),
            degraded_reason: evidence.degraded,
        }
    }
}
