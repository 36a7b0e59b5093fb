//! Marks of sources: what was retracted, and what another source supersedes.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use okt_app::{ImportedMarks, MarkedSource};
use okt_model::{Error, MarkKind, SourceId, SourceMark, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read, schema};

/// The mark of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceMark)]
pub struct MarkView {
    /// `retracted` or `superseded`.
    #[schema(value_type = schema::MarkKind)]
    pub kind: &'static str,
    /// The source that supersedes it; null if nobody said which one, or if that one was deleted.
    #[schema(required)]
    pub by: Option<Uuid>,
    #[schema(required, example = "Duplication of Image (2019-05-03, 10.1000/182)")]
    pub reason: Option<String>,
    /// Who says so: `person`, `provider` or `list`.
    #[schema(value_type = schema::MarkOrigin)]
    pub origin: &'static str,
    /// The user who set the mark or sent the list; null for a provider.
    #[schema(required)]
    pub user_id: Option<Uuid>,
    pub marked_at: DateTime<Utc>,
}

/// What is said of a source.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMark {
    /// `retracted` or `superseded`.
    #[schema(value_type = schema::MarkKind)]
    pub kind: String,
    /// The source of the repository that supersedes it; only with `superseded`.
    pub by: Option<Uuid>,
    #[schema(max_length = 1000, example = "The data could not be reproduced")]
    pub reason: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MarkImportQuery {
    /// Only says what would be marked.
    #[param(default = false)]
    pub dry_run: Option<bool>,
}

/// The result of reading a list of retractions.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportedMarks)]
pub struct ImportedMarksView {
    /// Whether nothing was marked because of `dry_run`.
    pub dry_run: bool,
    /// Rows of the list, the names of its columns not counted.
    #[schema(example = 61_204)]
    pub rows: u64,
    /// Sources of the repository that the list says were retracted.
    #[schema(example = 3)]
    pub matched: u64,
    /// Of these, those that were marked now, or would be.
    #[schema(example = 2)]
    pub marked: u64,
    /// Of these, those that were marked as retracted before.
    #[schema(example = 1)]
    pub already_marked: u64,
    /// What led to no mark, counted by reason. Rows: `bad_row` (not as many columns as the list has), `no_doi`,
    /// `not_in_repository`, `duplicate` (an earlier row is about the same source), `expression_of_concern`, `correction`,
    /// `reinstatement`, `other_nature`. Sources that were matched: `reinstated` (the retraction was taken back) and
    /// `decided_by_person` (a person marked it as superseded, or removed its mark).
    #[schema(example = json!({"not_in_repository": 58_011, "expression_of_concern": 2_840}))]
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first 1,000 sources that were marked, or would be.
    pub data: Vec<MarkedSourceView>,
}

/// A source that a list marked.
#[derive(Serialize, ToSchema)]
#[schema(as = MarkedSource)]
pub struct MarkedSourceView {
    pub source_id: Uuid,
    #[schema(example = "10.1000/182")]
    pub doi: String,
    #[schema(required, example = "On bees")]
    pub title: Option<String>,
    #[schema(required, example = "Duplication of Image (2019-05-03, 10.1000/182)")]
    pub reason: Option<String>,
}

impl NewMark {
    pub fn parsed(&self) -> Result<(MarkKind, Option<SourceId>), Error> {
        Ok((read("kind", &self.kind)?, self.by.map(SourceId::from)))
    }
}

impl From<SourceMark> for MarkView {
    fn from(mark: SourceMark) -> Self {
        Self {
            kind: mark.kind.as_str(),
            by: mark.by.map(SourceId::uuid),
            reason: mark.reason,
            origin: mark.origin.as_str(),
            user_id: mark.person.map(UserId::uuid),
            marked_at: mark.marked_at,
        }
    }
}

impl ImportedMarksView {
    pub fn new(imported: ImportedMarks, dry_run: bool) -> Self {
        let ImportedMarks { rows, matched, marked, already_marked, skipped, shown } = imported;
        let data = shown.into_iter().map(MarkedSourceView::from).collect();
        Self { dry_run, rows, matched, marked, already_marked, skipped, data }
    }
}

impl From<MarkedSource> for MarkedSourceView {
    fn from(MarkedSource { id, doi, title, reason }: MarkedSource) -> Self {
        Self { source_id: id.uuid(), doi, title, reason }
    }
}
