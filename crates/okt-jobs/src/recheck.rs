//! Merges of before that the policy in force would not make: under a looser policy, by an older rule, or in a language that
//! the embedding model was not made for.
//!
//! Neither the vectors nor a model is asked. The merges of each canonical fact are compared again in their order; what is refused
//! now is shown, and undone on request. With `policy = judge`, what a model has confirmed stays unless a difference is found.

use std::collections::HashMap;

use okt_config::DedupPolicy;
use okt_model::{
    AuditId, Difference, EmbedFacts, FactId, JobId, MergedBy, NewAuditEntry, Repository, RepositoryId, Result,
};
use okt_queue::JobError;
use okt_store::fact_merges::{self, JournaledMerge};
use okt_store::outbox::{self, When};
use okt_store::{Databases, audit_outbox, facts, repositories};

use crate::Tools;
use crate::deduplicate_facts::{Compared, Languages, PAIRS, compare};
use crate::spaces::{PassedOver, next};

/// Canonical facts with duplicates, in one page.
const PAGE: i64 = 100;

/// A merge that would not be made now.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The fact that was merged, and its text.
    pub fact: FactId,
    pub text: String,
    /// The text that it is not the same as: of the fact that it was merged into, or of one of its duplicates.
    pub other: String,
    pub reason: RefusedBecause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBecause {
    /// They differ in this.
    Differ(Difference),
    /// Nothing says that they differ, and nothing permits it.
    NotPermitted,
    /// The embedding model was not made for their language.
    Language,
}

/// How far a repository is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rechecked {
    /// Merges that were compared again.
    pub merges: u64,
    pub refused: u64,
    /// Of them those that were undone.
    pub undone: u64,
    /// Entries of the journal that could not be compared, because a fact that they name is not there.
    pub incomplete: u64,
}

/// Looks at the merges of all repositories, or of one; with `apply` undoes what is refused. Tells of each page with what was
/// refused in it. Returns repositories that could not be looked at, because their database does not answer or they are being
/// moved. What is undone gets its vector again, and is compared again.
pub async fn recheck(
    databases: &Databases,
    tools: &Tools,
    only: Option<RepositoryId>,
    apply: bool,
    mut tell: impl FnMut(&Repository, Rechecked, &[Refused]),
) -> Result<Vec<Repository>, JobError> {
    let (mut before, mut passed_over) = (None, PassedOver::default());
    let mut one = match only {
        Some(id) => {
            let mut conn = databases.acquire_system().await?;
            repositories::find(&mut conn, id).await?
        }
        None => next(databases, &mut before).await?,
    };
    while let Some(repository) = one {
        let checked = recheck_one(databases, tools, &repository, apply, &mut tell);
        passed_over.or(databases, &repository, checked).await?;
        one = if only.is_some() { None } else { next(databases, &mut before).await? };
    }
    Ok(passed_over.into_repositories())
}

async fn recheck_one(
    databases: &Databases,
    tools: &Tools,
    repository: &Repository,
    apply: bool,
    tell: &mut impl FnMut(&Repository, Rechecked, &[Refused]),
) -> Result<(), JobError> {
    let Repository { id, database, .. } = repository;
    let (mut after, mut done) = (0, Rechecked::default());
    loop {
        let mut tx = databases.begin_to_read(database, *id).await?;
        let roots = fact_merges::list_with_duplicates(&mut tx, *id, after, PAGE).await?;
        let journal = fact_merges::list_journal(&mut tx, *id, &roots).await?;
        tx.commit().await?;
        let Some(last) = roots.last() else { break };
        after = *last;
        done.merges += u64::try_from(journal.merges.len()).unwrap_or(u64::MAX);
        done.incomplete += journal.incomplete;
        let refused = refused(tools, journal.merges).await?;
        done.refused += u64::try_from(refused.len()).unwrap_or(u64::MAX);
        for refused in refused.iter().filter(|_| apply) {
            done.undone += u64::from(undo(databases, tools, repository, refused.fact).await?);
        }
        tell(repository, done, &refused);
    }
    if after == 0 {
        tell(repository, done, &[]);
    }
    Ok(())
}

