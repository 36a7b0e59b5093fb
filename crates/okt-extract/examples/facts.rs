//! Shows what the extraction without a model makes of a set of texts, to be read and judged by a person.
//!
//! `cargo run -p okt-extract --example facts -- FILE [--seed N] [--count N] [--half 0|1] [--language en] [--why REASON | --text NO]`
//!
//! FILE is JSON, either an array or one object per line, each with a text in `body`, `text` or `abstract` (an array of
//! sentences is joined). Prints facts per text, what was left out by reason, and facts drawn at random; with `--why`,
//! sentences that were left out for that reason instead; with `--text`, every sentence of one text with what became of it.

#![expect(clippy::print_stdout, reason = "it is made to be read")]

use std::collections::BTreeMap;
use std::error::Error;

use okt_extract::{Text, extractive};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("the first argument is a file")?;
    let options: BTreeMap<String, String> =
        std::iter::from_fn(|| Some((arguments.next()?, arguments.next()?))).collect();
    let number = |name: &str, default: u64| options.get(name).map_or(Ok(default), |value| value.parse());
    let (seed, count) = (number("--seed", 1)?, number("--count", 50)?);
    let half = options.get("--half").map(|half| half.parse::<usize>()).transpose()?;
    let language = options.get("--language").map_or("en", String::as_str);

    let texts = texts(&std::fs::read_to_string(file)?)?;
    if let Some(no) = options.get("--text") {
        show(texts.get(no.parse::<usize>()?).ok_or("there is no such text")?, language);
        return Ok(());
    }
    let mut facts: Vec<(usize, String)> = Vec::new();
    let mut per_text = Vec::new();
    let mut dropped: BTreeMap<&str, usize> = BTreeMap::new();
    for (no, body) in texts.iter().enumerate().filter(|(no, _)| half.is_none_or(|half| no % 2 == half)) {
        let extracted = extract(body, language);
        per_text.push((extracted.facts.len(), no));
        for left in &extracted.dropped {
            *dropped.entry(left.reason.as_str()).or_default() += left.count;
        }
        match options.get("--why") {
            Some(why) => {
                facts.extend(left_out(body, language, why).into_iter().map(|sentence| (no, sentence)));
            }
            None => facts.extend(extracted.facts.into_iter().map(|fact| (no, fact.text))),
        }
    }
    println!("texts {}, listed {}, left out {dropped:?}", per_text.len(), facts.len());
    per_text.sort_unstable();
    let few: Vec<_> = per_text.iter().take(20).map(|(facts, no)| format!("{facts} (text {no})")).collect();
    let median = per_text.get(per_text.len() / 2).map_or(0, |(facts, _)| *facts);
    println!("facts per text: median {median}; fewest {}", few.join(", "));
    shuffle(&mut facts, seed);
    for (no, fact) in facts.into_iter().take(usize::try_from(count)?) {
        println!("[{no}] {fact}");
    }
    Ok(())
}

fn texts(json: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let objects: Vec<Value> = match serde_json::from_str(json) {
        Ok(objects) => objects,
        Err(_) => json.lines().map(serde_json::from_str).collect::<Result<_, _>>()?,
    };
    let text = |object: &Value| {
        let text = ["body", "text", "abstract"].iter().find_map(|key| object.get(key));
        match text {
            Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        }
    };
    Ok(objects.iter().map(text).collect())
}

fn offsets(body: &str, language: &str) -> Vec<(i32, i32)> {
    let place = |place: u32| i32::try_from(place).unwrap_or(i32::MAX);
    let sentences = okt_parse::sentences(body, Some(language));
    sentences.into_iter().map(|(start, end)| (place(start), place(end))).collect()
}

fn extract(body: &str, language: &str) -> okt_extract::Extracted {
    extractive::extract(&Text::new(body, &offsets(body, language)), Some(language))
}

fn show(body: &str, language: &str) {
    let offsets = offsets(body, language);
    let text = Text::new(body, &offsets);
    for (no, statement) in extractive::statements(&text, Some(language)).into_iter().enumerate() {
        match statement {
            Ok(statement) => println!("{:<15} {statement}", "+"),
            Err(reason) => println!("{:<15.15} {}", reason.as_str(), text.sentence(no)),
        }
    }
}

fn left_out(body: &str, language: &str, why: &str) -> Vec<String> {
    let text_offsets = offsets(body, language);
    let text = Text::new(body, &text_offsets);
    let statements = extractive::statements(&text, Some(language)).into_iter().enumerate();
    let wanted =
        statements.filter(|(_, statement)| statement.as_ref().is_err_and(|reason| reason.as_str() == why));
    wanted.map(|(no, _)| text.sentence(no).to_owned()).collect()
}

/// Fisher-Yates with a small generator of its own, so that the same seed draws the same facts everywhere.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bound = last as u64 + 1;
        items.swap(last, usize::try_from(state % bound).unwrap_or(0));
    }
}
