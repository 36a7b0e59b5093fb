//! Brings the slices of a concept in line with its facts, and takes out of texts what was deleted. It asks nobody, so it is done
//! also where nothing is written any more.

use okt_extract::summaries::only_citing;
use okt_model::{Concept, JobId, RepositoryId, SynthesizeConcept};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::concept_summaries::{self, UnwrittenSlice};
use okt_store::outbox::{self, When};
use okt_store::summary_states::{self, HeldConcept};
use okt_store::{Tx, concepts};

use super::slices;
use crate::Tools;

/// Slices of a concept that are written in one run.
pub(super) const MOST_SLICES: i64 = 100;
/// Concepts that are looked at in one run where nothing is written.
const MOST_TORN: i64 = 1_000;

/// A concept whose slices have the facts that it has.
pub(super) struct Covered {
    /// `None` if there is nothing to write about.
    pub(super) concept: Option<Concept>,
    pub(super) unwritten: Vec<UnwrittenSlice>,
    /// Facts that it had were deleted.
    pub(super) torn: bool,
}

/// Brings the slices of a concept in line with its facts. `None` if another job holds it.
pub(super) async fn cover(
    tx: &mut Tx,
    tools: &Tools,
    (repository, job): (RepositoryId, JobId),
    held: HeldConcept,
) -> Result<Option<Covered>, JobError> {
    let size = usize::try_from(tools.config().providers.summarization.batch_size).unwrap_or(usize::MAX);
    if !summary_states::hold(tx, repository, job, held.no).await? {
        return Ok(None);
    }
    let mut coverage = concept_summaries::coverage(tx, repository, held.no).await?;
    // After it was read what is covered: whatever is missing there is missing here.
    let torn = concept_summaries::list_torn(tx, repository, held.no).await?;
    for slice in &torn {
        let left = only_citing(&slice.content, |fact| slice.facts.contains(&fact));
        concept_summaries::mend(tx, repository, held.no, (slice.number, &left)).await?;
    }
    if !torn.is_empty() {
        concept_summaries::forget_answers(tx, repository, held.no).await?;
    }
    let mut changes = slices::changes(&coverage, size);
    let concerned: Vec<i64> =
        changes.added.iter().map(|(fact, _)| *fact).chain(changes.removed.iter().copied()).collect();
    let there = concept_summaries::hold_facts(tx, repository, &concerned).await?;
    if there.len() < concerned.len() {
        // Deleted since they were read.
        let gone: Vec<i64> = concerned.into_iter().filter(|fact| !there.contains(fact)).collect();
        for fact in gone {
            coverage.facts.remove(&fact);
            coverage.covered.remove(&fact);
        }
        changes = slices::changes(&coverage, size);
    }
    concept_summaries::change(tx, repository, held.no, &changes).await?;
    let concept = concepts::list_numbered(tx, repository, &[held.no]).await?.into_iter().next();
    let concept = concept.filter(|_| !coverage.facts.is_empty());
    if concept.is_none() {
        summary_states::forget(tx, repository, job, held.no).await?;
    }
    let unwritten = concept_summaries::list_unwritten(tx, repository, held.no, MOST_SLICES).await?;
    Ok(Some(Covered { concept, unwritten, torn: !torn.is_empty() }))
}

/// Where nothing is written: only what was deleted is taken out of what was written before. New facts wait.
pub(super) async fn only_cut(ctx: &JobContext, tools: &Tools) -> Result<Finished, JobError> {
    let (repository, job) = (ctx.repository(), ctx.id());
    let staleness = tools.config().providers.summarization.lock_staleness.duration();
    let mut tx = ctx.checkpoint().await?;
    let all = summary_states::claim(&mut tx, repository, job, staleness, (MOST_TORN, true)).await?;
    tx.commit().await?;
    for held in &all {
        let mut tx = ctx.checkpoint().await?;
        if let Some(covered) = cover(&mut tx, tools, (repository, job), *held).await? {
            if covered.torn || covered.concept.is_none() {
                push_synthesis(&mut tx, repository, *held).await?;
            }
            summary_states::release(&mut tx, repository, job, held.no).await?;
        }
        tx.commit().await?;
    }
    let mut tx = ctx.begin().await?;
    super::push(&mut tx, repository, tools, false).await?;
    tx.commit(Some(serde_json::json!({ "cut": all.len() }))).await
}

/// Asks for the definition of a concept's name; where none are written, for what was deleted to be taken out of it.
pub(super) async fn push_synthesis(
    tx: &mut Tx,
    repository: RepositoryId,
    held: HeldConcept,
) -> Result<(), JobError> {
    if let Some(concept) = concept_summaries::find_first_named(tx, repository, held.no).await? {
        let payload = SynthesizeConcept { concept, again: false };
        outbox::push(tx, repository, JobId::mint(), &payload, When::default()).await?;
    }
    Ok(())
}
