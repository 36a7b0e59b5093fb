//! The graph that concepts make: a bounded part of it for drawing, and a way from one concept to another.

use std::collections::{BTreeMap, HashMap, HashSet};

use okt_auth::permissions::GraphRead;
use okt_auth::{RepoAccess, RepoScope};
use okt_model::{Concept, ConceptFilter, ConceptId, FactId, NoPath, Result, Strength};
use okt_store::concept_graph::{self, Edge};
use okt_store::concepts::{self, ConceptPlace};
use okt_store::{Connection, concept_relations, counters};

use crate::App;
use crate::concepts::get;

/// Edges that are drawn for each node that may be.
const EDGES_PER_NODE: usize = 5;
/// Concepts whose relations are looked up to find a path, and how many relations of each.
const LOOKED_UP: usize = 500;
const RELATIONS_LOOKED_UP: i64 = 50;
/// Facts that show a step of a path.
const FACTS_OF_STEP: i64 = 2;

/// A part of the graph.
pub struct SeenGraph {
    /// Each with how many steps it is from the center, if there is one.
    pub nodes: Vec<(Concept, Option<u32>)>,
    /// The strongest first.
    pub edges: Vec<SeenEdge>,
    pub left_out: LeftOut,
}

/// How many facts two concepts share.
pub struct SeenEdge {
    pub from: ConceptId,
    pub to: ConceptId,
    pub shared_fact_count: i64,
    pub strength: Strength,
}

/// What is not drawn.
#[derive(Clone, Copy, Default)]
pub struct LeftOut {
    /// Concepts within the depth.
    pub nodes: usize,
    /// Relations between concepts that are drawn.
    pub edges: usize,
    /// Whether there may be more concepts than were counted.
    pub at_least: bool,
}

/// A way from one concept to another.
pub struct SeenPath {
    /// From the first to the last; empty if there is no path.
    pub concepts: Vec<Concept>,
    pub steps: Vec<PathStep>,
    pub reason: Option<NoPath>,
    /// Concepts whose relations were looked up.
    pub looked_up: usize,
}

/// A step of a path, with facts that show it.
pub struct PathStep {
    pub edge: SeenEdge,
    pub facts: Vec<FactId>,
}

