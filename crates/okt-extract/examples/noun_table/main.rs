//! Builds the noun table, `nouns/nouns.zz`, out of `WordNet` 3.0 and the two lists beside it.
//!
//! `cargo run --release -p okt-extract --example noun_table -- /usr/share/wordnet`
//!
//! The directory is that of Debian's `wordnet-base`. The same input gives the same file. `src/concepts/nouns.rs` says how it is read.

#![expect(clippy::print_stdout, reason = "it is made to be read")]

mod wordnet;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use wordnet::WordNet;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Not a concept, whatever stands before it.
const NEVER: &str = "-";
/// Of no context.
const UNTYPED: &str = ".";
/// So many senses are looked at before a word is of no context.
const SENSES: usize = 3;

fn main() -> Fallible<()> {
    let folder = std::env::args().nth(1).ok_or("the first argument is the directory of WordNet")?;
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("nouns");
    let wordnet = WordNet::read(Path::new(&folder))?;
    let roots = wordnet.roots(&fs::read_to_string(lists.join("roots.txt"))?)?;
    let mut table = Table::default();
    table.fill(&wordnet, &roots);
    table.shorten(&wordnet);
    table.add(&fs::read_to_string(lists.join("added.txt"))?)?;
    let text = table.written();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes())?;
    let packed = packed.finish()?;
    fs::write(lists.join("nouns.zz"), &packed)?;
    println!("{} entries, {} bytes, {} packed", table.entries.len(), text.len(), packed.len());
    Ok(())
}

#[derive(Default)]
struct Entry {
    /// As a common noun.
    common: Option<String>,
    /// As a name.
    name: Option<String>,
    flags: String,
    /// What it is a spelling, an abbreviation or the plural of.
    means: Option<String>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<String, Entry>,
}

impl Table {
    fn fill(&mut self, wordnet: &WordNet, roots: &HashMap<String, String>) {
        let mut given: HashMap<String, usize> = HashMap::new();
        for (word, senses) in &wordnet.nouns {
            let is_name = |sense: &&String| {
                wordnet.written(sense, word).is_some_and(|written| written.contains(char::is_uppercase))
            };
            let typed = |senses: &[&String]| -> Option<String> {
                let first = senses.first()?;
                let labels: Vec<&str> =
                    senses.iter().take(SENSES).map(|sense| wordnet.label(sense, roots)).collect();
                let never = wordnet.label(first, roots) == NEVER;
                let some = labels.into_iter().find(|label| ![NEVER, UNTYPED].contains(label));
                Some(if never { NEVER } else { some.unwrap_or(UNTYPED) }.to_owned())
            };
            let (names, commons): (Vec<&String>, Vec<&String>) = senses.iter().partition(is_name);
            let senses_of_name: Vec<&str> =
                names.iter().take(SENSES).map(|sense| wordnet.label(sense, roots)).collect();
            let name = typed(&names).map(|first| meant_today(first, &senses_of_name));
            let mut entry = Entry { common: typed(&commons), name, ..Entry::default() };
            let [noun, verb, other] = wordnet.counts.get(word).copied().unwrap_or_default();
            let adjective = wordnet.adjectives.contains(word);
            if verb > noun {
                entry.flags.push('v');
            } else if verb * 6 >= noun && verb > 0 {
                entry.flags.push('w');
            }
            if other > noun || (noun == 0 && adjective) {
                entry.flags.push('a');
            }
            // What everybody speaks of is no concept as a word alone, unless it is a thing that can be pointed at.
            let often = match entry.common.as_deref() {
                Some(label) if BROAD.contains(&label) => noun >= 8,
                Some(label) if LEARNED.contains(&label) => noun >= 20,
                Some(label) if NAMED.contains(&label) => noun >= 8,
                _ => false,
            };
            if often {
                entry.flags.push('n');
            }
            // Symbols of elements and abbreviations mean something else as often.
            if word.len() <= 3
                && names.iter().all(|sense| wordnet.written(sense, word).is_some_and(is_symbol))
            {
                entry.name = None;
            }
            if wordnet.relational.contains(word) {
                entry.flags.push('r');
            }
            entry.means = meant(wordnet, senses, word);
            for sense in names.iter().filter(|sense| wordnet.synsets[**sense].instance) {
                let full = wordnet.written(sense, word).and_then(|written| written.split_once('_'));
                if let Some((first, _)) = full
                    && is_person(wordnet.label(sense, roots))
                {
                    *given.entry(first.to_lowercase()).or_default() += 1;
                }
            }
            self.entries.insert(word.replace('_', " "), entry);
        }
        for (word, _) in given
            .iter()
            .filter(|(word, count)| **count > 2 && word.len() > 2 && !TITLES.contains(&word.as_str()))
        {
            self.entries.entry(word.clone()).or_default().flags.push('g');
        }
        for word in wordnet.relational.iter().filter(|word| !wordnet.nouns.contains_key(*word)) {
            self.entries.entry(word.replace('_', " ")).or_default().flags.push('r');
        }
        for (plural, one) in &wordnet.plurals {
            let common = wordnet.counts.get(one).is_some_and(|counts| counts[0] > 0);
            if common && !plural.contains('_') && !wordnet.nouns.contains_key(plural) {
                self.entries.insert(plural.clone(), Entry { means: Some(one.clone()), ..Entry::default() });
            }
        }
    }

