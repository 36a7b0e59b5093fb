//! Searching a repository.

use okt_app::{
    DEGRADED, FacetValue, Facets, Ranks, SearchAfter, SearchField, SearchFilter, SearchHit, SearchPlace,
    Years,
};
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
    /// Words are found in their inflected forms, in the languages of the repository's sources. The filters below can stand in it
    /// too: `year:2019..2021`, `concept:"Bay of Fundy"`.
    #[param(example = "highest tides")]
    pub q: String,
    /// `facts`, `concepts`, `sources`, `reports`, `passages`, separated by commas; all but passages by default, as far as you may
    /// read them. Sources and passages need `source:read`, concepts `concept:read`, reports `report:read`.
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
    /// Only what speaks of this concept: its id or its name.
    pub concept: Option<String>,
    /// Only facts that speak of a concept in this context, and such concepts.
    pub context: Option<String>,
    /// Only what is in this source: its id, or a part of its title or address.
    pub source: Option<String>,
    /// Only what is in a source in this language.
    #[param(example = "de")]
    pub language: Option<String>,
    /// Only what is in a source that was published in this year or these years: `2019`, `2019..2021`, `2019..` or `..2021`.
    #[param(example = "2019..2021")]
    pub year: Option<String>,
    /// Only what is in a source of this kind.
    #[param(value_type = Option<schema::SourceKind>)]
    pub kind: Option<String>,
    /// `true` to count which concepts, contexts, sources, languages, years and kinds the candidates have.
    #[param(default = false)]
    pub facets: Option<bool>,
}

/// A question as it was read.
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of the request")]
pub struct Searched<'q> {
    pub q: &'q str,
    pub types: Option<Vec<SearchType>>,
    pub mode: SearchMode,
    pub prefix: bool,
    pub grouped: bool,
    pub explain: bool,
    pub filters: Vec<SearchFilter>,
    pub facets: bool,
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
            filters: self.filters()?,
            facets: self.facets.unwrap_or(false),
        })
    }

    fn filters(&self) -> Result<Vec<SearchFilter>, Error> {
        if self.year.as_ref().is_some_and(|year| Years::parse(year).is_none()) {
            return Err(Error::invalid("year", "must be a year, or two with `..` between or beside them"));
        }
        let _: Option<okt_app::SourceKind> = read_if_given("kind", self.kind.as_deref())?;
        let given = [
            (SearchField::Concept, "concept", &self.concept),
            (SearchField::Context, "context", &self.context),
            (SearchField::Source, "source", &self.source),
            (SearchField::Language, "language", &self.language),
            (SearchField::Year, "year", &self.year),
            (SearchField::Kind, "kind", &self.kind),
        ];
        let given = given.into_iter().filter_map(|(field, name, value)| Some((field, name, value.as_ref()?)));
        let filters = given.map(|(field, name, value)| {
            if value.is_empty() || value.len() > LONGEST || value.contains(char::is_control) {
                return Err(Error::invalid(name, "must be 1 to 1024 bytes without control characters"));
            }
            Ok(SearchFilter { field, value: value.clone() })
        });
        filters.collect()
    }
}

/// Something that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchResult)]
pub struct SearchRow {
    /// `facts`, `concepts`, `sources`, `passages` or `reports`.
    #[serde(rename = "type")]
    #[schema(value_type = schema::SearchType)]
    pub kind: &'static str,
    /// Of the fact, the concept, the source or the report; for a passage of its source.
    pub id: Uuid,
    /// The title of the source or the report; the context of a concept.
    #[schema(required, example = "Tides")]
    pub title: Option<String>,
    #[schema(example = "The Bay of Fundy has the highest tides of the world.")]
    pub text: String,
    /// Where the text is like the question: first code point, and the one after the last.
    pub highlights: Vec<[usize; 2]>,
    /// Comparable within one answer only.
    #[schema(example = 0.87)]
    pub score: f64,
    /// `lexical`, `vector`, `anchor` (the question names the source) and `hop` (reached over a name).
    #[schema(value_type = Vec<schema::FoundThrough>)]
    pub found_by: Vec<&'static str>,
    /// The concept that led to it; null unless `found_by` has `hop` and the name that led there is one's.
    #[schema(required)]
    pub via: Option<Uuid>,
    /// The name that led to it; null unless `found_by` has `hop`.
    #[schema(required, example = "Ole Brandt")]
    pub via_name: Option<String>,
    /// The sources of a fact, at most 20; the source of a passage, or the source itself.
    pub source_ids: Vec<Uuid>,
    /// Whether all sources of the fact were retracted; of a passage or a source, whether the source was.
    pub retracted: bool,
    /// With `explain=true`: where each channel placed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<ExplainView>,
    #[serde(skip)]
    pub place: RowPlace,
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
    /// With `facets=true`: what the candidates have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facets: Option<FacetsView>,
}