impl App {
    /// At most so many concepts around one, the strongest relations first, or without one those with the most facts.
    pub async fn draw_graph(
        &self,
        scope: &RepoScope<GraphRead>,
        center: Option<ConceptId>,
        depth: usize,
        limit: usize,
    ) -> Result<SeenGraph> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let (mut found, root, mut left_out) = if let Some(center) = center {
            let center = get(&mut tx, scope, center).await?.no;
            let around = around(&mut tx, scope, center, depth, limit).await?;
            let found = concepts::list_numbered(&mut tx, repository, &around.nodes).await?;
            (found, Some(center), around.left_out)
        } else {
            let rows = i64::try_from(limit).unwrap_or(i64::MAX);
            let (all, first) = (ConceptFilter::default(), ConceptPlace::MOST_FACTS);
            let found = concepts::list(&mut tx, repository, &all, &first, rows).await?;
            let counters = counters::list(&mut tx, repository).await?;
            let all = counters.iter().find(|(name, _)| name == "concepts").map_or(0, |(_, count)| *count);
            let nodes = usize::try_from(all).unwrap_or(0).saturating_sub(found.len());
            (found, None, LeftOut { nodes, ..LeftOut::default() })
        };
        let numbers: Vec<i64> = found.iter().map(|concept| concept.no).collect();
        let edges = concept_graph::list_among(&mut tx, repository, &numbers).await?;
        tx.commit().await?;
        let (depths, needed) = root.map(|root| distances(root, &edges)).unwrap_or_default();
        let most = limit.saturating_mul(EDGES_PER_NODE);
        let drawn = strongest(&edges, &needed, most);
        left_out.edges = edges.len() - drawn.len();
        // The nearest first, and of them those with the most facts.
        found.sort_by_key(|concept| (depths.get(&concept.no).copied(), -concept.fact_count, concept.no));
        let ids: HashMap<i64, ConceptId> = found.iter().map(|concept| (concept.no, concept.id)).collect();
        let edges = drawn.into_iter().filter_map(|edge| self.edge(&ids, edge)).collect();
        let nodes = found.into_iter().map(|concept| {
            let depth = depths.get(&concept.no).copied();
            (concept, depth)
        });
        Ok(SeenGraph { nodes: nodes.collect(), edges, left_out })
    }

    /// A shortest path between two concepts, of several the one whose weakest relation is the strongest. It is looked for from
    /// both ends, along the strongest relations of each concept, until so many have been looked at.
    pub async fn find_graph_path(
        &self,
        scope: &RepoScope<GraphRead>,
        from: ConceptId,
        to: ConceptId,
    ) -> Result<SeenPath> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let (from, to) = (get(&mut tx, scope, from).await?.no, get(&mut tx, scope, to).await?.no);
        let (way, looked_up) = way(&mut tx, scope, from, to).await?;
        let way = match way {
            Ok(way) => way,
            Err(reason) => {
                let reason = Some(reason);
                return Ok(SeenPath { concepts: Vec::new(), steps: Vec::new(), reason, looked_up });
            }
        };
        let found = concepts::list_numbered(&mut tx, repository, &way.numbers).await?;
        let mut found: HashMap<i64, Concept> =
            found.into_iter().map(|concept| (concept.no, concept)).collect();
        let ids: HashMap<i64, ConceptId> = found.iter().map(|(no, concept)| (*no, concept.id)).collect();
        let mut steps = Vec::new();
        for edge in way.edges {
            let count = |no: &i64| found.get(no).map_or(0, |concept| concept.fact_count);
            let (one, other) =
                if count(&edge.to) < count(&edge.from) { (edge.to, edge.from) } else { (edge.from, edge.to) };
            let shared =
                concepts::list_shared_facts(&mut tx, repository, (one, other), i64::MAX, FACTS_OF_STEP)
                    .await?;
            let facts = shared.into_iter().map(|(_, fact)| fact.id).collect();
            steps.extend(self.edge(&ids, edge).map(|edge| PathStep { edge, facts }));
        }
        tx.commit().await?;
        let concepts = way.numbers.iter().filter_map(|no| found.remove(no)).collect();
        Ok(SeenPath { concepts, steps, reason: None, looked_up })
    }

    /// `None` if one of its ends was merged since it was counted.
    fn edge(&self, ids: &HashMap<i64, ConceptId>, edge: Edge) -> Option<SeenEdge> {
        Some(SeenEdge {
            from: *ids.get(&edge.from)?,
            to: *ids.get(&edge.to)?,
            shared_fact_count: edge.shared,
            strength: self.bands().strength(edge.shared),
        })
    }
}

/// Concepts around one.
struct Around {
    nodes: Vec<i64>,
    left_out: LeftOut,
}

/// Layer by layer, the strongest relations first. Each layer gets its share of the places that are left, so that one with many
/// neighbours leaves some for theirs; what the last one leaves free goes to those that were passed over.
async fn around(
    conn: &mut Connection,
    scope: &RepoAccess,
    center: i64,
    depth: usize,
    limit: usize,
) -> Result<Around> {
    let mut nodes = vec![center];
    let mut layer = vec![center];
    // How strongly those that were found and not taken are related to one that was taken.
    let mut passed: HashMap<i64, i64> = HashMap::new();
    let mut at_least = false;
    for steps_left in (1..=depth).rev() {
        let room = limit - nodes.len();
        let each = (4 * limit / layer.len().max(1)).max(10).min(limit + 1);
        let each = i64::try_from(each).unwrap_or(i64::MAX);
        let edges = concept_graph::list_neighbours(conn, scope.repository(), &layer, each).await?;
        at_least |= is_cut(&edges, each);
        let taken: HashSet<i64> = nodes.iter().copied().collect();
        let mut next: HashMap<i64, i64> = HashMap::new();
        for edge in edges.into_iter().filter(|edge| !taken.contains(&edge.to)) {
            let shared = next.entry(edge.to).or_default();
            *shared = edge.shared.max(*shared);
        }
        let mut ranked = rank(&next);
        ranked.truncate(room.div_ceil(steps_left));
        passed.extend(next);
        layer = ranked;
        nodes.extend(&layer);
        passed.retain(|no, _| !layer.contains(no));
        if layer.is_empty() {
            break;
        }
    }
    let mut rest = rank(&passed);
    rest.truncate(limit - nodes.len());
    nodes.extend(&rest);
    let left_out = LeftOut { nodes: passed.len() - rest.len(), edges: 0, at_least };
    Ok(Around { nodes, left_out })
}

