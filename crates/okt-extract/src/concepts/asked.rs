//! Concepts by a model: the question about numbered facts, and what is believed of the answer.

mod borne;
mod refused;

use std::collections::HashSet;

use okt_model::{Context, FoundBy};
use serde::Deserialize;
use serde_json::Number;

use super::Found;
use super::contexts::{Contexts, Place};
use crate::answer::{Firsts, Listed, Misfit, object};
use crate::line::{one_line, shown};
use crate::promptset::{Phase, Promptset};
use crate::question::{CONCEPTS, Prompt, Question};
use borne::Facts;
use refused::Counts;
pub use refused::{Refused, Skipped};

/// No more concepts are taken from one answer.
const MOST_CONCEPTS: usize = 200;
/// No more aliases are looked at of one concept.
const MOST_ALIASES: usize = 20;
/// The longest name and the longest label, in characters.
const LONGEST: usize = 100;

/// What an answer comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The concepts of each fact, in the order of the facts.
    pub concepts: Vec<Vec<Found>>,
    /// What was not believed, one entry per reason that occurred.
    pub skipped: Vec<Skipped>,
}

/// Asks what the facts are about. Each line begins with words of ours: a dash before the label of a context, or the number
/// of a fact in brackets. Texts of others have no line breaks left and no numbers in brackets.
pub fn concept_question(promptset: &Promptset, facts: &[&str], contexts: &[Context]) -> Question {
    let mut user = "Contexts:\n".to_owned();
    for context in contexts {
        user.extend(["- ", &shown(&context.label)]);
        let description = shown(&context.description);
        if !description.is_empty() {
            user.extend([": ", &description]);
        }
        user.push('\n');
    }
    user.push_str("Facts:\n");
    user.extend(facts.iter().enumerate().map(|(at, fact)| format!("[{}] {}\n", at + 1, shown(fact))));
    Prompt::new(promptset.text(Phase::ConceptExtraction), &CONCEPTS).ask(user)
}

/// Reads the answer to [`concept_question`]. A concept is believed of a fact whose words bear out its name, one of its
/// aliases that belongs to the name and to no other, or an alias that is `known` (pairs of a name and an alias). Its context
/// is one of the repository's, or [`Place::Unmapped`].
pub fn read_concepts(
    answer: &str,
    facts: &[&str],
    contexts: &[Context],
    known: &[(&str, &str)],
) -> Result<Named, Misfit> {
    let Firsts { list: concepts, beyond } = object::<Answer>(answer, &CONCEPTS)?.concepts;
    let (stated, contexts) = (concepts.len(), Contexts::of(contexts));
    let mut facts = Facts::of(facts, known);
    facts.note(
        concepts
            .iter()
            .map(|claim| (claim.name.as_str(), &claim.aliases[..claim.aliases.len().min(MOST_ALIASES)])),
    );
    let mut counts = Counts::default();
    counts.add(Refused::TooMany, beyond);
    let mut reading =
        Reading { facts: &facts, contexts: &contexts, counts, named: vec![Vec::new(); facts.len()] };
    for claim in concepts {
        if let Err(reason) = reading.believe(&claim) {
            reading.counts.add(reason, 1);
        }
    }
    let Reading { counts, named, .. } = reading;
    let skipped = counts.skipped();
    if stated > 0 && named.iter().all(Vec::is_empty) {
        return Err(unfounded(stated, &skipped));
    }
    Ok(Named { concepts: named, skipped })
}

struct Reading<'r> {
    facts: &'r Facts<'r>,
    contexts: &'r Contexts<'r>,
    counts: Counts,
    named: Vec<Vec<Found>>,
}

