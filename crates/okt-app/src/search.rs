//! Searching a repository: by words, by meaning, by both, and over the concepts that facts share.
//!
//! Texts are ranked by their words (BM25) and by their vectors, and the two rankings are fused. A fact or a passage counts with the
//! source that it is from: a sentence seldom says what it is about. `deep` goes on from the best sources to those that share a
//! name or a title with them.

mod breaker;
mod facets;
mod filters;
mod hits;
mod hop;
mod lexical;
mod listed;
mod reports;
mod rerank;
mod vectors;

use std::collections::{HashMap, HashSet};

use okt_auth::permissions::{ConceptRead, FactRead, ReportRead, SourceRead};
use okt_auth::{Needed as _, RepoScope};
use okt_config::Fusion;
use okt_model::{ConceptId, Domain, Error, FoundThrough, Result, SearchMode, SearchType, SourceId, UnitKind};
use okt_search::{Filter, Prefix, Query};
use okt_store::search_units;
use uuid::Uuid;

pub use self::facets::{FacetValue, Facets};
use self::filters::{Described, Filters, Narrow};
use self::lexical::{Lists, Ranked};
pub(crate) use self::rerank::Rerankings;
use self::vectors::Nearest;
pub(crate) use self::vectors::QuestionVectors;
use crate::App;

/// What is looked for if nobody says what.
const USUAL: [SearchType; 4] =
    [SearchType::Facts, SearchType::Concepts, SearchType::Sources, SearchType::Reports];
/// How many texts of a kind are looked at.
const CANDIDATES: usize = 1_000;
/// What the words of the whole source count beside those of the text.
const WHOLE: f64 = 0.7;
/// What words count for beside vectors of a model of which nothing is known.
const EVEN: f64 = 0.5;

/// A text by its type and number.
type Id = (SearchType, i64);

pub struct SearchRequest<'a> {
    pub q: &'a str,
    /// Without any, facts, concepts, sources and reports.
    pub types: Option<&'a [SearchType]>,
    pub mode: SearchMode,
    /// The last word may still be growing.
    pub prefix: bool,
    /// One of each group of similar facts.
    pub grouped: bool,
    /// Beside those that stand in the question.
    pub filters: &'a [Filter],
    /// Whether to count what candidates have.
    pub facets: bool,
}

/// Why vectors were not used although they were wanted.
pub const DEGRADED: [&str; 5] = ["no_vectors", "vectors_away", "hybrid_off", "no_words", "budget"];

/// Where a page begins, and how the page before was answered: scores of another answer are no places in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchAfter {
    pub place: SearchPlace,
    pub mode: SearchMode,
    /// One of [`DEGRADED`].
    pub degraded: Option<&'static str>,
}

/// Something that was found, by its place among the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlace {
    pub score: f64,
    pub kind: SearchType,
    pub no: i64,
}

/// Something that was found.
pub struct SearchHit {
    pub place: SearchPlace,
    /// Of the fact, the concept or the source; of a passage that of its source.
    pub id: Uuid,
    /// Of the source; of a concept its context.
    pub title: Option<String>,
    pub text: String,
    /// Code points of the text that are like the question.
    pub highlights: Vec<(usize, usize)>,
    pub found_by: Vec<FoundThrough>,
    /// What led to it.
    pub via: Option<Via>,
    /// Of a fact all of them, but for those of many.
    pub sources: Vec<SourceId>,
    /// All sources of the fact were retracted, or the source was.
    pub retracted: bool,
    pub ranks: Ranks,
}

/// A name that two sources share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// If it is the name of one that a fact of the first source speaks of.
    pub concept: Option<ConceptId>,
    /// Of the concept; otherwise in small letters.
    pub name: String,
}

/// Where each channel placed it, from 1, and with what score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranks {
    pub lexical: Option<(usize, f64)>,
    pub vector: Option<(usize, f64)>,
    /// Where it was before a model looked at it, from 1, and what that gave it.
    pub rerank: Option<(usize, f64)>,
}

pub struct SearchResults {
    pub hits: Vec<SearchHit>,
    /// How the question was answered.
    pub mode: SearchMode,
    /// Why not as it was asked to be.
    pub degraded: Option<&'static str>,
    /// Why no model has looked at the first hits, where one should have.
    pub unranked: Option<&'static str>,
    /// If they were asked for.
    pub facets: Option<Facets>,
}

/// A text that may be shown, before anybody has looked at it.
#[derive(Clone, Debug)]
struct Candidate {
    kind: SearchType,
    no: i64,
    /// The source that it is from, or is; of a report the sentence by which it was found.
    source: i64,
    score: f64,
    found_by: Vec<FoundThrough>,
    via: Option<Via>,
    ranks: Ranks,
}

