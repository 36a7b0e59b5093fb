//! Writes down what facts are about: concepts, their aliases, links, and that the facts were read.

use std::collections::{BTreeMap, BTreeSet};

use okt_extract::concepts::twins::is_same_spelling;
use okt_extract::concepts::{self, Found};
use okt_model::{
    AliasBy, CATCH_ALL_CONTEXT, Error, FoundBy, MOST_CONTEXTS, NewConcept, UnmappedContexts, name_key,
};
use okt_queue::{JobContext, JobError};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concepts::{NewLink, Single, file, find_single, link, list_taken, unlink_found};
use okt_store::contexts::{self, NewContext};
use okt_store::{Tx, concept_readings};

use super::{Finding, Work};

/// Facts in one transaction. It holds their contexts, which others wait for.
const BATCH: usize = 100;

/// A context that was removed or renamed since it was read: another run reads the contexts anew.
fn or_again(error: JobError) -> JobError {
    match error {
        JobError::Failed(Error::NotFound("context")) => {
            Error::Overloaded("a context was changed while facts were read for concepts").into()
        }
        error => error,
    }
}

/// A concept by its name and context, both as they are compared.
type Key = (String, String);

/// What has no place in the repository is counted.
pub(super) async fn write(
    ctx: &JobContext,
    work: &Work,
    found: &[Finding],
    skipped: &mut BTreeMap<String, u32>,
) -> Result<(), JobError> {
    let mut left = found;
    while !left.is_empty() {
        // No question is cut in two.
        let last = left[left.len().min(BATCH) - 1].batch;
        let end = left.iter().rposition(|finding| finding.batch == last).map_or(left.len(), |at| at + 1);
        let (batch, rest) = left.split_at(end);
        left = rest;
        let mut tx = ctx.checkpoint().await?;
        let without = write_batch(&mut tx, ctx, work, batch).await.map_err(or_again)?;
        tx.commit().await?;
        if without > 0 {
            *skipped.entry("unmapped_context".to_owned()).or_default() += without;
        }
    }
    Ok(())
}

/// Returns how many have no place in the repository.
async fn write_batch(tx: &mut Tx, ctx: &JobContext, work: &Work, found: &[Finding]) -> Result<u32, JobError> {
    let repository = ctx.repository();
    let by = if work.reader.model == concepts::MODEL { AliasBy::Builtin } else { AliasBy::Model };
    let mut places = Places::of(work);
    places.prepare(tx, ctx, work, found).await?;
    let mut kept = Vec::new();
    let mut without = 0;
    for finding in found {
        for one in &finding.concepts {
            match places.place(one) {
                Some(concept) => kept.push((work.facts[finding.fact].no, concept, one)),
                None => without += 1,
            }
        }
    }
    let forms = kept.iter().flat_map(|(_, concept, one)| {
        let others = one.forms.iter().filter(|form| name_key(form) != name_key(&concept.name));
        others.map(|form| (form.as_str(), concept.context.as_str()))
    });
    let forms: BTreeSet<(&str, &str)> = forms.collect();
    let taken = list_taken(tx, repository, &forms.into_iter().collect::<Vec<_>>()).await?;
    let is_taken = |form: &str, context: &str| taken.contains(&(name_key(form), name_key(context)));
    let mut new: BTreeMap<Key, NewConcept> = BTreeMap::new();
    let mut wanted = Vec::new();
    for (fact, mut concept, one) in kept {
        // Within a source two spellings are one name. Where each has a concept, as after a merge that a person took back, the
        // fact is about the one that it names.
        let name = name_key(&concept.name);
        let same = |form: &&String| is_same_spelling(&name_key(form), &name);
        let own = one.forms.iter().filter(same).find(|form| is_taken(form, &concept.context));
        if let Some(form) = own.filter(|_| !one.forms.iter().any(|form| name_key(form) == name)) {
            concept.name.clone_from(form);
        }
        let key = (name_key(&concept.name), name_key(&concept.context));
        wanted.push((fact, key.clone(), one));
        new.entry(key).or_insert(concept);
    }
    let (keys, new): (Vec<Key>, Vec<NewConcept>) = new.into_iter().unzip();
    let filed = file(tx, repository, &new).await?;
    let ids: BTreeMap<Key, _> = keys.into_iter().zip(filed.concepts.iter().copied()).collect();
    let (mut aliases, mut links) = (BTreeMap::new(), Vec::new());
    for (fact, key, one) in wanted {
        let concept = *ids.get(&key).ok_or_else(|| Error::internal("a concept was not filed"))?;
        links.push(NewLink { concept, fact, found_by: one.found_by });
        // The name of another concept is no alias of this one.
        for form in one.forms.iter().filter(|form| name_key(form) != key.0 && !is_taken(form, &key.1)) {
            let alias = NewAlias { concept, text: form.clone(), by };
            aliases.entry((concept, name_key(form))).or_insert(alias);
        }
    }
    let aliases: Vec<NewAlias> = aliases.into_values().collect();
    concept_aliases::insert(tx, repository, &aliases).await?;
    let of = |finding: &Finding| &work.facts[finding.fact];
    let before: Vec<i64> = found.iter().map(of).filter(|fact| fact.read_before).map(|fact| fact.no).collect();
    if !before.is_empty() {
        unlink_found(tx, repository, &before).await?;
    }
    link(tx, repository, &links).await?;
    let read: Vec<i64> = found.iter().map(|finding| of(finding).no).collect();
    concept_readings::finish(tx, repository, work.source.id, work.reader.number, &read).await?;
    filed.count(tx, repository).await?;
    Ok(without)
}

