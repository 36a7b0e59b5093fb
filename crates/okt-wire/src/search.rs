//! Searching a repository.

use okt_app::{Ranks, SearchHit, SearchPlace};
use okt_model::{ConceptId, Error, FoundThrough, SearchMode, SearchType, SourceId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::vocabulary::{read, read_if_given, schema};

/// As long as a question may be, in bytes.
const LONGEST: usize = 1_024;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// What to look for, at most 1,024 bytes: words, `"a phrase"` that must occur, and `-word` or `-"a phrase"` that must not.
    /// Words are found in their inflected forms, in the languages of the repository's sources.
    #[param(example = "highest tides")]
    pub q: String,
    /// `facts`, `concepts`, `sources`, `passages`, separated by commas; the first three by default, as far as you may read them.
    /// Sources and passages need `source:read`, concepts `concept:read`.
    pub types: Option<String>,
    /// `auto` (the default) is `hybrid`, or `lexical` where there are no vectors; `deep` is `hybrid`, and goes on from the best
    /// sources to those that share a name or a title with them.
    #[param(value_type = Option<schema::SearchMode>)]
    pub mode: Option<String>,
    /// `true` if the last word may still be growing, as while somebody types.
    #[param(default = false)]
    pub prefix: Option<bool>,
    /// `false` for all facts of a group of similar ones.
    #[param(default = true)]
    pub grouped: Option<bool>,
    /// `true` to show where each channel placed a row.
    #[param(default = false)]
    pub explain: Option<bool>,
}

/// A question as it was read.
pub struct Searched<'q> {
    pub q: &'q str,
    pub types: Option<Vec<SearchType>>,
    pub mode: SearchMode,
    pub prefix: bool,
    pub grouped: bool,
    pub explain: bool,
}

impl SearchQuery {
    pub fn parsed(&self) -> Result<Searched<'_>, Error> {
        if self.q.trim().is_empty() {
            return Err(Error::invalid("q", "must not be empty"));
        }
        if self.q.len() > LONGEST {
            return Err(Error::invalid("q", "must be at most 1024 bytes"));
        }
        let types = self.types.as_ref().map(|types| {
            types.split(',').map(|word| read("types", word.trim())).collect::<Result<Vec<_>, _>>()
        });
        let types = types.transpose()?;
        Ok(Searched {
            q: &self.q,
            types,
            mode: read_if_given("mode", self.mode.as_deref())?.unwrap_or(SearchMode::Auto),
            prefix: self.prefix.unwrap_or(false),
            grouped: self.grouped.unwrap_or(true),
            explain: self.explain.unwrap_or(false),
        })
    }
}

/// Something that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchResult)]
pub struct SearchRow {
    /// `facts`, `concepts`, `sources` or `passages`.
    #[serde(rename = "type")]
    #[schema(value_type = schema::SearchType)]
    pub kind: &'static str,
    /// Of the fact, the concept or the source; for a passage of its source.
    pub id: Uuid,
    /// The title of the source; the context of a concept.
    #[schema(required, example = "Tides")]
    pub title: Option<String>,
    #[schema(example = "The Bay of Fundy has the highest tides of the world.")]
    pub text: String,
    /// Where the text is like the question: first code point, and the one after the last.
    pub highlights: Vec<[usize; 2]>,
    /// Comparable within one answer only.
    #[schema(example = 0.87)]
    pub score: f64,
    /// `lexical`, `vector`, `anchor` (the question names the source) and `hop` (reached over a concept).
    #[schema(value_type = Vec<schema::FoundThrough>)]
    pub found_by: Vec<&'static str>,
    /// The concept that led to it; null unless `found_by` has `hop`.
    #[schema(required)]
    pub via: Option<Uuid>,
    /// The sources of a fact, at most 20; the source of a passage, or the source itself.
    pub source_ids: Vec<Uuid>,
    /// With `explain=true`: where each channel placed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<ExplainView>,
    #[serde(skip)]
    pub place: CursorPlace,
}

/// Where the channels placed a row.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchExplanation)]
pub struct ExplainView {
    /// By words; null if that did not find it.
    #[schema(required)]
    pub lexical: Option<ChannelView>,
    /// By vectors; null if that did not find it.
    #[schema(required)]
    pub vector: Option<ChannelView>,
    /// By the reranking model (`search.rerank`); null if it did not look at the row, or said nothing of it.
    #[schema(required)]
    pub rerank: Option<RerankView>,
}

/// What the reranking model made of a row.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchRerank)]
pub struct RerankView {
    /// Where the row was before, from 1.
    #[schema(example = 12)]
    pub rank_before: usize,
    /// As the model gave it; larger is better.
    #[schema(example = 0.98)]
    pub score: f64,
}

/// Where one channel placed a row.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchRank)]
pub struct ChannelView {
    /// From 1.
    #[schema(example = 3)]
    pub rank: usize,
    #[schema(example = 0.71)]
    pub score: f64,
}

/// A page of what was found.
#[derive(Serialize, ToSchema)]
pub struct SearchPage {
    /// The rows of this page, the best first.
    pub data: Vec<SearchRow>,
    /// Where the next page starts; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// How the question was answered: `lexical`, `vector`, `hybrid` or `deep`.
    #[schema(value_type = schema::SearchMode)]
    pub search_mode: &'static str,
    /// Why vectors were not used although they were wanted: `no_vectors`, `vectors_away`, `hybrid_off`, `no_words` or `budget`; or
    /// why the reranking model was not: `rerank_unavailable` or `rerank_budget`. Null if all was used that was wanted.
    #[schema(required, example = "no_vectors")]
    pub degraded_reason: Option<&'static str>,
}

/// Score, type and number. The score by its bits: a decimal may come back as another number.
pub type CursorPlace = (u64, u8, i64);

const fn number(kind: SearchType) -> u8 {
    kind as u8
}

/// The place that a cursor names.
pub fn place((score, kind, no): CursorPlace) -> Option<SearchPlace> {
    let kind = SearchType::ALL.iter().copied().find(|other| number(*other) == kind)?;
    Some(SearchPlace { score: f64::from_bits(score), kind, no })
}

impl SearchRow {
    pub fn new(hit: SearchHit, explain: bool) -> Self {
        let SearchPlace { score, kind, no } = hit.place;
        let mut found_by = hit.found_by;
        found_by.sort_unstable();
        found_by.dedup();
        Self {
            kind: kind.as_str(),
            id: hit.id,
            title: hit.title,
            text: hit.text,
            highlights: hit.highlights.into_iter().map(|(start, end)| [start, end]).collect(),
            score,
            found_by: found_by.into_iter().map(FoundThrough::as_str).collect(),
            via: hit.via.map(ConceptId::uuid),
            source_ids: hit.sources.into_iter().map(SourceId::uuid).collect(),
            explain: explain.then(|| hit.ranks.into()),
            place: (score.to_bits(), number(kind), no),
        }
    }
}

impl From<Ranks> for ExplainView {
    fn from(ranks: Ranks) -> Self {
        let channel = |rank: Option<(usize, f64)>| rank.map(|(rank, score)| ChannelView { rank, score });
        let rerank = ranks.rerank.map(|(rank_before, score)| RerankView { rank_before, score });
        Self { lexical: channel(ranks.lexical), vector: channel(ranks.vector), rerank }
    }
}