impl App {
    /// What answers a question, best first, from after a place on. A page that can't be answered as the one before was, because
    /// vectors are away meanwhile, is empty.
    pub async fn search(
        &self,
        scope: &RepoScope<FactRead>,
        request: &SearchRequest<'_>,
        after: Option<SearchAfter>,
        limit: usize,
    ) -> Result<SearchResults> {
        let types = &permitted(scope, request)?;
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let totals = search_units::totals(&mut tx, repository).await?;
        let languages: Vec<&str> = totals.languages.iter().map(String::as_str).collect();
        let prefix = if request.prefix { Prefix::LastWord } else { Prefix::Never };
        let query = Query::parse(request.q, &languages, prefix);
        let asked = query.filters.iter().chain(request.filters);
        let filters = Filters::read(&mut tx, repository, asked).await?;
        let by_vectors = async {
            match (request.mode, after) {
                (SearchMode::Lexical, _) => Ok(None),
                (_, Some(SearchAfter { degraded: Some(why), .. })) => Err(why),
                _ if !self.config().search.hybrid.enabled => Err("hybrid_off"),
                _ => self.nearest(scope, &query.text, limit, filters.narrow.as_ref()).await.map(Some),
            }
        };
        let by_words = async {
            let narrow = filters.narrow.as_ref();
            let lists = Lists::read(&mut tx, repository, &query, &totals, types, narrow).await?;
            let concepts = if types.contains(&SearchType::Concepts) {
                self.concept_candidates(&mut tx, scope, &query).await?
            } else {
                Vec::new()
            };
            let reports = if types.contains(&SearchType::Reports) {
                reports::candidates(&mut tx, repository, &query).await?
            } else {
                Vec::new()
            };
            tx.commit().await?;
            let beside = [concepts, reports].concat();
            Ok::<_, Error>((self.ranked(scope, lists, types, narrow.cloned()).await?, beside))
        };
        let (by_words, nearest) = tokio::join!(by_words, by_vectors);
        let (nearest, degraded) = match nearest {
            Ok(nearest) => (nearest, None),
            Err(why) => (None, Some(why)),
        };
        let mode = match (request.mode, &nearest) {
            (SearchMode::Deep, _) => SearchMode::Deep,
            (_, None) => SearchMode::Lexical,
            (SearchMode::Auto, Some(_)) => SearchMode::Hybrid,
            (mode, Some(_)) => mode,
        };
        if let Some(before) = after.filter(|before| (before.mode, before.degraded) != (mode, degraded)) {
            return Ok(SearchResults {
                hits: Vec::new(),
                mode: before.mode,
                degraded,
                unranked: None,
                facets: None,
            });
        }
        let (ranked, beside) = by_words?;
        let ranked = if mode == SearchMode::Vector { Ranked::default() } else { ranked };
        let mut candidates = self.candidates(&ranked, nearest.as_ref(), types);
        if query.ranking().is_empty() {
            candidates.extend(filters.narrow.iter().flat_map(|narrow| unranked(narrow, types)));
        }
        if mode == SearchMode::Deep {
            candidates = self.hop(scope, &query, candidates, nearest.as_ref(), &totals, types).await?;
        }
        candidates.extend(beside);
        candidates.sort_by(Candidate::order);
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut known = Described::default();
        if request.facets || !filters.is_empty() {
            known = Described::read(&mut tx, repository, &candidates, &filters, request.facets).await?;
            candidates.retain(|candidate| filters.fits(candidate, &known));
        }
        hits::leave_one_of_each(&mut tx, repository, &mut candidates, request.grouped).await?;
        let facets = request.facets.then(|| {
            let may_read = (may_read(scope, SearchType::Concepts), may_read(scope, SearchType::Sources));
            let floor = i64::from(self.config().concepts.min_concept_fact_count);
            Facets::of(&candidates, &known, may_read, floor)
        });
        tx.commit().await?;
        let place = after.map(|after| after.place);
        let unranked = self.rerank(scope, &query, request, place, &mut candidates).await?;
        if let Some(after) = after {
            candidates.retain(|candidate| candidate.is_after(&after.place));
        }
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let mut hits = hits::read(&mut tx, repository, &query, &candidates, mode, limit).await?;
        for hit in &mut hits {
            // A name is that of a concept, or stands in a text.
            let of =
                |via: &Via| if via.concept.is_some() { SearchType::Concepts } else { SearchType::Sources };
            hit.via = hit.via.take().filter(|via| may_read(scope, of(via)));
        }
        tx.commit().await?;
        Ok(SearchResults { hits, mode, degraded, unranked, facets })
    }