/// How many of the candidates have which values: for each field the 20 most frequent ones.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchFacets)]
pub struct FacetsView {
    /// How many candidates were counted: at most about 1,000 of each type are looked at.
    #[schema(example = 412)]
    pub of: usize,
    /// Concepts that facts speak of; empty without `concept:read`.
    pub concept: Vec<FacetView>,
    /// Their contexts.
    pub context: Vec<FacetView>,
    /// Sources; empty without `source:read`, as are the next three.
    pub source: Vec<FacetView>,
    pub language: Vec<FacetView>,
    pub year: Vec<FacetView>,
    pub kind: Vec<FacetView>,
}

/// A value and how many candidates have it.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchFacet)]
pub struct FacetView {
    /// What the filter is given: an id of concepts and sources.
    #[schema(example = "2019")]
    pub value: String,
    /// The name of a concept or the title of a source.
    #[schema(required)]
    pub label: Option<String>,
    #[schema(example = 17)]
    pub count: usize,
}

impl From<Facets> for FacetsView {
    fn from(facets: Facets) -> Self {
        let view = |values: Vec<FacetValue>| values.into_iter().map(FacetView::from).collect();
        Self {
            of: facets.of,
            concept: view(facets.concept),
            context: view(facets.context),
            source: view(facets.source),
            language: view(facets.language),
            year: view(facets.year),
            kind: view(facets.kind),
        }
    }
}

impl From<FacetValue> for FacetView {
    fn from(FacetValue { value, label, count }: FacetValue) -> Self {
        Self { value, label, count }
    }
}

/// Score, type and number. The score by its bits: a decimal may come back as another number.
pub type RowPlace = (u64, u8, i64);

/// The place of a row, and how the page was answered: mode, and why not as it was asked to be.
pub type CursorPlace = (RowPlace, String, Option<String>);

const fn number(kind: SearchType) -> u8 {
    kind as u8
}

/// Where a page begins that a cursor names.
pub fn after(((score, kind, no), mode, degraded): CursorPlace) -> Option<SearchAfter> {
    let kind = SearchType::ALL.iter().copied().find(|other| number(*other) == kind)?;
    let place = SearchPlace { score: f64::from_bits(score), kind, no };
    let mode = SearchMode::ALL.iter().copied().find(|other| other.as_str() == mode)?;
    let degraded = match degraded {
        Some(why) => Some(DEGRADED.into_iter().find(|known| *known == why)?),
        None => None,
    };
    Some(SearchAfter { place, mode, degraded })
}

impl SearchRow {
    pub fn new(hit: SearchHit, explain: bool) -> Self {
        let SearchPlace { score, kind, no } = hit.place;
        let mut found_by = hit.found_by;
        found_by.sort_unstable();
        found_by.dedup();
        let (via, via_name) = hit.via.map(|via| (via.concept, via.name)).unzip();
        Self {
            kind: kind.as_str(),
            id: hit.id,
            title: hit.title,
            text: hit.text,
            highlights: hit.highlights.into_iter().map(|(start, end)| [start, end]).collect(),
            score,
            found_by: found_by.into_iter().map(FoundThrough::as_str).collect(),
            via: via.flatten().map(ConceptId::uuid),
            via_name,
            source_ids: hit.sources.into_iter().map(SourceId::uuid).collect(),
            retracted: hit.retracted,
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
