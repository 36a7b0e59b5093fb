//! The hop: from what the question finds to what that is about.
//!
//! A question about the director of a film finds the film; the director's own text shares the director's name
//! with it and nothing with the question. So the first few units lend their rare concepts to others that have
//! them, most of all to the one that has such a concept as its title.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::fuse::sorted;
use crate::words::words;

/// What a unit gains whose title stands in the question.
pub const ANCHOR: f64 = 0.3;

/// Which titles stand word for word in a question: of two words or more, or of one with more than four
/// letters. What stands in parentheses in a title only tells it from others, and a title inside a longer one
/// that is found too is not meant.
pub fn anchors<Id: Copy + Ord + Hash>(question: &str, titles: &[(Id, &str)]) -> Vec<Id> {
    let asked = lexemes(question);
    let mut hits: Vec<(Id, usize, usize)> = Vec::new();
    for (id, title) in titles {
        let title = lexemes(&without_parentheses(title));
        if title.len() > 1 || title.first().is_some_and(|word| word.chars().count() > 4) {
            let found = asked.windows(title.len()).enumerate().filter(|(_, window)| *window == title);
            hits.extend(found.map(|(at, _)| (*id, at, at + title.len())));
        }
    }
    let is_nested = |(_, start, end): &(Id, usize, usize)| {
        hits.iter().any(|(_, from, to)| from <= start && end <= to && to - from > end - start)
    };
    let mut anchors: Vec<Id> = hits.iter().filter(|hit| !is_nested(hit)).map(|(id, ..)| *id).collect();
    anchors.sort_unstable();
    anchors.dedup();
    anchors
}

/// Which names stand word for word in a question, however short they are.
pub fn named<Id: Copy + Eq + Hash>(question: &str, names: &[(Id, &str)]) -> HashSet<Id> {
    let asked = lexemes(question);
    let stands = |name: &[String]| !name.is_empty() && asked.windows(name.len()).any(|window| window == name);
    names.iter().filter(|(_, name)| stands(&lexemes(name))).map(|(id, _)| *id).collect()
}

fn lexemes(text: &str) -> Vec<String> {
    words(text, None).into_iter().map(|word| word.lexeme).collect()
}

/// `Mercury` of `Mercury (planet)`.
fn without_parentheses(title: &str) -> String {
    let mut depth: usize = 0;
    let outside = title.chars().filter(|c| match c {
        '(' | '（' => {
            depth += 1;
            false
        }
        ')' | '）' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    });
    outside.collect()
}

/// The measures of the hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// So many of the first units lend their concepts.
    pub seeds: usize,
    /// So many of the first units stay where they are.
    pub keep: usize,
    /// What the best unit of the hop gains.
    pub weight: f64,
    /// What a unit is worth that is unlike the question.
    pub base: f64,
    /// How much more a concept counts for the unit that has it as its title.
    pub title_weight: f64,
}

impl Default for Hop {
    fn default() -> Self {
        Self { seeds: 3, keep: 2, weight: 0.5, base: 0.2, title_weight: 2.0 }
    }
}

/// What is known of the units that may be reached.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a, Unit, Concept> {
    /// Of the first units and of all that share one of their concepts; true where the concept is the title of
    /// the unit.
    pub concepts: &'a HashMap<Unit, Vec<(Concept, bool)>>,
    /// How many units have a concept.
    pub frequencies: &'a HashMap<Concept, u64>,
    pub units: u64,
    /// Concepts that the question names. They lead back to what it finds anyway.
    pub named: &'a HashSet<Concept>,
    /// The cosine of the question and each unit; a unit without one is taken for unlike. None if nothing is
    /// embedded: then all are taken for alike.
    pub cosines: Option<&'a HashMap<Unit, f64>>,
}

/// A unit of the final ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hopped<Unit, Concept> {
    pub unit: Unit,
    /// What the unit is sorted by, except for those that are kept in front.
    pub score: f64,
    /// The concept that contributed most, if the hop reached the unit.
    pub via: Option<Concept>,
}

