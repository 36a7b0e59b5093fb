//! Lists of references: many sources in one request.

use okt_app::{ImportOutcome, Imported};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::vocabulary::{ImportOutcome as Outcome, schema};

/// The result of importing a list of references.
#[derive(Serialize, ToSchema)]
pub struct ImportedList {
    pub added: usize,
    pub existing: usize,
    pub skipped: usize,
    pub invalid: usize,
    /// Every entry, in the order of the list.
    pub data: Vec<ImportedRow>,
}

/// The result for one entry.
#[derive(Serialize, ToSchema)]
pub struct ImportedRow {
    /// The position in the list, counted from 1.
    pub row: usize,
    /// The citation key of the entry, or its position.
    #[schema(example = "lovelace1843")]
    pub label: String,
    /// `added`; `existing`: the repository had it; `skipped`: nothing to fetch it by; `invalid`: it can't be read.
    #[schema(value_type = schema::ImportOutcome)]
    pub outcome: &'static str,
    #[schema(required)]
    pub source_id: Option<Uuid>,
    #[schema(required)]
    pub job_id: Option<Uuid>,
    /// Why it was not added.
    #[schema(required)]
    pub message: Option<String>,
}

impl From<Vec<Imported>> for ImportedList {
    fn from(imported: Vec<Imported>) -> Self {
        let rows = imported.into_iter().zip(1..).map(|(imported, row)| {
            let (outcome, ids, message) = match imported.outcome {
                ImportOutcome::Added(source, job) => (Outcome::Added, Some((source, job)), None),
                ImportOutcome::Existing(source, job) => (Outcome::Existing, Some((source, job)), None),
                ImportOutcome::Skipped(why) => (Outcome::Skipped, None, Some(why)),
                ImportOutcome::Invalid(why) => (Outcome::Invalid, None, Some(why)),
            };
            let (source_id, job_id) = ids.map(|(source, job)| (source.uuid(), job.uuid())).unzip();
            ImportedRow { row, label: imported.label, outcome: outcome.as_str(), source_id, job_id, message }
        });
        let data: Vec<ImportedRow> = rows.collect();
        let count = |outcome: Outcome| data.iter().filter(|row| row.outcome == outcome.as_str()).count();
        Self {
            added: count(Outcome::Added),
            existing: count(Outcome::Existing),
            skipped: count(Outcome::Skipped),
            invalid: count(Outcome::Invalid),
            data,
        }
    }
}
