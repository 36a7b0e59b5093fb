//! Pages of our own making, against what a person calls their main text. Public pages are measured by `okt eval html`.
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use okt_parse::ParseError;
use okt_parse::worker::Head;

/// Of each page and of all together. No page is perfect for its own sake: the texts are what people wrote.
const LEAST: f64 = 0.9;
const MEAN: f64 = 0.97;

#[test]
fn the_main_text_of_a_page_is_what_a_person_calls_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("gold");
    let mut scores = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "html") {
            continue;
        }
        let engine = Err(ParseError::NoPdfEngine("none is needed here".to_owned()));
        let document =
            okt_parse::parse(engine, &fs::read(&path).unwrap(), &Head::default(), &mut |_| {}).unwrap();
        let wanted = fs::read_to_string(path.with_extension("txt")).unwrap();
        scores.push((f1(&document.text, &wanted), path.file_stem().unwrap().to_owned()));
    }
    scores.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mean =
        scores.iter().map(|(score, _)| score).sum::<f64>() / f64::from(u32::try_from(scores.len()).unwrap());
    assert!(scores.len() > 20 && scores[0].0 >= LEAST && mean >= MEAN, "{mean:.4} {scores:.4?}");
}

fn f1(read: &str, wanted: &str) -> f64 {
    let (read, wanted) = (counted(read), counted(wanted));
    let shared: u32 =
        wanted.iter().map(|(word, count)| read.get(word).map_or(0, |read| *read.min(count))).sum();
    2.0 * f64::from(shared) / f64::from(read.values().sum::<u32>() + wanted.values().sum::<u32>()).max(1.0)
}

/// Scripts without spaces are compared character by character.
fn counted(text: &str) -> HashMap<String, u32> {
    let unspaced =
        |c: char| matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
    let mut counts = HashMap::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if word.chars().any(unspaced) {
            word.chars().for_each(|c| *counts.entry(c.to_string()).or_default() += 1);
        } else {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}
