//! What steps change and stand on, by name.

use std::collections::BTreeMap;

/// Longer names are cut off, so that a key fits into an index.
const LONGEST: usize = 200;

/// Keys, and whether the step changed what they name or only stands on it.
#[derive(Default)]
pub(super) struct Keys(BTreeMap<String, bool>);

/// That a concept is there.
pub(super) fn concept(no: i64) -> String {
    format!("concept {no}")
}

impl Keys {
    pub fn stands_on(&mut self, concepts: &[i64]) {
        for no in concepts {
            self.0.entry(concept(*no)).or_insert(false);
        }
    }

    /// A concept that came to be.
    pub fn made(&mut self, no: i64) {
        self.changed(concept(no));
    }

    /// What a concept is a part of.
    pub fn tree(&mut self, no: i64) {
        self.changed(format!("tree {no}"));
    }

    /// What a concept is called, and where.
    pub fn named(&mut self, no: i64) {
        self.changed(format!("named {no}"));
    }

    /// Who has a name in a context.
    pub fn name(&mut self, context: i64, key: &str) {
        self.changed(format!("name {context} {}", cut(key)));
    }

    pub fn alias(&mut self, concept: i64, key: &str) {
        self.changed(format!("alias {concept} {}", cut(key)));
    }

    pub fn link(&mut self, concept: i64, hash: &str) {
        self.changed(format!("link {concept} {hash}"));
    }

    /// The status of a fact.
    pub fn fact(&mut self, hash: &str) {
        self.changed(format!("fact {hash}"));
    }

    /// What is said of two facts.
    pub fn contradiction(&mut self, one: &str, other: &str) {
        self.changed(format!("contradiction {one} {other}"));
    }

    pub fn columns(&self) -> (Vec<String>, Vec<bool>) {
        self.0.iter().map(|(key, changed)| (key.clone(), *changed)).unzip()
    }

    fn changed(&mut self, key: String) {
        self.0.insert(key, true);
    }
}

fn cut(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}
