//! Shows what concepts the rules find in the facts of a set of texts, to be read and judged by a person.
//!
//! `cargo run -p okt-extract --example concepts -- FILE [--count N] [--skip N] [--language en] [--names 1]`
//!
//! FILE is a JSON array of objects with `body` and `title`. Prints for each text its facts with their concepts, then how
//! often each concept was found, by context, and the time per fact.

#![expect(clippy::print_stdout, reason = "it is made to be read")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use okt_extract::{Text, concepts, extractive};
use okt_model::Context;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("the first argument is a file")?;
    let options: BTreeMap<String, String> =
        std::iter::from_fn(|| Some((arguments.next()?, arguments.next()?))).collect();
    let number = |name: &str, default: usize| options.get(name).map_or(Ok(default), |value| value.parse());
    let (count, skip) = (number("--count", 3)?, number("--skip", 0)?);
    let language = options.get("--language").map_or("en", String::as_str);
    let texts: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let contexts = contexts();
    let mut tally: BTreeMap<(String, String, &str), usize> = BTreeMap::new();
    let (mut facts_read, mut took) = (0, Duration::ZERO);
    // The table is unpacked at the first use.
    concepts::extract(&["Bees make honey."], None, None, &contexts);
    for text in texts.iter().skip(skip).take(count) {
        let (body, title) = (text["body"].as_str().unwrap_or_default(), text["title"].as_str());
        let facts = facts(body, language);
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        let start = Instant::now();
        let found = concepts::extract(&facts, title, Some(language), &contexts);
        took += start.elapsed();
        facts_read += facts.len();
        println!("= {}", title.unwrap_or_default());
        for (fact, found) in facts.iter().zip(found) {
            println!("{fact}");
            let shown = found
                .iter()
                .map(|found| format!("{} [{}] {}", found.name, found.place.label(), found.found_by.as_str()));
            println!("    {}", shown.collect::<Vec<_>>().join("; "));
            for found in found {
                *tally
                    .entry((found.place.label().to_owned(), found.name, found.found_by.as_str()))
                    .or_default() += 1;
            }
        }
    }
    println!(
        "{:#?}",
        tally
            .into_iter()
            .map(|((label, name, by), count)| format!("{label}: {name} ({by}, {count})"))
            .collect::<Vec<_>>()
    );
    println!("{facts_read} facts, {:?} each", took / u32::try_from(facts_read.max(1))?);
    Ok(())
}

fn facts(body: &str, language: &str) -> Vec<String> {
    let place = |place: u32| i32::try_from(place).unwrap_or(i32::MAX);
    let sentences = okt_parse::sentences(body, Some(language));
    let offsets: Vec<_> = sentences.into_iter().map(|(start, end)| (place(start), place(end))).collect();
    extractive::extract(&Text::new(body, &offsets), Some(language))
        .facts
        .into_iter()
        .map(|fact| fact.text)
        .collect()
}

fn contexts() -> Vec<Context> {
    let lines = include_str!("../nouns/classes.txt").lines().filter(|line| !line.starts_with('#'));
    let context = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let (label, ontology_class) = (fields.next().unwrap_or_default(), fields.next());
        Context { label, description: String::new(), ontology_class, concept_count: 0, merging_into: None }
    };
    lines.map(context).collect()
}
