//! Turns the text and the images of a source into facts. Reads `fetched`, `processing` (of an earlier run), `processed` or
//! `failed`, leaves `processed` or `failed`.
//!
//! A source with a part that gave nothing usable fails, and says which: what the other parts gave is kept, and a retry asks
//! only for the rest. What a model has answered is written down at once, so no run pays for what another has paid for.

mod findings;
mod reading;

use std::collections::BTreeSet;
use std::sync::Arc;

use okt_ai::{RepositoryBudget, waiting_for_budget};
use okt_extract::{Promptset, Text, extractive};
use okt_model::{
    BudgetOf, CleanupFacts, ContentHash, Cost, EmbedFacts, Error, Extraction, FactStatus, IndexSource,
    NewFact, NoFacts, Result, Source, SourceDecomposition, SourceImage, SourceStatus, SourceText, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::facts::Made;
use okt_store::outbox::When;
use okt_store::{
    facts, promptsets, repository_settings, search_units, source_extractions, source_images, source_texts,
    sources,
};
use tokio::time::Instant;

use self::findings::Findings;
use self::reading::Reading;
use crate::Tools;
use crate::asking::{RUNS, Stopped};
use crate::deduplicate_facts::CLEANUP_MS;
use crate::extract_concepts;
use crate::tools::paid;

/// A source, and with what it is taken apart.
struct Work {
    source: Source,
    text: SourceText,
    images: Vec<SourceImage>,
    promptset: Promptset,
    budget: Arc<RepositoryBudget>,
}

pub(crate) async fn run(
    payload: SourceDecomposition,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let id = payload.source;
    let mut tx = ctx.checkpoint().await?;
    let ours = sources::mark(&mut tx, ctx.repository(), id, ctx.id(), SourceStatus::Processing).await?;
    let source = sources::find(&mut tx, ctx.repository(), id).await?;
    let text = source_texts::find(&mut tx, ctx.repository(), id).await?.unwrap_or_default();
    let images = source_images::list(&mut tx, ctx.repository(), id).await?;
    tx.commit().await?;
    let Some(source) = source.filter(|_| ours) else {
        // Deleted, or taken on by another job meanwhile.
        return ctx.begin().await?.commit(None).await;
    };
    let model = &tools.config().providers.decomposition.fact_extraction.model;
    if model.is_empty() {
        return pass(&ctx, &source).await;
    }
    if model == extractive::MODEL {
        let (findings, extraction) = extract(&source, &text);
        return settle(&ctx, &tools, &source, &findings, &extraction, None).await;
    }
    let work = work(&ctx, &tools, source, text, images).await?;
    let on_cost = |cost| ctx.spent(cost);
    let reading = Reading::new(&ctx, &tools, &work, &on_cost).await?;
    let findings = reading.run().await?;
    conclude(&ctx, &tools, &work, model, findings).await
}

/// A stage that is off is passed; what it found when it was on stays.
async fn pass(ctx: &JobContext, source: &Source) -> Result<Finished, JobError> {
    let mut tx = ctx.begin().await?;
    let (repository, id) = (ctx.repository(), source.id);
    if source.fact_count == 0 {
        let why = "The extraction of facts is switched off: providers.decomposition.fact_extraction.model is empty.";
        let reason = Some(NoFacts::new("extraction_off", why));
        let extraction = Extraction { reason, ..Extraction::default() };
        source_extractions::settle(&mut tx, repository, id, ctx.id(), &extraction, None, None).await?;
    } else {
        sources::mark(&mut tx, repository, id, ctx.id(), SourceStatus::Processed).await?;
    }
    tx.commit(Some(serde_json::json!({ "status": "processed", "facts": source.fact_count }))).await
}

/// Without a model: sentences that stand on their own.
fn extract(source: &Source, text: &SourceText) -> (Findings, Extraction) {
    let sentences = Text::new(&text.text, &text.sentences);
    let mut findings = Findings::default();
    let language = source.language.as_deref();
    findings.take_extracted(None, extractive::MODEL, extractive::extract(&sentences, language));
    let reason =
        || is_list_of_references(source).unwrap_or_else(|| extractive::why_nothing(&sentences, language));
    let extraction = Extraction {
        model: extractive::MODEL.to_owned(),
        promptset_hash: extractive::promptset_hash().to_string(),
        reason: findings.facts().is_empty().then(reason),
        ..findings.extraction(text.sentences.len())
    };
    (findings, extraction)
}

/// Somebody may have taken one way in for the other.
fn is_list_of_references(source: &Source) -> Option<NoFacts> {
    let name = source.file_name.as_deref()?.to_ascii_lowercase();
    [".bib", ".ris"].iter().any(|end| name.ends_with(end)).then(|| {
        NoFacts::new(
            "list_of_references",
            "It is a list of references, which says nothing itself. To add what it names, send it to \
             POST /api/v1/repositories/{repoID}/sources/import.",
        )
    })
}

/// With the instructions that the repository uses, and with the images if it has them looked at.
async fn work(
    ctx: &JobContext,
    tools: &Tools,
    source: Source,
    text: SourceText,
    mut images: Vec<SourceImage>,
) -> Result<Work> {
    let mut conn = ctx.databases().acquire_system().await?;
    let now = Instant::now();
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let used = promptsets::find_used(&mut conn, ctx.repository()).await?;
    let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
    let looking = &tools.config().providers.decomposition.image_extraction;
    if !looking.is_on(settings.stages.image_extraction) {
        images.clear();
    }
    let own = settings.monthly_usd.is_some();
    let budget = Arc::new(RepositoryBudget::new(tools.ai().spending_limits(), now, own));
    Ok(Work { source, text, images, promptset, budget })
}

/// What the findings mean for the source.
async fn conclude(
    ctx: &JobContext,
    tools: &Tools,
    work: &Work,
    model: &str,
    mut findings: Findings,
) -> Result<Finished, JobError> {
    let source = &work.source;
    let cost = paid(ctx, source.id).await?;
    match findings.stopped.take() {
        Some(Stopped::Wait { why, delay, budget }) => {
            note(ctx, source, cost, Some((why, budget))).await?;
            if let Some(budget) = budget {
                ctx.progress(waiting_for_budget("facts", findings.answered(), budget));
            }
            return Err(JobError::Waits { why, delay });
        }
        // What can't pass would not pass in another run.
        Some(Stopped::Retryable(error)) if error.retryable() && ctx.attempt() < RUNS => {
            note(ctx, source, cost, None).await?;
            return Err(error.into());
        }
        Some(Stopped::Retryable(error)) => {
            findings.fail_unanswered("unanswered", &error.to_string());
        }
        Some(Stopped::Permanent { code, message, retryable }) => {
            findings.give_up(code, &message, retryable);
        }
        None => {}
    }
    let reason = || is_list_of_references(source).unwrap_or_else(|| findings.why_nothing());
    let nothing = findings.failure().is_none() && findings.facts().is_empty();
    let extraction = Extraction {
        model: model.to_owned(),
        promptset_hash: work.promptset.registry_hash().to_string(),
        reason: nothing.then(reason),
        ..findings.extraction(work.text.sentences.len())
    };
    settle(ctx, tools, source, &findings, &extraction, Some(cost)).await
}

/// What was paid, and why the job does not go on now.
async fn note(
    ctx: &JobContext,
    source: &Source,
    cost: Cost,
    why: Option<(Waiting, Option<BudgetOf>)>,
) -> Result<(), JobError> {
    let mut tx = ctx.checkpoint().await?;
    source_extractions::note(&mut tx, ctx.repository(), source.id, ctx.id(), cost, why).await?;
    tx.commit().await?;
    Ok(())
}

/// The effect.
async fn settle(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    findings: &Findings,
    extraction: &Extraction,
    cost: Option<Cost>,
) -> Result<Finished, JobError> {
    let (repository, id) = (ctx.repository(), source.id);
    let failure = findings.failure();
    let promptset: Option<ContentHash> = extraction.promptset_hash.parse().ok();
    let mut tx = if failure.is_some() { ctx.begin_discardable().await? } else { ctx.begin().await? };
    // First of all, so that whoever removes the source waits.
    if sources::hold(&mut tx, repository, id).await?.is_none_or(|(_, job)| job != ctx.id()) {
        return tx.commit(None).await;
    }
    // What an earlier run has found stays, where this one did not get to the end.
    let keep = failure.is_some();
    // Without vectors there is nothing to compare them by.
    let compared = tools.vectors().is_some();
    let made = Made { promptset, status: if compared { FactStatus::New } else { FactStatus::Stable } };
    let failed = failure.as_ref();
    if !source_extractions::settle(&mut tx, repository, id, ctx.id(), extraction, failed, cost).await? {
        // Somebody took this run for dead and has said what became of the source.
        return tx.commit(None).await;
    }
    search_units::note_unread(&mut tx, repository, id).await?;
    tx.push(&IndexSource::of(id), When::default()).await?;
    if compared {
        tx.push(&EmbedFacts { source: Some(id) }, When::default()).await?;
        // Whatever becomes of that, somebody comes for what it leaves undone.
        tx.push(&CleanupFacts { soon: false }, When { delay_ms: CLEANUP_MS, ..When::default() }).await?;
    } else {
        extract_concepts::push(&mut tx, tools, id).await?;
    }
    // Last of all: it counts them where every source of the repository is counted, and whoever comes next waits.
    let count = facts::replace(&mut tx, repository, id, &findings.facts(), keep, made).await?;
    let status = if failure.is_some() { "failed" } else { "processed" };
    let output =
        serde_json::json!({ "status": status, "facts": count, "extraction": extraction, "failure": failure });
    match failure {
        Some(failure) => tx.discard(failure.message, Some(output)).await,
        None => tx.commit(Some(output)).await,
    }
}

/// Sentences that some fact rests on.
fn cited<'f>(facts: impl Iterator<Item = &'f NewFact>) -> BTreeSet<i32> {
    facts.flat_map(|fact| fact.sentences.iter().copied()).collect()
}