/// Those that are related most strongly first.
fn rank(found: &HashMap<i64, i64>) -> Vec<i64> {
    let mut ranked: Vec<(i64, i64)> = found.iter().map(|(no, shared)| (-shared, *no)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, no)| no).collect()
}

/// Whether one of those that were looked up may have more relations.
fn is_cut(edges: &[Edge], each: i64) -> bool {
    let mut counts: HashMap<i64, i64> = HashMap::new();
    edges.iter().any(|edge| {
        let count = counts.entry(edge.from).or_default();
        *count += 1;
        *count >= each
    })
}

/// How far each is from the root along these edges, and for each its strongest edge to one that is nearer: without these it would
/// hang in the air.
fn distances(root: i64, edges: &[Edge]) -> (HashMap<i64, u32>, HashSet<(i64, i64)>) {
    let mut beside: HashMap<i64, Vec<Edge>> = HashMap::new();
    // In the order of strength, as they are.
    for edge in edges {
        beside.entry(edge.from).or_default().push(*edge);
        beside.entry(edge.to).or_default().push(Edge { from: edge.to, to: edge.from, ..*edge });
    }
    let (mut depths, mut needed) = (HashMap::from([(root, 0)]), HashSet::new());
    let (mut layer, mut depth) = (vec![root], 0);
    while !layer.is_empty() {
        depth += 1;
        let mut next: BTreeMap<i64, Edge> = BTreeMap::new();
        for edge in layer.iter().filter_map(|no| beside.get(no)).flatten() {
            if !depths.contains_key(&edge.to) {
                let best = next.entry(edge.to).or_insert(*edge);
                if edge.shared > best.shared {
                    *best = *edge;
                }
            }
        }
        needed.extend(next.values().map(|edge| (edge.from.min(edge.to), edge.from.max(edge.to))));
        layer = next.into_keys().collect();
        depths.extend(layer.iter().map(|no| (*no, depth)));
    }
    (depths, needed)
}

/// Those that are needed, and of the others the strongest, so many in all and in their order.
fn strongest(edges: &[Edge], needed: &HashSet<(i64, i64)>, most: usize) -> Vec<Edge> {
    let mut free = most.saturating_sub(needed.len());
    let drawn = edges.iter().filter(|edge| {
        if needed.contains(&(edge.from, edge.to)) {
            return true;
        }
        let fits = free > 0;
        free = free.saturating_sub(1);
        fits
    });
    drawn.copied().collect()
}

/// The concepts of a path and the relations between them.
struct Way {
    numbers: Vec<i64>,
    edges: Vec<Edge>,
}

/// How a concept was reached from one end.
#[derive(Clone, Copy)]
struct Reached {
    /// From the one before; `None` at the end itself.
    by: Option<Edge>,
    steps: usize,
    /// The weakest relation so far.
    weakest: i64,
}

/// What was reached from one end.
struct Side {
    reached: HashMap<i64, Reached>,
    layer: Vec<i64>,
    /// Whether there may be more than what was reached.
    cut: bool,
}

impl Side {
    fn new(end: i64) -> Self {
        let reached = Reached { by: None, steps: 0, weakest: i64::MAX };
        Self { reached: HashMap::from([(end, reached)]), layer: vec![end], cut: false }
    }

    /// One step further: looks up the relations of the last layer, as many as there is room for, those first that were reached by
    /// the strongest relations.
    async fn advance(&mut self, conn: &mut Connection, scope: &RepoAccess, room: usize) -> Result<usize> {
        let mut layer = std::mem::take(&mut self.layer);
        layer.sort_unstable_by_key(|no| (self.reached.get(no).map(|reached| -reached.weakest), *no));
        self.cut |= layer.len() > room;
        layer.truncate(room);
        let edges =
            concept_graph::list_neighbours(conn, scope.repository(), &layer, RELATIONS_LOOKED_UP).await?;
        self.cut |= is_cut(&edges, RELATIONS_LOOKED_UP);
        let mut next: BTreeMap<i64, Reached> = BTreeMap::new();
        for edge in edges {
            let Some(before) = self.reached.get(&edge.from).copied() else { continue };
            if self.reached.contains_key(&edge.to) {
                continue;
            }
            let weakest = before.weakest.min(edge.shared);
            let found = Reached { by: Some(edge), steps: before.steps + 1, weakest };
            let best = next.entry(edge.to).or_insert(found);
            if found.weakest > best.weakest {
                *best = found;
            }
        }
        self.layer = next.keys().copied().collect();
        self.reached.extend(next);
        Ok(layer.len())
    }

