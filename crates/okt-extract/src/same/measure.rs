//! How the rule does on labelled pairs.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Pairs of one kind: how many there are, and which of them became one fact.
#[derive(Debug, Default)]
pub struct Measured {
    pub pairs: usize,
    pub merged: Vec<(String, String, Vec<super::PermittedDifference>)>,
}

/// By whether they are to become one fact, and by kind.
pub type Pairs = BTreeMap<(bool, String), Measured>;

#[derive(Deserialize)]
struct Line {
    a: String,
    b: String,
    merge: u8,
    kind: String,
}

/// Reads one pair for each line, as JSON: `a` and `b`, `merge` (1 where they say the same), `kind`.
pub fn measure(lines: &str) -> Result<Pairs, serde_json::Error> {
    let mut pairs = Pairs::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let Line { a, b, merge, kind } = serde_json::from_str(line)?;
        let measured = pairs.entry((merge == 1, kind)).or_default();
        measured.pairs += 1;
        if let Some(by) = super::same_fact(&a, &b) {
            measured.merged.push((a, b, by));
        }
    }
    Ok(pairs)
}
