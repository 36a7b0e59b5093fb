//! Curation: what people decide about concepts and facts, step by step.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::permission::words;
use crate::{ConceptId, CurationId, FactId, JobId, UserId};

words! {
    /// What a step of curation did.
    CurationAction {
        /// A concept became a part of another one.
        Merge = "merge",
        /// Some facts of a concept became those of a new one.
        Split = "split",
        /// A concept got another name, and maybe another context as well.
        Rename = "rename",
        /// A concept got another context.
        Move = "move",
        AddAlias = "add_alias",
        RemoveAlias = "remove_alias",
        /// A fact does not speak of a concept.
        RejectLink = "reject_link",
        RejectFact = "reject_fact",
        /// A rejected fact became stable.
        RestoreFact = "restore_fact",
        /// Somebody said whether two facts contradict each other.
        MarkContradiction = "mark_contradiction",
    }
}

/// Who decides, and why.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    pub person: UserId,
    pub reason: Option<&'a str>,
}

/// A step of curation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurationStep {
    pub id: CurationId,
    pub no: i64,
    pub action: CurationAction,
    pub details: CurationDetails,
    /// Missing for a step of a job.
    pub person: Option<UserId>,
    pub job: Option<JobId>,
    pub reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub undone_at: Option<DateTime<Utc>>,
    pub undone_by: Option<UserId>,
}

/// What a step was about, as it was called then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurationDetails {
    /// Before the step. Missing where it was about a fact alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concept: Option<CuratedConcept>,
    /// What it was merged into, what was split off, or itself under its new name and in its new context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<CuratedConcept>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactId>,
    /// What was said of two facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
}

/// A concept as it was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedConcept {
    pub id: ConceptId,
    pub canonical_name: String,
    pub context: String,
}

/// The rows that a step changed, by their numbers: what it needs to be taken back. Facts are named by the hashes of their texts,
/// because one that is read anew has another number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurationEffects {
    /// The entry of the journal of merges.
    pub merge: Option<i64>,
    /// The concept that was split off, and from which.
    pub split: Option<(i64, i64)>,
    pub renamed: Option<Renamed>,
    pub unlinked: Vec<CuratedLink>,
    pub linked: Vec<CuratedLink>,
    /// Concept and hash.
    pub rejected_links: Vec<(i64, String)>,
    /// Concept and key.
    pub added_alias: Option<(i64, String)>,
    /// An alias that a person confirmed, and who said so before.
    pub confirmed_alias: Option<(i64, String, String)>,
    pub removed_aliases: Vec<CuratedAlias>,
    /// Concept and key.
    pub rejected_aliases: Vec<(i64, String)>,
    pub fact: Option<CuratedFact>,
    pub contradiction: Option<CuratedContradiction>,
}

/// What was said of two facts, and what had been said of them and their duplicates before. Facts are named by their hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedContradiction {
    pub facts: (String, String),
    pub before: Vec<CuratedState>,
}

/// What was said of two facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedState {
    pub facts: (String, String),
    pub state: String,
    pub note: Option<String>,
    pub person: Option<UserId>,
    pub decided_at: DateTime<Utc>,
}

/// What a concept was called before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    pub concept: i64,
    pub canonical_name: String,
    pub name_key: String,
    pub context: i64,
    /// Whether the step changed that.
    pub moved: bool,
    /// Whether the former name is remembered by this step, and not by an earlier one.
    pub remembered: bool,
}

/// A fact that spoke of a concept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedLink {
    pub concept: i64,
    pub hash: String,
    pub found_by: i16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedAlias {
    pub concept: i64,
    pub key: String,
    pub text: String,
    pub added_by: String,
}

/// A fact whose status changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuratedFact {
    pub hash: String,
    pub before: String,
    pub after: String,
}