    /// Leaves out what the rules find without it, and the Latin names of species.
    fn shorten(&mut self, wordnet: &WordNet) {
        let out: Vec<String> = self
            .entries
            .iter()
            .filter(|(word, entry)| self.is_spare(wordnet, word, entry))
            .map(|(word, _)| word.clone())
            .collect();
        for word in out {
            self.entries.remove(&word);
        }
    }

    fn is_spare(&self, wordnet: &WordNet, word: &str, entry: &Entry) -> bool {
        let parts: Vec<&str> = word.split(' ').collect();
        if parts.len() > 4 || word.contains(|c: char| c.is_ascii_digit() || c == '/') {
            return true;
        }
        if entry.means.is_some() || !entry.flags.is_empty() {
            return false;
        }
        let rare = !wordnet.counts.contains_key(&word.replace(' ', "_"));
        let typed = |label: &Option<String>| {
            label.as_deref().is_some_and(|label| ![NEVER, UNTYPED, "Taxonomic group"].contains(&label))
        };
        if rare && !typed(&entry.common) && !typed(&entry.name) {
            return true;
        }
        if parts.len() < 2 {
            return false;
        }
        let living = ["Taxonomic group", "Animal", "Plant", "Fungus", "Bacteria", "Eukaryote", "Species"];
        if let Some(label) = &entry.name {
            let known = self.entries.contains_key(parts[1]) || wordnet.adjectives.contains(parts[0]);
            return entry.common.is_none()
                && living.contains(&label.as_str())
                && (!known || label == living[0]);
        }
        // A chain of nouns is found by its last one.
        let rest = parts[1..].join(" ");
        let head = self.entries.get(&rest).and_then(|head| head.common.as_ref());
        let first =
            self.entries.get(parts[0]).is_some_and(|first| first.common.is_some() && first.flags.is_empty());
        first
            && !wordnet.adjectives.contains(parts[0])
            && entry.common.is_some()
            && head == entry.common.as_ref()
    }

    fn add(&mut self, list: &str) -> Fallible<()> {
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let (label, words) = line.split_once(": ").ok_or_else(|| format!("no label: {line}"))?;
            for word in words.split(", ") {
                let (word, means) =
                    word.split_once('=').map_or((word, None), |(word, means)| (word, Some(means)));
                let entry = self.entries.entry(word.to_lowercase()).or_default();
                if label == "same" {
                    entry.means = means.map(str::to_owned);
                } else if label == "given" {
                    if !entry.flags.contains('g') {
                        entry.flags.push('g');
                    }
                } else if label == UNTYPED {
                    // Its context stays, for phrases that it ends.
                    entry.flags.push('n');
                    entry.common =
                        entry.common.take().filter(|label| label != NEVER).or(Some(UNTYPED.to_owned()));
                } else if word.contains(char::is_uppercase) {
                    entry.name = Some(label.to_owned());
                } else {
                    entry.common = Some(label.to_owned());
                    let verb = entry.flags.contains(['v', 'w']);
                    entry.flags.retain(|flag| matches!(flag, 'g' | 'n'));
                    entry.flags.extend(verb.then_some('w'));
                }
            }
        }
        Ok(())
    }

    fn written(&self) -> String {
        let labels = self.entries.values().flat_map(|entry| [&entry.common, &entry.name]).flatten();
        let labels: BTreeSet<&str> =
            labels.map(String::as_str).filter(|label| ![NEVER, UNTYPED].contains(label)).collect();
        let code = |label: &Option<String>| match label.as_deref() {
            None => ' ',
            Some(NEVER) => '-',
            Some(UNTYPED) => '.',
            // Letters from `0` on; fewer than 75 fit into ASCII, the others follow.
            Some(label) => {
                let at =
                    labels.iter().position(|other| *other == label).and_then(|at| u32::try_from(at).ok());
                at.and_then(|at| char::from_u32(u32::from('0') + at)).expect("a label of the list")
            }
        };
        // The words come first, then all the rest: alike things side by side pack better.
        let mut text = labels.iter().copied().collect::<Vec<_>>().join("\t") + "\n";
        let mut before = "";
        for word in self.entries.keys() {
            let shared =
                word.bytes().zip(before.bytes()).take(90).take_while(|(one, other)| one == other).count();
            let shared = (0..=shared).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
            text.push(char::from(b'!' + u8::try_from(shared).unwrap_or(0)));
            text.push_str(&word[shared..]);
            text.push('\n');
            before = word;
        }
        text.push('\n');
        for entry in self.entries.values() {
            text.extend([code(&entry.common), code(&entry.name)]);
            text.push_str(&entry.flags);
            if let Some(means) = &entry.means {
                text.push('\t');
                text.push_str(means);
            }
            text.push('\n');
        }
        text
    }
}

