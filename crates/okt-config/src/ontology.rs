//! The labels that a repository's contexts are chosen from.

/// English labels of the classes of the `DBpedia` ontology, in alphabetical order.
pub(crate) fn labels() -> impl Iterator<Item = &'static str> {
    include_str!("../ontology.txt").lines().filter(|line| !line.starts_with('#'))
}
