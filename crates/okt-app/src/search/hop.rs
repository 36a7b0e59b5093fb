//! From the best sources to those that share a name or a title with them: what a question needs but does not say.

use std::collections::{HashMap, HashSet};

use okt_auth::RepoAccess;
use okt_model::{ConceptId, FoundThrough, Result, SearchType, UnitKind};
use okt_search::{ANCHOR, Graph, Hop, Query, anchors, named};
use okt_store::search_hits::{self, Link};
use okt_store::search_units::Totals;
use okt_vectors::{Tenant, cosine};
use uuid::Uuid;

use super::vectors::{Nearest, PATIENCE};
use super::{Candidate, Ranks};
use crate::App;

/// So many of the first sources may be named by the question.
const NAMED: usize = 200;
/// A concept that more facts speak of leads anywhere.
const EACH: i64 = 200;
/// So many facts that were reached are compared with the question.
const COMPARED: usize = 400;

impl App {
    /// What was found with what is reached from it, in a new order.
    pub(super) async fn hop(
        &self,
        scope: &RepoAccess,
        query: &Query,
        mut found: Vec<Candidate>,
        nearest: Option<&Nearest>,
        totals: &Totals,
        types: &[SearchType],
    ) -> Result<Vec<Candidate>> {
        found.sort_by(Candidate::order);
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let first: Vec<i64> = sources(&found).into_iter().map(|(no, _)| no).take(NAMED).collect();
        let known = search_hits::get_sources(&mut tx, repository, &first).await?;
        let titles: Vec<(i64, &str)> =
            first.iter().filter_map(|no| Some((*no, known.get(no)?.title.as_deref()?))).collect();
        let anchored: HashSet<i64> = anchors(&query.text, &titles).into_iter().collect();
        for candidate in found.iter_mut().filter(|candidate| anchored.contains(&candidate.source)) {
            candidate.score += ANCHOR;
            candidate.found_by.push(FoundThrough::Anchor);
        }
        found.sort_by(Candidate::order);
        let hop = Hop::default();
        let ranked = sources(&found);
        let seeds: Vec<i64> = ranked.iter().take(hop.seeds).map(|(no, _)| *no).collect();
        let mut links = search_hits::list_links(&mut tx, repository, &seeds).await?;
        let concepts: HashSet<ConceptId> = links.iter().map(|link| link.concept).collect();
        let concepts: Vec<ConceptId> = concepts.into_iter().collect();
        let linked = search_hits::list_linked(&mut tx, repository, &concepts, EACH).await?;
        let names = search_hits::name_concepts(&mut tx, repository, &concepts).await?;
        tx.commit().await?;
        let names: Vec<(ConceptId, &str)> = names.iter().map(|(id, name)| (*id, name.as_str())).collect();
        links.extend(linked);
        let cosines = match nearest {
            Some(nearest) => self.cosines(scope, nearest, &links).await?,
            None => None,
        };
        let map = Map::of(&links);
        let units = totals.statistics.get(&UnitKind::Source).map_or(0, |statistics| statistics.documents);
        let graph = Graph {
            concepts: &map.concepts,
            frequencies: &map.frequencies,
            units,
            named: &named(&query.text, &names),
            cosines: cosines.as_ref(),
        };
        Ok(reordered(found, &hop.rank(&ranked, graph), &ranked, &map, types))
    }

    /// How near the facts that links lead over are to the question: the best of each source.
    async fn cosines(
        &self,
        scope: &RepoAccess,
        nearest: &Nearest,
        links: &[Link],
    ) -> Result<Option<HashMap<i64, f64>>> {
        let Some(vectors) = self.vectors() else { return Ok(None) };
        let facts = first_facts(links);
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let ids = search_hits::identify_facts(&mut tx, scope.repository(), &facts).await?;
        tx.commit().await?;
        let wanted: Vec<Uuid> = ids.keys().copied().collect();
        let tenant = Tenant::new(scope.repository(), scope.database());
        let space = vectors.space(&nearest.space);
        let points = tokio::time::timeout(PATIENCE, vectors.store().find(&tenant, &space, &wanted)).await;
        // Without them all are taken for alike, as where there are no vectors.
        let Ok(Ok(points)) = points else { return Ok(None) };
        let of_fact: HashMap<i64, f64> = points
            .iter()
            .filter_map(|point| Some((*ids.get(&point.id)?, cosine(&point.vector, &nearest.vector))))
            .collect();
        let mut of_source: HashMap<i64, f64> = HashMap::new();
        for link in links {
            if let Some(cosine) = of_fact.get(&link.fact_no) {
                let most = of_source.entry(link.source_no).or_insert(*cosine);
                *most = most.max(*cosine);
            }
        }
        Ok(Some(of_source))
    }
}

