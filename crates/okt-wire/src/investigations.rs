//! Investigations: sources that belong to one question.

use chrono::{DateTime, Utc};
use okt_app::{AddedCandidate, ImportOutcome, InvestigationConceptPlace, SeenInvestigation};
use okt_model::{
    Error, Investigation, InvestigationConcept, Locator, MOST_INVESTIGATION_SOURCES, Result, SourceId,
    SourceStatus,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::source_views::SourceCost;
use crate::sources::locator;
use crate::vocabulary::{ImportOutcome as Outcome, schema};

/// Candidates that can be added in one request.
const MOST_CANDIDATES: usize = 50;
const _: () = assert!(MOST_INVESTIGATION_SOURCES == 10_000, "the documentation of the fields below says so");

/// Sources that belong to one question.
#[derive(Serialize, ToSchema)]
#[schema(as = InvestigationSummary)]
pub struct InvestigationRow {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub id: Uuid,
    #[schema(example = "How bees find their way")]
    pub title: String,
    /// What it is to find out.
    #[schema(required, example = "Which cues do honey bees use over long distances?")]
    pub topic: Option<String>,
    /// At most 10,000.
    #[schema(example = 12)]
    pub source_count: i64,
    pub created_at: DateTime<Utc>,
    /// When its title, its topic or its sources changed last.
    pub updated_at: DateTime<Utc>,
}

/// An investigation with where it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Investigation)]
pub struct InvestigationView {
    #[serde(flatten)]
    pub row: InvestigationRow,
    /// How many facts its sources state; facts that say the same count as one.
    #[schema(example = 240)]
    pub fact_count: i64,
    /// False when its sources state more than 10,000: then `fact_count` is the least that there are.
    pub fact_count_complete: bool,
    pub progress: InvestigationProgressView,
    /// What its sources have cost so far. A source of two investigations counts in both.
    pub cost: SourceCost,
}

/// How far the sources of an investigation are.
#[derive(Serialize, ToSchema)]
#[schema(as = InvestigationProgress)]
pub struct InvestigationProgressView {
    /// Sources that are processed or have failed.
    #[schema(example = 10)]
    pub done: i64,
    /// All sources.
    #[schema(example = 12)]
    pub total: i64,
    pub sources: InvestigationSourceCounts,
    /// Jobs of its sources that have not ended. Some follow after a source is processed.
    pub jobs: InvestigationJobCounts,
}

/// How many sources of an investigation have each status.
#[derive(Serialize, ToSchema)]
pub struct InvestigationSourceCounts {
    pub pending: i64,
    pub fetching: i64,
    pub fetched: i64,
    pub processing: i64,
    #[schema(example = 9)]
    pub processed: i64,
    pub failed: i64,
    /// Of all these, those that wait for a budget.
    pub waiting_for_budget: i64,
    /// Of all these, those that wait for a rate limit.
    pub waiting_for_rate_limit: i64,
}

/// How many jobs of the sources of an investigation have not ended.
#[derive(Serialize, ToSchema)]
pub struct InvestigationJobCounts {
    pub running: i64,
    pub waiting: i64,
}

/// An investigation to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvestigation {
    #[schema(example = "How bees find their way", min_length = 1, max_length = 300)]
    pub title: String,
    /// What it is to find out.
    #[schema(example = "Which cues do honey bees use over long distances?", max_length = 4000)]
    pub topic: Option<String>,
}

/// What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvestigationUpdate {
    #[schema(example = "How bees navigate", min_length = 1, max_length = 300)]
    pub title: Option<String>,
    /// An empty one removes it.
    #[schema(max_length = 4000, example = "Which cues do honey bees use over long distances?")]
    pub topic: Option<String>,
}

/// What is to be added to an investigation: a source of the repository, or candidates.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvestigationAddition {
    /// A source that the repository has.
    pub source_id: Option<Uuid>,
    /// Addresses and DOIs, instead of `source_id`; at most 50. Those that the repository does not have become sources, which needs
    /// `source:write` as well.
    #[schema(min_items = 1, max_items = 50)]
    pub candidates: Option<Vec<Candidate>>,
}

/// Something that could become a source.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SourceCandidate)]
pub struct Candidate {
    /// A web address; also the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://example.org/bees")]
    pub url: Option<String>,
    /// A DOI, instead of `url`.
    pub doi: Option<String>,
}

/// What is to be added, as it was understood.
pub enum Addition {
    Source(SourceId),
    Candidates(Vec<Result<Locator>>),
}

/// The result of adding sources to an investigation.
#[derive(Serialize, ToSchema)]
pub struct InvestigationSourcesAdded {
    /// One row for each, in the order of the request.
    pub data: Vec<InvestigationSourceAdded>,
}