/// Where concepts are filed.
struct Places<'w> {
    unmapped: UnmappedContexts,
    /// The label of the catch-all, as the repository writes it.
    catch_all: &'w str,
    /// Labels that were added, as they are compared.
    added: BTreeSet<String>,
    /// Names that one concept of the repository has.
    single: BTreeMap<String, Single>,
}

impl<'w> Places<'w> {
    fn of(work: &'w Work) -> Self {
        let mut labels = work.contexts.iter().map(|context| context.label.as_str());
        let catch_all = labels.find(|label| label.eq_ignore_ascii_case(CATCH_ALL_CONTEXT));
        Self {
            unmapped: work.unmapped,
            catch_all: catch_all.unwrap_or(CATCH_ALL_CONTEXT),
            added: BTreeSet::new(),
            single: BTreeMap::new(),
        }
    }

    /// Adds contexts that are wanted, and looks up who has the names already.
    async fn prepare(
        &mut self,
        tx: &mut Tx,
        ctx: &JobContext,
        work: &Work,
        found: &[Finding],
    ) -> Result<(), JobError> {
        let repository = ctx.repository();
        let all = || found.iter().flat_map(|finding| &finding.concepts);
        let mut wanted: BTreeMap<String, &str> = BTreeMap::new();
        if self.unmapped == UnmappedContexts::Add {
            let labels = all().filter_map(Found::unmapped);
            wanted.extend(labels.map(|label| (name_key(label), label)));
            let there = contexts::count(tx, repository).await?;
            let free = usize::try_from(MOST_CONTEXTS - there).unwrap_or(0);
            while wanted.len() > free {
                wanted.pop_last();
            }
            self.added = wanted.keys().cloned().collect();
        }
        let catches = all().any(|one| self.label(one) == Some(self.catch_all));
        if catches && !work.contexts.iter().any(|context| context.label == self.catch_all) {
            wanted.insert(name_key(self.catch_all), self.catch_all);
        }
        let new: Vec<NewContext> = wanted
            .into_values()
            .map(|label| NewContext {
                label: label.to_owned(),
                description: String::new(),
                ontology_class: None,
            })
            .collect();
        if !new.is_empty() {
            contexts::insert(tx, repository, &new).await?;
        }
        let names: BTreeSet<&str> = all().map(|one| one.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        self.single = find_single(tx, repository, &names).await?;
        Ok(())
    }

    /// The label of the context that a concept is filed under, without a look at what is there already.
    fn label<'f>(&'f self, found: &'f Found) -> Option<&'f str> {
        let Some(unmapped) = found.unmapped() else { return Some(found.place.label()) };
        match self.unmapped {
            UnmappedContexts::Skip => None,
            UnmappedContexts::Add if self.added.contains(&name_key(unmapped)) => Some(unmapped),
            UnmappedContexts::Add | UnmappedContexts::CatchAll => Some(self.catch_all),
        }
    }

    /// The concept that it is; `None` where the repository wants none like it.
    fn place(&self, found: &Found) -> Option<NewConcept> {
        let label = self.label(found)?;
        // Nobody says what it is, and there is one of this name: rather that one than two of the same thing. What a person calls
        // by a name is meant by it, whatever a machine takes it for.
        let known = self.single.get(&name_key(&found.name));
        let joins = |one: &&Single| one.given || label == self.catch_all && !is_name_beside_noun(found, one);
        let known = known.filter(joins).map(|one| &one.context);
        let unmapped_label = found.unmapped().filter(|_| label == self.catch_all).map(str::to_owned);
        let context = known.map_or(label, String::as_str).to_owned();
        Some(NewConcept { name: found.name.clone(), context, description: None, unmapped_label })
    }
}

/// A proper name does not join the common noun that is spelled like it: Apple is no apple.
fn is_name_beside_noun(found: &Found, known: &Single) -> bool {
    let has_capital = |name: &str| name.chars().any(char::is_uppercase);
    found.found_by == FoundBy::Name && has_capital(&found.name) && !has_capital(&known.canonical_name)
}
