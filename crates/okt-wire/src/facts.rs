//! Facts: what the sources of a repository say.

use chrono::{DateTime, Utc};
use okt_app::SeenFact;
use okt_model::{ConceptId, Contradiction, Error, Fact, FactConcept, FactFilter, FactId, ImageId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::registry::OriginView;
use crate::source_marks::MarkView;
use crate::vocabulary::{FactSort, read_if_given, schema};

const MOST_CONCEPTS: usize = 20;

/// A statement that sources make.
#[derive(Serialize, ToSchema)]
#[schema(as = FactSummary)]
pub struct FactRow {
    pub id: Uuid,
    #[schema(example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub text: String,
    /// SHA-256 of the text in the form in which facts are compared.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bef2c3d2f1f6d1c2a0e4b")]
    pub content_hash: String,
    /// `text` or `image`.
    #[schema(value_type = schema::FactKind)]
    pub kind: &'static str,
    /// `new`, `stable`, `duplicate` or `rejected`.
    #[schema(value_type = schema::FactStatus)]
    pub status: &'static str,
    /// The model that worded the fact. `builtin-extractive-1` is not a model: it takes sentences as they are,
    /// with whole names.
    #[schema(example = "builtin-extractive-1")]
    pub model: String,
    /// The `registry_hash` of the promptset that the model was given; null without a model.
    #[schema(required)]
    pub promptset_hash: Option<String>,
    /// How many sources make the statement.
    #[schema(example = 1)]
    pub source_count: i32,
    /// Whether all of its sources were retracted.
    pub retracted: bool,
    /// How many of its sources were retracted.
    #[schema(example = 0)]
    pub retracted_sources: i64,
    /// Whether all of its sources are superseded.
    pub superseded: bool,
    /// How many of its sources are superseded.
    #[schema(example = 0)]
    pub superseded_sources: i64,
    /// The canonical fact that this one was merged into; null unless the status is `duplicate`.
    #[schema(required)]
    pub duplicate_of: Option<Uuid>,
    /// The group of similar facts that it is in; null for a fact that is alone.
    #[schema(required)]
    pub group: Option<GroupView>,
    pub created_at: DateTime<Utc>,
    #[serde(skip)]
    pub place: (i32, i64),
}

/// Facts that say something alike, each in its own words. Nothing says that they are the same, and nothing that they differ.
#[derive(Serialize, ToSchema)]
#[schema(as = FactGroup)]
pub struct GroupView {
    /// The fact that represents it in a list with `grouped=true`.
    pub id: Uuid,
    /// How many facts, that one included.
    #[schema(example = 3)]
    pub size: i64,
    /// How many sources make any of them.
    #[schema(example = 4)]
    pub sources: i64,
}

/// A statement with its sources.
#[derive(Serialize, ToSchema)]
#[schema(as = Fact)]
pub struct FactView {
    #[serde(flatten)]
    pub row: FactRow,
    /// The first 100 sources that make the statement.
    pub sources: Vec<FactSourceView>,
    pub concepts: Vec<FactConceptView>,
    /// The first 100 facts that were merged into this one because they say the same. To undo a merge, set the status of the
    /// duplicate to `stable`.
    pub duplicates: Vec<Uuid>,
    /// Facts that are similar to this one but say something else.
    pub candidate_contradictions: Vec<ContradictionView>,
}

/// A fact that is similar to another one but says something else, so the two may contradict each other.
#[derive(Serialize, ToSchema)]
#[schema(as = CandidateContradiction)]
pub struct ContradictionView {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub fact_id: Uuid,
    #[schema(example = "Honey bees do not tell each other where food is by a dance on the comb.")]
    pub text: String,
    /// How the two differ: `negation`, `number`, `unit`, `date`, `direction`, `roles`, `name`, `quantifier`, `certainty`,
    /// `wording`, or `judged` if a person undid their merge.
    #[schema(value_type = schema::Difference)]
    pub difference: &'static str,
    /// Cosine similarity of the vectors of the two facts; 1 for equal vectors.
    #[schema(example = 0.96)]
    pub cosine: f32,
    /// What people say of the two: `open`, `real` or `scope_differs`. Those of which they say that they are none are left out.
    #[schema(value_type = schema::ContradictionState)]
    pub state: &'static str,
    /// Whether all sources of that fact were retracted.
    pub retracted: bool,
}

/// The facts whose vectors are nearest to the vector of a fact.
#[derive(Serialize, ToSchema)]
#[schema(as = SimilarFacts)]
pub struct SimilarView {
    /// The model that made the vectors. `builtin-minilm-1` runs in the service itself.
    #[schema(example = "builtin-minilm-1")]
    pub model: String,
    /// The facts, nearest first.
    pub data: Vec<SimilarRow>,
}

/// A fact and its similarity.
#[derive(Serialize, ToSchema)]
#[schema(as = SimilarFact)]
pub struct SimilarRow {
    #[serde(flatten)]
    pub row: FactRow,
    /// Cosine similarity of the vectors of the two facts; 1 for equal vectors.
    #[schema(example = 0.87)]
    pub cosine: f32,
}

/// A source that makes the statement, in its own words.
#[derive(Serialize, ToSchema)]
#[schema(as = FactSource)]
pub struct FactSourceView {
    pub source_id: Uuid,
    #[schema(required, example = "On bees")]
    pub title: Option<String>,
    #[schema(example = "https://example.org/bees")]
    pub url: String,
    /// Whether the source was retracted or is superseded; null otherwise.
    #[schema(required)]
    pub mark: Option<MarkView>,
    /// The import that says so; null where it was found here.
    #[schema(required)]
    pub origin: Option<OriginView>,
    /// The chunk of the text in which the statement was found, counted from 0.
    #[schema(required, example = 0)]
    pub chunk_index: Option<i32>,
    pub sentences: Vec<QuoteView>,
    /// The image that supports the fact, for a fact of kind `image`.
    #[schema(required)]
    pub image_id: Option<Uuid>,
}

/// A sentence that supports a fact.
#[derive(Serialize, ToSchema)]
#[schema(as = Quote)]
pub struct QuoteView {
    /// The number of the sentence in the source, counted from 0.
    #[schema(example = 4)]
    pub sentence_index: i32,
    /// The sentence; null if the source no longer has a text.
    #[schema(required, example = "Honey bees tell each other where food is by a dance on the comb.")]
    pub text: Option<String>,
    /// The page of a PDF, counted from 1; null for other sources.
    #[schema(required, example = 2)]
    pub page: Option<i32>,
}

/// A concept that a fact mentions.
#[derive(Serialize, ToSchema)]
#[schema(as = FactConcept)]
pub struct FactConceptView {
    pub concept_id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    /// The context of the concept.
    #[schema(example = "Species")]
    pub context: String,
    #[serde(skip)]
    pub place: usize,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FactQuery {
    /// Only facts that have all of these words, in their text or in the title of their source. Words are found in their inflected
    /// forms, and the last one may be the beginning of one.
    pub q: Option<String>,
    /// `new`, `stable`, `duplicate` or `rejected`.
    #[param(value_type = Option<schema::FactStatus>)]
    pub status: Option<String>,
    /// `text` or `image`.
    #[param(value_type = Option<schema::FactKind>)]
    pub kind: Option<String>,
    /// Only facts of this source.
    pub source_id: Option<Uuid>,
    /// Only facts that mention this concept.
    pub concept_id: Option<Uuid>,
    /// Only facts that mention all of these concepts: ids separated by commas, at most 20.
    pub concepts: Option<String>,
    /// `newest` (the default) or `source_count`.
    #[param(value_type = Option<schema::FactSort>)]
    pub sort: Option<String>,
    /// `true` for one line for each group of similar facts: the one that represents it, or where that does not match, the oldest
    /// that does.
    #[param(default = false)]
    pub grouped: Option<bool>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SimilarQuery {
    /// How many facts to return, 1 to 50.
    #[param(default = 10)]
    pub limit: Option<u32>,
}

/// The new status of a fact.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FactStatusChange {
    /// `rejected`; or `stable`, to restore a rejected fact or to undo the merge of a duplicate.
    #[schema(value_type = schema::SettableFactStatus)]
    pub status: String,
    #[schema(max_length = 1000, example = "The sentence speaks of another species")]
    pub reason: Option<String>,
}

/// A fact after a change of its status.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedFact)]
pub struct ChangedFactView {
    /// The step of curation, by which the change can be undone; null if nothing had to be changed, or if the merge of a
    /// duplicate was undone.
    #[schema(required, example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub curation_id: Option<Uuid>,
    #[serde(flatten)]
    pub fact: FactView,
}

impl FactQuery {
    /// The filter, the words that are looked for, and whether those with the most sources come first.
    pub fn parsed(self) -> Result<(FactFilter, Option<String>, bool), Error> {
        let by_sources = read_if_given("sort", self.sort.as_deref())? == Some(FactSort::SourceCount);
        if self.q.as_ref().is_some_and(|q| q.chars().count() > 200) {
            return Err(Error::invalid("q", "must be at most 200 characters"));
        }
        let listed = self.concepts.iter().flat_map(|list| list.split(',')).map(|id| {
            id.trim().parse().map_err(|_| Error::invalid("concepts", "must be ids separated by commas"))
        });
        let mut concepts: Vec<ConceptId> = listed.collect::<Result<_, _>>()?;
        concepts.extend(self.concept_id.map(ConceptId::from));
        if concepts.len() > MOST_CONCEPTS {
            return Err(Error::invalid("concepts", "must be at most 20"));
        }
        let filter = FactFilter {
            status: read_if_given("status", self.status.as_deref())?,
            kind: read_if_given("kind", self.kind.as_deref())?,
            among: None,
            source: self.source_id.map(Into::into),
            concepts,
            grouped: self.grouped.unwrap_or(false),
        };
        Ok((filter, self.q.filter(|q| !q.is_empty()), by_sources))
    }
}

impl From<Fact> for FactRow {
    fn from(fact: Fact) -> Self {
        Self {
            id: fact.id.uuid(),
            place: (fact.source_count, fact.no),
            text: fact.text,
            content_hash: fact.hash.to_string(),
            kind: fact.kind.as_str(),
            status: fact.status.as_str(),
            model: fact.model,
            promptset_hash: fact.promptset_hash.map(|hash| hash.to_string()),
            source_count: fact.source_count,
            retracted: fact.marked.is_retracted(),
            retracted_sources: fact.marked.retracted,
            superseded: fact.marked.is_superseded(),
            superseded_sources: fact.marked.superseded,
            duplicate_of: fact.duplicate_of.map(FactId::uuid),
            group: fact.group.map(|group| GroupView {
                id: group.id.uuid(),
                size: group.size,
                sources: group.sources,
            }),
            created_at: fact.created_at,
        }
    }
}

impl From<SeenFact> for FactView {
    fn from(seen: SeenFact) -> Self {
        let sources = seen.sources.into_iter().map(|quoted| {
            let words = quoted.quotes.into_iter().zip(quoted.pages);
            let sentences = quoted.link.sentences.iter().zip(words).map(|(index, (text, page))| QuoteView {
                sentence_index: *index,
                text,
                page,
            });
            FactSourceView {
                source_id: quoted.link.source.uuid(),
                sentences: sentences.collect(),
                title: quoted.link.title,
                url: quoted.link.url,
                mark: quoted.link.mark.map(MarkView::from),
                origin: quoted.origin.map(OriginView::from),
                chunk_index: quoted.link.chunk,
                image_id: quoted.link.image.map(ImageId::uuid),
            }
        });
        Self {
            row: seen.fact.into(),
            sources: sources.collect(),
            concepts: seen.concepts.into_iter().map(FactConceptView::from).collect(),
            duplicates: seen.duplicates.into_iter().map(FactId::uuid).collect(),
            candidate_contradictions: seen.contradictions.into_iter().map(ContradictionView::from).collect(),
        }
    }
}

impl From<Contradiction> for ContradictionView {
    fn from(found: Contradiction) -> Self {
        Self {
            fact_id: found.fact.uuid(),
            text: found.text,
            difference: found.difference.as_str(),
            cosine: found.cosine,
            state: found.state.as_str(),
            retracted: found.retracted,
        }
    }
}

impl From<FactConcept> for FactConceptView {
    fn from(concept: FactConcept) -> Self {
        Self {
            concept_id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            place: 0,
        }
    }
}