/// The result for one source or candidate.
#[derive(Serialize, ToSchema)]
pub struct InvestigationSourceAdded {
    /// `added`: a new source; `existing`: the repository had it; `skipped`: a quota or the most sources of an investigation is
    /// reached; `invalid`: it names no source.
    #[schema(value_type = schema::ImportOutcome)]
    pub outcome: &'static str,
    #[schema(required)]
    pub source_id: Option<Uuid>,
    /// The job that processes a new source, or the last one of an old one; null for `source_id`.
    #[schema(required)]
    pub job_id: Option<Uuid>,
    /// Whether the investigation did not have it before.
    pub linked: bool,
    /// Why it was not added; null otherwise.
    #[schema(required, example = "url: is no web address")]
    pub message: Option<String>,
}

/// A concept that facts of an investigation speak of.
#[derive(Serialize, ToSchema)]
#[schema(as = InvestigationConcept)]
pub struct InvestigationConceptView {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub concept_id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    #[schema(example = "Species")]
    pub context: String,
    /// How many facts of the investigation speak of it; facts that say the same count as one.
    #[schema(example = 12)]
    pub fact_count: i64,
    #[serde(skip)]
    pub place: InvestigationConceptPlace,
}

/// A page of the concepts of an investigation.
#[derive(Serialize, ToSchema)]
pub struct InvestigationConceptPage {
    /// The rows of this page.
    pub data: Vec<InvestigationConceptView>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// False for an investigation whose sources state more than 10,000 facts: then the concepts are those of 10,000 facts of its
    /// newest sources.
    pub complete: bool,
}

impl InvestigationAddition {
    pub fn parsed(self) -> Result<Addition> {
        match (self.source_id, self.candidates) {
            (Some(source), None) => Ok(Addition::Source(source.into())),
            (None, Some(candidates)) if (1..=MOST_CANDIDATES).contains(&candidates.len()) => {
                let each = candidates.iter().map(|one| locator(one.url.as_deref(), one.doi.as_deref()));
                Ok(Addition::Candidates(each.collect()))
            }
            (None, Some(_)) => Err(Error::invalid("candidates", "must be 1 to 50")),
            _ => Err(Error::invalid("source_id", "give either source_id or candidates")),
        }
    }
}

impl InvestigationSourcesAdded {
    /// For a source that the repository has.
    pub fn of_source(source: SourceId, linked: bool) -> Self {
        let row = InvestigationSourceAdded {
            outcome: Outcome::Existing.as_str(),
            source_id: Some(source.uuid()),
            job_id: None,
            linked,
            message: None,
        };
        Self { data: vec![row] }
    }
}

impl From<Vec<AddedCandidate>> for InvestigationSourcesAdded {
    fn from(added: Vec<AddedCandidate>) -> Self {
        let rows = added.into_iter().map(|added| {
            let (outcome, ids, message) = match added.outcome {
                ImportOutcome::Added(source, job) => (Outcome::Added, Some((source, job)), None),
                ImportOutcome::Existing(source, job) => (Outcome::Existing, Some((source, job)), None),
                ImportOutcome::Skipped(why) => (Outcome::Skipped, None, Some(why)),
                ImportOutcome::Invalid(why) => (Outcome::Invalid, None, Some(why)),
            };
            let (source_id, job_id) = ids.map(|(source, job)| (source.uuid(), job.uuid())).unzip();
            let (outcome, linked) = (outcome.as_str(), added.linked);
            InvestigationSourceAdded { outcome, source_id, job_id, linked, message }
        });
        Self { data: rows.collect() }
    }
}

impl From<Investigation> for InvestigationRow {
    fn from(investigation: Investigation) -> Self {
        Self {
            id: investigation.id.uuid(),
            title: investigation.title,
            topic: investigation.topic,
            source_count: investigation.source_count,
            created_at: investigation.created_at,
            updated_at: investigation.updated_at,
        }
    }
}

impl From<SeenInvestigation> for InvestigationView {
    fn from(seen: SeenInvestigation) -> Self {
        let progress = seen.progress;
        let count = |status| progress.count(status);
        Self {
            row: seen.investigation.into(),
            fact_count: seen.fact_count,
            fact_count_complete: seen.is_counted_whole,
            progress: InvestigationProgressView {
                done: progress.done(),
                total: progress.total(),
                sources: InvestigationSourceCounts {
                    pending: count(SourceStatus::Pending),
                    fetching: count(SourceStatus::Fetching),
                    fetched: count(SourceStatus::Fetched),
                    processing: count(SourceStatus::Processing),
                    processed: count(SourceStatus::Processed),
                    failed: count(SourceStatus::Failed),
                    waiting_for_budget: progress.waiting_for_budget,
                    waiting_for_rate_limit: progress.waiting_for_rate_limit,
                },
                jobs: InvestigationJobCounts { running: seen.jobs.running, waiting: seen.jobs.waiting },
            },
            cost: SourceCost {
                tokens_in: progress.cost.tokens_in,
                tokens_out: progress.cost.tokens_out,
                usd: progress.cost.usd.to_usd(),
            },
        }
    }
}

impl From<InvestigationConcept> for InvestigationConceptView {
    fn from(concept: InvestigationConcept) -> Self {
        Self {
            concept_id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            fact_count: concept.fact_count,
            place: (concept.fact_count, concept.no),
        }
    }
}
