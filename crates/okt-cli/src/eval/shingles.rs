//! Texts compared by the runs of four words that they share.

use std::collections::HashMap;

/// How much of one text is in another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlap {
    pub shared: u32,
    /// Only in what was read.
    pub extra: u32,
    /// Only in what is wanted.
    pub missing: u32,
}

impl Overlap {
    pub fn of(read: &str, wanted: &str) -> Self {
        let (read, wanted) = (words(read), words(wanted));
        let (read, wanted) = (shingles(&read), shingles(&wanted));
        let shared: u32 =
            wanted.iter().map(|(run, count)| read.get(run).map_or(0, |read| *read.min(count))).sum();
        let extra = read.values().sum::<u32>() - shared;
        let missing = wanted.values().sum::<u32>() - shared;
        Self { shared, extra, missing }
    }

    /// None where nothing was read.
    pub fn precision(self) -> Option<f64> {
        share(self.shared, self.shared + self.extra)
    }

    /// None where nothing is wanted.
    pub fn recall(self) -> Option<f64> {
        share(self.shared, self.shared + self.missing)
    }
}

fn share(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

pub fn f1(precision: f64, recall: f64) -> f64 {
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}

/// The mean of what is there.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count == 0.0 { 0.0 } else { sum / count }
}

/// Letters, digits and `_`; everything else separates.
pub fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect()
}

/// Runs of four words with how often they occur; a text of fewer words is one run.
fn shingles<'a>(words: &'a [&'a str]) -> HashMap<&'a [&'a str], u32> {
    let mut counts = HashMap::new();
    if !words.is_empty() {
        for run in words.windows(words.len().min(4)) {
            *counts.entry(run).or_default() += 1;
        }
    }
    counts
}
