//! What the model writes of facts: summaries and definitions, as told or as wild as models may be.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::Citing;

/// The answer to a question about a concept: sentences, or images.
pub(super) fn written(asked: &str, citing: Citing) -> String {
    if let Some(most) = asked.lines().find_map(|line| line.strip_prefix("Pick at most ")) {
        let most: u64 = most.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(1);
        return json!({ "images": (1..=most).rev().collect::<Vec<u64>>() }).to_string();
    }
    let mut sentences: Vec<(String, Vec<u64>)> = Vec::new();
    // Whether the fact before this one is the first of a pair that contradicts itself.
    let mut first = true;
    for line in asked.lines() {
        if let Some((text, numbers)) = cited(line) {
            sentences.push((text.to_owned(), numbers));
        } else if line == "--" {
            first = true;
        } else if let Some((number, text)) = super::answers::sentence(line) {
            let text = text.split_once(" sources) ").map_or(text, |(_, text)| text);
            if citing != Citing::OneSided || first {
                sentences.push((text.to_owned(), vec![number]));
            }
            first = false;
        }
    }
    if citing == Citing::OneSided {
        // Of what contradicts itself only what came first.
        let pairs: Vec<&str> = asked.split("present both sides or neither:\n").skip(1).collect();
        let seconds: Vec<u64> = pairs
            .iter()
            .flat_map(|pairs| pairs.split("--\n"))
            .filter_map(|pair| super::answers::sentence(pair.lines().nth(1)?).map(|(number, _)| number))
            .collect();
        sentences.retain(|(_, numbers)| numbers.iter().all(|number| !seconds.contains(number)));
    }
    let illustrated = asked.lines().any(|line| line.starts_with("Image 1: "));
    let mut said: Vec<Value> = sentences
        .iter()
        .enumerate()
        .map(|(at, (text, facts))| {
            let image = u64::from(at == 0 && illustrated);
            json!({ "text": text, "facts": facts, "image": image })
        })
        .collect();
    if citing == Citing::Silent {
        said.clear();
    }
    if citing == Citing::Wild {
        let mut hasher = DefaultHasher::new();
        asked.hash(&mut hasher);
        run_wild(&mut said, hasher.finish());
    }
    json!({ "sentences": said }).to_string()
}

/// Invents, swaps, truncates and leaves out what sentences rest on, and says what no fact says.
fn run_wild(said: &mut Vec<Value>, seed: u64) {
    let count = u64::try_from(said.len()).unwrap_or(1).max(1);
    for (at, sentence) in said.iter_mut().enumerate() {
        let chance = seed.rotate_left(u32::try_from(at * 7 % 64).unwrap_or(0)) % 9;
        match chance {
            0 => sentence["facts"] = json!([count + 40]),
            1 => sentence["facts"] = json!([]),
            2 => sentence["facts"] = json!([1 + seed % count]),
            3 => sentence["text"] = json!("In 1789 the palace of Atlantis was sold to Poseidon."),
            4 => {
                sentence["text"] =
                    json!("See [this](<fact:00000000-0000-7000-8000-000000000000>) and <b>that</b>.");
            }
            6 => sentence["text"] = json!("It gave [honey](<fact:00000000-0000-70"),
            5 => sentence["facts"] = json!([-1, 0, count]),
            _ => {}
        }
    }
    said.push(
        json!({ "heading": "Atlantis was sold", "text": "Everybody knows that.", "facts": [], "image": 7 }),
    );
}

/// `- A sentence. [1, 4]`
fn cited(line: &str) -> Option<(&str, Vec<u64>)> {
    let (text, numbers) = line.strip_prefix("- ")?.strip_suffix(']')?.rsplit_once(" [")?;
    let numbers = numbers.split(", ").map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((text, numbers))
}
