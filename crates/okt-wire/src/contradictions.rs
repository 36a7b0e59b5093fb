//! Facts that may contradict each other, and what people say of them.

use chrono::{DateTime, NaiveDate, Utc};
use okt_app::SeenContradiction;
use okt_model::{ContradictionSide, ContradictionState, CurationId, Error, FactId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::facts::FactRow;
use crate::vocabulary::{read, read_if_given, schema};

/// Two facts that may contradict each other.
#[derive(Serialize, ToSchema)]
#[schema(as = Contradiction)]
pub struct FoundContradictionView {
    /// The ids of both facts, joined by a full stop.
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37.019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a38")]
    pub id: String,
    /// `open`, `real`, `scope_differs` or `not_a_contradiction`.
    #[schema(value_type = schema::ContradictionState)]
    pub state: &'static str,
    /// What the person who said so wrote about it.
    #[schema(required, example = "The second trial had children only")]
    pub note: Option<String>,
    /// The user who said so; null while it is open, and where it was said in the repository that a bundle is from.
    #[schema(required)]
    pub user_id: Option<Uuid>,
    /// When; null while it is open.
    #[schema(required)]
    pub decided_at: Option<DateTime<Utc>>,
    /// How the two differ: `negation`, `number`, `unit`, `date`, `direction`, `roles`, `name`, `quantifier`, `certainty` or
    /// `wording`.
    #[schema(value_type = schema::Difference)]
    pub difference: &'static str,
    /// Cosine similarity of the vectors of the two facts; 1 for equal vectors.
    #[schema(example = 0.96)]
    pub cosine: f32,
    /// `refused_merge`: they were to be merged, and their words forbade it. `posture`: they share a concept, and `judged_by` says that
    /// one contradicts the other.
    #[schema(value_type = schema::ContradictionFoundBy)]
    pub found_by: &'static str,
    pub found_at: DateTime<Utc>,
    /// The model that says that they contradict each other, or `builtin-posture-1`, the rule; null if none has said so.
    #[schema(required, example = "builtin-posture-1")]
    pub judged_by: Option<String>,
    /// How sure it is, from 0 to 1.
    #[schema(required, example = 0.9)]
    pub confidence: Option<f32>,
    /// Both sides, the older fact first.
    #[schema(min_items = 2, max_items = 2)]
    pub facts: Vec<SideView>,
    #[serde(skip)]
    pub place: (i64, i64),
}

/// One of two facts that may contradict each other. Its counts are those of the fact itself; `all_sources` has those of its
/// duplicates as well.
#[derive(Serialize, ToSchema)]
#[schema(as = ContradictionSide)]
pub struct SideView {
    #[serde(flatten)]
    pub row: FactRow,
    /// How many sources make the statement, in these words or in those of a duplicate.
    #[schema(example = 3)]
    pub all_sources: i64,
    /// The first five of these sources.
    #[schema(max_items = 5)]
    pub sources: Vec<SideSourceView>,
    /// When the first of these sources was published; null if none says so.
    #[schema(required)]
    pub first_published: Option<NaiveDate>,
    /// When the last of these sources was published; null if none says so.
    #[schema(required)]
    pub last_published: Option<NaiveDate>,
}

/// A source of one of two facts that may contradict each other.
#[derive(Serialize, ToSchema)]
#[schema(as = ContradictionSource)]
pub struct SideSourceView {
    pub id: Uuid,
    #[schema(required, example = "On bees")]
    pub title: Option<String>,
    #[schema(required)]
    pub published_at: Option<NaiveDate>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ContradictionQuery {
    /// `open` (the default), `real`, `scope_differs` or `not_a_contradiction`.
    #[param(value_type = Option<schema::ContradictionState>)]
    pub state: Option<String>,
}

/// What is said of two facts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContradictionMarking {
    /// `real`; `scope_differs` if both are true, of another time, place, group or method; `not_a_contradiction`; `open` to take
    /// back what was said.
    #[schema(value_type = schema::ContradictionState)]
    pub state: String,
    #[schema(max_length = 1000, example = "The second trial had children only")]
    pub note: Option<String>,
}

/// The step of curation that was taken, and the contradiction as it is now.
#[derive(Serialize, ToSchema)]
#[schema(as = MarkedContradiction)]
pub struct MarkedContradictionView {
    /// The step, by which it can be undone; null if nothing had to be changed.
    #[schema(required, example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub curation_id: Option<Uuid>,
    pub contradiction: FoundContradictionView,
}

impl ContradictionQuery {
    pub fn parsed(&self) -> Result<ContradictionState, Error> {
        Ok(read_if_given("state", self.state.as_deref())?.unwrap_or(ContradictionState::Open))
    }
}

impl ContradictionMarking {
    pub fn parsed(&self) -> Result<ContradictionState, Error> {
        read("state", &self.state)
    }
}

/// The facts that an id of a contradiction names.
pub fn contradicting(id: &str) -> Result<(FactId, FactId), Error> {
    let missing = Error::NotFound("contradiction");
    let named = id
        .split_once('.')
        .and_then(|(one, other)| Some((one.parse::<Uuid>().ok()?, other.parse::<Uuid>().ok()?)));
    named.map(|(one, other)| (one.into(), other.into())).ok_or(missing)
}

impl From<SeenContradiction> for FoundContradictionView {
    fn from(seen: SeenContradiction) -> Self {
        let SeenContradiction { found, sides: (one, other) } = seen;
        let (judged_by, confidence) = found.judged.unzip();
        Self {
            id: format!("{}.{}", one.fact.id, other.fact.id),
            state: found.mark.as_ref().map_or(ContradictionState::Open, |mark| mark.state).as_str(),
            user_id: found.mark.as_ref().and_then(|mark| mark.person).map(UserId::uuid),
            decided_at: found.mark.as_ref().map(|mark| mark.decided_at),
            note: found.mark.and_then(|mark| mark.note),
            difference: found.difference.as_str(),
            cosine: found.cosine,
            found_by: found.found_by.as_str(),
            found_at: found.found_at,
            judged_by,
            confidence,
            place: found.place,
            facts: [one, other].into_iter().map(SideView::from).collect(),
        }
    }
}

impl From<ContradictionSide> for SideView {
    fn from(side: ContradictionSide) -> Self {
        let (first_published, last_published) = side.published;
        let sources = side.shown.into_iter().map(|source| SideSourceView {
            id: source.id.uuid(),
            title: source.title,
            published_at: source.published_at,
        });
        Self {
            all_sources: side.sources,
            sources: sources.collect(),
            row: side.fact.into(),
            first_published,
            last_published,
        }
    }
}

impl From<(Option<CurationId>, SeenContradiction)> for MarkedContradictionView {
    fn from((step, seen): (Option<CurationId>, SeenContradiction)) -> Self {
        Self { curation_id: step.map(CurationId::uuid), contradiction: seen.into() }
    }
}