    /// The two rankings as one.
    fn candidates(&self, ranked: &Ranked, nearest: Option<&Nearest>, types: &[SearchType]) -> Vec<Candidate> {
        let hybrid = &self.config().search.hybrid;
        let known = self.config().lexical_weight();
        let by_score = match hybrid.fusion {
            Fusion::Auto => known.is_some(),
            Fusion::Score => true,
            Fusion::Rrf => false,
        };
        let lexical: Vec<(Id, f64)> =
            ranked.scores.iter().copied().filter(|((kind, _), _)| types.contains(kind)).collect();
        let vector = nearest.map(|nearest| nearest.scores(ranked, types)).unwrap_or_default();
        let fused = if lexical.is_empty() || vector.is_empty() || by_score {
            let weight = match (lexical.is_empty(), vector.is_empty()) {
                (_, true) => 1.0,
                (true, false) => 0.0,
                (false, false) => known.unwrap_or(EVEN),
            };
            okt_search::by_score(&lexical, &okt_search::scaled(&vector, None), weight)
        } else {
            let ids = |list: &[(Id, f64)]| list.iter().map(|(id, _)| *id).collect::<Vec<Id>>();
            let fused = okt_search::reciprocal(&[&ids(&lexical), &ids(&vector)], f64::from(hybrid.rrf_k));
            // What is added to them later was measured on scores from 0 to 1.
            okt_search::scaled(&fused, Some(0.0))
        };
        let places = |list: &[(Id, f64)]| -> HashMap<Id, (usize, f64)> {
            list.iter().enumerate().map(|(at, (id, score))| (*id, (at + 1, *score))).collect()
        };
        let (lexical, vector) = (places(&lexical), places(&vector));
        let source_of = |id: &Id| {
            ranked.sources.get(id).or_else(|| nearest.and_then(|nearest| nearest.sources.get(id))).copied()
        };
        let candidates = fused.into_iter().filter_map(|(id, score)| {
            let ranks =
                Ranks { lexical: lexical.get(&id).copied(), vector: vector.get(&id).copied(), rerank: None };
            let found_by =
                [ranks.lexical.map(|_| FoundThrough::Lexical), ranks.vector.map(|_| FoundThrough::Vector)];
            Some(Candidate {
                kind: id.0,
                no: id.1,
                source: source_of(&id)?,
                score,
                found_by: found_by.into_iter().flatten().collect(),
                via: None,
                ranks,
            })
        });
        candidates.collect()
    }
}

/// The types that are looked for: those that were asked for, or of the usual ones those that the caller may read.
fn permitted(scope: &RepoScope<FactRead>, request: &SearchRequest<'_>) -> Result<Vec<SearchType>> {
    match request.types {
        Some(types) if !types.iter().all(|kind| may_read(scope, *kind)) => Err(Error::Forbidden(
            "sources and passages need source:read, concepts need concept:read, reports need report:read",
        )),
        Some(types) => Ok(types.to_vec()),
        None => Ok(USUAL.into_iter().filter(|kind| may_read(scope, *kind)).collect()),
    }
}

fn may_read(scope: &RepoScope<FactRead>, kind: SearchType) -> bool {
    let permission = match kind {
        SearchType::Facts => return true,
        SearchType::Concepts => ConceptRead::PERMISSION,
        SearchType::Sources | SearchType::Passages => SourceRead::PERMISSION,
        SearchType::Reports => ReportRead::PERMISSION,
    };
    scope.caller().decide(Domain::Repository(scope.repository()), permission).is_ok()
}

/// The facts and sources that filters leave, for a question without words.
fn unranked(narrow: &Narrow, types: &[SearchType]) -> Vec<Candidate> {
    let of = |kind: SearchType, numbers: &HashSet<i64>| -> Vec<Candidate> {
        let numbers = numbers.iter().filter(|_| types.contains(&kind));
        let candidates = numbers.map(|no| Candidate {
            kind,
            no: *no,
            source: if kind == SearchType::Sources { *no } else { 0 },
            score: 0.0,
            found_by: Vec::new(),
            via: None,
            ranks: Ranks::default(),
        });
        candidates.collect()
    };
    [of(SearchType::Facts, &narrow.facts), of(SearchType::Sources, &narrow.sources)].concat()
}

const fn type_of(kind: UnitKind) -> SearchType {
    match kind {
        UnitKind::Fact => SearchType::Facts,
        UnitKind::Passage => SearchType::Passages,
        UnitKind::Source => SearchType::Sources,
    }
}

impl Candidate {
    fn order(one: &Self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&one.score).then((one.kind, one.no).cmp(&(other.kind, other.no)))
    }

    fn is_after(&self, place: &SearchPlace) -> bool {
        let order =
            place.score.total_cmp(&self.score).then((self.kind, self.no).cmp(&(place.kind, place.no)));
        order == std::cmp::Ordering::Greater
    }
}