    /// The relations by which a concept was reached, from it to the end.
    fn back(&self, no: i64) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut at = no;
        while let Some(edge) = self.reached.get(&at).and_then(|reached| reached.by) {
            edges.push(edge);
            at = edge.from;
        }
        edges
    }
}

/// Where the two sides meet by the fewest steps, and of several where the weakest relation is the strongest.
fn meeting(one: &Side, other: &Side) -> Option<i64> {
    let both = one.reached.iter().filter_map(|(no, here)| {
        let there = other.reached.get(no)?;
        Some((here.steps + there.steps, -here.weakest.min(there.weakest), *no))
    });
    both.min().map(|(.., no)| no)
}

/// A path or why there is none, and how many concepts were looked up.
async fn way(
    conn: &mut Connection,
    scope: &RepoAccess,
    from: i64,
    to: i64,
) -> Result<(std::result::Result<Way, NoPath>, usize)> {
    // Two that are related may be so by a relation that is not among the strongest of either.
    let shared = concept_relations::find(conn, scope.repository(), from, to).await?;
    if shared > 0 {
        let way = Way { numbers: vec![from, to], edges: vec![Edge { from, to, shared }] };
        return Ok((Ok(way), 0));
    }
    let (mut one, mut other) = (Side::new(from), Side::new(to));
    let mut looked_up = 0;
    loop {
        if let Some(no) = meeting(&one, &other) {
            let mut edges = one.back(no);
            edges.reverse();
            // Those of the other side lead away from its end.
            edges.extend(other.back(no).into_iter().map(|edge| Edge {
                from: edge.to,
                to: edge.from,
                ..edge
            }));
            let numbers = std::iter::once(from).chain(edges.iter().map(|edge| edge.to)).collect();
            return Ok((Ok(Way { numbers, edges }), looked_up));
        }
        let room = LOOKED_UP - looked_up;
        let ended = [&one, &other].into_iter().find(|side| side.layer.is_empty());
        if let Some(side) = ended {
            let reason = if side.cut { NoPath::NotWithinLimits } else { NoPath::NotConnected };
            return Ok((Err(reason), looked_up));
        }
        if room == 0 {
            return Ok((Err(NoPath::NotWithinLimits), looked_up));
        }
        let smaller = if one.layer.len() <= other.layer.len() { &mut one } else { &mut other };
        looked_up += smaller.advance(conn, scope, room).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: i64, to: i64, shared: i64) -> Edge {
        Edge { from, to, shared }
    }

    #[test]
    fn the_strongest_edges_are_drawn_and_those_that_hold_a_node() {
        // A triangle with a tail that hangs by the weakest edge.
        let edges = [edge(1, 2, 9), edge(2, 3, 8), edge(1, 3, 7), edge(3, 4, 1)];
        let (depths, needed) = distances(1, &edges);
        assert_eq!(depths, HashMap::from([(1, 0), (2, 1), (3, 1), (4, 2)]));
        assert_eq!(needed, HashSet::from([(1, 2), (1, 3), (3, 4)]));
        assert_eq!(strongest(&edges, &needed, 3), [edges[0], edges[2], edges[3]]);
        assert_eq!(strongest(&edges, &needed, 4), edges);
        assert_eq!(strongest(&edges, &HashSet::new(), 2), edges[..2]);
    }

    #[test]
    fn a_concept_with_as_many_relations_as_were_asked_for_may_have_more() {
        let edges = [edge(1, 2, 9), edge(2, 3, 8), edge(1, 3, 7)];
        assert!(is_cut(&edges, 2));
        assert!(!is_cut(&edges, 3));
    }
}
