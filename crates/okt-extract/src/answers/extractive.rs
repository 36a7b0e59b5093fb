//! An answer without a model: the facts that say most about the question and least twice.

use std::collections::HashSet;

use okt_model::{ConceptId, SourceId};

use crate::ground::{Stem, each_word};

/// What a fact's nearness to the question counts beside what it repeats.
const NEARNESS: f64 = 0.7;

/// What is chosen from.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'c> {
    pub text: &'c str,
    /// How near it is to the question; comparable among these only.
    pub score: f64,
    /// What it is from: of one source not more than two in five are taken while there are others.
    pub source: Option<SourceId>,
}

/// The places of at most so many texts of which each says something new, the first of them first (maximal marginal relevance).
pub fn distinct(all: &[Candidate<'_>], most: usize) -> Vec<usize> {
    let words: Vec<HashSet<_>> = all.iter().map(|one| stems(one.text)).collect();
    let best = all.iter().map(|one| one.score).fold(f64::MIN_POSITIVE, f64::max);
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < most {
        let of_source = |at: usize| chosen.iter().filter(|one| all[**one].source == all[at].source).count();
        let open: Vec<usize> = (0..all.len()).filter(|at| !chosen.contains(at)).collect();
        let fair: Vec<usize> = open
            .iter()
            .copied()
            .filter(|at| all[*at].source.is_none() || of_source(*at) * 5 < most.max(3) * 2)
            .collect();
        let from = if fair.is_empty() { open } else { fair };
        let worth = |at: usize| {
            let twice = chosen.iter().map(|other| shared(&words[at], &words[*other])).fold(0.0, f64::max);
            NEARNESS * all[at].score / best - (1.0 - NEARNESS) * twice
        };
        let next =
            from.into_iter().max_by(|one, other| worth(*one).total_cmp(&worth(*other)).then(other.cmp(one)));
        let Some(next) = next else { break };
        chosen.push(next);
    }
    chosen
}

/// The places of at most so many texts in the order in which they are shown: those of one group together, the group of the best one
/// first, and in a group the newest first.
pub fn extractive(
    all: &[Candidate<'_>],
    groups: &[Option<ConceptId>],
    years: &[Option<i32>],
    most: usize,
) -> Vec<usize> {
    let chosen = distinct(all, most);
    let mut order: Vec<Option<ConceptId>> = Vec::new();
    for at in &chosen {
        let group = groups.get(*at).copied().flatten();
        if !order.contains(&group) {
            order.push(group);
        }
    }
    let mut shown = Vec::new();
    for group in order {
        let mut of: Vec<usize> =
            chosen.iter().copied().filter(|at| groups.get(*at).copied().flatten() == group).collect();
        of.sort_by_key(|at| std::cmp::Reverse(years.get(*at).copied().flatten()));
        shown.extend(of);
    }
    shown
}

/// Whether a text has half of what a question asks about: one that has less is near the question, and no answer to it.
pub fn is_near_question(question: &str, text: &str) -> bool {
    let asked = stems(question);
    // What every question has.
    let fillers = stems(FILLERS);
    let asked: Vec<Stem> = asked.into_iter().filter(|stem| !fillers.contains(stem)).collect();
    let said = stems(text);
    let both = asked.iter().filter(|stem| said.contains(stem)).count();
    asked.is_empty() || both * 2 >= asked.len()
}

/// Words of more than three letters that ask and name nothing.
const FILLERS: &str = "about does have many much said says some tell than that their them then there these they this those were                        what when where which while whom whose will with would according                        welche welcher welches wann warum wieviel viele sind wird wurde haben                        quel quelle quels quand combien pourquoi sont cual cuando cuantos porque";

fn stems(text: &str) -> HashSet<Stem> {
    let mut stems = HashSet::new();
    each_word(text, |word| {
        if word.has_content() {
            stems.insert(word.stem());
        }
    });
    stems
}

fn shared(one: &HashSet<Stem>, other: &HashSet<Stem>) -> f64 {
    let all = one.union(other).count();
    if all == 0 {
        return 0.0;
    }
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    count(one.intersection(other).count()) / count(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(text: &str, score: f64, source: SourceId) -> Candidate<'_> {
        Candidate { text, score, source: Some(source) }
    }

    #[test]
    fn nothing_is_said_twice_and_no_source_says_all() {
        let (a, b, c) = (SourceId::mint(), SourceId::mint(), SourceId::mint());
        let all = [
            candidate("Gulls nest on the island of Skomer.", 1.0, a),
            candidate("Gulls nest on the island Skomer.", 0.9, b),
            candidate("Terns left Skokholm in 1950.", 0.9, a),
            candidate("Puffins breed near Tromsø.", 0.8, a),
            candidate("Auks stay at sea in winter.", 0.5, c),
        ];
        assert_eq!(
            distinct(&all, 3),
            [0, 2, 4],
            "the second repeats the first, the fourth is the third of one source"
        );
        assert_eq!(distinct(&all, 9).len(), 5);
        assert!(distinct(&[], 3).is_empty());
    }

    #[test]
    fn a_fact_that_shares_a_word_is_no_answer() {
        let question = "How high are the tides in the Bay of Fundy?";
        assert!(is_near_question(question, "The Bay of Fundy has the highest tides of the world."));
        assert!(!is_near_question("What is the population of Fundy National Park?", "Fundy has tides."));
        assert!(
            is_near_question("What is it?", "Gulls nest."),
            "it asks about nothing that could be compared"
        );
    }

    #[test]
    fn what_belongs_together_stands_together_and_the_newest_first() {
        let all = [
            candidate("Gulls nest on Skomer.", 1.0, SourceId::mint()),
            candidate("Terns left Skokholm in 1950.", 0.9, SourceId::mint()),
            candidate("Herring are what they eat.", 0.8, SourceId::mint()),
        ];
        let (a, b) = (Some(ConceptId::mint()), Some(ConceptId::mint()));
        assert_eq!(extractive(&all, &[a, b, a], &[Some(1990), None, Some(2020)], 6), [2, 0, 1]);
    }
}
