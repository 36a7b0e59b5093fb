//! Precision and recall on facts of the project's own articles.

use std::fmt::Write;

use super::{contexts, extract};

/// What a person expects of a fact.
struct Expected<'g> {
    fact: &'g str,
    concepts: Vec<Concept<'g>>,
}

struct Concept<'g> {
    names: Vec<&'g str>,
    label: Option<&'g str>,
    optional: bool,
}

impl Concept<'_> {
    fn is(&self, name: &str) -> bool {
        self.names.iter().any(|other| other.to_lowercase() == name.to_lowercase())
    }
}

#[derive(Default)]
struct Figures {
    right: usize,
    wrong: usize,
    missed: usize,
    typed: usize,
    mistyped: usize,
}

#[test]
fn the_gold_facts_give_the_concepts_that_a_person_expects() {
    let sources = sources();
    let facts: usize = sources.iter().map(|(_, facts)| facts.len()).sum();
    assert_eq!(facts, 60);
    let (mut figures, mut log) = (Figures::default(), String::new());
    for (title, expected) in &sources {
        let texts: Vec<&str> = expected.iter().map(|expected| expected.fact).collect();
        for (expected, found) in expected.iter().zip(extract(&texts, Some(title), Some("en"), &contexts())) {
            let named = |name: &str| expected.concepts.iter().find(|concept| concept.is(name));
            let wrong: Vec<&str> =
                found.iter().map(|found| found.name.as_str()).filter(|name| named(name).is_none()).collect();
            let missed: Vec<&str> = expected
                .concepts
                .iter()
                .filter(|concept| !concept.optional && !found.iter().any(|found| concept.is(&found.name)))
                .map(|concept| concept.names[0])
                .collect();
            for found in &found {
                let Some(label) = named(&found.name).and_then(|concept| concept.label) else { continue };
                if label == found.place.label() {
                    figures.typed += 1;
                } else {
                    figures.mistyped += 1;
                    let _ = writeln!(log, "  {} is {}, not {label}", found.name, found.place.label());
                }
            }
            figures.right += found.len() - wrong.len();
            figures.wrong += wrong.len();
            figures.missed += missed.len();
            if !wrong.is_empty() || !missed.is_empty() {
                let _ = writeln!(log, "{}\n  wrong {wrong:?} missed {missed:?}", expected.fact);
            }
        }
    }
    let share = |part: usize, rest: usize| part * 1_000 / (part + rest).max(1);
    let required: usize = sources
        .iter()
        .flat_map(|(_, facts)| facts)
        .flat_map(|fact| &fact.concepts)
        .filter(|concept| !concept.optional)
        .count();
    let (precision, recall, types) = (
        share(figures.right, figures.wrong),
        share(required - figures.missed, figures.missed),
        share(figures.typed, figures.mistyped),
    );
    println!(
        "{log}precision {precision}, recall {recall}, contexts {types} (of 1000); {} found, {required} expected",
        figures.right + figures.wrong
    );
    assert!(
        precision >= 960 && recall >= 960 && types >= 940,
        "precision {precision}, recall {recall}, contexts {types}"
    );
}

fn sources() -> Vec<(&'static str, Vec<Expected<'static>>)> {
    let mut sources: Vec<(&str, Vec<Expected<'_>>)> = Vec::new();
    for line in include_str!("gold.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            sources.push((title, Vec::new()));
            continue;
        }
        let facts = &mut sources.last_mut().expect("a title comes first").1;
        match line.strip_prefix("  ") {
            Some(concepts) => {
                let fact = facts.last_mut().expect("a fact comes first");
                fact.concepts = concepts.split("; ").map(concept).collect();
            }
            None => facts.push(Expected { fact: line, concepts: Vec::new() }),
        }
    }
    sources
}

fn concept(text: &'static str) -> Concept<'static> {
    let (text, optional) = text.strip_prefix('?').map_or((text, false), |text| (text, true));
    let (names, label) =
        text.split_once(" [").map_or((text, None), |(names, label)| (names, label.strip_suffix(']')));
    Concept { names: names.split('/').collect(), label, optional }
}