impl Hop {
    /// The final order of a ranking, best first, with what the hop adds to it.
    pub fn rank<Unit, Concept>(
        &self,
        ranked: &[(Unit, f64)],
        graph: Graph<'_, Unit, Concept>,
    ) -> Vec<Hopped<Unit, Concept>>
    where
        Unit: Copy + Ord + Hash,
        Concept: Copy + Ord + Hash,
    {
        let reached = self.reach(ranked, graph);
        let most = reached.values().map(|(gain, _)| *gain).fold(0.0, f64::max);
        let mut scores: HashMap<Unit, f64> = HashMap::new();
        for (unit, score) in ranked {
            scores.entry(*unit).or_insert(*score);
        }
        let kept: Vec<Unit> = ranked.iter().take(self.keep).map(|(unit, _)| *unit).collect();
        for (unit, (gain, _)) in reached.iter().filter(|(unit, _)| !kept.contains(unit)) {
            *scores.entry(*unit).or_default() += self.weight * gain / most;
        }
        let first = kept.iter().filter_map(|unit| Some((*unit, *scores.get(unit)?)));
        let rest = sorted(scores.iter().map(|(unit, score)| (*unit, *score)));
        let rest = rest.into_iter().filter(|(unit, _)| !kept.contains(unit));
        let via = |unit: &Unit| reached.get(unit).map(|(_, via)| *via);
        first.chain(rest).map(|(unit, score)| Hopped { unit, score, via: via(&unit) }).collect()
    }

    /// How strongly each unit is reached from the seeds, and by which concept most.
    fn reach<Unit, Concept>(
        &self,
        ranked: &[(Unit, f64)],
        graph: Graph<'_, Unit, Concept>,
    ) -> HashMap<Unit, (f64, Concept)>
    where
        Unit: Copy + Ord + Hash,
        Concept: Copy + Ord + Hash,
    {
        let seeds: Vec<Unit> = ranked.iter().take(self.seeds).map(|(unit, _)| *unit).collect();
        let weights = lent(&seeds, graph);
        let mut reached = HashMap::new();
        for (unit, concepts) in graph.concepts.iter().filter(|(unit, _)| !seeds.contains(unit)) {
            let mut sum = 0.0;
            let mut strongest: Option<(f64, Concept)> = None;
            for (concept, is_title) in distinct(concepts) {
                let Some(weight) = weights.get(&concept) else { continue };
                let part = weight * if is_title { self.title_weight } else { 1.0 };
                sum += part;
                let stronger = strongest.is_none_or(|(most, _)| part > most);
                strongest = if stronger { Some((part, concept)) } else { strongest };
            }
            let cosine = graph.cosines.map_or(1.0, |cosines| cosines.get(unit).copied().unwrap_or_default());
            let gain = (self.base + cosine.max(0.0)) * sum;
            if let Some((_, via)) = strongest.filter(|_| gain > 0.0) {
                reached.insert(*unit, (gain, via));
            }
        }
        reached
    }
}

/// The weight of each concept that the seeds lend: rarer ones and those of earlier seeds weigh more.
fn lent<Unit, Concept>(seeds: &[Unit], graph: Graph<'_, Unit, Concept>) -> HashMap<Concept, f64>
where
    Unit: Copy + Ord + Hash,
    Concept: Copy + Ord + Hash,
{
    // One unit leads nowhere else, and what two in a hundred have leads everywhere.
    let most = (graph.units / 50).max(5);
    let mut weights: HashMap<Concept, f64> = HashMap::new();
    let mut rank = 0.0;
    for seed in seeds {
        rank += 1.0;
        for (concept, _) in graph.concepts.get(seed).map(|concepts| distinct(concepts)).unwrap_or_default() {
            let frequency = graph.frequencies.get(&concept).copied().unwrap_or_default();
            if (2..=most).contains(&frequency) && !graph.named.contains(&concept) {
                #[expect(clippy::cast_precision_loss, reason = "counts of units are far below 2^52")]
                let frequency = frequency as f64;
                *weights.entry(concept).or_default() += 1.0 / (rank * frequency);
            }
        }
    }
    weights
}

/// Each concept once, in the order of their ids; a title if any of its mentions is one.
fn distinct<Concept: Copy + Ord>(concepts: &[(Concept, bool)]) -> Vec<(Concept, bool)> {
    let mut distinct = concepts.to_vec();
    distinct.sort_by_key(|(concept, is_title)| (*concept, !is_title));
    distinct.dedup_by_key(|(concept, _)| *concept);
    distinct
}

#[cfg(test)]
mod tests;