/// The facts that are compared: those that rare concepts lead to first, which lend the most.
fn first_facts(links: &[Link]) -> Vec<i64> {
    let mut frequencies: HashMap<ConceptId, usize> = HashMap::new();
    for link in links {
        *frequencies.entry(link.concept).or_default() += 1;
    }
    let mut facts: Vec<(usize, i64)> =
        links.iter().map(|link| (frequencies[&link.concept], link.fact_no)).collect();
    facts.sort_unstable();
    let mut seen = HashSet::new();
    facts.into_iter().map(|(_, fact)| fact).filter(|fact| seen.insert(*fact)).take(COMPARED).collect()
}

/// The sources of candidates, each once, by the best of them; the candidates are in order.
fn sources(found: &[Candidate]) -> Vec<(i64, f64)> {
    let mut seen = HashSet::new();
    let first = found.iter().filter(|candidate| seen.insert(candidate.source));
    first.map(|candidate| (candidate.source, candidate.score)).collect()
}

/// Which sources speak of which concepts.
struct Map {
    concepts: HashMap<i64, Vec<(ConceptId, bool)>>,
    /// How many of the sources.
    frequencies: HashMap<ConceptId, u64>,
    /// The fact of a source that speaks of a concept.
    facts: HashMap<(i64, ConceptId), i64>,
}

impl Map {
    fn of(links: &[Link]) -> Self {
        let mut map = Self { concepts: HashMap::new(), frequencies: HashMap::new(), facts: HashMap::new() };
        for link in links {
            let new = map.facts.insert((link.source_no, link.concept), link.fact_no).is_none();
            map.concepts.entry(link.source_no).or_default().push((link.concept, link.title));
            if new {
                *map.frequencies.entry(link.concept).or_default() += 1;
            }
        }
        map
    }
}

/// Candidates in the order of their sources. What only the hop has found is shown by the fact that speaks of the concept; further
/// candidates of a source keep their own scores.
fn reordered(
    mut found: Vec<Candidate>,
    hopped: &[okt_search::Hopped<i64, ConceptId>],
    before: &[(i64, f64)],
    map: &Map,
    types: &[SearchType],
) -> Vec<Candidate> {
    let known: HashMap<i64, f64> = before.iter().copied().collect();
    let mut best: HashMap<i64, usize> = HashMap::new();
    for (at, candidate) in found.iter().enumerate() {
        best.entry(candidate.source).or_insert(at);
    }
    // Those in front stay there, whatever the hop adds to others.
    let top = hopped.iter().map(|hopped| hopped.score).fold(0.0, f64::max);
    for (at, place) in hopped.iter().enumerate() {
        let kept = at < Hop::default().keep;
        let score = if kept { top.max(place.score) + if at == 0 { 2e-9 } else { 1e-9 } } else { place.score };
        if let Some(at) = best.get(&place.unit) {
            let candidate = &mut found[*at];
            if place.via.is_some() && place.score > known.get(&place.unit).copied().unwrap_or_default() {
                candidate.found_by.push(FoundThrough::Hop);
                candidate.via = place.via;
            }
            candidate.score = score;
            continue;
        }
        let fact = place.via.and_then(|via| Some((via, *map.facts.get(&(place.unit, via))?)));
        let Some((via, fact)) = fact else { continue };
        let (kind, no) = if types.contains(&SearchType::Facts) {
            (SearchType::Facts, fact)
        } else if types.contains(&SearchType::Sources) {
            (SearchType::Sources, place.unit)
        } else {
            continue;
        };
        found.push(Candidate {
            kind,
            no,
            source: place.unit,
            score,
            found_by: vec![FoundThrough::Hop],
            via: Some(via),
            ranks: Ranks::default(),
        });
    }
    found
}
