//! What the places of a source that name something come to: one name and one context for each thing.

use std::collections::{BTreeMap, HashMap};

use okt_model::FoundBy;

use super::contexts::{self, Contexts};
use super::evidence::{self, Weight};
use super::kinds;
use super::nouns::Class;
use super::short::{self, Definition};
use super::tokens::{Gap, Token};
use super::{Found, Mention};

/// The concepts of each fact.
pub fn resolve(
    mut mentions: Vec<Vec<Mention>>,
    tokens: &[Vec<Token<'_>>],
    title: Option<&Mention>,
    places: &Contexts<'_>,
) -> Vec<Vec<Found>> {
    for found in &mut mentions {
        found.retain(|mention| !mention.name.is_empty());
    }
    let aliases = aliases(&mut mentions, tokens);
    let people = People::of(&mentions, title);
    let meant = |mention: &Mention| -> Option<String> {
        let name = aliases.get(&key(&mention.name)).unwrap_or(&mention.name);
        people.full(name, mention)
    };
    let mut things: HashMap<String, Thing> = HashMap::new();
    for mention in mentions.iter().flatten().chain(title) {
        if let Some(name) = meant(mention) {
            things.entry(key(&name)).or_default().add(&name, mention);
        }
    }
    for (found, tokens) in mentions.iter().zip(tokens) {
        for (at, class, weight) in evidence::evidence(tokens, found) {
            let name = meant(&found[at]).map(|name| key(&name));
            let thing = name.and_then(|name| things.get_mut(&name));
            if let (Some(thing), Some(label)) = (thing, class.label()) {
                let votes = if weight == Weight::Said { &mut thing.said } else { &mut thing.hints };
                *votes.entry(label).or_default() += 1;
            }
        }
    }
    let about = title.and_then(meant).map(|name| key(&name));
    mentions.iter().map(|found| of_fact(found, &things, about.as_deref(), &meant, places)).collect()
}

fn of_fact(
    mentions: &[Mention],
    things: &HashMap<String, Thing>,
    title: Option<&str>,
    meant: &impl Fn(&Mention) -> Option<String>,
    contexts: &Contexts<'_>,
) -> Vec<Found> {
    let mut keys: Vec<String> = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    let mut put = |key: String, form: Option<&str>, found_by: FoundBy| {
        let Some(thing) = things.get(&key) else { return };
        let at = keys.iter().position(|other| *other == key).unwrap_or_else(|| {
            keys.push(key);
            let place = contexts.place(thing.class().and_then(Class::label));
            found.push(Found { name: thing.name().to_owned(), place, forms: Vec::new(), found_by });
            found.len() - 1
        });
        if let Some(form) = form.filter(|form| !found[at].forms.iter().any(|other| other == form)) {
            found[at].forms.push(form.to_owned());
        }
    };
    for mention in mentions {
        let Some(key) = meant(mention).map(|name| key(&name)) else { continue };
        let found_by = if title == Some(key.as_str()) { FoundBy::Title } else { mention.found_by };
        put(key, Some(&mention.form), found_by);
    }
    if let Some(title) = title {
        put(title.to_owned(), None, FoundBy::Title);
    }
    found
}

/// All spellings of a name alike: case, hyphens, dots and spaces do not count.
pub fn key(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, ' ' | '-' | '‑' | '.' | '\'' | '’'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Something that a source names.
#[derive(Default)]
struct Thing {
    /// How often it is written in which way, in the order of their first appearance.
    names: Vec<(String, usize)>,
    classes: BTreeMap<&'static str, usize>,
    sure: Option<Class>,
    /// What facts say it is.
    said: BTreeMap<&'static str, usize>,
    /// What it is where nothing else tells.
    hints: BTreeMap<&'static str, usize>,
}

impl Thing {
    fn add(&mut self, name: &str, mention: &Mention) {
        match self.names.iter_mut().find(|(other, _)| other == name) {
            Some((_, count)) => *count += 1,
            None => self.names.push((name.to_owned(), 1)),
        }
        if mention.sure {
            self.sure = self.sure.or(mention.class.filter(|class| class.label().is_some()));
        }
        if let Some(label) = mention.class.and_then(Class::label) {
            *self.classes.entry(label).or_default() += 1;
        }
    }

    /// As it is written most often; as it was first, where that does not tell.
    fn name(&self) -> &str {
        let most = self.names.iter().map(|(_, count)| *count).max().unwrap_or(0);
        self.names.iter().find(|(_, count)| *count == most).map_or("", |(name, _)| name)
    }

    /// What its facts say, unless the table or the name tells the same more precisely; then the words beside it.
    fn class(&self) -> Option<Class> {
        let most = |votes: &BTreeMap<&'static str, usize>| {
            let best = votes.values().max()?;
            votes.iter().find(|(_, count)| *count == best).map(|(label, _)| *label)
        };
        let own = self.sure.and_then(Class::label);
        let said = most(&self.said).filter(|said| {
            own.is_none_or(|own| *said != "Person" && contexts::widest(said) != contexts::widest(own))
        });
        let label = said.or(own).or_else(|| most(&self.classes)).or_else(|| most(&self.hints))?;
        Some(Class::Label(label))
    }
}

/// What short and other names of a source stand for, by their keys.
fn aliases(mentions: &mut [Vec<Mention>], tokens: &[Vec<Token<'_>>]) -> HashMap<String, String> {
    let mut aliases = HashMap::new();
    for (found, tokens) in mentions.iter_mut().zip(tokens) {
        for Definition { short, long, text } in short::definitions(tokens) {
            let same = found
                .iter()
                .find(|mention| mention.tokens.end == long.end && mention.tokens.start <= long.start);
            let name = if let Some(mention) = same {
                mention.name.clone()
            } else {
                // The rules saw only a part of it.
                let class = found
                    .iter()
                    .rfind(|mention| mention.tokens.end == long.end)
                    .and_then(|mention| mention.class);
                let found_by =
                    if text.contains(char::is_uppercase) { FoundBy::Name } else { FoundBy::Phrase };
                found.retain(|mention| mention.tokens.end <= long.start || mention.tokens.start >= long.end);
                found.push(Mention {
                    name: text.clone(),
                    class,
                    sure: false,
                    found_by,
                    form: text.clone(),
                    tokens: long,
                });
                found.sort_by_key(|mention| mention.tokens.start);
                text
            };
            aliases.entry(key(&short)).or_insert(name);
        }
        for pair in found.windows(2) {
            let between = &tokens[pair[0].tokens.end.min(pair[1].tokens.start)..pair[1].tokens.start];
            let names = pair.iter().all(|mention| mention.found_by == FoundBy::Name);
            let latin = tokens[pair[1].tokens.start].gap == Gap::Open
                && pair[1].form.contains(' ')
                && between.is_empty();
            let living =
                matches!(pair[0].class, Some(Class::Label("Animal" | "Plant" | "Fungus" | "Species")));
            if latin
                && living
                && pair[1].form.split(' ').nth(1).is_some_and(|word| !word.contains(char::is_uppercase))
            {
                aliases.entry(key(&pair[1].name)).or_insert_with(|| pair[0].name.clone());
            }
            if names && short::says_alias(between) && key(&pair[0].name) != key(&pair[1].name) {
                aliases.entry(key(&pair[1].name)).or_insert_with(|| pair[0].name.clone());
            }
        }
    }
    // One step is enough: what stands for something stands for its name.
    aliases.retain(|short, name| *short != key(name));
    aliases
}

/// The people of a source by a part of their name.
struct People {
    /// Full names by the last word and by the given name; nothing where several have it.
    parts: HashMap<String, Option<String>>,
    /// One spelling for first and last name: `Thomas A. Edison`, `Thomas Edison`.
    spelled: HashMap<(String, String), String>,
}

impl People {
    fn of(mentions: &[Vec<Mention>], title: Option<&Mention>) -> Self {
        let mut people = Self { parts: HashMap::new(), spelled: HashMap::new() };
        for mention in title.into_iter().chain(mentions.iter().flatten()) {
            let person = mention.class.is_some_and(kinds::is_person) && mention.found_by != FoundBy::Phrase;
            let Some(ends) = ends(&mention.name).filter(|_| person) else { continue };
            let full = people.spelled.entry(ends.clone()).or_insert_with(|| mention.name.clone()).clone();
            for part in [ends.0, ends.1] {
                let known = people.parts.entry(part).or_insert_with(|| Some(full.clone()));
                if known.as_ref().is_some_and(|known| *known != full) {
                    *known = None;
                }
            }
        }
        people
    }

    /// The full name of who is meant; nothing where it may be one of several people.
    fn full(&self, name: &str, mention: &Mention) -> Option<String> {
        let person = mention.class.is_none_or(kinds::is_person) && mention.found_by != FoundBy::Phrase;
        if !person {
            return Some(name.to_owned());
        }
        if let Some(ends) = ends(name) {
            return Some(
                self.spelled
                    .get(&ends)
                    .filter(|_| mention.class.is_some())
                    .cloned()
                    .unwrap_or_else(|| name.to_owned()),
            );
        }
        match self.parts.get(&name.to_lowercase()) {
            Some(full) => full.clone(),
            None => Some(name.to_owned()),
        }
    }
}

/// The first and the last word of a name of several.
fn ends(name: &str) -> Option<(String, String)> {
    let name = name.to_lowercase();
    let (first, last) = (name.split(' ').next()?, name.rsplit(' ').next()?);
    (name.contains(' ')).then(|| (first.to_owned(), last.to_owned()))
}
