//! `WordNet` as Debian's `wordnet-base` has it: `data.noun`, `index.{noun,adj,adv}`, `data.adj`, `cntlist.rev`, `noun.exc`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use super::{Fallible, UNTYPED};

/// A set of synonyms.
pub struct Synset {
    pub words: Vec<String>,
    /// What it is a kind or an instance of.
    above: Vec<String>,
    pub instance: bool,
}

/// The nouns of `WordNet`, and what it knows of other words as far as it tells them from nouns.
pub struct WordNet {
    pub synsets: HashMap<String, Synset>,
    /// The senses of a noun, the most frequent first.
    pub nouns: BTreeMap<String, Vec<String>>,
    pub adjectives: HashSet<String>,
    /// Those that say what something belongs to: `tidal`.
    pub relational: BTreeSet<String>,
    /// How often a word was a noun, a verb, or an adjective or adverb in texts that people have marked.
    pub counts: HashMap<String, [u32; 3]>,
    /// Irregular plurals.
    pub plurals: Vec<(String, String)>,
}

impl WordNet {
    pub fn read(folder: &Path) -> Fallible<Self> {
        let file = |name: &str| fs::read_to_string(folder.join(name));
        let lines = |text: &str| -> Vec<Vec<String>> {
            let entries = text.lines().filter(|line| !line.starts_with(' '));
            let fields =
                |line: &str| line.split(" | ").next().unwrap_or(line).split(' ').map(str::to_owned).collect();
            entries.map(fields).collect()
        };
        let synsets = lines(&file("data.noun")?).iter().filter_map(|line| synset(line)).collect();
        let senses = |line: &Vec<String>| {
            let line: Vec<&String> = line.iter().filter(|field| !field.is_empty()).collect();
            let count: usize = line.get(2)?.parse().ok()?;
            let all = line.get(line.len().checked_sub(count)?..)?;
            Some((line[0].clone(), all.iter().map(|sense| (*sense).clone()).collect()))
        };
        let nouns = lines(&file("index.noun")?).iter().filter_map(senses).collect();
        let first =
            |name: &str| Ok::<_, Box<dyn Error>>(lines(&file(name)?).into_iter().map(|line| line[0].clone()));
        let adjectives = first("index.adj")?.chain(first("index.adv")?).collect();
        let mut relational = BTreeSet::new();
        for line in lines(&file("data.adj")?) {
            if line.iter().any(|field| field == "\\") {
                relational.extend(line.get(4).map(|word| plain(word)));
            }
        }
        let mut counts: HashMap<String, [u32; 3]> = HashMap::new();
        for line in file("cntlist.rev")?.lines() {
            let mut fields = line.split(' ');
            let (Some(key), Some(count)) = (fields.next(), fields.nth(1)) else { continue };
            let Some((word, kind)) = key.split_once('%') else { continue };
            let kind = match kind.as_bytes().first() {
                Some(b'1') => 0,
                Some(b'2') => 1,
                _ => 2,
            };
            counts.entry(word.to_owned()).or_default()[kind] += count.parse::<u32>()?;
        }
        let irregular = file("noun.exc")?;
        let pair = |line: &str| line.split_once(' ').map(|(plural, one)| (plural.to_owned(), one.to_owned()));
        let plurals = irregular.lines().filter_map(pair).collect();
        Ok(Self { synsets, nouns, adjectives, relational, counts, plurals })
    }

    /// The contexts of the synsets that `roots.txt` names.
    pub fn roots(&self, list: &str) -> Fallible<HashMap<String, String>> {
        let mut roots = HashMap::new();
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let (label, senses) = line.split_once(": ").ok_or_else(|| format!("no label: {line}"))?;
            for sense in senses.split(' ') {
                let found = sense.split_once('#').and_then(|(word, number)| {
                    self.nouns.get(&word.to_lowercase())?.get(number.parse::<usize>().ok()?.checked_sub(1)?)
                });
                let synset = found.ok_or_else(|| format!("no such sense: {sense}"))?;
                // What is never a concept is listed first, and a context goes before it.
                roots.insert(synset.clone(), label.to_owned());
            }
        }
        Ok(roots)
    }

    /// The context of the nearest root above.
    pub fn label<'r>(&self, sense: &str, roots: &'r HashMap<String, String>) -> &'r str {
        let (mut level, mut seen) = (vec![sense.to_owned()], HashSet::new());
        while !level.is_empty() {
            if let Some(label) = level.iter().find_map(|sense| roots.get(sense)) {
                return label;
            }
            level.retain(|sense| seen.insert(sense.clone()));
            level = level
                .iter()
                .filter_map(|sense| self.synsets.get(sense))
                .flat_map(|set| set.above.clone())
                .collect();
        }
        UNTYPED
    }

    /// How a word is written in a synset.
    pub fn written(&self, sense: &str, word: &str) -> Option<&str> {
        self.synsets[sense].words.iter().find(|written| written.to_lowercase() == word).map(String::as_str)
    }
}

fn synset(line: &[String]) -> Option<(String, Synset)> {
    let count = usize::from_str_radix(line.get(3)?, 16).ok()?;
    let words = (0..count).map(|at| Some(plain(line.get(4 + 2 * at)?))).collect::<Option<_>>()?;
    let pointers = line.get(5 + 2 * count..)?.chunks_exact(4);
    let above: Vec<_> = pointers.filter(|pointer| matches!(pointer[0].as_str(), "@" | "@i")).collect();
    let instance = above.iter().any(|pointer| pointer[0] == "@i");
    let above = above.iter().map(|pointer| pointer[1].clone()).collect();
    Some((line[0].clone(), Synset { words, above, instance }))
}

/// Without the marks of `WordNet`: `galore(ip)`.
fn plain(word: &str) -> String {
    word.split('(').next().unwrap_or(word).to_owned()
}