/// Compares merges again, in their order.
async fn refused(tools: &Tools, journal: Vec<JournaledMerge>) -> Result<Vec<Refused>> {
    let providers = &tools.config().providers;
    let policy = providers.dedup.policy;
    let languages = Languages::new(providers.embedding.languages_of(&providers.embedding.model));
    // Comparing takes a core for a while.
    let work = tokio::task::spawn_blocking(move || {
        let mut sets: HashMap<i64, Vec<(i64, String)>> = HashMap::new();
        let mut root: HashMap<i64, i64> = HashMap::new();
        let mut found = Vec::new();
        for merge in journal {
            for (no, text) in [(merge.fact.no, &merge.fact.text), (merge.into.no, &merge.into.text)] {
                root.entry(no).or_insert(no);
                sets.entry(no).or_insert_with(|| vec![(no, text.clone())]);
            }
            let (young, old) = (root[&merge.fact.no], root[&merge.into.no]);
            let mut reason = (!languages.know(&merge.fact) || !languages.know(&merge.into))
                .then(|| (merge.into.text.clone(), RefusedBecause::Language));
            let confirmed = policy == DedupPolicy::Judge && merge.by == Some(MergedBy::Judge);
            if reason.is_none() {
                let mut pairs = sets[&young].iter().flat_map(|a| sets[&old].iter().map(move |b| (a, b)));
                reason = pairs.by_ref().take(PAIRS).find_map(|((_, one), (_, other))| {
                    match compare(policy, one, other) {
                        Compared::Same => None,
                        Compared::Differ(difference) => {
                            Some((other.clone(), RefusedBecause::Differ(difference)))
                        }
                        Compared::Unsure if confirmed => None,
                        Compared::Unsure => Some((other.clone(), RefusedBecause::NotPermitted)),
                    }
                });
                // As the job: what is too much to compare is not the same.
                if reason.is_none() && pairs.next().is_some() {
                    reason = Some((merge.into.text.clone(), RefusedBecause::NotPermitted));
                }
            }
            match reason {
                Some((other, reason)) => {
                    found.push(Refused { fact: merge.fact.id, text: merge.fact.text, other, reason });
                }
                None if young != old => {
                    let more = sets.remove(&young).unwrap_or_default();
                    root.extend(more.iter().map(|(no, _)| (*no, old)));
                    sets.entry(old).or_default().extend(more);
                }
                None => {}
            }
        }
        found
    });
    work.await.map_err(okt_model::Error::internal)
}

/// Undoes a merge. Nobody has decided about the two, so they are compared again, with all others.
async fn undo(databases: &Databases, tools: &Tools, repository: &Repository, fact: FactId) -> Result<bool> {
    let mut tx = databases.begin(&repository.database, repository.id).await?;
    let Some(undone) = fact_merges::undo(&mut tx, repository.id, fact, None).await? else { return Ok(false) };
    if tools.vectors().is_some() {
        fact_merges::renew(&mut tx, repository.id, undone.fact).await?;
        let sources = facts::list_sources(&mut tx, repository.id, &[undone.fact], 1).await?;
        let payload = EmbedFacts { source: sources.first().map(|quoted| quoted.link.source) };
        outbox::push(&mut tx, repository.id, JobId::mint(), &payload, When::default()).await?;
    }
    let entry = NewAuditEntry {
        id: AuditId::mint(),
        actor: None,
        actor_kind: "service",
        credential: None,
        action: "fact.merge_undone",
        object: &fact.to_string(),
        repository: Some(repository.id),
        address: None,
        agent: None,
        via: None,
        request_id: "okt dedup recheck",
    };
    audit_outbox::insert(&mut tx, repository.id, &entry).await?;
    tx.commit().await?;
    Ok(true)
}
