//! The hop: from what the question finds to what that is about.
//!
//! A question about the director of a film finds the film; the director's own text shares the director's name
//! with it and nothing with the question. So the first few units lend their rare names to others that have
//! them, most of all to the one that has such a name as its title.

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
pub fn without_parentheses(title: &str) -> String {
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
    /// So many of the first units lend their names.
    pub seeds: usize,
    /// So many of the first units stay where they are.
    pub keep: usize,
    /// What the best unit of the hop gains.
    pub weight: f64,
    /// What a unit is worth that is unlike the question.
    pub base: f64,
    /// How much more a name counts for the unit that has it as its title.
    pub title_weight: f64,
}

impl Default for Hop {
    fn default() -> Self {
        Self { seeds: 3, keep: 2, weight: 0.5, base: 0.2, title_weight: 2.0 }
    }
}

/// What is known of the units that may be reached.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a, Unit, Name> {
    /// The names of the first units and of all that share one of them; true where the name is the title of the
    /// unit.
    pub keys: &'a HashMap<Unit, Vec<(Name, bool)>>,
    /// How many units have a name.
    pub frequencies: &'a HashMap<Name, u64>,
    pub units: u64,
    /// Names that stand in the question. They lead back to what it finds anyway.
    pub named: &'a HashSet<Name>,
    /// The cosine of the question and each unit; a unit without one is taken for one like the others. None if
    /// nothing is embedded: then all are taken for alike.
    pub cosines: Option<&'a HashMap<Unit, f64>>,
}

/// A unit of the final ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hopped<Unit, Name> {
    pub unit: Unit,
    /// What the unit is sorted by, except for those that are kept in front.
    pub score: f64,
    /// The name that contributed most, if the hop reached the unit.
    pub via: Option<Name>,
}

impl Hop {
    /// The final order of a ranking, best first, with what the hop adds to it.
    pub fn rank<Unit, Name>(
        &self,
        ranked: &[(Unit, f64)],
        graph: Graph<'_, Unit, Name>,
    ) -> Vec<Hopped<Unit, Name>>
    where
        Unit: Copy + Ord + Hash,
        Name: Copy + Ord + Hash,
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

    /// How strongly each unit is reached from the seeds, and by which name most.
    fn reach<Unit, Name>(
        &self,
        ranked: &[(Unit, f64)],
        graph: Graph<'_, Unit, Name>,
    ) -> HashMap<Unit, (f64, Name)>
    where
        Unit: Copy + Ord + Hash,
        Name: Copy + Ord + Hash,
    {
        let seeds: Vec<Unit> = ranked.iter().take(self.seeds).map(|(unit, _)| *unit).collect();
        let weights = lent(&seeds, graph);
        let usual = graph.cosines.map_or(1.0, |cosines| mean(cosines.values()));
        let mut reached = HashMap::new();
        for (unit, names) in graph.keys.iter().filter(|(unit, _)| !seeds.contains(unit)) {
            let mut sum = 0.0;
            let mut strongest: Option<(f64, Name)> = None;
            for (name, is_title) in distinct(names) {
                let Some(weight) = weights.get(&name) else { continue };
                let part = weight * if is_title { self.title_weight } else { 1.0 };
                sum += part;
                let stronger = strongest.is_none_or(|(most, _)| part > most);
                strongest = if stronger { Some((part, name)) } else { strongest };
            }
            let cosine = graph.cosines.map_or(1.0, |cosines| cosines.get(unit).copied().unwrap_or(usual));
            let gain = (self.base + cosine.max(0.0)) * sum;
            if let Some((_, via)) = strongest.filter(|_| gain > 0.0) {
                reached.insert(*unit, (gain, via));
            }
        }
        reached
    }
}

fn mean<'c>(cosines: impl ExactSizeIterator<Item = &'c f64>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of units are far below 2^52")]
    let count = cosines.len().max(1) as f64;
    cosines.sum::<f64>() / count
}

/// The weight of each name that the seeds lend: rarer ones and those of earlier seeds weigh more.
fn lent<Unit, Name>(seeds: &[Unit], graph: Graph<'_, Unit, Name>) -> HashMap<Name, f64>
where
    Unit: Copy + Ord + Hash,
    Name: Copy + Ord + Hash,
{
    // One unit leads nowhere else, and what two in a hundred have leads everywhere.
    let most = (graph.units / 50).max(5);
    let mut weights: HashMap<Name, f64> = HashMap::new();
    let mut rank = 0.0;
    for seed in seeds {
        rank += 1.0;
        for (name, _) in graph.keys.get(seed).map(|names| distinct(names)).unwrap_or_default() {
            let frequency = graph.frequencies.get(&name).copied().unwrap_or_default();
            if (2..=most).contains(&frequency) && !graph.named.contains(&name) {
                #[expect(clippy::cast_precision_loss, reason = "counts of units are far below 2^52")]
                let frequency = frequency as f64;
                *weights.entry(name).or_default() += 1.0 / (rank * frequency);
            }
        }
    }
    weights
}

/// Each name once, in the order of their ids; a title if any of its mentions is one.
fn distinct<Name: Copy + Ord>(names: &[(Name, bool)]) -> Vec<(Name, bool)> {
    let mut distinct = names.to_vec();
    distinct.sort_by_key(|(name, is_title)| (*name, !is_title));
    distinct.dedup_by_key(|(name, _)| *name);
    distinct
}

#[cfg(test)]
mod tests;
