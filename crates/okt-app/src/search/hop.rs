//! From the best sources to those that share a name or a title with them: what a question needs but does not say.
//!
//! Names are those that stand in the texts, and the concepts that facts are linked with, which know that two names are one thing.

use std::collections::{BTreeSet, HashMap, HashSet};

use okt_auth::RepoAccess;
use okt_model::{ConceptId, Error, FoundThrough, RepositoryId, Result, SearchType, UnitKind};
use okt_search::{ANCHOR, Graph, Hop, Query, anchors, decode, named, title_name};
use okt_store::Connection;
use okt_store::search_hits::{self, Link};
use okt_store::search_units::{self, NAME, Range, TITLE, Totals};
use okt_vectors::{Tenant, cosine};
use uuid::Uuid;

use super::vectors::{Nearest, PATIENCE};
use super::{Candidate, Ranks, Via};
use crate::App;

/// So many of the first sources may be named by the question.
const NAMED: usize = 200;
/// A concept that more facts speak of leads anywhere, and so does a name that more sources have.
const EACH: i64 = 200;
/// So many sources that were reached are compared with the question.
const COMPARED: usize = 200;
/// By so many facts each, where no link says which.
const FACTS: i64 = 4;

/// What leads from one source to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// The place of a name among the names of the first sources.
    Name(usize),
    Concept(ConceptId),
}

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
        let mut map = Map::read(&mut tx, repository, &seeds).await?;
        let units = totals.statistics.get(&UnitKind::Source).map_or(0, |statistics| statistics.documents);
        let in_question = map.in_question(query);
        let reach = |map: &Map, cosines: Option<&HashMap<i64, f64>>| {
            let graph =
                Graph { keys: &map.keys, frequencies: &map.frequencies, units, named: &in_question, cosines };
            hop.rank(&ranked, graph)
        };
        let reached = reach(&map, None);
        let compared = reached.iter().filter(|hopped| hopped.via.is_some()).map(|hopped| hopped.unit);
        let compared: Vec<i64> = compared.take(COMPARED).collect();
        map.add_facts(&mut tx, repository, &compared).await?;
        tx.commit().await?;
        let reached = match nearest {
            Some(nearest) => {
                let of_facts = self.cosines(scope, nearest, &map, &compared).await?;
                let of_passages = self.passage_cosines(scope, nearest, &compared).await?;
                reach(&map, best(of_facts, of_passages).as_ref())
            }
            None => reached,
        };
        Ok(reordered(found, &reached, &ranked, &map, types))
    }

    /// How near the facts of sources are to the question: the best of each.
    async fn cosines(
        &self,
        scope: &RepoAccess,
        nearest: &Nearest,
        map: &Map,
        compared: &[i64],
    ) -> Result<Option<HashMap<i64, f64>>> {
        let Some(vectors) = self.vectors() else { return Ok(None) };
        let facts: Vec<i64> = compared.iter().filter_map(|no| map.facts.get(no)).flatten().copied().collect();
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
        for source in compared {
            let cosines = map.facts.get(source).into_iter().flatten().filter_map(|fact| of_fact.get(fact));
            if let Some(most) = cosines.copied().reduce(f64::max) {
                of_source.insert(*source, most);
            }
        }
        Ok(Some(of_source))
    }
}

/// The nearer one of each source. Of neither none is known.
fn best(one: Option<HashMap<i64, f64>>, other: Option<HashMap<i64, f64>>) -> Option<HashMap<i64, f64>> {
    match (one, other) {
        (Some(mut best), Some(other)) => {
            for (source, cosine) in other {
                let most = best.entry(source).or_insert(cosine);
                *most = most.max(cosine);
            }
            Some(best)
        }
        (one, other) => one.or(other),
    }
}

/// The sources of candidates, each once, by the best of them; the candidates are in order.
fn sources(found: &[Candidate]) -> Vec<(i64, f64)> {
    let mut seen = HashSet::new();
    let first = found.iter().filter(|candidate| seen.insert(candidate.source));
    first.map(|candidate| (candidate.source, candidate.score)).collect()
}

/// Which sources have which names.
#[derive(Default)]
struct Map {
    names: Vec<String>,
    concepts: HashMap<ConceptId, String>,
    keys: HashMap<i64, Vec<(Key, bool)>>,
    /// How many sources have a name.
    frequencies: HashMap<Key, u64>,
    /// Of each source those facts that speak of a concept, or else its first ones.
    facts: HashMap<i64, BTreeSet<i64>>,
}