/// Contexts whose frequent words could stand in any text.
const BROAD: [&str; 24] = [
    "Profession",
    "Person",
    "Scientist",
    "Artist",
    "Politician",
    "Activity",
    "Event",
    "Statistic",
    "Database",
    "Written work",
    "Work",
    "Article",
    "Organisation",
    "Company",
    "Place",
    "Standard",
    "Philosophical concept",
    "Currency",
    "Government agency",
    "Device",
    "Book",
    "Film",
    "Non-profit organisation",
    "Population",
];
/// And those where only the most frequent could.
const LEARNED: [&str; 7] = [
    "Scientific concept",
    "Political concept",
    "Law",
    "Academic subject",
    "Ideology",
    "Region",
    "Mathematical concept",
];

/// Contexts of things that have names of their own: what is meant is seldom told by the common noun alone (`city`, `planet`).
const NAMED: [&str; 11] = [
    "Settlement",
    "Country",
    "Natural place",
    "Body of water",
    "Planet",
    "Star",
    "Celestial body",
    "Galaxy",
    "Musical work",
    "Award",
    "Ethnic group",
];

/// Of the senses of a name the one that texts mean: a place and not the river, dish or dynasty that is called alike, and a
/// planet or moon and not the god. People stay who they are.
fn meant_today(first: String, senses: &[&str]) -> String {
    let seldom = [
        "Deity",
        "Body of water",
        "Historical period",
        "Food",
        "Chemical substance",
        "Anatomical structure",
        "Animal",
        "Device",
    ];
    let often = ["Country", "Region", "Settlement", "Planet", "Celestial body"];
    if !seldom.contains(&first.as_str()) {
        return first;
    }
    often.into_iter().find(|label| senses.contains(label)).map_or(first, str::to_owned)
}

fn is_symbol(written: &str) -> bool {
    written.chars().count() <= 2 || written.chars().all(|c| !c.is_lowercase())
}

const TITLES: [&str; 24] = [
    "saint",
    "sir",
    "lady",
    "lord",
    "king",
    "queen",
    "the",
    "mother",
    "big",
    "little",
    "old",
    "general",
    "prince",
    "duke",
    "count",
    "baron",
    "captain",
    "dame",
    "emperor",
    "pope",
    "president",
    "mount",
    "van",
    "von",
];

fn is_person(label: &str) -> bool {
    ["Person", "Scientist", "Artist", "Politician"].contains(&label)
}

/// What a word is another spelling of: a more common word of the same synset.
fn meant(wordnet: &WordNet, senses: &[String], word: &str) -> Option<String> {
    let count = |word: &str| wordnet.counts.get(word).map_or(0, |counts| counts[0]);
    senses.iter().find_map(|sense| {
        let words = &wordnet.synsets[sense].words;
        let own = words.iter().position(|other| other.to_lowercase() == word)?;
        let other = words.iter().enumerate().find(|(at, other)| {
            let other = other.to_lowercase();
            other != word && folded(&other) == folded(word) && (count(&other), own) > (count(word), *at)
        });
        other.map(|(_, other)| other.replace('_', " "))
    })
}

/// The same for all spellings of a word.
fn folded(word: &str) -> String {
    let mut word: String =
        word.to_lowercase().chars().filter(|c| !matches!(c, '_' | '-' | '.' | '\'')).collect();
    for (british, american) in [
        ("our", "or"),
        ("isation", "ization"),
        ("ise", "ize"),
        ("ising", "izing"),
        ("yse", "yze"),
        ("ae", "e"),
        ("oe", "e"),
        ("ogue", "og"),
        ("ll", "l"),
        ("gramme", "gram"),
        ("grey", "gray"),
        ("plough", "plow"),
        ("ence", "ense"),
        ("mould", "mold"),
        ("tre", "ter"),
        ("bre", "ber"),
        ("sulph", "sulf"),
        ("cheque", "check"),
        ("tyre", "tire"),
    ] {
        word = word.replace(british, american);
    }
    word
}
