//! Concepts: what the facts of a repository speak of.

use chrono::{DateTime, NaiveDate, Utc};
use okt_app::{ConceptListing, ConceptPlace, Floors, ListedConcept, SeenConcept};
use okt_model::{
    Alias, AliasBy, Concept, ConceptContext, ConceptId, ConceptSource, DateKind, DatedFact, Error,
    MAX_WORD_KEY, Relation,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::facts::FactRow;
use crate::source_marks::MarkView;
use crate::summaries::VersionView;
use crate::vocabulary::{ConceptSort, read_if_given, schema};

/// Something that facts speak of, in one context.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptSummary)]
pub struct ConceptRow {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    /// The label of its context.
    #[schema(example = "Species")]
    pub context: String,
    /// The class of the ontology that its context is; null for a context of the repository's own.
    #[schema(required, example = "dbo:Species")]
    pub ontology_class: Option<String>,
    /// How many facts speak of it; facts that say the same count as one.
    #[schema(example = 12)]
    pub fact_count: i64,
    /// The concepts of this name, one for each context, itself included; those with the most facts first. The first 20 in
    /// a list, all of them on a concept's own page.
    pub contexts: Vec<ConceptContextView>,
    #[serde(skip)]
    pub place: ConceptPlace,
}

/// A concept of the same name in one context.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptContext)]
pub struct ConceptContextView {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub concept_id: Uuid,
    #[schema(example = "Species")]
    pub context: String,
    #[schema(example = 12)]
    pub fact_count: i64,
}

/// A page of concepts.
#[derive(Serialize, ToSchema)]
pub struct ConceptPage {
    /// The rows of this page.
    pub data: Vec<ConceptRow>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    pub floor: ConceptFloor,
}

/// What a list of concepts leaves out.
#[derive(Serialize, ToSchema)]
pub struct ConceptFloor {
    /// The setting `concepts.min_concept_fact_count`.
    #[schema(example = 5)]
    pub min_fact_count: i64,
    /// Whether concepts with fewer facts are left out. False with `show_small=true`, and where nothing would be left: then the
    /// list shows them although nobody asked.
    pub applied: bool,
}

/// A concept with its other names.
#[derive(Serialize, ToSchema)]
#[schema(as = Concept)]
pub struct ConceptView {
    #[serde(flatten)]
    pub row: ConceptRow,
    #[schema(required, example = "A bee of the genus Apis that makes honey.")]
    pub description: Option<String>,
    /// What its context was called where it came from, if the repository had no such context; null otherwise.
    #[schema(required, example = "Pollinator")]
    pub unmapped_label: Option<String>,
    /// The first 200 of its other names, in the order of letters.
    pub aliases: Vec<AliasView>,
    /// The latest definition of its name that a model has written; null without one. The text is at `definition`.
    #[schema(required)]
    pub synthesis: Option<VersionView>,
    /// The id that was asked for, if that concept was merged into this one; null otherwise.
    #[schema(required)]
    pub merged_from: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// Another name of a concept.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptAlias)]
pub struct AliasView {
    #[schema(example = "Apis mellifera")]
    pub alias: String,
    /// `builtin`, `model` or `person`; null for the name of a concept that was merged into this one.
    #[schema(required, value_type = Option<schema::AliasBy>)]
    pub added_by: Option<&'static str>,
}

/// A source of facts of a concept.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptSource)]
pub struct ConceptSourceView {
    pub source_id: Uuid,
    #[schema(required, example = "On bees")]
    pub title: Option<String>,
    #[schema(example = "https://example.org/bees")]
    pub url: String,
    #[schema(required, example = "2026-03-01")]
    pub published_at: Option<NaiveDate>,
    /// How many facts of the concept the source makes.
    #[schema(example = 4)]
    pub fact_count: i64,
    /// Whether the source was retracted or is superseded; null otherwise.
    #[schema(required)]
    pub mark: Option<MarkView>,
    #[serde(skip)]
    pub place: (i64, i64),
}

/// A page of the sources of a concept.
#[derive(Serialize, ToSchema)]
pub struct ConceptSourcePage {
    /// The rows of this page.
    pub data: Vec<ConceptSourceView>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// False for a concept with more than 10,000 facts: then the sources are those of the newest 10,000.
    pub complete: bool,
}

/// A fact with its date.
#[derive(Serialize, ToSchema)]
pub struct TimelineEntry {
    /// The earliest date that a source of the fact was published; if none says so, the earliest that one was fetched.
    #[schema(example = "2026-03-01")]
    pub date: NaiveDate,
    /// `published` or `fetched`.
    #[schema(value_type = schema::DateKind)]
    pub date_kind: &'static str,
    /// The source that has this date.
    pub source_id: Uuid,
    pub fact: FactRow,
    #[serde(skip)]
    pub place: (bool, NaiveDate, i64),
}

/// A page of the timeline of a concept.
#[derive(Serialize, ToSchema)]
pub struct TimelinePage {
    /// The rows of this page.
    pub data: Vec<TimelineEntry>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// False for a concept with more than 10,000 facts: then these are the newest 10,000.
    pub complete: bool,
}

/// A concept that shares facts with another one.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptRelation)]
pub struct RelationRow {
    pub concept_id: Uuid,
    #[schema(example = "Varroa mite")]
    pub canonical_name: String,
    #[schema(example = "Species")]
    pub context: String,
    /// How many facts speak of it.
    #[schema(example = 9)]
    pub fact_count: i64,
    /// How many facts speak of both.
    #[schema(example = 6)]
    pub shared_fact_count: i64,
    /// `insignificant`, `weak` or `stable`.
    #[schema(value_type = schema::Strength)]
    pub strength: &'static str,
    #[serde(skip)]
    pub place: (i64, i64),
}

/// A page of relations.
#[derive(Serialize, ToSchema)]
pub struct RelationPage {
    /// The rows of this page.
    pub data: Vec<RelationRow>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    pub floor: RelationFloor,
}

/// What a list of relations leaves out.
#[derive(Serialize, ToSchema)]
pub struct RelationFloor {
    /// The setting `concepts.min_shared_fact_count`.
    #[schema(example = 3)]
    pub min_shared_fact_count: i64,
    /// The setting `concepts.min_concept_fact_count`.
    #[schema(example = 5)]
    pub min_fact_count: i64,
    /// Whether relations with fewer shared facts, or concepts with fewer facts, are left out. False if both
    /// `show_insignificant` and `show_small` are true, and where nothing would be left: then the list shows them although
    /// nobody asked.
    pub applied: bool,
}

/// What two concepts share.
#[derive(Serialize, ToSchema)]
#[schema(as = ConceptRelationDetail)]
pub struct RelationView {
    pub concept: ConceptName,
    pub other: ConceptName,
    /// How many facts speak of both.
    #[schema(example = 6)]
    pub shared_fact_count: i64,
    /// `insignificant`, `weak` or `stable`.
    #[schema(value_type = schema::Strength)]
    pub strength: &'static str,
    /// The facts that speak of both, the newest first.
    pub data: Vec<FactRow>,
    /// Where the next page of facts starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A concept by its name.
#[derive(Serialize, ToSchema)]
pub struct ConceptName {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub concept_id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    #[schema(example = "Species")]
    pub context: String,
    #[schema(example = 12)]
    pub fact_count: i64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConceptQuery {
    /// Only concepts whose name has a word that begins with this, or that have an alias that does, in any case; several words
    /// must follow each other. At most 100 characters. If more than 2,000 words begin with it, aliases are not looked at, and with `sort=name` only how
    /// names begin.
    pub q: Option<String>,
    /// Only concepts of the context with this label.
    pub context: Option<String>,
    /// `true` for concepts with few facts as well.
    #[param(default = false)]
    pub show_small: Option<bool>,
    /// `fact_count` (the default), those with the most facts first, or `name`.
    #[param(value_type = Option<schema::ConceptSort>)]
    pub sort: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RelationQuery {
    /// `true` for relations with few shared facts as well.
    #[param(default = false)]
    pub show_insignificant: Option<bool>,
    /// `true` for concepts with few facts as well.
    #[param(default = false)]
    pub show_small: Option<bool>,
}

impl ConceptQuery {
    pub fn parsed(&self) -> Result<ConceptListing<'_>, Error> {
        if self.q.as_ref().is_some_and(|q| q.chars().count() > MAX_WORD_KEY) {
            return Err(Error::invalid("q", "must be at most 100 characters"));
        }
        Ok(ConceptListing {
            q: self.q.as_deref().filter(|q| !q.is_empty()),
            context: self.context.as_deref(),
            show_small: self.show_small.unwrap_or(false),
            by_name: read_if_given("sort", self.sort.as_deref())? == Some(ConceptSort::Name),
        })
    }
}

impl ConceptFloor {
    pub const fn new(floors: Floors, applied: bool) -> Self {
        Self { min_fact_count: floors.fact_count, applied }
    }
}

impl RelationFloor {
    pub const fn new(floors: Floors, applied: bool) -> Self {
        let Floors { fact_count, shared_fact_count } = floors;
        Self { min_shared_fact_count: shared_fact_count, min_fact_count: fact_count, applied }
    }
}

impl ConceptRow {
    fn new(concept: Concept, contexts: Vec<ConceptContext>, by: &ConceptPlace) -> Self {
        Self {
            place: by.of(&concept),
            id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            ontology_class: concept.ontology_class,
            fact_count: concept.fact_count,
            contexts: contexts.into_iter().map(Into::into).collect(),
        }
    }

    /// Whose place is one in the order by name, or by facts.
    pub fn listed(listed: ListedConcept, by_name: bool) -> Self {
        let by = if by_name { ConceptPlace::first_name() } else { ConceptPlace::MOST_FACTS };
        Self::new(listed.concept, listed.contexts, &by)
    }
}

impl ConceptView {
    /// As whoever asked for this id sees it.
    pub fn new(seen: SeenConcept, asked: ConceptId) -> Self {
        let SeenConcept { concept, contexts, aliases, synthesis } = seen;
        Self {
            merged_from: (concept.id != asked).then(|| asked.uuid()),
            description: concept.description.clone(),
            unmapped_label: concept.unmapped_label.clone(),
            created_at: concept.created_at,
            aliases: aliases.into_iter().map(Into::into).collect(),
            synthesis: synthesis.map(Into::into),
            row: ConceptRow::new(concept, contexts, &ConceptPlace::MOST_FACTS),
        }
    }
}

impl From<ConceptContext> for ConceptContextView {
    fn from(context: ConceptContext) -> Self {
        let ConceptContext { id, context, fact_count } = context;
        Self { concept_id: id.uuid(), context, fact_count }
    }
}

impl From<Alias> for AliasView {
    fn from(alias: Alias) -> Self {
        Self { alias: alias.text, added_by: alias.by.map(AliasBy::as_str) }
    }
}

impl From<ConceptSource> for ConceptSourceView {
    fn from(source: ConceptSource) -> Self {
        Self {
            place: (source.fact_count, source.no),
            mark: source.mark.map(MarkView::from),
            source_id: source.id.uuid(),
            title: source.title,
            url: source.url,
            published_at: source.published_at,
            fact_count: source.fact_count,
        }
    }
}

impl From<DatedFact> for TimelineEntry {
    fn from(dated: DatedFact) -> Self {
        Self {
            place: (dated.kind == DateKind::Fetched, dated.date, dated.fact.no),
            date: dated.date,
            date_kind: dated.kind.as_str(),
            source_id: dated.source.uuid(),
            fact: dated.fact.into(),
        }
    }
}

impl From<Relation> for RelationRow {
    fn from(relation: Relation) -> Self {
        Self {
            place: (relation.shared_fact_count, relation.no),
            concept_id: relation.id.uuid(),
            canonical_name: relation.canonical_name,
            context: relation.context,
            fact_count: relation.fact_count,
            shared_fact_count: relation.shared_fact_count,
            strength: relation.strength.as_str(),
        }
    }
}

impl From<Concept> for ConceptName {
    fn from(concept: Concept) -> Self {
        Self {
            concept_id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            fact_count: concept.fact_count,
        }
    }
}
