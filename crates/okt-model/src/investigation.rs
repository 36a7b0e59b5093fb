//! Investigations: sources that belong to one question.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{ConceptId, Cost, InvestigationId, SourceStatus};

/// As many sources as an investigation may have, so that all of them can be looked at while somebody waits.
pub const MOST_INVESTIGATION_SOURCES: i64 = 10_000;

/// Sources that belong to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Investigation {
    pub id: InvestigationId,
    pub no: i64,
    pub title: String,
    pub topic: Option<String>,
    pub source_count: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Where the sources of an investigation stand, and what they have cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvestigationProgress {
    /// How many sources have each status; those that none has are missing.
    pub statuses: BTreeMap<SourceStatus, i64>,
    /// Sources that do not go on although nothing failed.
    pub waiting_for_budget: i64,
    pub waiting_for_rate_limit: i64,
    /// Jobs of its sources whose outbox entries have not reached the queue.
    pub unsent_jobs: i64,
    pub cost: Cost,
}

impl InvestigationProgress {
    pub fn count(&self, status: SourceStatus) -> i64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }

    pub fn total(&self) -> i64 {
        self.statuses.values().sum()
    }

    /// Sources that go no further by themselves.
    pub fn done(&self) -> i64 {
        self.count(SourceStatus::Processed) + self.count(SourceStatus::Failed)
    }
}

/// A concept that facts of an investigation speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvestigationConcept {
    pub id: ConceptId,
    pub no: i64,
    pub canonical_name: String,
    pub context: String,
    /// How many of the facts.
    pub fact_count: i64,
}