impl Map {
    /// Of the first sources, and of all others that have one of their names.
    async fn read(conn: &mut Connection, repository: RepositoryId, seeds: &[i64]) -> Result<Self> {
        let mut links = search_hits::list_links(conn, repository, seeds).await?;
        let concepts: BTreeSet<ConceptId> = links.iter().map(|link| link.concept).collect();
        let concepts: Vec<ConceptId> = concepts.into_iter().collect();
        let linked = search_hits::list_linked(conn, repository, &concepts, EACH).await?;
        // What leads anywhere leads nowhere.
        let leading: HashSet<ConceptId> = linked.iter().map(|link| link.concept).collect();
        links.retain(|link| leading.contains(&link.concept));
        links.extend(linked);
        let concepts: HashMap<ConceptId, String> =
            search_hits::name_concepts(conn, repository, &concepts).await?.into_iter().collect();
        let names: BTreeSet<String> = search_units::list_names(conn, repository, seeds)
            .await?
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        let names: Vec<String> = names.into_iter().collect();
        let counts = search_units::count(conn, repository, UnitKind::Source, &names).await?;
        let few = u64::try_from(EACH).map_err(Error::internal)?;
        let is_few =
            |name: &String| counts.get(name).is_some_and(|listed| (2..=few).contains(&listed.documents));
        let names: Vec<String> = names.into_iter().filter(is_few).collect();
        let lists = search_units::read(conn, repository, UnitKind::Source, &names, Range::default()).await?;
        let mut map = Self { concepts, ..Self::default() };
        map.add_links(&links);
        // A name that is a concept's leads where the concept does too.
        let mut by_name: HashMap<String, ConceptId> = HashMap::new();
        for (id, name) in &map.concepts {
            if let Some(name) = title_name(name).filter(|_| leading.contains(id)) {
                let first = by_name.entry(name).or_insert(*id);
                *first = (*id).min(*first);
            }
        }
        for (at, word) in names.iter().enumerate() {
            let name = word.trim_start_matches(NAME);
            map.names.push(name.to_owned());
            let key = by_name.get(name).map_or(Key::Name(at), |id| Key::Concept(*id));
            for list in lists.get(word).into_iter().flatten() {
                let postings = decode(list.block, &list.entries)
                    .ok_or_else(|| Error::internal("a list of texts can't be read"))?;
                for posting in postings {
                    map.add(posting.unit, key, posting.count >= TITLE);
                }
            }
        }
        Ok(map)
    }

    fn add_links(&mut self, links: &[Link]) {
        for link in links {
            self.add(link.source_no, Key::Concept(link.concept), link.title);
            self.facts.entry(link.source_no).or_default().insert(link.fact_no);
        }
    }

    fn add(&mut self, source: i64, key: Key, is_title: bool) {
        let keys = self.keys.entry(source).or_default();
        if !keys.iter().any(|(known, _)| *known == key) {
            *self.frequencies.entry(key).or_default() += 1;
        }
        keys.push((key, is_title));
    }

    /// For sources that no link says a fact of.
    async fn add_facts(
        &mut self,
        conn: &mut Connection,
        repository: RepositoryId,
        sources: &[i64],
    ) -> Result<()> {
        let without: Vec<i64> = sources.iter().filter(|no| !self.facts.contains_key(no)).copied().collect();
        for (source, fact) in search_units::list_first_facts(conn, repository, &without, FACTS).await? {
            self.facts.entry(source).or_default().insert(fact);
        }
        Ok(())
    }

    /// The names that stand in the question: they lead back to what it finds anyway.
    fn in_question(&self, query: &Query) -> HashSet<Key> {
        let names = self.names.iter().enumerate().map(|(at, name)| (Key::Name(at), name.as_str()));
        let concepts = self.concepts.iter().map(|(id, name)| (Key::Concept(*id), name.as_str()));
        named(&query.text, &names.chain(concepts).collect::<Vec<_>>())
    }

    fn via(&self, key: Key) -> Via {
        match key {
            Key::Name(at) => Via { concept: None, name: self.names[at].clone() },
            Key::Concept(id) => {
                Via { concept: Some(id), name: self.concepts.get(&id).cloned().unwrap_or_default() }
            }
        }
    }
}

/// Candidates in the order of their sources. What only the hop has found is shown by a fact, or by its beginning; further
/// candidates of a source keep their own scores.
fn reordered(
    mut found: Vec<Candidate>,
    hopped: &[okt_search::Hopped<i64, Key>],
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
            if place.score > known.get(&place.unit).copied().unwrap_or_default()
                && let Some(key) = place.via
            {
                candidate.found_by.push(FoundThrough::Hop);
                candidate.via = Some(map.via(key));
            }
            candidate.score = score;
            continue;
        }
        let fact = map.facts.get(&place.unit).and_then(BTreeSet::first);
        let shown = match fact {
            Some(fact) if types.contains(&SearchType::Facts) => Some((SearchType::Facts, *fact)),
            _ if types.contains(&SearchType::Passages) => Some((SearchType::Passages, place.unit * 256)),
            _ if types.contains(&SearchType::Sources) => Some((SearchType::Sources, place.unit)),
            _ => None,
        };
        let Some(((kind, no), via)) = shown.zip(place.via) else { continue };
        found.push(Candidate {
            kind,
            no,
            source: place.unit,
            score,
            found_by: vec![FoundThrough::Hop],
            via: Some(map.via(via)),
            ranks: Ranks::default(),
        });
    }
    found
}
