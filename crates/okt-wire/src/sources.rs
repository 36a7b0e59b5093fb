//! Sources: what the knowledge of a repository rests on.

use chrono::NaiveDate;
use okt_app::{Resting, Sentence, SourceKind, SourceRequest};
use okt_model::{Error, InvestigationId, Locator, Result, SourceFilter, TextParts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{SourceSort, read_if_given, schema};

/// A source to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// A web address; also the number of a paper (`arXiv:…`, `PMID:…`).
    #[schema(example = "https://example.org/bees")]
    pub url: Option<String>,
    /// A DOI, instead of `url`.
    pub doi: Option<String>,
    /// The investigation that the source is for.
    pub investigation_id: Option<Uuid>,
    /// The most that processing the source may cost, in US dollars.
    #[schema(minimum = 0.0)]
    pub max_cost_usd: Option<f64>,
}

/// A source that was added, or was there already.
#[derive(Serialize, ToSchema)]
pub struct SourceAccepted {
    pub source_id: Uuid,
    /// The job that processes the source.
    pub job_id: Uuid,
    /// `url`, `pdf_url`, `doi`, `arxiv`, `pmid` or `upload`.
    #[schema(value_type = schema::ResourceType)]
    pub resource_type: &'static str,
    /// Whether the repository had it before.
    pub existing: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceQuery {
    /// `pending`, `fetching`, `fetched`, `processing`, `processed` or `failed`.
    #[param(value_type = Option<schema::SourceStatus>)]
    pub status: Option<String>,
    /// `html`, `pdf`, `text` or `markdown`.
    #[param(value_type = Option<schema::SourceKind>)]
    pub kind: Option<String>,
    /// Words of the title, the author or the text, all of them, or the whole address or DOI. Words are found in their inflected
    /// forms, and the last one may be the beginning of one. Of sources that have no text (yet): a part of the title or address.
    pub q: Option<String>,
    /// Only those of this investigation.
    pub investigation_id: Option<Uuid>,
    /// A date such as `2026-03-01`.
    pub published_from: Option<NaiveDate>,
    /// A date such as `2026-03-31`, that day included.
    pub published_to: Option<NaiveDate>,
    /// `newest` (the default) or `oldest`, by when they were added.
    #[param(value_type = Option<schema::SourceSort>)]
    pub sort: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceParts {
    /// Which of the large parts are wanted: `text`, `markdown`, `sentences`, `boxes`, separated by commas. All of them when
    /// it is absent, none when it is empty.
    #[param(example = "text,sentences")]
    pub include: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceDeletion {
    /// Only says what would go.
    pub dry_run: Option<bool>,
}

/// What would be deleted with a source.
#[derive(Serialize, ToSchema)]
pub struct SourceWouldBeDeleted {
    pub dry_run: bool,
    /// Facts that no other source supports.
    pub facts: i64,
    pub images: usize,
    /// The size of its stored files in bytes.
    pub bytes: u64,
}

/// A sentence of a source, and the facts that it supports.
#[derive(Serialize, ToSchema)]
pub struct Reference {
    /// From 0.
    #[schema(example = 4)]
    pub sentence_index: usize,
    /// In Unicode code points of the parsed text.
    #[schema(example = 120)]
    pub start: i32,
    #[schema(example = 184)]
    pub end: i32,
    #[schema(example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub text: String,
    /// For PDFs, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 2)]
    pub page: Option<u32>,
    pub facts: Vec<ReferencedFact>,
}

/// A fact that a sentence supports.
#[derive(Serialize, ToSchema)]
pub struct ReferencedFact {
    pub fact_id: Uuid,
    #[schema(example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub text: String,
    /// The model that worded the fact.
    #[schema(example = "builtin-extractive-1")]
    pub model: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReferenceQuery {
    /// `true` for sentences that some fact rests on, `false` for those that none does.
    pub cited: Option<bool>,
}

impl NewSource {
    pub fn parsed(&self) -> Result<SourceRequest> {
        let locator = locator(self.url.as_deref(), self.doi.as_deref())?;
        let investigation = self.investigation_id.map(InvestigationId::from);
        Ok(SourceRequest { locator, max_cost_usd: self.max_cost_usd, investigation })
    }
}

/// What an address or a DOI names; one of both has to be given.
pub(crate) fn locator(url: Option<&str>, doi: Option<&str>) -> Result<Locator> {
    match (url, doi) {
        (Some(url), None) => Locator::parse(url).map_err(|error| about("url", error)),
        (None, Some(doi)) => Locator::parse(doi)
            .ok()
            .filter(|found| found.doi.is_some())
            .ok_or_else(|| Error::invalid("doi", "is no DOI; it looks like 10.1000/182")),
        _ => Err(Error::invalid("url", "give either url or doi")),
    }
}

/// The same refusal, about the field that the caller knows.
fn about(field: &'static str, error: Error) -> Error {
    match error {
        Error::Invalid(mut errors) => {
            for error in &mut errors {
                error.field = field.into();
            }
            Error::Invalid(errors)
        }
        other => other,
    }
}

impl SourceParts {
    pub fn parsed(&self) -> Result<TextParts> {
        let Some(include) = &self.include else { return Ok(TextParts::ALL) };
        let mut parts = TextParts::NONE;
        for part in include.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "text" => parts.text = true,
                "markdown" => parts.markdown = true,
                "sentences" => parts.sentences = true,
                "boxes" => parts.boxes = true,
                _ => return Err(Error::invalid("include", "may name text, markdown, sentences and boxes")),
            }
        }
        Ok(parts)
    }
}

impl SourceQuery {
    /// The filter, what is looked for, and whether the oldest come first.
    pub fn parsed(self) -> Result<(SourceFilter, Option<String>, bool)> {
        let oldest = read_if_given("sort", self.sort.as_deref())? == Some(SourceSort::Oldest);
        let kind: Option<SourceKind> = read_if_given("kind", self.kind.as_deref())?;
        if self.q.as_ref().is_some_and(|q| q.chars().count() > 200) {
            return Err(Error::invalid("q", "must be at most 200 characters"));
        }
        let filter = SourceFilter {
            status: read_if_given("status", self.status.as_deref())?,
            kind: kind.map(|kind| kind.as_str().to_owned()),
            among: None,
            investigation: self.investigation_id.map(Into::into),
            published_from: self.published_from,
            published_to: self.published_to,
        };
        Ok((filter, self.q.filter(|q| !q.is_empty()), oldest))
    }
}

impl From<Sentence> for Reference {
    fn from(sentence: Sentence) -> Self {
        Self {
            sentence_index: sentence.index,
            start: sentence.start,
            end: sentence.end,
            text: sentence.text,
            page: sentence.page,
            facts: sentence.facts.into_iter().map(ReferencedFact::from).collect(),
        }
    }
}

impl From<Resting> for ReferencedFact {
    fn from(fact: Resting) -> Self {
        Self { fact_id: fact.id.uuid(), text: fact.text, model: fact.model }
    }
}
