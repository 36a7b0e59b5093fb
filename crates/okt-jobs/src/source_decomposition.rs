//! Turns the text and the images of a source into facts. Reads `fetched`, `processing` (of an earlier run), `processed` or
//! `failed`, leaves `processed` or `failed`.
//!
//! A source with a part that gave nothing usable fails, and says which: what the other parts gave is kept, and a retry asks
//! only for the rest. What a model has answered is written down at once, so no run pays for what another has paid for.

mod findings;
mod reading;

use std::collections::BTreeSet;
use std::sync::Arc;

use okt_extract::{Promptset, Text, extractive};
use okt_model::{
    CleanupFacts, ContentHash, Cost, EmbedFacts, Error, Extraction, FactStatus, NewFact, Result, Source,
    SourceDecomposition, SourceImage, SourceStatus, SourceText, Waiting,
};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::facts::Made;
use okt_store::outbox::When;
use okt_store::{
    ai_calls, facts, promptsets, repository_settings, source_extractions, source_images, source_texts,
    sources,
};
use tokio::time::Instant;

use self::findings::{Findings, Stopped};
use self::reading::Reading;
use crate::Tools;
use crate::asking::Budget;
use crate::deduplicate_facts::CLEANUP_MS;

/// Runs of the job after which a part that a model did not answer for is given up.
const RUNS: i32 = 4;

/// A source, and with what it is taken apart.
struct Work {
    source: Source,
    text: SourceText,
    images: Vec<SourceImage>,
    promptset: Promptset,
    budget: Arc<Budget>,
}

pub(crate) async fn run(
    payload: SourceDecomposition,
    ctx: JobContext,
    tools: Tools,
) -> Result<Finished, JobError> {
    let id = payload.source;
    let mut tx = ctx.step().await?;
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
    let reading = Reading::new(&ctx, &tools, &work).await?;
    let findings = reading.run().await?;
    conclude(&ctx, &tools, &work, model, findings).await
}

/// A stage that is off is passed; what it found when it was on stays.
async fn pass(ctx: &JobContext, source: &Source) -> Result<Finished, JobError> {
    let mut effect = ctx.begin().await?;
    sources::mark(&mut effect, ctx.repository(), source.id, ctx.id(), SourceStatus::Processed).await?;
    effect.commit(Some(serde_json::json!({ "status": "processed", "facts": source.fact_count }))).await
}

/// Without a model: sentences that stand on their own.
fn extract(source: &Source, text: &SourceText) -> (Findings, Extraction) {
    let sentences = Text::new(&text.text, &text.sentences);
    let mut findings = Findings::default();
    findings.take_facts(None, extractive::MODEL, extractive::extract(&sentences, source.language.as_deref()));
    let extraction = Extraction {
        model: extractive::MODEL.to_owned(),
        promptset_hash: extractive::promptset_hash().to_string(),
        ..findings.extraction(text.sentences.len())
    };
    (findings, extraction)
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
    conn.done();
    let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
    let looking = &tools.config().providers.decomposition.image_extraction;
    if !looking.is_on(settings.stages.image_extraction) {
        images.clear();
    }
    let budget = Arc::new(Budget::new(now, settings.monthly_usd.is_some()));
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
    let cost = cost(ctx, source).await?;
    match findings.stopped.take() {
        Some(Stopped::Pause { why, delay }) => {
            note(ctx, source, cost, Some(why)).await?;
            return Err(JobError::Waits { why, delay });
        }
        // What can't pass would not pass in another run.
        Some(Stopped::Later(error)) if error.retryable() && ctx.attempt() < RUNS => {
            note(ctx, source, cost, None).await?;
            return Err(error.into());
        }
        Some(Stopped::Later(error)) => {
            findings.fail_unanswered("unanswered", &error.to_string());
        }
        Some(Stopped::Hopeless { code, message, retryable }) => {
            findings.give_up(code, &message, retryable);
        }
        None => {}
    }
    let extraction = Extraction {
        model: model.to_owned(),
        promptset_hash: work.promptset.registry_hash().to_string(),
        ..findings.extraction(work.text.sentences.len())
    };
    settle(ctx, tools, source, &findings, &extraction, Some(cost)).await
}

/// All that was ever paid for the source.
async fn cost(ctx: &JobContext, source: &Source) -> Result<Cost> {
    let mut conn = ctx.databases().acquire_system().await?;
    let cost = ai_calls::cost_of(&mut conn, ctx.repository(), source.id).await?;
    conn.done();
    Ok(cost)
}

/// What was paid, and why the job does not go on now.
async fn note(ctx: &JobContext, source: &Source, cost: Cost, why: Option<Waiting>) -> Result<(), JobError> {
    let mut tx = ctx.step().await?;
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
    let mut effect = ctx.begin().await?;
    // First of all, so that whoever removes the source waits.
    if sources::hold(&mut effect, repository, id).await?.is_none_or(|(_, job)| job != ctx.id()) {
        return effect.commit(None).await;
    }
    // What an earlier run has found stays, where this one did not get to the end.
    let keep = failure.is_some();
    // Without vectors there is nothing to compare them by.
    let compared = tools.vectors().is_some();
    let made = Made { promptset, status: if compared { FactStatus::New } else { FactStatus::Stable } };
    let failed = failure.as_ref();
    if !source_extractions::settle(&mut effect, repository, id, ctx.id(), extraction, failed, cost).await? {
        // Somebody took this run for dead and has said what became of the source.
        return effect.commit(None).await;
    }
    if compared {
        effect.push(&EmbedFacts { source: Some(id) }, When::default()).await?;
        // Whatever becomes of that, somebody comes for what it leaves undone.
        effect.push(&CleanupFacts { soon: false }, When { delay_ms: CLEANUP_MS, ..When::default() }).await?;
    }
    // Last of all: it counts them where every source of the repository is counted, and whoever comes next waits.
    let count = facts::replace(&mut effect, repository, id, &findings.facts(), keep, made).await?;
    let status = if failure.is_some() { "failed" } else { "processed" };
    let output =
        serde_json::json!({ "status": status, "facts": count, "extraction": extraction, "failure": failure });
    effect.commit(Some(output)).await
}

/// Sentences that some fact rests on.
fn cited<'f>(facts: impl Iterator<Item = &'f NewFact>) -> BTreeSet<i32> {
    facts.flat_map(|fact| fact.sentences.iter().copied()).collect()
}