impl Reading<'_> {
    fn believe(&mut self, claim: &Claim) -> Result<(), Refused> {
        let place = self.place(&claim.context)?;
        let stated = sized(&claim.name)?;
        let cited = self.cited(claim)?;
        let aliases = self.aliases(claim, &stated, &cited);
        let name = self.facts.name(&stated, &aliases).ok_or(Refused::NotInFact)?.to_owned();
        for at in cited {
            let mut forms = self.facts.known(&name, at);
            forms.extend(
                [name.as_str(), stated.as_str()]
                    .into_iter()
                    .chain(aliases.iter().map(String::as_str))
                    .filter_map(|form| self.facts.alias(form, &stated, at)),
            );
            let mut seen = HashSet::new();
            forms.retain(|form| seen.insert(form.clone()));
            if forms.is_empty() {
                self.counts.add(Refused::NotInFact, 1);
                continue;
            }
            let same = |found: &&mut Found| {
                found.name.to_lowercase() == name.to_lowercase()
                    && found.place.label().to_lowercase() == place.label().to_lowercase()
            };
            match self.named[at].iter_mut().find(same) {
                Some(found) => found.forms.extend(
                    forms.into_iter().filter(|form| seen_not(&found.forms, form)).collect::<Vec<_>>(),
                ),
                None => self.named[at].push(Found {
                    name: name.clone(),
                    place: place.clone(),
                    forms,
                    found_by: FoundBy::Model,
                }),
            }
        }
        Ok(())
    }

    fn place(&self, label: &str) -> Result<Place, Refused> {
        let label = one_line(label);
        if !label.contains(char::is_alphabetic) || label.chars().count() > LONGEST {
            return Err(Refused::NoContext);
        }
        let known = self.contexts.find(&label).map(str::to_owned);
        Ok(known.map_or(Place::Unmapped(label), Place::Context))
    }

    /// The places of the facts that a claim cites.
    fn cited(&mut self, claim: &Claim) -> Result<Vec<usize>, Refused> {
        let mut cited: Vec<usize> = Vec::new();
        for number in &claim.facts {
            match fact(number, self.facts.len()) {
                Some(at) => cited.push(at),
                None => self.counts.add(Refused::UnknownFact, 1),
            }
        }
        cited.sort_unstable();
        cited.dedup();
        if cited.is_empty() { Err(Refused::NoFact) } else { Ok(cited) }
    }

    /// The aliases that the cited facts have and that belong to the name.
    fn aliases(&mut self, claim: &Claim, name: &str, cited: &[usize]) -> Vec<String> {
        let mut aliases = Vec::new();
        for alias in claim.aliases.iter().take(MOST_ALIASES) {
            let believed = sized(alias).and_then(|alias| {
                let stands = cited.iter().any(|at| self.facts.alias(&alias, name, *at).is_some());
                let belongs = self.facts.is_alias(&alias, name, cited);
                if stands && belongs { Ok(alias) } else { Err(Refused::Alias) }
            });
            match believed {
                Ok(alias) => aliases.push(alias),
                Err(_) => self.counts.add(Refused::Alias, 1),
            }
        }
        aliases
    }
}

fn seen_not(forms: &[String], form: &str) -> bool {
    !forms.iter().any(|other| other == form)
}

/// A name on one line, if it can be one.
fn sized(name: &str) -> Result<String, Refused> {
    let name = one_line(name);
    if name.chars().count() > LONGEST {
        return Err(Refused::TooLong);
    }
    borne::is_name(&name).map(|()| name)
}

/// The place of a fact, from its number. Some models write 1.0.
fn fact(number: &Number, facts: usize) -> Option<usize> {
    let decimal = || number.as_f64().filter(|value| value.fract() == 0.0).map(|value| format!("{value:.0}"));
    let no: usize = number.as_u64().map(|no| no.to_string()).or_else(decimal)?.parse().ok()?;
    no.checked_sub(1).filter(|at| *at < facts)
}

fn unfounded(stated: usize, skipped: &[Skipped]) -> Misfit {
    let whys: Vec<String> =
        skipped.iter().map(|Skipped { reason, count }| format!("{count} {}", reason.complaint())).collect();
    Misfit::Ground(format!(
        "None of the {stated} concepts can be used: {}. Name what the facts name, in their words.",
        whys.join(", ")
    ))
}

#[derive(Deserialize)]
struct Answer {
    concepts: Firsts<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    name: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    facts: Vec<Number>,
}

impl Listed for Claim {
    const WHAT: &str = "a list of concepts";
    const MOST: usize = MOST_CONCEPTS;
}

#[cfg(test)]
mod tests;
